"""HTTP rules of the protocol: content codings, checksums, request ids, CORS, and the few answers without JSON.

Source: docs/protocols/dynamodb.md rules 1, 2, 6, 7 and 8.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import orjson

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, internal, serialization
from tablegate.gateway.http import request_bodies
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import WINDOWS, Undecodable
from tablegate.gateway.model.errors import Busy, LimitExceeded

JSON_1_0 = "application/x-amz-json-1.0"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
UNKNOWN_OPERATION = b"<UnknownOperationException/>\n"

_COMPRESSION_LEVEL = 4
_ENDPOINT = ("/", "")
_JSON_TYPES = (JSON_1_0, JSON)


class BodyTooLarge(Exception):
    """The decoded body exceeds the limit."""


# Requests


def is_call(request: Request) -> bool:
    """True for an API call: its method, path, length and media type are those of the protocol (rule 1).

    Without a body, each media type is allowed but that of a form, which is one of the token service.
    """
    if request.method != "POST" or request.path not in _ENDPOINT or len(request.body) > limits.REQUEST_BYTES:
        return False
    media_type = _media_type(request.header_map.get("content-type", ""))
    return media_type in _JSON_TYPES or (not request.body and media_type.lower() != FORM)


def body_of(request: Request) -> bytes:
    """Return the request's body without its content coding.

    Raises BodyTooLarge, Busy, and InternalServerError for an unknown coding or undecodable bytes. The service
    answers 500 for those (test/alternator/test_compressed_request.py).
    """
    coding = request.header_map.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return request.body
    try:
        return request_bodies.inflate(
            request.body, coding, limits.REQUEST_BYTES, limits.GZIP_MEMBERS if coding == "gzip" else 1
        )
    except LimitExceeded:
        raise BodyTooLarge from None
    except Undecodable:
        raise internal() from None


def json_failure(error: Exception) -> ServiceError | Busy:
    """Return the error for an exception of orjson: SerializationException, or Busy if memory is short."""
    failure = request_bodies.failure_of(error)
    return serialization() if isinstance(failure, Undecodable) else failure


def document_of(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body, or {} for other JSON. Its members are not checked.

    Raises the errors of body_of, and SerializationException.
    """
    try:
        body = orjson.loads(body_of(request) or b"{}")
    except (ValueError, SystemError, MemoryError) as error:
        raise json_failure(error) from None
    return body if isinstance(body, dict) else {}


@lru_cache(maxsize=64)
def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip()


# Replies


def reply(request: Request, status: int, body: bytes, media_type: str | None = None) -> Reply:
    """Return a reply with the headers that all replies of the service have. Large bodies are compressed if the
    client accepts it.

    If `media_type` is None, the answer has that of the request. The checksum covers the bytes as sent,
    because Java SDKs check those.
    """
    headers = [("x-amzn-RequestId", request.id)]
    request_headers = request.header_map
    if media_type is None:
        media_type = JSON_1_0 if _media_type(request_headers.get("content-type", "")) == JSON_1_0 else JSON
    if media_type:
        headers.append(("Content-Type", media_type))
    if len(body) >= limits.COMPRESSED_RESPONSE_FROM_BYTES:
        # The service reads only the first Accept-Encoding header (rule 7), though RFC 9110 makes them one list.
        coding = accepted_coding(request_headers.get("accept-encoding", ""))
        if coding:
            deflater = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, WINDOWS[coding])
            body = deflater.compress(body) + deflater.flush()
            headers.append(("Content-Encoding", coding))
    headers.append(("x-amz-crc32", str(zlib.crc32(body))))
    if request_headers.get("origin"):
        headers.append(("Access-Control-Allow-Origin", "*"))
        headers.append(("Access-Control-Expose-Headers", _EXPOSED))
    return Reply(status, headers, body)


# Headers that a browser page may read. The service names these (test/alternator/test_cors.py checks only that the
# header exists).
_EXPOSED = "x-amzn-RequestId, x-amzn-ErrorType, x-amz-crc32, Content-Encoding, Content-Length, Date"


def not_found(request: Request) -> Reply:
    """Return the answer to a request that is no API call: another path, method or content type (rule 1)."""
    return reply(request, 404, UNKNOWN_OPERATION, "")


def too_large(request: Request) -> Reply:
    """Return the answer to a body over 16 MB. It has no content."""
    return reply(request, 413, b"", "")


def health(request: Request) -> Reply:
    """Return the answer to the health check of load balancers. The trailing space is the service's."""
    host = request.header("host").encode("ascii", "ignore").decode()
    return reply(request, 200, f"healthy: {host} ".encode(), "text/plain")


def preflight(request: Request) -> Reply:
    """Return the answer to a CORS preflight request. All requested headers and methods are allowed (rule 8)."""
    headers = [
        ("x-amzn-RequestId", request.id),
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", _EXPOSED),
        ("Access-Control-Max-Age", str(limits.PREFLIGHT_SECONDS)),
    ]
    for request_name, response_name in (
        ("access-control-request-headers", "Access-Control-Allow-Headers"),
        ("access-control-request-method", "Access-Control-Allow-Methods"),
    ):
        if request.header(request_name):
            headers.append((response_name, request.header(request_name)))
    return Reply(200, headers)


def plain_answer(request: Request) -> Reply:
    """Return the reply to a request that is no API call."""
    if request.path not in _ENDPOINT:
        return not_found(request)
    if len(request.body) > limits.REQUEST_BYTES:
        return too_large(request)
    if request.method == "OPTIONS" and request.header("origin"):
        return preflight(request)
    return health(request) if request.method == "GET" else not_found(request)


# DynamoDB Local's answer to GET / and HEAD / (testcontainers-dotnet waits for its status).
_UNSIGNED = (
    b'{"__type":"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken","message":"Request must contain '
    b'either a valid (registered) AWS access key ID or X.509 certificate."}'
)


def emulator_health(request: Request) -> Reply | None:
    """Return an emulator's reply to a health check. None for other requests."""
    if request.method not in ("GET", "HEAD") or request.path not in _ENDPOINT:
        return None
    return reply(request, 400, _UNSIGNED, JSON_1_0)


@lru_cache(maxsize=256)
def accepted_coding(accepted: str) -> str | None:
    """Return the coding of the answer for an Accept-Encoding list: gzip, deflate or None.

    The service has its own rules (test/alternator/test_compressed_response.py, verified on AWS):
    - Identity is never preferred.
    - A weight follows the first `q=` of an entry. Above 1 or unreadable, it is 1.
    - A coding that is named twice has the higher weight.
    - Among equals the first named wins, then the codings that `*` stands for.
    """
    weights: dict[str, float] = {}
    for entry in accepted.lower().split(","):
        coding, _, parameters = entry.partition(";")
        coding = coding.strip()
        if coding in WINDOWS or coding == "*":
            weights[coding] = max(weights.get(coding, 0.0), _weight(parameters))
    anything = weights.pop("*", 0.0)
    for coding in WINDOWS:
        weights.setdefault(coding, anything)
    best = max(weights, key=lambda coding: weights[coding])
    return best if weights[best] > 0 else None


def _weight(parameters: str) -> float:
    _, mark, rest = parameters.partition("q=")
    if not mark:
        return 1.0
    try:
        return min(1.0, max(0.0, float(rest.partition(";")[0])))
    except ValueError:
        return 1.0

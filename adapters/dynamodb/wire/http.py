"""The HTTP side of the protocol: content codings, checksums, request ids, CORS, and the few answers that are no JSON.

Knows bytes and headers. Knows no operation, no signature and no table. Source: docs/protocols/dynamodb.md
rules 1, 2, 6, 7 and 8.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import orjson

from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, internal, serialization
from tablegate.gateway import request_bodies
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.errors import Busy, LimitExceeded
from tablegate.gateway.request_bodies import WINDOWS, Undecodable

JSON_1_0 = "application/x-amz-json-1.0"
JSON = "application/json"
UNKNOWN_OPERATION = b"<UnknownOperationException/>\n"

_COMPRESSION_LEVEL = 4
_ENDPOINT = ("/", "")


class BodyTooLarge(Exception):
    """The body is over the limit once it is decoded."""


# Requests


def body_of(request: Request) -> bytes:
    """Return the request's body without its content coding.

    Raises BodyTooLarge, Busy, and InternalServerError for a coding that is unknown or does not decode: the service answers 500
    (test/alternator/test_compressed_request.py).
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
    """The error to raise for what orjson raised: SerializationException, or Busy where memory is short."""
    failure = request_bodies.failure_of(error)
    return serialization() if isinstance(failure, Undecodable) else failure


def document_of(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request's body is; {} for other JSON. It is not checked further.

    Raises what body_of raises, and SerializationException."""
    try:
        body = orjson.loads(body_of(request) or b"{}")
    except (ValueError, SystemError, MemoryError) as error:
        raise json_failure(error) from None
    return body if isinstance(body, dict) else {}


@lru_cache(maxsize=64)
def _media_type(found: str) -> str:
    return found.partition(";")[0].strip()


# Replies


def reply(request: Request, status: int, body: bytes, media_type: str | None = None) -> Reply:
    """A reply with the headers that all of the service's have; compressed if the client asks and it is worth it.

    `media_type` None: that of the request. The checksum covers the bytes that are sent: Java SDKs check those.
    """
    headers = [("x-amzn-RequestId", request.id)]
    known = request.header_map
    if media_type is None:
        media_type = JSON_1_0 if _media_type(known.get("content-type", "")) == JSON_1_0 else JSON
    if media_type:
        headers.append(("Content-Type", media_type))
    if len(body) >= limits.COMPRESSED_RESPONSE_FROM_BYTES:
        # Of a repeated Accept-Encoding the service reads the first only (rule 7), though RFC 9110 makes it one list.
        coding = accepted_coding(known.get("accept-encoding", ""))
        if coding:
            deflater = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, WINDOWS[coding])
            body = deflater.compress(body) + deflater.flush()
            headers.append(("Content-Encoding", coding))
    headers.append(("x-amz-crc32", str(zlib.crc32(body))))
    if known.get("origin"):
        headers.append(("Access-Control-Allow-Origin", "*"))
        headers.append(("Access-Control-Expose-Headers", _EXPOSED))
    return Reply(status, headers, body)


# What a page may read of the reply; the service names these (test/alternator/test_cors.py asks for the header only).
_EXPOSED = "x-amzn-RequestId, x-amzn-ErrorType, x-amz-crc32, Content-Encoding, Content-Length, Date"


def not_found(request: Request) -> Reply:
    """The answer to what is no API call at all: another path, another method, another content type (rule 1)."""
    return reply(request, 404, UNKNOWN_OPERATION, "")


def too_large(request: Request) -> Reply:
    """The answer to a body over 16 MB. It has no content."""
    return reply(request, 413, b"", "")


def health(request: Request) -> Reply:
    """The answer to `GET /`: load balancers ask it. The space at the end is the service's."""
    host = request.header("host").encode("ascii", "ignore").decode()
    return reply(request, 200, f"healthy: {host} ".encode(), "text/plain")


def preflight(request: Request) -> Reply:
    """The answer to a browser that asks what it may send: whatever it asks for (rule 8)."""
    headers = [
        ("x-amzn-RequestId", request.id),
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Expose-Headers", _EXPOSED),
        ("Access-Control-Max-Age", str(limits.PREFLIGHT_SECONDS)),
    ]
    for asked, allowed in (
        ("access-control-request-headers", "Access-Control-Allow-Headers"),
        ("access-control-request-method", "Access-Control-Allow-Methods"),
    ):
        if request.header(asked):
            headers.append((allowed, request.header(asked)))
    return Reply(200, headers)


def plain_answer(request: Request) -> Reply | None:
    """The reply to a request that is too large or no API call, or None: it is one, and its body is JSON if it has one."""
    if request.path not in _ENDPOINT:
        return not_found(request)
    if len(request.body) > limits.REQUEST_BYTES:
        return too_large(request)
    if request.method == "POST":
        if request.body and _media_type(request.header_map.get("content-type", "")) not in (JSON_1_0, JSON):
            return not_found(request)
        return None
    if request.method == "OPTIONS" and request.header("origin"):
        return preflight(request)
    if request.method == "GET":
        return health(request)
    return not_found(request)


# What DynamoDB Local answers to GET / and HEAD / (testcontainers-dotnet waits for its status).
_UNSIGNED = (
    b'{"__type":"com.amazonaws.dynamodb.v20120810#MissingAuthenticationToken","message":"Request must contain '
    b'either a valid (registered) AWS access key ID or X.509 certificate."}'
)


def emulator_health(request: Request) -> Reply | None:
    """The reply of an emulator to a health check; None: the request is none."""
    if request.method not in ("GET", "HEAD") or request.path not in _ENDPOINT:
        return None
    return reply(request, 400, _UNSIGNED, JSON_1_0)


@lru_cache(maxsize=256)
def accepted_coding(accepted: str) -> str | None:
    """The coding to answer in, gzip or deflate, for an Accept-Encoding list; None: as it is.

    The service reads the list by rules of its own (test/alternator/test_compressed_response.py, verified on AWS): identity
    is never preferred; a weight is what follows the first `q=` of an entry, above 1 it is 1, unreadable it is 1; of a
    coding named twice the higher weight counts; among equals the first named wins, then what `*` stands for.
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
    _, found, rest = parameters.partition("q=")
    if not found:
        return 1.0
    try:
        return min(1.0, max(0.0, float(rest.partition(";")[0])))
    except ValueError:
        return 1.0

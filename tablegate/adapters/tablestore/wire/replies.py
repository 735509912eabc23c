"""HTTP replies: headers, compression and signature. Source: docs/protocols/table-store.md section 1.3."""

from __future__ import annotations

import base64
import hashlib
import zlib
from datetime import UTC, datetime
from functools import lru_cache

from tablegate.adapters.tablestore.wire import auth, limits
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import Undecodable, inflate
from tablegate.gateway.model.errors import LimitExceeded

_CONTENT_TYPE = "protocol buffer"
_DEFLATE = "deflate"
# The letters of the gateway's ids as hexadecimal digits.
_HEX_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdef" * 2)


def inflated(request: Request) -> bytes:
    """Return the uncompressed body. Raises ServiceError if it cannot be decoded, Busy."""
    kind = request.header_map.get("x-ots-request-compress-type", "")
    if not kind:
        return request.body
    if kind.strip().lower() != _DEFLATE:
        raise invalid(f"Unsupported compress type: {kind}.")
    try:
        body = inflate(request.body, _DEFLATE, limits.BODY_MAX_BYTES)
    except Undecodable:
        raise invalid("The request body is not deflate compressed.") from None
    except LimitExceeded:
        raise ServiceError("OTSRequestBodyTooLarge", "The size of POST data is too large.") from None
    declared = request.header_map.get("x-ots-request-compress-size", "").strip()
    if declared and declared != str(len(body)):
        raise invalid("The size of the request body does not match x-ots-request-compress-size.")
    return body


def reply(
    request: Request, operation: str, caller: Caller | None, answer: bytes | ServiceError, now_ms: int
) -> Reply:
    """Return the HTTP reply. Without a caller there is no key, and the reply is unsigned."""
    status = 200
    if isinstance(answer, ServiceError):
        status = answer.status
        body = answer.as_message().SerializeToString()
    else:
        body = answer
    headers = []
    compression = request.header_map.get("x-ots-response-compress-type", "").strip().lower()
    if compression == _DEFLATE and status == 200 and body:
        headers.append(("x-ots-response-compress-type", _DEFLATE))
        headers.append(("x-ots-response-compress-size", str(len(body))))
        body = zlib.compress(body, 1)
    digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    headers += [
        ("x-ots-contentmd5", digest),
        ("x-ots-contenttype", _CONTENT_TYPE),
        ("x-ots-date", date_text(now_ms)),
        ("x-ots-requestid", request_id(request)),
    ]
    if caller is not None:
        headers.append(("Authorization", auth.reply_signature(caller, operation, headers)))
    return Reply(status, headers, body)


def request_id(request: Request) -> str:
    """Return the id of the request for clients: 36 characters, as in the service, derived from the gateway's id."""
    text = request.id[:32].encode().translate(_HEX_DIGITS).decode()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def date_text(now_ms: int) -> str:
    """Return a time with six fractional digits, as the service formats it."""
    seconds, rest = divmod(now_ms, 1000)
    return f"{_second_text(seconds)}.{rest:03d}000Z"


@lru_cache(maxsize=4)
def _second_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"

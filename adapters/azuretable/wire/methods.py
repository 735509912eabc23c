"""The verb a request means: its own, or the one tunnelled through POST in X-HTTP-Method."""

from __future__ import annotations

from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.http import Request

_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})


def method_of(request: Request) -> str:
    """The verb. Raises ServiceError XMethodIncorrectCount, XMethodNotUsingPost, XMethodIncorrectValue."""
    if "x-http-method" not in request.header_map:
        return request.method
    sent = request.header_values("x-http-method")
    if len(sent) > 1:
        raise ServiceError("XMethodIncorrectCount")
    if request.method != "POST":
        raise ServiceError("XMethodNotUsingPost")
    method = sent[0].strip().upper()
    if method not in _TUNNELLED:
        raise ServiceError("XMethodIncorrectValue")
    return method

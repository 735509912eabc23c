"""Replies: their common headers, and error documents."""

from __future__ import annotations

import re
from datetime import date
from email.utils import formatdate
from functools import lru_cache

from tablegate.adapters.azuretable.call import OperationReply, options_of, service_id
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel, content_type
from tablegate.adapters.azuretable.values import UNIX_EPOCH_TICKS, timestamp_text
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError, as_json, as_xml
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Reply, Request

_XML_COMPONENTS = frozenset({"acl", "properties", "stats", "userdelegationkey"})
_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ODATA_HEADERS = [
    ("Cache-Control", "no-cache"),
    ("X-Content-Type-Options", "nosniff"),
    ("DataServiceVersion", "3.0;"),
]


def reply(request: Request, answer: OperationReply, gateway: Gateway) -> Reply:
    """Return the reply of an operation with the headers of all replies."""
    version = request.header_map.get("x-ms-version", "")
    headers = [
        *answer.headers,
        ("x-ms-request-id", service_id(request.id)),
        ("x-ms-version", version if is_version(version) else _default_version(request, gateway)),
        ("Server", "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"),
        ("Date", _http_date(gateway.real_now_ms() // 1000)),
    ]
    client_id = request.header_map.get("x-ms-client-request-id", "")
    if client_id and _is_echoed(client_id):
        headers.append(("x-ms-client-request-id", client_id))
    if "comp=" not in request.query or not _uses_xml(request):
        headers += _ODATA_HEADERS
    return Reply(answer.status, headers, b"" if request.method == "HEAD" else answer.body)


def _default_version(request: Request, gateway: Gateway) -> str:
    """Return the version for a request without a valid one: that of its token, or the default of the settings."""
    match = re.search(r"(?:^|&)sv=(\d{4}-\d\d-\d\d)(?:&|$)", request.query)
    if match and is_version(match.group(1)):
        return match.group(1)
    return gateway.settings.azure_default_version


def refusal(request: Request, error: ServiceError, gateway: Gateway) -> OperationReply:
    """Return the reply for an error, as JSON, or as XML if the client reads that."""
    time = timestamp_text(gateway.now_ms() * 10_000 + UNIX_EPOCH_TICKS)
    headers = [*error.headers, ("x-ms-error-code", error.code)]
    if _uses_xml(request) or "xml" in request.header_map.get("accept", "").lower():
        headers.append(("Content-Type", "application/xml"))
        return OperationReply(error.status, headers, as_xml(error, service_id(request.id), time))
    headers.append(("Content-Type", content_type(MetadataLevel.MINIMAL)))
    return OperationReply(error.status, headers, as_json(error, service_id(request.id), time))


def _is_echoed(client_id: str) -> bool:
    return (
        0 < len(client_id) <= limits.CLIENT_REQUEST_ID_MAX_CHARACTERS
        and client_id.isascii()
        and client_id.isprintable()
    )


@lru_cache(maxsize=256)
def is_version(text: str) -> bool:
    """Return True if a text is a valid date, as all versions are."""
    if _VERSION.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _uses_xml(request: Request) -> bool:
    """Return True if the request is for an operation with XML documents."""
    query = request.query
    if "comp=" not in query:
        return False
    try:
        return options_of(query).get("comp", "") in _XML_COMPONENTS
    except ServiceError:  # the query is invalid
        return False


@lru_cache(maxsize=2)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)

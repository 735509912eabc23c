"""Replies: the headers that all of them have, and errors as documents."""

from __future__ import annotations

import re
from datetime import date
from email.utils import formatdate
from functools import lru_cache

from tablegate.adapters.azuretable.call_context import OperationReply, options_of, service_id
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel, content_type
from tablegate.adapters.azuretable.values.values import UNIX_EPOCH_TICKS, timestamp_text
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError, as_json, as_xml, service_error_of
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.errors import GatewayError

_XML_COMPONENTS = frozenset({"acl", "properties", "stats"})
_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ODATA_HEADERS = [
    ("Cache-Control", "no-cache"),
    ("X-Content-Type-Options", "nosniff"),
    ("DataServiceVersion", "3.0;"),
]


def reply(request: Request, answer: OperationReply, gateway: Gateway) -> Reply:
    """The reply with an answer, and the headers that every reply has."""
    version = request.header_map.get("x-ms-version", "")
    headers = [
        *answer.headers,
        ("x-ms-request-id", service_id(request.id)),
        ("x-ms-version", version if is_version(version) else _version_unsaid(request, gateway)),
        ("Server", "Windows-Azure-Table/1.0 Microsoft-HTTPAPI/2.0"),
        ("Date", _http_date(gateway.real_now_ms() // 1000)),
    ]
    client_id = request.header_map.get("x-ms-client-request-id", "")
    if client_id and _is_echoed(client_id):
        headers.append(("x-ms-client-request-id", client_id))
    if "comp=" not in request.query or not _speaks_xml(request):
        headers += _ODATA_HEADERS
    return Reply(answer.status, headers, b"" if request.method == "HEAD" else answer.body)


def _version_unsaid(request: Request, gateway: Gateway) -> str:
    """The version of a request that names none, or none that can be read: its token's, else the setting's."""
    found = re.search(r"(?:^|&)sv=(\d{4}-\d\d-\d\d)(?:&|$)", request.query)
    if found and is_version(found.group(1)):
        return found.group(1)
    return gateway.settings.azure_default_version


def refusal(request: Request, refused: ServiceError | GatewayError, gateway: Gateway) -> OperationReply:
    """The answer that says an error, as JSON, or as XML where the client reads that."""
    error = service_error_of(refused) if isinstance(refused, GatewayError) else refused
    time = timestamp_text(gateway.now_ms() * 10_000 + UNIX_EPOCH_TICKS)
    headers = [*error.headers, ("x-ms-error-code", error.code)]
    if _speaks_xml(request) or "xml" in request.header_map.get("accept", "").lower():
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
    """Whether a text is a date of the calendar, as all versions are."""
    if _VERSION.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _speaks_xml(request: Request) -> bool:
    """Whether the request is for one of the operations whose documents are XML."""
    query = request.query
    if "comp=" not in query:
        return False
    try:
        return options_of(query).get("comp", "") in _XML_COMPONENTS
    except ServiceError:  # a query that cannot be read
        return False


@lru_cache(maxsize=2)
def _http_date(second: int) -> str:
    return formatdate(second, usegmt=True)

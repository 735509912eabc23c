"""One call of an operation: input and reply of a handler, and table lookup.

A handler is a coroutine function `operation(call, resource) -> OperationReply` (gateway/dialects/coroutines.py). It parses the
request, awaits commands and returns a reply. It raises ServiceError (errors.py) or GatewayError. The dialect renders both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_plus

from tablegate.adapters.azuretable import DIALECT
from tablegate.adapters.azuretable.flavours import Flavour
from tablegate.adapters.azuretable.shared_access import Grant
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.addresses import Address
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability import metrics


# Not frozen, since creation would take three times as long, and each request needs both.
@dataclass(slots=True, eq=False)
class CallContext:
    """An authenticated request, not to be changed.

    `method` is the effective verb (after X-HTTP-Method), `options` the decoded query, `origin` scheme, host and base of
    the service as the client addresses it.
    """

    request: Request
    address: Address
    method: str
    options: Mapping[str, str]
    origin: str
    namespace: str
    grant: Grant
    gateway: Gateway
    flavour: Flavour


@dataclass(slots=True, eq=False)
class OperationReply:
    """A reply without the headers common to all replies. Not to be changed."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


def service_id(request_id: str) -> str:
    """Return the GUID of a request in replies, derived from its id in the server's log."""
    digest = hashlib.blake2b(request_id.encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"


_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})


def method_of(request: Request) -> str:
    """Return the effective verb of a request: its own, or the one tunnelled through POST in X-HTTP-Method.

    Raises ServiceError XMethodIncorrectCount, XMethodNotUsingPost, XMethodIncorrectValue.
    """
    if "x-http-method" not in request.header_map:
        return request.method
    methods = request.header_values("x-http-method")
    if len(methods) > 1:
        raise ServiceError("XMethodIncorrectCount")
    if request.method != "POST":
        raise ServiceError("XMethodNotUsingPost")
    method = methods[0].strip().upper()
    if method not in _TUNNELLED:
        raise ServiceError("XMethodIncorrectValue")
    return method


def tunnelled_method(request: Request) -> str:
    """Return the verb in X-HTTP-Method, or "" if there is no valid one."""
    method = request.header_map.get("x-http-method", "").strip().upper()
    return method if method in _TUNNELLED else ""


def options_of(query: str) -> dict[str, str]:
    """Return the decoded options of a raw query. The first of repeated ones counts, but two signatures count as none.

    "+" is a blank, as HTML forms and older clients write it. It is kept in `sig`, since some clients do not encode its
    base64. Raises ServiceError InvalidUri for bytes that are not UTF-8, and for too many options.
    """
    options: dict[str, str] = {}
    if not query:
        return options
    if query.count("&") >= limits.OPTIONS_MAX:
        raise ServiceError("InvalidUri", "URI is invalid")
    try:
        for part in query.split("&"):
            name, _, value = part.partition("=")
            name = unquote(name, errors="strict") if "%" in name else name
            if name and name not in options:
                decode = unquote if name == "sig" else unquote_plus
                options[name] = decode(value, errors="strict")
            elif name == "sig":
                options[name] = ""
    except UnicodeDecodeError:
        raise ServiceError("InvalidUri", "URI is invalid") from None
    return options


def known_table(call: CallContext, name: str) -> Table | None:
    """Return the descriptor of a table from the cache. None if the engine must look it up."""
    by_azure_name, authorization = call.flavour.by_azure_name, call.request.authorization
    return call.gateway.engine.cached_table(call.namespace, name, by_azure_name, authorization)


async def find_table(call: CallContext, name: str) -> Table:
    """Return the descriptor of a table by its name. Raises TableMissing, ServiceError."""
    return known_table(call, name) or await find_table_now(call, name)


async def authorize_table(call: CallContext, name: str) -> None:
    """Check that the caller may access a table, before other checks of the request. Raises NotPermitted."""
    if call.request.authorization is not None:
        with suppress(TableMissing, ServiceError):
            await find_table(call, name)


def count_transaction(table: Table, kind: str) -> None:
    """Count a request for rows as one unit of `tablegate_consumed_capacity_total`, since the service bills requests.

    `kind` is `read` or `write`. A batch is one request.
    """
    metrics.record_consumption((DIALECT, table.name, "", kind, 1.0))


async def find_table_now(call: CallContext, name: str) -> Table:
    """Return the current descriptor of a table, to describe or change it. Raises TableMissing, ServiceError.

    It always calls the engine, so that access to the table is authorized.
    """
    call.flavour.check_name(name)
    return await FindTable(call.namespace, name, by_azure_name=call.flavour.by_azure_name)

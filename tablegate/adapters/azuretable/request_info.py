"""The description of a request to Azure Table (gateway/model/request_info.py), read apart from its handling.

The request is not checked yet, so values of a wrong form are ignored. Only the two keys of an entity are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tablegate.adapters.azuretable.entities.entity_parser import document_of
from tablegate.adapters.azuretable.operation_table import OPERATIONS
from tablegate.adapters.azuretable.wire import addresses, limits, multipart
from tablegate.adapters.azuretable.wire.addresses import (
    Address,
    Batch,
    Entity,
    EntitySet,
    Nested,
    Resource,
    TableEntry,
    TableSet,
)
from tablegate.adapters.azuretable.wire.errors import REFUSALS, ServiceError
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.model.request_info import (
    RejectedParts,
    RequestInfo,
    RequestKind,
    kind_of,
    table_names,
)

KINDS: Mapping[str, RequestKind] = {
    **{f"{verb} {kind.__name__}": kind_of(row.purpose) for (kind, verb, _), row in OPERATIONS.items()},
    "POST Service": RequestKind.SIGN_IN,  # a user delegation key, as other temporary keys
}
"""The kinds of operations. A batch of a query only reads."""
_AUTHENTICATED_REFUSALS = frozenset({"AuthorizationPermissionMismatch", "Forbidden"})
"""Refusals of authenticated callers."""
PART_MARKS: Mapping[str, bytes] = {"POST Batch": b"\r\nHTTP/1.1 403 "}
"""No value of JSON has a line break."""
_INNER_CODE = re.compile(rb'"code":"(\w+)"')
_INNER_FAILURE = re.compile(rb"^HTTP/1\.1 ([45]\d\d)\b", re.MULTILINE)
_KEY = ("PartitionKey", "RowKey")


class _Target(NamedTuple):
    """A resource that a request addresses. Without a method and a body, only the resource itself names a table or key."""

    resource: Resource
    method: str = ""
    body: bytes = b""


def read(head: RequestInfo, request: Request, reply: Reply | None, host: str) -> RequestInfo:
    """Return the description of a request. Raises ServiceError for an invalid address.

    `head`: its operation and kind. `reply`: None before the answer, when its caller is authenticated. `host`: the host
    of the request, "" if hosts name no account. Without authentication only the address is read.
    """
    address = addresses.parse(request.path, host)
    code = "" if reply is None else _error_code(reply)
    info = head._replace(caller=address.account, error_code=code, is_refusal=code in REFUSALS)
    if info.is_refusal and code not in _AUTHENTICATED_REFUSALS:
        return info._replace(tables=_tables([_Target(address.resource)]))
    targets = _targets(request, address, host)
    tables = _tables(targets)
    info = info._replace(
        tables=tables,
        keys=[
            (table, key) for target in targets for table, key in _tables_and_keys(*target) if key is not None
        ],
    )
    if not isinstance(address.resource, Batch):
        return info
    if targets and all(target.method == "GET" for target in targets):
        info = info._replace(kind=RequestKind.READ)
    if reply is None:
        return info
    failure = _INNER_FAILURE.search(reply.body)
    return info._replace(
        error_code=code or (failure[1].decode() if failure else ""),
        refused_parts=_refused_parts(reply, info.operation, tables),
    )


def _error_code(reply: Reply) -> str:
    return next((value for name, value in reply.headers if name.lower() == "x-ms-error-code"), "")


def _targets(request: Request, address: Address, host: str) -> list[_Target]:
    """Return the resource that a request addresses, or all resources of its batch. Empty for an invalid batch."""
    if not isinstance(address.resource, Batch):
        return [_Target(address.resource, request.method, request.body)]
    try:
        batch = multipart.parse(request.header("content-type"), request.body, limits.CHANGES_MAX)
        return [
            _Target(
                addresses.resolve(inner.head.target, address, host)[0].resource, inner.head.method, inner.body
            )
            for inner in batch.requests
        ]
    except ServiceError:
        return []


def _tables(targets: list[_Target]) -> list[str]:
    return table_names(table for target in targets for table, _ in _tables_and_keys(*target))


def _refused_parts(reply: Reply, operation: str, tables: list[str]) -> RejectedParts | None:
    """Return the rejected part of a batch, or None.

    A batch is a query or changes of one table, and its answer reports at most one rejected part.
    """
    mark = PART_MARKS.get(operation)
    if mark is None or mark not in reply.body:
        return None
    match = _INNER_CODE.search(reply.body, reply.body.index(mark))
    code = match[1].decode() if match else ""
    return RejectedParts(tables, code) if code in REFUSALS else None


def _tables_and_keys(
    resource: Resource, method: str, body: bytes
) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield (table, key or None) of each entity or table that a resource names."""
    match resource:
        case Entity(table, partition_key, row_key):
            yield table, {"PartitionKey": partition_key, "RowKey": row_key}
        case EntitySet(table):
            entity = _document(body) if method == "POST" else {}
            key = {name: entity[name] for name in _KEY if isinstance(entity.get(name), str)}
            yield table, key or None
        case TableEntry(name):
            yield name, None
        case TableSet() if method == "POST":
            created_name = _document(body).get("TableName")
            if isinstance(created_name, str):
                yield created_name, None
        case Nested(table, _):
            yield table, None


def _document(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, {} for a body that the service rejects unread."""
    try:
        return document_of(body)
    except (ServiceError, Busy):
        return {}

"""What a request asks for, in short: the tables and the keys that it names, for the control API's record and for the audit.

Reads a request that nobody has checked yet, and takes of it what is of the right form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from adapters.azuretable.wire import addresses, limits, multipart
from adapters.azuretable.wire.addresses import (
    Address,
    Batch,
    Entity,
    EntitySet,
    Nested,
    Resource,
    TableEntry,
    TableSet,
)
from adapters.azuretable.wire.errors import ServiceError
from gateway.dialect import Summary
from gateway.http import Request

_KEY = ("PartitionKey", "RowKey")
_Named = tuple[str, Mapping[str, Any] | None]


class Asked(NamedTuple):
    """What is asked of a resource. Without a method and a body only the resource's own names are read."""

    resource: Resource
    method: str = ""
    body: bytes = b""


def asked(request: Request, address: Address, host: str) -> list[Asked]:
    """What a request to an address asks for: that, or all that its batch does, of which nothing is known if it cannot be read.
    `host`: of the request; "" if hosts name no account."""
    if not isinstance(address.resource, Batch):
        return [Asked(address.resource, request.method, request.body)]
    try:
        batch = multipart.parse(request.header("content-type"), request.body, limits.CHANGES_MAX)
        return [
            Asked(
                addresses.resolve(inner.head.target, address, host)[0].resource, inner.head.method, inner.body
            )
            for inner in batch.requests
        ]
    except ServiceError:
        return []


def summary(operation: str, account: str, found: Iterable[Asked]) -> Summary:
    """The summary of a request to an account that asks for this."""
    named = [each for one in found for each in _named(*one)]
    tables = dict.fromkeys(table for table, _ in named)
    keys = [(table, key) for table, key in named if key is not None]
    return Summary(operation, account, tuple(tables), keys)


def _named(resource: Resource, method: str, body: bytes) -> Iterator[_Named]:
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
            made = _document(body).get("TableName")
            if isinstance(made, str):
                yield made, None
        case Nested(table, _):
            yield table, None


def _document(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}

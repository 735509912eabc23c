"""What a request asks for, in short: the tables and the keys that it names, for the control API's record of requests.

Reads a request that nobody has checked yet, and takes of it what is of the right form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from adapters.azuretable.wire import addresses, limits, multipart
from adapters.azuretable.wire.addresses import (
    Batch,
    Entity,
    EntitySet,
    Nested,
    Resource,
    TableEntry,
    TableSet,
)
from gateway.dialect import Summary
from gateway.http import Request

_KEY = ("PartitionKey", "RowKey")
_Named = tuple[str, Mapping[str, Any] | None]


def summary(request: Request, host: str, operation: str) -> Summary:
    """The summary of a request to a host ("": it names no account). Raises ServiceError for an address or a batch that cannot
    be read."""
    address = addresses.parse(request.path, host)
    named: list[_Named] = []
    if isinstance(address.resource, Batch):
        batch = multipart.parse(request.header("content-type"), request.body, limits.CHANGES_MAX)
        for inner in batch.requests:
            resource = addresses.resolve(inner.head.target, address, host)[0].resource
            named += _named(resource, inner.head.method, inner.body)
    else:
        named += _named(address.resource, request.method, request.body)
    tables = dict.fromkeys(table for table, _ in named)
    keys = [(table, key) for table, key in named if key is not None]
    return Summary(operation, address.account, tuple(tables), keys)


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

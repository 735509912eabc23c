"""What a request did, for the audit (gateway/audit.py): its operation's kind, the account, tables, keys, the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Tells no property but the two keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from adapters.azuretable.wire import addresses
from adapters.azuretable.wire.addresses import Batch, Entity, EntitySet, Resource, TableEntry, TableSet
from adapters.azuretable.wire.errors import REFUSALS
from gateway.audit import Deed, Kind, names_among
from gateway.http import Reply, Request

KINDS: Mapping[str, Kind] = {
    "POST TableSet": Kind.DEFINITION,
    "DELETE TableEntry": Kind.DEFINITION,
    "PUT EntitySet": Kind.DEFINITION,  # its access policies
    "PUT Service": Kind.DEFINITION,
    "POST EntitySet": Kind.WRITE,
    "POST Batch": Kind.WRITE,
    **{f"{verb} Entity": Kind.WRITE for verb in ("PUT", "MERGE", "PATCH", "DELETE", "POST")},
}
_INNER_REQUEST = re.compile(rb"^([A-Z]+) (\S+) HTTP/1\.1\r?$", re.MULTILINE)
_INNER_FAILURE = re.compile(rb"^HTTP/1\.1 ([45]\d\d)\b", re.MULTILINE)


def deed_of(request: Request, reply: Reply, operation: str) -> Deed:
    """What a request did."""
    host = request.header("host")
    address = addresses.parse(request.path, host)
    code = next((value for name, value in reply.headers if name.lower() == "x-ms-error-code"), "")
    kind = KINDS.get(operation, Kind.READ)
    if code in REFUSALS:
        return Deed(kind, address.account, names_among(_tables(address.resource)), (), code, True)
    resources: list[Resource] = [address.resource]
    if isinstance(address.resource, Batch):
        inner = _INNER_REQUEST.findall(request.body)
        if inner and all(verb == b"GET" for verb, _ in inner):
            kind = Kind.READ
        resources = [addresses.resolve(target.decode(), address, host)[0].resource for _, target in inner]
        failure = _INNER_FAILURE.search(reply.body)
        code = code or (failure[1].decode() if failure else "")
    body = _document(request, address.resource)
    tables = [name for resource in resources for name in _tables(resource)]
    keys = [key for resource in resources for key in _keys(resource)]
    if isinstance(address.resource, TableSet):
        tables.append(body.get("TableName", ""))
    if isinstance(address.resource, EntitySet) and "PartitionKey" in body and "RowKey" in body:
        keys.append({name: body[name] for name in ("PartitionKey", "RowKey")})
    return Deed(kind, address.account, names_among(filter(None, tables)), keys, code)


def _document(request: Request, resource: Resource) -> dict[str, Any]:
    """The JSON of an insert, or of a new table."""
    if request.method != "POST" or not isinstance(resource, TableSet | EntitySet):
        return {}
    body = orjson.loads(request.body)
    return body if isinstance(body, dict) else {}


def _tables(resource: Resource) -> Iterator[str]:
    match resource:
        case TableEntry(name):
            yield name
        case EntitySet(table) | Entity(table):
            yield table


def _keys(resource: Resource) -> Iterator[dict[str, str]]:
    if isinstance(resource, Entity):
        yield {"PartitionKey": resource.partition_key, "RowKey": resource.row_key}

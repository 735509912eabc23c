"""The operation table: (resource, verb, comp) -> the handler that answers it.

What an address means is in wire/addresses.py; a verb may be tunnelled (wire/methods.py). A combination that is not here is
answered with 405.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from adapters.azuretable import batches
from adapters.azuretable.calls import Call, find_table
from adapters.azuretable.entities import entities
from adapters.azuretable.queries import queries
from adapters.azuretable.tables import service, tables
from adapters.azuretable.wire.addresses import (
    Batch,
    Entity,
    EntitySet,
    Nested,
    Service,
    TableEntry,
    TableSet,
)
from adapters.azuretable.wire.errors import KEY_COUNT, ServiceError
from gateway.model.commands import Exchange


class Operation(NamedTuple):
    """One operation of the API. Its handler is given the call and the resource."""

    handler: Callable[..., Exchange]


PLAIN = ""
"""A request that names no component."""
OPERATIONS: Mapping[tuple[type, str, str], Operation] = {
    # (resource, verb, comp)
    (TableSet, "GET", PLAIN): Operation(tables.query),
    (TableSet, "POST", PLAIN): Operation(tables.create),
    (TableEntry, "GET", PLAIN): Operation(tables.get),
    (TableEntry, "DELETE", PLAIN): Operation(tables.delete),
    (EntitySet, "GET", "acl"): Operation(tables.get_access_policies),
    (EntitySet, "HEAD", "acl"): Operation(tables.get_access_policies),
    (EntitySet, "PUT", "acl"): Operation(tables.set_access_policies),
    (EntitySet, "GET", PLAIN): Operation(queries.query),
    (EntitySet, "POST", PLAIN): Operation(entities.insert),
    (Entity, "GET", PLAIN): Operation(entities.get),
    (Entity, "PUT", PLAIN): Operation(entities.update),
    (Entity, "MERGE", PLAIN): Operation(entities.update),
    (Entity, "PATCH", PLAIN): Operation(entities.update),
    (Entity, "DELETE", PLAIN): Operation(entities.update),
    (Batch, "POST", PLAIN): Operation(batches.run),
    (Service, "GET", "properties"): Operation(service.get_properties),
    (Service, "PUT", "properties"): Operation(service.set_properties),
    (Service, "GET", "stats"): Operation(service.get_statistics),
}


def refuse_nested(call: Call, resource: Nested) -> Exchange:
    """Answer a client whose account URL ends in a table's name: /T/Tables, /T/$batch and their like. Always raises.

    The service has no such resources, and refuses each in its own way; SDKs recognise code and text and tell their users
    what is wrong with the URL. Raises ServiceError, TableMissing.
    """
    if call.options.get("restype") == "service":
        raise ServiceError("InvalidQueryParameterValue")
    match resource.inner:
        case Batch():
            raise ServiceError("MediaTypeNotSupported")
        case TableSet():
            yield from find_table(call, resource.table)
            raise ServiceError("PropertiesNeedValue" if call.method == "POST" else "InvalidInput")
        case TableEntry():
            yield from find_table(call, resource.table)
            raise ServiceError("InvalidInput", KEY_COUNT)

"""The operation table: (resource, verb, comp) -> the handler that answers it.

What an address means is in wire/addresses.py; a verb may be tunnelled (wire/methods.py). A combination that is not here is
answered with 405.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adapters.azuretable import batches
from adapters.azuretable.calls import Answer
from adapters.azuretable.entities import entities
from adapters.azuretable.queries import queries
from adapters.azuretable.tables import service, tables
from adapters.azuretable.wire.addresses import Batch, Entity, EntitySet, Service, TableEntry, TableSet
from gateway.model.commands import Exchange

Operation = Callable[..., Exchange[Answer]]

PLAIN = ""
"""A request that names no component."""
OPERATIONS: Mapping[tuple[type, str, str], Operation] = {
    # (resource, verb, comp)
    (TableSet, "GET", PLAIN): tables.query,
    (TableSet, "POST", PLAIN): tables.create,
    (TableEntry, "GET", PLAIN): tables.get,
    (TableEntry, "DELETE", PLAIN): tables.delete,
    (EntitySet, "GET", "acl"): tables.get_access_policies,
    (EntitySet, "HEAD", "acl"): tables.get_access_policies,
    (EntitySet, "PUT", "acl"): tables.set_access_policies,
    (EntitySet, "GET", PLAIN): queries.query,
    (EntitySet, "POST", PLAIN): entities.insert,
    (Entity, "GET", PLAIN): entities.get,
    (Entity, "PUT", PLAIN): entities.update,
    (Entity, "MERGE", PLAIN): entities.update,
    (Entity, "PATCH", PLAIN): entities.update,
    (Entity, "DELETE", PLAIN): entities.update,
    (Batch, "POST", PLAIN): batches.run,
    (Service, "GET", "properties"): service.get_properties,
    (Service, "PUT", "properties"): service.set_properties,
    (Service, "GET", "stats"): service.get_statistics,
}

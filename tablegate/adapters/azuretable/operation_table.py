"""The operation table: (resource, verb, comp) -> handler.

wire/addresses.py parses resources. A verb may be tunnelled (call.method_of). A combination that is absent is
answered with 405.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from tablegate.adapters.azuretable import batches, queries, service, tables
from tablegate.adapters.azuretable.call import CallContext, OperationReply, find_table
from tablegate.adapters.azuretable.entities import entities
from tablegate.adapters.azuretable.wire import addresses
from tablegate.adapters.azuretable.wire.errors import KEY_COUNT, ServiceError
from tablegate.gateway.model.authorization.permissions import UNKNOWN_PURPOSE, Channel, Permission, Purpose


class Operation(NamedTuple):
    """One operation of the API. Its handler takes the call and the resource.

    `purpose`: the permissions that a caller needs.
    """

    handler: Callable[..., Awaitable[OperationReply]]
    purpose: Purpose = UNKNOWN_PURPOSE


_P = Permission
_READING = frozenset({"GET", "HEAD"})
_IN_BATCHES = (_P.PUT, _P.UPDATE, _P.DELETE, _P.READ, _P.QUERY, _P.SCAN)
PLAIN = ""
"""A request without `comp`."""
OPERATIONS: Mapping[tuple[type, str, str], Operation] = {
    # (resource, verb, comp)
    (addresses.TableSet, "GET", PLAIN): Operation(tables.query, Purpose((_P.LIST,))),
    (addresses.TableSet, "POST", PLAIN): Operation(tables.create, Purpose((_P.CREATE,))),
    (addresses.TableEntry, "GET", PLAIN): Operation(tables.get, Purpose((_P.DESCRIBE,))),
    (addresses.TableEntry, "DELETE", PLAIN): Operation(tables.delete, Purpose((_P.DROP,))),
    (addresses.EntitySet, "GET", "acl"): Operation(tables.get_access_policies, Purpose((_P.READ_POLICY,))),
    (addresses.EntitySet, "HEAD", "acl"): Operation(tables.get_access_policies, Purpose((_P.READ_POLICY,))),
    (addresses.EntitySet, "PUT", "acl"): Operation(tables.set_access_policies, Purpose((_P.WRITE_POLICY,))),
    (addresses.EntitySet, "GET", PLAIN): Operation(queries.query, Purpose((_P.QUERY, _P.SCAN))),
    (addresses.EntitySet, "POST", PLAIN): Operation(entities.write, Purpose((_P.PUT,))),
    (addresses.Entity, "GET", PLAIN): Operation(entities.get, Purpose((_P.READ,))),
    (addresses.Entity, "PUT", PLAIN): Operation(entities.write, Purpose((_P.PUT,))),
    (addresses.Entity, "MERGE", PLAIN): Operation(entities.write, Purpose((_P.UPDATE,))),
    (addresses.Entity, "PATCH", PLAIN): Operation(entities.write, Purpose((_P.UPDATE,))),
    (addresses.Entity, "DELETE", PLAIN): Operation(entities.write, Purpose((_P.DELETE,))),
    (addresses.Batch, "POST", PLAIN): Operation(batches.run, Purpose(_IN_BATCHES, Channel.TRANSACTION)),
    (addresses.Service, "GET", "properties"): Operation(service.get_properties, Purpose((_P.READ_ACCOUNT,))),
    (addresses.Service, "PUT", "properties"): Operation(service.set_properties, Purpose((_P.WRITE_ACCOUNT,))),
    (addresses.Service, "POST", "userdelegationkey"): Operation(
        service.get_delegation_key, Purpose(_IN_BATCHES)
    ),
    (addresses.Service, "GET", "stats"): Operation(service.get_statistics, Purpose((_P.READ_ACCOUNT,))),
}
# POST can carry an invalid method (X-HTTP-Method), and OPTIONS is the preflight request of a browser.
NAMES = frozenset(
    f"{verb} {resource.__name__}" for resource, own, _ in OPERATIONS for verb in (own, "POST", "OPTIONS")
)
"""The operations as metrics, the log and the control API name them."""


def operation_of(call: CallContext) -> Operation:
    """Return the operation of a call. Raises ServiceError if there is none."""
    resource = call.address.resource
    flavour = call.flavour
    if isinstance(resource, addresses.Nested):
        if flavour.unknown_paths is not None:
            raise ServiceError(*flavour.unknown_paths)
        return _NESTED
    if call.address.secondary and call.method not in _READING and not flavour.secondary_takes_writes:
        raise ServiceError("InsufficientAccountPermissions")
    if (call.options.get("restype") == "service") is not isinstance(resource, addresses.Service):
        raise ServiceError("InvalidQueryParameterValue")
    row = OPERATIONS.get((type(resource), call.method, call.options.get("comp", PLAIN)))
    if row is None:
        raise ServiceError("MethodNotAllowed")
    if call.options.get("comp") and not flavour.has_service_documents:
        raise ServiceError("NotImplemented")
    return row


def purpose_of(resource: addresses.Resource, method: str, comp: str) -> Purpose:
    """Return the purpose of a request. An invalid nested address only needs permission to describe."""
    if isinstance(resource, addresses.Nested):
        return Purpose((_P.DESCRIBE,))
    row = OPERATIONS.get((type(resource), method, comp))
    return Purpose((_P.READ,)) if row is None else row.purpose


async def _refuse_nested(call: CallContext, resource: addresses.Nested) -> OperationReply:
    """Reject a request of a client with an account URL that ends in a table's name: /T/Tables, /T/$batch and similar.

    The service has no such resources, and rejects each with another error. SDKs recognise code and text, and explain
    the problem with the URL to their users. Always raises ServiceError or TableMissing.
    """
    if call.options.get("restype") == "service":
        raise ServiceError("InvalidQueryParameterValue")
    match resource.inner:
        case addresses.Batch():
            raise ServiceError("MediaTypeNotSupported")
        case addresses.TableSet():
            await find_table(call, resource.table)
            raise ServiceError("PropertiesNeedValue" if call.method == "POST" else "InvalidInput")
        case addresses.TableEntry():
            await find_table(call, resource.table)
            raise ServiceError("InvalidInput", KEY_COUNT)


_NESTED = Operation(_refuse_nested)

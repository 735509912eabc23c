"""Operations on the service: its properties, statistics of the secondary, and CORS preflights."""

from __future__ import annotations

from email.utils import formatdate

from tablegate.adapters.azuretable.auth import delegation, shared_access
from tablegate.adapters.azuretable.auth.shared_access import Action
from tablegate.adapters.azuretable.call_context import CallContext, OperationReply
from tablegate.adapters.azuretable.tables import documents
from tablegate.adapters.azuretable.tables.documents import DEFAULT_PROPERTIES, Properties
from tablegate.adapters.azuretable.wire import cors
from tablegate.adapters.azuretable.wire.addresses import Service
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.http import Request
from tablegate.gateway.model.commands.table_commands import GetProperties, PutProperties

_XML = ("Content-Type", "application/xml")


async def get_properties(call: CallContext, resource: Service) -> OperationReply:
    """GET /?restype=service&comp=properties: the account's properties, as XML."""
    call.grant.check(Action.READ_SERVICE)
    properties = await load(call.namespace, call.address.account)
    return OperationReply(200, [_XML], documents.properties_xml(properties))


async def set_properties(call: CallContext, resource: Service) -> OperationReply:
    """PUT /?restype=service&comp=properties: set the account's properties from XML. Raises ServiceError.

    Absent parts keep their value.
    """
    call.grant.check(Action.WRITE_SERVICE)
    changes = documents.read_properties(call.request.body)
    properties = await load(call.namespace, call.address.account)
    name = _store_name(call.address.account)
    await PutProperties(call.namespace, name, {**properties, **changes})
    return OperationReply(202)


async def get_delegation_key(call: CallContext, resource: Service) -> OperationReply:
    """POST /?restype=service&comp=userdelegationkey: a key with which the identity of a token may sign. Raises ServiceError.

    Callers with an account key or a signature are refused.
    """
    identity = call.grant.identity
    if identity is None or not identity.object_id or call.grant.access is not None:
        raise ServiceError("AuthorizationFailure")
    version = call.request.header("x-ms-version")
    if version < delegation.FIRST_VERSION:
        raise ServiceError("InvalidHeaderValue")
    now_s = call.gateway.now_ms() / 1000
    info = documents.read_key_info(call.request.body, now_s)
    account = call.address.account
    key = delegation.issued(
        call.gateway, account, identity, info.start, info.expiry, info.user_tenant, version
    )
    try:
        key.check_times(max(now_s, shared_access.time_of(key.start) or now_s))
    except ServiceError:
        raise ServiceError("InvalidXmlDocument") from None
    value = key.value(call.gateway, account)
    return OperationReply(200, [_XML], delegation.document(key, value))


async def get_statistics(call: CallContext, resource: Service) -> OperationReply:
    """GET /?restype=service&comp=stats: the replication state, on the secondary only. Raises ServiceError.

    The secondary is the same store, so it lacks nothing.
    """
    call.grant.check(Action.READ_SERVICE)
    if not call.address.secondary:
        raise ServiceError("InvalidQueryParameterValue")
    settings = call.gateway.settings
    behind_ms = settings.replica_lag_ms if settings.replica else 0
    synchronised_at = formatdate((call.gateway.now_ms() - behind_ms) // 1000, usegmt=True)
    return OperationReply(200, [_XML], documents.statistics_xml(synchronised_at))


async def load(namespace: str, account: str) -> Properties:
    """Return the properties of an account."""
    stored = await GetProperties(namespace, _store_name(account))
    return DEFAULT_PROPERTIES if stored is None else {**DEFAULT_PROPERTIES, **stored}


def _store_name(account: str) -> str:
    return f"azuretable/{account}"


async def preflight(request: Request, namespace: str, account: str) -> OperationReply:
    """OPTIONS of any path: the answer of the matching CORS rule. Raises ServiceError if no rule matches.

    Never authenticated, since browsers send no credentials with it.
    """
    origin = request.header("origin")
    method = request.header("access-control-request-method")
    if not origin or not method:
        raise ServiceError("MissingRequiredHeader", "A required CORS header is not present.")
    properties = await load(namespace, account)
    headers = cors.preflight(
        properties["Cors"], origin, method, request.header("access-control-request-headers")
    )
    if headers is None:
        raise ServiceError("CorsPreflightFailure")
    return OperationReply(200, headers)

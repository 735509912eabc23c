"""Operations on the service: its properties, statistics of the secondary, and CORS.

The form of CORS rules is in documents.py. Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.utils import formatdate
from typing import Any

from tablegate.adapters.azuretable import auth, shared_access, xml_documents
from tablegate.adapters.azuretable.call import CallContext, OperationReply
from tablegate.adapters.azuretable.shared_access import Action
from tablegate.adapters.azuretable.wire.addresses import Service
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.azuretable.xml_documents import DEFAULT_PROPERTIES, Properties
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.commands.table_commands import GetProperties, PutProperties

Rule = Mapping[str, Any]
Headers = list[tuple[str, str]]


def preflight_headers(rules: Sequence[Rule], origin: str, method: str, headers: str) -> Headers | None:
    """Return the response headers of a preflight request. None if no rule matches."""
    requested = [header.strip().lower() for header in headers.split(",") if header.strip()]
    for rule in rules:
        if _allows(rule, origin, method) and all(
            _is_listed(header, rule["AllowedHeaders"]) for header in requested
        ):
            response_headers = [*_origin_headers(rule, origin), ("Access-Control-Allow-Methods", method)]
            if requested:
                response_headers.append(("Access-Control-Allow-Headers", headers))
            return [*response_headers, ("Access-Control-Max-Age", str(rule["MaxAgeInSeconds"]))]
    return None


def cors_headers(rules: Sequence[Rule], origin: str, method: str) -> Headers:
    """Return the response headers of an actual request from that origin."""
    headers: Headers = []
    for rule in rules:
        if _allows(rule, origin, method):
            headers = _origin_headers(rule, origin)
            if rule["ExposedHeaders"]:
                headers.append(("Access-Control-Expose-Headers", ",".join(rule["ExposedHeaders"])))
            break
    if any(rule["AllowedOrigins"] != ["*"] for rule in rules):
        headers.append(("Vary", "Origin"))
    return headers


def _allows(rule: Rule, origin: str, method: str) -> bool:
    origins = rule["AllowedOrigins"]
    return ("*" in origins or origin in origins) and method in rule["AllowedMethods"]


def is_allowed(rules: Sequence[Rule], origin: str, method: str) -> bool:
    """Return True if one of the rules allows a request of this method to a page of this origin."""
    return any(_allows(rule, origin, method) for rule in rules)


def _is_listed(header: str, entries: Sequence[str]) -> bool:
    for entry in entries:
        lowered = entry.lower()
        if lowered == header or (lowered.endswith("*") and header.startswith(lowered[:-1])):
            return True
    return False


def _origin_headers(rule: Rule, origin: str) -> Headers:
    if rule["AllowedOrigins"] == ["*"]:
        return [("Access-Control-Allow-Origin", "*")]
    return [("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true")]


_XML = ("Content-Type", "application/xml")


async def get_properties(call: CallContext, resource: Service) -> OperationReply:
    """GET /?restype=service&comp=properties: the account's properties, as XML."""
    call.grant.check(Action.READ_SERVICE)
    properties = await load(call.namespace, call.address.account)
    return OperationReply(200, [_XML], xml_documents.properties_xml(properties))


async def set_properties(call: CallContext, resource: Service) -> OperationReply:
    """PUT /?restype=service&comp=properties: set the account's properties from XML. Raises ServiceError.

    Absent parts keep their value.
    """
    call.grant.check(Action.WRITE_SERVICE)
    changes = xml_documents.read_properties(call.request.body)
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
    if version < auth.FIRST_DELEGATION_VERSION:
        raise ServiceError("InvalidHeaderValue")
    now_s = call.gateway.now_ms() / 1000
    info = xml_documents.read_key_info(call.request.body, now_s)
    account = call.address.account
    key = auth.issued_key(call.gateway, account, identity, info.start, info.expiry, info.user_tenant, version)
    try:
        key.check_times(max(now_s, shared_access.time_of(key.start) or now_s))
    except ServiceError:
        raise ServiceError("InvalidXmlDocument") from None
    value = key.value(call.gateway, account)
    return OperationReply(200, [_XML], auth.key_document(key, value))


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
    return OperationReply(200, [_XML], xml_documents.statistics_xml(synchronised_at))


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
    headers = preflight_headers(
        properties["Cors"], origin, method, request.header("access-control-request-headers")
    )
    if headers is None:
        raise ServiceError("CorsPreflightFailure")
    return OperationReply(200, headers)

"""Authentication by Shared Key, Shared Key Lite, shared access signatures and bearer tokens of Microsoft Entra ID.

The result is the grant of the caller, or an error. Signatures cover the path as it was sent. Source: "Authorize with
Shared Key" (Table service); docs/protocols/azure-table.md section 3.

gateway/security/identities.py verifies tokens. An identity gets a user delegation key for signing shared access signatures.
A key is not stored. It is derived from the server's secret key and from all fields that a signature repeats. A signature
allows what both it and the grants to the identity, its groups and its roles allow, at the time of use. Only tokens name
groups and roles. So SignedOid is OBJECT_ID~SEALED, where SEALED has those of the token that got the key, encrypted. It is
OBJECT_ID if the token has none.

Sources: "Get User Delegation Key", "Create a user delegation SAS", the signer of azure-storage-queue 12.16.0. Its order of
fields, followed by the four fields of a table's range, is an inference, because no SDK signs for tables yet.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple
from xml.sax.saxutils import escape

from tablegate.adapters.azuretable import shared_access
from tablegate.adapters.azuretable.shared_access import Grant, Signer
from tablegate.adapters.azuretable.wire import addresses, limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import Authorization, RequestSource
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.identities import BadToken, Identity

FIRST_TOKEN_VERSION = "2017-11-09"  # "Versioning for Azure Storage": requests with an OAuth 2.0 token
FIRST_TOKEN_VERSION_WITH_CHALLENGE = "2019-12-12"  # "Authorize with Microsoft Entra ID", Bearer challenge
# "Authorize with Microsoft Entra ID": a token is valid for one account, or for all accounts in which the caller has a
# role. Where tenants are kept apart only the former are accepted.
EVERY_ACCOUNT = "https://storage.azure.com"
EVERY_COSMOS_ACCOUNT = "https://cosmos.azure.com"
_HOSTS = ("table.core.windows.net", "table.cosmos.azure.com")


def is_for_one_account(gateway: Gateway) -> bool:
    """Return True if the audience of each accepted token names its account, where tenants are kept apart."""
    return "{account}" in (gateway.settings.jwt_audience or "{account}")


def audiences(gateway: Gateway, account: str) -> list[str]:
    """Return the audiences of tokens for an account. Each may end in a slash."""
    if gateway.settings.jwt_audience:
        found = [gateway.settings.jwt_audience.replace("{account}", account).rstrip("/")]
    else:
        found = [f"https://{account}.{host}" for host in _HOSTS]
        if not gateway.credentials.keeps_apart:
            found += [EVERY_ACCOUNT, EVERY_COSMOS_ACCOUNT]
    return [text for audience in found for text in (audience, audience + "/")]


def token_grant(request: Request, token: str, account: str, gateway: Gateway) -> Grant:
    """Return the grant of the identity that a token proves. Raises ServiceError."""
    return Grant(identity=identity_of(request, token, account, gateway))


def identity_of(request: Request, token: str, account: str, gateway: Gateway) -> Identity:
    """Return the identity that a token proves. Raises ServiceError: 401 with the challenge, or 403."""
    if not gateway.identities.may_carry_tokens(request):
        raise ServiceError("AuthenticationFailed", "Authentication scheme Bearer is not supported over HTTP.")
    version = request.header_map.get("x-ms-version", "")
    if version < FIRST_TOKEN_VERSION:
        raise ServiceError(
            "AuthenticationFailed", "Authentication scheme Bearer is not supported in this version."
        )
    try:
        now_s = gateway.real_now_ms() / 1000
        return gateway.identities.verify(token, audiences(gateway, account), now_s)
    except BadToken:
        if version < FIRST_TOKEN_VERSION_WITH_CHALLENGE:
            raise ServiceError("AuthenticationFailed") from None
        raise token_refusal(gateway) from None


def token_refusal(gateway: Gateway, code: str = "InvalidAuthenticationInfo") -> ServiceError:
    """Return a 401 error with the challenge from which SDKs read the tenant and the resource."""
    challenge = (
        f"Bearer authorization_uri=https://login.microsoftonline.com/{gateway.identities.tenant}/oauth2/authorize "
        f"resource_id={EVERY_ACCOUNT}"
    )
    return ServiceError(code, headers=(("WWW-Authenticate", challenge),))


FIRST_DELEGATION_VERSION = "2025-07-05"
_FIRST_VERSION_WITH_USER = "2026-02-06"
_FIRST_VERSION_WITH_TENANT = "2026-04-06"
_SERVICE = "t"
_SEALED = "~"
_MAX_SEALED_CHARACTERS = 4096
_PURPOSE = "user delegation key"


class DelegationKey(NamedTuple):
    """The fields of a key, as the reply and each signature have them: object, tenant, times, service, version.

    `signed_id`: the object id, and the sealed groups and roles. `user_tenant`: the tenant of the only user who may use
    signatures by the key, or "".
    """

    signed_id: str
    tenant: str
    start: str
    expiry: str
    service: str
    version: str
    user_tenant: str = ""

    def value(self, gateway: Gateway, account: str) -> bytes:
        """Return the key for an account. Raises ServiceError NotImplemented if the server has no secret key."""
        try:
            return gateway.identities.derived_key(_PURPOSE, account, *self)
        except BadSetting:
            raise _no_secret_key() from None

    def identity(self, gateway: Gateway, account: str) -> Identity:
        """Return the identity with its groups and roles, after the signature was verified. Raises ServiceError."""
        object_id, mark, sealed = self.signed_id.rpartition(_SEALED)
        if not mark:
            return Identity(self.signed_id, tenant=self.tenant)
        found = gateway.identities.opened_principals(sealed, Identity(object_id, tenant=self.tenant), account)
        if found is None:
            raise ServiceError("AuthenticationFailed")
        return found

    def check_times(self, now_s: float) -> None:
        """Check that the key is in force and lasts at most seven days. Raises ServiceError AuthenticationFailed."""
        start, expiry = shared_access.time_of(self.start), shared_access.time_of(self.expiry)
        if start is None or expiry is None or expiry - start > limits.DELEGATION_KEY_MAX_SECONDS:
            raise ServiceError("AuthenticationFailed")
        if not start - limits.CLOCK_SKEW_MAX_SECONDS <= now_s < expiry:
            raise ServiceError("AuthenticationFailed")


def key_document(key: DelegationKey, value: bytes) -> bytes:
    """Return the UserDelegationKey document."""
    members = [
        ("SignedOid", key.signed_id),
        ("SignedTid", key.tenant),
        ("SignedStart", key.start),
        ("SignedExpiry", key.expiry),
        ("SignedService", key.service),
        ("SignedVersion", key.version),
        *([("SignedDelegatedUserTid", key.user_tenant)] if key.user_tenant else []),
        ("Value", base64.b64encode(value).decode()),
    ]
    inner = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in members)
    return f'<?xml version="1.0" encoding="utf-8"?><UserDelegationKey>{inner}</UserDelegationKey>'.encode()


def issued_key(
    gateway: Gateway,
    account: str,
    identity: Identity,
    start: str,
    expiry: str,
    user_tenant: str,
    version: str,
) -> DelegationKey:
    """Return the key of an identity for an account and these times. Raises ServiceError."""
    signed_id = identity.object_id
    if identity.groups or identity.roles or _SEALED in signed_id:
        try:
            sealed = gateway.identities.sealed_principals(identity, account)
        except BadSetting:
            raise _no_secret_key() from None
        if len(sealed) > _MAX_SEALED_CHARACTERS:
            raise ServiceError("InvalidInput", "The groups and roles of the token are too many for a key.")
        signed_id += _SEALED + sealed
    return DelegationKey(signed_id, identity.tenant, start, expiry, _SERVICE, version, user_tenant)


def _no_secret_key() -> ServiceError:
    return ServiceError("NotImplemented", "User delegation keys need the setting secret_key.")


def delegated_grant(request: Request, options: Mapping[str, str], account: str, gateway: Gateway) -> Grant:
    """Return the grant of a signature that a user delegation key has made. Raises ServiceError."""
    version = options.get("sv", "")
    names = ("skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid")
    key = DelegationKey(*(options.get(name, "") for name in names))
    user = options.get("sduoid", "")
    is_valid = shared_access.is_version(version) and version >= FIRST_DELEGATION_VERSION
    is_valid &= key.service == _SERVICE and bool(key.signed_id) and key.version >= FIRST_DELEGATION_VERSION
    is_valid &= "tn" in options and "si" not in options and bool(options.get("sp"))
    is_valid &= not user or version >= _FIRST_VERSION_WITH_USER
    is_valid &= not key.user_tenant or (bool(user) and version >= _FIRST_VERSION_WITH_TENANT)
    if not is_valid:
        raise ServiceError("AuthenticationFailed")
    shared_access.check_circumstances(options, request.client, request.secure)
    now_s = gateway.now_ms() / 1000
    key.check_times(now_s)
    signer = Signer(account, (key.value(gateway, account),))
    text = delegated_string_to_sign(options, key, account)
    if not signer.has_signed(options["sig"], text):
        raise ServiceError("AuthenticationFailed")
    access = shared_access.access_of(options)
    access.check_times(now_s)
    _check_user(request, user, key, account, gateway)
    return Grant(access, key.identity(gateway, account))


def delegated_string_to_sign(options: Mapping[str, str], key: DelegationKey, account: str) -> str:
    """Return the text that the key signs."""
    get = options.get
    lines = [
        *(get(name, "") for name in ("sp", "st", "se")),
        f"/table/{account}/{options['tn'].lower()}",
        *key,
        *(get(name, "") for name in ("sduoid", "sip", "spr", "sv", "spk", "srk", "epk", "erk")),
    ]
    return "\n".join(lines)


def _check_user(request: Request, user: str, key: DelegationKey, account: str, gateway: Gateway) -> None:
    """Check the token of the only user who may use a signature. Raises ServiceError."""
    authorization = request.header_map.get("authorization", "")
    if not user:
        if authorization:
            raise ServiceError("AuthenticationFailed")
        return
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise token_refusal(gateway, "NoAuthenticationInformation")
    identity = identity_of(request, token.strip(), account, gateway)
    if (identity.object_id, identity.tenant) != (user, key.user_tenant or key.tenant):
        raise ServiceError("AuthenticationFailed")


_SHARED_KEY = re.compile(r"(SharedKey|SharedKeyLite) ([^:]+):([A-Za-z0-9+/=]+)")
_FULL = Grant()


@dataclass(frozen=True, slots=True)
class Account:
    """An account with its decoded keys, all of them valid. `namespace` is that of its tables."""

    name: str
    keys: tuple[bytes, ...]
    namespace: str


def account_of(gateway: Gateway, name: str) -> Account:
    """Return the account with a name. Raises ServiceError."""
    credential = gateway.credentials.find(Scheme.AZURE, name)
    if credential is None:
        raise ServiceError("AuthenticationFailed")
    return _account_of(credential, gateway.credentials.namespace(Scheme.AZURE, name))


@lru_cache(maxsize=1024)
def _account_of(credential: Credential, namespace: str) -> Account:
    return Account(credential.access_id, tuple(map(_key_of, credential.secrets)), namespace)


def _key_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret, validate=True)
    except (binascii.Error, ValueError):
        return secret.encode()  # SDKs that do not decode the key allow any text


def verify(request: Request, options: Mapping[str, str], account: Account, gateway: Gateway) -> Grant:
    """Return the grant of a request's caller. Raises ServiceError: 401 or 403 with the code of the failure.

    `options`: the decoded query. `gateway`: the source of the time and of trusted issuers. A grant whose `access` has a
    `policy_id` still needs that policy (`SharedAccess.with_policy`).
    """
    authorization = request.header_map.get("authorization", "")
    if "skoid" in options and "sig" in options:
        grant = delegated_grant(request, options, account.name, gateway)
    elif authorization:
        scheme = authorization.partition(" ")[0]
        if scheme.lower() == "bearer":
            return token_grant(request, authorization[7:].strip(), account.name, gateway)
        _check_shared_key(request, options, authorization, account, gateway.real_now_ms() / 1000)
        grant = _FULL
    elif "sig" in options:
        signer = Signer(account.name, account.keys)
        access = shared_access.read(options, signer, request.client, request.secure)
        if access.policy_id is None:
            access.check_times(gateway.now_ms() / 1000)
        grant = Grant(access)
    else:
        raise token_refusal(gateway, "NoAuthenticationInformation")
    return grant


def authorize(request: Request, account: Account, grant: Grant, gateway: Gateway) -> Authorization | None:
    """Set the authorization of a request, and return it. None if the caller is unrestricted.

    The grants of the account's key decide. They also limit the signatures made with the key. For a token, the grants of its
    identity decide.
    """
    credentials = gateway.credentials
    credential = credentials.find(Scheme.AZURE, account.name)
    assert credential is not None  # otherwise the signature check had failed
    caller, policy = credential.identity, credential.policy
    if grant.identity is not None:
        is_for_account = is_for_one_account(gateway)
        caller = grant.identity.caller_in()
        policy = credentials.policy_of_identity(grant.identity, account.namespace, is_for_account)
    source = RequestSource(request.client, request.secure)
    request.authorization = credentials.authorization(caller, policy, source, gateway.real_now_ms())
    return request.authorization


def _check_shared_key(
    request: Request, options: Mapping[str, str], authorization: str, account: Account, now: float
) -> None:
    match = _SHARED_KEY.fullmatch(authorization)
    date = request.header_map.get("x-ms-date", "") or request.header_map.get("date", "")
    if match is None or match.group(2) != account.name:
        raise ServiceError("AuthenticationFailed")
    sent_at = _seconds_of(date)
    if sent_at is None or abs(now - sent_at) > limits.CLOCK_SKEW_MAX_SECONDS:
        raise ServiceError("AuthenticationFailed")
    text = string_to_sign(request, options, account.name, lite=match.group(1) == "SharedKeyLite")
    if not Signer(account.name, account.keys).has_signed(match.group(3), text):
        raise ServiceError("AuthenticationFailed")


def string_to_sign(request: Request, options: Mapping[str, str], account: str, lite: bool = False) -> str:
    """Return the text of a request that the account's key signs, for Shared Key or (`lite`) Shared Key Lite."""
    headers = request.header_map
    date = headers.get("x-ms-date", "") or headers.get("date", "")
    resource = f"/{account}{addresses.signed_path(request.path)}"
    if "comp" in options:
        resource += f"?comp={options['comp']}"
    if lite:
        return f"{date}\n{resource}"
    content_md5, content_type = headers.get("content-md5", ""), headers.get("content-type", "")
    return f"{request.method}\n{content_md5}\n{content_type}\n{date}\n{resource}"


def authorization(request: Request, options: Mapping[str, str], account: str, secret: str) -> str:
    """Return the Authorization header by Shared Key for a request that has x-ms-date. `secret`: the key in base64."""
    text = string_to_sign(request, options, account).encode("utf-8", "surrogatepass")
    return f"SharedKey {account}:{base64.b64encode(hmac.digest(_key_of(secret), text, 'sha256')).decode()}"


@lru_cache(maxsize=256)
def _seconds_of(date: str) -> float | None:
    """Return the seconds since 1970 of an RFC 1123 date, or None."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None

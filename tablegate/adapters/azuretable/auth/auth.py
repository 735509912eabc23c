"""Authentication by Shared Key, Shared Key Lite, shared access signatures and bearer tokens.

The result is the grant of the caller, or an error. Signatures cover the path as it was sent. Source: "Authorize with
Shared Key" (Table service); docs/protocols/azure-table.md section 3.
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

from tablegate.adapters.azuretable.auth import entra_id, shared_access
from tablegate.adapters.azuretable.auth.shared_access import Grant, Signer
from tablegate.adapters.azuretable.wire import addresses, limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import Authorization, RequestSource
from tablegate.gateway.security.credentials import Credential, Scheme

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
        grant = entra_id.delegated_grant(request, options, account.name, gateway)
    elif authorization:
        scheme = authorization.partition(" ")[0]
        if scheme.lower() == "bearer":
            return entra_id.token_grant(request, authorization[7:].strip(), account.name, gateway)
        _check_shared_key(request, options, authorization, account, gateway.real_now_ms() / 1000)
        grant = _FULL
    elif "sig" in options:
        signer = Signer(account.name, account.keys)
        access = shared_access.read(options, signer, request.client, request.secure)
        if access.policy_id is None:
            access.check_times(gateway.now_ms() / 1000)
        grant = Grant(access)
    else:
        raise entra_id.refusal(gateway, "NoAuthenticationInformation")
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
        is_for_account = entra_id.is_for_one_account(gateway)
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

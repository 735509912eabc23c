"""Bearer tokens (OAuth 2.0, Microsoft Entra ID): the audiences of an account, and the challenge of a refusal.

gateway/security/identities.py verifies tokens.
"""

from __future__ import annotations

from tablegate.adapters.azuretable.auth.shared_access import Grant
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.http import Request
from tablegate.gateway.security.identities import BadToken, Identity

FIRST_VERSION = "2017-11-09"  # "Versioning for Azure Storage": requests with an OAuth 2.0 token
FIRST_VERSION_WITH_CHALLENGE = "2019-12-12"  # "Authorize with Microsoft Entra ID", Bearer challenge
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


def grant_of(request: Request, token: str, account: str, gateway: Gateway) -> Grant:
    """Return the grant of the identity that a token proves. Raises ServiceError."""
    return Grant(identity=identity_of(request, token, account, gateway))


def identity_of(request: Request, token: str, account: str, gateway: Gateway) -> Identity:
    """Return the identity that a token proves. Raises ServiceError: 401 with the challenge, or 403."""
    if not gateway.identities.may_carry_tokens(request):
        raise ServiceError("AuthenticationFailed", "Authentication scheme Bearer is not supported over HTTP.")
    version = request.header_map.get("x-ms-version", "")
    if version < FIRST_VERSION:
        raise ServiceError(
            "AuthenticationFailed", "Authentication scheme Bearer is not supported in this version."
        )
    try:
        now_s = gateway.real_now_ms() / 1000
        return gateway.identities.verify(token, audiences(gateway, account), now_s)
    except BadToken:
        if version < FIRST_VERSION_WITH_CHALLENGE:
            raise ServiceError("AuthenticationFailed") from None
        raise refusal(gateway) from None


def refusal(gateway: Gateway, code: str = "InvalidAuthenticationInfo") -> ServiceError:
    """Return a 401 error with the challenge from which SDKs read the tenant and the resource."""
    challenge = (
        f"Bearer authorization_uri=https://login.microsoftonline.com/{gateway.identities.tenant}/oauth2/authorize "
        f"resource_id={EVERY_ACCOUNT}"
    )
    return ServiceError(code, headers=(("WWW-Authenticate", challenge),))

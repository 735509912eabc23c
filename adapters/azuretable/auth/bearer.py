"""Bearer tokens (OAuth 2.0, Microsoft Entra ID): is a JWT signed by a configured issuer, for this service, and in force?

Keys come from a JWKS document given by the settings; nothing is fetched. There is no directory here that would know who has which
role: the token itself says it, in `roles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tablegate.adapters.azuretable.wire.errors import ServiceError

if TYPE_CHECKING:
    import jwt

FIRST_VERSION = "2017-11-09"  # "Versioning for Azure Storage": requests with an OAuth 2.0 token
FIRST_VERSION_WITH_CHALLENGE = "2019-12-12"  # "Authorize with Microsoft Entra ID", Bearer challenge
# "Authorize with Microsoft Entra ID": a token is for all storage accounts that its bearer has a role in, or for one account.
# Roles are not known here, so that only the latter keeps tenants apart.
EVERY_ACCOUNT = "https://storage.azure.com"
ONE_ACCOUNT = "https://{account}.table.core.windows.net"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_LEEWAY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Issuer:
    """A trusted issuer of tokens: its signing keys, its `iss` (None: any), the required `aud`, in which {account} stands for the
    account of the request."""

    keys: Sequence[jwt.PyJWK]
    name: str | None
    audience: str

    @classmethod
    def of_jwks(cls, document: dict[str, Any], name: str | None, audience: str) -> Issuer:
        """An issuer by its JWKS document. Raises jwt.PyJWTError if it holds no usable key."""
        # Loaded here, with the cryptography behind it: few servers take tokens (docs/architecture.md section 11).
        import jwt

        key_set = jwt.PyJWKSet.from_dict(document)
        return cls(tuple(key_set.keys), name, audience)

    @property
    def tenant(self) -> str:
        """The first part of the path of Entra ID's issuers: https://sts.windows.net/TENANT/."""
        return urlsplit(self.name or "").path.strip("/").partition("/")[0] or "common"

    def check(self, token: str, now: float, account: str) -> tuple[str, ...]:
        """The roles that a token says its bearer has. Raises ServiceError InvalidAuthenticationInfo unless it is good
        for an account at `now` (seconds since 1970)."""
        import jwt

        try:
            claims = self._claims(token, self.audience.replace("{account}", account).rstrip("/"))
            in_force = now < float(claims["exp"]) + _LEEWAY_SECONDS
            in_force &= now > float(claims.get("nbf", 0)) - _LEEWAY_SECONDS
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            raise refusal(self) from None
        if not in_force:
            raise refusal(self)
        roles = claims.get("roles")
        return tuple(role for role in roles if isinstance(role, str)) if isinstance(roles, list) else ()

    def _claims(self, token: str, audience: str) -> dict[str, Any]:
        """The claims of a token that one of the keys has signed. Raises jwt.PyJWTError, ValueError."""
        import jwt

        key_id = jwt.get_unverified_header(token).get("kid")
        for key in self.keys:
            # `kid` is optional (RFC 7515, 4.1.4): without it each key is tried.
            if key_id is not None and key.key_id != key_id:
                continue
            try:
                return jwt.decode(
                    token,
                    key.key,
                    algorithms=[name for name in _ALGORITHMS if name[:2] == _family(key)],
                    audience=(audience, audience + "/"),
                    issuer=self.name,
                    options={
                        "require": ["exp", "aud"],
                        "verify_exp": False,
                        "verify_nbf": False,
                        "verify_iat": False,
                    },
                )
            except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError):
                continue
        raise jwt.InvalidKeyError(key_id)


def _family(key: jwt.PyJWK) -> str:
    """First letters of the algorithms that a key may be used with: never a symmetric one."""
    name = key.algorithm_name or ""
    return name[:2] if name[:2] in ("RS", "PS", "ES") else "--"


def refusal(issuer: Issuer | None, code: str = "InvalidAuthenticationInfo") -> ServiceError:
    """401 with the challenge by which SDKs find the tenant and the resource."""
    tenant = issuer.tenant if issuer is not None else "common"
    challenge = (
        f"Bearer authorization_uri=https://login.microsoftonline.com/{tenant}/oauth2/authorize "
        f"resource_id={EVERY_ACCOUNT}"
    )
    return ServiceError(code, headers=(("WWW-Authenticate", challenge),))

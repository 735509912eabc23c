"""Bearer tokens (OAuth 2.0, Microsoft Entra ID): validation of a JWT against a configured issuer.

Keys come from a JWKS document in the settings, and nothing is fetched. There is no directory of role assignments: the
token itself lists the roles, in `roles`.
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
# "Authorize with Microsoft Entra ID": a token is valid for one account, or for all accounts in which the caller has a
# role. Role assignments are unknown here, so only the former separates tenants.
EVERY_ACCOUNT = "https://storage.azure.com"
ONE_ACCOUNT = "https://{account}.table.core.windows.net"
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_LEEWAY_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Issuer:
    """A trusted issuer of tokens: its signing keys, its `iss` (None for any), and the required `aud`.

    In the latter, {account} stands for the account of the request.
    """

    keys: Sequence[jwt.PyJWK]
    name: str | None
    audience: str

    @classmethod
    def of_jwks(cls, document: dict[str, Any], name: str | None, audience: str) -> Issuer:
        """Create an issuer from its JWKS document. Raises jwt.PyJWTError if it holds no usable key."""
        # Imported here with its cryptography, since few servers accept tokens (docs/architecture.md section 11).
        import jwt

        key_set = jwt.PyJWKSet.from_dict(document)
        return cls(tuple(key_set.keys), name, audience)

    @property
    def tenant(self) -> str:
        """The first part of the path of Entra ID's issuers: https://sts.windows.net/TENANT/."""
        return urlsplit(self.name or "").path.strip("/").partition("/")[0] or "common"

    def check(self, token: str, now: float, account: str) -> tuple[str, ...]:
        """Return the roles in a token. Raises ServiceError InvalidAuthenticationInfo if the token is invalid.

        It must be valid for the account at `now` (seconds since 1970).
        """
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
        """Return the claims of a token signed by one of the keys. Raises jwt.PyJWTError, ValueError."""
        import jwt

        key_id = jwt.get_unverified_header(token).get("kid")
        for key in self.keys:
            # `kid` is optional (RFC 7515, 4.1.4). Without it, each key is tried.
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
    """Return the first letters of the algorithms that a key may be used with. Symmetric algorithms are excluded."""
    name = key.algorithm_name or ""
    return name[:2] if name[:2] in ("RS", "PS", "ES") else "--"


def refusal(issuer: Issuer | None, code: str = "InvalidAuthenticationInfo") -> ServiceError:
    """Return a 401 error with the challenge from which SDKs read the tenant and the resource."""
    tenant = issuer.tenant if issuer is not None else "common"
    challenge = (
        f"Bearer authorization_uri=https://login.microsoftonline.com/{tenant}/oauth2/authorize "
        f"resource_id={EVERY_ACCOUNT}"
    )
    return ServiceError(code, headers=(("WWW-Authenticate", challenge),))

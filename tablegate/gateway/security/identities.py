"""Identities of people and programs that a trusted issuer names in signed tokens (OpenID Connect, Microsoft Entra ID).

Issuers are those of the setting `oidc_issuer`, and the keys in `jwt_keys_file`. A token proves an identity. What the identity
may do is decided by grants to entra/OBJECT_ID, to group/GROUP and to role/NAME (grant_store.py).

Objects, groups and roles of the issuer NAME=URL are written NAME/ID, so that no issuer can name those of another one.

Where tenants are kept apart, a grant names the account in which it counts: entra/ID@azure/ACCOUNT, group/ID@aws/*. Ids contain
no slash, so this form is unambiguous.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tablegate.gateway.configuration.checks import is_loopback_address
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.authorizations import CallerIdentity
from tablegate.gateway.model.authorization.quotas import PRINCIPALS_OF_TOKENS
from tablegate.gateway.security.secret_cipher import SecretCipher, WrongKey, find_key
from tablegate.gateway.security.signatures import family_of, keys_of

if TYPE_CHECKING:
    import jwt

    from tablegate.gateway.security.issuer_keys import IssuerKeys

ENTRA_SCHEME = "entra"
ENTRA, GROUP = PRINCIPALS_OF_TOKENS
"""The beginning of identities and groups in grants."""
ROLE = "role/"
"""The beginning of roles in grants."""
_IN_ACCOUNT = re.compile(r"(.+)@(aws|azure|tablestore)/([^/]+)", re.DOTALL)
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
_LEEWAY_SECONDS = 300
_MAX_TOKEN_CHARACTERS = 16 << 10
_MAX_GROUPS = 1000
_NO_ACCOUNT = "000000000000"
_USER_SCOPE = "user_impersonation"


class BadToken(Exception):
    """A token that proves no identity. The text gives the reason, for the log."""


class Identity(NamedTuple):
    """A caller that a token names: ids as grants have them, and the tenant and application of the token."""

    object_id: str
    groups: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    tenant: str = ""
    application: str = ""

    @property
    def grantee(self) -> str:
        """The name of the identity in grants."""
        return ENTRA + self.object_id

    def caller_in(self, account: str = _NO_ACCOUNT) -> CallerIdentity:
        """Return the identity in policies, as a user of an account of AWS."""
        return caller_of(self.grantee, account)._replace(principals=self.principals)

    @property
    def grantees(self) -> tuple[str, ...]:
        """The identity and its groups in grants."""
        return self.grantee, *(GROUP + group for group in self.groups)

    @property
    def principals(self) -> tuple[str, ...]:
        """The identity, its groups and its roles in grants. All that is derived from a token carries them."""
        return *self.grantees, *(ROLE + role for role in self.roles)


@dataclass(frozen=True, slots=True)
class _Issuer:
    """A trusted issuer. `url` is the required `iss`, None for any. `prefix` precedes its ids in grants."""

    url: str | None
    prefix: str
    fixed_keys: Sequence[jwt.PyJWK] = ()
    fetched: IssuerKeys | None = None

    def candidates(self, key_id: str | None) -> list[jwt.PyJWK]:
        """Return the keys that may have signed a token. `kid` is optional (RFC 7515, 4.1.4): without it, all keys."""
        keys = self.fixed_keys if self.fetched is None else self.fetched.current()
        found = [key for key in keys if family_of(key) and key_id in (None, key.key_id)]
        if not found and self.fetched is not None:
            self.fetched.want_newer()
        return found

    def written(self, identifier: str) -> str:
        """Return an id as grants have it."""
        return self.prefix + identifier.replace("%", "%25").replace("/", "%2F")


def caller_of(grantee: str, account: str = _NO_ACCOUNT) -> CallerIdentity:
    """Return the caller of entra/OBJECT_ID in policies: a user of an account of AWS."""
    object_id = grantee.removeprefix(ENTRA)
    return CallerIdentity(ENTRA_SCHEME, object_id, account, f"arn:aws:iam::{account}:user/{grantee}")


def in_account(grantee: str, account: str) -> str:
    """Return the grantee of grants that count in one account only. `account`: SCHEME/PLACE, or SCHEME/* for all."""
    return f"{grantee}@{account}"


def split_account(grantee: str) -> tuple[str, str, str]:
    """Return (grantee, scheme, place) of a grantee in one account. Scheme and place are "" if it names no account."""
    match = _IN_ACCOUNT.fullmatch(grantee)
    return (match[1], match[2], match[3]) if match else (grantee, "", "")


class Identities:
    """The trusted issuers of one server."""

    def __init__(self, settings: Settings) -> None:
        """Begin to fetch keys. Raises BadSetting."""
        self._settings = settings
        self._secret: bytes | None = None
        self._cipher: SecretCipher | None = None
        self._issuers: list[_Issuer] = []
        if settings.jwt_keys_file is not None:
            keys = keys_of(json.loads(settings.jwt_keys_file.read_text()))
            self._issuers.append(_Issuer(settings.jwt_issuer or None, "", keys))
        if settings.oidc_issuer:
            self._issuers += _fetched_issuers(settings.oidc_issuer)

    @property
    def own_issuer(self) -> IssuerKeys | None:
        """The fetched issuer without a name, or None."""
        return next((each.fetched for each in self._issuers if each.fetched and not each.prefix), None)

    def derived_key(self, purpose: str, *fields: str) -> bytes:
        """Return a key that only servers with this secret key can derive from these fields. Raises BadSetting without one."""
        if self._secret is None:
            self._secret = hashlib.sha256(
                b"tablegate identities\0" + find_key(self._settings).encode()
            ).digest()
        return hmac.digest(self._secret, json.dumps([purpose, *fields]).encode(), "sha256")

    @property
    def cipher(self) -> SecretCipher:
        """The cipher of what clients keep for the server: session tokens, and groups and roles. Raises BadSetting."""
        if self._cipher is None:
            self._cipher = SecretCipher(self.derived_key("session tokens").hex())
        return self._cipher

    def sealed_principals(self, identity: Identity, *fields: str) -> str:
        """Return the groups and roles of an identity, which only `opened_principals` with its ids and these fields can read.

        Raises BadSetting without a secret key.
        """
        plain = json.dumps([identity.groups, identity.roles]).encode()
        sealed = self.cipher.encrypt(plain, _seal_owner(identity, fields))
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def opened_principals(self, sealed: str, identity: Identity, *fields: str) -> Identity | None:
        """Return an identity with its sealed groups and roles. None if they were sealed for another one."""
        try:
            data = base64.b64decode(sealed + "=" * (-len(sealed) % 4), b"-_", validate=True)
            groups, roles = json.loads(self.cipher.decrypt(data, _seal_owner(identity, fields)))
        except (WrongKey, ValueError):
            return None
        return identity._replace(groups=tuple(groups), roles=tuple(roles))

    def may_carry_tokens(self, request: Request) -> bool:
        """Return True if a request came over TLS, or with auth `dev` from this machine."""
        return request.secure or (self._settings.auth == "dev" and is_loopback_address(request.client))

    @property
    def tenant(self) -> str:
        """The first part of the path of Entra ID's issuers: https://sts.windows.net/TENANT/."""
        url = next((issuer.url for issuer in self._issuers if issuer.url), "")
        return urlsplit(url or "").path.strip("/").partition("/")[0] or "common"

    def verify(
        self,
        token: str,
        audiences: Sequence[str],
        now_s: float,
        scope: str = _USER_SCOPE,
        nonce: str | None = None,
    ) -> Identity:
        """Return the identity that a token for one of these audiences proves now. Raises BadToken.

        `scope`: required in `scp`, if the token has that claim. "" for none. `nonce`: required in `nonce`. None for none.
        """
        if not self._issuers:
            raise BadToken("no issuer is trusted")
        import jwt

        if len(token) > _MAX_TOKEN_CHARACTERS:
            raise BadToken("the token is too long")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            claimed = jwt.decode(token, options={"verify_signature": False}).get("iss")
            for issuer in self._issuers:
                if issuer.url not in (None, claimed):
                    continue
                for key in issuer.candidates(key_id):
                    claims = _claims(token, key, audiences)
                    if claims is not None:
                        _check_times(claims, now_s)
                        _check_scope(claims, scope)
                        if nonce not in (None, claims.get("nonce")):
                            raise BadToken("the token is of another sign-in")
                        return _identity(issuer, claims)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError) as error:
            raise BadToken(str(error)) from None
        raise BadToken("no trusted issuer has signed the token")


def _seal_owner(identity: Identity, fields: Sequence[str]) -> str:
    return json.dumps(["principals", identity.object_id, identity.tenant, *fields])


def _fetched_issuers(entries: Sequence[str]) -> list[_Issuer]:
    """Return the issuers of the entries [NAME=]URL, after the first attempt to fetch their keys. Raises BadSetting."""
    # Imported here, since few servers have issuers and the module imports the HTTP client.
    from tablegate.gateway.security.issuer_keys import BadIssuer, IssuerKeys, check_url

    urls: dict[str, str] = {}
    for entry in entries:
        match = re.fullmatch(r"(?:([A-Za-z0-9]+)=)?(.*)", entry)
        assert match is not None
        name, url = match[1] or "", match[2]
        if name in urls or url in urls.values():
            raise BadSetting(
                f"{{}}: {entry!r} repeats a NAME or URL. Give each issuer as NAME=URL", "oidc_issuer"
            )
        try:
            check_url(url)
        except BadIssuer as error:
            raise BadSetting(f"{{}}: {error}", "oidc_issuer") from None
        urls[name] = url
    issuers = {name: IssuerKeys(url) for name, url in urls.items()}
    for keys in issuers.values():
        keys.wait_for_first()
    return [_Issuer(keys.url, f"{name}/" if name else "", fetched=keys) for name, keys in issuers.items()]


def _claims(token: str, key: jwt.PyJWK, audiences: Sequence[str]) -> dict[str, Any] | None:
    """Return the claims of a token that a key signed, None if another key signed it. Raises jwt.PyJWTError."""
    import jwt

    try:
        return jwt.decode(
            token,
            key.key,
            algorithms=[name for name in _ALGORITHMS if name[:2] == family_of(key)],
            audience=audiences,
            options={
                "require": ["exp", "aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError):
        return None


def _check_times(claims: dict[str, Any], now_s: float) -> None:
    # In this form NaN, which is no time, is refused.
    if not now_s < float(claims["exp"]) + _LEEWAY_SECONDS:
        raise BadToken("the token has expired")
    if not now_s > float(claims.get("nbf", 0)) - _LEEWAY_SECONDS:
        raise BadToken("the token is not valid yet")


def _check_scope(claims: dict[str, Any], scope: str) -> None:
    scopes = claims.get("scp")
    if scope and scopes is not None and scope not in str(scopes).split():
        raise BadToken(f"the scopes of the token lack {scope}")


def _identity(issuer: _Issuer, claims: dict[str, Any]) -> Identity:
    """Return the identity in verified claims. Raises BadToken if the token leaves out groups, because one may be denied.

    Entra ID writes `_claim_names` or `hasgroups` in place of more than 200 groups ("Groups overage claim").
    """
    elsewhere = claims.get("_claim_names")
    if claims.get("hasgroups") or (isinstance(elsewhere, dict) and "groups" in elsewhere):
        raise BadToken("the token leaves out the groups of its subject, because they are too many")
    object_id = claims.get("oid") or claims.get("sub") or ""
    return Identity(
        issuer.written(str(object_id)) if object_id else "",
        tuple(issuer.written(group) for group in _texts(claims.get("groups"))),
        tuple(issuer.written(role) for role in _texts(claims.get("roles"))),
        str(claims.get("tid") or ""),
        str(claims.get("appid") or claims.get("azp") or ""),
    )


def _texts(claim: Any) -> list[str]:
    texts = [text for text in claim if isinstance(text, str)] if isinstance(claim, list) else []
    if len(texts) > _MAX_GROUPS:
        raise BadToken(f"the token has more than {_MAX_GROUPS} groups or roles")
    return texts

"""Temporary credentials of identities and of stored AWS keys: an access id, a secret and a session token that expire.

Nothing is stored. The session token contains the owner, encrypted under the server's secret key for its access id. The secret
is derived from the access id under the same key. So all processes of a server accept a session, and another secret key ends
all sessions. The rights are the grants to the owner at the time of use. Where tenants are kept apart, the session of an
identity also contains the account of AWS for which it was issued.

The secret of a stored key's session is derived from the secrets of the key, too. So the session ends with the key.
"""

from __future__ import annotations

import base64
import secrets
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.model.authorization.grants import NOTHING, Policy
from tablegate.gateway.security.credentials import NO_ACCOUNT, Credential, Credentials, Scheme
from tablegate.gateway.security.identities import Identities, Identity
from tablegate.gateway.security.secret_cipher import WrongKey

PREFIX = "ASIA"
"""The beginning of temporary access ids ("IAM identifiers", IAM guide)."""
MAX_TOKEN_CHARACTERS = 4096


class Session(NamedTuple):
    """Temporary credentials. `expires_s`: seconds since 1970."""

    access_id: str
    secret: str
    token: str
    expires_s: int


class Sessions:
    """The issuer of temporary credentials of one server for one purpose, and their verification.

    A token of one purpose is not valid for another one. So a session token of AWS, which clients send in each request, is no
    cookie of the console.
    """

    def __init__(self, identities: Identities, credentials: Credentials, purpose: str = "session") -> None:
        self._identities = identities
        self._credentials = credentials
        self._purpose = purpose

    def issue(
        self, owner: Identity | Credential, seconds: int, now_s: float, account: str = ""
    ) -> Session | None:
        """Return new credentials of an identity or a stored key. None if groups and roles are too many. Raises BadSetting.

        `account`: the account of AWS of an identity's session. It counts where tenants are kept apart.
        """
        access_id = PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()
        expires_s = int(now_s) + seconds
        name: str | list[Any] = owner.access_id if isinstance(owner, Credential) else list(owner)
        secrets_of_key = owner.secrets if isinstance(owner, Credential) else ()
        plain = orjson.dumps([expires_s, name, account] if account else [expires_s, name])
        token = base64.b64encode(self._identities.cipher.encrypt(plain, self._context(access_id))).decode()
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        return Session(access_id, self._secret(access_id, secrets_of_key), token, expires_s)

    def find(
        self, scheme: Scheme, access_id: str, token: str, now_s: float, instance: str = ""
    ) -> Credential | None:
        """Return the credential of a session in force, with the access id and the rights of its owner. None if there is none.

        Sessions of identities are valid in all schemes with access keys, those of a stored key in its own. `instance`: that
        of Table Store which the request names.
        """
        if not access_id.startswith(PREFIX) or not 0 < len(token) <= MAX_TOKEN_CHARACTERS:
            return None
        try:
            data = base64.b64decode(token, validate=True)
            expires_s, owner, *account = orjson.loads(
                self._identities.cipher.decrypt(data, self._context(access_id))
            )
        except (WrongKey, ValueError):
            return None
        if now_s >= expires_s:
            return None
        if isinstance(owner, str):
            return self._of_key(owner, access_id, token) if scheme is Scheme.AWS else None
        object_id, groups, roles, *rest = owner
        identity = Identity(object_id, tuple(groups), tuple(roles), *rest)
        place = instance if scheme is Scheme.TABLESTORE else "".join(account)
        return self._of_identity(scheme, place, identity, access_id, token)

    def _of_key(self, owner: str, access_id: str, token: str) -> Credential | None:
        key = self._credentials.find(Scheme.AWS, owner)
        if key is None and self._credentials.is_dev:
            key = Credential(Scheme.AWS, owner, ())
        if key is None:
            return None
        return replace(key, secrets=(self._secret(access_id, key.secrets),), session_token=token)

    def _of_identity(
        self, scheme: Scheme, place: str, identity: Identity, access_id: str, token: str
    ) -> Credential:
        """Return the credential of an identity in an account or instance, which counts where tenants are kept apart."""
        place = place if self._credentials.keeps_apart else ""
        secrets_of_session, policy = (self._secret(access_id, ()),), self._policy(scheme, place, identity)
        credential = Credential(scheme, identity.grantee, secrets_of_session, place, token, policy)
        account = place if scheme is Scheme.AWS and place else NO_ACCOUNT
        object.__setattr__(credential, "identity", identity.caller_in(account))
        return credential

    def _policy(self, scheme: Scheme, place: str, identity: Identity) -> Policy | None:
        credentials = self._credentials
        if credentials.keeps_apart and not place:
            return NOTHING
        if scheme is Scheme.AWS:
            namespace = credentials.aws_namespace(identity.grantee, place, "")
        else:
            namespace = credentials.namespace(scheme, place)
        return credentials.policy_of_identity(identity, namespace)

    def _context(self, access_id: str) -> str:
        return f"{self._purpose} {access_id}"

    def _secret(self, access_id: str, secrets_of_key: tuple[str, ...]) -> str:
        key = self._identities.derived_key(f"{self._purpose} secret", access_id, *secrets_of_key)
        return base64.b64encode(key).decode()[:40]

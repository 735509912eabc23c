"""Temporary AWS credentials of identities: an access id, a secret and a session token that expire.

Nothing is stored. The session token contains the identity, encrypted under the server's secret key for its access id. The secret
is derived from the access id under the same key. So all processes of a server accept a session, and another secret key ends
all sessions. The rights are the grants to the identity at the time of use.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from typing import NamedTuple

import orjson

from tablegate.gateway.model.authorization.grants import Policy
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.identities import Identities, Identity
from tablegate.gateway.security.secret_cipher import SecretCipher, WrongKey

PREFIX = "ASIA"
"""The beginning of temporary access ids ("IAM identifiers", IAM guide)."""
MAX_TOKEN_CHARACTERS = 4096
_OWNER = "session "


class Session(NamedTuple):
    """Temporary credentials of an identity. `expires_s`: seconds since 1970."""

    access_id: str
    secret: str
    token: str
    expires_s: int


class Sessions:
    """The issuer of temporary credentials of one server, and their verification."""

    def __init__(self, identities: Identities, policy_of: Callable[[Identity], Policy | None]) -> None:
        self._identities = identities
        self._policy_of = policy_of
        self._known_cipher: SecretCipher | None = None

    def issue(self, identity: Identity, seconds: int, now_s: float) -> Session | None:
        """Return new credentials of an identity. None if its groups and roles are too many for a token. Raises BadSetting."""
        access_id = PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()
        expires_s = int(now_s) + seconds
        plain = orjson.dumps([expires_s, *identity])
        token = base64.b64encode(self._cipher().encrypt(plain, _OWNER + access_id)).decode()
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        return Session(access_id, self._secret(access_id), token, expires_s)

    def find(self, access_id: str, token: str, now_s: float) -> Credential | None:
        """Return the credential of a session in force, with the policy of its identity. None if there is none."""
        if not access_id.startswith(PREFIX) or not 0 < len(token) <= MAX_TOKEN_CHARACTERS:
            return None
        try:
            data = base64.b64decode(token, validate=True)
            expires_s, *members = orjson.loads(self._cipher().decrypt(data, _OWNER + access_id))
        except (WrongKey, ValueError):
            return None
        if now_s >= expires_s:
            return None
        object_id, groups, roles, *rest = members
        identity = Identity(object_id, tuple(groups), tuple(roles), *rest)
        credential = Credential(
            Scheme.AWS,
            access_id,
            (self._secret(access_id),),
            session_token=token,
            policy=self._policy_of(identity),
        )
        object.__setattr__(credential, "identity", identity.caller)
        return credential

    def _secret(self, access_id: str) -> str:
        return base64.b64encode(self._identities.derived_key("session secret", access_id)).decode()[:40]

    def _cipher(self) -> SecretCipher:
        if self._known_cipher is None:
            self._known_cipher = SecretCipher(self._identities.derived_key("session tokens").hex())
        return self._known_cipher

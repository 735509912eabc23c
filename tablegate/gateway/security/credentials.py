"""The credentials in force, as a snapshot in memory, the namespaces of callers, and temporary credentials (sessions).

Each dialect computes signatures in its auth.py. Credentials are stored by store/accounts.py.

Identities and stored AWS keys get temporary credentials: an access id, a secret and a session token that expire. Nothing is
stored. The session token contains the owner, encrypted under the server's secret key for its access id. The secret is derived
from the access id under the same key. So all processes of a server accept a session, and another secret key ends all sessions.
The rights are the grants to the owner at the time of use. Where tenants are kept apart, the session of an identity also contains
the account of AWS for which it was issued. The secret of a stored key's session is derived from the secrets of the key, too. So
the session ends with the key.
"""

from __future__ import annotations

import base64
import logging
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.model.authorization import authorizations
from tablegate.gateway.model.authorization.grants import EVERYTHING, NOTHING, Policy, Statement
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.security import iam_policies, short_policies
from tablegate.gateway.security.identities import (
    ENTRA,
    ENTRA_SCHEME,
    GROUP,
    ROLE,
    Identities,
    Identity,
    caller_of,
    in_account,
    split_account,
)
from tablegate.gateway.security.secret_cipher import WrongKey

_log = logging.getLogger(__name__)


class Scheme(Enum):
    """The family of a credential. Each scheme has its own access ids."""

    AWS = "aws"
    AZURE = "azure"
    TABLESTORE = "tablestore"

    # Faster than the default of Enum, a Python function. Every request looks up a (scheme, access id).
    __hash__ = object.__hash__


NO_ACCOUNT = "000000000000"
"""The account of AWS keys without a place."""
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Credential:
    """An access key, or an Azure account with its two keys.

    - `secrets`: each is accepted. They are texts, base64 for Azure.
    - `place`: the account of 12 digits (AWS) or the instance (Table Store), ANY_PLACE for every instance, or "". For Azure
      the access id is the name of the account.
    - `session_token`: required in requests, unless it is "".
    """

    scheme: Scheme
    access_id: str
    secrets: tuple[str, ...] = field(repr=False)
    place: str = ""
    session_token: str = field(default="", repr=False)
    policy: Policy | None = field(default=None, repr=False, compare=False)
    """The policy from the grants of the database (grant_store.py). None is unrestricted."""

    identity: authorizations.CallerIdentity = field(init=False, repr=False, compare=False)
    """The caller in policies: a user of an account. Keys of other dialects are users of the account of zeros."""

    def __post_init__(self) -> None:
        account, user = NO_ACCOUNT, self.grantee
        if self.scheme is Scheme.AWS:
            account = self.place or (self.access_id if _ACCOUNT.fullmatch(self.access_id) else NO_ACCOUNT)
            user = self.access_id
        identity = authorizations.CallerIdentity(
            self.scheme.value, self.access_id, account, f"arn:aws:iam::{account}:user/{user}"
        )
        object.__setattr__(self, "identity", identity)

    @property
    def is_of_identity(self) -> bool:
        """True for the temporary credential of an identity."""
        return self.identity.scheme == ENTRA_SCHEME

    @property
    def grantee(self) -> str:
        """The name of the credential in grants."""
        return f"{self.scheme.value}/{self.access_id}"


ANY_PLACE = "*"
"""The place of a credential that is valid in all instances. No instance can have this name."""

DEV_AZURE_ACCOUNT = "devstoreaccount1"
# Published by Microsoft as the key of every storage emulator. UseDevelopmentStorage=true signs with it.
# https://learn.microsoft.com/azure/storage/common/storage-use-azurite#well-known-storage-account-and-key
DEV_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # gitleaks:allow

DEV_CREDENTIALS = (
    Credential(Scheme.AWS, "tablegate", ("tablegate",)),
    Credential(Scheme.AZURE, DEV_AZURE_ACCOUNT, (DEV_AZURE_KEY,)),
    Credential(Scheme.TABLESTORE, "tablegate", ("tablegate",)),
)

SHARED_NAMESPACE = "shared"
CALLERS_KEPT = 1024


class TokenPolicies(dict[str, Policy | None]):
    """The policies of roles, identities and groups of trusted tokens, by grantee. None is unrestricted.

    `denials_to_all`: returns the denials to `*` for a caller.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy | None] = MappingProxyType({}),
        denials_to_all: Callable[[authorizations.CallerIdentity], tuple[Statement, ...]] = lambda caller: (),
    ) -> None:
        super().__init__(policies)
        self.denials_to_all = denials_to_all


class Credentials:
    """The credentials in force, in memory. `replace` exchanges all of them at once, from any thread."""

    __slots__ = (
        "_by_id",
        "_by_key",
        "_resources",
        "_shared",
        "callers",
        "default_account",
        "find_session",
        "is_dev",
        "is_limited",
        "keeps_apart",
        "token_policies",
    )

    def __init__(self, settings: Settings, credentials: Iterable[Credential] = ()) -> None:
        self.is_dev = settings.auth == "dev"
        """True if keys that are not stored are accepted, too: any AWS key without verification, and the well-known others."""
        self._shared = settings.namespaces == "shared"
        self._by_key = settings.namespaces == "keys"
        self.default_account = settings.aws_account if self.is_dev else NO_ACCOUNT
        """The AWS account of keys without one."""
        self.keeps_apart = not self.is_dev and not self._shared
        """True if tenants are isolated. A credential without a place is then not valid for all."""
        self._by_id: dict[tuple[Scheme, str], Credential] = {}
        self.token_policies = TokenPolicies()
        self.find_session: Callable[[Scheme, str, str, float, str], Credential | None] | None = None
        """Returns the temporary credential of a scheme, an access id, a session token and an instance (`Sessions.find`)."""
        self._resources: authorizations.ResourcePolicies | None = None
        self.is_limited = False
        """True if a stored credential is restricted, or a table has a resource policy."""
        self.callers: dict[str, Any] = {}
        """A cache of a dialect's results for unverified claims, by the claim's text. `replace` empties it.

        Code that adds to it must bound it (CALLERS_KEPT).
        """
        self.replace(credentials)

    def replace(self, credentials: Iterable[Credential], token_policies: TokenPolicies | None = None) -> None:
        """Put these credentials in force. With auth `dev` they are unrestricted, and the well-known ones are added."""
        by_id = {(item.scheme, item.access_id): item for item in (DEV_CREDENTIALS if self.is_dev else ())}
        if self.is_dev:
            credentials = [replace(item, policy=None) for item in credentials]
        self.token_policies = TokenPolicies() if token_policies is None else token_policies
        self.is_limited = self._resources is not None
        by_id.update(((item.scheme, item.access_id), item) for item in credentials)
        self.is_limited |= any(item.policy is not None for item in by_id.values())
        self._by_id = by_id
        self.callers = {}
        for item in by_id.values() if self.keeps_apart else ():
            if item.scheme is Scheme.TABLESTORE and not item.place:
                _log.warning(
                    "the Table Store credential %s reaches no instance. Set one with `tablegate credentials bind`",
                    item.access_id,
                )
        for grantee in self.token_policies if self.keeps_apart else ():
            if grantee.startswith((ENTRA, GROUP)) and not split_account(grantee)[1]:
                _log.warning(
                    "the grants to %s count in no account. Grant to %s@SCHEME/ACCOUNT", grantee, grantee
                )

    @property
    def are_stored(self) -> bool:
        """True if a credential is in force that is not one of auth `dev`."""
        return len(self._by_id) > (len(DEV_CREDENTIALS) if self.is_dev else 0)

    def keep_resource_policies(
        self, policies: Mapping[tuple[str, str], authorizations.PoliciesOfTable]
    ) -> None:
        """Put the resource policies in force, by namespace and table. With auth `dev` they have no effect."""
        if self.is_dev or not (policies or self._resources):
            return
        self._resources = authorizations.ResourcePolicies(policies, iam_policies.stored_resource_policy)
        self.is_limited = True

    def know_resource_policies(
        self, namespace: str, table: str, policies: authorizations.PoliciesOfTable
    ) -> None:
        """Put the changed policies of one table in force at once."""
        all_policies = {} if self._resources is None else self._resources.named
        self.keep_resource_policies({**all_policies, (namespace, table): policies})

    def find_key(
        self, scheme: Scheme, access_id: str, token: str, now_ms: int, instance: str = ""
    ) -> Credential | None:
        """Return the credential of that id: a stored one, or that of a session with this token. None if there is none.

        `instance`: that of Table Store which the request names. Where tenants are kept apart, the session of an identity is
        valid only in accounts that a grant to it names, and not where each AWS key has tables of its own.
        """
        found = self._by_id.get((scheme, access_id))
        if found is None and token and self.find_session is not None:
            found = self.find_session(scheme, access_id, token, now_ms / 1000, instance)
            if found is not None and self.keeps_apart and found.is_of_identity:
                is_member = found.policy is None or found.policy.allows_anything
                has_account = scheme is not Scheme.AWS or not self._by_key
                return found if is_member and has_account else None
        return found

    def find(self, scheme: Scheme, access_id: str) -> Credential | None:
        """Return the credential of that id, or None."""
        return self._by_id.get((scheme, access_id))

    def authorization(
        self,
        caller: authorizations.CallerIdentity,
        policy: Policy | None,
        source: authorizations.RequestSource,
        now_ms: int,
    ) -> authorizations.Authorization | None:
        """Return the authorization of a request of this caller with this policy. None if it is unrestricted.

        An identity always has one, because the audit log and quotas name the caller by it.
        """
        if policy is None and self._resources is None and caller.scheme != ENTRA_SCHEME:
            return None
        return authorizations.Authorization(policy or EVERYTHING, caller, source, now_ms, self._resources)

    def policy_of_identity(
        self, identity: Identity, namespace: str, is_for_account: bool = False
    ) -> Policy | None:
        """Return the policy in a namespace of the caller that a trusted token names. None if it is unrestricted.

        It is the union of the grants to the identity, to its groups and to its roles, of Azure's built-in roles, and of the
        denials to `*`. Where tenants are kept apart, only grants that name the account of the namespace count, and built-in
        roles only if the token is for this account (`is_for_account`).
        """
        return self.policy_of_principals(identity.principals, namespace, is_for_account)

    def policy_of_principals(
        self, principals: Sequence[str], namespace: str, is_for_account: bool = False
    ) -> Policy | None:
        """Return the policy of an identity with these principals (`policy_of_identity`)."""
        if self.is_dev:
            return None
        grantees, account = [*principals], NO_ACCOUNT
        if self.keeps_apart:
            scheme, _, place = account_of(namespace).partition("/")
            places = f"{scheme}/{place}", f"{scheme}/*"
            grantees = [in_account(grantee, named) for grantee in principals for named in places]
            account = place if scheme == Scheme.AWS.value else account
        found = [self.token_policies[grantee] for grantee in grantees if grantee in self.token_policies]
        counts_built_in = is_for_account or not self.keeps_apart
        roles = [name.removeprefix(ROLE) for name in principals if counts_built_in and name.startswith(ROLE)]
        policies = [
            short_policies.policy_of_azure_roles(roles),
            *(EVERYTHING if policy is None else policy for policy in found),
        ]
        denials = self.token_policies.denials_to_all(caller_of(principals[0], account))
        policy = Policy((*(statement for policy in policies for statement in policy.statements), *denials))
        return None if policy.is_everything else policy

    def is_valid_in(self, credential: Credential, place: str) -> bool:
        """True if a credential is valid in the place of a request, as the instance of Table Store.

        A credential without a place is valid everywhere with namespaces `shared` or auth `dev`. It is valid nowhere if
        tenants are isolated.
        """
        if not credential.place:
            return not self.keeps_apart
        return credential.place in (place, ANY_PLACE)

    def namespace(self, scheme: Scheme, *place: str) -> str:
        """Return the namespace of a caller's tables: the shared one, or one for each scheme and place.

        A place is an AWS account and region, an Azure account, or a Table Store instance.
        """
        return SHARED_NAMESPACE if self._shared else _namespace_name((scheme.value, *place))

    def aws_namespace(self, access_id: str, account: str, region: str) -> str:
        """Return the namespace of an AWS caller: by account and region, or by key and region as in DynamoDB Local."""
        return self.namespace(Scheme.AWS, access_id if self._by_key else account, region)


def read_resource_policy(
    text: str, identity: authorizations.CallerIdentity
) -> authorizations.ResourceDecision:
    """Return the decision of a resource policy for a caller. Raises ValueError (BadPolicy) if it is not supported."""
    return iam_policies.resource_policy(text, identity)


@lru_cache(maxsize=1024)
def _namespace_name(place: tuple[str, ...]) -> str:
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in place)


TEMPORARY_ID_PREFIX = "ASIA"
"""The beginning of temporary access ids ("IAM identifiers", IAM guide)."""
MAX_SESSION_TOKEN_CHARACTERS = 4096


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
        access_id = TEMPORARY_ID_PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()
        expires_s = int(now_s) + seconds
        name: str | list[Any] = owner.access_id if isinstance(owner, Credential) else list(owner)
        secrets_of_key = owner.secrets if isinstance(owner, Credential) else ()
        plain = orjson.dumps([expires_s, name, account] if account else [expires_s, name])
        token = base64.b64encode(self._identities.cipher.encrypt(plain, self._context(access_id))).decode()
        if len(token) > MAX_SESSION_TOKEN_CHARACTERS:
            return None
        return Session(access_id, self._secret(access_id, secrets_of_key), token, expires_s)

    def find(
        self, scheme: Scheme, access_id: str, token: str, now_s: float, instance: str = ""
    ) -> Credential | None:
        """Return the credential of a session in force, with the access id and the rights of its owner. None if there is none.

        Sessions of identities are valid in all schemes with access keys, those of a stored key in its own. `instance`: that
        of Table Store which the request names.
        """
        if (
            not access_id.startswith(TEMPORARY_ID_PREFIX)
            or not 0 < len(token) <= MAX_SESSION_TOKEN_CHARACTERS
        ):
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

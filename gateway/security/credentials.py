"""Who may come in: access id -> Credential, as a snapshot in memory that signatures are checked against.

Knows the three kinds of keys and which namespace a caller's tables live in. Knows neither how a signature is computed (each
dialect's auth.py) nor how credentials are kept (store/accounts/credentials.py).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.model.authorization import authorizations
from tablegate.gateway.model.authorization.grants import EVERYTHING, Policy
from tablegate.gateway.security.policies import azure_roles, iam_documents

_log = logging.getLogger(__name__)


class Scheme(Enum):
    """Which family of keys a credential belongs to; each has its own access ids."""

    AWS = "aws"
    AZURE = "azure"
    TABLESTORE = "tablestore"

    # The default hashes the name through a Python-level __hash__; every request looks up a (scheme, access id).
    __hash__ = object.__hash__


NO_ACCOUNT = "000000000000"
"""The account of AWS keys of which nobody said one."""
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Credential:
    """One key, or Azure's account with its two.

    `secrets`: each is accepted; as text, in Azure's case base64. `place`: the account of 12 digits (AWS) or the instance
    (Table Store) that it belongs to, ANY_PLACE for whatever instance, "" if nobody said; for Azure the account's name is
    the access id. `session_token`: must be presented too, if there is one.
    """

    scheme: Scheme
    access_id: str
    secrets: tuple[str, ...] = field(repr=False)
    place: str = ""
    session_token: str = field(default="", repr=False)
    policy: Policy | None = field(default=None, repr=False, compare=False)
    """What it may do; None: everything. It comes from the grants of the database (grant_store.py)."""

    identity: authorizations.CallerIdentity = field(init=False, repr=False, compare=False)
    """Who it is, as policies name callers: a user of an account. Keys of other dialects are users of the account of zeros."""

    def __post_init__(self) -> None:
        account, user = NO_ACCOUNT, self.grantee
        if self.scheme is Scheme.AWS:
            account = self.place or (self.access_id if _ACCOUNT.fullmatch(self.access_id) else NO_ACCOUNT)
            user = self.access_id
        made = authorizations.CallerIdentity(
            self.scheme.value, self.access_id, account, f"arn:aws:iam::{account}:user/{user}"
        )
        object.__setattr__(self, "identity", made)

    @property
    def grantee(self) -> str:
        """What grants call it."""
        return f"{self.scheme.value}/{self.access_id}"


ANY_PLACE = "*"
"""The place of a credential that was made for all instances. No instance can be named so."""

DEV_AZURE_ACCOUNT = "devstoreaccount1"
# Published by Microsoft as the key of every storage emulator; UseDevelopmentStorage=true signs with it.
# https://learn.microsoft.com/azure/storage/common/storage-use-azurite#well-known-storage-account-and-key
DEV_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # gitleaks:allow

DEV_CREDENTIALS = (
    Credential(Scheme.AWS, "tablegate", ("tablegate",)),
    Credential(Scheme.AZURE, DEV_AZURE_ACCOUNT, (DEV_AZURE_KEY,)),
    Credential(Scheme.TABLESTORE, "tablegate", ("tablegate",)),
)

SHARED_NAMESPACE = "shared"
CALLERS_KEPT = 1024


class Credentials:
    """The credentials in force. Look-ups are from memory; `replace` swaps all of them at once, from any thread."""

    __slots__ = (
        "_by_key",
        "_known",
        "_resources",
        "_shared",
        "callers",
        "is_dev",
        "is_limited",
        "keeps_apart",
        "roles",
    )

    def __init__(self, settings: Settings, stored: Iterable[Credential] = ()) -> None:
        self.is_dev = settings.auth == "dev"
        """Whether keys that are not stored are taken too: AWS any at all, unverified; the others the well-known ones."""
        self._shared = settings.namespaces == "shared"
        self._by_key = settings.namespaces == "keys"
        self.keeps_apart = not self.is_dev and not self._shared
        """Whether tenants must not reach each other: what is not said to be for all is then for one."""
        self._known: dict[tuple[Scheme, str], Credential] = {}
        self.roles: Mapping[str, Policy | None] = {}
        """What roles may do that somebody may have without a stored credential; None: everything."""
        self._resources: authorizations.ResourcePolicies | None = None
        self.is_limited = False
        """Whether there is anybody with a stored credential who may not do everything, or a table with a policy of its own."""
        self.callers: dict[str, Any] = {}
        """What a dialect has made of a claim that nobody proves, by the claim's text; for as long as these credentials are in
        force. Whoever adds to it bounds it (CALLERS_KEPT)."""
        self.replace(stored)

    def replace(self, stored: Iterable[Credential], roles: Mapping[str, Policy | None] | None = None) -> None:
        """Take these from now on, and with auth `dev`, where everybody may do everything, the well-known ones besides."""
        known = {(item.scheme, item.access_id): item for item in (DEV_CREDENTIALS if self.is_dev else ())}
        if self.is_dev:
            stored = [replace(item, policy=None) for item in stored]
        self.roles = roles or {}
        self.is_limited = self._resources is not None
        known.update(((item.scheme, item.access_id), item) for item in stored)
        self.is_limited |= any(item.policy is not None for item in known.values())
        self._known = known
        self.callers = {}
        for item in known.values() if self.keeps_apart else ():
            if item.scheme is Scheme.TABLESTORE and not item.place:
                _log.warning(
                    "the Table Store credential %s reaches no instance: say which with `tablegate credentials bind`",
                    item.access_id,
                )

    def keep_resource_policies(self, named: Mapping[tuple[str, str], authorizations.PoliciesOfTable]) -> None:
        """Judge everybody by the policies of resources, too, from now on; these are known, by namespace and table. With auth
        `dev` everybody may do everything."""
        if self.is_dev or not (named or self._resources):
            return
        self._resources = authorizations.ResourcePolicies(named, iam_documents.stored_resource_policy)
        self.is_limited = True

    def know_resource_policies(
        self, namespace: str, table: str, policies: authorizations.PoliciesOfTable
    ) -> None:
        """Know the policies of a table at once, which have just been changed."""
        known = {} if self._resources is None else self._resources.named
        self.keep_resource_policies({**known, (namespace, table): policies})

    def find(self, scheme: Scheme, access_id: str) -> Credential | None:
        """The credential of that id; None if nobody knows it."""
        return self._known.get((scheme, access_id))

    def authorization(
        self, credential: Credential, policy: Policy | None, source: authorizations.RequestSource, now_ms: int
    ) -> authorizations.Authorization | None:
        """What a request may do that was sent with a credential, by a caller with this policy; None: everything."""
        if policy is None and self._resources is None:
            return None
        return authorizations.Authorization(
            policy or EVERYTHING, credential.identity, source, now_ms, self._resources
        )

    def policy_of_roles(self, roles: Iterable[str]) -> Policy | None:
        """What somebody may do who has these roles by the word of a trusted issuer: those of Azure, and those that were granted
        something here; None: everything."""
        if self.is_dev:
            return None
        of_roles = [
            azure_roles.policy_of_roles(roles),
            *(self.roles[role] for role in roles if role in self.roles),
        ]
        if any(policy is None for policy in of_roles):
            return None
        return Policy(tuple(each for policy in of_roles if policy is not None for each in policy.statements))

    def may_enter(self, credential: Credential, place: str) -> bool:
        """Whether a credential may be used in a place that the request names, as Table Store's do with their instance.

        One that nobody gave a place may enter all of them as long as it makes no difference, which is with namespaces
        `shared` or auth `dev`; where tenants are kept apart it may enter none.
        """
        if not credential.place:
            return not self.keeps_apart
        return credential.place in (place, ANY_PLACE)

    def namespace(self, scheme: Scheme, *place: str) -> str:
        """Where the tables of a caller live: one namespace for all, or one for each place - an AWS account and region, an
        Azure account, a Table Store instance. Places of two schemes are never one, whatever they are called."""
        return SHARED_NAMESPACE if self._shared else _namespace_name((scheme.value, *place))

    def aws_namespace(self, access_id: str, account: str, region: str) -> str:
        """That of an AWS caller: by account and region, or, as DynamoDB Local has it, by key and region."""
        return self.namespace(Scheme.AWS, access_id if self._by_key else account, region)


def read_resource_policy(
    text: str, identity: authorizations.CallerIdentity
) -> authorizations.ResourceDecision:
    """What a resource's policy would say of a caller. Raises ValueError (BadPolicy) for one that is not supported."""
    return iam_documents.resource_policy(text, identity)


@lru_cache(maxsize=1024)
def _namespace_name(place: tuple[str, ...]) -> str:
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in place)

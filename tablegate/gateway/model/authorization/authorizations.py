"""The authorization of one request: the grants and identity of the caller, the facts of the request, and its purpose.

`refusal` evaluates commands before they run. `review` evaluates the results of look-ups. Unrestricted callers have no
authorization object. Pure. Only gateway/security/gate.py calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.conditions import POSSIBLE, AccessFacts, ConditionKey
from tablegate.gateway.model.authorization.grants import EVERYTHING, NOTHING, Policy, Verdict
from tablegate.gateway.model.authorization.permissions import (
    ACCOUNT_PERMISSIONS,
    UNKNOWN_PURPOSE,
    Permission,
    Purpose,
)
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import NotPermitted, QuotaExceeded, TableMissing
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table

# A global name is faster to read than a member of an enumeration.
_ALLOWED, _READ = Verdict.ALLOWED, Permission.READ
_BY_LOOK_UP = frozenset(
    {
        Permission.DESCRIBE, Permission.DESCRIBE_EXPIRY, Permission.DESCRIBE_FEATURES, Permission.READ_TAGS,
        Permission.READ_POLICY,
    }
)  # fmt: skip
"""Permissions of requests that may consist of a look-up alone, so that the look-up itself must be authorized."""


class CallerIdentity(NamedTuple):
    """The caller. `scheme` and `access_id` name the credential, `account` and `arn` are the names in policies.

    `principals`: the identity of a token, its groups and its roles, as grants and quotas name them. A stored credential
    has none.
    """

    scheme: str
    access_id: str
    account: str
    arn: str
    principals: tuple[str, ...] = ()


class RequestSource(NamedTuple):
    """The origin of a request: address of the peer, use of TLS, and the region of the signature."""

    address: str
    is_secure: bool
    region: str = ""


class ResourceDecision(NamedTuple):
    """The statements of a resource policy that concern one caller.

    - `sufficient`: the policy names the caller or all principals. An allowance needs no grant of the caller.
    - `delegating`: the policy names the caller's account. The caller's grants must allow the access too, so only
      denials of these statements take effect.
    """

    sufficient: Policy = NOTHING
    delegating: Policy = NOTHING


PoliciesOfTable = Mapping[str, Mapping[str, str]]
"""The policies of a table, as its properties store them: "" or the label of a stream -> {"text", "revision"}.

There is no "text" if the policy was deleted.
"""


class ResourcePolicies(NamedTuple):
    """The policies of resources.

    `named`: cached policies by namespace and table, for accesses without the table's descriptor. `read`: returns the
    statements of a document that concern a caller.
    """

    named: Mapping[tuple[str, str], PoliciesOfTable]
    read: Callable[[str, CallerIdentity], ResourceDecision]


class QuotaMeter(Protocol):
    """The consumption of quotas by a request (gateway/security/quotas.py)."""

    exceeded: QuotaExceeded | None
    """The quota that a refused part of the request exceeded."""

    def refusal(self, commands: list[Command[Any]]) -> QuotaExceeded | None:
        """Return the reason why commands are refused, or None."""

    def charge(self, commands: list[Command[Any]], outcomes: list[Any]) -> None:
        """Charge the consumption of commands."""


class NamedResource(NamedTuple):
    """A resource that a request names, before any look-up. The request needs one of the permissions on it."""

    permissions: tuple[Permission, ...]
    namespace: str
    path: str


class Authorization:
    """The permissions of a request. Not shared between requests. The dialect sets `purpose` once it knows the
    operation."""

    __slots__ = (
        "_named",
        "_resources",
        "identity",
        "is_checked",
        "needs_review",
        "now_ms",
        "policy",
        "purpose",
        "source",
        "usage",
    )

    def __init__(
        self,
        policy: Policy,
        identity: CallerIdentity,
        source: RequestSource,
        now_ms: int,
        resources: ResourcePolicies | None = None,
    ) -> None:
        self.policy = policy
        self.identity = identity
        self.purpose: Purpose = UNKNOWN_PURPOSE
        self.is_checked = False
        """True once some part of the request has been authorized or refused."""
        self.needs_review = False
        """True if `review` must see the outcomes of the commands."""
        self.usage: QuotaMeter | None = None
        """The consumption of quotas, or None if no quota applies."""
        self.source = source
        self.now_ms = now_ms
        self._resources = resources
        self._named: dict[tuple[str, str], str] = {}
        """Paths of resources that the request names and that are not forbidden: (namespace, table) -> path."""

    @property
    def is_unrestricted(self) -> bool:
        """True if neither a grant nor a resource policy limits the caller. Quotas can."""
        return self.policy is EVERYTHING and self._resources is None

    @property
    def exceeded_quota(self) -> QuotaExceeded | None:
        """The quota that the request, a part of it or one of its commands exceeded, or None."""
        return None if self.usage is None else self.usage.exceeded

    def value(self, fact: ConditionKey) -> str | None:
        """Return the value of a fact of the request (conditions.AuthorizationContext)."""
        match fact:
            case ConditionKey.SOURCE_ADDRESS:
                return self.source.address
            case ConditionKey.IS_SECURE:
                return "true" if self.source.is_secure else "false"
            case ConditionKey.NOW:
                return str(self.now_ms / 1000)
            case ConditionKey.REGION:
                return self.source.region or None
            case ConditionKey.ACCOUNT:
                return self.identity.account
            case ConditionKey.PRINCIPAL:
                return self.identity.arn
            case ConditionKey.PRINCIPAL_KIND:
                return "User"
            case ConditionKey.USER | ConditionKey.USER_ID:
                return self.identity.access_id
        return None

    def refusal(self, commands: list[Command[Any]]) -> NotPermitted | QuotaExceeded | None:
        """Return the reason why commands are refused, or None. All are evaluated before any of them runs.

        Can replace commands in the list by equal ones with bounds of quotas.
        """
        purpose, policy = self.purpose, self.policy
        for command in commands:
            is_own_read = False
            if type(command) is Get:  # the most frequent command, usually with a cached decision
                table = command.table
                is_own_read = self._resources is None or RESOURCE_POLICIES not in table.properties
                if is_own_read:
                    channel, namespace, name = purpose[1], table.namespace, table.name
                    readable = policy.readable
                    key = channel, namespace, name, command.position.partition
                    if readable and readable.get(key) is table.key_schema:
                        self.is_checked = True
                        continue
                    decision = policy.decisions.get((_READ, channel, namespace, name))
                    if decision is not None and decision[0] is _ALLOWED:
                        self.is_checked = True
                        continue
            if command.is_look_up:
                self.needs_review = True
            refusal = self.refusal_of_command(command, is_own_read)
            if refusal is not None:
                return refusal
        if self.usage is None:
            return None
        self.needs_review = True
        return self.usage.refusal(commands)

    def refusal_of_command(self, command: Command[Any], caches: bool = False) -> NotPermitted | None:
        """Return the reason why one command is not permitted, or None. For parts of a request that are authorized
        separately.

        `caches`: the command is a Get, and the policy may cache that it is allowed.
        """
        for access in command.accesses(self.purpose):
            self.is_checked = True
            verdict = self.judge(access)
            if verdict is not _ALLOWED:
                return NotPermitted(access.permission, access.path, verdict.value)
            if caches:
                self.policy.remember_readable(access)
        return None

    def refusal_of_named(
        self, resources: Iterable[NamedResource], table: Table | None = None
    ) -> NotPermitted | None:
        """Return the reason why a request is refused for all keys and attributes, or None if it could be allowed.

        It is evaluated before a table is looked up or a key is read. So forbidden and absent tables get the same
        answer. `table`: the descriptor of the table, if it is available.
        """
        channel = self.purpose.channel
        for permissions, namespace, path in resources:
            self.is_checked = True
            verdicts = [
                self.judge(Access(permission, channel, namespace, path, None, table), POSSIBLE)
                for permission in permissions
            ]
            if _ALLOWED not in verdicts:
                return NotPermitted(permissions[0], path, verdicts[0].value)
            self._named[namespace, path.partition("/")[0]] = path
        return None

    def require_named(self, resources: Iterable[NamedResource]) -> None:
        """Raise NotPermitted if the resources that a request names are forbidden (refusal_of_named)."""
        refusal = self.refusal_of_named(resources)
        if refusal is not None:
            raise refusal

    def reaches(self, table: Table, path: str = "") -> bool:
        """Return True if the purpose could be allowed on a table, or on a part of it by its path.

        Any other table must be looked up like an absent one, even if its descriptor is cached.
        """
        resource = NamedResource(self.purpose.permissions, table.namespace, path or table.name)
        return self.refusal_of_named([resource], table) is None

    def judge(self, access: Access, facts: AccessFacts | None = None) -> Verdict:
        """Return the verdict on one access by the caller's grants and the policy of the resource.

        `facts` replaces the facts of the access.
        """
        facts = access if facts is None else facts
        policy = self.policy
        decision = policy.decisions.get(access[:4]) or policy.decide(access)
        verdict = decision.judge(facts, self)
        if self._resources is None:
            return verdict
        resource_decision = self._decision_of_resource(access.table, access.namespace, access.path)
        if resource_decision is None or self._ignores_resource_policies(access.permission):
            return verdict
        return _combine(
            verdict,
            resource_decision.sufficient.decide(access).judge(facts, self),
            resource_decision.delegating.decide(access).judge(facts, self),
        )

    def allows(self, namespace: str, path: str) -> bool:
        """Return True if the purpose is allowed on a resource. Lists show a caller only the
        permitted entries."""
        permission, channel = self.purpose.permissions[0], self.purpose.channel
        return self.judge(Access(permission, channel, namespace, path, None)) is _ALLOWED

    def _decision_of_resource(
        self, table: Table | None, namespace: str, path: str
    ) -> ResourceDecision | None:
        """Return the decision of the policy of a table or a stream for the caller, None without a policy.

        The policy of a table also applies to its indexes.
        """
        if self._resources is None:
            return None
        name, _, part = path.partition("/")
        kind, _, label = part.partition("/")
        if kind not in ("", "index", "stream"):
            return None
        policies = (
            self._resources.named.get((namespace, name))
            if table is None
            else table.properties.get(RESOURCE_POLICIES)
        )
        entry = policies and policies.get(label if kind == "stream" else "")
        # A deleted policy has an entry without text.
        return self._resources.read(entry["text"], self.identity) if entry and "text" in entry else None

    def _ignores_resource_policies(self, permission: Permission) -> bool:
        """True if resource policies are ignored: a caller with all permissions removes a policy.

        The root of an account can always do this (DeleteResourcePolicy, API reference).
        """
        return permission is Permission.REMOVE_POLICY and self.policy is EVERYTHING

    def review(self, commands: list[Command[Any]], outcomes: list[Any]) -> list[Any]:
        """Return the outcomes, with a refusal in place of each look-up result that the caller may not see. Charges
        quotas. Needed only if `needs_review` is set.

        TableMissing is returned only to a caller with a matching grant, so absent and forbidden tables get the same
        answer.
        """
        self.needs_review = False
        if self.usage is not None:
            self.usage.charge(commands, outcomes)
        for at, command in enumerate(commands):
            if command.is_look_up:
                refusal = self._refusal_of_result(command, outcomes[at])
                if refusal is not None:
                    self.is_checked = True
                    outcomes = [*outcomes[:at], refusal, *outcomes[at + 1 :]]
        return outcomes

    def _refusal_of_result(self, look_up: Command[Any], outcome: Any) -> NotPermitted | None:
        if isinstance(look_up, FindTable):
            if isinstance(outcome, Table):
                return self._refusal_of_table(look_up.namespace, outcome.name, outcome)
            if isinstance(outcome, TableMissing):
                return self._refusal_of_table(look_up.namespace, look_up.name, None)
        paths = look_up.found_paths(outcome, self.purpose, self._named)
        namespace: str = look_up.namespace  # type: ignore[attr-defined]
        return self.refusal_of_named(
            [NamedResource(self.purpose.permissions, namespace, path) for path in paths]
        )

    def _refusal_of_table(self, namespace: str, name: str, table: Table | None) -> NotPermitted | None:
        permissions, channel, *_ = self.purpose
        path = self._named.get((namespace, name))
        if path is None:
            refusal = self.refusal_of_named([NamedResource(permissions, namespace, name)], table)
            if refusal is not None:
                return refusal
        if permissions[0] not in _BY_LOOK_UP:
            return None
        access = Access(permissions[0], channel, namespace, path or name, None, table)
        verdict = self.judge(access)
        return None if verdict is _ALLOWED else NotPermitted(permissions[0], access.path, verdict.value)

    def refusal_before_access(self, is_error: bool) -> NotPermitted | None:
        """Return the refusal of a request that was answered before any authorization.

        The caller needs the permission on the account or on some table. So authorization errors precede validation
        errors. `is_error`: the answer is an error.
        """
        if self.is_checked:
            return None
        self.is_checked = True
        permission, channel = self.purpose.permissions[0], self.purpose.channel
        if permission in ACCOUNT_PERMISSIONS and not is_error:
            verdict = self.judge(Access(permission, channel, "", "", None))
        else:
            verdict = self.policy.possible_verdict(self.purpose, self)
        return None if verdict is Verdict.ALLOWED else NotPermitted(permission, "", verdict.value)


def _combine(of_caller: Verdict, sufficient: Verdict, delegating: Verdict) -> Verdict:
    """Combine verdicts within one account (IAM guide, "Policy evaluation logic").

    A denial on either side denies. Otherwise an allowance on either side allows.
    """
    if of_caller is Verdict.REFUSED:
        return of_caller
    if Verdict.REFUSED in (sufficient, delegating):
        return Verdict.REFUSED_BY_RESOURCE
    return Verdict.ALLOWED if Verdict.ALLOWED in (of_caller, sufficient) else Verdict.NOT_ALLOWED

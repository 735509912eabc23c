"""What one request of one caller may do: its grants, who it is, what is known around it, and what it is for.

`refusal` judges commands before they are carried out, `review` what a look-up has found. Callers who may do everything have no
authorization at all. Pure; the one place that asks is gateway/security/gate.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, cast

from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.command_accesses import accesses_of, backup_path
from tablegate.gateway.model.authorization.conditions import POSSIBLE, AccessFacts, ConditionKey
from tablegate.gateway.model.authorization.grants import EVERYTHING, NOTHING, Policy, Verdict
from tablegate.gateway.model.authorization.permissions import (
    OF_ACCOUNTS,
    UNKNOWN_PURPOSE,
    Permission,
    Purpose,
)
from tablegate.gateway.model.commands.backup_commands import ListBackups
from tablegate.gateway.model.commands.commands import AnyCommand
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.commands.stream_commands import FindStream
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import NotPermitted, QuotaExceeded, StreamMissing, TableMissing
from tablegate.gateway.model.tables.changes import Stream
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES, Table

# To look a member up takes longer than a call of C.
_ALLOWED, _READ = Verdict.ALLOWED, Permission.READ
_LOOK_UPS = frozenset({FindTable, FindStream, ListBackups})
_BY_LOOK_UP = frozenset(
    {
        Permission.DESCRIBE, Permission.DESCRIBE_EXPIRY, Permission.DESCRIBE_FEATURES, Permission.READ_TAGS,
        Permission.READ_POLICY,
    }
)  # fmt: skip
"""What a look-up may be all of: no other command is judged that says exactly what is told."""


class CallerIdentity(NamedTuple):
    """Who asks. `scheme` and `access_id` name the credential; `account` and `arn` are as policies name callers."""

    scheme: str
    access_id: str
    account: str
    arn: str


class RequestSource(NamedTuple):
    """Where a request came from: the peer's address, whether over TLS, and the region that it was signed for."""

    address: str
    is_secure: bool
    region: str = ""


class ResourceDecision(NamedTuple):
    """What a resource's own policy says of one caller: `sufficient` by itself, because it names the caller or everybody; or
    `delegating`, because it names the caller's account, whose own grants must allow the same (so that only its refusals
    count)."""

    sufficient: Policy = NOTHING
    delegating: Policy = NOTHING


PoliciesOfTable = Mapping[str, Mapping[str, str]]
"""The policies of a table, as its properties have them: "" or the label of a stream -> {"text", "revision"}, without
"text" if the policy was deleted."""


class ResourcePolicies(NamedTuple):
    """The policies that resources have. `named`: as they were known lately, by namespace and table, for accesses that come
    without the table's descriptor; `read`: what a document says of a caller."""

    named: Mapping[tuple[str, str], PoliciesOfTable]
    read: Callable[[str, CallerIdentity], ResourceDecision]


class QuotaMeter(Protocol):
    """What a request takes of its quotas (gateway/security/quotas.py)."""

    exceeded: QuotaExceeded | None
    """The quota because of which something of the request was refused."""

    def refusal(self, commands: list[AnyCommand]) -> QuotaExceeded | None:
        """Return the reason why commands are refused, or None."""

    def charge(self, commands: list[AnyCommand], outcomes: list[Any]) -> None:
        """Take what commands cost."""


class NamedResource(NamedTuple):
    """A resource that a request names, before anything has been looked up. The request needs one of the permissions on it."""

    permissions: tuple[Permission, ...]
    namespace: str
    path: str


class Authorization:
    """What a request may do. Not shared between requests. `purpose` is said by the dialect as soon as it knows the operation."""

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
        """Whether anything that the request asked for has been judged."""
        self.needs_review = False
        """True if `review` must see the outcomes of the commands."""
        self.usage: QuotaMeter | None = None
        """What the request takes of quotas. None: there are none for it."""
        self.source = source
        self.now_ms = now_ms
        self._resources = resources
        self._named: dict[tuple[str, str], str] = {}
        """Tables of which the request names a part that is not forbidden: (namespace, table) -> the path of that part."""

    @property
    def exceeded_quota(self) -> QuotaExceeded | None:
        """The quota because of which the request, a part of it or one of its commands was refused, or None."""
        return None if self.usage is None else self.usage.exceeded

    def value(self, fact: ConditionKey) -> str | None:
        """The value of a fact of the request around an access (conditions.AuthorizationContext)."""
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

    def refusal(self, commands: list[AnyCommand]) -> NotPermitted | QuotaExceeded | None:
        """Return the reason why commands are refused, or None. All are judged before any of them runs."""
        purpose, policy = self.purpose, self.policy
        for command in commands:
            kind = type(command)
            is_own_read = False
            if kind is Get:  # by far the commonest; mostly it has been decided
                get = cast(Get, command)
                table = get.table
                is_own_read = self._resources is None or RESOURCE_POLICIES not in table.properties
                if is_own_read:
                    way, namespace, name = purpose[1], table.namespace, table.name
                    readable = policy.readable
                    key = way, namespace, name, get.position.partition
                    if readable and readable.get(key) is table.key_schema:
                        self.is_checked = True
                        continue
                    decided = policy.decisions.get((_READ, way, namespace, name))
                    if decided is not None and decided[0] is _ALLOWED:
                        self.is_checked = True
                        continue
            if kind in _LOOK_UPS:
                self.needs_review = True
            refusal = self.refusal_of_command(command, is_own_read)
            if refusal is not None:
                return refusal
        if self.usage is None:
            return None
        self.needs_review = True
        return self.usage.refusal(commands)

    def refusal_of_command(self, command: AnyCommand, remembers: bool = False) -> NotPermitted | None:
        """The reason why one of several commands is not permitted, or None: for parts of a request that are judged alone.

        `remembers`: the command is a Get, and the policy may keep that it is allowed."""
        for access in accesses_of(command, self.purpose):
            self.is_checked = True
            verdict = self.judge(access)
            if verdict is not _ALLOWED:
                return NotPermitted(access.permission, access.path, verdict.value)
            if remembers:
                self.policy.remember_readable(access)
        return None

    def refusal_of_named(
        self, named: Iterable[NamedResource], found: Table | None = None
    ) -> NotPermitted | None:
        """Why a request cannot be allowed, whatever keys and attributes it is about; None: it could be.

        Judged before a table is looked up or a key is read, so a forbidden table gets the answer of an absent one. `found`: the
        table's descriptor, if it is at hand."""
        way = self.purpose.way
        for permissions, namespace, path in named:
            self.is_checked = True
            verdicts = [
                self.judge(Access(permission, way, namespace, path, None, found), POSSIBLE)
                for permission in permissions
            ]
            if _ALLOWED not in verdicts:
                return NotPermitted(permissions[0], path, verdicts[0].value)
            self._named[namespace, path.partition("/")[0]] = path
        return None

    def require_named(self, named: Iterable[NamedResource]) -> None:
        """Raise NotPermitted if a request cannot be allowed what it names (refusal_of_named)."""
        refusal = self.refusal_of_named(named)
        if refusal is not None:
            raise refusal

    def reaches(self, table: Table, path: str = "") -> bool:
        """True if the purpose could be allowed on a table, or on a part of it by its path. Any other table must be looked up as
        an absent one is, even if its descriptor is at hand."""
        named = NamedResource(self.purpose.permissions, table.namespace, path or table.name)
        return self.refusal_of_named([named], table) is None

    def judge(self, access: Access, facts: AccessFacts | None = None) -> Verdict:
        """The verdict on one access, by the caller's grants and the policy of the resource. `facts`: those of the access, unless
        given."""
        facts = access if facts is None else facts
        policy = self.policy
        decision = policy.decisions.get(access[:4]) or policy.decide(access)
        own = decision.judge(facts, self)
        if self._resources is None:
            return own
        theirs = self._of_resource(access.table, access.namespace, access.path)
        if theirs is None or self._may_rescue(access.permission):
            return own
        return _together(
            own,
            theirs.sufficient.decide(access).judge(facts, self),
            theirs.delegating.decide(access).judge(facts, self),
        )

    def allows(self, namespace: str, path: str) -> bool:
        """True if the purpose is allowed on a resource: for the entries of a list, of which callers see their own."""
        permission, way = self.purpose.permissions[0], self.purpose.way
        return self.judge(Access(permission, way, namespace, path, None)) is _ALLOWED

    def _of_resource(self, table: Table | None, namespace: str, path: str) -> ResourceDecision | None:
        """What the policy of a table (which is its indexes', too) or of a stream says of the caller; None: there is none."""
        if self._resources is None:
            return None
        name, _, rest = path.partition("/")
        kind, _, label = rest.partition("/")
        if kind not in ("", "index", "stream"):
            return None
        known = (
            self._resources.named.get((namespace, name))
            if table is None
            else table.properties.get(RESOURCE_POLICIES)
        )
        found = known and known.get(label if kind == "stream" else "")
        # The entry of a policy that was deleted has no text.
        return self._resources.read(found["text"], self.identity) if found and "text" in found else None

    def _may_rescue(self, permission: Permission) -> bool:
        """Whether a policy counts for nothing because it is to be removed by somebody who was granted everything, as an
        account's root may whatever the policy says (DeleteResourcePolicy, API reference)."""
        return permission is Permission.REMOVE_POLICY and self.policy is EVERYTHING

    def review(self, commands: list[AnyCommand], outcomes: list[Any]) -> list[Any]:
        """Return the outcomes, with a refusal in place of each found look-up that the caller may not see. A missing table is told
        only to a caller with a matching grant, so that absent and forbidden have the same answer. Charges quotas."""
        self.needs_review = False
        if self.usage is not None:
            self.usage.charge(commands, outcomes)
        for at, command in enumerate(commands):
            if isinstance(command, (FindTable, FindStream, ListBackups)):
                refusal = self._refusal_of_found(command, outcomes[at])
                if refusal is not None:
                    self.is_checked = True
                    outcomes = [*outcomes[:at], refusal, *outcomes[at + 1 :]]
        return outcomes

    def _refusal_of_found(
        self, command: FindTable | FindStream | ListBackups, outcome: Any
    ) -> NotPermitted | None:
        namespace = command.namespace
        match command, outcome:
            case ListBackups(), _:
                return self._refusal_of_backups(command, outcome)
            case _, Table():
                return self._refusal_of_table(namespace, outcome.name, outcome)
            case _, Stream():
                return self._refusal_of_stream(namespace, outcome.table_name, outcome.label)
            case FindTable(), TableMissing():
                return self._refusal_of_table(namespace, command.name, None)
            case FindStream(), StreamMissing():
                return self._refusal_of_stream(namespace, command.table_name, command.label)
        return None

    def _refusal_of_table(self, namespace: str, name: str, found: Table | None) -> NotPermitted | None:
        permissions, way, *_ = self.purpose
        path = self._named.get((namespace, name))
        if path is None:
            refusal = self.refusal_of_named([NamedResource(permissions, namespace, name)], found)
            if refusal is not None:
                return refusal
        if permissions[0] not in _BY_LOOK_UP:
            return None
        access = Access(permissions[0], way, namespace, path or name, None, found)
        verdict = self.judge(access)
        return None if verdict is _ALLOWED else NotPermitted(permissions[0], access.path, verdict.value)

    def _refusal_of_stream(self, namespace: str, table: str, label: str) -> NotPermitted | None:
        return self.refusal_of_named(
            [NamedResource(self.purpose.permissions, namespace, f"{table}/stream/{label}")]
        )

    def _refusal_of_backups(self, command: ListBackups, outcome: Any) -> NotPermitted | None:
        """A list of backups that is not the answer itself leads to one of them."""
        if Permission.LIST_BACKUPS in self.purpose.permissions or not isinstance(outcome, list):
            return None
        name, permissions = command.table_name or "", self.purpose.permissions
        if outcome:
            named = [NamedResource(permissions, backup.namespace, backup_path(backup)) for backup in outcome]
        elif (command.namespace, name) in self._named:
            named = []
        else:
            named = [NamedResource(permissions, command.namespace, f"{name}/backup/")]
        return self.refusal_of_named(named)

    def refusal_unasked(self, is_error: bool) -> NotPermitted | None:
        """Why a request is refused that was answered without anything having been judged: it must be for something that the
        caller may do, to an account as a whole or to some table. So authorization comes before whatever else is wrong with a
        request. `is_error`: the answer is one."""
        if self.is_checked:
            return None
        self.is_checked = True
        permission, way = self.purpose.permissions[0], self.purpose.way
        if permission in OF_ACCOUNTS and not is_error:
            verdict = self.judge(Access(permission, way, "", "", None))
        else:
            verdict = self.policy.may(self.purpose, self)
        return None if verdict is Verdict.ALLOWED else NotPermitted(permission, "", verdict.value)


def _together(own: Verdict, sufficient: Verdict, delegating: Verdict) -> Verdict:
    """IAM guide, "Policy evaluation logic", within one account: a refusal on either side refuses, an allowance on either side
    allows."""
    if own is Verdict.REFUSED:
        return own
    if Verdict.REFUSED in (sufficient, delegating):
        return Verdict.REFUSED_BY_RESOURCE
    return Verdict.ALLOWED if Verdict.ALLOWED in (own, sufficient) else Verdict.NOT_ALLOWED

"""What one request of one caller may do: its grants, who it is, what is known around it, and what it is for.

`refusal` judges commands before they are carried out, `review` what a look-up has found. Callers who may do everything have no
authorization at all. Pure; the one place that asks is gateway/security/authorizing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gateway.model.accesses import Access, accesses_of, backup_path
from gateway.model.changes import Stream
from gateway.model.commands import AnyCommand, FindStream, FindTable, Get, ListBackups
from gateway.model.conditions import Fact
from gateway.model.errors import NotPermitted, StreamMissing, TableMissing
from gateway.model.grants import EVERYTHING, NOTHING, Policy, Verdict
from gateway.model.permissions import OF_ACCOUNTS, UNKNOWN_PURPOSE, Permission, Purpose
from gateway.model.tables import RESOURCE_POLICIES, Table

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


class Identity(NamedTuple):
    """Who asks. `scheme` and `access_id` name the credential; `account` and `arn` are as policies name callers."""

    scheme: str
    access_id: str
    account: str
    arn: str


class Source(NamedTuple):
    """Where a request came from: the peer's address, whether over TLS, and the region that it was signed for."""

    address: str
    is_secure: bool
    region: str = ""


class OfResource(NamedTuple):
    """What a resource's own policy says of one caller: `sufficient` by itself, because it names the caller or everybody; or
    `delegating`, because it names the caller's account, whose own grants must allow the same (so that only its refusals
    count)."""

    sufficient: Policy = NOTHING
    delegating: Policy = NOTHING


PoliciesOfTable = Mapping[str, Mapping[str, str]]
"""The policies of a table, as its properties have them: "" or the label of a stream -> {"text", "revision"}."""


class ResourcePolicies(NamedTuple):
    """The policies that resources have. `named`: as they were known lately, by namespace and table, for accesses that come
    without the table's descriptor; `read`: what a document says of a caller."""

    named: Mapping[tuple[str, str], PoliciesOfTable]
    read: Callable[[str, Identity], OfResource]


class Authorization:
    """What a request may do. Not shared between requests. `purpose` is said by the dialect as soon as it knows the operation."""

    __slots__ = (
        "_resources",
        "identity",
        "is_checked",
        "looks_up",
        "now_ms",
        "policy",
        "purpose",
        "source",
    )

    def __init__(
        self,
        policy: Policy,
        identity: Identity,
        source: Source,
        now_ms: int,
        resources: ResourcePolicies | None = None,
    ) -> None:
        self.policy = policy
        self.identity = identity
        self.purpose: Purpose = UNKNOWN_PURPOSE
        self.is_checked = False
        """Whether anything that the request asked for has been judged."""
        self.looks_up = False
        """Whether what commands find must be reviewed, too."""
        self.source = source
        self.now_ms = now_ms
        self._resources = resources

    def value(self, fact: Fact) -> str | None:
        """The value of a fact of the request around an access (conditions.Circumstances)."""
        match fact:
            case Fact.SOURCE_ADDRESS:
                return self.source.address
            case Fact.IS_SECURE:
                return "true" if self.source.is_secure else "false"
            case Fact.NOW:
                return str(self.now_ms / 1000)
            case Fact.REGION:
                return self.source.region or None
            case Fact.ACCOUNT:
                return self.identity.account
            case Fact.PRINCIPAL:
                return self.identity.arn
            case Fact.PRINCIPAL_KIND:
                return "User"
            case Fact.USER | Fact.USER_ID:
                return self.identity.access_id
        return None

    def refusal(self, commands: Sequence[AnyCommand]) -> NotPermitted | None:
        """Why commands may not be carried out; None: they all may. All are judged before any of them is done."""
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
                self.looks_up = True
            for access in accesses_of(command, purpose):
                self.is_checked = True
                verdict = self.judge(access)
                if verdict is not _ALLOWED:
                    return NotPermitted(access.permission, access.path, verdict.value)
                if is_own_read:
                    policy.remember_readable(access)
        return None

    def judge(self, access: Access) -> Verdict:
        """The verdict on one access, by the caller's grants and the policy of the resource."""
        policy = self.policy
        decision = policy.decisions.get(access[:4]) or policy.decide(access)
        own = decision.judge(access, self)
        if self._resources is None:
            return own
        theirs = self._of_resource(access.table, access.namespace, access.path)
        if theirs is None or self._may_rescue(access.permission):
            return own
        return _together(
            own,
            theirs.sufficient.decide(access).judge(access, self),
            theirs.delegating.decide(access).judge(access, self),
        )

    def _of_resource(self, table: Table | None, namespace: str, path: str) -> OfResource | None:
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
        return self._resources.read(found["text"], self.identity) if found else None

    def _may_rescue(self, permission: Permission) -> bool:
        """Whether a policy counts for nothing because it is to be removed by somebody who was granted everything, as an
        account's root may whatever the policy says (DeleteResourcePolicy, API reference)."""
        return permission is Permission.REMOVE_POLICY and self.policy is EVERYTHING

    def review(self, commands: Sequence[AnyCommand], outcomes: list[Any]) -> list[Any]:
        """Outcomes, and in place of those of look-ups that the caller must not hear of a refusal. What is not there is
        told only to who could do something with it, so that absent and forbidden are told alike."""
        self.looks_up = False
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
        if isinstance(command, ListBackups):
            return self._refusal_of_backups(command, outcome)
        if isinstance(outcome, Table):
            self.is_checked = True
            return self._unless(command.namespace, outcome.name, outcome.name, outcome)
        if isinstance(outcome, Stream):
            path = f"{outcome.table_name}/stream/{outcome.label}"
            return self._unless(command.namespace, outcome.table_name, path)
        if isinstance(command, FindTable) and isinstance(outcome, TableMissing):
            return self._unless(command.namespace, command.name, command.name)
        if isinstance(command, FindStream) and isinstance(outcome, StreamMissing):
            return self._unless(
                command.namespace, command.table_name, f"{command.table_name}/stream/{command.label}"
            )
        return None

    def _refusal_of_backups(self, command: ListBackups, outcome: Any) -> NotPermitted | None:
        """A list of backups that is not the answer itself leads to one of them."""
        if Permission.LIST_BACKUPS in self.purpose.permissions or not isinstance(outcome, list):
            return None
        if not outcome:
            name = command.table_name or ""
            return self._unless(command.namespace, name, f"{name}/backup")
        self.is_checked = True
        permission, way = self.purpose.permissions[0], self.purpose.way
        for backup in outcome:
            access = Access(permission, way, backup.namespace, backup_path(backup), command)
            verdict = self.judge(access)
            if verdict is not Verdict.ALLOWED:
                return NotPermitted(permission, access.path, verdict.value)
        return None

    def _unless(
        self, namespace: str, table: str, path: str, found: Table | None = None
    ) -> NotPermitted | None:
        verdict = self._may(namespace, table, path, found)
        permission, way = self.purpose.permissions[0], self.purpose.way
        if verdict is Verdict.ALLOWED and permission in _BY_LOOK_UP:
            exact = self.judge(Access(permission, way, namespace, path, None, found))
            verdict = verdict if exact is Verdict.NOT_ALLOWED else exact
        if verdict is Verdict.ALLOWED:
            return None
        return NotPermitted(permission, path, verdict.value)

    def _may(self, namespace: str, table: str, path: str, found: Table | None = None) -> Verdict:
        """Whether something of the purpose could be allowed on a table, by the caller's grants and the resource's policy."""
        purpose = self.purpose
        own = self.policy.may(purpose, namespace, table, self)
        theirs = self._of_resource(found, namespace, path)
        if theirs is None or self._may_rescue(purpose.permissions[0]):
            return own
        return _together(
            own,
            theirs.sufficient.may(purpose, namespace, table, self),
            theirs.delegating.may(purpose, namespace, table, self),
        )

    def _refusal_of_names(self, named: Iterable[tuple[str, str]]) -> NotPermitted | None:
        """Why the request cannot do what it is for to one of the tables that it names, whether or not they are there."""
        for namespace, table in named:
            verdict = self._may(namespace, table, table)
            if verdict is not Verdict.ALLOWED:
                return NotPermitted(self.purpose.permissions[0], table, verdict.value)
        return None

    def refusal_unasked(
        self, is_error: bool, named: Callable[[], Iterable[tuple[str, str]]]
    ) -> NotPermitted | None:
        """Why a request is refused that was answered without anything having been judged: it must be for something that the
        caller may do, to an account as a whole, or to the tables that it names. So authorization comes before whatever else
        is wrong with a request. `is_error`: the answer is one; `named`: gives these tables, as (namespace, name)."""
        if self.is_checked:
            return None
        self.is_checked = True
        permission, way = self.purpose.permissions[0], self.purpose.way
        if permission in OF_ACCOUNTS and not is_error:
            verdict = self.judge(Access(permission, way, "", "", None))
        else:
            tables = list(named())
            refusal = self._refusal_of_names(tables)
            if refusal is not None or tables:
                return refusal
            verdict = self.policy.may(self.purpose, "", "", self)
        return None if verdict is Verdict.ALLOWED else NotPermitted(permission, "", verdict.value)


def _together(own: Verdict, sufficient: Verdict, delegating: Verdict) -> Verdict:
    """IAM guide, "Policy evaluation logic", within one account: a refusal on either side refuses, an allowance on either side
    allows."""
    if own is Verdict.REFUSED:
        return own
    if Verdict.REFUSED in (sufficient, delegating):
        return Verdict.REFUSED_BY_RESOURCE
    return Verdict.ALLOWED if Verdict.ALLOWED in (own, sufficient) else Verdict.NOT_ALLOWED

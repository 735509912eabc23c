"""What one request of one caller may do: its grants, who it is, what is known around it, and what it is for.

`refusal` judges commands before they are carried out, `review` what a look-up has found. Callers who may do everything have no
authorization at all. Pure; the one place that asks is gateway/security/authorizing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gateway.model.accesses import Access, accesses_of, backup_path
from gateway.model.changes import Stream
from gateway.model.commands import AnyCommand, FindStream, FindTable, Get, ListBackups
from gateway.model.conditions import Fact
from gateway.model.errors import NotPermitted, StreamMissing, TableMissing
from gateway.model.grants import Policy, Verdict
from gateway.model.permissions import OF_ACCOUNTS, UNKNOWN_PURPOSE, Permission, Purpose
from gateway.model.tables import Table

# To look a member up takes longer than a call of C.
_ALLOWED, _READ = Verdict.ALLOWED, Permission.READ
_LOOK_UPS = frozenset({FindTable, FindStream, ListBackups})


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


class Authorization:
    """What a request may do. Not shared between requests. `purpose` is said by the dialect as soon as it knows the operation."""

    __slots__ = (
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
        purpose = self.purpose
        for command in commands:
            kind = type(command)
            if kind is Get:  # by far the commonest; mostly it has been decided
                table = command.table  # type: ignore[union-attr]
                decided = self.policy.decisions.get((_READ, purpose[1], table.namespace, table.name))
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
        return None

    def judge(self, access: Access) -> Verdict:
        """The verdict on one access."""
        policy = self.policy
        decision = policy.decisions.get(access[:4]) or policy.decide(access)
        return decision.judge(access, self)

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
            return self._unless(command.namespace, outcome.name, outcome.name)
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

    def _unless(self, namespace: str, table: str, path: str) -> NotPermitted | None:
        verdict = self.policy.may(self.purpose, namespace, table, self)
        if verdict is Verdict.ALLOWED:
            return None
        return NotPermitted(self.purpose.permissions[0], path, verdict.value)

    def _refusal_of_names(self, named: Iterable[tuple[str, str]]) -> NotPermitted | None:
        """Why the request cannot do what it is for to one of the tables that it names, whether or not they are there."""
        for namespace, table in named:
            verdict = self.policy.may(self.purpose, namespace, table, self)
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
            refusal = self._refusal_of_names(named())
            if refusal is not None:
                return refusal
            verdict = self.policy.may(self.purpose, "", "", self)
        return None if verdict is Verdict.ALLOWED else NotPermitted(permission, "", verdict.value)

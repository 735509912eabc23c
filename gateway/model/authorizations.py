"""What one request of one caller may do: its grants, who it is, what is known around it, and what it is for.

`refusal` judges commands before they are carried out, `review` what a look-up has found. Callers who may do everything have no
authorization at all. Pure; the one place that asks is gateway/security/authorizing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gateway.model.accesses import Access, accesses_of, backup_path
from gateway.model.changes import Stream
from gateway.model.commands import AnyCommand, FindStream, FindTable, ListBackups
from gateway.model.conditions import Fact
from gateway.model.errors import NotPermitted, StreamMissing, TableMissing
from gateway.model.grants import NOTHING, Policy, Verdict
from gateway.model.permissions import OF_ACCOUNTS, UNKNOWN_PURPOSE, Permission, Purpose
from gateway.model.tables import Table


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


PolicyOfResource = Callable[[Table, str, Identity], OfResource | None]
"""The policy of a table, or of the part of it that a path names; None: it has none."""


class Authorization:
    """What a request may do. Not shared between requests. `purpose` is said by the dialect as soon as it knows the operation."""

    __slots__ = (
        "_now_ms",
        "_of_resource",
        "identity",
        "is_checked",
        "policy",
        "purpose",
        "refused",
        "source",
    )

    def __init__(
        self,
        policy: Policy,
        identity: Identity,
        source: Source,
        now_ms: Callable[[], int],
        of_resource: PolicyOfResource | None = None,
    ) -> None:
        self.policy = policy
        self.identity = identity
        self.purpose: Purpose = UNKNOWN_PURPOSE
        self.is_checked = False
        """Whether anything that the request asked for has been judged."""
        self.source = source
        self._now_ms = now_ms
        self._of_resource = of_resource

    def value(self, fact: Fact) -> str | None:
        """The value of a fact of the request around an access (conditions.Circumstances)."""
        match fact:
            case Fact.SOURCE_ADDRESS:
                return self.source.address
            case Fact.IS_SECURE:
                return "true" if self.source.is_secure else "false"
            case Fact.NOW:
                return str(self._now_ms() / 1000)
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
        for command in commands:
            for access in accesses_of(command, self.purpose):
                self.is_checked = True
                verdict = self.judge(access)
                if verdict is not Verdict.ALLOWED:
                    return NotPermitted(access.permission, access.path, verdict.value)
        return None

    def judge(self, access: Access) -> Verdict:
        """The verdict on one access, by the caller's grants and the policy of the resource."""
        decision = self.policy.decide(access)
        if self._of_resource is not None and access.table is not None:
            of_resource = self._of_resource(access.table, access.path, self.identity)
            if of_resource is not None:
                return self._judge_both(access, of_resource)
        if decision.verdict is not None:
            return decision.verdict
        return decision.judge(access.facts, self)

    def _judge_both(self, access: Access, of_resource: OfResource) -> Verdict:
        """IAM guide, "Policy evaluation logic", within one account: a refusal on either side refuses, an allowance on either side
        allows."""
        facts = access.facts
        own = self.policy.decide(access).judge(facts, self)
        sufficient = of_resource.sufficient.decide(access).judge(facts, self)
        if own is Verdict.REFUSED:
            return own
        if Verdict.REFUSED in (sufficient, of_resource.delegating.decide(access).judge(facts, self)):
            return Verdict.REFUSED_BY_RESOURCE
        return Verdict.ALLOWED if Verdict.ALLOWED in (own, sufficient) else Verdict.NOT_ALLOWED

    def review(self, commands: Sequence[AnyCommand], outcomes: list[Any]) -> list[Any]:
        """Outcomes, and in place of those of look-ups that the caller must not hear of a refusal. What is not there is
        told only to who could do something with it, so that absent and forbidden are told alike."""
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
        verdict = self.policy.may(self.purpose, namespace, table, self)
        if found is not None and self._of_resource is not None and verdict is not Verdict.REFUSED:
            of_resource = self._of_resource(found, found.name, self.identity)
            if of_resource is not None:
                theirs = of_resource.sufficient.may(self.purpose, namespace, table, self)
                if theirs is Verdict.REFUSED:
                    verdict = Verdict.REFUSED_BY_RESOURCE
                elif theirs is Verdict.ALLOWED:
                    verdict = theirs
        if verdict is Verdict.ALLOWED:
            return None
        return NotPermitted(self.purpose.permissions[0], path, verdict.value)

    def refusal_of_name(self, namespace: str, table: str) -> NotPermitted | None:
        """Why a request cannot do what it is for to a table of that name; None: it may be able to. What the table's own
        policy says is not known before it is looked up."""
        verdict = self.policy.may(self.purpose, namespace, table, self)
        if verdict is Verdict.ALLOWED or (verdict is Verdict.NOT_ALLOWED and self._of_resource is not None):
            return None
        self.is_checked = True
        return NotPermitted(self.purpose.permissions[0], table, verdict.value)

    def refusal_unasked(self, is_error: bool) -> NotPermitted | None:
        """Why a request is refused that was answered without anything having been judged: it must be for something that the
        caller may do, to an account as a whole or, as far as can be said, to anything at all. `is_error`: the answer is one."""
        if self.is_checked:
            return None
        self.is_checked = True
        permission, way = self.purpose.permissions[0], self.purpose.way
        if permission in OF_ACCOUNTS and not is_error:
            verdict = self.judge(Access(permission, way, "", "", None))
        else:
            verdict = self.policy.may(self.purpose, "", "", self)
        return None if verdict is Verdict.ALLOWED else NotPermitted(permission, "", verdict.value)

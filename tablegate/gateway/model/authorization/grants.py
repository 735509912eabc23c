"""Grants: statements that allow or deny actions of callers on resources, under conditions. Explicit denials take
precedence.

    Action       a permission and the channel that requests it (model/authorization/permissions.py)
    Access       an operation of a command on one resource (`Command.accesses`)
    Statement    allows or denies actions on resources if its conditions hold
    Policy       a tuple of statements

Pure: independent of the dialects and of how grants are stored. gateway/security/ converts IAM documents and
the forms of the other dialects. Evaluation follows "Policy evaluation logic" of the IAM guide: access is denied unless
it is allowed, and an explicit denial overrides every allowance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.authorization.accesses import ANYWHERE, Access
from tablegate.gateway.model.authorization.conditions import (
    EVERY,
    POSSIBLE,
    AccessFacts,
    AuthorizationContext,
    Condition,
    ConditionKey,
    Glob,
)
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission, Purpose
from tablegate.gateway.model.values.keys import KeySchema

_DECISIONS_KEPT = 4096
_LONGEST_KEPT_BYTES = 128
# Clients may send any name. Paths of existing resources are not longer.
_LONGEST_KEPT_PATH = 1024
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)


class Effect(Enum):
    """The effect of a statement on the accesses that it covers."""

    ALLOW = "allow"
    DENY = "deny"


class Verdict(Enum):
    """The result for an access.

    It is allowed, not allowed by any statement, or explicitly denied. The denial comes from the caller's grants or from
    the policy of the resource.
    """

    ALLOWED = "allowed"
    NOT_ALLOWED = "not allowed"
    REFUSED = "refused"
    REFUSED_BY_RESOURCE = "refused by the resource's policy"

    # The inherited __hash__ is a Python function. Verdicts are dictionary keys.
    __hash__ = object.__hash__


class TableLocation(NamedTuple):
    """The location of a table in terms of policies: an account and a region, or an instance.

    An empty part is unknown, and no pattern is compared with it.
    """

    account: str = ""
    region: str = ""
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources by pattern.

    `path` is matched against "TABLE", "TABLE/index/INDEX", "TABLE/stream/LABEL", or "" for resources outside of tables.
    The other patterns are matched against the location of the table, if the namespace has one.
    """

    path: Glob
    region: Glob = EVERY
    account: Glob = EVERY
    instance: Glob = EVERY

    def covers(self, location: TableLocation, path: str) -> bool:
        return self._covers_location(location) and self.path.matches(path)

    def _covers_location(self, location: TableLocation) -> bool:
        return all(
            not part or pattern.matches(part)
            for part, pattern in zip(location, (self.account, self.region, self.instance), strict=True)
        )


# A global name is faster to read than a member of an enumeration.
_ALLOW, _ALLOWED, _REFUSED = Effect.ALLOW, Verdict.ALLOWED, Verdict.REFUSED


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that allows or denies actions on resources if all conditions hold.

    `excludes`: it covers all resources except those listed.
    """

    effect: Effect
    actions: frozenset[GrantAction]
    resources: tuple[Resources, ...]
    conditions: tuple[Condition, ...] = ()
    excludes: bool = False

    def covers(self, access: Access) -> bool:
        """Return True if the statement covers the action and the resource. Conditions are ignored."""
        if (access.permission, access.channel) not in self.actions:
            return False
        location = location_of(access.namespace)
        return any(pattern.covers(location, access.path) for pattern in self.resources) is not self.excludes

    def can_cover(self, purpose: Purpose) -> bool:
        """Return True if the statement covers some permission of a purpose on some resource."""
        if not any((permission, purpose.channel) in self.actions for permission in purpose.permissions):
            return False
        return not (self.excludes and any(pattern.path.matches(ANYWHERE) for pattern in self.resources))

    def must_cover(self, purpose: Purpose) -> bool:
        """Return True if the statement covers every permission of a purpose on every resource."""
        if not all((permission, purpose.channel) in self.actions for permission in purpose.permissions):
            return False
        return any(pattern.path.matches("") for pattern in self.resources) is not self.excludes

    def holds(self, facts: AccessFacts, context: AuthorizationContext) -> bool:
        """Return True if all conditions hold. An uncertain fact makes an allowance fail and a denial hold."""
        is_allowance = self.effect is _ALLOW
        # A loop is faster than `all` with a generator, and this runs for every row that is read.
        for condition in self.conditions:
            if not condition.holds(facts, context, is_allowance):
                return False
        return True


class Decision(NamedTuple):
    """The result for one action on one resource that needs no facts of an access.

    If `verdict` is None, the result depends on the conditions of the statements. `is_by_partition`: these conditions
    depend on the partition only.
    """

    verdict: Verdict | None
    allowing: tuple[Statement, ...] = ()
    refusing: tuple[Statement, ...] = ()
    is_by_partition: bool = False

    def judge(self, facts: AccessFacts, context: AuthorizationContext) -> Verdict:
        if self.verdict is not None:
            return self.verdict
        for statement in self.refusing:
            if statement.holds(facts, context):
                return _REFUSED
        for statement in self.allowing:
            if statement.holds(facts, context):
                return _ALLOWED
        return Verdict.NOT_ALLOWED


@dataclass(frozen=True, slots=True)
class Policy:
    """An immutable set of grants. A change of grants makes a new policy."""

    statements: tuple[Statement, ...]
    decisions: dict[tuple[Permission, Channel, str, str], Decision] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of decisions by permission, channel, namespace and path."""
    readable: dict[tuple[Channel, str, str, bytes], KeySchema] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Cache of partitions that may be read, if that depends on the partition only.

    The key is channel, namespace, table and encoded partition. The value is the schema that decoded the partition.
    """

    @property
    def is_everything(self) -> bool:
        """True if the policy allows everything unconditionally."""
        return not any(statement.effect is Effect.DENY for statement in self.statements) and any(
            statement.actions == EVERY_ACTION
            and not statement.conditions
            and not statement.excludes
            and any(resources == Resources(EVERY) for resources in statement.resources)
            for statement in self.statements
        )

    @property
    def allows_anything(self) -> bool:
        """True if the policy has an allowance."""
        return any(statement.effect is _ALLOW for statement in self.statements)

    def decide(self, access: Access) -> Decision:
        """Return the decision that needs no facts of the access, from the cache if possible."""
        key = access[:4]
        decision = self.decisions.get(key)
        if decision is None:
            decision = decide(self.statements, access)
            if len(access.path) <= _LONGEST_KEPT_PATH:
                if len(self.decisions) >= _DECISIONS_KEPT:
                    self.decisions.clear()
                self.decisions[key] = decision
        return decision

    def remember_readable(self, access: Access) -> None:
        """Cache the partition of an allowed Get, if the decision depended on the partition only."""
        _, channel, namespace, name, get, table = access
        partition = get.position.partition
        if (
            table is not None
            and self.decide(access).is_by_partition
            and len(partition) <= _LONGEST_KEPT_BYTES
        ):
            if len(self.readable) >= _DECISIONS_KEPT:
                self.readable.clear()
            self.readable[channel, namespace, name, partition] = table.key_schema

    def possible_verdict(self, purpose: Purpose, context: AuthorizationContext) -> Verdict:
        """Return the verdict on a purpose without a known resource: allowed if some resource could be allowed."""
        for statement in self.statements:
            if (
                statement.effect is Effect.DENY
                and statement.must_cover(purpose)
                and statement.holds(POSSIBLE, context)
            ):
                return Verdict.REFUSED
        for statement in self.statements:
            if (
                statement.effect is Effect.ALLOW
                and statement.can_cover(purpose)
                and statement.holds(POSSIBLE, context)
            ):
                return Verdict.ALLOWED
        return Verdict.NOT_ALLOWED


def decide(statements: Sequence[Statement], access: Access) -> Decision:
    """Evaluate statements for an action and a resource, and select those whose conditions each access must be tested
    against."""
    covering = [statement for statement in statements if statement.covers(access)]
    refusing = tuple(statement for statement in covering if statement.effect is Effect.DENY)
    allowing = tuple(statement for statement in covering if statement.effect is Effect.ALLOW)
    if any(not statement.conditions for statement in refusing):
        return Decision(Verdict.REFUSED)
    if not allowing and not refusing:
        return Decision(Verdict.NOT_ALLOWED)
    if not refusing and any(not statement.conditions for statement in allowing):
        return Decision(Verdict.ALLOWED)
    facts = {condition.fact for statement in covering for condition in statement.conditions}
    return Decision(None, allowing, refusing, facts == {ConditionKey.LEADING_KEYS})


EVERY_ACTION = frozenset((permission, channel) for permission in Permission for channel in Channel)
EVERYTHING = Policy((Statement(Effect.ALLOW, EVERY_ACTION, (Resources(EVERY),)),))
NOTHING = Policy(())
DENY_ALL = Policy((Statement(Effect.DENY, EVERY_ACTION, (Resources(EVERY),)),))


def location_of(namespace: str) -> TableLocation:
    """Return the location that a namespace names, if there is one namespace for each location.

    Namespaces of access keys have no account, so that patterns are compared with the region only.
    """
    kind, _, name = namespace.partition("/")
    if kind == "tablestore":
        return TableLocation(instance=name)
    account, _, region = name.partition("/")
    if kind != "aws":
        return TableLocation()
    return TableLocation(account if _ACCOUNT.fullmatch(account) else "", region)

"""Grants: who holds them may do what, to what, under which conditions; an explicit refusal wins.

    Door         a permission and the way in which it is asked for (model/authorization/permissions.py)
    Access       one thing that a command does to one resource (model/authorization/command_accesses.py says which those are)
    Statement    allows or refuses permissions on resources, if its conditions hold
    Policy       statements; `judge` is the whole meaning of them

Pure: knows neither dialects nor where grants are kept. IAM's documents and the other dialects' forms become this
(gateway/security/policies/). Evaluation follows "Policy evaluation logic" of the IAM guide: refused unless allowed, and an
explicit refusal beats every allowance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.authorization.accesses import ANYWHERE, Access
from tablegate.gateway.model.authorization.conditions import (
    POSSIBLE,
    AccessFacts,
    AuthorizationContext,
    Condition,
    ConditionKey,
)
from tablegate.gateway.model.authorization.globs import EVERY, Glob
from tablegate.gateway.model.authorization.permissions import Channel, Door, Permission, Purpose
from tablegate.gateway.model.values.keys import KeySchema

_DECISIONS_KEPT = 4096
_LONGEST_KEPT_BYTES = 128
# Clients may name anything. No resource that exists has a longer path.
_LONGEST_KEPT_PATH = 1024
_ACCOUNT = re.compile(r"\d{12}", re.ASCII)


class Effect(Enum):
    """What a statement says to what it is about."""

    ALLOW = "allow"
    DENY = "deny"


class Verdict(Enum):
    """What comes of an access: allowed, refused because nothing allows it, or because something refuses it: the caller's own
    grants, or the policy that the resource has."""

    ALLOWED = "allowed"
    NOT_ALLOWED = "not allowed"
    REFUSED = "refused"
    REFUSED_BY_RESOURCE = "refused by the resource's policy"

    # Verdicts are looked up; the default hashes the name through a Python-level __hash__.
    __hash__ = object.__hash__


class TableLocation(NamedTuple):
    """Where a table is, as policies name it: an account and a region, or an instance. "": nobody can say, and no
    pattern looks."""

    account: str = ""
    region: str = ""
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources by pattern. `path` is matched against "TABLE", "TABLE/index/INDEX", "TABLE/stream/LABEL", or "" for what is no
    table's; the others against the place of a table where tables are kept apart by it."""

    path: Glob
    region: Glob = EVERY
    account: Glob = EVERY
    instance: Glob = EVERY

    def covers(self, place: TableLocation, path: str) -> bool:
        """Whether a resource is among these."""
        return self._covers_place(place) and self.path.matches(path)

    def _covers_place(self, place: TableLocation) -> bool:
        return all(
            not part or pattern.matches(part)
            for part, pattern in zip(place, (self.account, self.region, self.instance), strict=True)
        )


# To look a member up takes longer than a call of C.
_ALLOW, _ALLOWED, _REFUSED = Effect.ALLOW, Verdict.ALLOWED, Verdict.REFUSED


@dataclass(frozen=True, slots=True)
class Statement:
    """Allows or refuses to go through doors to resources, if all conditions hold. `excludes`: to all resources but these."""

    effect: Effect
    doors: frozenset[Door]
    resources: tuple[Resources, ...]
    conditions: tuple[Condition, ...] = ()
    excludes: bool = False

    def covers(self, access: Access) -> bool:
        """Whether it is about this permission and this resource, whatever its conditions."""
        if (access.permission, access.way) not in self.doors:
            return False
        place = place_of(access.namespace)
        return any(each.covers(place, access.path) for each in self.resources) is not self.excludes

    def may_cover(self, purpose: Purpose) -> bool:
        """True if it is about some permission of a purpose on some resource."""
        if not any((permission, purpose.way) in self.doors for permission in purpose.permissions):
            return False
        return not (self.excludes and any(each.path.matches(ANYWHERE) for each in self.resources))

    def must_cover(self, purpose: Purpose) -> bool:
        """True if it is about every permission of a purpose on every resource."""
        if not all((permission, purpose.way) in self.doors for permission in purpose.permissions):
            return False
        return any(each.path.matches("") for each in self.resources) is not self.excludes

    def holds(self, facts: AccessFacts, circumstances: AuthorizationContext) -> bool:
        """Whether all conditions hold. What is not known for certain makes an allowance fail and a refusal hold."""
        is_allowance = self.effect is _ALLOW
        for each in (
            self.conditions
        ):  # as `all` would have it, without a generator: it is asked of every row that is read
            if not each.holds(facts, circumstances, is_allowance):
                return False
        return True


class Decision(NamedTuple):
    """What can be said of accesses through one door to one resource without their facts. `verdict` None: it depends on which
    of these statements' conditions hold. `is_by_partition`: they ask for nothing but the partition."""

    verdict: Verdict | None
    allowing: tuple[Statement, ...] = ()
    refusing: tuple[Statement, ...] = ()
    is_by_partition: bool = False

    def judge(self, facts: AccessFacts, circumstances: AuthorizationContext) -> Verdict:
        """The verdict on one access."""
        if self.verdict is not None:
            return self.verdict
        for each in self.refusing:
            if each.holds(facts, circumstances):
                return _REFUSED
        for each in self.allowing:
            if each.holds(facts, circumstances):
                return _ALLOWED
        return Verdict.NOT_ALLOWED


@dataclass(frozen=True, slots=True)
class Policy:
    """What somebody was granted. Frozen; a change of grants is another policy."""

    statements: tuple[Statement, ...]
    decisions: dict[tuple[Permission, Channel, str, str], Decision] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What was decided lately, by door, namespace and path."""
    readable: dict[tuple[Channel, str, str, bytes], KeySchema] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Partitions whose rows were found to be readable where that depends on nothing else, by way, namespace, table and the bytes
    of the partition; and the schema by which these were read."""

    @property
    def is_everything(self) -> bool:
        """Whether it allows everything, always."""
        return not any(each.effect is Effect.DENY for each in self.statements) and any(
            each.doors == EVERY_DOOR
            and not each.conditions
            and not each.excludes
            and any(resources == Resources(EVERY) for resources in each.resources)
            for each in self.statements
        )

    def decide(self, access: Access) -> Decision:
        """What can be said without the facts of an access."""
        key = access[:4]
        found = self.decisions.get(key)
        if found is None:
            found = decide(self.statements, access)
            if len(access.path) <= _LONGEST_KEPT_PATH:
                if len(self.decisions) >= _DECISIONS_KEPT:
                    self.decisions.clear()
                self.decisions[key] = found
        return found

    def remember_readable(self, access: Access) -> None:
        """Take note of a Get that this policy allowed, where that depended on nothing but the partition."""
        _, way, namespace, name, get, table = access
        partition = get.position.partition
        if (
            table is not None
            and self.decide(access).is_by_partition
            and len(partition) <= _LONGEST_KEPT_BYTES
        ):
            if len(self.readable) >= _DECISIONS_KEPT:
                self.readable.clear()
            self.readable[way, namespace, name, partition] = table.key_schema

    def may(self, purpose: Purpose, circumstances: AuthorizationContext) -> Verdict:
        """The verdict on a purpose before it is known what it is about: allowed if it could be allowed on some resource."""

        def holds(statement: Statement, is_allowance: bool) -> bool:
            return all(each.holds(POSSIBLE, circumstances, is_allowance) for each in statement.conditions)

        for each in self.statements:
            if each.effect is Effect.DENY and each.must_cover(purpose) and holds(each, False):
                return Verdict.REFUSED
        for each in self.statements:
            if each.effect is Effect.ALLOW and each.may_cover(purpose) and holds(each, True):
                return Verdict.ALLOWED
        return Verdict.NOT_ALLOWED


def decide(statements: Sequence[Statement], access: Access) -> Decision:
    """What statements say of a door and a resource, and which of them must be asked for each access."""
    about = [each for each in statements if each.covers(access)]
    refusing = tuple(each for each in about if each.effect is Effect.DENY)
    allowing = tuple(each for each in about if each.effect is Effect.ALLOW)
    if any(not each.conditions for each in refusing):
        return Decision(Verdict.REFUSED)
    if not allowing and not refusing:
        return Decision(Verdict.NOT_ALLOWED)
    if not refusing and any(not each.conditions for each in allowing):
        return Decision(Verdict.ALLOWED)
    facts = {condition.fact for each in about for condition in each.conditions}
    return Decision(None, allowing, refusing, facts == {ConditionKey.LEADING_KEYS})


EVERY_DOOR = frozenset((permission, way) for permission in Permission for way in Channel)
EVERYTHING = Policy((Statement(Effect.ALLOW, EVERY_DOOR, (Resources(EVERY),)),))
NOTHING = Policy(())
REFUSING_ALL = Policy((Statement(Effect.DENY, EVERY_DOOR, (Resources(EVERY),)),))


def place_of(namespace: str) -> TableLocation:
    """The place that the name of a namespace says, where there is one for each place. (By key instead of account: then patterns
    look at the region alone.)"""
    kind, _, rest = namespace.partition("/")
    if kind == "tablestore":
        return TableLocation(instance=rest)
    account, _, region = rest.partition("/")
    if kind != "aws":
        return TableLocation()
    return TableLocation(account if _ACCOUNT.fullmatch(account) else "", region)

"""Conditions of grants: operators on facts of an access and of its request, and glob patterns.

A fact is a collection of values, absent (None), or unbounded (EVERYTHING). A scan reads every partition, and a read
without a projection every attribute. For an unbounded fact no allowance holds and every denial does. A grant of certain
partitions or attributes covers these only. IAM treats such a fact as absent, and `ForAllValues` is true of an absent
fact. docs/operate/grants.md lists the differences.

Operators are those of the IAM guide, "IAM JSON policy elements: Condition operators".

`*` matches any sequence of characters and `?` one character. Substituted values, such as the name of a caller, are
literal: a `*` in them is no wildcard.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

MANY, ANY_ONE = "*", "?"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern as a sequence of (character, is wildcard). `stops_at`: a character that wildcards do not match."""

    steps: tuple[tuple[str, bool], ...]
    stops_at: str = ""
    _parts: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """The literal texts between `*` wildcards. None if the pattern has other wildcards or `stops_at`."""
    _pieces: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    """The patterns between the `stops_at` characters. Empty without `stops_at`."""

    def __post_init__(self) -> None:
        parts = None if self.stops_at else _parts_of(self.steps)
        pieces = _pieces_of(self.steps, self.stops_at) if self.stops_at else ()
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_pieces", pieces)

    @classmethod
    def of(cls, text: str, stops_at: str = "") -> Glob:
        """Parse a pattern."""
        return cls(tuple(_steps(text)), stops_at)

    @classmethod
    def literal(cls, text: str) -> Glob:
        """Return the pattern that matches only this text."""
        return cls(tuple((character, False) for character in text))

    def __add__(self, other: Glob) -> Glob:
        return Glob(self.steps + other.steps, self.stops_at)

    def matches(self, text: str) -> bool:
        """Return True if the pattern matches the whole text."""
        if self.stops_at:
            # No wildcard matches that character, so the text has it exactly where the pattern has it.
            pieces = text.split(self.stops_at, len(self._pieces))
            return len(pieces) == len(self._pieces) and all(map(Glob.matches, self._pieces, pieces))
        parts = self._parts
        if parts is None:
            return len(self.steps) in self._positions_after(text)
        if len(parts) == 1:
            return text == parts[0]
        first, last = parts[0], parts[-1]
        if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
            return False
        at, end = len(first), len(text) - len(last)
        for part in parts[1:-1]:
            at = text.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True

    def _positions_after(self, text: str) -> set[int]:
        """Return the numbers of steps that may be matched after the whole text.

        The simulation needs at most len(pattern) * len(text) steps.
        """
        positions = self._closure({0})
        for character in text:
            next_positions = set()
            for at in positions:
                if at == len(self.steps):
                    continue
                step, is_wildcard = self.steps[at]
                if is_wildcard and step == MANY:
                    next_positions.add(at)
                elif is_wildcard or step == character:
                    next_positions.add(at + 1)
            positions = self._closure(next_positions)
            if not positions:
                break
        return positions

    def _closure(self, positions: set[int]) -> set[int]:
        """Add the positions after `*` wildcards that match nothing."""
        for at in tuple(positions):
            while at < len(self.steps) and self.steps[at] == (MANY, True):
                at += 1
                positions.add(at)
        return positions


def _parts_of(steps: tuple[tuple[str, bool], ...]) -> tuple[str, ...] | None:
    parts = [""]
    for step, is_wildcard in steps:
        if is_wildcard and step == ANY_ONE:
            return None
        if is_wildcard:
            parts.append("")
        else:
            parts[-1] += step
    return tuple(parts)


def _pieces_of(steps: tuple[tuple[str, bool], ...], stops_at: str) -> tuple[Glob, ...]:
    pieces: list[list[tuple[str, bool]]] = [[]]
    for step in steps:
        if step == (stops_at, False):
            pieces.append([])
        else:
            pieces[-1].append(step)
    return tuple(Glob(tuple(piece)) for piece in pieces)


def _steps(text: str) -> Iterator[tuple[str, bool]]:
    previous = ""
    for character in text:
        if not (character == previous == MANY):
            yield character, character in (MANY, ANY_ONE)
        previous = character


EVERY = Glob.of(MANY)


class AnyValue(Enum):
    """The type of EVERYTHING: the value of an unbounded fact."""

    EVERYTHING = "everything"


class NotYetKnown(Enum):
    """The type of UNDETERMINED: the value of a fact that is not known yet. Every condition on it is possible."""

    UNDETERMINED = "undetermined"


EVERYTHING: Final = AnyValue.EVERYTHING
UNDETERMINED: Final = NotYetKnown.UNDETERMINED
FactValues = Collection[str] | AnyValue | NotYetKnown | None


class ConditionKey(Enum):
    """A fact that conditions can test."""

    # Facts of an access
    LEADING_KEYS = "leading-keys"
    ATTRIBUTES = "attributes"
    SELECT = "select"
    RETURN_VALUES = "return-values"
    ENCLOSING = "enclosing-operation"
    FULL_SCAN = "full-scan"
    # Facts of the request
    SOURCE_ADDRESS = "source-address"
    IS_SECURE = "is-secure"
    NOW = "now"
    REGION = "region"
    ACCOUNT = "account"
    PRINCIPAL = "principal"
    PRINCIPAL_KIND = "principal-kind"
    USER = "user"
    USER_ID = "user-id"
    # Facts of a calling service: always absent, since there are none
    SOURCE_RESOURCE = "source-resource"
    SOURCE_ACCOUNT = "source-account"
    # The caller's organization: always absent, since accounts belong to none
    ORGANIZATION = "organization"

    __hash__ = object.__hash__


ACCESS_KEYS = frozenset(
    {
        ConditionKey.LEADING_KEYS,
        ConditionKey.ATTRIBUTES,
        ConditionKey.SELECT,
        ConditionKey.RETURN_VALUES,
        ConditionKey.ENCLOSING,
        ConditionKey.FULL_SCAN,
    }
)
MANY_VALUED = frozenset({ConditionKey.LEADING_KEYS, ConditionKey.ATTRIBUTES})


class AccessFacts(Protocol):
    """The facts of an access."""

    def values_of(self, fact: ConditionKey) -> FactValues:
        """Return the values of a fact of ACCESS_KEYS."""
        ...


class AuthorizationContext(Protocol):
    """The facts of the request around an access."""

    def value(self, fact: ConditionKey) -> str | None:
        """Return the value of a fact that is not in ACCESS_KEYS."""
        ...


class _PossibleFacts:
    """Facts of an access that is not known yet."""

    def values_of(self, fact: ConditionKey) -> FactValues:
        return UNDETERMINED


POSSIBLE: Final = _PossibleFacts()


class Quantifier(Enum):
    """The number of values of a fact that must match."""

    ONE = "the one"
    ALL = "for all values"
    ANY = "for any value"


Test = Callable[[str], bool]
"""Returns True if a value of a fact matches a condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one fact.

    - `test`: the test of a value. With None, only the presence of the fact is tested.
    - `negated`: the result of the test is inverted.
    - `if_exists`: the condition holds if the fact is absent.
    - `is_absent`: the condition holds if the fact is absent, not if it is present. Used without `test`.
    """

    fact: ConditionKey
    test: Test | None
    negated: bool = False
    quantifier: Quantifier = Quantifier.ONE
    if_exists: bool = False
    is_absent: bool = False

    def holds(self, facts: AccessFacts, context: AuthorizationContext, is_allowance: bool) -> bool:
        """Return True if the condition holds. An uncertain result is False for an allowance and True for a denial."""
        values: FactValues
        if self.fact in ACCESS_KEYS:
            values = facts.values_of(self.fact)
        else:
            value = context.value(self.fact)
            values = None if value is None else (value,)
        if values is UNDETERMINED:
            return is_allowance
        if self.test is None:
            return (values is None or values is EVERYTHING) is self.is_absent
        if values is EVERYTHING:
            return not is_allowance
        if not values:
            return self._holds_of_none()
        if len(values) == 1:
            [value] = values
            return self.test(value) is not self.negated
        results = [self.test(value) is not self.negated for value in values]
        if self.quantifier is Quantifier.ANY:
            return any(results)
        if self.quantifier is Quantifier.ALL:
            return all(results)
        # A single-valued fact with two values: the ReturnValues of success and of failure.
        return all(results) if is_allowance else any(results)

    def _holds_of_none(self) -> bool:
        if self.if_exists or self.quantifier is Quantifier.ALL:
            return True
        return self.negated and self.quantifier is Quantifier.ONE


def in_networks(networks: Collection[Any]) -> Test:
    """Return a test for membership of an address in some network. IPv4 networks contain IPv4-mapped IPv6 addresses."""

    def test(value: str) -> bool:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address.version == network.version and address in network for network in networks)

    return test

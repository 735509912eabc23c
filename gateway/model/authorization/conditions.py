"""Conditions of grants: operators over what is known of an access and of the request around it.

Three things can be known of a fact: its values; that there is none (None); or that it is about everything (EVERYTHING) - a scan
reads every partition, a read without a projection every attribute. Of the last, no allowance holds and every refusal does: a
grant that names partitions or attributes is for these. (IAM takes such a fact for absent, and for `ForAllValues` an absent
fact is as good as a right one; docs/operate/grants.md says where that differs.)

Operators are those of the IAM guide, "IAM JSON policy elements: Condition operators".
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol


class AnyValue(Enum):
    """The value of a fact that is about all there is."""

    EVERYTHING = "everything"


class NotYetKnown(Enum):
    """The value of a fact that will be known later: whatever is needed."""

    UNSAID = "unsaid"


EVERYTHING: Final = AnyValue.EVERYTHING
UNSAID: Final = NotYetKnown.UNSAID
Known = Collection[str] | AnyValue | NotYetKnown | None


class ConditionKey(Enum):
    """What conditions may ask for."""

    # Of an access
    LEADING_KEYS = "leading-keys"
    ATTRIBUTES = "attributes"
    SELECT = "select"
    RETURN_VALUES = "return-values"
    ENCLOSING = "enclosing-operation"
    FULL_SCAN = "full-scan"
    # Of the request around it
    SOURCE_ADDRESS = "source-address"
    IS_SECURE = "is-secure"
    NOW = "now"
    REGION = "region"
    ACCOUNT = "account"
    PRINCIPAL = "principal"
    PRINCIPAL_KIND = "principal-kind"
    USER = "user"
    USER_ID = "user-id"
    # Of a service that acts for somebody: never there, since none does
    SOURCE_RESOURCE = "source-resource"
    SOURCE_ACCOUNT = "source-account"
    # Of the caller's organization: never there, since accounts belong to none
    ORGANIZATION = "organization"

    __hash__ = object.__hash__


OF_ACCESSES = frozenset(
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
    """What is known of an access."""

    def known(self, fact: ConditionKey) -> Known:
        """The values of a fact of OF_ACCESSES."""
        ...


class AuthorizationContext(Protocol):
    """What is known of the request around an access."""

    def value(self, fact: ConditionKey) -> str | None:
        """The value of a fact that is not of OF_ACCESSES."""
        ...


class _PossibleFacts:
    """The facts of an access before it is known what it is."""

    def known(self, fact: ConditionKey) -> Known:
        """Whatever is needed."""
        return UNSAID


POSSIBLE: Final = _PossibleFacts()


class Quantifier(Enum):
    """How many of a fact's values must be right."""

    ONE = "the one"
    ALL = "for all values"
    ANY = "for any value"


Test = Callable[[str], bool]
"""Whether a value of a fact is one that a condition names."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one fact. `test`: whether a value is among those named, and None where only the presence of the fact
    matters; `negated`: it must not be. `if_exists`: it holds of a fact that is not there. `is_absent`: where `test` is None,
    whether the fact must not be there."""

    fact: ConditionKey
    test: Test | None
    negated: bool = False
    quantifier: Quantifier = Quantifier.ONE
    if_exists: bool = False
    is_absent: bool = False

    def holds(self, facts: AccessFacts, circumstances: AuthorizationContext, is_allowance: bool) -> bool:
        """Whether the condition holds. What cannot be said for certain is not enough to allow, and enough to refuse."""
        known: Known
        if self.fact in OF_ACCESSES:
            known = facts.known(self.fact)
        else:
            value = circumstances.value(self.fact)
            known = None if value is None else (value,)
        if known is UNSAID:
            return is_allowance
        if self.test is None:
            return (known is None or known is EVERYTHING) is self.is_absent
        if known is EVERYTHING:
            return not is_allowance
        if not known:
            return self._holds_of_none()
        if len(known) == 1:
            [value] = known
            return self.test(value) is not self.negated
        rights = [self.test(value) is not self.negated for value in known]
        if self.quantifier is Quantifier.ANY:
            return any(rights)
        if self.quantifier is Quantifier.ALL:
            return all(rights)
        # A fact of one value that was said twice: what a write returns, and what it returns where it fails.
        return all(rights) if is_allowance else any(rights)

    def _holds_of_none(self) -> bool:
        if self.if_exists or self.quantifier is Quantifier.ALL:
            return True
        return self.negated and self.quantifier is Quantifier.ONE


def in_networks(networks: Collection[Any]) -> Test:
    """Whether an address is in one of these networks. Addresses of one family are in no network of the other."""

    def test(value: str) -> bool:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return False
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address.version == network.version and address in network for network in networks)

    return test

"""The interface of a target's conversions, and the rules that changes of kind correspond to."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

from tablegate.gateway.model.values.keys import Key, KeyColumn
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.rules import Fidelity, MappingFinding, MappingRule

Cells = Mapping[str, tuple[Cell, ...]]
"""Attribute -> versions, newest first, as in Row.cells."""

_TEXT_RULES = {
    Kind.DATETIME: rules.DATETIME_AS_TEXT,
    Kind.GUID: rules.GUID_AS_TEXT,
    Kind.LIST: rules.DOCUMENT_AS_TEXT,
    Kind.MAP: rules.DOCUMENT_AS_TEXT,
    **dict.fromkeys(SETS, rules.SET_AS_TEXT),
}


def rule_of(value: Value, viewed: Value) -> MappingRule | None:
    """Return the rule for the kind of a converted value, None if the kind is unchanged."""
    kind = value.kind
    if viewed.kind is kind:
        return None
    if kind in NUMBERS:
        if viewed.kind in NUMBERS:
            return rules.NEGATIVE_ZERO if is_negative_zero(value) else rules.NUMBER_KIND
        return rules.NUMBER_AS_TEXT if math.isfinite(value.data) else rules.NAN_AS_TEXT
    return _TEXT_RULES[kind]


def is_negative_zero(value: Value) -> bool:
    return value.kind is Kind.DOUBLE and value.data == 0 and math.copysign(1, value.data) < 0


class MappingTarget(ABC):
    """The conversions and limits of a service. May be used from several threads."""

    @abstractmethod
    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        """Return the rule that forbids a value of a key column."""

    @abstractmethod
    def view(self, value: Value) -> Value:
        """Return the value as the service shows it. NULL if it cannot hold the kind."""

    def has_null(self) -> bool:
        """True if the service has NULL values."""
        return False

    def check_name(self, name: str) -> MappingRule | None:
        """Return the rule that forbids a name in the service's spelling."""
        return None

    @abstractmethod
    def check_value(self, name: str, value: Value) -> MappingRule | None:
        """Return the rule that forbids a converted value."""

    def refusal(self, contents: Contents) -> MappingFinding | None:
        """Return the finding for a row that is not allowed as a whole, although its names, values and key are."""
        return None

    @abstractmethod
    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        """Return the contents of a row with allowed names, values and key.

        None, with a finding, if the row as a whole is not allowed. `cells` are stamps and older versions for a
        target that keeps them.
        """


def is_impossible(findings: list[MappingFinding]) -> bool:
    """True if one of these rules rejects the row."""
    return any(finding.rule.fidelity is Fidelity.IMPOSSIBLE for finding in findings)

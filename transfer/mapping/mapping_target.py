"""What a service's view of a value is called among the rules, and what every target has in common."""

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
"""Attribute -> versions, newest first, as Row.cells has them."""

_TEXT_RULES = {
    Kind.DATETIME: rules.DATETIME_AS_TEXT,
    Kind.GUID: rules.GUID_AS_TEXT,
    Kind.LIST: rules.DOCUMENT_AS_TEXT,
    Kind.MAP: rules.DOCUMENT_AS_TEXT,
    **dict.fromkeys(SETS, rules.SET_AS_TEXT),
}


def rule_of(value: Value, seen: Value) -> MappingRule | None:
    """The rule by which a value is seen so by a service; None: it is what it was."""
    kind = value.kind
    if seen.kind is kind:
        return None
    if kind in NUMBERS:
        if seen.kind in NUMBERS:
            return rules.NEGATIVE_ZERO if is_negative_zero(value) else rules.NUMBER_KIND
        return rules.NUMBER_AS_TEXT if math.isfinite(value.data) else rules.NAN_AS_TEXT
    return _TEXT_RULES[kind]


def is_negative_zero(value: Value) -> bool:
    """Whether a value is the Double -0.0."""
    return value.kind is Kind.DOUBLE and value.data == 0 and math.copysign(1, value.data) < 0


class MappingTarget(ABC):
    """What a service makes of rows, and what it refuses. One object may be used by several threads."""

    @abstractmethod
    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        """The rule that forbids a value of a key column."""

    @abstractmethod
    def view(self, value: Value) -> Value:
        """How the service sees a value; NULL where it has none of the kind."""

    def has_null(self) -> bool:
        """Whether NULL is a value there."""
        return False

    def check_name(self, name: str) -> MappingRule | None:
        """The rule that forbids an attribute's name as the service has it."""
        return None

    @abstractmethod
    def check_value(self, name: str, value: Value) -> MappingRule | None:
        """The rule that forbids a value as the service sees it."""

    @abstractmethod
    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, found: list[MappingFinding]
    ) -> Contents | None:
        """The contents of a row whose names, values and key have passed; None, and a finding, where it is refused as a whole.
        `cells`: stamps and older versions of the attributes, for a target that keeps them."""


def is_impossible(found: list[MappingFinding]) -> bool:
    """Whether one of these rules rejects the row."""
    return any(finding.rule.fidelity is Fidelity.IMPOSSIBLE for finding in found)

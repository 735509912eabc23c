"""The mapping of keys between tables.

A role (partition or sort) of the source becomes the same role of the target. Columns of the same kinds are mapped by
value. Otherwise the values of a role become one text, from which the target's columns are parsed
(gateway/model/values/composites.py). Each key has exactly one text, so that two rows never get the same key. The
target's service decides which keys are allowed (`KeyMapping.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablegate.gateway.model.values.composites import composite_text, split
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.names import EscapeRules
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule

KeyCheck = Callable[[KeyColumn, bool, Value], MappingRule | None]
"""Return the rule that forbids a value of a key column. The flag is true for the partition key."""


def no_check(column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
    """Forbid no value (KeyCheck)."""
    return None


EXACT_NUMBERS = frozenset({Kind.DECIMAL, Kind.INT64})


class KeyMapping:
    """The mapping from the keys of one schema to those of another."""

    def __init__(
        self,
        source: KeySchema,
        target: KeySchema,
        check: KeyCheck,
        reads: EscapeRules | None = None,
        writes: EscapeRules | None = None,
    ) -> None:
        """Set up the mapping.

        `reads` and `writes` are the escapes of the source and of the target, None for no escapes. Raises
        SchemaChanged if the target's columns cannot hold the source's keys.
        """
        self.source = source
        self.target = target
        self._check = check
        self._roles = (
            _Role(source.partition, target.partition, reads, writes),
            _Role(source.sort, target.sort, reads, writes),
        )
        self._origins = _origins(source.partition, target.partition) + _origins(source.sort, target.sort)
        self.is_identity = [column.kind for column in source.columns] == [
            column.kind for column in target.columns
        ] and len(source.partition) == len(target.partition)
        """True if each key stays the same."""
        if reads is not None or writes is not None:
            self.is_identity = False

    def of(self, values: Sequence[Value], findings: list[MappingFinding]) -> Key | None:
        """Return the key in the target. None, with a finding, if the target does not allow it."""
        width = len(self.source.partition)
        if self.is_identity:
            key_values: list[Value] | None = list(values)
        else:
            parts = [
                role.of(part, findings)
                for role, part in zip(self._roles, (values[:width], values[width:]), strict=True)
            ]
            key_values = (
                None if None in parts else [value for part in parts if part is not None for value in part]
            )
        if key_values is None or not self._is_allowed(key_values, findings):
            return None
        return Key(tuple(key_values), self.target.position(key_values))

    def _is_allowed(self, values: Sequence[Value], findings: list[MappingFinding]) -> bool:
        is_allowed = True
        partition = len(self.target.partition)
        for at, (column, value) in enumerate(zip(self.target.columns, values, strict=True)):
            violated = self._check(column, at < partition, value)
            if violated is not None:
                findings.append(MappingFinding(violated, self._origins[at]))
                is_allowed = False
        return is_allowed


def _origins(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> list[str]:
    """Return for each target column of a role the source column it is made from, or its own name if there is none."""
    return [
        source[min(at, len(source) - 1)].name if source else column.name for at, column in enumerate(target)
    ]


class _Role:
    """The partition columns or the sort columns of both schemas."""

    def __init__(
        self,
        source: tuple[KeyColumn, ...],
        target: tuple[KeyColumn, ...],
        reads: EscapeRules | None,
        writes: EscapeRules | None,
    ) -> None:
        self._source, self._target = source, target
        self._reads = reads if [column.kind for column in source] == [Kind.TEXT] else None
        self._writes = writes if [column.kind for column in target] == [Kind.TEXT] else None
        self._name = source[0].name if source else ""
        kinds = [[column.kind for column in columns] for columns in (source, target)]
        self._is_same = kinds[0] == kinds[1] and self._reads is None and self._writes is None
        if not _can_hold(source, target):
            raise SchemaChanged(
                f"the target's key {_columns_text(target)} cannot hold the source's key {_columns_text(source)}"
            )
        self._rule = _rule_of(source, target)

    def of(self, values: Sequence[Value], findings: list[MappingFinding]) -> list[Value] | None:
        """Return the values of the target's columns. None, with a finding, if the text is not valid for them."""
        if self._is_same:
            return list(values)
        before = text = composite_text(values)
        if self._reads is not None:
            text = self._reads.unspelled(text)
            if text != before:
                findings.append(MappingFinding(rules.KEY_UNESCAPED, self._name))
        if self._writes is not None:
            before, text = text, self._writes.spelled(text)
            if text != before:
                findings.append(MappingFinding(rules.KEY_ESCAPED, self._name))
        target_values = split(self._target, text)
        if target_values is None:
            findings.append(MappingFinding(rules.KEY_UNREADABLE, self._name))
        elif self._rule is not None:
            findings.append(MappingFinding(self._rule, self._name))
        return target_values


def _can_hold(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> bool:
    """True if the target's columns of a role can hold the source's."""
    if not source or not target:
        columns = source or target
        return not columns or (len(columns) == 1 and columns[0].kind in (Kind.TEXT, Kind.BYTES))
    if len(source) == len(target) == 1:
        return not (
            {source[0].kind, target[0].kind} >= {Kind.BYTES}
            and {source[0].kind, target[0].kind} & EXACT_NUMBERS
        )
    # Several columns are joined to one text, which needs a single text column at the other end.
    if len(source) == 1 or len(target) == 1:
        return (source if len(source) == 1 else target)[0].kind is Kind.TEXT
    return len(source) == len(target) and all(
        _can_hold((mine,), (other,)) for mine, other in zip(source, target, strict=True)
    )


def _rule_of(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> MappingRule | None:
    """Return the rule that applies to every key of these columns."""
    if len(source) > 1 and len(target) == 1:
        return rules.KEY_JOINED
    if len(source) == 1 and len(target) > 1:
        return rules.KEY_SPLIT
    worst: MappingRule | None = None
    for mine, other in zip(source, target, strict=False):
        if mine.kind is other.kind:
            continue
        if mine.kind in EXACT_NUMBERS and other.kind in EXACT_NUMBERS:
            worst = worst or rules.KEY_KIND
        elif other.kind is Kind.TEXT:
            worst = rules.KEY_AS_TEXT
        else:
            worst = rules.KEY_SPLIT
    return worst


def _columns_text(columns: Sequence[KeyColumn]) -> str:
    return "(" + ", ".join([f"{column.name}:{column.kind.value}" for column in columns]) + ")"

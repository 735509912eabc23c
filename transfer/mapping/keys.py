"""Keys of one table as keys of another: by value where the columns are alike, else through the one text that all dialects share.

A role (partition, sort) of the source becomes the same role of the target. Where their columns differ, its values are joined to
their text, and the target's columns read it, both by gateway/model/values/composites.py. That is one text for one key and one key
for one text, so that two rows never get the same key. What a service does not take in a key is its own to say
(`KeyMapping.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablegate.gateway.model.values.composites import composite_text, split
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.escapes import EscapeRules
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule

KeyCheck = Callable[[KeyColumn, bool, Value], MappingRule | None]
"""Says of a value of a key column (of the partition key: True) which rule forbids it."""

_NUMBERS = frozenset({Kind.DECIMAL, Kind.INT64})


class KeyMapping:
    """From the keys of one schema to those of another."""

    def __init__(
        self,
        source: KeySchema,
        target: KeySchema,
        check: KeyCheck,
        reads: EscapeRules | None = None,
        writes: EscapeRules | None = None,
    ) -> None:
        """`reads`, `writes`: how texts of keys are escaped in the source and in the target; None: not at all.

        Raises SchemaChanged where no key of the source, or not every kind of its keys, is one of the target's.
        """
        self.source = source
        self.target = target
        self._check = check
        self._roles = (
            _Role(source.partition, target.partition, reads, writes),
            _Role(source.sort, target.sort, reads, writes),
        )
        self._origins = _origins(source.partition, target.partition) + _origins(source.sort, target.sort)
        self._is_identity = [column.kind for column in source.columns] == [
            column.kind for column in target.columns
        ] and len(source.partition) == len(target.partition)
        if reads is not None or writes is not None:
            self._is_identity = False

    def of(self, values: Sequence[Value], found: list[MappingFinding]) -> Key | None:
        """The key in the target; None, and a finding, where it cannot have it."""
        width = len(self.source.partition)
        if self._is_identity:
            made: list[Value] | None = list(values)
        else:
            parts = [
                role.of(part, found)
                for role, part in zip(self._roles, (values[:width], values[width:]), strict=True)
            ]
            made = None if None in parts else [value for part in parts if part is not None for value in part]
        if made is None or not self._passes(made, found):
            return None
        return Key(tuple(made), self.target.position(made))

    def _passes(self, values: Sequence[Value], found: list[MappingFinding]) -> bool:
        passed = True
        partition = len(self.target.partition)
        for at, (column, value) in enumerate(zip(self.target.columns, values, strict=True)):
            broken = self._check(column, at < partition, value)
            if broken is not None:
                found.append(MappingFinding(broken, self._origins[at]))
                passed = False
        return passed


def _origins(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> list[str]:
    """Of each column of a role in the target, the source's column that it is made of; its own name where there is none."""
    return [
        source[min(at, len(source) - 1)].name if source else column.name for at, column in enumerate(target)
    ]


class _Role:
    """The partition columns, or the sort columns, of both schemas."""

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
                f"The key {_shown(source)} of the source cannot be the key {_shown(target)} of the target's table."
            )
        self._rule = _rule_of(source, target)

    def of(self, values: Sequence[Value], found: list[MappingFinding]) -> list[Value] | None:
        """The values of the target's columns; None, and a finding, where these are no values of theirs."""
        if self._is_same:
            return list(values)
        given = text = composite_text(values)
        if self._reads is not None:
            text = self._reads.unspelled(text)
            if text != given:
                found.append(MappingFinding(rules.KEY_UNESCAPED, self._name))
        if self._writes is not None:
            given, text = text, self._writes.spelled(text)
            if text != given:
                found.append(MappingFinding(rules.KEY_ESCAPED, self._name))
        made = split(self._target, text)
        if made is None:
            found.append(MappingFinding(rules.KEY_UNREADABLE, self._name))
        elif self._rule is not None:
            found.append(MappingFinding(self._rule, self._name))
        return made


def _can_hold(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> bool:
    """Whether a role's columns can hold the other's: kinds that have texts in common, and none for what is never nothing."""
    if not source or not target:
        columns = source or target
        return not columns or (len(columns) == 1 and columns[0].kind in (Kind.TEXT, Kind.BYTES))
    if len(source) == len(target) == 1:
        return not (
            {source[0].kind, target[0].kind} >= {Kind.BYTES} and {source[0].kind, target[0].kind} & _NUMBERS
        )
    # Several columns are one text elsewhere, which a single column of texts holds and which reads back from one.
    if len(source) == 1 or len(target) == 1:
        return (source if len(source) == 1 else target)[0].kind is Kind.TEXT
    return len(source) == len(target) and all(
        _can_hold((mine,), (other,)) for mine, other in zip(source, target, strict=True)
    )


def _rule_of(source: tuple[KeyColumn, ...], target: tuple[KeyColumn, ...]) -> MappingRule | None:
    """What happens to every key of such columns."""
    if len(source) > 1 and len(target) == 1:
        return rules.KEY_JOINED
    if len(source) == 1 and len(target) > 1:
        return rules.KEY_SPLIT
    worst: MappingRule | None = None
    for mine, other in zip(source, target, strict=False):
        if mine.kind is other.kind:
            continue
        if mine.kind in _NUMBERS and other.kind in _NUMBERS:
            worst = worst or rules.KEY_KIND
        elif other.kind is Kind.TEXT:
            worst = rules.KEY_AS_TEXT
        else:
            worst = rules.KEY_SPLIT
    return worst


def _shown(columns: Sequence[KeyColumn]) -> str:
    return "(" + ", ".join([f"{column.name}:{column.kind.value}" for column in columns]) + ")"

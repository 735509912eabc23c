"""The mapping of a table's keys, indexes, expiry and stream to another service.

A role (partition or sort) of the source becomes the same role of the target. Columns of the same kinds are mapped by
value. Otherwise the values of a role become one text, from which the target's columns are parsed
(gateway/model/values/composites.py). Each key has exactly one text, so that two rows never get the same key. The
target's service decides which keys are allowed (`KeyMapping.check`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.wire import limits as tablestore_limits
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import BaseIndex, IndexProjection
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.composites import composite_text, split
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.names import EscapeRules, table_name
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule
from tablegate.transfer.mapping.targets import key_column

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


def defined_in(
    source: Definition, target: Service, key_schema: KeySchema, name: str | None = None
) -> tuple[Definition, tuple[MappingFinding, ...]]:
    """Return the definition of the copy and findings for the parts that the target does not support.

    `name` is the copy's name if it is known already.
    """
    notes: list[MappingFinding] = []
    if target is Service.TABLEGATE:
        return dataclasses.replace(
            source, key_schema=key_schema, name=name or source.name, is_stored=True
        ), ()
    new_name = name or table_name(target, source.name)
    if new_name != source.name and name is None:
        notes.append(MappingFinding(rules.TABLE_RENAMED, source.name))
    _note_keys(source, key_schema, notes)
    own = source.key_schema
    renamed = {
        mine.name: other
        for columns, others in ((own.partition, key_schema.partition), (own.sort, key_schema.sort))
        if len(columns) == len(others)
        for mine, other in zip(columns, others, strict=True)
    }
    definition = Definition(
        new_name,
        target,
        key_schema,
        tuple(_indexes(source, target, key_schema, renamed, notes)),
        _rules(source, target, notes),
        dict(source.properties) if source.service is target else {},
        source.rows,
        source.size_bytes,
        other_indexes=_other_indexes(source, target, notes),
    )
    return definition, tuple(notes)


def _note_keys(source: Definition, key_schema: KeySchema, notes: list[MappingFinding]) -> None:
    own = source.key_schema
    for mine, other in ((own.partition, key_schema.partition), (own.sort, key_schema.sort)):
        names = [column.name for column in other]
        notes += [
            MappingFinding(rules.KEY_RENAMED, column.name)
            for at, column in enumerate(mine)
            if names[at : at + 1] != [column.name] or len(names) != len(mine)
        ]
        if any(column.kind is Kind.TEXT for column in other):
            notes += [
                MappingFinding(rules.KEY_ORDER, column.name)
                for at, column in enumerate(mine)
                if column.kind in EXACT_NUMBERS and (len(mine) != len(other) or other[at].kind is Kind.TEXT)
            ]
    if source.service is Service.AZURE_TABLE:
        notes.append(MappingFinding(rules.TIMESTAMP_NOT_KEPT, "Timestamp"))


def _rules(source: Definition, target: Service, notes: list[MappingFinding]) -> Rules:
    own = source.rules
    expiry, stream = own.expiry, own.stream
    if expiry is not None:
        is_kept = (
            target is Service.DYNAMODB if expiry.attribute is not None else target is Service.TABLE_STORE
        )
        if not is_kept:
            notes.append(MappingFinding(rules.EXPIRY_NOT_KEPT, expiry.attribute or ""))
            expiry = None
    if stream is not None and stream.enabled and target is Service.AZURE_TABLE:
        notes.append(MappingFinding(rules.STREAM_NOT_KEPT, ""))
        stream = None
    if target is Service.TABLE_STORE:
        return Rules(expiry, stream, own.max_versions, stamped=True)
    if own.stamped:
        notes.append(MappingFinding(rules.STAMPS_NOT_KEPT, ""))
    assigned_columns = [column for column in source.key_schema.columns if column.auto_increment]
    notes += [MappingFinding(rules.AUTO_INCREMENT_NOT_KEPT, column.name) for column in assigned_columns]
    return Rules(expiry, stream)


# Indexes


def _indexes(
    source: Definition,
    target: Service,
    key_schema: KeySchema,
    renamed: dict[str, KeyColumn],
    notes: list[MappingFinding],
) -> Sequence[NewIndex]:
    new_indexes: list[NewIndex] = []
    joined = {*source.key_schema.names} - renamed.keys()
    for index in source.indexes:
        index_copy = None
        if not joined & {*index.key_schema.names} and target is not Service.AZURE_TABLE:
            columns = _IndexColumns(index.key_schema, renamed)
            index_copy = (
                _to_dynamodb(index, columns, key_schema, new_indexes)
                if target is Service.DYNAMODB
                else _to_table_store(index, columns, key_schema, new_indexes, source.rules, notes)
            )
        if index_copy is None:
            notes.append(MappingFinding(rules.INDEX_NOT_KEPT, index.name))
        else:
            new_indexes.append(index_copy)
    return new_indexes


def _other_indexes(source: Definition, target: Service, notes: list[MappingFinding]) -> tuple[BaseIndex, ...]:
    """Return the indexes of other kinds than the ordered ones. Only DynamoDB has such indexes."""
    if target is Service.DYNAMODB:
        return source.other_indexes
    notes += [MappingFinding(rules.INDEX_NOT_KEPT, index.name) for index in source.other_indexes]
    return ()


class _IndexColumns:
    """The key columns of an index under the names of the target table."""

    def __init__(self, schema: KeySchema, renamed: dict[str, KeyColumn]) -> None:
        self.partition = [renamed.get(column.name, column) for column in schema.partition]
        self.sort = [renamed.get(column.name, column) for column in schema.sort]


def _to_dynamodb(
    index: NewIndex, columns: _IndexColumns, key_schema: KeySchema, new_indexes: Sequence[NewIndex]
) -> NewIndex | None:
    attributes_max = dynamodb_limits.INDEX_KEY_ATTRIBUTES_PER_ROLE
    if len(columns.partition) > attributes_max or len(columns.sort) > attributes_max:
        return None
    same = [earlier for earlier in new_indexes if earlier.local is index.local]
    if len(same) >= (dynamodb_limits.LOCAL_INDEXES if index.local else dynamodb_limits.GLOBAL_INDEXES):
        return None
    schema = KeySchema(
        tuple(key_column(column) for column in columns.partition),
        tuple(key_column(column) for column in columns.sort),
    )
    if index.local and not (
        key_schema.sort and schema.partition == key_schema.partition and len(schema.sort) == 1
    ):
        return None
    shortest = dynamodb_limits.TABLE_NAME_MIN_CHARACTERS  # index names have the form of table names
    name = index.name if len(index.name) >= shortest else table_name(Service.DYNAMODB, index.name)
    return dataclasses.replace(index, name=name, key_schema=schema, properties={})


def _to_table_store(
    index: NewIndex,
    columns: _IndexColumns,
    key_schema: KeySchema,
    new_indexes: Sequence[NewIndex],
    source_rules: Rules,
    notes: list[MappingFinding],
) -> NewIndex | None:
    all_columns = (*columns.partition, *columns.sort)
    if (
        len(all_columns) > tablestore_limits.KEY_COLUMNS_MAX
        or len(new_indexes) >= tablestore_limits.INDEXES_MAX
        or source_rules.max_versions != 1
        or any(column.kind is Kind.DECIMAL or not is_name(column.name) for column in all_columns)
        or (index.local and all_columns[0].name != key_schema.columns[0].name)
    ):
        return None
    name = index.name if is_name(index.name) else table_name(Service.TABLE_STORE, index.name)
    if index.properties.get("update_mode") is None and index.projection is not IndexProjection.KEYS:
        notes.append(MappingFinding(rules.INDEX_PROJECTION, index.name))
        index = dataclasses.replace(index, projection=IndexProjection.KEYS, included=())
    return dataclasses.replace(index, name=name, key_schema=KeySchema(all_columns[:1], all_columns[1:]))

"""The conversion of rows to each service: keys, values, cells with versions, and the limits of one write."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.azuretable import keys as azure_keys
from tablegate.adapters.azuretable import values as azure_values
from tablegate.adapters.azuretable.entities.entity_renderer import entity_size_bytes, property_size_bytes
from tablegate.adapters.azuretable.keys import OWN_SCHEMA
from tablegate.adapters.azuretable.wire import limits as azure_limits
from tablegate.adapters.dynamodb.values.keys import check_given_index_keys
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.values.values import check_name as check_dynamodb_name
from tablegate.adapters.dynamodb.values.values import item_of, measure
from tablegate.adapters.dynamodb.values.values import view as dynamodb_view
from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.capacity import request_size
from tablegate.adapters.tablestore.values import key_kind_shown
from tablegate.adapters.tablestore.views import view as tablestore_view
from tablegate.adapters.tablestore.wire import limits as tablestore_limits
from tablegate.adapters.tablestore.wire.names import is_column_name, is_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Rules, State, Table, azure_name_for
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value, size_bytes
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.names import EscapeRules
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


AZURE_KEY_ESCAPES = EscapeRules(azure_keys.FORBIDDEN.pattern, takes_empty=True)


class ToAzureTable(MappingTarget):
    """The Table service as a target."""

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        text = value.data
        if azure_values.utf16_units(text) > azure_limits.KEY_MAX_UNITS:
            return rules.KEY_TOO_LONG
        return rules.KEY_FORBIDDEN if azure_keys.FORBIDDEN.search(text) else None

    def view(self, value: Value) -> Value:
        return azure_values.view(value)

    def check_name(self, name: str) -> MappingRule | None:
        return rules.NAME_NOT_ALLOWED if len(name) > azure_limits.PROPERTY_NAME_MAX_CHARACTERS else None

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        kind, data = value
        if kind is Kind.TEXT:
            if (
                len(data) > azure_limits.STRING_MAX_UNITS // 2
                and azure_values.utf16_units(data) > azure_limits.STRING_MAX_UNITS
            ):
                return rules.VALUE_TOO_LONG
        elif kind is Kind.BYTES:
            if len(data) > azure_limits.BINARY_MAX_BYTES:
                return rules.VALUE_TOO_LONG
        elif kind is Kind.DATETIME and azure_values.parse_datetime(azure_values.datetime_text(data)) is None:
            return rules.DATETIME_OUT_OF_RANGE
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        if len(attributes) > azure_limits.PROPERTIES_MAX:
            findings.append(MappingFinding(rules.TOO_MANY_ATTRIBUTES, ""))
            return None
        key_values = dict(zip(OWN_SCHEMA.names, key.values, strict=True))
        new_contents = Contents.of_values({**key_values, **attributes})
        if new_contents.size_bytes > _SURELY_SMALL_BYTES:
            properties = [property_size_bytes(name, value) for name, value in attributes.items()]
            if entity_size_bytes(key_values) + sum(properties) > azure_limits.ENTITY_MAX_BYTES:
                findings.append(MappingFinding(rules.ROW_TOO_LARGE, ""))
                return None
        return new_contents


# An entity exceeds the gateway's size by a few bytes a property and at most twice the size of texts.
_SURELY_SMALL_BYTES = azure_limits.ENTITY_MAX_BYTES // 8


DYNAMODB_KEY_ESCAPES = EscapeRules("(?!)", takes_empty=False)
"""Keys may have any character but must not be empty."""

_RULES_OF_CHECKS = {
    "nesting": rules.TOO_DEEP,
    "empty-name": rules.NAME_NOT_ALLOWED,
    "name-size": rules.NAME_NOT_ALLOWED,
    "empty-string-set": rules.EMPTY_SET,
    "empty-number-set": rules.EMPTY_SET,
    "empty-binary-set": rules.EMPTY_SET,
    "number-precision": rules.NUMBER_OUT_OF_RANGE,
    "number-overflow": rules.NUMBER_OUT_OF_RANGE,
    "number-underflow": rules.NUMBER_OUT_OF_RANGE,
    "item-size": rules.ROW_TOO_LARGE,
}
"""The adapter's check -> the rule."""

_SIZED = frozenset({Kind.TEXT, Kind.BYTES})
_KEY_KINDS = {Kind.INT64: Kind.DECIMAL}


def key_column(column: KeyColumn) -> KeyColumn:
    """Return a key column in DynamoDB's kinds."""
    return KeyColumn(column.name, _KEY_KINDS.get(column.kind, column.kind))


class ToDynamoDB(MappingTarget):
    """DynamoDB as a target."""

    def __init__(self, key_schema: KeySchema, indexes: Sequence[NewIndex]) -> None:
        self._has_indexes = bool(indexes)
        self._table = _table(key_schema, indexes)

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        if value.kind not in _SIZED:
            return None
        if not value.data:
            return rules.KEY_EMPTY
        size = len(value.data) if value.kind is Kind.BYTES else len(value.data.encode())
        bytes_max = dynamodb_limits.PARTITION_KEY_BYTES if is_partition else dynamodb_limits.SORT_KEY_BYTES
        return rules.KEY_TOO_LONG if size > bytes_max else None

    def view(self, value: Value) -> Value:
        return dynamodb_view(value)

    def has_null(self) -> bool:
        return True

    def check_name(self, name: str) -> MappingRule | None:
        try:
            check_dynamodb_name(name)
        except InvalidValue:
            return rules.NAME_NOT_ALLOWED
        return None

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        if value.kind in _PLAIN:
            return None
        try:
            measure(bodies.tagged(value), 0)
        except InvalidValue as refusal:
            return _RULES_OF_CHECKS[refusal.rule]
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        values = {**dict(zip(self._table.key_schema.names, key.values, strict=True)), **attributes}
        wire: dict[str, Any] = {name: bodies.tagged(value) for name, value in values.items()}
        try:
            new_contents = item_of(wire).contents
        except InvalidValue as refusal:
            findings.append(MappingFinding(_RULES_OF_CHECKS[refusal.rule], ""))
            return None
        refused = self.refusal(new_contents)
        if refused is not None:
            findings.append(refused)
            return None
        return new_contents

    def refusal(self, contents: Contents) -> MappingFinding | None:
        if contents.size_bytes > dynamodb_limits.ITEM_BYTES:
            return MappingFinding(rules.ROW_TOO_LARGE, "")
        if self._has_indexes:
            try:
                check_given_index_keys(self._table, contents)
            except (BadKey, KeyTooLong) as refusal:
                column = refusal.facts.get("column") if isinstance(refusal, BadKey) else None
                return MappingFinding(rules.INDEX_KEY, column.name if column is not None else "")
        return None


_PLAIN = frozenset({Kind.TEXT, Kind.BYTES, Kind.BOOL, Kind.NULL})
"""Kinds that have no limits on values."""


def shown_schema(schema: KeySchema) -> KeySchema:
    """Return a schema of at most two columns. Several columns of one role become one text column."""
    return KeySchema(_one_column(schema.partition), _one_column(schema.sort))


def _one_column(columns: tuple[KeyColumn, ...]) -> tuple[KeyColumn, ...]:
    if len(columns) > 1:
        name = name_of(columns)
        if len(name) > dynamodb_limits.KEY_NAME_CHARACTERS:
            name = azure_name_for(name, lambda candidate: False)
        return (KeyColumn(name, Kind.TEXT),)
    return tuple(key_column(column) for column in columns)


def _table(key_schema: KeySchema, indexes: Sequence[NewIndex]) -> Table:
    """Return a table with this key and these indexes, for checks of index keys."""
    table_indexes = tuple(
        Index(number, index.name, index.key_schema, index.projection, table_keys=key_schema.names)
        for number, index in enumerate(indexes)
    )
    return Table(0, "", "", "", key_schema, table_indexes, Rules(), {}, State.ACTIVE, 0, 0, 0)


_SCHEMA_ESCAPES = EscapeRules(r"[^A-Za-z0-9_]|\A[0-9]", takes_empty=False)
"""Escapes for names of key columns that Table Store does not allow."""


class ToTableStore(MappingTarget):
    """Table Store as a target. With `keeps_stamps`, the source's cells have stamps that are written."""

    def __init__(
        self, key_schema: KeySchema, keeps_stamps: bool, max_versions: int, defined: Mapping[str, Kind]
    ) -> None:
        """Set up the target. `key_schema` is the target table's. `defined` are the kinds of its defined columns."""
        self._key_names = key_schema.names
        self._keeps_stamps = keeps_stamps
        self._max_versions = max_versions
        self._defined = defined

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        return rules.KEY_TOO_LONG if size_bytes(value) > tablestore_limits.KEY_VALUE_MAX_BYTES else None

    def view(self, value: Value) -> Value:
        return tablestore_view(value)

    def check_name(self, name: str) -> MappingRule | None:
        return None if is_column_name(name) else rules.NAME_NOT_ALLOWED

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        if value.kind in (Kind.TEXT, Kind.BYTES) and size_bytes(value) > tablestore_limits.VALUE_MAX_BYTES:
            return rules.VALUE_TOO_LONG
        if self._defined and self._defined.get(name, value.kind) is not value.kind:
            return rules.DEFINED_KIND
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        key_values = dict(zip(self._key_names, key.values, strict=True))
        if cells is None or not self._keeps_stamps:
            new_contents = Contents.of_values({**key_values, **attributes})
            kept_cells: Cells = {name: (Cell(value, -1),) for name, value in attributes.items()}
        else:
            kept_cells = self._newest_versions(cells, findings)
            new_contents = Contents.of_cells(key_values, kept_cells)
        violated = self._violated_rule(new_contents, key_values, kept_cells)
        if violated is not None:
            findings.append(MappingFinding(violated, ""))
            return None
        return new_contents

    def _newest_versions(self, cells: Cells, findings: list[MappingFinding]) -> Cells:
        kept_cells = {}
        for name, versions in cells.items():
            kept_cells[name] = versions[: self._max_versions]
            if len(versions) > self._max_versions:
                findings.append(MappingFinding(rules.OLDER_VERSIONS, name))
        return kept_cells

    def _violated_rule(
        self, contents: Contents, key_values: Mapping[str, Value], cells: Cells
    ) -> MappingRule | None:
        """Return the rule that forbids the row as a whole."""
        number = len(cells) if not self._keeps_stamps else sum(map(len, cells.values()))
        if number > tablestore_limits.COLUMNS_MAX:
            return rules.TOO_MANY_ATTRIBUTES
        stamped = self._keeps_stamps
        if stamped and any(
            not 0 <= cell.stamp_ms < tablestore_limits.STAMP_END_MS
            for versions in cells.values()
            for cell in versions
        ):
            return rules.STAMP_OUT_OF_RANGE
        if contents.size_bytes > tablestore_limits.WRITE_MAX_BYTES // 2:
            wire = [
                WireCell(name, cell.value, cell.stamp_ms if stamped else None)
                for name, versions in cells.items()
                for cell in versions
            ]
            keys = [WireCell(name, value) for name, value in key_values.items()]
            if request_size(WireRow(keys, wire)) > tablestore_limits.WRITE_MAX_BYTES:
                return rules.ROW_TOO_LARGE
        return None


def column_schema(schema: KeySchema) -> KeySchema:
    """Return a schema of one to four columns with allowed names and kinds. The first column is the partition key."""
    columns = schema.columns
    if len(schema.partition) > 1:
        columns = (KeyColumn(name_of(schema.partition), Kind.TEXT), *schema.sort)
    is_plain = all(is_name(column.name) for column in columns)
    key_columns = tuple(
        KeyColumn(
            column.name if is_plain else _plain_name(column.name),
            key_kind_shown(column),
            column.auto_increment,
        )
        for column in columns
    )
    return KeySchema(key_columns[:1], key_columns[1:])


def _plain_name(name: str) -> str:
    escaped = _SCHEMA_ESCAPES.spelled(name)
    return escaped if is_name(escaped) else azure_name_for(name, lambda candidate: False)

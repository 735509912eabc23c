"""The conversion of rows to DynamoDB: values, and the limits of a put by the adapter's own checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.adapters.dynamodb.values.keys import check_given_index_keys
from tablegate.adapters.dynamodb.values.scalars import InvalidValue
from tablegate.adapters.dynamodb.values.values import check_name as check_dynamodb_name
from tablegate.adapters.dynamodb.values.values import item_of, measure
from tablegate.adapters.dynamodb.values.values import view as dynamodb_view
from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Rules, State, Table, azure_name_for
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping_target import Cells, MappingTarget
from tablegate.transfer.mapping.names import EscapeRules
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule

KEY_ESCAPES = EscapeRules("(?!)", takes_empty=False)
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

"""Keys of requests and items against a table's key schema, and index keys of items.

Knows what may be a key value here (protocols/dynamodb.md rules 23, 24, 36, 37); raises BadKey and KeyTooLong with the rule
that was broken, for which errors.py has the texts. Key values have been checked as attribute values already (values.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.dynamodb import limits
from adapters.dynamodb.errors import validation
from adapters.dynamodb.values import as_kind, value_of, view
from gateway.model.errors import BadKey, KeyTooLong
from gateway.model.keys import Key, KeyColumn, Position
from gateway.model.tables import Index, Table
from gateway.model.values import Kind, Value


def key_of(table: Table, wire: Mapping[str, Any]) -> Key:
    """The key of a `Key` parameter: exactly the key attributes, of their types."""
    columns = table.key_schema.columns
    if len(wire) != len(columns):
        raise BadKey("schema")
    values = []
    for column in columns:
        member = wire.get(column.name)
        value = None if member is None else as_kind(value_of(member), column.kind)
        if value is None:
            raise BadKey("schema")
        values.append(value)
    if "dynamodb" in table.properties:
        # A key that another dialect wrote, and that would not be legal here, can still be read and deleted here.
        _check_values(table, values)
    return Key(tuple(values), table.key_schema.position(values))


def item_key(table: Table, item: Mapping[str, Any]) -> Key:
    """The key that an item to be put holds. Its index keys are checked too."""
    values = []
    for column in table.key_schema.columns:
        member = item.get(column.name)
        if member is None:
            raise BadKey("missing", column=column)
        value = value_of(member)
        stored = as_kind(value, column.kind)
        if stored is None:
            raise BadKey("kind", column=column, actual=value)
        values.append(stored)
    _check_values(table, values)
    for index in table.indexes:
        for column in index.key_schema.columns:
            member = item.get(column.name)
            if member is not None and column.name not in table.key_schema.names:
                _check_index_value(index, column, value_of(member))
    return Key(tuple(values), table.key_schema.position(values))


def check_index_keys(table: Table, values: Mapping[str, Value]) -> None:
    """The same check of index keys for the result of an update."""
    for index in table.indexes:
        for column in index.key_schema.columns:
            value = values.get(column.name)
            if value is not None and column.name not in table.key_schema.names:
                _check_index_value(index, column, view(value))


def index_view(value: Value, is_partition: bool) -> Value | None:
    """How this dialect's indexes read key attributes: empty and over-long values have no entry (rule 37)."""
    seen = view(value)
    if seen.kind is Kind.TEXT or seen.kind is Kind.BYTES:
        limit = limits.PARTITION_KEY_BYTES if is_partition else limits.SORT_KEY_BYTES
        if not 0 < _bytes_of(seen) <= limit:
            return None
    return seen


def start_position(table: Table, index: Index | None, wire: Mapping[str, Any]) -> Position:
    """Where an ExclusiveStartKey stands: a position of the table, or of the index (rule 28)."""
    columns = {column.name: column for column in table.key_schema.columns}
    if index is not None:
        columns |= {column.name: column for column in index.key_schema.columns}
    if wire.keys() != columns.keys():
        raise validation("The provided starting key is invalid")
    values = {}
    for name, column in columns.items():
        value = as_kind(value_of(wire[name]), column.kind)
        if value is None:
            raise validation("The provided starting key is invalid: The provided key element does not match the schema")
        values[name] = value
    row = table.key_schema.position([values[name] for name in table.key_schema.names])
    if index is None:
        return row
    head = index.key_schema.position([values[name] for name in index.key_schema.names])
    return Position(head.partition, head.sort + row.partition + row.sort)


def _check_index_value(index: Index, column: KeyColumn, value: Value) -> None:
    if as_kind(value, column.kind) is None:
        raise BadKey("index-kind", column=column, actual=value, index=index.name)
    if value.kind in (Kind.TEXT, Kind.BYTES):
        if not value.data:
            raise BadKey("index-empty", column=column, actual=value, index=index.name)
        _check_size(value, column in index.key_schema.partition)


def _check_values(table: Table, values: Sequence[Value]) -> None:
    split = len(table.key_schema.partition)
    for at, value in enumerate(values):
        if value.kind is Kind.TEXT or value.kind is Kind.BYTES:
            if not value.data:
                raise BadKey("empty", column=table.key_schema.columns[at], actual=value)
            _check_size(value, at < split)


def _check_size(value: Value, is_partition: bool) -> None:
    limit = limits.PARTITION_KEY_BYTES if is_partition else limits.SORT_KEY_BYTES
    if _bytes_of(value) > limit:
        raise KeyTooLong("partition" if is_partition else "sort")


def _bytes_of(value: Value) -> int:
    return len(value.data) if value.kind is Kind.BYTES else len(value.data.encode())

"""Keys of requests and items against a table's key schema, and index keys of items.

The rules for key values are in docs/protocols/dynamodb.md rules 23, 24, 36 and 37. Errors are BadKey and
KeyTooLong with the violated rule. gateway_errors.py has the texts. values.py has already checked the values as
attribute values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.values.values import as_kind, value_of, view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.expressions.predicates import Attributes
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.bodies import untagged
from tablegate.gateway.model.values.composites import composite_text
from tablegate.gateway.model.values.keys import Key, KeyColumn
from tablegate.gateway.model.values.values import Kind, Value


def key_of(table: Table, wire: Mapping[str, Any]) -> Key:
    """Return the key in a `Key` parameter, which must have exactly the key attributes, of their types.

    Raises BadKey, KeyTooLong.
    """
    schema = composites.shown_schema(table.key_schema)
    if len(wire) != len(schema.columns):
        raise BadKey("schema")
    # Keys from another dialect that are not legal here can still be read and deleted.
    is_ours = DIALECT in table.properties
    values = [key_value(column, column in schema.partition, wire, is_ours) for column in schema.columns]
    return composites.stored_key(table.key_schema, values)


def key_value(column: KeyColumn, is_partition: bool, wire: Mapping[str, Any], is_ours: bool = True) -> Value:
    """Return the value of one column of a `Key` parameter. `is_ours`: it must be a legal key here."""
    member = wire.get(column.name)
    value = None if member is None else as_kind(_given_value(member), column.kind)
    if value is None:
        raise BadKey("schema")
    if is_ours and value.kind in _SIZED:
        if not value.data:
            raise BadKey("key-empty", column=column, actual=value)
        _check_size(value, is_partition)
    return value


def _given_value(member: Mapping[str, Any]) -> Value:
    """Return the value of a key attribute. Documents and sets are never keys, so only their kind is converted."""
    [(tag, data)] = member.items()
    return untagged({tag: type(data)()}) if tag in _NEVER_KEYS else value_of(member)


_NEVER_KEYS = frozenset({"L", "M", "SS", "NS", "BS"})


def item_key(table: Table, item: Mapping[str, Any]) -> Key:
    """Return the key of an item for a put. Its index keys are checked too. Raises BadKey, KeyTooLong."""
    schema = table.key_schema
    composite = None if schema.is_pair else composites.composite_name(schema)
    if composite:
        item = composites.with_columns(schema, item)
    values = []
    for column in schema.columns:
        member = item.get(column.name)
        if member is None:
            raise BadKey("missing", column=column)
        value = _given_value(member)
        stored = value if value.kind is column.kind else as_kind(value, column.kind)
        if stored is None:
            raise BadKey("kind", column=column, actual=value)
        if stored.kind in _SIZED and not (composite and column in schema.sort):
            if not stored.data:
                raise BadKey("empty", column=column, actual=stored)
            _check_size(stored, column in schema.partition)
        values.append(stored)
    if composite:  # clients see one text, and its length is limited
        _check_size(Value(Kind.TEXT, composite_text(values[len(schema.partition) :])), is_partition=False)
    if table.indexes:
        _check_index_values(table, lambda name: _given_value(item[name]) if name in item else None, _PUT)
    return Key(tuple(values), schema.position(values))


def check_given_index_keys(table: Table, new_values: Attributes) -> None:
    """Check the index keys among an update's values. Of computed values only the kind is checked."""
    _check_index_values(table, new_values.get, _UPDATE)


def check_updated_index_keys(table: Table, new: Attributes) -> None:
    """Check the index keys of an updated item. Those that are older than their index are checked, too.

    Source: developer guide, GSI.OnlineOps.ViolationDetection: all writes to items that violate an index are rejected.
    """
    for index in table.indexes:
        for column in index.key_schema.columns:
            if not _is_short(new.get(column.name), column.kind):
                _check_updated(table, new)
                return


def _is_short(value: Value | None, kind: Kind) -> bool:
    """Return True for most valid values of an index key: an absent one, a number, and one of few characters or bytes."""
    if value is None:
        return True
    return value.kind is kind and (kind not in _SIZED or 0 < len(value.data) <= _SHORT)


_SHORT = limits.SORT_KEY_BYTES // 4  # a character has at most four bytes


def _check_updated(table: Table, new: Attributes) -> None:
    def visible(name: str) -> Value | None:
        value = new.get(name)
        return None if value is None else view(value)

    try:
        _check_index_values(table, visible, _COMPUTED)
    except KeyTooLong:
        raise BadKey("index-update-size") from None


def index_view(value: Value, is_partition: bool) -> Value | None:
    """Return a key attribute as this dialect's indexes see it.

    None if it is empty or too long: it has no entry (rule 37).
    """
    visible = view(value)
    if visible.kind in _SIZED:
        if not visible.data:
            return None
        try:
            _check_size(visible, is_partition)
        except KeyTooLong:
            return None
    return visible


_SIZED = frozenset({Kind.TEXT, Kind.BYTES})


# Rules for an index key of another kind and for an empty one: in an item, in an update, as the result of an
# update.
_PUT = ("index-kind", "index-empty")
_UPDATE = ("index-kind", "index-update-empty")
_COMPUTED = ("index-update-kind", "index-update-empty")


def _check_index_values(
    table: Table, value_of_name: Callable[[str], Value | None], rules: tuple[str, str]
) -> None:
    own = table.key_schema.names
    partition = table.key_schema.partition
    indexes: Sequence[Index] = table.indexes
    if len(indexes) > 1:
        indexes = sorted(indexes, key=_name)  # errors name the first that is wrong (dynoxide, captured)
    for index in indexes:
        for column in index.key_schema.columns:
            # The table key is already checked. Only a partition key may be too long for the sort key of an index.
            if column.name not in own or (column in partition and column in index.key_schema.sort):
                value = value_of_name(column.name)
                if value is not None:
                    _check_index_value(index, column, value, rules)


_name = attrgetter("name")


def _check_index_value(index: Index, column: KeyColumn, value: Value, rules: tuple[str, str]) -> None:
    if as_kind(value, column.kind) is None:
        raise BadKey(rules[0], column=column, actual=value, index=index.name)
    if value.kind in _SIZED:
        if not value.data:
            raise BadKey(rules[1], column=column, actual=value, index=index.name)
        _check_size(value, column in index.key_schema.partition)


def _check_size(value: Value, is_partition: bool) -> None:
    size_bytes = len(value.data) if value.kind is Kind.BYTES else len(value.data.encode())
    if size_bytes > (limits.PARTITION_KEY_BYTES if is_partition else limits.SORT_KEY_BYTES):
        raise KeyTooLong("partition" if is_partition else "sort")

"""Keys of requests and items against a table's key schema, index keys of items, and the composite sort attribute.

The rules for key values are in docs/protocols/dynamodb.md rules 23, 24, 36 and 37. Errors are BadKey and
KeyTooLong with the violated rule. gateway_errors.py has the texts. values.py has already checked the values as
attribute values.

The composite sort attribute is DynamoDB's view of Table Store tables with three or four key columns. A DynamoDB client
sees a HASH and one RANGE attribute. The RANGE attribute is a text named after the sort columns ("c2/c3/c4"). The columns
themselves are shown too. expressions/key_conditions.py handles the attribute in conditions and queries. All dialects
share its spelling (gateway/model/values/composites.py). A table with a pair of key columns (`KeySchema.is_pair`) has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import orjson

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.values.values import (
    as_kind,
    render_row,
    render_rows,
    render_values,
    value_of,
    view,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.expressions.predicates import Attributes
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.bodies import untagged
from tablegate.gateway.model.values.composites import composite_text, name_of, split
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

_COMPOSITE_COLUMNS = 2  # minimum number of sort columns; a base table has one partition column


def composite_name(schema: KeySchema) -> str | None:
    """Return the name of a table's composite attribute, or None."""
    return name_of(schema.sort) if len(schema.sort) >= _COMPOSITE_COLUMNS else None


def shown_schema(schema: KeySchema) -> KeySchema:
    """Return a table's key as clients see it: at most two columns."""
    return schema if len(schema.sort) < _COMPOSITE_COLUMNS else _shown_schema(schema)


@lru_cache(maxsize=256)
def _shown_schema(schema: KeySchema) -> KeySchema:
    return KeySchema(schema.partition, (KeyColumn(name_of(schema.sort), Kind.TEXT),))


def stored_key(schema: KeySchema, shown_values_of_key: Sequence[Value]) -> Key:
    """Return the stored key for values of `shown_schema`. Raises BadKey if no key of the table has them."""
    values = list(shown_values_of_key)
    if len(schema.sort) >= _COMPOSITE_COLUMNS:
        sort_values = split(schema.sort, values.pop().data)
        if sort_values is None:
            raise BadKey("schema")
        values += sort_values
    return Key(tuple(values), schema.position(values))


# Items with the composite sort attribute


def with_columns(schema: KeySchema, item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a wire item for a put with the composite replaced by its columns. Where both are given they must agree.

    Raises BadKey. An item without the composite is returned unchanged. item_key reports missing columns.
    """
    name = composite_name(schema)
    if name is None or name not in item:
        return item
    composite = value_of(item[name])
    if composite.kind is not Kind.TEXT:
        raise BadKey("kind", column=KeyColumn(name, Kind.TEXT), actual=composite)
    values = split(schema.sort, composite.data)
    if values is None:
        raise BadKey("schema")
    expanded = {attribute: member for attribute, member in item.items() if attribute != name}
    for column, value in zip(schema.sort, values, strict=True):
        column_member = expanded.get(column.name)
        if column_member is not None and as_kind(value_of(column_member), column.kind) != value:
            raise BadKey("schema")
        expanded |= render_values({column.name: value})
    return expanded


def stored_contents(table: Table, key: Key, contents: Contents) -> Contents:
    """Return the contents of an item as its table stores them: key columns in their own kinds, and no composite.

    Contents are unchanged if there is no composite and no integer key column.
    """
    schema = table.key_schema
    name = composite_name(schema)
    if name is None and not any(column.kind is Kind.INT64 for column in schema.columns):
        return contents
    values = {attribute: value for attribute, value in contents.latest.items() if attribute != name}
    return Contents.of_values({**values, **dict(zip(schema.names, key.values, strict=True))})


def shown_values(schema: KeySchema, latest: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return attributes that include the whole key, with the composite added."""
    name = composite_name(schema)
    return latest if name is None else {**latest, name: composite_value(schema, latest)}


def shown_key(schema: KeySchema, latest: Mapping[str, Value]) -> dict[str, Value]:
    """Return the key attributes that clients see of a row. `latest` contains its key columns."""
    values = shown_values(schema, latest)
    return {name: values[name] for name in shown_schema(schema).names}


def visible_attributes(schema: KeySchema, row: Row) -> Attributes:
    """Return the attributes of a row as a DynamoDB client sees them."""
    if row.is_native and len(schema.sort) < _COMPOSITE_COLUMNS:
        return row.contents
    latest: Mapping[str, Value] = row.latest
    if not row.is_native:
        latest = {name: view(value) for name, value in latest.items()}
    name = composite_name(schema)
    return latest if name is None else {**latest, name: composite_value(schema, row.latest)}


def render_shown(schema: KeySchema, row: Row) -> bytes:
    """Return a row as the JSON of a wire item."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_row(row)
    return orjson.dumps(render_values(shown_values(schema, row.latest)))


def render_page(schema: KeySchema, rows: Iterable[Row]) -> bytes:
    """Return rows as the JSON of an array of wire items."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_rows(rows)
    return b"[" + b",".join([render_shown(schema, row) for row in rows]) + b"]"


def composite_value(schema: KeySchema, latest: Mapping[str, Value]) -> Value:
    """Return the composite of a row with these latest values. The schema must have one (composite_name)."""
    return Value(Kind.TEXT, composite_text([latest[column.name] for column in schema.sort]))


# Keys of requests and items


def key_of(table: Table, wire: Mapping[str, Any]) -> Key:
    """Return the key in a `Key` parameter, which must have exactly the key attributes, of their types.

    Raises BadKey, KeyTooLong.
    """
    schema = shown_schema(table.key_schema)
    if len(wire) != len(schema.columns):
        raise BadKey("schema")
    # Keys from another dialect that are not legal here can still be read and deleted.
    is_ours = DIALECT in table.properties
    values = [key_value(column, column in schema.partition, wire, is_ours) for column in schema.columns]
    return stored_key(table.key_schema, values)


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
    composite = None if schema.is_pair else composite_name(schema)
    if composite:
        item = with_columns(schema, item)
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

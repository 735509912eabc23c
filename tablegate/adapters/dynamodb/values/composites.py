"""The composite sort attribute: DynamoDB's view of Table Store tables with three or four key columns.

A DynamoDB client sees a HASH and one RANGE attribute. The RANGE attribute is a text named after the sort columns
("c2/c3/c4"). The columns themselves are shown too.

This module handles the attribute in keys and items, expressions/key_conditions.py in conditions and queries. All
dialects share its spelling (gateway/model/values/composites.py). A table with a pair of key columns
(`KeySchema.is_pair`) has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from tablegate.adapters.dynamodb.values.values import (
    as_kind,
    render_row,
    render_rows,
    render_values,
    value_of,
    view,
)
from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.expressions.predicates import Attributes
from tablegate.gateway.model.tables.tables import Table
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


# Items


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


def render(schema: KeySchema, row: Row) -> bytes:
    """Return a row as the JSON of a wire item."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_row(row)
    return orjson.dumps(render_values(shown_values(schema, row.latest)))


def render_page(schema: KeySchema, rows: Iterable[Row]) -> bytes:
    """Return rows as the JSON of an array of wire items."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_rows(rows)
    return b"[" + b",".join([render(schema, row) for row in rows]) + b"]"


def composite_value(schema: KeySchema, latest: Mapping[str, Value]) -> Value:
    """Return the composite of a row with these latest values. The schema must have one (composite_name)."""
    return Value(Kind.TEXT, composite_text([latest[column.name] for column in schema.sort]))

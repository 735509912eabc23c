"""Tables that Table Store made with three or four key columns, as a DynamoDB client sees them: a HASH and one RANGE
attribute, a text named after the sort columns ("c2/c3/c4"), beside the columns themselves.

Knows that attribute wherever one may stand: in keys, items, conditions, filters and the key condition of a Query. Its
spelling is all dialects' (gateway/model/composites.py). Of every other table all functions here give back what they got.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson

from adapters.dynamodb.expressions.key_conditions import KeyTest
from adapters.dynamodb.values.values import as_kind, render_row, render_rows, render_values, value_of, view
from adapters.dynamodb.wire.errors import validation
from gateway.model.composites import joined, name_of, split
from gateway.model.errors import BadKey
from gateway.model.keys import Key, KeyColumn, KeySchema
from gateway.model.predicates import (
    ALWAYS,
    And,
    Attribute,
    Attributes,
    Compare,
    Comparison,
    Computed,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Predicate,
    SizeOf,
    StartsWith,
    size_of,
)
from gateway.model.ranges import KeyRange, range_of
from gateway.model.rows import Contents, Row
from gateway.model.tables import Table
from gateway.model.values import Kind, Value

_COMPOSITE_COLUMNS = 2  # as many sort columns make a composite; a base table has one partition column


def composite_name(schema: KeySchema) -> str | None:
    """The name of a table's composite attribute, or None: it has none."""
    return name_of(schema.sort) if len(schema.sort) >= _COMPOSITE_COLUMNS else None


def shown_schema(schema: KeySchema) -> KeySchema:
    """A table's key as it is shown: at most two columns."""
    return schema if len(schema.sort) < _COMPOSITE_COLUMNS else _shown_schema(schema)


@lru_cache(maxsize=256)
def _shown_schema(schema: KeySchema) -> KeySchema:
    return KeySchema(schema.partition, (KeyColumn(name_of(schema.sort), Kind.TEXT),))


def stored_key(schema: KeySchema, shown: Sequence[Value]) -> Key:
    """The key that is shown as these values of `shown_schema`. Raises BadKey if no key of the table is."""
    values = list(shown)
    if len(schema.sort) >= _COMPOSITE_COLUMNS:
        found = split(schema.sort, values.pop().data)
        if found is None:
            raise BadKey("schema")
        values += found
    return Key(tuple(values), schema.position(values))


# Items


def with_columns(schema: KeySchema, item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A wire item to be put, the composite replaced by its columns. Where both are given they must agree.

    Raises BadKey. An item without the composite passes: it has the columns, or item_key will miss them.
    """
    name = composite_name(schema)
    if name is None or name not in item:
        return item
    shown = value_of(item[name])
    if shown.kind is not Kind.TEXT:
        raise BadKey("kind", column=KeyColumn(name, Kind.TEXT), actual=shown)
    values = split(schema.sort, shown.data)
    if values is None:
        raise BadKey("schema")
    expanded = {attribute: member for attribute, member in item.items() if attribute != name}
    for column, value in zip(schema.sort, values, strict=True):
        given = expanded.get(column.name)
        if given is not None and as_kind(value_of(given), column.kind) != value:
            raise BadKey("schema")
        expanded |= render_values({column.name: value})
    return expanded


def stored_contents(table: Table, key: Key, contents: Contents) -> Contents:
    """The contents of an item as its table stores them: key columns in their own kinds, and no composite."""
    schema = table.key_schema
    if schema.is_text_pair:
        return contents
    name = composite_name(schema)
    if name is None and not any(column.kind is Kind.INT64 for column in schema.columns):
        return contents
    values = {attribute: value for attribute, value in contents.latest.items() if attribute != name}
    return Contents.of_values({**values, **dict(zip(schema.names, key.values, strict=True))})


def shown_values(schema: KeySchema, latest: Mapping[str, Value]) -> Mapping[str, Value]:
    """Attributes that hold the whole key, with the composite beside them."""
    name = composite_name(schema)
    return latest if name is None else {**latest, name: _text_of(schema, latest)}


def shown_key(schema: KeySchema, latest: Mapping[str, Value]) -> dict[str, Value]:
    """The key attributes that are shown of a row; `latest` has its key columns."""
    values = shown_values(schema, latest)
    return {name: values[name] for name in shown_schema(schema).names}


def seen(schema: KeySchema, row: Row) -> Attributes:
    """The attributes of a row as a DynamoDB client sees them."""
    if row.is_native and len(schema.sort) < _COMPOSITE_COLUMNS:
        return row.contents
    latest: Mapping[str, Value] = row.latest
    if not row.is_native:
        latest = {name: view(value) for name, value in latest.items()}
    name = composite_name(schema)
    return latest if name is None else {**latest, name: _text_of(schema, row.latest)}


def render(schema: KeySchema, row: Row) -> bytes:
    """A row as the JSON of a wire item."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_row(row)
    return orjson.dumps(render_values(shown_values(schema, row.latest)))


def render_page(schema: KeySchema, rows: Iterable[Row]) -> bytes:
    """Rows as the JSON of an array of wire items."""
    if len(schema.sort) < _COMPOSITE_COLUMNS:
        return render_rows(rows)
    return b"[" + b",".join([render(schema, row) for row in rows]) + b"]"


def _text_of(schema: KeySchema, latest: Mapping[str, Value]) -> Value:
    return Value(Kind.TEXT, joined([latest[column.name] for column in schema.sort]))


# Conditions


def bound(schema: KeySchema, predicate: Predicate) -> Predicate:
    """A condition or filter with the composite in place of the attribute of its name."""
    name = composite_name(schema)
    return predicate if name is None or predicate is ALWAYS else _bound(predicate, name, schema)


def refuse_as_operand(schema: KeySchema, paths: Iterable[Path]) -> None:
    """Raise ServiceError if an update computes with the composite: rows do not hold it, if_not_exists would go wrong."""
    name = composite_name(schema)
    if name is not None and any(path[0] == name for path in paths):
        raise validation(
            f"Invalid UpdateExpression: {name} is a key of several columns and cannot be an operand"
        )


def _bound(predicate: Predicate, name: str, schema: KeySchema) -> Predicate:
    def operand(of: Operand) -> Operand:
        match of:
            case Attribute(path) if path == (name,):
                return _computed(schema)
            case SizeOf(path) if path == (name,):
                return Computed(lambda row: _size_of(_text_of(schema, row.latest)))
        return of

    match predicate:
        case And(parts):
            return And(tuple([_bound(part, name, schema) for part in parts]))
        case Or(parts):
            return Or(tuple([_bound(part, name, schema) for part in parts]))
        case Not(part):
            return Not(_bound(part, name, schema))
        case Compare(left, comparison, right):
            return Compare(operand(left), comparison, operand(right))
        case StartsWith(left, right):
            return StartsWith(operand(left), operand(right))
        case Contains(left, right):
            return Contains(operand(left), operand(right))
        case HasKind(inner, kinds):
            return HasKind(operand(inner), kinds)
        case Exists(path) if path == (name,):
            return Exists(_first_column(schema))
    return predicate


def _computed(schema: KeySchema) -> Operand:
    return Computed(lambda row: _text_of(schema, row.latest))


def _size_of(value: Value) -> Value:
    return Value(Kind.DECIMAL, Decimal(size_of(value) or 0))


def _first_column(schema: KeySchema) -> Path:
    """A column that is there whenever the row is."""
    return (schema.sort[0].name,)


# Queries


def bounds(schema: KeySchema, tests: Sequence[KeyTest]) -> tuple[KeyRange, Predicate]:
    """The range of a Query whose tests suit `shown_schema`, and what is left to be judged of each row in it.

    Equality leads to the one row. The rows come in the order of the columns, which is not the order of their text (5 comes
    before 10, and its text after): any other test is judged row by row.
    """
    by_name = {test.name: test for test in tests}
    partition = by_name[schema.partition[0].name].values[0]
    test = by_name.get(name_of(schema.sort))
    everything = range_of(schema, [partition])
    if test is None:
        return everything, ALWAYS
    if test.operator == "EQ":
        values = split(schema.sort, test.values[0].data)
        if values is None:
            return KeyRange(everything.lower, everything.lower), ALWAYS
        return range_of(schema, [partition, *values]), ALWAYS
    return everything, _judged(_computed(schema), test)


_COMPARISONS = {"LT": Comparison.LT, "LE": Comparison.LE, "GT": Comparison.GT, "GE": Comparison.GE}


def _judged(composite: Operand, test: KeyTest) -> Predicate:
    first, last = Literal(test.values[0]), Literal(test.values[-1])
    if test.operator == "BEGINS_WITH":
        return StartsWith(composite, first)
    if test.operator == "BETWEEN":
        return And((Compare(composite, Comparison.GE, first), Compare(composite, Comparison.LE, last)))
    return Compare(composite, _COMPARISONS[test.operator], first)

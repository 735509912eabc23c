"""The part of a table that a SELECT must read: the range of keys that its WHERE permits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tablegate.adapters.tablestore.sql.expressions import Scope
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.expressions.ranges import ColumnBounds, KeyRange, bounds_of, range_of
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.values import Kind, Value

_COMPARISONS = {
    "eq": Comparison.EQ,
    "lt": Comparison.LT,
    "lte": Comparison.LE,
    "gt": Comparison.GT,
    "gte": Comparison.GE,
}
_FLIPPED = {
    Comparison.EQ: Comparison.EQ,
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}
Condition = tuple[int, Comparison, Any]
"""A comparison of a column with a literal: the place of the column, the comparison, the literal of sqlglot."""


def key_range(where: Any, scope: Scope, table: Table, first_place: int) -> KeyRange:
    """Return the keys of a table that can fulfil a WHERE. `first_place`: of the table's columns in the scope.

    The first key columns are fixed by equalities. The next one is limited by comparisons.
    """
    conditions = [] if where is None else list(_conditions(where.this, scope))
    equal: list[Value] = []
    for column in table.key_schema.columns:
        of_column = [
            (comparison, value)
            for place, comparison, literal in conditions
            if place >= first_place
            and scope.columns[place][0] == scope.columns[first_place][0]
            and scope.columns[place][1].name == column.name
            and (value := _key_value(column, literal)) is not None
        ]
        exact = next((value for comparison, value in of_column if comparison is Comparison.EQ), None)
        if exact is None:
            bounds = ColumnBounds()
            for comparison, value in of_column:
                limit = bounds_of(comparison, value)
                bounds = bounds if limit is None else bounds.intersect(limit)
            return range_of(table.key_schema, equal, bounds)
        equal.append(exact)
    return range_of(table.key_schema, equal)


def conjuncts(tree: Any) -> Iterator[Any]:
    """Yield the parts of a condition that must all be true."""
    pending = [tree]
    while pending:
        part = pending.pop()
        if part.key == "and":
            pending += [part.expression, part.this]
        elif part.key == "paren":
            pending.append(part.this)
        else:
            yield part


def _conditions(tree: Any, scope: Scope) -> Iterator[Condition]:
    for part in conjuncts(tree):
        comparison = _COMPARISONS.get(part.key)
        if comparison is not None:
            left, right = part.this, part.expression
            if right.key == "column":
                left, right, comparison = right, left, _FLIPPED[comparison]
            if left.key == "column" and _is_literal(right):
                yield scope.place(left.name, left.table), comparison, right
        elif part.key == "between" and part.this.key == "column":
            place = scope.place(part.this.name, part.this.table)
            for name, bound in (("low", Comparison.GE), ("high", Comparison.LE)):
                if _is_literal(part.args[name]):
                    yield place, bound, part.args[name]


def _is_literal(tree: Any) -> bool:
    return tree.key == "literal" or (tree.key == "neg" and tree.this.key == "literal")


def _key_value(column: KeyColumn, literal: Any) -> Value | None:
    """Return a literal as a value of a key column. None if it is of another type, which only the rows can decide."""
    sign = ""
    if literal.key == "neg":
        sign, literal = "-", literal.this
    if column.kind is Kind.TEXT:
        return Value(Kind.TEXT, literal.this) if literal.is_string and not sign else None
    if column.kind is Kind.INT64 and not literal.is_string:
        text = literal.this
        if text.isascii() and text.isdigit() and len(text) < 19:
            return Value(Kind.INT64, int(sign + text))
    return None

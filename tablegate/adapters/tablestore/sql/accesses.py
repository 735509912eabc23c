"""The access path to the rows of a table: the range of keys of the table or a secondary index.

An access path finds every row that can fulfil the WHERE, and maybe more. Rules: "Query optimization" (Tablestore developer
guide). Unlike there, a WHERE that fixes the partition key always reads the table, because those rows are current.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.sql.scopes import Scope
from tablegate.adapters.tablestore.sql.sql_values import whole_number
from tablegate.adapters.tablestore.sql.trees import comparison_of
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.expressions.ranges import (
    EVERYTHING,
    ColumnBounds,
    KeyRange,
    bounds_of,
    range_of,
)
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value

_COMPARISONS = {
    "eq": Comparison.EQ,
    "lt": Comparison.LT,
    "lte": Comparison.LE,
    "gt": Comparison.GT,
    "gte": Comparison.GE,
}
ColumnComparison = tuple[str, Comparison, Any]
"""A comparison of a column with a literal: the name of the column, the comparison, the value of the literal."""


class AccessPath(NamedTuple):
    """The access path to the rows of a table.

    - `range`: of the keys of the table or of `index`.
    - `equal`, `limited`: the number of key columns that have one value, and that are limited.
    """

    range: KeyRange = EVERYTHING
    index: Index | None = None  # type: ignore[assignment]  # hides tuple.index, which is not called
    equal: int = 0
    limited: int = 0


class _KeyMatch(NamedTuple):
    """The range of keys that conditions permit, and the numbers of equal and of limited key columns."""

    range: KeyRange
    equal: int
    limited: int


def comparisons_of(conditions: Sequence[Any], scope: Scope, places: range) -> list[ColumnComparison]:
    """Return the comparisons with literals that conditions require of the columns at these places."""
    return [
        (scope.columns[place][1].name, comparison, value)
        for place, comparison, value in _comparisons(conditions, scope)
        if place in places
    ]


def fixes_partition(comparisons: Sequence[ColumnComparison], schema: KeySchema) -> bool:
    """Return True if conditions permit one value of the partition key only."""
    return _match(comparisons, schema).equal >= len(schema.partition)


def access_by_key(
    call: CallContext, table: Table, comparisons: Sequence[ColumnComparison], used_names: frozenset[str]
) -> AccessPath:
    """Return the access by the table's key or that of a secondary index, whichever has more columns in the conditions.

    A row without all key columns of an index is not in it. So the conditions must limit each one that the table's key
    does not have.
    """
    of_table = _match(comparisons, table.key_schema)
    best = AccessPath(of_table.range, equal=of_table.equal, limited=of_table.limited)
    if of_table.equal >= len(table.key_schema.partition):
        return best
    for index in table.indexes:
        if index.dialect != DIALECT or not index.is_active(call.now_ms):
            continue
        names = index.projected_names
        found = _match(comparisons, index.key_schema)
        own = [name for name in index.key_schema.names if name not in table.key_schema.names]
        limited = {name for name, _, _ in comparisons}
        is_usable = (names is None or used_names <= names) and limited.issuperset(own)
        if is_usable and found.limited > best.limited and call.reaches(table, index.name):
            best = access_by_index(index, comparisons)
    return best


def access_by_index(index: Index, comparisons: Sequence[ColumnComparison]) -> AccessPath:
    """Return the access by the key of a secondary index."""
    found = _match(comparisons, index.key_schema)
    return AccessPath(found.range, index, equal=found.equal, limited=found.limited)


def _match(comparisons: Sequence[ColumnComparison], schema: KeySchema) -> _KeyMatch:
    """Return the range of keys. The first key columns are fixed by equalities, the next one is limited by comparisons."""
    equal: list[Value] = []
    for column in schema.columns:
        of_column = [
            (comparison, value)
            for name, comparison, data in comparisons
            if name == column.name and (value := _key_value(column, data)) is not None
        ]
        exact = next((value for comparison, value in of_column if comparison is Comparison.EQ), None)
        if exact is None:
            bounds = ColumnBounds()
            for comparison, value in of_column:
                limit = bounds_of(comparison, value)
                bounds = bounds if limit is None else bounds.intersect(limit)
            limited = len(equal) + (1 if of_column else 0)
            return _KeyMatch(range_of(schema, equal, bounds), len(equal), limited)
        equal.append(exact)
    return _KeyMatch(range_of(schema, equal), len(equal), len(equal))


def _comparisons(conditions: Sequence[Any], scope: Scope) -> Iterator[tuple[int, Comparison, Any]]:
    for part in conditions:
        found = comparison_of(part)
        # IN limits no key column, and neither do fields of nested columns and other expressions.
        if found is None or found.operator == "in" or found.expression.key != "column":
            continue
        place = scope.known_place(found.expression.name, found.expression.table)
        operators = ("gte", "lte") if found.operator == "between" else (found.operator,)
        for operator, value in zip(operators, found.literals, strict=True):
            if place is not None and value is not None and not isinstance(value, bool):
                yield place, _COMPARISONS[operator], value


def _key_value(column: KeyColumn, data: Any) -> Value | None:
    """Return the value of a literal as that of a key column. None if it is of another type, which only the rows can decide."""
    if column.kind is Kind.TEXT:
        return Value(Kind.TEXT, data) if isinstance(data, str) else None
    number = whole_number(data) if isinstance(data, str) else data
    is_key = column.kind is Kind.INT64 and isinstance(number, int) and INT64_MIN <= number <= INT64_MAX
    return Value(Kind.INT64, number) if is_key else None

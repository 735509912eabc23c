"""The access to the rows of a table: the range of keys of the table or an index, or the query of a search index.

An access finds every row that can fulfil the WHERE, and maybe more. Rules: "Query optimization" (Tablestore developer
guide). Unlike there, a WHERE that fixes the partition key always reads the table, because those rows are current.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.sql.scopes import Scope
from tablegate.adapters.tablestore.sql.sql_values import whole_number
from tablegate.adapters.tablestore.wire.call_context import CallContext
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.expressions.ranges import (
    EVERYTHING,
    ColumnBounds,
    KeyRange,
    bounds_of,
    range_of,
)
from tablegate.gateway.model.search.ordering import BY_KEY, Sorter
from tablegate.gateway.model.search.queries import MatchAll, Query
from tablegate.gateway.model.search.schema import SearchIndex
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
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
ColumnComparison = tuple[str, Comparison, Any]
"""A comparison of a column with a literal: the name of the column, the comparison, the literal of sqlglot."""


class Access(NamedTuple):
    """The access to the rows of a table.

    - `range`: of the keys of the table or of `index`.
    - `search_index`, `query`: instead of a range. `is_exact`: the query finds only rows that fulfil the WHERE.
    - `sorters`: the order of the rows that a search index finds.
    - `equal`, `limited`: the number of key columns that have one value, and that are limited.
    """

    range: KeyRange = EVERYTHING
    index: Index | None = None  # type: ignore[assignment]  # hides tuple.index, which is not called
    search_index: SearchIndex | None = None
    query: Query = MatchAll()
    is_exact: bool = False
    sorters: tuple[Sorter, ...] = BY_KEY
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
        (scope.columns[place][1].name, comparison, literal)
        for place, comparison, literal in _comparisons(conditions, scope)
        if place in places
    ]


def fixes_partition(comparisons: Sequence[ColumnComparison], schema: KeySchema) -> bool:
    """Return True if conditions permit one value of the partition key only."""
    return _match(comparisons, schema).equal >= len(schema.partition)


def access_by_key(
    call: CallContext, table: Table, comparisons: Sequence[ColumnComparison], used_names: frozenset[str]
) -> Access:
    """Return the access by the table's key or that of a secondary index, whichever has more columns in the conditions.

    A row without all key columns of an index is not in it. So the conditions must limit each one that the table's key
    does not have.
    """
    of_table = _match(comparisons, table.key_schema)
    best = Access(of_table.range, equal=of_table.equal, limited=of_table.limited)
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


def access_by_index(index: Index, comparisons: Sequence[ColumnComparison]) -> Access:
    """Return the access by the key of a secondary index."""
    found = _match(comparisons, index.key_schema)
    return Access(found.range, index, equal=found.equal, limited=found.limited)


def _match(comparisons: Sequence[ColumnComparison], schema: KeySchema) -> _KeyMatch:
    """Return the range of keys. The first key columns are fixed by equalities, the next one is limited by comparisons."""
    equal: list[Value] = []
    for column in schema.columns:
        of_column = [
            (comparison, value)
            for name, comparison, literal in comparisons
            if name == column.name and (value := _key_value(column, literal)) is not None
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
        comparison = _COMPARISONS.get(part.key)
        if comparison is not None:
            left, right = part.this, part.expression
            if right.key == "column":
                left, right, comparison = right, left, _FLIPPED[comparison]
            place = _place(left, scope)
            if place is not None and _is_literal(right):
                yield place, comparison, right
        elif part.key == "between":
            place = _place(part.this, scope)
            for name, bound in (("low", Comparison.GE), ("high", Comparison.LE)):
                if place is not None and _is_literal(part.args[name]):
                    yield place, bound, part.args[name]


def _place(tree: Any, scope: Scope) -> int | None:
    """Return the place of a column. None for other expressions, and for fields of nested columns."""
    return scope.known_place(tree.name, tree.table) if tree.key == "column" else None


def _is_literal(tree: Any) -> bool:
    return tree.key == "literal" or (tree.key == "neg" and tree.this.key == "literal")


def _key_value(column: KeyColumn, literal: Any) -> Value | None:
    """Return a literal as a value of a key column. None if it is of another type, which only the rows can decide."""
    sign = ""
    if literal.key == "neg":
        sign, literal = "-", literal.this
    if column.kind is Kind.TEXT:
        return Value(Kind.TEXT, literal.this) if literal.is_string and not sign else None
    number = whole_number(sign + literal.this) if column.kind is Kind.INT64 else None
    if number is None or (literal.is_string and sign) or not -(1 << 63) <= number < 1 << 63:
        return None
    return Value(Kind.INT64, number)

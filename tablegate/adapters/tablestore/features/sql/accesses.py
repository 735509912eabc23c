"""The access path to the rows of a table, which is a range of keys of it or of a secondary index, and its reading by pages.

An access path finds every row that can fulfil the WHERE, and maybe more. Rules: "Query optimization" (Tablestore developer
guide). Unlike there, a WHERE that fixes the partition key always reads the table, because those rows are current.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex
from tablegate.adapters.tablestore.features.sql.scopes import Row, Scope, comparison_of
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn, SqlType, whole_number
from tablegate.adapters.tablestore.features.sql.work import Step, Work
from tablegate.adapters.tablestore.values import key_value_shown
from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.model.commands.row_commands import Read, VisibleNames
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.expressions.ranges import (
    EVERYTHING,
    ColumnBounds,
    KeyRange,
    bounds_of,
    range_of,
)
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Row as StoredRow
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


_KINDS = {
    SqlType.LONG: Kind.INT64,
    SqlType.DOUBLE: Kind.DOUBLE,
    SqlType.BOOL: Kind.BOOL,
    SqlType.STRING: Kind.TEXT,
    SqlType.BINARY: Kind.BYTES,
}


class Wanted(NamedTuple):
    """The rows to read.

    - `columns`: the columns of a row. `used_names`: those that are needed, all others are NULL.
    - `keep`: a test of the needed rows. `most`: their maximum number. None means all.
    """

    columns: Sequence[SqlColumn]
    used_names: frozenset[str]
    keep: Callable[[Row], bool] | None = None
    most: int | None = None


async def read_by_key(table: Table, access: AccessPath, wanted: Wanted, work: Work) -> list[Row]:
    """Return the wanted rows of a table."""
    if work.explains:
        work.steps.append(_step_of(table, access, wanted))
    page_rows = 1 if work.explains else limits.SQL_PAGE_ROWS
    page_limits = PageLimits(scanned=page_rows, filled_bytes=limits.STREAM_MAX_BYTES, seconds=1.0, peek=True)
    index, rest = access.index, access.range
    target = TableOrIndex.of(table, index)
    collector = Collector(table, wanted, work)
    while not rest.is_empty:
        visible = VisibleNames(wanted.used_names)
        page = await Read(table, rest, page_limits, index, visible_attributes=visible)
        work.add_page(target, page.scanned, page.scanned_bytes)
        if collector.add(page.rows, page.scanned_bytes) or page.next is None:
            break
        if index is None:
            position = page.next.position
        else:
            entry = index.entry(page.next)
            assert entry is not None  # it was read from the index
            position = entry.position
        rest = KeyRange(position, rest.upper)
    return collector.rows


ValueOf = Callable[[Value | None, SqlColumn, bool], Any]


def value_of(value: Value | None, column: SqlColumn, is_key: bool) -> Any:
    """Return a stored value in the type of its column. A value of another type is NULL, and so is a number that is not
    finite, which MySQL does not have.
    """
    if value is None:
        return None
    shown = key_value_shown(value) if is_key else view(value)
    if isinstance(shown.data, float) and not math.isfinite(shown.data):
        return None
    if shown.kind is _KINDS[column.type]:
        return shown.data
    if column.type is SqlType.DOUBLE and shown.kind is Kind.INT64:
        return float(shown.data)
    return None


class Collector:
    """The wanted rows of the pages so far. `value_of`: returns a stored value in the type of its column."""

    def __init__(self, table: Table, wanted: Wanted, work: Work, value_of: ValueOf = value_of) -> None:
        self.rows: list[Row] = []
        self._value_of = value_of
        self._wanted = wanted
        self._work = work
        keys = table.key_schema.names
        self._columns = [
            (column, column.stored_name in keys) if column.stored_name in wanted.used_names else None
            for column in wanted.columns
        ]

    def add(self, page: Sequence[StoredRow], size_bytes: int, scores: Sequence[float] | None = None) -> bool:
        """Add the wanted rows of a page. Return True if no more rows are wanted. `scores`: their last column."""
        if self._work.explains:
            return True
        wanted, before = self._wanted, len(self.rows)
        for at, stored in enumerate(page):
            row = self._row_of(stored)
            if scores is not None:
                row[-1] = scores[at]
            if wanted.keep is None or wanted.keep(row):
                self.rows.append(row)
                if wanted.most is not None and len(self.rows) >= wanted.most:
                    return True
        number = len(self.rows) - before
        self._work.keep(number, len(self._columns), size_bytes if number else 0)
        return False

    def _row_of(self, stored: StoredRow) -> list[Any]:
        latest = stored.latest
        return [
            None if each is None else self._value_of(latest.get(each[0].stored_name), each[0], each[1])
            for each in self._columns
        ]


def _step_of(table: Table, access: AccessPath, wanted: Wanted) -> Step:
    """Return the step of EXPLAIN for an access."""
    most = limits.SQL_ROWS_MAX
    if wanted.keep is None and wanted.most is not None:
        most = min(wanted.most, most)
    if access.range.is_empty:
        return Step(table.name, "nothing", "", "", 0)
    index = access.index
    names = table.key_schema.names if index is None else index.key_schema.names
    if index is None and access.equal == len(names):
        return Step(table.name, "row", "", ", ".join(names), min(1, most))
    extent = "range" if access.limited else "all"
    kind, name = ("table", "") if index is None else ("secondary index", index.name)
    return Step(table.name, f"{kind}, {extent}", name, ", ".join(names[: access.limited]), most)

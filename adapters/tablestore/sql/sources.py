"""The rows that a SELECT reads: tables, their columns in SQL, and joins.

Rows are read page by page in the range of keys that the WHERE permits. A statement that reads more than the limits of the
service ends with an error ("SQL limits", Tablestore developer guide).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from tablegate.adapters.tablestore.capacity import capacity, consumed_capacity
from tablegate.adapters.tablestore.sql import mappings
from tablegate.adapters.tablestore.sql.expressions import Compiler, Row, Scope
from tablegate.adapters.tablestore.sql.plans import conjuncts, key_range
from tablegate.adapters.tablestore.sql.sql_types import SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.sql.sql_values import truth
from tablegate.adapters.tablestore.values.values import key_value_shown
from tablegate.adapters.tablestore.values.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex, find_table
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Read, VisibleNames
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row as StoredRow
from tablegate.gateway.model.values.values import Kind, Value

_KINDS = {
    SqlType.LONG: Kind.INT64,
    SqlType.DOUBLE: Kind.DOUBLE,
    SqlType.BOOL: Kind.BOOL,
    SqlType.STRING: Kind.TEXT,
    SqlType.BINARY: Kind.BYTES,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A table of a FROM. `name`: its alias or name. `join`: the tree of its join, None for the first table."""

    name: str
    table: Table
    columns: mappings.Mapping
    join: Any = None

    @property
    def is_left(self) -> bool:
        """True if rows without a match stay (LEFT JOIN)."""
        return self.join is not None and self.join.side == "LEFT"


class Work:
    """The work of one statement so far. Raises ServiceError beyond a limit."""

    def __init__(self, hold: Callable[[int], None]) -> None:
        self._deadline = monotonic() + limits.SQL_SECONDS
        self._hold = hold
        self._comparisons = self._kept_bytes = self._kept_sizes = 0
        self._rows = self._bytes = 0
        self.units: dict[str, int] = {}
        """Read units by table."""

    def add_page(self, table: Table, rows: int, size_bytes: int) -> None:
        """Count a page of a table."""
        consumed_capacity.count_read(TableOrIndex.of_table(table), capacity.of_read(size_bytes))
        self._rows += rows
        self._bytes += size_bytes
        self.units[table.name] = self.units.get(table.name, 0) + capacity.units(size_bytes)
        if self._rows > limits.SQL_ROWS_MAX or self._bytes > limits.SQL_BYTES_MAX:
            raise sql_error(
                f"The scanned data exceeds the limit of {limits.SQL_ROWS_MAX} rows or {limits.SQL_BYTES_MAX} bytes."
            )
        self.check_time()

    def keep(self, rows: int, columns: int, size_bytes: int) -> None:
        """Count rows that stay in memory. Raises Busy."""
        self._kept_bytes += size_bytes + limits.SQL_VALUE_BYTES * rows * columns
        self._hold(self._kept_bytes)

    def keep_value(self, value: Any) -> Any:
        """Count a computed value that stays in memory, and return it."""
        if isinstance(value, (str, bytes)):
            self._kept_sizes += len(value)
            if self._kept_sizes > limits.SQL_KEPT_MAX:
                raise sql_error(f"The values of the statement exceed {limits.SQL_KEPT_MAX} bytes.")
        self.check_time()
        return value

    def add_comparisons(self, number: int) -> None:
        """Count pairs of rows that a join compares."""
        self._comparisons += number
        if self._comparisons > limits.SQL_COMPARISONS_MAX:
            raise sql_error(f"The join compares more than {limits.SQL_COMPARISONS_MAX} pairs of rows.")

    def check_time(self) -> None:
        """Called for each row or value, since a single one may take long to evaluate."""
        if monotonic() > self._deadline:
            raise ServiceError("OTSTimeout", "The execution of the SQL statement timed out.")


def find_sources(call: CallContext, tree: Any) -> Exchange[list[Source]]:
    """Look up the tables of a SELECT. Raises ServiceError, TableMissing."""
    first, joins = tree.args.get("from_"), tree.args.get("joins") or []
    if first is None:
        return []
    if len(joins) > limits.SQL_JOINS_MAX:
        raise sql_error(f"The number of joined tables exceeds {limits.SQL_JOINS_MAX + 1}.")
    sources: list[Source] = []
    for part, join in [(first.this, None), *((join.this, join) for join in joins)]:
        _check_join(part, join)
        table = yield from find_table(call, part.name)
        source = Source(part.alias or part.name, table, mappings.mapping_of(table), join)
        if any(each.name.lower() == source.name.lower() for each in sources):
            raise sql_error(f"Not unique table or alias: '{source.name}'.")
        sources.append(source)
    return sources


def _check_join(part: Any, join: Any) -> None:
    if part.key != "table" or _parts(part) - {"this", "alias"}:
        raise sql_error("Only tables can be selected from.")
    if join is not None:
        is_known = join.side in ("", "LEFT") and join.kind in ("", "INNER", "CROSS", "OUTER")
        if not is_known or _parts(join) - {"this", "side", "kind", "on"}:
            raise sql_error(
                "Unsupported SQL expression: this kind of JOIN. Use INNER JOIN or LEFT JOIN with ON."
            )


def _parts(tree: Any) -> set[str]:
    return {name for name, value in tree.args.items() if value not in (None, [], False)}


def scope_of(sources: Sequence[Source]) -> Scope:
    """Return the columns of joined rows: those of each table in the order of the FROM."""
    return Scope([(source.name, column) for source in sources for column in source.columns])


def read_rows(
    call: CallContext, sources: Sequence[Source], tree: Any, work: Work, most: int | None
) -> Exchange[list[Row]]:
    """Return the rows that fulfil the WHERE. `most`: no more are needed (None: all)."""
    scope, where = scope_of(sources), tree.args.get("where")
    condition = None if where is None else Compiler(scope).compile(where.this).value

    def is_wanted(row: Row) -> bool:
        work.check_time()
        return condition is None or truth(condition(row)) is True

    if not sources:
        return [row for row in [()] if is_wanted(row)]
    used = _used_places(tree, scope)
    place = 0
    rows: list[Row] = []
    for source in sources:
        end = place + len(source.columns)
        names = frozenset(column.name for at, column in enumerate(source.columns, place) if at in used)
        wanted_range = EVERYTHING if source.is_left else key_range(where, scope, source.table, place)
        keep, enough = (is_wanted, most) if len(sources) == 1 else (None, None)
        found = yield from _read(call, source, wanted_range, names, work, (keep, enough))
        rows = (
            found
            if source.join is None
            else _joined(rows, found, source, scope_of(sources), (place, end), work)
        )
        place = end
    return rows if len(sources) == 1 else [row for row in rows if is_wanted(row)]


def _used_places(tree: Any, scope: Scope) -> set[int]:
    """Return the places of the columns that a statement mentions. A star mentions all."""
    used: set[int] = set()
    for node in tree.walk():
        is_count = node.key == "star" and node.parent is not None and node.parent.key == "anonymous"
        if node.key == "star" and not is_count:
            return set(range(len(scope.columns)))
        if node.key == "column" and node.this.key != "star":
            name = node.name.lower()
            used |= {at for at, (_, column) in enumerate(scope.columns) if column.name.lower() == name}
    return used


def _read(
    call: CallContext,
    source: Source,
    wanted: KeyRange,
    names: frozenset[str],
    work: Work,
    selection: tuple[Callable[[Row], bool] | None, int | None],
) -> Exchange[list[Row]]:
    """Read a range of a table. `names`: the columns that are needed, all others are NULL."""
    keep, most = selection
    page_limits = PageLimits(
        scanned=limits.SQL_PAGE_ROWS, filled_bytes=limits.STREAM_MAX_BYTES, seconds=1.0, peek=True
    )
    columns = tuple(column if column.name in names else None for column in source.columns)
    rows: list[Row] = []
    while not wanted.is_empty:
        command = Read(source.table, wanted, page_limits, visible_attributes=VisibleNames(names))
        page = yield from one(command)
        work.add_page(source.table, page.scanned, page.scanned_bytes)
        before = len(rows)
        for stored in page.rows:
            row = _values(stored, columns)
            if keep is None or keep(row):
                rows.append(row)
                if most is not None and len(rows) >= most:
                    return rows
        work.keep(len(rows) - before, len(columns), page.scanned_bytes if len(rows) > before else 0)
        if page.next is None:
            break
        wanted = KeyRange(page.next.position, wanted.upper)
    return rows


def _values(row: StoredRow, columns: Sequence[SqlColumn | None]) -> Row:
    latest = row.latest
    return [None if column is None else _value(latest.get(column.name), column) for column in columns]


def _value(value: Value | None, column: SqlColumn) -> Any:
    """Return a stored value in the type of its column. A value of another type is NULL."""
    if value is None:
        return None
    shown = key_value_shown(value) if column.is_key else view(value)
    if shown.kind is _KINDS[column.type]:
        return shown.data
    if column.type is SqlType.DOUBLE and shown.kind is Kind.INT64:
        return float(shown.data)
    return None


# Joins


def _joined(
    left: list[Row], right: list[Row], source: Source, scope: Scope, places: tuple[int, int], work: Work
) -> list[Row]:
    """Join the rows so far with those of the next table. `places`: of its columns in the scope."""
    first, end = places
    on = source.join.args.get("on")
    partial = Scope(scope.columns[:end])
    condition = None if on is None else Compiler(partial).compile(on).value

    def is_match(row: Row) -> bool:
        work.check_time()
        return condition is None or truth(condition(row)) is True

    own, other = _equal_columns(on, partial, first)
    by_value: dict[Any, list[Row]] = {}
    if own is not None:
        for row in right:
            by_value.setdefault(row[own - first], []).append(row)
    nothing = [None] * (end - first)
    joined: list[Row] = []
    for row in left:
        candidates = (
            right if other is None else by_value.get(row[other], []) if row[other] is not None else []
        )
        work.add_comparisons(len(candidates))
        whole_rows = ([*row, *candidate] for candidate in candidates)
        matches = [each for each in whole_rows if is_match(each)]
        new_rows = matches or ([[*row, *nothing]] if source.is_left else [])
        work.keep(len(new_rows), end // 8 + 1, 0)
        joined += new_rows
        if len(joined) > limits.SQL_ROWS_MAX:
            raise sql_error(f"The join has more than {limits.SQL_ROWS_MAX} rows.")
    return joined


def _equal_columns(on: Any, scope: Scope, first: int) -> tuple[int | None, int | None]:
    """Return a column of the next table and an earlier one of the same type that must be equal, or None and None."""
    for part in () if on is None else conjuncts(on):
        if part.key == "eq" and part.this.key == part.expression.key == "column":
            places = sorted(scope.place(column.name, column.table) for column in (part.this, part.expression))
            other, own = places
            types = {scope.columns[place][1].type for place in places}
            if other < first <= own and len(types) == 1:
                return own, other
    return None, None

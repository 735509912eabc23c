"""Reads of the rows of a table by its keys (accesses.py), page by page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.accesses import AccessPath
from tablegate.adapters.tablestore.sql.scopes import Row
from tablegate.adapters.tablestore.sql.sql_types import SqlColumn, SqlType
from tablegate.adapters.tablestore.sql.work import Step, Work
from tablegate.adapters.tablestore.values.values import key_value_shown
from tablegate.adapters.tablestore.values.views import view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.gateway.model.commands.row_commands import Read, VisibleNames
from tablegate.gateway.model.expressions.ranges import KeyRange
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


class Wanted(NamedTuple):
    """The rows to read.

    - `columns`: the columns of a row. `used_names`: those that are needed, all others are NULL.
    - `keep`: which rows are needed, None: all. `most`: how many of them at most, None: all.
    """

    columns: Sequence[SqlColumn]
    used_names: frozenset[str]
    keep: Callable[[Row], bool] | None = None
    most: int | None = None


async def read(table: Table, access: AccessPath, wanted: Wanted, work: Work) -> list[Row]:
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

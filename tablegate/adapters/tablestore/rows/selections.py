"""The selection of a read request: columns, versions and a filter.

A `RowSelection` is created once for each request. `cut` and `shows` run for each row. Source:
docs/protocols/table-store.md section 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.rows import fast_rows
from tablegate.adapters.tablestore.rows.fast_rows import EncodedRow
from tablegate.adapters.tablestore.rows.filters import Pagination, parse_filter
from tablegate.adapters.tablestore.values import key_values_shown
from tablegate.adapters.tablestore.views import WIRE_KINDS, view
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.names import check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, row_bytes
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Exists, Or, Predicate, paths_of
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import Kind

NO_VERSION = "No version condition is specified."
"""The error text of GetRow and GetRange. BatchGetRow has another one.

Source: aliyun-tablestore-java-sdk, functiontest/ParameterLegalityTest, testNotSetVersionOptionsInGetOperations.
"""


_ENCODES = fast_paths.ARE_ON


class RowSelection(NamedTuple):
    """The selection of a read request.

    - `columns`: names (empty: all), from `start` up to `end`.
    - `window`: the visible versions.
    - `predicate`: the filter of rows.
    - `pagination`: the returned part of the remaining columns.
    """

    columns: frozenset[str]
    window: VersionWindow
    start: str
    end: str
    predicate: Predicate
    pagination: Pagination | None

    @property
    def names(self) -> frozenset[str]:
        """The attributes shown or used by the filter, if columns are named (row_commands.VisibleAttributes)."""
        return self.columns | {str(path[0]) for path in paths_of(self.predicate)}

    def encoder(self, target: TableOrIndex) -> Callable[[Row], Row]:
        """Return the cutter for rows that are returned unchanged. If whole rows of a table are requested, its result is
        encoded already.

        `row_bytes` accepts encoded rows.
        """
        window = self.window
        is_cut = self.columns or self.start or self.end or self.pagination is not None
        is_timed = window.start_ms is not None or window.end_ms is not None
        is_whole = not is_cut and not is_timed and self.predicate is ALWAYS
        if not (_ENCODES and is_whole and target.index is None):
            return self.cutter(target)
        return fast_rows.encoder(target.key_names, lambda row: self.cutter(target)(row))

    def row_bytes(self, target: TableOrIndex, row: Row, key_names: frozenset[str] | None = None) -> bytes:
        """Return a cut or encoded row in PlainBuffer, without the header. `key_names`: as in `wire_row`."""
        if isinstance(row, EncodedRow):
            return row.wire
        return row_bytes(self.wire_row(target, row, key_names))

    def cutter(self, target: TableOrIndex) -> Callable[[Row], Row]:
        """Return the function that reduces a row to its visible part.

        Values are as Table Store shows them, and columns are sorted by name. The key is always included.
        """
        key_names = target.key_names
        newest = VersionWindow(versions=target.table.rules.max_versions)
        columns, window, start, end = self.columns, self.window, self.start, self.end
        projected_names = target.shown
        is_narrowed = bool(columns or start or end or projected_names is not None)
        is_timed = window.start_ms is not None or window.end_ms is not None

        def visible_names(cells: Iterable[str]) -> list[str]:
            names = sorted(cells)
            if columns:
                names = [name for name in names if name in columns]
            if projected_names is not None:
                names = [name for name in names if name in projected_names]
            if start or end:
                names = [name for name in names if start <= name and (not end or name < end)]
            return names

        def cut(row: Row) -> Row:
            visible_cells: dict[str, tuple[Cell, ...]] = {}
            cells = row.cells
            for name in visible_names(cells) if is_narrowed else sorted(cells):
                if name in key_names:
                    continue
                versions = cells[name]
                if is_timed or len(versions) > 1:
                    versions = window.of(newest.of(versions))
                if len(versions) == 1 and versions[0].value.kind in WIRE_KINDS:
                    visible_cells[name] = versions
                elif versions and (visible := _visible(versions)):
                    visible_cells[name] = visible
            contents = Contents.visible(key_values_shown(target, row), visible_cells)
            return Row(row.position, contents, row.modified_at, row.expires_at_ms)

        return cut

    def row_predicate(self, target: TableOrIndex) -> Predicate:
        """Return the predicate on cut rows: the filter, and at least one of the requested columns exists."""
        if not self.columns or not self.columns.isdisjoint(target.key_names):
            return self.predicate
        parts: list[Predicate] = [Exists((name,)) for name in sorted(self.columns)]
        has_one = parts[0] if len(parts) == 1 else Or(tuple(parts))
        return has_one if self.predicate is ALWAYS else And((has_one, self.predicate))

    def shows(self, target: TableOrIndex, row: Row) -> bool:
        if not self.columns and self.predicate is ALWAYS:
            return True
        return matches(self.row_predicate(target), row)

    def page(self, row: Row) -> dict[str, tuple[Cell, ...]]:
        """Return the cells of a cut row that the pagination includes."""
        cells = row.cells
        if self.pagination is None:
            return cells
        offset, limit = self.pagination
        return dict(list(cells.items())[offset : offset + limit])

    def wire_row(self, target: TableOrIndex, row: Row, key_names: frozenset[str] | None = None) -> WireRow:
        """Return a cut row as cells. `key_names`: the key columns to show, or None for all."""
        latest = row.latest
        key = [WireCell(name, latest[name]) for name in target.key_names]
        if key_names is not None:
            key = [cell for cell in key if cell.name in key_names]
        cells = [
            WireCell(name, cell.value, cell.stamp_ms)
            for name, versions in self.page(row).items()
            for cell in versions
        ]
        return WireRow(key, cells)


def _visible(versions: tuple[Cell, ...]) -> tuple[Cell, ...]:
    return tuple(
        Cell(view(cell.value), cell.stamp_ms) for cell in versions if cell.value.kind is not Kind.NULL
    )


def parse(message: Any, no_version_text: str) -> RowSelection:
    """Return the selection of a GetRow, a table of BatchGetRow or a GetRange. Raises ServiceError.

    `no_version_text`: the error text if the request does not select versions.
    """
    names = columns_of(message.columns_to_get)
    read_filter = parse_filter(message.filter)
    window = _window(message, no_version_text)
    return RowSelection(
        names,
        window,
        message.start_column,
        message.end_column,
        read_filter.predicate,
        read_filter.pagination,
    )


def everything(columns: Iterable[str] = (), predicate: Predicate = ALWAYS) -> RowSelection:
    """Return the selection of the newest version of these columns (empty: all)."""
    return RowSelection(frozenset(columns), VersionWindow(versions=1), "", "", predicate, None)


def columns_of(columns_to_get: Any) -> frozenset[str]:
    """Return the columns of columns_to_get. Raises ServiceError."""
    names = columns_to_get[:]
    if len(names) > limits.COLUMNS_MAX:
        raise invalid(
            f"The number of columns from the request exceeds the limit, limit count: {limits.COLUMNS_MAX},"
            f" column count: {len(names)}."
        )
    for name in names:
        check_column_name(name)
    return frozenset(names)


def _window(message: Any, no_version_text: str) -> VersionWindow:
    has_count, has_range = message.HasField("max_versions"), message.HasField("time_range")
    if not has_count and not has_range:
        raise invalid(no_version_text)
    count = message.max_versions if has_count else None
    if count is not None and count <= 0:
        raise invalid("The max versions must be greater than 0.")
    if not has_range:
        return VersionWindow(versions=count)
    time_range = message.time_range
    if time_range.HasField("specific_time"):
        if time_range.HasField("start_time") or time_range.HasField("end_time"):
            raise invalid("The specific time and the time range can not be set at the same time.")
        return _checked_window(time_range.specific_time, time_range.specific_time + 1, count)
    if not time_range.HasField("start_time") or not time_range.HasField("end_time"):
        raise invalid("The start time and the end time of a time range must be set.")
    return _checked_window(time_range.start_time, time_range.end_time, count)


def _checked_window(start_ms: int, end_ms: int, versions: int | None) -> VersionWindow:
    if start_ms < 0 or start_ms >= limits.STAMP_END_MS:
        raise invalid("Timestamp must be in range [0, INT64_MAX/1000).")
    if end_ms <= start_ms:
        raise invalid("The end time must be greater than the start time.")
    return VersionWindow(start_ms, end_ms, versions)

"""A page under construction: its remaining budget, and the selection of rows with their visible parts.

The store returns rows as columns, scanned ranges or concatenated bodies. This module converts them and applies filters.
reading.py fetches the rows.

A page is filled in one of three ways:

- row by row
- with scanned ranges: only their rows that pass a prefilter are fetched
- with bodies that SQL has concatenated

In each way, a limit stops the page at the same row. This module handles numbers and sizes only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from math import inf
from time import monotonic, perf_counter

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.tables.pages import ConcatenatedRows, Page, PageLimits
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import range_scans
from tablegate.gateway.store.rows.range_scans import ScannedRange
from tablegate.gateway.store.rows.scans import Chunk, Columns, StoredRow


class PageBudget:
    """The used part of a page: scanned rows, their billed bytes (`scanned_bytes`), and returned rows."""

    def __init__(self, limits: PageLimits) -> None:
        """Start the time limit now."""
        self._limits = limits
        self._deadline = inf if limits.seconds is None else monotonic() + limits.seconds
        self._max_scanned = inf if limits.scanned is None else limits.scanned
        self._max_returned = inf if limits.returned is None else limits.returned
        self._max_returned_bytes = inf if limits.returned_bytes is None else limits.returned_bytes
        self._max_bytes = inf if limits.size_bytes is None else limits.size_bytes
        self._filled_bytes = inf if limits.filled_bytes is None else limits.filled_bytes
        numbers = [limit for limit in (limits.scanned, limits.returned) if limit is not None]
        self._max_rows = min(numbers, default=None)
        self.scanned = self.scanned_bytes = 0
        self._returned = self._returned_bytes = 0

    def scan(self, rows: int, size: int) -> None:
        self.scanned += rows
        self.scanned_bytes += size

    def count_returned(self, rows: int, size: int) -> None:
        self._returned += rows
        self._returned_bytes += size

    # Row by row

    def scan_next(self, size: int) -> bool:
        """Count a row, of this size, as scanned, and return True, unless it exceeds a limit. The first row never does."""
        scanned, size_bytes = self.scanned, self.scanned_bytes + size
        if scanned and (
            scanned == self._max_scanned
            or self._returned >= self._max_returned
            or self._returned_bytes >= self._max_returned_bytes
            or size_bytes > self._max_bytes
            or monotonic() > self._deadline
        ):
            return False
        self.scanned, self.scanned_bytes = scanned + 1, size_bytes
        return True

    @property
    def is_full(self) -> bool:
        """True if the page ends with the last scanned row. A page that peeks checks the next row first."""
        return self.scanned_bytes >= self._filled_bytes or (
            self.scanned == self._max_scanned and not self._limits.peek
        )

    @property
    def peeks(self) -> bool:
        """True if the page reports the start of the next one."""
        return self._limits.peek

    @property
    def has_returned_enough(self) -> bool:
        return self._returned >= self._max_returned or self._returned_bytes >= self._max_returned_bytes

    @property
    def is_timed_out(self) -> bool:
        return monotonic() > self._deadline

    def scans_fewer_than(self, rows: int) -> bool:
        return self._limits.scanned is not None and self._limits.scanned < rows

    def expected_rows(self, is_filtered: bool) -> int | None:
        """Return the likely number of scanned rows, including one for peeking. None if unknown."""
        rows = self._limits.scanned if is_filtered else self.rows_left
        return None if rows is None else max(rows + self._limits.peek, 1)

    # Scanned ranges: only their rows that pass a prefilter are fetched

    @property
    def needs_sizes(self) -> bool:
        """True if the sizes of scanned rows matter, besides those of returned rows."""
        return self._limits.size_bytes is not None or self._limits.filled_bytes is not None

    def skippable(self) -> tuple[int, int]:
        """Return the rows and bytes that can be skipped without separate checks, before a limit other than on returned
        rows."""
        limits = self._limits
        if self.is_timed_out:
            return 0, 0
        rows = sys.maxsize if limits.scanned is None else limits.scanned - 1 - self.scanned
        size = sys.maxsize if limits.size_bytes is None else limits.size_bytes - self.scanned_bytes
        if limits.filled_bytes is not None:
            size = min(size, limits.filled_bytes - 1 - self.scanned_bytes)
        return (0 if self.has_returned_enough else rows), size

    # Bodies that SQL has concatenated: all of them are returned

    @property
    def allows_concatenation(self) -> bool:
        """True if each row needs no check, except for limits on counts and on the bytes that fill a page."""
        limits = self._limits
        return (
            limits.seconds is None
            and limits.size_bytes is None
            and (limits.scanned is None or not limits.peek)
        )

    @property
    def rows_left(self) -> int | None:
        """Number of further rows that the count limits allow if each is returned. None if unlimited."""
        return None if self._max_rows is None else self._max_rows - self.scanned

    @property
    def limits_returned_rows(self) -> bool:
        """True if the number of returned rows is limited, which suggests a large page."""
        return self._limits.returned is not None

    @property
    def bytes_left(self) -> int | None:
        """Billed bytes left until the page is full, if every row is returned. None if unlimited."""
        max_scanned, max_returned = self._limits.filled_bytes, self._limits.returned_bytes
        if max_scanned is None or max_returned is None:
            limit = max_returned if max_scanned is None else max_scanned
            return None if limit is None else limit - self.scanned_bytes
        return min(max_scanned, max_returned) - self.scanned_bytes

    @property
    def has_scanned_enough(self) -> bool:
        return self.scanned == self._limits.scanned


# Number of bodies requested in concatenated form: at first, at first if the number of rows is limited, and at most.
_INITIAL_BODIES, _INITIAL_BODIES_IF_LIMITED, _MAX_BODIES = 64, 256, 1024
_SLICE_S = 0.002


SHOWN_AS_STORED = frozenset(
    (
        "indexes",
        "other_indexes",
        "stream",
        "expiry.attribute",
        "max_versions",
        "stamped",
        "has_local_transactions",
        "auto_increment",
    )
)
"""Features (Table.features) that do not change what a reader sees of the stored rows."""
READ_FIELDS = (
    "table range limits index reverse filter view segment after whole_rows cut concatenation may_be_old"
    " visible_attributes"
)
"""The fields of Read that the fast paths support (fast_paths.covers)."""
_TAKES_CONCATENATED = fast_paths.covers(Read, READ_FIELDS)


class PageBuilder:
    """A page under construction. `size_at`: column number of the billed size in a result row."""

    def __init__(self, command: Read, size_at: int, now_ms: int) -> None:
        self._command = command
        self._now_ms = now_ms
        self._size_at = size_at
        self.budget = PageBudget(command.limits)
        projected_names = (
            None if command.index is None or command.whole_rows else command.index.projected_names
        )
        self._projected_names = projected_names
        self._shows_as_stored = command.table.features <= SHOWN_AS_STORED
        self._has_filter = command.filter is not ALWAYS or projected_names is not None
        self._rows: list[Row] = []
        self._last: Row | None = None
        self._next: Row | None = None
        self._is_stopped = False
        self._concatenated: list[ConcatenatedRows] = []
        self._last_concatenated: Position | None = None

    def page(self, last_row: Row | None = None) -> Page:
        """Return the page. `last_row`: the row at `missing_last_position`."""
        budget = self.budget
        if self._is_stopped and last_row is None:
            last_row = self._last
        return Page(
            self._rows, budget.scanned, budget.scanned_bytes, last_row, self._next, self._concatenated
        )

    # Bodies that SQL has concatenated

    @property
    def takes_concatenated(self) -> bool:
        """True if the reader accepts unchanged rows, and no limit needs a check for each row."""
        return (
            _TAKES_CONCATENATED
            and self._shows_as_stored
            and not self._has_filter
            and self._command.cut is None
            and self.budget.allows_concatenation
        )

    def rows_to_request(self) -> int:
        """Return the number of bodies to request next."""
        budget = self.budget
        rows_to_request = _INITIAL_BODIES_IF_LIMITED if budget.limits_returned_rows else _INITIAL_BODIES
        if budget.scanned and budget.bytes_left is not None:
            rows_to_request = min(
                budget.bytes_left * budget.scanned // (budget.scanned_bytes + 1), _MAX_BODIES
            )
        rows_left = budget.rows_left
        return rows_to_request if rows_left is None else min(rows_to_request, rows_left)

    def take_concatenated(self, bodies: range_scans.ConcatenatedBodies) -> bool:
        """Take bodies and return True, unless they would fill the page."""
        bytes_left = self.budget.bytes_left
        if bytes_left is not None and bodies.size >= bytes_left:
            return False
        if bodies.number:
            self._concatenated.append(ConcatenatedRows(bodies.number, bodies.bodies, bodies.modified_at))
            self._last_concatenated = bodies.last
        self.budget.scan(bodies.number, bodies.size)
        self.budget.count_returned(bodies.number, bodies.size)
        return True

    def stop_if_scan_limit_reached(self) -> bool:
        """End the page if the limit on scanned rows is reached. Return True if it has ended."""
        self._is_stopped = self.budget.has_scanned_enough
        return self._is_stopped

    @property
    def missing_last_position(self) -> Position | None:
        """Position of the page's last row, if the page has to report it but has only its concatenated body."""
        return self._last_concatenated if self._is_stopped and self._last is None else None

    # Rows one by one

    def add(self, chunks: Iterable[Chunk]) -> Generator[None, None, None]:
        """Add rows of the result in order until a limit stops the page. Yield after each slice of bounded time."""
        deadline = perf_counter() + _SLICE_S
        for chunk in chunks:
            for columns in chunk:
                if self._add_row(columns):
                    return
                if perf_counter() >= deadline:
                    yield
                    deadline = perf_counter() + _SLICE_S

    def _add_row(self, columns: Columns) -> bool:
        """Add a row. Return True if a limit has stopped the page."""
        command, budget = self._command, self.budget
        stored_row = StoredRow(columns)
        row = stored_row if self._shows_as_stored else command.table.visible(stored_row, self._now_ms)
        size = columns[self._size_at]
        if command.cut is not None:
            row = None if row is None else command.cut(row)
            size = 0 if row is None else row.size_bytes
        if not budget.scan_next(size):
            self._stop_before(stored_row)
            return True
        self._last = stored_row
        if row is not None and self._has_filter:
            row = self._select(row)
        if row is not None:
            self._rows.append(row)
            budget.count_returned(1, size)
        self._is_stopped = budget.is_full
        return self._is_stopped

    def _stop_before(self, row: Row) -> None:
        self._next = row if self.budget.peeks else None
        self._is_stopped = True

    def _select(self, row: Row) -> Row | None:
        """Return the visible part of a row, or None if the filter rejects it."""
        if self._projected_names is not None:
            row = project(row, self._projected_names)
        command = self._command
        return row if command.filter is ALWAYS or matches(command.filter, row, command.view) else None

    # Scanned ranges: only their rows that pass a prefilter were fetched

    def take_scanned_range(
        self, scanned_range: ScannedRange, measure: Callable[[Columns], tuple[int, int]]
    ) -> Generator[None, None, Columns | None]:
        """Take a scanned range that fits the budget, and yield after each slice.

        Return None if it was taken completely, or the columns of the last returned row. `measure` gives the number and
        size of the rows up to a row.
        """
        deadline = perf_counter() + _SLICE_S
        for columns in scanned_range.passing_rows:
            if perf_counter() >= deadline:
                yield
                deadline = perf_counter() + _SLICE_S
            row = self._select(StoredRow(columns))
            if row is not None:
                self._rows.append(row)
                self.budget.count_returned(1, columns[self._size_at])
                if self.budget.has_returned_enough:
                    return self._advance(*measure(columns), columns)
        self._advance(scanned_range.count, scanned_range.size, scanned_range.last)
        return None

    def _advance(self, count: int, size: int, last: Columns | None) -> Columns | None:
        self.budget.scan(count, size)
        self._last = None if last is None else StoredRow(last)
        return last


def project(row: Row, names: frozenset[str]) -> Row:
    """Return a row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

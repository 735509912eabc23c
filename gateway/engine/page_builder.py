"""A page while it fills: which rows are taken, and where a limit stops it. Knows no SQL; reading.py brings it the rows."""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from itertools import accumulate

from gateway.model.commands import ConcatenatedRows, Page, Read
from gateway.model.keys import Position
from gateway.model.predicates import ALWAYS, matches
from gateway.model.rows import Row
from gateway.store import concatenated
from gateway.store.prefiltered_scans import Stretch
from gateway.store.scans import Chunk, Columns, StoredRow

# Rows that are asked for joined: at first (where their number is limited, so many are likely to be wanted), and at most.
_FIRST_JOINED, _FIRST_OF_NUMBER, _MOST_JOINED = 64, 256, 1024
# At most so many rows are judged in one slice, and no further one once it has taken so long: large rows, documents and
# patterns take as long as thousands of others.
_SLICE_ROWS = 32
_SLICE_S = 0.002


class PageBuilder:
    """A page while it fills. `size_at`: where in a row of the result its billed size stands."""

    def __init__(self, command: Read, size_at: int, now_ms: int) -> None:
        self._command = command
        self._now_ms = now_ms
        self._limits = limits = command.limits
        self._size_at = size_at
        self._deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        shown = None if command.index is None or command.whole_rows else command.index.shown
        self._shown = shown
        self._takes_many = (
            shown is None
            and command.filter is ALWAYS
            and (command.cut is None or command.cut_many is not None)
            and not command.table.hides_rows
        )
        self._rows: list[Row] = []
        self._scanned = self._size = self._returned_size = 0
        self._last: Row | None = None
        self._next: Row | None = None
        self._is_stopped = False
        self._concatenated: list[ConcatenatedRows] = []
        self._returned = 0  # of rows, those that were joined included
        self._last_concatenated: Position | None = None

    def page(self) -> Page:
        """The page as it stands."""
        last = self._last if self._is_stopped else None
        return Page(self._rows, self._scanned, self._size, last, self._next, self._concatenated)

    # Rows whose bodies were joined

    @property
    def takes_concatenated(self) -> bool:
        """Whether no limit needs to be asked at each row, other than those on numbers and on what fills a page."""
        limits = self._limits
        return (
            self._takes_many
            and self._command.cut is None
            and limits.seconds is None
            and limits.size_bytes is None
            and (limits.scanned is None or not limits.peek)
        )

    def joinable(self) -> int:
        """How many rows to ask for next."""
        wanted = _FIRST_JOINED if self._limits.returned is None else _FIRST_OF_NUMBER
        if self._scanned and self._most_bytes is not None:
            room = self._most_bytes - self._size
            wanted = min(room * self._scanned // (self._size + 1), _MOST_JOINED)
        left = self.rows_left
        return wanted if left is None else min(wanted, left)

    @property
    def rows_left(self) -> int | None:
        """How many more rows the limits on numbers allow, if nothing is filtered (None: any)."""
        limits = self._limits
        numbers = [limit for limit in (limits.scanned, limits.returned) if limit is not None]
        return min(numbers) - self._scanned if numbers else None

    @property
    def _most_bytes(self) -> int | None:
        """What rows that are all returned may weigh until they fill the page."""
        limits = self._limits
        sizes = [limit for limit in (limits.filled_bytes, limits.returned_bytes) if limit is not None]
        return min(sizes, default=None)

    def take_concatenated(self, found: concatenated.Stretch) -> bool:
        """Take a stretch, if it does not fill the page."""
        most_bytes = self._most_bytes
        if most_bytes is not None and self._size + found.size >= most_bytes:
            return False
        if found.number:
            self._concatenated.append(ConcatenatedRows(found.number, found.bodies, found.modified_at))
            self._last_concatenated = found.last
        self._returned += found.number
        self._returned_size += found.size
        self._scanned += found.number
        self._size += found.size
        return True

    def stop_if_all_are_seen(self) -> bool:
        """End the page if as many rows have been looked at as may be. Whether it is ended."""
        self._is_stopped = self._scanned == self._limits.scanned
        return self._is_stopped

    @property
    def lacks_last(self) -> Position | None:
        """Where the page's last row is, if it was joined and the page has to say which it is."""
        return self._last_concatenated if self._is_stopped and self._last is None else None

    def set_last(self, last: Row) -> None:
        """Say which row is the page's last."""
        self._last = last

    # Rows one by one

    def add(self, chunk: Chunk) -> bool:
        """Add rows of the result in order. Whether a limit has stopped the page."""
        if self._takes_many:
            chunk = chunk[self._take(chunk) :]
            if self._is_stopped:
                return True
        for columns in chunk:
            if self._add_row(columns):
                return True
        return False

    def add_in_slices(self, chunks: Iterable[Chunk]) -> Generator[None, None, None]:
        """Add rows of the result in order until a limit stops the page, one by one, in slices that are bounded in time."""
        slices = _Slices()
        for chunk in chunks:
            for columns in chunk:
                if self._add_row(columns):
                    return
                if slices.is_over:
                    yield
                    slices.begin()

    def _take(self, chunk: Chunk) -> int:
        """Take the first rows of a chunk together, as far as the limits on numbers allow, if no other limit is met among
        them; how many were taken."""
        limits = self._limits
        most = min(limit for limit in (limits.scanned, limits.returned, sys.maxsize) if limit is not None)
        if len(chunk) > most - self._scanned:
            chunk = chunk[: most - self._scanned]
        if not chunk or self._is_late:
            return 0
        found: list[Row] = list(map(StoredRow, chunk))
        rows, sizes = self._cut(found, chunk)
        size = sum(sizes)
        if limits.size_bytes is not None and self._size + size > limits.size_bytes:
            fitting = bisect_right(list(accumulate(sizes)), limits.size_bytes - self._size)
            if not fitting:
                return 0
            rows, size = rows[:fitting], sum(sizes[:fitting])
        if limits.filled_bytes is not None and self._size + size >= limits.filled_bytes:
            return 0
        if limits.returned_bytes is not None:
            if self._returned_size + size >= limits.returned_bytes:
                return 0
            self._returned_size += size
        self._rows += rows
        self._returned += len(rows)
        self._scanned += len(rows)
        self._size += size
        self._last = found[len(rows) - 1]
        self._is_stopped = self._scanned == limits.scanned and not limits.peek
        return len(rows)

    def _cut(self, found: list[Row], chunk: Chunk) -> tuple[list[Row], list[int]]:
        """Rows as the reader may see them, and their sizes."""
        if self._command.cut_many is None:
            at = self._size_at
            return found, [columns[at] for columns in chunk]
        rows = self._command.cut_many(found)
        return rows, [row.size_bytes for row in rows]

    def room(self) -> tuple[int, int]:
        """How many rows and bytes may be taken without looking at each, so that no limit is met but that on rows returned."""
        limits = self._limits
        if self._is_late:
            return 0, 0
        rows = sys.maxsize if limits.scanned is None else limits.scanned - 1 - self._scanned
        size = sys.maxsize if limits.size_bytes is None else limits.size_bytes - self._size
        if limits.filled_bytes is not None:
            size = min(size, limits.filled_bytes - 1 - self._size)
        return (0 if self._has_enough else rows), size

    def take_stretch(
        self, stretch: Stretch, measure: Callable[[Columns], tuple[int, int]]
    ) -> Generator[None, None, Columns | None]:
        """Take a stretch for which there is room, whole (None) or up to the row that is the last to be returned, in slices.
        `measure`: the number of rows up to one, and their size."""
        slices = _Slices(sys.maxsize)
        for columns in stretch.passing:
            if slices.is_over:
                yield
                slices.begin()
            row = self._passed(StoredRow(columns))
            if row is not None:
                self._return(row, columns[self._size_at])
                if self._has_enough:
                    return self._advance(*measure(columns), columns)
        self._advance(stretch.count, stretch.size, stretch.last)
        return None

    def _advance(self, count: int, size: int, last: Columns | None) -> Columns | None:
        self._scanned += count
        self._size += size
        self._last = None if last is None else StoredRow(last)
        return last

    def _add_row(self, columns: Columns) -> bool:
        command = self._command
        found = StoredRow(columns)
        row = command.table.visible(found, self._now_ms)
        size = columns[self._size_at]
        if command.cut is not None:
            row = None if row is None else command.cut(row)
            size = 0 if row is None else row.size_bytes
        if self._scanned and self._is_full(size):
            self._next = found if self._limits.peek else None
            self._is_stopped = True
            return True
        self._scanned += 1
        self._size += size
        self._last = found
        row = None if row is None else self._passed(row)
        if row is not None:
            self._return(row, size)
        limits = self._limits
        self._is_stopped = (self._scanned == limits.scanned and not limits.peek) or (
            limits.filled_bytes is not None and self._size >= limits.filled_bytes
        )
        return self._is_stopped

    def _return(self, row: Row, size: int) -> None:
        self._rows.append(row)
        self._returned += 1
        self._returned_size += size

    def _passed(self, row: Row) -> Row | None:
        """A row as the reader may see it, or None if the filter is not true of it."""
        if self._shown is not None:
            row = projected(row, self._shown)
        command = self._command
        return row if command.filter is ALWAYS or matches(command.filter, row, command.view) else None

    @property
    def _has_enough(self) -> bool:
        """Whether as much is to be returned as may be."""
        limits = self._limits
        return (limits.returned is not None and self._returned >= limits.returned) or (
            limits.returned_bytes is not None and self._returned_size >= limits.returned_bytes
        )

    def _is_full(self, next_bytes: int) -> bool:
        limits = self._limits
        return (
            (limits.scanned is not None and self._scanned >= limits.scanned)
            or self._has_enough
            or (limits.size_bytes is not None and self._size + next_bytes > limits.size_bytes)
            or self._is_late
        )

    @property
    def _is_late(self) -> bool:
        return self._deadline is not None and time.monotonic() > self._deadline


class _Slices:
    """Says after which rows a slice is over."""

    def __init__(self, most_rows: int = _SLICE_ROWS) -> None:
        self._most_rows = most_rows
        self.begin()

    def begin(self) -> None:
        """Begin a slice."""
        self._rows_left = self._most_rows
        self._until = time.perf_counter() + _SLICE_S

    @property
    def is_over(self) -> bool:
        """To be asked once for each row."""
        self._rows_left -= 1
        return self._rows_left <= 0 or time.perf_counter() >= self._until


def projected(row: Row, names: frozenset[str]) -> Row:
    """A row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

"""A page while it fills: which rows are taken, and where a limit stops it. Knows no SQL; reading.py brings it the rows."""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate

from gateway.model.commands import Joined, Page, Read
from gateway.model.predicates import ALWAYS, holds
from gateway.model.rows import Row
from gateway.store import joined
from gateway.store.scans import Chunk, Columns, StoredRow
from gateway.store.skims import Stretch

# Rows that are asked for joined: at first, and at most.
_FIRST_JOINED, _MOST_JOINED = 64, 1024


class Filling:
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
        self._joined: list[bytes] = []
        self._joined_count = 0

    def page(self) -> Page:
        """The page as it stands."""
        last = self._last if self._is_stopped else None
        head = Joined(self._joined_count, b",".join(self._joined)) if self._joined else None
        return Page(self._rows, self._scanned, self._size, last, self._next, head)

    # Rows whose bodies were joined

    @property
    def takes_joined(self) -> bool:
        """Whether no limit needs to be asked at each row, other than those on numbers and on what fills a page."""
        limits = self._limits
        return (
            self._takes_many
            and self._command.cut is None
            and limits.seconds is None
            and not limits.peek
            and limits.returned is None
            and limits.size_bytes is None
            and limits.returned_bytes is None
        )

    def joinable(self) -> int:
        """How many rows to ask for next."""
        limits = self._limits
        wanted = _FIRST_JOINED
        if self._scanned and limits.filled_bytes is not None:
            room = limits.filled_bytes - self._size
            wanted = min(room * self._scanned // (self._size + 1), _MOST_JOINED)
        return wanted if limits.scanned is None else min(wanted, limits.scanned - self._scanned)

    def take_joined(self, found: joined.Stretch) -> bool:
        """Take a stretch, if it does not fill the page."""
        filled_bytes = self._limits.filled_bytes
        if filled_bytes is not None and self._size + found.size >= filled_bytes:
            return False
        if found.number:
            self._joined.append(found.bodies)
        self._joined_count += found.number
        self._scanned += found.number
        self._size += found.size
        return True

    @property
    def is_at_limit(self) -> bool:
        """Whether as many rows have been looked at as may be."""
        return self._scanned == self._limits.scanned

    def stop_at(self, last: Row) -> None:
        """End the page with a row that was taken."""
        self._last = last
        self._is_stopped = True

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

    def take_stretch(self, stretch: Stretch, measure: Callable[[Columns], tuple[int, int]]) -> Columns | None:
        """Take a stretch for which there is room, whole (None) or up to the row that is the last to be returned. `measure`:
        the number of rows up to one, and their size."""
        for columns in stretch.passing:
            row = self._passed(StoredRow(columns))
            if row is not None:
                self._rows.append(row)
                self._returned_size += columns[self._size_at]
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
            self._rows.append(row)
            self._returned_size += size
        limits = self._limits
        self._is_stopped = (self._scanned == limits.scanned and not limits.peek) or (
            limits.filled_bytes is not None and self._size >= limits.filled_bytes
        )
        return self._is_stopped

    def _passed(self, row: Row) -> Row | None:
        """A row as the reader may see it, or None if the filter is not true of it."""
        if self._shown is not None:
            row = projected(row, self._shown)
        command = self._command
        return row if command.filter is ALWAYS or holds(command.filter, row, command.view) else None

    @property
    def _has_enough(self) -> bool:
        """Whether as much is to be returned as may be."""
        limits = self._limits
        return (limits.returned is not None and len(self._rows) >= limits.returned) or (
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


def projected(row: Row, names: frozenset[str]) -> Row:
    """A row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

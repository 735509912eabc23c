"""The remaining budget of a page. This is the only module that evaluates PageLimits.

A page is filled in one of three ways:

- row by row
- with scanned ranges, of which only rows that pass a prefilter are fetched
- with bodies that SQL has concatenated

In each way, a limit stops the page at the same row. This module handles numbers and sizes only.
"""

from __future__ import annotations

import sys
from math import inf
from time import monotonic

from tablegate.gateway.model.tables.pages import PageLimits


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

    # Scanned ranges of which only what passes a prefilter is fetched

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

    # Bodies that SQL has concatenated, each of which is returned

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

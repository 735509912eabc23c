"""What is left of a page's limits: the only reader of PageLimits, for all four ways in which a page is filled.

A page is filled row by row; with many rows at once that need no look at each; with scanned ranges of which only what passes a
prefilter is fetched; and with bodies that SQL has concatenated. Whichever way, a limit stops the page at the same row. Knows
numbers and sizes; knows neither rows nor filters.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from time import monotonic

from tablegate.gateway.model.tables.pages import PageLimits


class PageBudget:
    """How much of a page has been used: rows looked at (`scanned`) and their billed bytes (`scanned_bytes`), rows returned."""

    def __init__(self, limits: PageLimits) -> None:
        """The limit on time counts from now on."""
        self._limits = limits
        self._deadline = None if limits.seconds is None else monotonic() + limits.seconds
        numbers = [limit for limit in (limits.scanned, limits.returned) if limit is not None]
        self._most_rows = min(numbers, default=None)
        self.scanned = self.scanned_bytes = 0
        self._returned = self._returned_bytes = 0

    def scan(self, rows: int, size: int) -> None:
        """Note that so many rows of this size altogether have been looked at."""
        self.scanned += rows
        self.scanned_bytes += size

    def give(self, rows: int, size: int) -> None:
        """Note that so many of the rows looked at are returned."""
        self._returned += rows
        self._returned_bytes += size

    # Row by row

    def refuses(self, size: int) -> bool:
        """Whether the next row, of this size, is one too many to be looked at. Never the first."""
        limits = self._limits
        return self.scanned > 0 and (
            (limits.scanned is not None and self.scanned >= limits.scanned)
            or self.has_returned_enough
            or (limits.size_bytes is not None and self.scanned_bytes + size > limits.size_bytes)
            or self.is_late
        )

    @property
    def is_spent(self) -> bool:
        """Whether the page ends with the row that was looked at last. A page that peeks asks about the next one first."""
        limits = self._limits
        return (self.scanned == limits.scanned and not limits.peek) or (
            limits.filled_bytes is not None and self.scanned_bytes >= limits.filled_bytes
        )

    @property
    def peeks(self) -> bool:
        """Whether the page says where the next one begins."""
        return self._limits.peek

    @property
    def has_returned_enough(self) -> bool:
        """Whether as much is returned as may be."""
        limits = self._limits
        return (limits.returned is not None and self._returned >= limits.returned) or (
            limits.returned_bytes is not None and self._returned_bytes >= limits.returned_bytes
        )

    @property
    def is_late(self) -> bool:
        """Whether the page has taken its time."""
        return self._deadline is not None and monotonic() > self._deadline

    def scans_fewer_than(self, rows: int) -> bool:
        """Whether so many rows are more than may be looked at."""
        return self._limits.scanned is not None and self._limits.scanned < rows

    def expected_rows(self, is_filtered: bool) -> int | None:
        """How many rows are likely to be looked at (None: nobody can say), one for peeking included."""
        rows = self._limits.scanned if is_filtered else self.rows_left
        return None if rows is None else max(rows + self._limits.peek, 1)

    # Many rows at once, each of which is returned

    @property
    def rows_left(self) -> int | None:
        """How many more rows the limits on numbers allow, if each that is looked at is returned (None: any)."""
        return None if self._most_rows is None else self._most_rows - self.scanned

    def fitting(self, sizes: Sequence[int]) -> int:
        """How many of the next rows, of these sizes, can be taken without a look at each: no limit but those on numbers is met
        before or by the last of them. 0: they have to be looked at one by one."""
        limits, total = self._limits, sum(sizes)
        if not sizes or self.is_late:
            return 0
        number = len(sizes)
        if limits.size_bytes is not None and self.scanned_bytes + total > limits.size_bytes:
            number = bisect_right(list(accumulate(sizes)), limits.size_bytes - self.scanned_bytes)
            total = sum(sizes[:number])
        if limits.filled_bytes is not None and self.scanned_bytes + total >= limits.filled_bytes:
            return 0
        if limits.returned_bytes is not None and self._returned_bytes + total >= limits.returned_bytes:
            return 0
        return number

    # Scanned ranges of which only what passes a prefilter is fetched

    @property
    def needs_sizes(self) -> bool:
        """Whether it matters how large the rows looked at are, besides those returned."""
        return self._limits.size_bytes is not None or self._limits.filled_bytes is not None

    def unexamined(self) -> tuple[int, int]:
        """How many rows and bytes may be passed over without a look at each, so that no limit is met but that on rows
        returned."""
        limits = self._limits
        if self.is_late:
            return 0, 0
        rows = sys.maxsize if limits.scanned is None else limits.scanned - 1 - self.scanned
        size = sys.maxsize if limits.size_bytes is None else limits.size_bytes - self.scanned_bytes
        if limits.filled_bytes is not None:
            size = min(size, limits.filled_bytes - 1 - self.scanned_bytes)
        return (0 if self.has_returned_enough else rows), size

    # Bodies that SQL has concatenated, each of which is returned

    @property
    def allows_concatenation(self) -> bool:
        """Whether no limit needs to be asked about at each row, other than those on numbers and on what fills a page."""
        limits = self._limits
        return (
            limits.seconds is None
            and limits.size_bytes is None
            and (limits.scanned is None or not limits.peek)
        )

    @property
    def returns_a_number(self) -> bool:
        """Whether the number of rows returned is limited, so that many are likely to be wanted."""
        return self._limits.returned is not None

    @property
    def bytes_left(self) -> int | None:
        """How many billed bytes of rows, all of them returned, are left until the page is full (None: any number)."""
        filled, returned = self._limits.filled_bytes, self._limits.returned_bytes
        if filled is None or returned is None:
            most = returned if filled is None else filled
            return None if most is None else most - self.scanned_bytes
        return min(filled, returned) - self.scanned_bytes

    @property
    def has_scanned_enough(self) -> bool:
        """Whether as many rows have been looked at as may be."""
        return self.scanned == self._limits.scanned

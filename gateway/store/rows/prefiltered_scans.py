"""Walking a key range with a prefilter, so that of most rows only their number and size leave the database.

A scan takes its key range part by part (`ScannedRange`). Of each part the reader learns how many rows it has and their billed
bytes, which the limits of pages count, and gets the rows that the prefilter lets through. Long keys may tie in their columns
(positions.py), whose order is then not the order of keys. Ties that the prefilter keeps back do no harm unless a part ends
among them; where one would, or where a tied row is let through, the scan ends, and the reader goes on row by row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import monotonic

from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.store.rows.scans import Chunk, Columns, ScanSource, columns_between
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS
from tablegate.gateway.store.sql.databases import Condition, Session
from tablegate.gateway.store.sql.positions import KEPT_BYTES

_FIRST_RANGE_ROWS, _LARGEST_RANGE_ROWS = 1024, 4096
# Seconds that one part may take; large rows are slow to look through.
_RANGE_S = 0.005


@dataclass(frozen=True, slots=True)
class ScannedRange:
    """Neighbouring rows of a scan: how many, their billed bytes, those that the prefilter lets through, and the last of all
    of them (None: the scan's range ends with them)."""

    count: int
    size: int
    passing: Chunk
    last: Columns | None


Measured = dict[tuple[str, tuple[object, ...]], tuple[int, int]]
"""What has been measured in one snapshot: many who ask at one time ask about the same range."""


class PrefilteredScan:
    """A walk over a key range of one source in one session. `rest`: what of it was not yet taken. `needs_sizes`: whether
    sizes are wanted; if not they are given as 0, which saves half of the time that measuring takes. `measured`: shared by all
    walks in one snapshot. `is_full`: the last part ended before a row that was too large, so that there is no further one."""

    def __init__(
        self,
        session: Session,
        source: ScanSource,
        bounds: KeyRange,
        reverse: bool,
        condition: Condition,
        measured: Measured,
        needs_sizes: bool = True,
    ) -> None:
        self._session = session
        self._source = source
        self._reverse = reverse
        self._condition = condition
        self._known = measured
        self._needs_sizes = needs_sizes
        self._wanted = _FIRST_RANGE_ROWS
        self.rest = bounds
        self.is_full = False

    def next(self, most_rows: int = sys.maxsize, most_bytes: int = sys.maxsize) -> ScannedRange | None:
        """The next part, of at most so many rows and billed bytes; None where the scan ends, because not one row fits, or
        keys may tie, or nothing is left."""
        wanted = min(self._wanted, most_rows)
        if wanted <= 0 or any(len(column) > KEPT_BYTES for bound in self.rest for column in bound):
            return None
        began = monotonic()
        count, size = self._measured(self.rest, wanted)
        is_end = count < wanted
        if size > most_bytes:
            count, size = self._fitting(count, most_bytes)
            is_end, self.is_full = False, True
        if not count:
            return None
        last = None if is_end else self._at(count - 1)
        if last is not None and self._may_tie(last):
            return None
        passing = self._passing(self._through(last))
        if any(map(self._may_tie, passing)):
            return None
        is_quick = monotonic() - began < _RANGE_S
        self._wanted = min(self._wanted * 4, _LARGEST_RANGE_ROWS) if is_quick else max(self._wanted // 4, 1)
        return ScannedRange(count, size, passing, last)

    def take(self, last: Columns | None) -> None:
        """Go on after this row; None: there is nothing after."""
        if last is None:
            self.rest = KeyRange(self.rest.upper, self.rest.upper)
        else:
            position = self._source.position(last)
            self.rest = self.rest.before(position) if self._reverse else self.rest.after(position)

    def until(self, last: Columns) -> tuple[int, int]:
        """How many rows there are from where the scan stands to this one, and their billed bytes."""
        return self._measured(self._through(last), sys.maxsize)

    def _may_tie(self, columns: Columns) -> bool:
        source = self._source
        return len(columns[source.partition]) >= KEPT_BYTES or len(columns[source.sort]) >= KEPT_BYTES

    def _through(self, last: Columns | None) -> KeyRange:
        """What is left of the range, up to this row."""
        if last is None:
            return self.rest
        position = self._source.position(last)
        lower, upper = self.rest
        return KeyRange(position, upper) if self._reverse else KeyRange(lower, position.after)

    def _measured(self, bounds: KeyRange, wanted: int) -> tuple[int, int]:
        """Of the first rows in some bounds: their number and billed bytes."""
        tail, parameters = self._tail(bounds)
        size_of_row = f"{self._source.alias}.size_bytes" if self._needs_sizes else "1 AS size_bytes"
        total = "SUM(s.size_bytes)" if self._needs_sizes else "0"
        question = (
            f"SELECT COUNT(*), {total} FROM (SELECT {size_of_row} {tail} LIMIT ?) s",
            (*parameters, wanted),
        )
        known = self._known.get(question)
        if known is None:
            [(count, size)] = self._session.query(*question)
            known = self._known[question] = (count, int(size or 0))
        return known

    def _fitting(self, wanted: int, most_bytes: int) -> tuple[int, int]:
        """How many of the next rows have no more billed bytes than this together, and how many they have."""
        tail, parameters = self._tail(self.rest)
        sizes = self._session.query(
            f"SELECT {self._source.alias}.size_bytes {tail} LIMIT ?", (*parameters, wanted)
        )
        total = 0
        for count, (size,) in enumerate(sizes):
            if total + size > most_bytes:
                return count, total
            total += size
        return len(sizes), total

    def _at(self, offset: int) -> Columns:
        tail, parameters = self._tail(self.rest)
        found = self._session.query(
            f"SELECT {ROW_COLUMNS}{self._source.added} {tail} LIMIT 1 OFFSET ?", (*parameters, offset)
        )
        return found[0]

    def _passing(self, bounds: KeyRange) -> Chunk:
        prefilter, wanted = self._condition
        tail, parameters = self._tail(bounds, f" AND {prefilter}", wanted)
        return self._session.query(f"SELECT {ROW_COLUMNS}{self._source.added} {tail}", parameters)

    def _tail(
        self, bounds: KeyRange, also: str = "", wanted: list[str | bytes | float] | None = None
    ) -> tuple[str, tuple[object, ...]]:
        """FROM, WHERE and ORDER BY of the rows in some bounds, and their parameters."""
        source = self._source
        where, parameters, order = columns_between(source.alias, bounds.lower, bounds.upper, self._reverse)
        tail = f"FROM {source.tables} AND {where}{also} ORDER BY {order}"
        return tail, (*source.owners, *parameters, *(wanted or ()))

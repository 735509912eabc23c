"""Scans that return a range as a whole: neighbouring rows with their bodies concatenated, or counts with prefiltered rows.

This serves readers that would only join the bodies, and saves an object for each row. SQL joins the bodies if checksums
are not verified. Otherwise each body must leave the database separately. The caller reads row by row if the rows are
not in byte order, or if one is not native where native rows are required.

A scan reads its key range in parts (`ScannedRange`). For each part the reader gets the number of rows and their billed
bytes, which page limits count, and the rows that pass the prefilter. Long keys may tie in their clipped columns
(positions.py). The order of columns is then not key order. Ties among the filtered rows are harmless unless a part ends among
them. In that case, or if a tied row passes, the scan ends and the reader continues row by row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Any, NamedTuple

from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import Concatenation
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.rows.scans import Chunk, Columns, ScanSource, columns_between
from tablegate.gateway.store.sql import checksums
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS
from tablegate.gateway.store.sql.databases import Condition, Session, Statements
from tablegate.gateway.store.sql.positions import KEPT_BYTES, stored_position


class ConcatenatedBodies(NamedTuple):
    """Consecutive rows: their number, billed bytes, joined bodies, times of the last writes if requested, and last
    position."""

    number: int
    size: int
    bodies: bytes
    modified_at: list[int]
    last: Position


def fetch(
    session: Session, table_id: int, bounds: KeyRange, limit: int, concatenation: Concatenation, reverse: bool
) -> ConcatenatedBodies | None:
    """Return up to `limit` rows of a range within one partition. None if they must be read row by row.

    Raises DataCorrupted.
    """
    partition = bounds.lower.partition
    stored_key = stored_position(Position(partition, b""))
    column = stored_key.partition
    lower, upper = bounds.lower.sort, bounds.upper.sort
    if max(len(column), len(lower), len(upper)) >= KEPT_BYTES:
        return None
    parameters = (table_id, column, stored_key.slot, lower, upper, limit)
    if checksums.are_verified:
        return _fetch_verified(session, parameters, concatenation, reverse)
    statement = _statement(session.statements, reverse, concatenation)
    [(number, size, foreign, longest, edge, moments, bodies)] = session.query(statement, parameters)
    if foreign or (longest or 0) >= KEPT_BYTES:
        return None
    if not number:
        return ConcatenatedBodies(0, 0, b"", [], bounds.lower)
    modified_at = [*map(int, moments.split(","))] if concatenation.moments else []
    return ConcatenatedBodies(number, int(size), bodies, modified_at, Position(partition, edge))


def _fetch_verified(
    session: Session, parameters: tuple[Any, ...], concatenation: Concatenation, reverse: bool
) -> ConcatenatedBodies | None:
    """Verify the checksums of the rows, and return the result of `fetch`."""
    partition = parameters[1]
    rows = session.query(_statement_for_verifying(reverse), parameters)
    if not rows:
        return ConcatenatedBodies(0, 0, b"", [], Position(partition, b""))
    sorts, sizes, kinds, _, bodies, moments = zip(*rows, strict=True)
    if max(map(len, sorts)) >= KEPT_BYTES or (concatenation.native and kinds.count(None) < len(kinds)):
        return None
    checksums.verify(partition, rows)
    return ConcatenatedBodies(
        len(rows),
        sum(sizes),
        concatenation.separator.encode().join(bodies),
        [*moments] if concatenation.moments else [],
        Position(partition, sorts[-1]),
    )


_FROM_RANGE = """
FROM rows r WHERE r.table_id = ? AND r.partition = ? AND r.slot = ? AND r.sort >= ? AND r.sort < ?
ORDER BY r.sort{} LIMIT ?"""


@lru_cache(maxsize=2)
def _statement_for_verifying(reverse: bool) -> str:
    columns = "r.sort, r.size_bytes, r.kinds, r.checksum, r.body, r.modified_at"
    return f"SELECT {columns}{_FROM_RANGE.format(' DESC' if reverse else '')}"


@lru_cache(maxsize=16)
def _statement(statements: Statements, reverse: bool, concatenation: Concatenation) -> str:
    edge, moments, bodies = statements.concatenation(concatenation, reverse)
    foreign = "count(s.kinds)" if concatenation.native else "0"
    return f"""
SELECT count(*), sum(s.size_bytes), {foreign}, max(length(s.sort)), {edge},
    {moments if concatenation.moments else "NULL"}, {bodies}
FROM (SELECT r.sort, r.size_bytes, r.kinds, r.body, r.modified_at{_FROM_RANGE.format(" DESC" if reverse else "")}) s"""


_FIRST_RANGE_ROWS, _LARGEST_RANGE_ROWS = 1024, 4096
# Target duration of one part in seconds. Large rows are slow to scan.
_RANGE_S = 0.005


@dataclass(frozen=True, slots=True)
class ScannedRange:
    """Consecutive rows of a scan: their number, billed bytes, the rows that pass the prefilter, and the last row.

    `last` is None if the scan's range ends with them.
    """

    count: int
    size: int
    passing_rows: Chunk
    last: Columns | None


Counts = dict[tuple[str, tuple[object, ...]], tuple[int, int]]
"""Numbers and bytes of rows in one snapshot, by statement. Concurrent readers often measure the same range."""


class PrefilteredScan:
    """A scan over a key range of one source in one session.

    `rest`: the part of the range that is not taken yet. `needs_sizes`: if False, sizes are 0, which halves the time of
    measuring. `counts`: shared by all scans in one snapshot. `is_full`: the last part ended before a row that was too
    large, so no part follows.
    """

    def __init__(
        self,
        session: Session,
        source: ScanSource,
        bounds: KeyRange,
        reverse: bool,
        condition: Condition,
        counts: Counts,
        needs_sizes: bool = True,
    ) -> None:
        self._session = session
        self._source = source
        self._reverse = reverse
        self._condition = condition
        self._counts = counts
        self._needs_sizes = needs_sizes
        self._range_rows = _FIRST_RANGE_ROWS
        self.rest = bounds
        self.is_full = False

    def next(self, max_rows: int = sys.maxsize, max_bytes: int = sys.maxsize) -> ScannedRange | None:
        """Return the next part, within these limits of rows and billed bytes.

        None if the scan ends: no row fits, keys may tie, or the range is exhausted.
        """
        limit = min(self._range_rows, max_rows)
        if limit <= 0 or any(len(column) > KEPT_BYTES for bound in self.rest for column in bound):
            return None
        began = monotonic()
        count, size = self._measure(self.rest, limit)
        is_end = count < limit
        if size > max_bytes:
            count, size = self._measure_fitting(count, max_bytes)
            is_end, self.is_full = False, True
        if not count:
            return None
        last = None if is_end else self._row_at(count - 1)
        if last is not None and self._may_tie(last):
            return None
        passing = self._fetch_passing(self._through(last))
        if any(map(self._may_tie, passing)):
            return None
        is_quick = monotonic() - began < _RANGE_S
        self._range_rows = (
            min(self._range_rows * 4, _LARGEST_RANGE_ROWS) if is_quick else max(self._range_rows // 4, 1)
        )
        return ScannedRange(count, size, passing, last)

    def take(self, last: Columns | None) -> None:
        """Continue after this row. None ends the scan."""
        if last is None:
            self.rest = KeyRange(self.rest.upper, self.rest.upper)
        else:
            position = self._source.position(last)
            self.rest = self.rest.before(position) if self._reverse else self.rest.after(position)

    def measure_through(self, last: Columns) -> tuple[int, int]:
        """Return the number and billed bytes of the rows up to and including this one."""
        return self._measure(self._through(last), sys.maxsize)

    def _may_tie(self, columns: Columns) -> bool:
        source = self._source
        return len(columns[source.partition]) >= KEPT_BYTES or len(columns[source.sort]) >= KEPT_BYTES

    def _through(self, last: Columns | None) -> KeyRange:
        if last is None:
            return self.rest
        position = self._source.position(last)
        lower, upper = self.rest
        return KeyRange(position, upper) if self._reverse else KeyRange(lower, position.after)

    def _measure(self, bounds: KeyRange, limit: int) -> tuple[int, int]:
        """Return the number and billed bytes of the first rows of a range."""
        tail, parameters = self._tail(bounds)
        size_of_row = f"{self._source.alias}.size_bytes" if self._needs_sizes else "1 AS size_bytes"
        total = "SUM(s.size_bytes)" if self._needs_sizes else "0"
        query = (
            f"SELECT COUNT(*), {total} FROM (SELECT {size_of_row} {tail} LIMIT ?) s",
            (*parameters, limit),
        )
        result = self._counts.get(query)
        if result is None:
            [(count, size)] = self._session.query(*query)
            result = self._counts[query] = (count, int(size or 0))
        return result

    def _measure_fitting(self, limit: int, max_bytes: int) -> tuple[int, int]:
        """Return the number and billed bytes of the next rows that together fit into `max_bytes`."""
        tail, parameters = self._tail(self.rest)
        sizes = self._session.query(
            f"SELECT {self._source.alias}.size_bytes {tail} LIMIT ?", (*parameters, limit)
        )
        total = 0
        for count, (size,) in enumerate(sizes):
            if total + size > max_bytes:
                return count, total
            total += size
        return len(sizes), total

    def _row_at(self, offset: int) -> Columns:
        tail, parameters = self._tail(self.rest)
        rows = self._session.query(
            f"SELECT {ROW_COLUMNS}{self._source.extra_columns} {tail} LIMIT 1 OFFSET ?", (*parameters, offset)
        )
        return rows[0]

    def _fetch_passing(self, bounds: KeyRange) -> Chunk:
        prefilter, prefilter_parameters = self._condition
        tail, parameters = self._tail(bounds, f" AND {prefilter}", prefilter_parameters)
        return self._session.query(f"SELECT {ROW_COLUMNS}{self._source.extra_columns} {tail}", parameters)

    def _tail(
        self,
        bounds: KeyRange,
        prefilter: str = "",
        prefilter_parameters: list[str | bytes | float] | None = None,
    ) -> tuple[str, tuple[object, ...]]:
        """Return FROM, WHERE and ORDER BY for the rows of a range, and their parameters."""
        source = self._source
        where, parameters, order = columns_between(source.alias, bounds.lower, bounds.upper, self._reverse)
        tail = f"FROM {source.tables} AND {where}{prefilter} ORDER BY {order}"
        return tail, (*source.owners, *parameters, *(prefilter_parameters or ()))

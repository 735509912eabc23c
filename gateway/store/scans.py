"""Walking rows or index entries in key order, in either direction, by key range or by hash segment.

Reads in chunks, so that a page never holds much more than it returns. Knows about clipped columns (positions.py): where
keys tie in their columns, it orders them by their full bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.model.keys import HIGHEST, LOWEST, Position, spread_of
from gateway.model.ranges import KeyRange
from gateway.model.rows import Contents, Row
from gateway.store.databases import Session
from gateway.store.positions import COLUMN_BYTES, KEPT_BYTES, lower_bound, place_of, position_of, upper_bound

ROW_COLUMNS = "r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.body"
ROW_WIDTH = 8
_FIRST_CHUNK, _LARGEST_CHUNK, _CHUNK_BYTES = 64, 1024, 2_000_000
_ABOVE_TIES = HIGHEST * (COLUMN_BYTES - KEPT_BYTES + 1)


def row_of(columns: tuple[Any, ...]) -> Row:
    """A row from ROW_COLUMNS."""
    partition, sort, full_key, modified_at, expires_at_ms, size, kinds, body = columns
    return Row(position_of(partition, sort, full_key), Contents(body, kinds, size), modified_at, expires_at_ms)


@dataclass(frozen=True, slots=True)
class Source:
    """What is walked: the FROM clause, with the columns `k.partition`, `k.sort`, `k.slot`, `k.full_key`."""

    tables: str
    owners: tuple[int, ...]


def rows_source(table_id: int) -> Source:
    """The rows of a table."""
    return Source("rows r WHERE r.table_id = ?", (table_id,))


def entries_source(table_id: int, index_id: int) -> Source:
    """The entries of an index, each with its row."""
    return Source(
        "entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition"
        " AND r.sort = k.row_sort AND r.slot = k.row_slot",
        (index_id, table_id),
    )


class Found(NamedTuple):
    """A row, the columns by which the walk found it, the full position they stand for, and the billed size of what the
    source shows of it."""

    partition: bytes
    sort: bytes
    slot: int
    position: Position
    row: Row
    size_bytes: int


class Walk:
    """A walk over one source in one session. `expected`: about how many rows the caller wants (None: unknown)."""

    def __init__(self, session: Session, source: Source, expected: int | None = None) -> None:
        self._session = session
        self._source = source
        self._alias = "r" if source.tables.startswith("rows") else "k"
        self._chunk = min(max(expected + 1, 2), _FIRST_CHUNK * 4) if expected else _FIRST_CHUNK

    def range(self, bounds: KeyRange, reverse: bool = False) -> Iterator[Found]:
        """Everything in a key range, in true key order."""
        if bounds.is_empty:
            return
        if bounds.lower.partition == bounds.upper.partition:
            yield from self._partition(place_of(Position(bounds.lower.partition, b"")).partition, bounds, reverse)
            return
        lower = self._column_bound(bounds.lower, lower_bound, LOWEST)
        upper = self._column_bound(bounds.upper, upper_bound, HIGHEST)
        while True:
            for found in self._raw(lower, upper, reverse):
                if len(found.partition) >= KEPT_BYTES:
                    head = found.partition[:KEPT_BYTES]
                    yield from self._tied_partitions(head, bounds, reverse)
                    edges = (head, LOWEST), (head + _ABOVE_TIES, LOWEST)
                    break
                if len(found.sort) >= KEPT_BYTES:
                    head = found.sort[:KEPT_BYTES]
                    yield from self._tied_sorts(found.partition, head, bounds, reverse)
                    edges = (found.partition, head), (found.partition, head + _ABOVE_TIES)
                    break
                yield found
            else:
                return
            lower, upper = (lower, edges[0]) if reverse else (edges[1], upper)

    @staticmethod
    def _column_bound(position: Position, clip: Any, rest: bytes) -> tuple[bytes, bytes]:
        partition, exact = clip(position.partition)
        return (partition, clip(position.sort)[0]) if exact else (partition, rest)

    def _partition(self, column: bytes, bounds: KeyRange, reverse: bool) -> Iterator[Found]:
        """Within one partition, whose column is known exactly."""
        lower, upper = lower_bound(bounds.lower.sort)[0], upper_bound(bounds.upper.sort)[0]
        while True:
            for found in self._raw((column, lower), (column, upper), reverse):
                if len(found.sort) >= KEPT_BYTES:
                    head = found.sort[:KEPT_BYTES]
                    yield from self._tied_sorts(column, head, bounds, reverse)
                    break
                yield found
            else:
                return
            lower, upper = (lower, head) if reverse else (head + _ABOVE_TIES, upper)

    def _raw(self, lower: tuple[bytes, bytes], upper: tuple[bytes, bytes], reverse: bool) -> Iterator[Found]:
        """In column order, which is key order up to ties."""
        alias, way = self._alias, " DESC" if reverse else ""
        while True:
            if lower[0] == upper[0]:
                where = f"{alias}.partition = ? AND {alias}.sort >= ? AND {alias}.sort < ?"
                bounds = (lower[0], lower[1], upper[1])
                order = f"{alias}.sort{way}"
            else:
                where = f"({alias}.partition, {alias}.sort) >= (?, ?) AND ({alias}.partition, {alias}.sort) < (?, ?)"
                bounds = (*lower, *upper)
                order = f"{alias}.partition{way}, {alias}.sort{way}"
            chunk = self._chunk
            last = None
            count = 0
            for last in self._fetch(where, bounds, order, chunk):
                count += 1
                yield last
            if count < chunk or last is None:
                return
            if reverse:
                upper = (last.partition, last.sort)
            else:
                lower = (last.partition, last.sort + b"\x00")

    def _fetch(self, where: str, parameters: tuple[Any, ...], order: str, chunk: int) -> list[Found]:
        alias = self._alias
        rows = self._session.query(
            f"SELECT {ROW_COLUMNS}, {alias}.partition, {alias}.sort, {alias}.slot, {alias}.full_key, {alias}.size_bytes"
            f" FROM {self._source.tables} AND {where} ORDER BY {order} LIMIT ?",
            (*self._source.owners, *parameters, chunk),
        )
        total = 0
        found = []
        for columns in rows:
            partition, sort, slot, full_key, size = columns[ROW_WIDTH:]
            row = row_of(columns[:ROW_WIDTH])
            total += row.size_bytes
            found.append(Found(partition, sort, slot, position_of(partition, sort, full_key), row, size))
        if found:
            self._chunk = min(max(4, _CHUNK_BYTES * len(found) // (total + 1)), chunk * 4, _LARGEST_CHUNK)
        return found

    def _tied_sorts(self, partition: bytes, head: bytes, bounds: KeyRange, reverse: bool) -> Iterator[Found]:
        """The rows of a partition whose sort columns begin with `head`, by their full sort bytes."""
        alias, way = self._alias, " DESC" if reverse else ""
        whole = f"COALESCE(substr({alias}.full_key, ?), {alias}.sort)"
        where = f"{alias}.partition = ? AND {alias}.sort >= ? AND {alias}.sort < ? AND {whole} >= ? AND {whole} < ?"
        position = Position(partition, b"")
        if len(partition) == COLUMN_BYTES:
            position = bounds.lower  # a clipped partition is only walked by itself
        start = 5 + len(position.partition)
        lower = bounds.lower.sort if bounds.lower.partition == position.partition else LOWEST
        upper = bounds.upper.sort if bounds.upper.partition == position.partition else HIGHEST * (KEPT_BYTES + 1)
        while True:
            chunk = self._chunk
            parameters = (partition, head, head + _ABOVE_TIES, start, lower, start, upper, start)
            batch = self._fetch(where, parameters, whole + way, chunk)
            yield from batch
            if len(batch) < chunk:
                return
            last = batch[-1].position.sort
            lower, upper = (lower, last) if reverse else (last + b"\x00", upper)

    def _tied_partitions(self, head: bytes, bounds: KeyRange, reverse: bool) -> Iterator[Found]:
        """The rows of all partitions whose columns begin with `head`, partition by partition in their full order."""
        alias = self._alias
        partitions: dict[bytes, bytes] = {}
        above = head
        while True:
            rows = self._session.query(
                f"SELECT {alias}.partition, {alias}.sort, {alias}.full_key FROM {self._source.tables}"
                f" AND {alias}.partition >= ? AND {alias}.partition < ? ORDER BY {alias}.partition LIMIT 1",
                (*self._source.owners, above, head + _ABOVE_TIES),
            )
            if not rows:
                break
            partitions[position_of(*rows[0]).partition] = rows[0][0]
            above = rows[0][0] + b"\x00"
        for whole in sorted(partitions, reverse=reverse):
            lower = max(bounds.lower, Position(whole, LOWEST))
            upper = min(bounds.upper, Position(whole, HIGHEST * (KEPT_BYTES + 1)))
            if lower < upper:
                yield from self._partition(partitions[whole], KeyRange(lower, upper), reverse)

    def segment(self, lowest: int, highest: int, after: Position | None) -> Iterator[Found]:
        """Everything with lowest <= spread < highest, ordered by slot and columns: so much of the source is visited as the
        slots hold that this touches. `after`: the position in the source of the last row seen."""
        alias = self._alias
        slot, partition, sort = lowest >> 24, LOWEST, LOWEST
        if after is not None:
            place = place_of(after)
            slot, partition, sort = place.slot, place.partition, place.sort + b"\x00"
        where = f"({alias}.slot, {alias}.partition, {alias}.sort) >= (?, ?, ?) AND {alias}.slot <= ?"
        order = f"{alias}.slot, {alias}.partition, {alias}.sort"
        while True:
            chunk = self._chunk
            batch = self._fetch(where, (slot, partition, sort, (highest - 1) >> 24), order, chunk)
            for found in batch:
                if lowest <= spread_of(found.position.partition) < highest:
                    yield found
            if len(batch) < chunk:
                return
            slot, partition, sort = batch[-1].slot, batch[-1].partition, batch[-1].sort + b"\x00"

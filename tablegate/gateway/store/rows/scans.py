"""Reads of rows or index entries in key order, in either direction, by key range or by hash segment.

Reads come in chunks, so that a page holds little more than it returns. Whole chunks are passed on, which keeps the cost
of a row low. Where clipped columns tie (positions.py), rows are ordered by their full bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.values.keys import (
    HIGHEST,
    LOWEST,
    SLOT_SHIFT,
    SLOTS,
    Position,
    partition_hash,
    slot_of,
)
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.store.sql import checksums, positions
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH, checksum_of
from tablegate.gateway.store.sql.databases import Session

_SIZE = 5
_FIRST_CHUNK, _LARGEST_CHUNK, _CHUNK_BYTES = 64, 1024, 2_000_000
# Columns that entries_source adds to a row: slot, partition, sort, full_key and size_bytes of the entry.
_ENTRY_WIDTH = 5
_NO_ROW = (None,) * ROW_WIDTH
_ABOVE_TIES = HIGHEST * (positions.COLUMN_BYTES - positions.KEPT_BYTES + 1)

Columns = tuple[Any, ...]


class StoredRow(Row):
    """A row from SQL: ROW_COLUMNS, then the additional columns of the query.

    The checksum is verified here, because every reader passes here. Position and contents are created at first use,
    since most readers only copy the body into their reply.
    """

    # Replace the properties that Row derives from its contents.
    __slots__ = ("body", "columns", "is_native", "kinds", "size_bytes")
    body: bytes
    is_native: bool
    kinds: bytes | None
    size_bytes: int

    def __init__(self, columns: Columns) -> None:
        """Raises DataCorrupted."""
        partition, sort, full_key, self.modified_at, self.expires_at_ms, size_bytes, kinds, checksum, body = (
            columns[:ROW_WIDTH]
        )
        if (
            checksum is not None
            and checksums.are_verified
            and checksum != checksum_of(partition, sort, full_key, self.modified_at, size_bytes, kinds, body)
        ):
            raise checksums.mismatch(partition, sort)
        self.columns = columns
        self.size_bytes = size_bytes
        self.kinds = kinds
        self.body = body
        self.is_native = kinds is None

    def __getattr__(self, name: str) -> Any:
        """Fill a slot of Row at its first use."""
        if name == "contents":
            self.contents = Contents(self.body, self.kinds, self.size_bytes)
        elif name == "position":
            self.position = positions.position_of(*self.columns[:3])
        return object.__getattribute__(self, name)


@dataclass(frozen=True, slots=True)
class ScanSource:
    """A source to read: its FROM clause and where its columns are in a result.

    `keys`: the FROM clause of the keys alone, which takes the first of `owners` as a parameter. `alias`: the table that
    has the keys. `extra_columns`: the columns beside ROW_COLUMNS. The other fields are the indexes of the source's
    columns in a result.
    """

    tables: str
    keys: str
    alias: str
    owners: tuple[int, ...]
    extra_columns: str
    partition: int
    sort: int
    full_key: int
    slot: int
    size: int

    def position(self, columns: Columns) -> Position:
        """Return the full position in the source of a row of the result."""
        return positions.position_of(columns[self.partition], columns[self.sort], columns[self.full_key])


@lru_cache(maxsize=1024)
def rows_source(table_id: int) -> ScanSource:
    """Return the source for the rows of a table."""
    tables = "rows r WHERE r.table_id = ?"
    return ScanSource(tables, tables, "r", (table_id,), ", r.slot", 0, 1, 2, ROW_WIDTH, _SIZE)


def entries_source(table_id: int, index_id: int) -> ScanSource:
    """Return the source for the entries of an index, each joined with its row."""
    return ScanSource(
        "entries k CROSS JOIN rows r WHERE k.index_id = ? AND r.table_id = ? AND r.partition = k.row_partition"
        " AND r.sort = k.row_sort AND r.slot = k.row_slot",
        "entries k WHERE k.index_id = ?",
        "k",
        (index_id, table_id),
        ", k.slot, k.partition, k.sort, k.full_key, k.size_bytes",
        ROW_WIDTH + 1,
        ROW_WIDTH + 2,
        ROW_WIDTH + 3,
        ROW_WIDTH,
        ROW_WIDTH + 4,
    )


def columns_between(
    alias: str, lower: tuple[bytes, bytes], upper: tuple[bytes, bytes], reverse: bool, slot: int | None = None
) -> tuple[str, tuple[bytes | int, ...], str]:
    """Return WHERE, its parameters and ORDER BY for lower <= (partition, sort) < upper.

    `slot`: the slot of a single partition with a clipped column.
    """
    way = " DESC" if reverse else ""
    if lower[0] == upper[0]:
        where = f"{alias}.partition = ? AND {alias}.slot = ? AND {alias}.sort >= ? AND {alias}.sort < ?"
        if slot is None:
            slot = slot_of(lower[0])
        return where, (lower[0], slot, lower[1], upper[1]), f"{alias}.sort{way}"
    where = f"({alias}.partition, {alias}.sort) >= (?, ?) AND ({alias}.partition, {alias}.sort) < (?, ?)"
    return where, (*lower, *upper), f"{alias}.partition{way}, {alias}.sort{way}"


Chunk = list[Columns]
"""Rows of a result: ROW_COLUMNS, then the columns that the source adds."""


class Walk:
    """A walk over one source in one session. `expected`: estimated number of rows that the caller needs, or None."""

    def __init__(self, session: Session, source: ScanSource, expected: int | None = None) -> None:
        self._session = session
        self._source = source
        self._chunk = min(max(expected, 1), _FIRST_CHUNK * 4) if expected else _FIRST_CHUNK

    def range(self, bounds: KeyRange, reverse: bool = False) -> Iterator[Chunk]:
        """Yield the rows of a key range in key order, in non-empty chunks."""
        if bounds.is_empty:
            return
        if bounds.lower.partition == bounds.upper.partition:
            stored = positions.stored_position(Position(bounds.lower.partition, b""))
            yield from self._partition(stored.partition, stored.slot, bounds, reverse)
            return
        source = self._source
        lower = self._column_bound(bounds.lower, positions.lower_bound, LOWEST)
        upper = self._column_bound(bounds.upper, positions.upper_bound, HIGHEST)
        while True:
            tied_row = yield from self._fetch_until_tie(lower, upper, reverse)
            if tied_row is None:
                return
            partition, sort = tied_row[source.partition], tied_row[source.sort]
            if len(partition) >= positions.KEPT_BYTES:
                head = partition[: positions.KEPT_BYTES]
                yield from self._tied_partitions(head, bounds, reverse)
                below, above = (head, LOWEST), (head + _ABOVE_TIES, LOWEST)
            else:
                head = sort[: positions.KEPT_BYTES]
                yield from self._tied_sorts(partition, head, bounds, reverse)
                below, above = (partition, head), (partition, head + _ABOVE_TIES)
            lower, upper = (lower, below) if reverse else (above, upper)

    @staticmethod
    def _column_bound(position: Position, clip: Any, sort: bytes) -> tuple[bytes, bytes]:
        partition, exact = clip(position.partition)
        return (partition, clip(position.sort)[0]) if exact else (partition, sort)

    def _partition(self, column: bytes, slot: int, bounds: KeyRange, reverse: bool) -> Iterator[Chunk]:
        """Yield the rows of the one partition with this exact column and slot."""
        lower, upper = (
            positions.lower_bound(bounds.lower.sort)[0],
            positions.upper_bound(bounds.upper.sort)[0],
        )
        while True:
            tied_row = yield from self._fetch_until_tie((column, lower), (column, upper), reverse, slot)
            if tied_row is None:
                return
            head = tied_row[self._source.sort][: positions.KEPT_BYTES]
            yield from self._tied_sorts(column, head, bounds, reverse)
            lower, upper = (lower, head) if reverse else (head + _ABOVE_TIES, upper)

    def _fetch_until_tie(
        self, lower: tuple[bytes, bytes], upper: tuple[bytes, bytes], reverse: bool, slot: int | None = None
    ) -> Any:
        """Yield chunks in column order up to the first row that may tie with others. Return that row, or None at the
        end.

        Before a tie, column order is key order. `slot`: the slot of a single partition. Its column cannot tie.
        """
        source = self._source
        while True:
            where, bounds, order = columns_between(source.alias, lower, upper, reverse, slot)
            chunk, last = self._fetch(where, bounds, order)
            for at, columns in enumerate(chunk):
                if len(columns[source.sort]) >= positions.KEPT_BYTES or (
                    slot is None and len(columns[source.partition]) >= positions.KEPT_BYTES
                ):
                    if at:
                        yield chunk[:at]
                    return columns
            if chunk:
                yield chunk
            if last is None:
                return None
            partition, sort = last[source.partition], last[source.sort]
            if reverse:
                upper = (partition, sort)
            else:
                lower = (partition, sort + b"\x00")

    def _fetch(self, where: str, parameters: tuple[Any, ...], order: str) -> tuple[Chunk, Columns | None]:
        """Return the next chunk and the last key that was read, or None if the source is exhausted.

        Only the source's own columns of that key are valid.
        """
        source, limit = self._source, self._chunk
        if len(source.owners) > 1 and not self._session.statements.joins_entries:
            chunk, last = self._fetch_entries(where, parameters, order)
        else:
            chunk = self._session.query(
                f"SELECT {ROW_COLUMNS}{source.extra_columns} FROM {source.tables} AND {where} ORDER BY {order} LIMIT ?",
                (*source.owners, *parameters, limit),
            )
            last = chunk[-1] if len(chunk) == limit else None
        if last is not None:
            total = sum([columns[_SIZE] for columns in chunk])
            self._chunk = min(max(4, _CHUNK_BYTES * limit // (total + 1)), limit * 4, _LARGEST_CHUNK)
        return chunk, last

    def _fetch_entries(
        self, where: str, parameters: tuple[Any, ...], order: str
    ) -> tuple[Chunk, Columns | None]:
        """Fetch entries first and then their rows by key, for databases that cannot join them.

        An entry without a row is skipped, because the row was deleted in between. The walk therefore continues after
        the last entry.
        """
        index_id, table_id = self._source.owners
        entries = self._session.query(
            "SELECT k.slot, k.partition, k.sort, k.full_key, k.size_bytes, k.row_partition, k.row_sort, k.row_slot"
            f" FROM entries k WHERE k.index_id = ? AND {where} ORDER BY {order} LIMIT ?",
            (index_id, *parameters, self._chunk),
        )
        keys = [(table_id, *columns[_ENTRY_WIDTH:]) for columns in entries]
        rows = self._session.statements.fetch_rows(self._session, keys)() if keys else []
        chunk = [(*row[:ROW_WIDTH], *entries[at][:_ENTRY_WIDTH]) for at, row in sorted(rows)]
        last = (*_NO_ROW, *entries[-1][:_ENTRY_WIDTH]) if len(entries) == self._chunk else None
        return chunk, last

    def _tied_sorts(self, partition: bytes, head: bytes, bounds: KeyRange, reverse: bool) -> Iterator[Chunk]:
        """Yield the rows of a partition with sort columns that begin with `head`, ordered by their full sort bytes."""
        alias, way = self._source.alias, " DESC" if reverse else ""
        full_sort = f"COALESCE(substr({alias}.full_key, ?), {alias}.sort)"
        where = (
            f"{alias}.partition = ? AND {alias}.slot = ? AND {alias}.sort >= ? AND {alias}.sort < ?"
            f" AND {full_sort} >= ? AND {full_sort} < ?"
        )
        # A clipped partition is only walked alone, so the bounds hold its full key.
        full = bounds.lower.partition if len(partition) == positions.COLUMN_BYTES else partition
        start = 5 + len(full)
        lower = bounds.lower.sort if bounds.lower.partition == full else LOWEST
        upper = bounds.upper.sort if bounds.upper.partition == full else HIGHEST * (positions.KEPT_BYTES + 1)
        slot = slot_of(full)
        while True:
            parameters = (partition, slot, head, head + _ABOVE_TIES, start, lower, start, upper, start)
            chunk, last_row = self._fetch(where, parameters, full_sort + way)
            if chunk:
                yield chunk
            if last_row is None:
                return
            last_sort = self._source.position(last_row).sort
            lower, upper = (lower, last_sort) if reverse else (last_sort + b"\x00", upper)

    def _tied_partitions(self, head: bytes, bounds: KeyRange, reverse: bool) -> Iterator[Chunk]:
        """Yield the rows of all partitions with columns that begin with `head`, in the full order of partitions."""
        source = self._source
        alias = source.alias
        partitions: dict[bytes, bytes] = {}
        above = head
        while True:
            rows = self._session.query(
                f"SELECT {alias}.partition, {alias}.sort, {alias}.full_key FROM {source.keys}"
                f" AND {alias}.partition >= ? AND {alias}.partition < ? ORDER BY {alias}.partition LIMIT 1",
                (source.owners[0], above, head + _ABOVE_TIES),
            )
            if not rows:
                break
            partitions[positions.position_of(*rows[0]).partition] = rows[0][0]
            above = rows[0][0] + b"\x00"
        for partition in sorted(partitions, reverse=reverse):
            lower = max(bounds.lower, Position(partition, LOWEST))
            upper = min(bounds.upper, Position(partition, HIGHEST * (positions.KEPT_BYTES + 1)))
            if lower < upper:
                column, slot = partitions[partition], slot_of(partition)
                yield from self._partition(column, slot, KeyRange(lower, upper), reverse)

    def segment(self, lowest: int, highest: int, after: Position | None) -> Iterator[Chunk]:
        """Yield rows with lowest <= partition_hash < highest, ordered by slot and columns.

        Only the slots of such hashes are read. `after`: the position in the source of the last row already read.
        """
        source = self._source
        alias = source.alias
        slot, partition, sort = SLOTS[lowest >> SLOT_SHIFT], LOWEST, LOWEST
        if after is not None:
            stored = positions.stored_position(after)
            slot, partition, sort = stored.slot, stored.partition, stored.sort + b"\x00"
        where = f"({alias}.slot, {alias}.partition, {alias}.sort) >= (?, ?, ?) AND {alias}.slot <= ?"
        order = f"{alias}.slot, {alias}.partition, {alias}.sort"
        last_slot = SLOTS[(highest - 1) >> SLOT_SHIFT]
        while True:
            chunk, last = self._fetch(where, (slot, partition, sort, last_slot), order)
            inside = [
                columns
                for columns in chunk
                if lowest <= partition_hash(source.position(columns).partition) < highest
            ]
            if inside:
                yield inside
            if last is None:
                return
            slot, partition, sort = last[source.slot], last[source.partition], last[source.sort] + b"\x00"


def overlay(
    chunks: Iterator[Chunk], written: Mapping[Position, Row | None], source: ScanSource, reverse: bool
) -> Iterator[Chunk]:
    """Replace rows of a walk by the rows in `written`. None removes a row."""
    keys = sorted(written, reverse=not reverse)  # the next one last
    for chunk in chunks:
        result: Chunk = []
        for columns in chunk:
            position = source.position(columns)
            while keys and (keys[-1] > position if reverse else keys[-1] < position):
                result += _columns_of(written[keys.pop()])
            if keys and keys[-1] == position:
                result += _columns_of(written[keys.pop()])
            else:
                result.append(columns)
        if result:
            yield result
    last_chunk = [columns for position in reversed(keys) for columns in _columns_of(written[position])]
    if last_chunk:
        yield last_chunk


def _columns_of(row: Row | None) -> list[Columns]:
    """Return a row as a result row of `rows_source`, or an empty list."""
    if row is None:
        return []
    stored_key = positions.stored_position(row.position)
    contents = row.contents
    return [
        (
            stored_key.partition,
            stored_key.sort,
            stored_key.full_key,
            row.modified_at,
            row.expires_at_ms,
            contents.size_bytes,
            contents.kinds,
            None,
            contents.body,
            stored_key.slot,
        )
    ]

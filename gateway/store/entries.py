"""Secondary-index entries as SQL: add, remove, count. An entry is keys and a size; the row itself is read beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.model.tables import Entry
from gateway.store.databases import Session
from gateway.store.positions import place_of

_ADD = """
INSERT INTO entries (index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes"""

_ADD_MANY = """
INSERT INTO entries (index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key)
SELECT * FROM unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[], ?::int[], ?::bytea[], ?::bytea[], ?::smallint[],
    ?::bytea[])
ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes"""

_REMOVE = "DELETE FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"

_REMOVE_MANY = """
DELETE FROM entries e USING unnest(?::bigint[], ?::bytea[], ?::bytea[], ?::smallint[]) AS k(index_id, partition, sort, slot)
WHERE e.index_id = k.index_id AND e.partition = k.partition AND e.sort = k.sort AND e.slot = k.slot"""


def add_many(session: Session, entries: Iterable[tuple[int, Entry]]) -> None:
    """Store entries: (index id, entry). An entry that is there gets the new size."""
    values = []
    for index_id, entry in entries:
        place, row = place_of(entry.position), place_of(entry.row.position)
        values.append(
            (
                index_id,
                place.partition,
                place.sort,
                place.slot,
                entry.size_bytes,
                row.partition,
                row.sort,
                row.slot,
                place.full_key,
            )
        )
    if not values:
        return
    if session.is_postgresql and len(values) > 1:
        session.send(_ADD_MANY, [list(column) for column in zip(*sorted(values), strict=True)])
    else:
        session.execute_many(_ADD, values)


def remove_many(session: Session, entries: Sequence[tuple[int, Entry]]) -> None:
    """Delete entries: (index id, entry)."""
    keys = []
    for index_id, entry in entries:
        place = place_of(entry.position)
        keys.append((index_id, place.partition, place.sort, place.slot))
    if not keys:
        return
    if session.is_postgresql and len(keys) > 1:
        session.send(_REMOVE_MANY, [list(column) for column in zip(*sorted(keys), strict=True)])
    else:
        session.execute_many(_REMOVE, keys)


def count(session: Session, index_id: int) -> tuple[int, int]:
    """(entries, billed bytes) of an index."""
    [(number, size)] = session.query(
        "SELECT count(*), COALESCE(sum(size_bytes), 0) FROM entries WHERE index_id = ?", (index_id,)
    )
    return number, int(size)

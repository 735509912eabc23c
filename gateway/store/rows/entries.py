"""Secondary-index entries as SQL: add, remove, count. An entry is keys and a size; the row itself is read beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablegate.gateway.model.tables.indexes import Entry
from tablegate.gateway.store.sql.databases import Key, Session
from tablegate.gateway.store.sql.positions import stored_position

COLUMNS = "index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key"

# One entry each: for every database. Sets of entries are in `Statements`.
RESIZE = " ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes"
ADD = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?){RESIZE}"
REMOVE = "DELETE FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"


def add_many(session: Session, entries: Iterable[tuple[int, Entry]]) -> None:
    """Store entries: (index id, entry). An entry that is there gets the new size."""
    values = []
    for index_id, entry in entries:
        stored, row = stored_position(entry.position), stored_position(entry.row.position)
        values.append(
            (
                index_id,
                stored.partition,
                stored.sort,
                stored.slot,
                entry.size_bytes,
                row.partition,
                row.sort,
                row.slot,
                stored.full_key,
            )
        )
    if values:
        session.statements.add_entries(session, sorted(values))


def remove_many(session: Session, entries: Sequence[tuple[int, Entry]]) -> None:
    """Delete entries: (index id, entry)."""
    keys: list[Key] = [(index_id, *stored_position(entry.position)[:3]) for index_id, entry in entries]
    if keys:
        session.statements.remove_entries(session, sorted(keys))


def count(session: Session, index_id: int) -> tuple[int, int]:
    """(entries, billed bytes) of an index."""
    [(number, size)] = session.query(
        "SELECT count(*), COALESCE(sum(size_bytes), 0) FROM entries WHERE index_id = ?", (index_id,)
    )
    return number, int(size)


def copy(session: Session, index_id: int, to: int) -> None:
    """Give another index, which has none, the entries of an index."""
    columns = COLUMNS.removeprefix("index_id, ")
    session.execute(
        f"INSERT INTO entries ({COLUMNS}) SELECT {session.statements.big_number}, {columns}"
        " FROM entries WHERE index_id = ?",
        (to, index_id),
    )

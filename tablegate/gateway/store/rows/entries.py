"""SQL for secondary index entries. An entry holds keys and a size. The row itself is read separately."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablegate.gateway.model.tables.indexes import Entry
from tablegate.gateway.store.sql.databases import Key, Session
from tablegate.gateway.store.sql.positions import stored_position

COLUMNS = "index_id, partition, sort, slot, size_bytes, row_partition, row_sort, row_slot, full_key"

# Statements for one entry, for every database. `Statements` handles sets of entries.
RESIZE = " ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET size_bytes = excluded.size_bytes"
ADD = f"INSERT INTO entries ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?){RESIZE}"
REMOVE = "DELETE FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"


def add_many(session: Session, entries: Iterable[tuple[int, Entry]]) -> None:
    """Insert entries, given as (index id, entry). An existing entry gets the new size."""
    values = []
    for index_id, entry in entries:
        stored_key, row = stored_position(entry.position), stored_position(entry.row.position)
        values.append(
            (
                index_id,
                stored_key.partition,
                stored_key.sort,
                stored_key.slot,
                entry.size_bytes,
                row.partition,
                row.sort,
                row.slot,
                stored_key.full_key,
            )
        )
    if values:
        session.statements.add_entries(session, sorted(values))


def remove_many(session: Session, entries: Sequence[tuple[int, Entry]]) -> None:
    """Delete entries, given as (index id, entry)."""
    keys: list[Key] = [(index_id, *stored_position(entry.position)[:3]) for index_id, entry in entries]
    if keys:
        session.statements.remove_entries(session, sorted(keys))

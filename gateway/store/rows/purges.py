"""Deletion of the rows and entries of dropped tables and indexes, in bounded batches."""

from __future__ import annotations

from tablegate.gateway.store.rows import row_counts, vectors
from tablegate.gateway.store.sql import counters, progress
from tablegate.gateway.store.sql.databases import Session

# Table, column of the owner, remaining key columns, and billed bytes of a row. Rows may have 4 MB, entries are small.
_OWNED = {
    "table": ("rows", "table_id", "partition, sort", "size_bytes"),
    "index": ("entries", "index_id", "partition, sort", "0"),
    "vectors": ("vectors", "index_id", "partition, sort", "size_bytes"),
    "history": ("history", "history_id", "changed_at, slot, partition, sort", "size_bytes"),
}
_BATCH_BYTES = 4_000_000


def is_pending(session: Session) -> bool:
    """Return True if rows are waiting for deletion."""
    return bool(session.query("SELECT 1 FROM purges LIMIT 1"))


def purge(session: Session, limit: int) -> int | None:
    """Delete up to `limit` rows of dropped owners. Return their number, or None if nothing waits for deletion."""
    owners = session.query("SELECT kind, id FROM purges ORDER BY id LIMIT 1")
    if not owners:
        return None
    kind, owner_id = owners[0]
    table, owner, key, bytes_column = _OWNED[kind]
    rows = session.query(
        f"SELECT {key}, {bytes_column} FROM {table} WHERE {owner} = ? ORDER BY {key} LIMIT ?",
        (owner_id, limit + 1),
    )
    size = deleted = 0
    while (
        deleted < len(rows) and deleted < limit and (not deleted or size + rows[deleted][-1] <= _BATCH_BYTES)
    ):
        size += rows[deleted][-1]
        deleted += 1
    if deleted < len(rows):
        # By a range of the primary key, because SQLite would scan for an IN over several columns.
        session.execute(
            f"DELETE FROM {table} WHERE {owner} = ? AND ({key}) < ({', '.join('?' * (len(rows[deleted]) - 1))})",
            (owner_id, *rows[deleted][:-1]),
        )
        progress.advance(session, progress.PURGE, owner_id, deleted)
        return deleted
    session.execute(f"DELETE FROM {table} WHERE {owner} = ?", (owner_id,))
    row_counts.forget(session, owner_id)
    if kind == "vectors":
        vectors.forget(session, owner_id)
    forgotten = counters.forget_table(session, owner_id, limit) if kind == "table" else 0
    if forgotten < limit:
        session.execute("DELETE FROM purges WHERE kind = ? AND id = ?", (kind, owner_id))
        progress.forget(session, progress.PURGE, owner_id)
    return deleted + forgotten

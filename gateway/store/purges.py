"""Deleting the rows and entries of tables and indexes that are gone, a bounded batch at a time."""

from __future__ import annotations

from gateway.store import counters, progress
from gateway.store.databases import Session

# Table, its owner's column, and the billed bytes of a row of it: rows may have 4 MB, entries are small.
_OWNED = {"table": ("rows", "table_id", "size_bytes"), "index": ("entries", "index_id", "0")}
_BATCH_BYTES = 4_000_000


def waits(session: Session) -> bool:
    """Whether there is anything to delete."""
    return bool(session.query("SELECT 1 FROM purges LIMIT 1"))


def purge(session: Session, limit: int) -> int | None:
    """Delete at most `limit` rows of what is gone. How many went; None: nothing waits to be deleted."""
    waiting = session.query("SELECT kind, id FROM purges ORDER BY id LIMIT 1")
    if not waiting:
        return None
    kind, owner_id = waiting[0]
    table, owner, bytes_column = _OWNED[kind]
    found = session.query(
        f"SELECT partition, sort, {bytes_column} FROM {table} WHERE {owner} = ? ORDER BY partition, sort LIMIT ?",
        (owner_id, limit + 1),
    )
    size = gone = 0
    while gone < len(found) and gone < limit and (not gone or size + found[gone][2] <= _BATCH_BYTES):
        size += found[gone][2]
        gone += 1
    if gone < len(found):
        # By a range of the primary key: SQLite would scan for an IN over several columns.
        session.execute(
            f"DELETE FROM {table} WHERE {owner} = ? AND (partition, sort) < (?, ?)",
            (owner_id, *found[gone][:2]),
        )
        progress.advance(session, progress.PURGE, owner_id, gone)
        return gone
    session.execute(f"DELETE FROM {table} WHERE {owner} = ?", (owner_id,))
    forgotten = counters.forget_table(session, owner_id, limit) if kind == "table" else 0
    if forgotten < limit:
        session.execute("DELETE FROM purges WHERE kind = ? AND id = ?", (kind, owner_id))
        progress.forget(session, progress.PURGE, owner_id)
    return gone + forgotten

"""Deleting the rows and entries of tables and indexes that are gone, a bounded batch at a time."""

from __future__ import annotations

from gateway.store import counters
from gateway.store.databases import Session

_OWNED = {"table": ("rows", "table_id"), "index": ("entries", "index_id")}


def purge(session: Session, limit: int) -> bool:
    """Delete at most `limit` rows of what is gone. Whether there may be more to do."""
    waiting = session.query("SELECT kind, id FROM purges ORDER BY id LIMIT 1")
    if not waiting:
        return False
    kind, owner_id = waiting[0]
    table, owner = _OWNED[kind]
    # By a range of the primary key: SQLite would scan for an IN over several columns.
    edge = session.query(
        f"SELECT partition, sort FROM {table} WHERE {owner} = ? ORDER BY partition, sort LIMIT 1 OFFSET ?",
        (owner_id, limit),
    )
    if edge:
        session.execute(
            f"DELETE FROM {table} WHERE {owner} = ? AND (partition, sort) < (?, ?)", (owner_id, *edge[0])
        )
    else:
        session.execute(f"DELETE FROM {table} WHERE {owner} = ?", (owner_id,))
        session.execute("DELETE FROM purges WHERE kind = ? AND id = ?", (kind, owner_id))
        if kind == "table":
            counters.forget_table(session, owner_id)
    return True

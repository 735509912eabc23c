"""Tables whose expiry rule changed and whose rows have not all been given their new times yet."""

from __future__ import annotations

from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session


def begin(session: Session, table_id: int) -> None:
    """Ask for a table to be gone through, from the start."""
    session.execute(
        "INSERT INTO expiry_backfills (table_id, mark) VALUES (?, NULL) ON CONFLICT (table_id) DO UPDATE SET mark = NULL",
        (table_id,),
    )
    progress.forget(session, progress.EXPIRY_BACKFILL, table_id)


def first(session: Session) -> tuple[int, bytes | None] | None:
    """(table id, how far it has come) of one table that waits."""
    waiting = session.query("SELECT table_id, mark FROM expiry_backfills ORDER BY table_id LIMIT 1")
    return (waiting[0][0], waiting[0][1]) if waiting else None


def save_progress(session: Session, table_id: int, mark: bytes, number: int) -> None:
    """Remember how far a table has come, by so many rows more."""
    session.execute("UPDATE expiry_backfills SET mark = ? WHERE table_id = ?", (mark, table_id))
    progress.advance(session, progress.EXPIRY_BACKFILL, table_id, number)


def finish(session: Session, table_id: int) -> None:
    """Take a table off the list: all its rows have their new times, or it is gone."""
    session.send("DELETE FROM expiry_backfills WHERE table_id = ?", (table_id,))
    progress.forget(session, progress.EXPIRY_BACKFILL, table_id)

"""SQL for tables with a changed expiry rule, until all their rows have new expiry times."""

from __future__ import annotations

from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session


def begin(session: Session, table_id: int) -> None:
    """Schedule the update of all rows of a table, from the start."""
    session.execute(
        "INSERT INTO expiry_backfills (table_id, mark) VALUES (?, NULL) ON CONFLICT (table_id) DO UPDATE SET mark = NULL",
        (table_id,),
    )
    progress.forget(session, progress.EXPIRY_BACKFILL, table_id)


def first(session: Session) -> tuple[int, bytes | None] | None:
    """Return (table id, mark) of one waiting table, or None."""
    rows = session.query("SELECT table_id, mark FROM expiry_backfills ORDER BY table_id LIMIT 1")
    return (rows[0][0], rows[0][1]) if rows else None


def save_progress(session: Session, table_id: int, mark: bytes, number: int) -> None:
    """Save the mark up to which a table is updated, and add `number` to the rows done."""
    session.execute("UPDATE expiry_backfills SET mark = ? WHERE table_id = ?", (mark, table_id))
    progress.advance(session, progress.EXPIRY_BACKFILL, table_id, number)


def finish(session: Session, table_id: int) -> None:
    """Remove a table that is finished or dropped."""
    session.send("DELETE FROM expiry_backfills WHERE table_id = ?", (table_id,))
    progress.forget(session, progress.EXPIRY_BACKFILL, table_id)

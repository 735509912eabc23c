"""Progress of background work: rows done and left, and tables with a changed expiry rule until all rows have new times.

Rows done are recorded in the work's own transactions. Rows left are counted on request, in bounded time. Concurrent
writers make that count approximate.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.owned_rows import KINDS

# Names in /metrics, in `tablegate tables` and in databases.
PURGE, INDEX_BACKFILL, EXPIRY_BACKFILL = "purge", "index_backfill", "expiry_refill"
WAITING = {
    PURGE: "SELECT 'purge', id, kind, id FROM purges",
    INDEX_BACKFILL: "SELECT 'index_backfill', id, 'table', table_id FROM indexes WHERE filled = 0",
    EXPIRY_BACKFILL: "SELECT 'expiry_refill', table_id, 'table', table_id FROM expiry_backfills",
}
"""The queries of waiting work: its name and id, and the kind and id of the owner of the rows that it processes. A
capability adds its own."""
# Counting a million rows by their index takes a tenth of a second.
COUNTED_ROWS = 1_000_000
_PIECES = 100


class WorkProgress(NamedTuple):
    """A piece of background work: its table (or index, if dropped), and the number of rows done and left."""

    work: str
    id: int
    done: int
    left: int


def advance(session: Session, work: str, owner_id: int, rows: int) -> None:
    """Record that more rows of a piece of work are done. `owner_id`: its table or index."""
    session.execute(
        "INSERT INTO progress (work, id, rows_done) VALUES (?, ?, ?)"
        " ON CONFLICT (work, id) DO UPDATE SET rows_done = progress.rows_done + excluded.rows_done",
        (work, owner_id, rows),
    )


def forget(session: Session, work: str, owner_id: int) -> None:
    """Delete the recorded progress of work that is finished or starts again."""
    session.send("DELETE FROM progress WHERE work = ? AND id = ?", (work, owner_id))


def unfinished_work(
    session: Session, at_most: int = COUNTED_ROWS, pieces: int = _PIECES
) -> list[WorkProgress]:
    """Return unfinished work. In total, up to `at_most` rows are counted."""
    done = {
        (work, owner_id): int(rows)
        for work, owner_id, rows in session.query("SELECT work, id, rows_done FROM progress")
    }
    progress: list[WorkProgress] = []
    waiting = f"{' UNION ALL '.join(WAITING.values())} ORDER BY 1, 2 LIMIT ?"
    for work, owner_id, kind, counted_id in session.query(waiting, (pieces,)):
        if kind not in KINDS:
            continue
        rows_done = done.get((work, owner_id), 0)
        # Purged rows are gone. Rows that other work has processed are still there.
        rows_processed = 0 if work == PURGE else rows_done
        limit = max(0, at_most) + rows_processed
        [(count,)] = session.query(KINDS[kind].counting, (counted_id, limit))
        at_most -= count - min(rows_processed, count)
        progress.append(WorkProgress(work, owner_id, rows_done, max(0, count - rows_processed)))
    return progress


def begin_expiry_backfill(session: Session, table_id: int) -> None:
    """Schedule the update of all rows of a table, from the start."""
    session.execute(
        "INSERT INTO expiry_backfills (table_id, mark) VALUES (?, NULL) ON CONFLICT (table_id) DO UPDATE SET mark = NULL",
        (table_id,),
    )
    forget(session, EXPIRY_BACKFILL, table_id)


def first_expiry_backfill(session: Session) -> tuple[int, bytes | None] | None:
    """Return (table id, mark) of one waiting table, or None."""
    rows = session.query("SELECT table_id, mark FROM expiry_backfills ORDER BY table_id LIMIT 1")
    return (rows[0][0], rows[0][1]) if rows else None


def save_expiry_backfill(session: Session, table_id: int, mark: bytes, number: int) -> None:
    """Save the mark up to which a table is updated, and add `number` to the rows done."""
    session.execute("UPDATE expiry_backfills SET mark = ? WHERE table_id = ?", (mark, table_id))
    advance(session, EXPIRY_BACKFILL, table_id, number)


def finish_expiry_backfill(session: Session, table_id: int) -> None:
    """Remove a table that is finished or dropped."""
    session.send("DELETE FROM expiry_backfills WHERE table_id = ?", (table_id,))
    forget(session, EXPIRY_BACKFILL, table_id)

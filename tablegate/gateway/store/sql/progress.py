"""Progress of background work: the number of rows done and left.

Rows done are recorded in the work's own transactions. Rows left are counted on request, in bounded time. Concurrent
writers make that count approximate.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.gateway.store.sql.databases import Session

# Names in /metrics, in `tablegate tables` and in databases.
PURGE, INDEX_BACKFILL, EXPIRY_BACKFILL, COPY = "purge", "index_backfill", "expiry_refill", "copy"
WORKS = (PURGE, INDEX_BACKFILL, EXPIRY_BACKFILL, COPY)
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
    for work, owner_id, kind, counted_id in session.query(_WAITING, (pieces,)):
        rows_done = done.get((work, owner_id), 0)
        # Purged rows are gone. Rows that other work has processed are still there.
        rows_processed = 0 if work == PURGE else rows_done
        count = _count(session, kind, counted_id, max(0, at_most) + rows_processed)
        at_most -= count - min(rows_processed, count)
        progress.append(WorkProgress(work, owner_id, rows_done, max(0, count - rows_processed)))
    return progress


# The work that waits, with the owner of the rows or entries to be counted.
_WAITING = f"""
SELECT '{PURGE}' AS work, id, kind, id AS counted FROM purges
UNION ALL SELECT '{INDEX_BACKFILL}', id, 'table', table_id FROM indexes WHERE filled = 0
UNION ALL SELECT '{EXPIRY_BACKFILL}', table_id, 'table', table_id FROM expiry_backfills
UNION ALL SELECT '{COPY}', target_id, 'table', source_id FROM copies
ORDER BY 1, 2 LIMIT ?"""

# The slot is named so that the narrow index is used and bodies are not read.
_COUNT = {
    "table": "SELECT count(*) FROM (SELECT 1 FROM rows WHERE table_id = ? AND slot >= 0 LIMIT ?) AS counted",
    "index": "SELECT count(*) FROM (SELECT 1 FROM entries WHERE index_id = ? AND slot >= 0 LIMIT ?) AS counted",
    "vectors": "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE index_id = ? AND version >= 0 LIMIT ?) AS counted",
    "documents": "SELECT count(*) FROM (SELECT 1 FROM search_documents WHERE index_id = ? LIMIT ?) AS counted",
    "terms": "SELECT count(*) FROM (SELECT 1 FROM search_terms WHERE index_id = ? LIMIT ?) AS counted",
    "history": "SELECT count(*) FROM (SELECT 1 FROM history WHERE history_id = ? LIMIT ?) AS counted",
}


def _count(session: Session, kind: str, owner_id: int, at_most: int) -> int:
    [(number,)] = session.query(_COUNT[kind], (owner_id, at_most))
    return int(number)

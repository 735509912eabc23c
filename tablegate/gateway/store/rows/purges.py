"""Deletion of the rows and entries of dropped tables and indexes, in bounded batches.

Rows are deleted by ranges of their key. Their order in the SQL table is another one, so each row is on a page of its
own. PostgreSQL deletes large numbers of rows by ranges of pages instead, which is about ten times as fast
(docs/contribute/measured-storage.md).
"""

from __future__ import annotations

from tablegate.gateway.store.rows import row_counts
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.owned_rows import KINDS, OwnedRows

_BATCH_BYTES = 4_000_000
# Minimum number of rows for deletion by pages, and pages in a statement. A row costs less than an eighth of the time of
# deletion by key.
_MIN_ROWS_BY_PAGE, _PAGES, _TIMES_FASTER = 50_000, 32, 8


def next_owner(session: Session) -> tuple[str, int] | None:
    """Return (kind, id) of a dropped owner with rows to delete, or None. Leaves out kinds that are not in KINDS."""
    places = ", ".join("?" * len(KINDS))
    owners = session.query(
        f"SELECT kind, id FROM purges WHERE kind IN ({places}) ORDER BY id LIMIT 1", [*KINDS]
    )
    return owners[0] if owners else None


class Purge:
    """Deletes the rows of dropped owners, one owner after the other. Only the position in the pages is in memory."""

    def __init__(self) -> None:
        self._owner: tuple[str, int] | None = None
        self._walk: _PageWalk | None = None

    def next_batch(self, session: Session, limit: int) -> int | None:
        """Delete rows of dropped owners, by key at most `limit`. Return their number, or None if nothing waits."""
        owner = next_owner(session)
        if owner is None:
            return None
        kind, owner_id = owner
        if self._owner != owner:
            self._walk = _page_walk(session, KINDS[kind], owner_id)
            self._owner = owner
        if self._walk is None:
            deleted, is_over = _delete_by_key(session, KINDS[kind], owner_id, limit)
        else:
            deleted, is_over = self._walk.delete(session, limit)
        if not is_over:
            if deleted:
                progress.advance(session, progress.PURGE, owner_id, deleted)
            return deleted
        return deleted + _finish(session, kind, owner_id, limit)


def _delete_by_key(session: Session, owned: OwnedRows, owner_id: int, limit: int) -> tuple[int, bool]:
    """Delete up to `limit` rows. Return their number, and True if no other is left."""
    table, owner, key, bytes_column, *_ = owned
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
        return deleted, False
    session.execute(f"DELETE FROM {table} WHERE {owner} = ?", (owner_id,))
    return deleted, True


def _finish(session: Session, kind: str, owner_id: int, limit: int) -> int:
    """Forget an owner that has no rows. Return the number of deleted counters, which may need several batches."""
    row_counts.forget(session, owner_id)
    forget = KINDS[kind].forget
    forgotten = 0 if forget is None else forget(session, owner_id, limit)
    if forgotten < limit:
        session.execute("DELETE FROM purges WHERE kind = ? AND id = ?", (kind, owner_id))
        progress.forget(session, progress.PURGE, owner_id)
    return forgotten


def _page_walk(session: Session, owned: OwnedRows, owner_id: int) -> _PageWalk | None:
    """Return a walk if it reads at most as many pages as there are rows to delete, otherwise None."""
    count = row_counts.complete_counts(session, [owner_id]).get(owner_id, row_counts.EMPTY)
    if count.rows < _MIN_ROWS_BY_PAGE:
        return None
    pages = session.statements.page_count(session, owned.table)
    if not 0 < pages <= count.rows:
        return None
    average = 0 if owned.size == "0" else count.size_bytes // count.rows
    return _PageWalk(owned, owner_id, max(1, _BATCH_BYTES // max(1, average)))


class _PageWalk:
    """Deletes the rows of an owner from the first page of the SQL table to the last one.

    A row that is updated meanwhile may move to an earlier page. So the walk is over after a pass without any row.
    """

    def __init__(self, owned: OwnedRows, owner_id: int, most_rows: int) -> None:
        """`most_rows`: number of rows of average size that a batch may delete."""
        self._owned = owned
        self._owner_id = owner_id
        self._most_rows = most_rows
        self._page = self._deleted_in_pass = 0

    def delete(self, session: Session, limit: int) -> tuple[int, bool]:
        """Delete rows for as long as `limit` rows take by key. Return their number, and True at the end."""
        limit = min(limit * _TIMES_FASTER, self._most_rows)
        pages = max(1, min(_PAGES, limit // 4))
        last_page = session.statements.page_count(session, self._owned.table)
        deleted = read = 0
        while deleted < limit and read < limit and self._page < last_page:
            deleted += session.statements.delete_pages(
                session,
                self._owned.table,
                self._owned.owner,
                self._owner_id,
                (self._page, self._page + pages),
            )
            self._page += pages
            read += pages
        self._deleted_in_pass += deleted
        if self._page < last_page:
            return deleted, False
        is_over = not self._deleted_in_pass
        self._page = self._deleted_in_pass = 0
        return deleted, is_over

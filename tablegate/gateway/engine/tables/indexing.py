"""Secondary and vector indexes: an index is a function of the row, so an update is the difference of two entries.

This module computes the entries that a write adds and removes, and fills new indexes. `Index.entry` (model) decides
what an entry is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from tablegate.gateway.engine.background import batch_walk
from tablegate.gateway.engine.background.scheduler import Scheduler, Work
from tablegate.gateway.model.tables.indexes import Entry, Index, VectorEntry, VectorIndex
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import entries, vectors
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

Differences = tuple[list[tuple[int, Entry]], list[tuple[int, Entry]]]
"""(entries to remove, entries to add), each with its index id."""


def differences(
    table: Table, pairs: Iterable[tuple[Row | None, Row | None]], counts: CountChanges
) -> Differences:
    """Return the index entries that (old row, new row) pairs remove and add. Unchanged entries are omitted.

    Their numbers and sizes are added to `counts`.
    """
    old_entries: list[tuple[int, Entry]] = []
    new_entries: list[tuple[int, Entry]] = []
    for old, new in pairs:
        for index in table.indexes:
            before = None if old is None else index.entry(old)
            after = None if new is None else index.entry(new)
            counts.add(index.id, before, after)
            if before is not None and (after is None or after.position != before.position):
                old_entries.append((index.id, before))
            if after is not None and (
                before is None or after.position != before.position or after.size_bytes != before.size_bytes
            ):
                new_entries.append((index.id, after))
    return old_entries, new_entries


def update_indexes(
    session: Session, table: Table, pairs: Sequence[tuple[Row | None, Row | None]], counts: CountChanges
) -> None:
    """Update the index entries of a table for (old row, new row) pairs, and add their numbers to `counts`."""
    if table.indexes:
        old_entries, new_entries = differences(table, pairs, counts)
        entries.remove_many(session, old_entries)
        entries.add_many(session, new_entries)
    for index in table.vector_indexes:
        _update_vectors(session, index, pairs, counts)


def _update_vectors(
    session: Session,
    index: VectorIndex,
    pairs: Iterable[tuple[Row | None, Row | None]],
    counts: CountChanges,
) -> None:
    new_entries: list[VectorEntry] = []
    changed_entries: list[VectorEntry] = []
    old_entries: list[VectorEntry] = []
    for old, new in pairs:
        before = None if old is None else index.entry(old)
        after = None if new is None else index.entry(new)
        counts.add(index.id, before, after)
        if after is None:
            if before is not None:
                old_entries.append(before)
        elif before is None:
            new_entries.append(after)
        elif not after.is_stored_as(before):
            changed_entries.append(after)
    if new_entries or changed_entries or old_entries:
        vectors.save_many(session, index.id, new_entries, changed_entries, old_entries)


def add_works(background: Scheduler) -> None:
    """Register the works of this module."""
    background.add(Work(progress.INDEX_BACKFILL, lambda now_ms, limit: backfill(background.store, limit)))


def backfill(store: Store, limit: int) -> int | None:
    """Fill one batch, of at most `limit` rows, of one index. Return the number of processed rows, or None if no index
    waits.

    Writers maintain an index from its creation. Filling adds only older rows.
    """
    with store.read() as session:
        tables = store.catalog.all(
            session, "id IN (SELECT table_id FROM indexes WHERE filled = 0) ORDER BY id LIMIT 1"
        )
    if not tables:
        return None
    [table] = tables
    index = next(index for index in table.all_indexes if not index.filled)
    with store.write() as session:
        if store.catalog.check(session, [table], lock=True)():
            return 0
        batch = batch_walk.next_batch(session, table, store.catalog.filled_up_to(session, index.id), limit)
        if batch is not None:
            _fill(session, index, batch.rows)
            store.catalog.save_progress(session, index.id, batch.mark, batch.length)
            return batch.length
    _finish(store, table, index)
    return 0


def _fill(session: Session, index: Index | VectorIndex, rows: Iterable[Row]) -> None:
    if isinstance(index, VectorIndex):
        vectors.fill(session, index.id, [vector for row in rows if (vector := index.entry(row)) is not None])
    else:
        index_entries = [(index.id, entry) for row in rows if (entry := index.entry(row)) is not None]
        entries.add_many(session, index_entries)


def _finish(store: Store, table: Table, index: Index | VectorIndex) -> None:
    with store.write() as session:
        current = store.catalog.lock(session, table.id)
        if current is not None and current.version == table.version:
            store.catalog.update_index(session, dataclasses.replace(index, filled=True))
            progress.forget(session, progress.INDEX_BACKFILL, index.id)
            store.catalog.update(session, current)
    store.catalog.cache.forget(table.id)

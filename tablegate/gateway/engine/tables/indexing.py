"""Indexes of all kinds: their update in the transaction of a write, and the background work that fills new ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tablegate.gateway.engine import batch_walk
from tablegate.gateway.engine.scheduler import Scheduler, Work
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import index_kinds
from tablegate.gateway.store.tables.index_kinds import RowPair


def update_indexes(session: Session, table: Table, pairs: Sequence[RowPair], counts: CountChanges) -> None:
    """Update the index entries of a table for (old row, new row) pairs, and add their numbers to `counts`."""
    if table.indexes:
        index_kinds.ORDERED.update(session, table.indexes, pairs, counts)
    for index in table.other_indexes:
        index_kinds.kind_of(index).update(session, [index], pairs, counts)


def add_works(background: Scheduler) -> None:
    """Register the works of this module."""
    background.add(Work(progress.INDEX_BACKFILL, lambda now_ms, limit: backfill(background.store, limit)))


def backfill(store: Store, limit: int) -> int | None:
    """Fill one batch, of at most `limit` rows, of one index. Return the number of processed rows, or None if no index
    waits.

    Writers maintain an index from its creation. Filling adds only older rows.
    """
    table = _table_to_fill(store)
    if table is None:
        return None
    index = next(index for index in table.all_indexes if not index.filled)
    with store.write() as session:
        if store.catalog.check(session, [table], lock=True)():
            return 0
        batch = batch_walk.next_batch(session, table, store.catalog.filled_up_to(session, index.id), limit)
        if batch is not None:
            index_kinds.kind_of(index).fill(session, index, batch.rows)
            store.catalog.save_progress(session, index.id, batch.mark, batch.length)
            return batch.length
    _finish(store, table, index)
    return 0


def _table_to_fill(store: Store) -> Table | None:
    """Return the first table with an index to fill, unless one of its indexes is of a kind that this server does not
    have."""
    condition = "id > ? AND id IN (SELECT table_id FROM indexes WHERE filled = 0) ORDER BY id LIMIT 1"
    last_id = 0
    with store.read() as session:
        while tables := store.catalog.all(session, condition, (last_id,)):
            if index_kinds.unknown_index(tables[0]) is None:
                return tables[0]
            last_id = tables[0].id
    return None


def _finish(store: Store, table: Table, index: BaseIndex) -> None:
    with store.write() as session:
        current = store.catalog.lock(session, table.id)
        if current is not None and current.version == table.version:
            store.catalog.update_index(session, dataclasses.replace(index, filled=True))
            progress.forget(session, progress.INDEX_BACKFILL, index.id)
            store.catalog.update(session, current)
    store.catalog.cache.forget(table.id)

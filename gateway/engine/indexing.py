"""Secondary indexes: an index is a function of the row, so an update is the difference of two entries.

Knows which entries go and come with a write, and how a new index is filled. `Index.entry` (model) decides what an entry is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from gateway.model.keys import SPREADS, Position
from gateway.model.rows import Row
from gateway.model.tables import Entry, Index, Table
from gateway.store import entries, rows
from gateway.store.databases import Session
from gateway.store.scans import Walk, rows_source
from gateway.store.store import Store

BACKFILL_ROWS = 256

Differences = tuple[list[tuple[int, Entry]], list[tuple[int, Entry]]]
"""(entries to remove, entries to add), each with its index id."""


def differences(table: Table, changed: Iterable[tuple[Row | None, Row | None]]) -> Differences:
    """What (old row, new row) pairs mean for the entries of a table. Unchanged entries appear on neither side."""
    removed: list[tuple[int, Entry]] = []
    added: list[tuple[int, Entry]] = []
    for old, new in changed:
        for index in table.indexes:
            before = None if old is None else index.entry(old)
            after = None if new is None else index.entry(new)
            if before is not None and (after is None or after.position != before.position):
                removed.append((index.id, before))
            if after is not None and (
                before is None or after.position != before.position or after.size_bytes != before.size_bytes
            ):
                added.append((index.id, after))
    return removed, added


def backfill(store: Store, now_ms: int) -> bool:
    """Fill one batch of one index that is not filled yet. Whether there may be more to do.

    Rows are locked as a writer locks them, so an entry is never made from a row that is changing. Writers keep the index
    up from the moment it exists; filling only adds what was there before.
    """
    with store.read() as session:
        waiting = store.catalog.all(session, "id IN (SELECT table_id FROM indexes WHERE filled = 0) ORDER BY id LIMIT 1")
    if not waiting:
        return False
    with store.write() as session:
        [table] = waiting
        if store.catalog.check(session, [table], lock=True):
            return True
        index = next(index for index in table.indexes if not index.filled)
        if _fill_batch(store, session, table, index):
            return True
    with store.write() as session:
        _finish(store, session, table, index)
    return True


def _fill_batch(store: Store, session: Session, table: Table, index: Index) -> bool:
    """Add entries for the next rows in primary key order; False when there are no more."""
    mark = store.catalog.filled_up_to(session, index.id)
    after = None if not mark else _unpack(mark)
    batch = []
    for found in Walk(session, rows_source(table.id), BACKFILL_ROWS).segment(0, SPREADS, after):
        batch.append(found.row.position)
        if len(batch) == BACKFILL_ROWS:
            break
    if not batch:
        return False
    keys = sorted((table.id, position) for position in batch)
    rows.claim(session, keys)
    present = rows.fetch_many(session, keys)
    entries.add_many(
        session, [(index.id, entry) for row in present.values() if (entry := index.entry(row)) is not None]
    )
    if session.is_postgresql:
        rows.remove_many(session, [key for key in keys if key not in present])
    store.catalog.save_progress(session, index.id, _pack(batch[-1]))
    return True


def _finish(store: Store, session: Session, table: Table, index: Index) -> None:
    current = store.catalog.lock(session, table.id)
    if current is None or current.version != table.version:
        return
    store.catalog.update_index(session, dataclasses.replace(index, filled=True))
    store.catalog.update(session, current)


def _pack(position: Position) -> bytes:
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


def _unpack(mark: bytes) -> Position:
    split = 4 + int.from_bytes(mark[:4], "big")
    return Position(mark[4:split], mark[split:])

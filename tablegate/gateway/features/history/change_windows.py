"""The changes of a table in a window of time: for each changed key its row before and after, gathered in batches.

The history is a log by time without an index by key. Gathering therefore has three phases:

- Walk the window backwards and collect the changed keys with their rows at its beginning.
- Look up the current rows of these keys.
- Undo in them the changes after the window, as a copy of a whole table does (restoring.py).

Three reserved tables hold the result. Memory stays bounded, and another server continues after a kill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.features.history import history_store
from tablegate.gateway.features.history.backup_store import CopyPhase, PendingCopy
from tablegate.gateway.features.history.history_store import HistoryPoint, Mark
from tablegate.gateway.model.commands.row_commands import RowKey
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

CHANGED, BEFORE, AFTER = "changed", "before", "after"
"""Names of the tables. `changed` has the keys, with the time of their last change in the window as modification time.
The others have the rows before and after."""
_LOOKED_UP_ROWS = 128  # in a batch, as their sizes are unknown


def beginning(until_at: int) -> Mark:
    """Return the start of the backward walk through a window that ends before a moment."""
    return until_at, 0, b"", b""


def advance(
    store: Store, session: Session, copy: PendingCopy, source: Table, changed_keys: Table, limit: int
) -> tuple[PendingCopy | None, int]:
    """Carry a gathering on by one batch. Return its new state (None if complete) and the number of processed rows."""
    assert copy.moment is not None
    before = store.catalog.find(session, changed_keys.namespace, BEFORE)
    after = store.catalog.find(session, changed_keys.namespace, AFTER)
    assert before is not None
    assert after is not None
    until_at = int(changed_keys.properties[CHANGED]["until"])
    if copy.phase is CopyPhase.LOOKING_UP:
        part = history_store.rows_after(session, changed_keys.id, copy.mark, min(limit, _LOOKED_UP_ROWS))
        _look_up(session, source, after, part.rows)
        next_phase = CopyPhase.UNDOING_LATER
    elif copy.phase is CopyPhase.GATHERING:
        part = history_store.changes_before(session, copy.moment, copy.mark or beginning(until_at), limit)
        _gather(session, changed_keys, part.changed_at)
        keep(session, before, part.rows)
        next_phase = CopyPhase.LOOKING_UP
    else:
        since = HistoryPoint(copy.moment.history_id, until_at - 1)
        part = history_store.changes_before(session, since, copy.mark or history_store.NEWEST, limit)
        keys = [(changed_keys.id, position) for position in sorted(part.rows)]
        keys_in_window = {position for _, position in rows.fetch_many(session, keys)}
        keep(
            session,
            after,
            {position: row for position, row in part.rows.items() if position in keys_in_window},
        )
        if part.mark is None:
            return None, part.length
        next_phase = CopyPhase.UNDOING_LATER
    if part.mark is not None:
        return copy._replace(mark=part.mark), part.length
    return copy._replace(phase=next_phase, mark=None), part.length


def _gather(session: Session, changed_keys: Table, changed_at: Mapping[Position, int]) -> None:
    """Note keys that are not noted yet. Walking backwards, the first change found of a key is its last."""
    keys = [(changed_keys.id, position) for position in sorted(changed_at)]
    rows.claim(session, keys)
    existing_keys = rows.fetch_many(session, keys)
    new_keys = [
        (key[0], Row(key[1], Contents(b"{}", None, 0), changed_at[key[1]]))
        for key in keys
        if key not in existing_keys
    ]
    rows.save_many(session, new_keys)
    _update_indexes_and_counts(session, changed_keys, [(None, row) for _, row in new_keys])


def _update_indexes_and_counts(
    session: Session, table: Table, pairs: Sequence[tuple[Row | None, Row | None]]
) -> None:
    """Update the index entries and counts of a table without other writers, for (old row, new row) pairs."""
    counts = CountChanges()
    for old, new in pairs:
        counts.add(table.id, old, new)
    indexing.update_indexes(session, table, pairs, counts)
    counts.save(session, b"")


def _look_up(session: Session, source: Table, after: Table, positions: Mapping[Position, Row | None]) -> None:
    current_rows = rows.fetch_many(session, [(source.id, position) for position in sorted(positions)])
    keep(session, after, {position: current_rows.get((source.id, position)) for position in positions})


def keep(
    session: Session, target: Table, new_rows: Mapping[Position, Row | None], is_new: bool = False
) -> None:
    """Store rows in a table without other writers. None deletes a row. With `is_new`, no row exists yet."""
    keys = sorted((target.id, position) for position in new_rows)
    rows_to_save = [(key[0], row) for key in keys if (row := new_rows[key[1]]) is not None]
    for _, row in rows_to_save:
        row.expires_at_ms = target.expires_at_ms(row)
    before: Mapping[RowKey, Row] = {}
    if is_new:
        rows.load(session, rows_to_save)
    else:
        rows.claim(session, keys)
        before = rows.fetch_many(session, keys)
        rows.save_many(session, rows_to_save)
        removed_keys = [key for key in keys if new_rows[key[1]] is None]
        rows.remove_many(
            session,
            [key for key in removed_keys if key in before],
            [key for key in removed_keys if key not in before],
        )
    _update_indexes_and_counts(session, target, [(before.get(key), new_rows[key[1]]) for key in keys])

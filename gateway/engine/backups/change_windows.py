"""What changed in a table in a window of time: for each key what it had before and what it has after, batch by batch.

The history is a log by time, without an index by key. So the keys that changed are gathered first, from the end of the window
back to its beginning, with what each had at the beginning; then what each has now; and in that everything is undone that
happened since the window, as a copy of a whole table does (restoring.py). Three tables that nobody reaches hold it: memory is
bounded, and after a kill the next server goes on where this one was.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.gateway.engine.tables import indexing
from tablegate.gateway.model.commands.write_groups import RowKey
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import history
from tablegate.gateway.store.tables.copies import CopyPhase, PendingCopy
from tablegate.gateway.store.tables.history import HistoryPoint, Mark

CHANGED, BEFORE, AFTER = "changed", "before", "after"
"""The tables: keys, with the time of the last change in the window as that of their rows; what these had, what they have."""
_LOOKED_UP_ROWS = 128  # at a time: how large they are is not known before


def beginning(until: int) -> Mark:
    """Where the walk back through a window begins that ends before a moment."""
    return until, 0, b"", b""


def advance(
    store: Store, session: Session, copy: PendingCopy, source: Table, changed: Table, limit: int
) -> tuple[PendingCopy | None, int]:
    """Carry one batch on; the copy as it is afterwards (None: everything is there), and how many rows it went over."""
    assert copy.moment is not None
    before = store.catalog.find(session, changed.namespace, BEFORE)
    after = store.catalog.find(session, changed.namespace, AFTER)
    assert before is not None
    assert after is not None
    until = int(changed.properties[CHANGED]["until"])
    if copy.phase is CopyPhase.LOOKING_UP:
        part = history.rows_after(session, changed.id, copy.mark, min(limit, _LOOKED_UP_ROWS))
        _look_up(session, source, after, part.rows)
        following = CopyPhase.UNDOING_LATER
    elif copy.phase is CopyPhase.GATHERING:
        part = history.changes_before(session, copy.moment, copy.mark or beginning(until), limit)
        _gather(session, changed, part.changed_at)
        keep(session, before, part.rows)
        following = CopyPhase.LOOKING_UP
    else:
        since = HistoryPoint(copy.moment.history_id, until - 1)
        part = history.changes_before(session, since, copy.mark or history.NEWEST, limit)
        keys = [(changed.id, position) for position in sorted(part.rows)]
        known = {position for _, position in rows.fetch_many(session, keys)}
        keep(session, after, {position: row for position, row in part.rows.items() if position in known})
        if part.mark is None:
            return None, part.length
        following = CopyPhase.UNDOING_LATER
    if part.mark is not None:
        return copy._replace(mark=part.mark), part.length
    return copy._replace(phase=following, mark=None), part.length


def _gather(session: Session, changed: Table, changed_at: Mapping[Position, int]) -> None:
    """Note keys that are not yet noted: who goes back in time meets the last change of a key first."""
    keys = [(changed.id, position) for position in sorted(changed_at)]
    rows.claim(session, keys)
    known = rows.fetch_many(session, keys)
    noted = [
        (key[0], Row(key[1], Contents(b"{}", None, 0), changed_at[key[1]]))
        for key in keys
        if key not in known
    ]
    rows.save_many(session, noted)


def _look_up(session: Session, source: Table, after: Table, positions: Mapping[Position, Row | None]) -> None:
    found = rows.fetch_many(session, [(source.id, position) for position in sorted(positions)])
    keep(session, after, {position: found.get((source.id, position)) for position in positions})


def keep(session: Session, target: Table, found: Mapping[Position, Row | None], is_new: bool = False) -> None:
    """Store rows in a table that nobody writes to: over what is there (None: there is to be none), or, where they are new, beside
    it."""
    keys = sorted((target.id, position) for position in found)
    left = [(key[0], row) for key in keys if (row := found[key[1]]) is not None]
    for _, row in left:
        row.expires_at_ms = target.expires_at_ms(row)
    before: Mapping[RowKey, Row] = {}
    if is_new:
        rows.load(session, left)
    else:
        rows.claim(session, keys)
        before = rows.fetch_many(session, keys)
        rows.save_many(session, left)
        gone = [key for key in keys if found[key[1]] is None]
        rows.remove_many(
            session, [key for key in gone if key in before], [key for key in gone if key not in before]
        )
    if target.indexes or target.vector_indexes:
        indexing.keep_up(session, target, [(before.get(key), found[key[1]]) for key in keys])

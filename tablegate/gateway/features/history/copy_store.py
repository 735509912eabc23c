"""SQL for tables that are being filled with copies of others."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from tablegate.gateway.features.history.history_store import HistoryPoint, Mark
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session

COPY = "copy"
"""The name of the work that fills tables, in progress.py and in /metrics."""
progress.WAITING[COPY] = f"SELECT '{COPY}', target_id, 'table', source_id FROM copies"
_COLUMNS = "target_id, source_id, history_id, at, phase, mark"


class CopyPhase(IntEnum):
    """The current phase of a copy.

    The copy of a whole table copies all rows, then undoes the changes since its point in time. The copy of a window of
    changes gathers the changed keys and their values before the window, looks up their current values, and then undoes
    in those the changes since the window.
    """

    COPYING = 0
    UNDOING = 1
    GATHERING = 2
    LOOKING_UP = 3
    UNDOING_LATER = 4


class PendingCopy(NamedTuple):
    """An unfinished copy. `moment`: the point in time to copy, or None for the current rows."""

    target_id: int
    source_id: int
    moment: HistoryPoint | None
    phase: CopyPhase = CopyPhase.COPYING
    mark: Mark | None = None


def add(session: Session, copy: PendingCopy) -> None:
    """Insert a copy to be carried out."""
    history_id, at = copy.moment or (None, None)
    session.execute(
        f"INSERT INTO copies ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (copy.target_id, copy.source_id, history_id, at, copy.phase.value, _pack(copy.mark)),
    )


def waiting(session: Session) -> list[tuple[int, str | None, str | None]]:
    """Return the unfinished copies: the target's id, and the namespaces of target and source."""
    return session.query(
        "SELECT copies.target_id, t.namespace, s.namespace FROM copies"
        " LEFT JOIN tables t ON t.id = copies.target_id LEFT JOIN tables s ON s.id = copies.source_id"
    )


def by_target(session: Session, target_id: int) -> PendingCopy | None:
    """Return the copy with this target, or None if it is finished or was cancelled."""
    rows = session.query(f"SELECT {_COLUMNS} FROM copies WHERE target_id = ?", (target_id,))
    return _copy(*rows[0]) if rows else None


def sources(session: Session) -> dict[int, int]:
    """Return the source table of each table that is being filled."""
    return dict(session.query("SELECT target_id, source_id FROM copies"))


def lock(session: Session, target_id: int) -> PendingCopy | None:
    """Return a copy, locked until the transaction ends. None if it is finished or was cancelled."""
    session.statements.lock_rows(session, "copies", "target_id", [target_id])
    return by_target(session, target_id)


def is_source(session: Session, source_id: int) -> bool:
    """Return True if an unfinished copy reads this table."""
    return bool(session.query("SELECT 1 FROM copies WHERE source_id = ? LIMIT 1", (source_id,)))


def save_progress(session: Session, copy: PendingCopy, number: int) -> None:
    """Save the progress of a copy, and add `number` to the rows done."""
    session.execute(
        "UPDATE copies SET phase = ?, mark = ? WHERE target_id = ?",
        (copy.phase.value, _pack(copy.mark), copy.target_id),
    )
    progress.advance(session, COPY, copy.target_id, number)


def remove(session: Session, target_id: int) -> None:
    """Delete a copy that is finished or cancelled."""
    session.execute("DELETE FROM copies WHERE target_id = ?", (target_id,))
    progress.forget(session, COPY, target_id)


def _copy(
    target_id: int, source_id: int, history_id: int | None, at: int | None, phase: int, mark: bytes | None
) -> PendingCopy:
    moment = None if history_id is None or at is None else HistoryPoint(history_id, at)
    return PendingCopy(target_id, source_id, moment, CopyPhase(phase), _unpack(mark))


def _pack(mark: Mark | None) -> bytes | None:
    if mark is None:
        return None
    at, slot, partition, sort = mark
    return _HEAD.pack(at, slot, len(partition)) + partition + sort


def _unpack(mark: bytes | None) -> Mark | None:
    if mark is None:
        return None
    at, slot, length = _HEAD.unpack_from(mark)
    split = _HEAD.size + length
    return at, slot, mark[_HEAD.size : split], mark[split:]


_HEAD = struct.Struct(">QHI")

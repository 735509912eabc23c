"""Tables that are being filled with what others were, as SQL."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.tables.history import HistoryPoint, Mark

_COLUMNS = "target_id, source_id, history_id, at, phase, mark"


class CopyPhase(IntEnum):
    """What is being done. Of a copy of a whole table: all rows are copied, then what changed since the moment is undone. Of what
    changed in a window of time: keys and what they had before are gathered, then what they have now, and what changed since the
    window is undone in that."""

    COPYING = 0
    UNDOING = 1
    GATHERING = 2
    LOOKING_UP = 3
    UNDOING_LATER = 4


class PendingCopy(NamedTuple):
    """A copy that is not done. `moment`: of which the target will be the source's rows; None: those that it has."""

    target_id: int
    source_id: int
    moment: HistoryPoint | None
    phase: CopyPhase = CopyPhase.COPYING
    mark: Mark | None = None


def add(session: Session, copy: PendingCopy) -> None:
    """Ask for a table to be filled."""
    history_id, at = copy.moment or (None, None)
    session.execute(
        f"INSERT INTO copies ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (copy.target_id, copy.source_id, history_id, at, copy.phase.value, _packed(copy.mark)),
    )


def waiting(session: Session) -> list[tuple[int, str | None, str | None]]:
    """The copies that wait or are under way: the target's id, the namespaces of target and source."""
    return session.query(
        "SELECT copies.target_id, t.namespace, s.namespace FROM copies"
        " LEFT JOIN tables t ON t.id = copies.target_id LEFT JOIN tables s ON s.id = copies.source_id"
    )


def by_target(session: Session, target_id: int) -> PendingCopy | None:
    """A copy; None: it is done, or was given up."""
    found = session.query(f"SELECT {_COLUMNS} FROM copies WHERE target_id = ?", (target_id,))
    return _copy(*found[0]) if found else None


def sources(session: Session) -> dict[int, int]:
    """The tables that are being filled, each with the table whose rows it gets."""
    return dict(session.query("SELECT target_id, source_id FROM copies"))


def lock(session: Session, target_id: int) -> PendingCopy | None:
    """A copy as it is now, which nobody else moves on until the transaction ends; None: it is done, or was given up."""
    session.statements.lock_rows(session, "copies", "target_id", [target_id])
    return by_target(session, target_id)


def are_made_of(session: Session, source_id: int) -> bool:
    """Whether some copy reads this table."""
    return bool(session.query("SELECT 1 FROM copies WHERE source_id = ? LIMIT 1", (source_id,)))


def save_progress(session: Session, copy: PendingCopy, number: int) -> None:
    """Remember how far a copy has come, by so many rows more."""
    session.execute(
        "UPDATE copies SET phase = ?, mark = ? WHERE target_id = ?",
        (copy.phase.value, _packed(copy.mark), copy.target_id),
    )
    progress.advance(session, progress.COPY, copy.target_id, number)


def remove(session: Session, target_id: int) -> None:
    """Take a copy off the list: it is done, or given up."""
    session.execute("DELETE FROM copies WHERE target_id = ?", (target_id,))
    progress.forget(session, progress.COPY, target_id)


def _copy(
    target_id: int, source_id: int, history_id: int | None, at: int | None, phase: int, mark: bytes | None
) -> PendingCopy:
    moment = None if history_id is None or at is None else HistoryPoint(history_id, at)
    return PendingCopy(target_id, source_id, moment, CopyPhase(phase), _unpacked(mark))


def _packed(mark: Mark | None) -> bytes | None:
    if mark is None:
        return None
    at, slot, partition, sort = mark
    return _HEAD.pack(at, slot, len(partition)) + partition + sort


def _unpacked(mark: bytes | None) -> Mark | None:
    if mark is None:
        return None
    at, slot, length = _HEAD.unpack_from(mark)
    split = _HEAD.size + length
    return at, slot, mark[_HEAD.size : split], mark[split:]


_HEAD = struct.Struct(">QBI")

"""SQL for backups, and for tables that are being filled with copies of others."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from tablegate.gateway.features.history.backup_commands import Backup, BackupKind, ListBackups
from tablegate.gateway.features.history.history_store import HistoryPoint, Mark
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session

_BACKUP_COLUMNS = (
    "id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms,"
    " expires_at_ms"
)
TableReader = Callable[[str], Table]
"""Returns the table of a definition (Catalog.defined)."""


def add_backup(session: Session, backup: Backup, definition: str) -> None:
    """Insert a new backup."""
    session.execute(
        f"INSERT INTO backups ({_BACKUP_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            backup.id,
            backup.namespace,
            backup.table_name,
            backup.name,
            backup.kind.value,
            backup.copy_id,
            definition,
            backup.rows,
            backup.size_bytes,
            int(backup.ready),
            backup.created_at_ms,
            backup.expires_at_ms,
        ),
    )


def page_of_backups(session: Session, read_table: TableReader, command: ListBackups) -> list[Backup]:
    """Return the backups that a ListBackups command selects, in the order of its cursor."""
    conditions = ["namespace = ?", "(table_name, created_at_ms, id) > (?, ?, ?)"]
    parameters: list[Any] = [command.namespace, *command.after]
    for condition, value in (
        ("table_name = ?", command.table_name),
        ("kind = ?", command.kind and command.kind.value),
        ("created_at_ms >= ?", command.from_ms),
        ("created_at_ms < ?", command.before_ms),
    ):
        if value is not None:
            conditions.append(condition)
            parameters.append(value)
    where = f"{' AND '.join(conditions)} ORDER BY table_name, created_at_ms, id LIMIT ?"
    return _select(session, read_table, where, (*parameters, command.limit))


def backup_bytes_by_namespace(session: Session) -> dict[str, int]:
    """Return the bytes of the backups by namespace, as counted when they were made."""
    rows = session.query("SELECT namespace, sum(size_bytes) FROM backups GROUP BY namespace")
    return {namespace: int(size) for namespace, size in rows}


def backup_by_id(
    session: Session, read_table: TableReader, backup_id: int, lock: bool = False
) -> Backup | None:
    """Return the backup with this id, or None. With `lock`, it is locked until the transaction ends."""
    if lock:
        session.statements.lock_rows(session, "backups", "id", [backup_id])
    backups = _select(session, read_table, "id = ?", (backup_id,))
    return backups[0] if backups else None


def backup_of_copy(session: Session, read_table: TableReader, copy_id: int) -> Backup | None:
    """Return the backup that has its rows in this table, or None."""
    backups = _select(session, read_table, "copy_id = ?", (copy_id,))
    return backups[0] if backups else None


def expired_backups(session: Session, read_table: TableReader, now_ms: int) -> list[Backup]:
    """Return a batch of expired backups."""
    return _select(
        session, read_table, "expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?", (now_ms, _EXPIRED)
    )


_EXPIRED = 20


def backups_of_namespace(session: Session, read_table: TableReader, namespace: str | None) -> list[Backup]:
    """Return the backups of a namespace, or of all if None."""
    where, parameters = ("1 = 1", ()) if namespace is None else ("namespace = ?", (namespace,))
    return _select(session, read_table, f"{where} ORDER BY copy_id", parameters)


def set_backup_ready(session: Session, copy_id: int) -> None:
    """Mark the backup in this table as complete."""
    session.execute("UPDATE backups SET ready = 1 WHERE copy_id = ?", (copy_id,))


def remove_backup(session: Session, copy_id: int) -> None:
    """Delete a backup. The caller deletes its rows."""
    session.send("DELETE FROM backups WHERE copy_id = ?", (copy_id,))


def _select(
    session: Session, read_table: TableReader, where: str, parameters: tuple[Any, ...]
) -> list[Backup]:
    rows = session.query(f"SELECT {_BACKUP_COLUMNS} FROM backups WHERE {where}", parameters)
    return [_backup(read_table, *columns) for columns in rows]


def _backup(read_table: TableReader, *columns: Any) -> Backup:
    backup_id, namespace, table_name, name, kind, copy_id, definition, *counts_and_times = columns
    rows, size_bytes, ready, *times = counts_and_times
    head = (backup_id, namespace, table_name, name, BackupKind(kind), copy_id, read_table(definition))
    return Backup(*head, rows, size_bytes, bool(ready), *times)


COPY = "copy"
"""The name of the work that fills tables, in progress.py and in /metrics."""
progress.WAITING[COPY] = f"SELECT '{COPY}', target_id, 'table', source_id FROM copies"
_COPY_COLUMNS = "target_id, source_id, history_id, at, phase, mark"


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


def add_copy(session: Session, copy: PendingCopy) -> None:
    """Insert a copy to be carried out."""
    history_id, at = copy.moment or (None, None)
    session.execute(
        f"INSERT INTO copies ({_COPY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (copy.target_id, copy.source_id, history_id, at, copy.phase.value, _pack(copy.mark)),
    )


def waiting_copies(session: Session) -> list[tuple[int, str | None, str | None]]:
    """Return the unfinished copies: the target's id, and the namespaces of target and source."""
    return session.query(
        "SELECT copies.target_id, t.namespace, s.namespace FROM copies"
        " LEFT JOIN tables t ON t.id = copies.target_id LEFT JOIN tables s ON s.id = copies.source_id"
    )


def copy_to(session: Session, target_id: int) -> PendingCopy | None:
    """Return the copy with this target, or None if it is finished or was cancelled."""
    rows = session.query(f"SELECT {_COPY_COLUMNS} FROM copies WHERE target_id = ?", (target_id,))
    return _copy(*rows[0]) if rows else None


def sources_of_copies(session: Session) -> dict[int, int]:
    """Return the source table of each table that is being filled."""
    return dict(session.query("SELECT target_id, source_id FROM copies"))


def lock_copy(session: Session, target_id: int) -> PendingCopy | None:
    """Return a copy, locked until the transaction ends. None if it is finished or was cancelled."""
    session.statements.lock_rows(session, "copies", "target_id", [target_id])
    return copy_to(session, target_id)


def is_source(session: Session, source_id: int) -> bool:
    """Return True if an unfinished copy reads this table."""
    return bool(session.query("SELECT 1 FROM copies WHERE source_id = ? LIMIT 1", (source_id,)))


def save_copy_progress(session: Session, copy: PendingCopy, number: int) -> None:
    """Save the progress of a copy, and add `number` to the rows done."""
    session.execute(
        "UPDATE copies SET phase = ?, mark = ? WHERE target_id = ?",
        (copy.phase.value, _pack(copy.mark), copy.target_id),
    )
    progress.advance(session, COPY, copy.target_id, number)


def remove_copy(session: Session, target_id: int) -> None:
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

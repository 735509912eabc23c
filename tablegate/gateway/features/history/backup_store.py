"""SQL for backups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tablegate.gateway.features.history.backup_commands import Backup, BackupKind, ListBackups
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session

_COLUMNS = (
    "id, namespace, table_name, name, kind, copy_id, definition, rows, size_bytes, ready, created_at_ms,"
    " expires_at_ms"
)
TableReader = Callable[[str], Table]
"""Returns the table of a definition (Catalog.defined)."""


def add(session: Session, backup: Backup, definition: str) -> None:
    """Insert a new backup."""
    session.execute(
        f"INSERT INTO backups ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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


def page(session: Session, read_table: TableReader, command: ListBackups) -> list[Backup]:
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


def bytes_by_namespace(session: Session) -> dict[str, int]:
    """Return the bytes of the backups by namespace, as counted when they were made."""
    rows = session.query("SELECT namespace, sum(size_bytes) FROM backups GROUP BY namespace")
    return {namespace: int(size) for namespace, size in rows}


def by_id(session: Session, read_table: TableReader, backup_id: int, lock: bool = False) -> Backup | None:
    """Return the backup with this id, or None. With `lock`, it is locked until the transaction ends."""
    if lock:
        session.statements.lock_rows(session, "backups", "id", [backup_id])
    backups = _select(session, read_table, "id = ?", (backup_id,))
    return backups[0] if backups else None


def of_copy(session: Session, read_table: TableReader, copy_id: int) -> Backup | None:
    """Return the backup that has its rows in this table, or None."""
    backups = _select(session, read_table, "copy_id = ?", (copy_id,))
    return backups[0] if backups else None


def expired(session: Session, read_table: TableReader, now_ms: int) -> list[Backup]:
    """Return a batch of expired backups."""
    return _select(
        session, read_table, "expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?", (now_ms, _EXPIRED)
    )


_EXPIRED = 20


def of_namespace(session: Session, read_table: TableReader, namespace: str | None) -> list[Backup]:
    """Return the backups of a namespace, or of all if None."""
    where, parameters = ("1 = 1", ()) if namespace is None else ("namespace = ?", (namespace,))
    return _select(session, read_table, f"{where} ORDER BY copy_id", parameters)


def set_ready(session: Session, copy_id: int) -> None:
    """Mark the backup in this table as complete."""
    session.execute("UPDATE backups SET ready = 1 WHERE copy_id = ?", (copy_id,))


def remove(session: Session, copy_id: int) -> None:
    """Delete a backup. The caller deletes its rows."""
    session.send("DELETE FROM backups WHERE copy_id = ?", (copy_id,))


def _select(
    session: Session, read_table: TableReader, where: str, parameters: tuple[Any, ...]
) -> list[Backup]:
    rows = session.query(f"SELECT {_COLUMNS} FROM backups WHERE {where}", parameters)
    return [_backup(read_table, *columns) for columns in rows]


def _backup(read_table: TableReader, *columns: Any) -> Backup:
    backup_id, namespace, table_name, name, kind, copy_id, definition, *counts_and_times = columns
    rows, size_bytes, ready, *times = counts_and_times
    head = (backup_id, namespace, table_name, name, BackupKind(kind), copy_id, read_table(definition))
    return Backup(*head, rows, size_bytes, bool(ready), *times)

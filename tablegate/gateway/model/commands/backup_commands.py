"""Commands for backups, point-in-time recovery and restores."""

from __future__ import annotations

from dataclasses import dataclass

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.tables.backups import Backup, BackupKind
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class KeepHistory(BaseCommand[Table]):
    """Retain the history of a table for `days`, for RestoreTable. None: stop. Outcome: Table. Error: TableMissing."""

    table: Table
    days: int | None


@dataclass(frozen=True, slots=True)
class RestoreTable(BaseCommand[Table]):
    """Create a table with the rows of a backup, or of another table at a time (`at`, in ticks, None: now).

    The new table is CREATING until background work has copied the rows. `size_bytes`: their approximate size, if known.
    Outcome: Table. Errors: TableExists, TableBusy, TableMissing, TimeNotRetained, BackupMissing, BackupBusy,
    QuotaExceeded.
    """

    definition: CreateTable
    source: Table | Backup
    at: int | None = None
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CreateBackup(BaseCommand[Backup]):
    """Create a backup of the current state of a table. Outcome: Backup. Error: TableMissing.

    Background work copies the rows. `size_bytes`: their approximate size, if known.
    """

    table: Table
    name: str
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ListBackups(BaseCommand[list[Backup]]):
    """List backups of a namespace by table, age and id, after a Backup.place, at most `limit`. Outcome: list of Backup.

    The other members filter, if given: by table, by kind, by time of creation.
    """

    namespace: str
    after: tuple[str, int, int] = ("", 0, 0)
    limit: int = 1_000
    table_name: str | None = None
    kind: BackupKind | None = None
    from_ms: int | None = None
    before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteBackup(BaseCommand[Backup]):
    """Delete a backup. Outcome: the Backup. Errors: BackupMissing, BackupBusy."""

    backup: Backup


BackupCommand = KeepHistory | RestoreTable | CreateBackup | ListBackups | DeleteBackup

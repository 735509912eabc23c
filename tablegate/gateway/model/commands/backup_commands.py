"""Commands for backups, point-in-time recovery and restores."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any

from tablegate.gateway.model.authorization.accesses import Access, Path, any_rows, on_table
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.authorization.quotas import Cost, TableLimit
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.tables.backups import Backup, BackupKind
from tablegate.gateway.model.tables.tables import Table

_COPIED = (
    (Permission.READ, Channel.SINGLE), (Permission.QUERY, Channel.SINGLE), (Permission.SCAN, Channel.SINGLE),
    (Permission.PUT, Channel.SINGLE), (Permission.UPDATE, Channel.SINGLE), (Permission.DELETE, Channel.SINGLE),
    (Permission.PUT, Channel.BATCH),
)  # fmt: skip


def backup_path(backup: Backup) -> Path:
    """Return the path of a backup below its table, as in its ARN: creation time and id (0 for a system backup)."""
    number = 0 if backup.kind is BackupKind.SYSTEM else backup.id & 0xFFFF_FFFF
    return f"{backup.table_name}/backup/{backup.created_at_ms:014}-{number:08x}"


@dataclass(frozen=True, slots=True)
class KeepHistory(ControlCommand[Table]):
    """Retain the history of a table for `days`, for RestoreTable. None: stop. Outcome: Table. Error: TableMissing."""

    table: Table
    days: int | None

    permission = Permission.ALTER_RECOVERY


@dataclass(frozen=True, slots=True)
class RestoreTable(Command[Table]):
    """Create a table with the rows of a backup, or of another table at a time (`at`, in ticks, None: now).

    The new table is CREATING until background work has copied the rows. `size_bytes`: their approximate size, if known.
    Outcome: Table. Errors: TableExists, TableBusy, TableMissing, TimeNotRetained, BackupMissing, BackupBusy,
    QuotaExceeded.
    """

    definition: CreateTable
    source: Table | Backup
    at: int | None = None
    size_bytes: int = 0

    rate = None

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the accesses to the source, the new table, and all row operations on it (service authorization
        reference).

        The new table exposes the rows of the source, so the permission to scan the original table is needed too.
        """
        definition, source = self.definition, self.source
        if isinstance(source, Table):
            name, restore_permission = source.name, Permission.RESTORE_MOMENT
            yield on_table(self, source, restore_permission, purpose)
        else:
            name, restore_permission = source.table_name, Permission.RESTORE_BACKUP
            yield Access(restore_permission, purpose.channel, source.namespace, backup_path(source), self)
        yield Access(Permission.SCAN, Channel.SINGLE, source.namespace, name, self)
        for permission, channel in ((restore_permission, purpose.channel), *_COPIED):
            yield Access(permission, channel, definition.namespace, definition.name, self)

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)

    @property
    def copied_table(self) -> Table | None:
        return self.source if isinstance(self.source, Table) else None

    def min_added_bytes(self) -> int:
        return max(1, self._size_bytes)

    def cost(self, outcome: Table) -> Cost:
        return Cost(added_bytes=self._size_bytes)

    @property
    def _size_bytes(self) -> int:
        return self.source.size_bytes if isinstance(self.source, Backup) else self.size_bytes

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> RestoreTable:
        return replace(self, definition=self.definition.with_bounds(bounds))


@dataclass(frozen=True, slots=True)
class CreateBackup(Command[Backup]):
    """Create a backup of the current state of a table. Outcome: Backup. Error: TableMissing.

    Background work copies the rows. `size_bytes`: their approximate size, if known.
    """

    table: Table
    name: str
    size_bytes: int = 0

    permission = Permission.CREATE_BACKUP
    rate = None

    @property
    def copied_table(self) -> Table:
        return self.table

    def min_added_bytes(self) -> int:
        return max(1, self.size_bytes)

    def cost(self, outcome: Backup) -> Cost:
        return Cost(added_bytes=self.size_bytes)


@dataclass(frozen=True, slots=True)
class ListBackups(AccountRead[list[Backup]]):
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

    permission = Permission.LIST_BACKUPS
    is_look_up = True

    def found_paths(
        self, outcome: Any, purpose: Purpose, named: Container[tuple[str, str]]
    ) -> Iterable[Path]:
        """Return the backups of a list that was read to find one of them."""
        if Permission.LIST_BACKUPS in purpose.permissions or not isinstance(outcome, list):
            return []
        name = self.table_name or ""
        if not outcome and (self.namespace, name) not in named:
            return [f"{name}/backup/"]
        return [backup_path(backup) for backup in outcome]


@dataclass(frozen=True, slots=True)
class DeleteBackup(ControlCommand[Backup]):
    """Delete a backup. Outcome: the Backup. Errors: BackupMissing, BackupBusy."""

    backup: Backup

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        backup = self.backup
        yield Access(Permission.DELETE_BACKUP, purpose.channel, backup.namespace, backup_path(backup), self)

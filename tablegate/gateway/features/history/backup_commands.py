"""Backups, and the commands for backups, point-in-time recovery, restores, and copies of whole namespaces."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.accesses import Access, Path, any_rows, on_table
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.authorization.quotas import Cost, TableLimit
from tablegate.gateway.model.commands.command import AccountRead, Command, ControlCommand
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row

RECOVERY_DAYS = 35
"""Maximum retention of a history, and the lifetime of a system backup, in days.

Sources: botocore 1.44.5, RecoveryPeriodInDays, and DynamoDB developer guide, "Point-in-time recovery".
"""


class BackupKind(Enum):
    """The origin of a backup.

    USER: a client requested it. SYSTEM: the gateway created it when a table with point-in-time recovery was dropped.
    """

    USER = "user"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup.

    - `source`: the descriptor of the table at that time.
    - `copy_id`: the id of the internal table with the rows.
    - `rows`, `size_bytes`: counted when the backup was requested.
    - `ready`: all rows have been copied.
    - `expires_at_ms`: None means never.
    """

    id: int
    namespace: str
    table_name: str
    name: str
    kind: BackupKind
    copy_id: int
    source: Table
    rows: int
    size_bytes: int
    ready: bool
    created_at_ms: int
    expires_at_ms: int | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """The sort key of lists: by table, and by age."""
        return self.table_name, self.created_at_ms, self.id

    @property
    def label(self) -> str:
        """Its id for operators, which sorts by age."""
        return f"{self.created_at_ms:014}-{self.id:08x}"


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
    """Retain the history of a table for `days`, for RestoreTable. None ends it. Outcome: Table. Error: TableMissing."""

    table: Table
    days: int | None

    permission = Permission.ALTER_RECOVERY


@dataclass(frozen=True, slots=True)
class RestoreTable(Command[Table]):
    """Create a table with the rows of a backup, or of another table at a time (`at`, in ticks, or None for now).

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


@dataclass(frozen=True, slots=True)
class ResetTables(ControlCommand[int]):
    """Drop tables, or empty them, atomically. Outcome: number of tables. Error: TableMissing if one of `names` does not
    exist.

    - `namespace`: None for all namespaces.
    - `names`: None for all tables. Then backups and jobs are dropped with the tables.
    - `keeps_definitions`: the tables become empty, and their definitions stay.
    """

    namespace: str | None = None
    names: frozenset[str] | None = None
    keeps_definitions: bool = False

    permission = Permission.ADMINISTER


class DocumentChange(NamedTuple):
    """A change of a document (PutProperties) in the transaction of another command.

    `apply` is called with the document, empty if it does not exist, and the outcome of the command. It returns the new
    document. An exception rolls back the transaction.
    """

    namespace: str
    name: str
    apply: Callable[[dict[str, Any], int], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CopyTables(ControlCommand[int]):
    """Replace the tables of namespaces by copies of the tables of others, with their rows, in one snapshot.

    `copies`: (source, target), each target once. `empties`: prefix of further namespaces to empty. Outcome: number of
    tables. Error: TableBusy while an index of a source is being filled.
    """

    copies: tuple[tuple[str, str], ...]
    empties: str = ""
    records: DocumentChange | None = None

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class DescribeTables(ControlCommand[list[tuple[Table, dict[str, Any]]]]):
    """Describe the tables of a namespace. Outcome: each Table with its document for `ImportDefinition`, by id."""

    namespace: str

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ImportDefinition(ControlCommand[Table]):
    """Create an empty table from a document, in a namespace of copies. Outcome: Table.

    No other command writes to such a namespace. Errors: TableExists, InvalidInput `document`.
    """

    namespace: str
    document: Mapping[str, Any]

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ImportRows(ControlCommand[None]):
    """Put unchanged rows into an empty table that ImportDefinition has created. Outcome: None. Error: InvalidInput
    `rows`."""

    table: Table
    rows: Sequence[Row]

    permission = Permission.ADMINISTER


@dataclass(frozen=True, slots=True)
class ListNamespaces(ControlCommand[list[str]]):
    """List the namespaces that have tables and begin with `prefix`. Outcome: sorted names."""

    prefix: str = ""

    permission = Permission.ADMINISTER

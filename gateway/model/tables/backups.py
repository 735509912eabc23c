"""Backups of tables: what one is, and where one stands among others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tablegate.gateway.model.tables.tables import Table

RECOVERY_DAYS = 35
"""Longest time a history is kept, and the lifetime of the backup of a dropped table that had one (botocore 1.44.5,
RecoveryPeriodInDays; DynamoDB developer guide, "Point-in-time recovery")."""


class BackupKind(Enum):
    """Who made a backup: somebody who asked for it, or the gateway when it dropped a table that could be gone back in."""

    USER = "user"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup. `source`: the table as it was then; `copy_id`: of the table that has its rows, which nobody can name, or that had
    them before they went into a file; `ready`: whether all of them are there; `expires_at_ms`: None means never. Counts are of
    the moment when it was asked for."""

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
        """Where it stands in lists: by table, and by age."""
        return self.table_name, self.created_at_ms, self.id

    @property
    def file_stem(self) -> str:
        """How the names of its files begin, up to a point."""
        return f"{self.created_at_ms:014}-{self.id:08x}"


class BackupFile(NamedTuple):
    """The file that has the rows of a backup: its name in the directory of backups, its length, and the CRC-64/XZ of all its
    bytes in hexadecimal."""

    name: str
    size_bytes: int
    crc64: str

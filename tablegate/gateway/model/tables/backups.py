"""Backups of tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tablegate.gateway.model.tables.tables import Table

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

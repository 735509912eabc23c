"""Damaged data that this server has read. It is logged, and the server is not ready until it is restarted."""

from __future__ import annotations

import logging
from pathlib import Path

from tablegate.gateway.model.errors import DataCorrupted
from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, digest_of
from tablegate.gateway.store.sql.databases import Session

log = logging.getLogger(__name__)

_MAX_LOGGED = 1_000


class DamageLog:
    """The damage found so far. `folder`: a folder that the processes of a server share, or None for a single process."""

    def __init__(self, folder: str | None = None) -> None:
        self._marker = Path(folder, "damage") if folder else None
        self._logged: set[tuple[bytes, bytes] | None] = set()
        self._first_damage = ""

    @property
    def first_damage(self) -> str:
        """The first damage that a process of this server found, or ""."""
        if not self._first_damage and self._marker is not None and self._marker.exists():
            self._first_damage = self._marker.read_text()
        return self._first_damage

    def note(self, error: DataCorrupted, table: str | None) -> None:
        """Log damage once for each row, and remember it. `table`: the name of the row's table, or None if unknown."""
        row = None if error.row is None else digest_of(*error.row)
        self._first_damage = self._first_damage or (
            f"row {row} of table {table}: {error}" if row else str(error)
        )
        if self._marker is not None and not self._marker.exists():
            self._marker.write_text(self._first_damage)
        if error.row not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(error.row)
            facts = {"reason": str(error), "table": table, "row": row}
            log.error("stored data is damaged", extra={"facts": facts})


def table_of(session: Session, partition: bytes, sort: bytes) -> str | None:
    """Return the name of the table that has a damaged row at these columns, or None."""
    rows = session.query(
        f"SELECT {ROW_COLUMNS}, t.name FROM tables t JOIN rows r ON r.table_id = t.id"
        " WHERE r.partition = ? AND r.sort = ? AND r.slot = ?",
        (partition, sort, slot_of(partition)),
    )
    for columns in rows:
        try:
            StoredRow(columns)
        except DataCorrupted:
            return str(columns[-1])
    return None

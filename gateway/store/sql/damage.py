"""Damaged data that this server has read: logged, and kept until the server is restarted. Until then it is not ready."""

from __future__ import annotations

import logging
from pathlib import Path

from tablegate.gateway.model.errors import DataCorrupted
from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, digest_of
from tablegate.gateway.store.sql.databases import Session

log = logging.getLogger(__name__)

_MOST_LOGGED = 1_000


class DamageLog:
    """What was found. `folder`: a folder of the server's, in which its processes tell each other; None if it has one process."""

    def __init__(self, folder: str | None = None) -> None:
        self._marker = Path(folder, "damage") if folder else None
        self._logged: set[tuple[bytes, bytes] | None] = set()
        self._found = ""

    @property
    def found(self) -> str:
        """The first damage that a process of this server has found; "" if there is none."""
        if not self._found and self._marker is not None and self._marker.exists():
            self._found = self._marker.read_text()
        return self._found

    def note(self, error: DataCorrupted, table: str | None) -> None:
        """Log damage, once for each row, and remember it. `table`: the name of its table; None if that is not known."""
        row = None if error.row is None else digest_of(*error.row)
        self._found = self._found or (f"row {row} of table {table}: {error}" if row else str(error))
        if self._marker is not None and not self._marker.exists():
            self._marker.write_text(self._found)
        if error.row not in self._logged and len(self._logged) < _MOST_LOGGED:
            self._logged.add(error.row)
            facts = {"reason": str(error), "table": table, "row": row}
            log.error("stored data is damaged", extra={"facts": facts})


def table_of(session: Session, partition: bytes, sort: bytes) -> str | None:
    """Return the name of the table that has a damaged row under these columns; None if there is no such table."""
    found = session.query(
        f"SELECT {ROW_COLUMNS}, t.name FROM tables t JOIN rows r ON r.table_id = t.id"
        " WHERE r.partition = ? AND r.sort = ? AND r.slot = ?",
        (partition, sort, slot_of(partition)),
    )
    for columns in found:
        try:
            StoredRow(columns)
        except DataCorrupted:
            return str(columns[-1])
    return None

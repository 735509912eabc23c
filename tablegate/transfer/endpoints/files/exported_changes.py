"""The net effect of changes: of incremental exports on a full export, or of the records of a stream.

A window has the final state of each item that changed in it, or its deletion. Windows are applied in the order of
their ends, and later ones win. Lines within a window concern different items, so that their order does not matter
("Using incremental exports" in the developer guide). Records of a stream have an order, and the last one of a key wins.
Changes may exceed the memory, so they are stored in a temporary SQLite file.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator

from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row

_SCHEMA = (
    "CREATE TABLE changes (partition BLOB, sort BLOB, body BLOB, size INTEGER, place TEXT,"
    " PRIMARY KEY (partition, sort)) WITHOUT ROWID"
)
_UPSERT = (
    "INSERT INTO changes VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET body = excluded.body, size = excluded.size, place = excluded.place WHERE excluded.place >= place"
)
_PLACE_DIGITS = 64
_BATCH = 500


class ExportedChanges:
    """The net effect of windows by key. Methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect("", check_same_thread=False)  # "": a temporary file
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(_SCHEMA)

    def apply(self, changes: Iterable[tuple[Position, Contents | None]]) -> None:
        """Apply the next window: the contents of each key, None if its item was deleted."""
        self.apply_records((0, position, contents) for position, contents in changes)

    def apply_records(self, records: Iterable[tuple[int, Position, Contents | None]]) -> None:
        """Apply records in the order of their places. Of equal places, the later record wins."""
        with self._lock, self._database:
            self._database.executemany(
                _UPSERT,
                (
                    (*position, None, 0, f"{place:0{_PLACE_DIGITS}}")
                    if contents is None
                    else (*position, contents.body, contents.size_bytes, f"{place:0{_PLACE_DIGITS}}")
                    for place, position, contents in records
                ),
            )

    def overrides(self, position: Position) -> bool:
        """True if a window replaced or deleted the item of the full export."""
        with self._lock:
            row = self._database.execute(
                "SELECT 1 FROM changes WHERE partition = ? AND sort = ?", tuple(position)
            ).fetchone()
        return row is not None

    def rows(self, after: Position) -> Iterator[Row]:
        """Yield the rows of the windows in key order after a position."""
        while True:
            with self._lock:
                batch = self._database.execute(
                    "SELECT partition, sort, body, size FROM changes WHERE (partition, sort) > (?, ?) AND body IS NOT NULL"
                    " ORDER BY partition, sort LIMIT ?",
                    (*after, _BATCH),
                ).fetchall()
            for partition, sort, body, size in batch:
                yield Row(Position(partition, sort), Contents(body, None, size), 0)
            if len(batch) < _BATCH:
                return
            after = Position(*batch[-1][:2])

    def close(self) -> None:
        """Close and remove the file."""
        self._database.close()

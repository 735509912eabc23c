"""What windows of changes make of a full export: the rows that they leave, and which keys they decide.

A window tells of each item that changed in it what it was in the end, or that it is gone. Windows are applied in the order of
their ends, each in place of what an earlier one said; within one, lines are of different items and their order means nothing
("Using incremental exports" in the developer guide). There may be more changes than fit into memory, so they are kept in a
SQLite file without a name.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator

from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row

_SCHEMA = "CREATE TABLE changes (partition BLOB, sort BLOB, body BLOB, size INTEGER, PRIMARY KEY (partition, sort)) WITHOUT ROWID"
_BATCH = 500


class ExportedChanges:
    """The net effect of windows, by key. May be asked by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect("", check_same_thread=False)  # "": a temporary file
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(_SCHEMA)

    def apply(self, changes: Iterable[tuple[Position, Contents | None]]) -> None:
        """The next window: what became of each key; None: its item was deleted."""
        with self._lock, self._database:
            self._database.executemany(
                "INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?)",
                (
                    (*position, None, 0)
                    if contents is None
                    else (*position, contents.body, contents.size_bytes)
                    for position, contents in changes
                ),
            )

    def decides(self, position: Position) -> bool:
        """Whether the item of this key is no longer what the full export says."""
        with self._lock:
            found = self._database.execute(
                "SELECT 1 FROM changes WHERE partition = ? AND sort = ?", tuple(position)
            ).fetchone()
        return found is not None

    def rows(self, after: Position) -> Iterator[Row]:
        """The rows that the windows leave, in the order of their keys, after a position."""
        while True:
            with self._lock:
                found = self._database.execute(
                    "SELECT partition, sort, body, size FROM changes WHERE (partition, sort) > (?, ?) AND body IS NOT NULL"
                    " ORDER BY partition, sort LIMIT ?",
                    (*after, _BATCH),
                ).fetchall()
            for partition, sort, body, size in found:
                yield Row(Position(partition, sort), Contents(body, None, size), 0)
            if len(found) < _BATCH:
                return
            after = Position(*found[-1][:2])

    def close(self) -> None:
        """Remove the file."""
        self._database.close()

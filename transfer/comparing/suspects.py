"""The keys of rows in unequal buckets, with a hash of each row, in a temporary file: so many keys need no memory.

Each row is there as often as a scan showed it. Rows of one key whose hashes and numbers are the same at both ends are equal.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tablegate.gateway.model.values.keys import Position

_SCHEMA = """
CREATE TABLE first (identity BLOB PRIMARY KEY, partition BLOB, sort BLOB, hash BLOB, number INTEGER) WITHOUT ROWID;
CREATE TABLE second (identity BLOB PRIMARY KEY, partition BLOB, sort BLOB, hash BLOB, number INTEGER) WITHOUT ROWID;
"""
_ADD = """
INSERT INTO {side} VALUES (?, ?, ?, ?, 1)
ON CONFLICT (identity) DO UPDATE SET number = number + 1, hash = excluded.hash
"""
_UNEQUAL = """
SELECT first.partition, first.sort, second.partition, second.sort, first.number, second.number
FROM first LEFT JOIN second ON first.identity = second.identity
WHERE second.identity IS NULL OR first.hash <> second.hash OR first.number <> second.number
UNION ALL
SELECT NULL, NULL, second.partition, second.sort, 0, second.number
FROM second LEFT JOIN first ON first.identity = second.identity WHERE first.identity IS NULL
"""


class Suspect(NamedTuple):
    """A key whose row is not the same at both ends, or was not when they were read: its position at each end, None where it was
    not there, and how often each end showed it."""

    first: Position | None
    second: Position | None
    numbers: tuple[int, int]


class Suspects:
    """The file. Rows may be added by several threads; it is gone when closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tablegate-verify-")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            Path(self._folder.name) / "suspects.sqlite", check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_SCHEMA)

    def add(self, is_first: bool, rows: Iterable[tuple[bytes, Position, int]]) -> None:
        """Rows of one end: which each is, where it stands there, and its hash."""
        sent = [
            (identity, position.partition, position.sort, row_hash.to_bytes(16, "big"))
            for identity, position, row_hash in rows
        ]
        with self._lock:
            self._connection.executemany(_ADD.format(side="first" if is_first else "second"), sent)

    def unequal(self) -> Iterator[Suspect]:
        """The keys whose rows were not the same."""
        for p1, s1, p2, s2, number1, number2 in self._connection.execute(_UNEQUAL):
            yield Suspect(
                None if p1 is None else Position(p1, s1),
                None if p2 is None else Position(p2, s2),
                (number1, number2 or 0),
            )

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()
        self._folder.cleanup()

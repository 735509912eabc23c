"""Rows in unequal buckets: their keys and hashes in a temporary file to save memory, and lookups of their current state.

Each row is counted as often as a scan returned it. Rows with the same key, hash and count at both ends are equal.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tablegate.gateway.model.values.keys import Key, Position
from tablegate.transfer.endpoints.endpoint import AnyRow, Endpoint
from tablegate.transfer.errors import TransferError

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
    """A key with unequal rows at the two ends when they were read.

    It has the position at each end, None if missing there, and how often each end returned the row.
    """

    first: Position | None
    second: Position | None
    numbers: tuple[int, int]


class Suspects:
    """The temporary file of suspects, which is deleted on close. Rows may be added from several threads."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tablegate-verify-")
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            Path(self._folder.name) / "suspects.sqlite", check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        with self._errors():
            self._connection.executescript(_SCHEMA)

    def add(self, is_first: bool, rows: Iterable[tuple[bytes, Position, int]]) -> None:
        """Add (identity, position, hash) of rows of one end."""
        values = [
            (identity, position.partition, position.sort, row_hash.to_bytes(16, "big"))
            for identity, position, row_hash in rows
        ]
        with self._lock, self._errors():
            self._connection.executemany(_ADD.format(side="first" if is_first else "second"), values)

    def unequal(self) -> Iterator[Suspect]:
        """Yield the keys of rows that are not equal."""
        with self._errors():
            for p1, s1, p2, s2, number1, number2 in self._connection.execute(_UNEQUAL):
                yield Suspect(
                    None if p1 is None else Position(p1, s1),
                    None if p2 is None else Position(p2, s2),
                    (number1, number2 or 0),
                )

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert errors of SQLite to a TransferError."""
        try:
            yield
        except sqlite3.Error as error:
            raise TransferError(
                f"the temporary file in {self._folder.name} cannot be used: {error}. "
                "Free space, or choose another folder with the variable TMPDIR"
            ) from error

    def close(self) -> None:
        """Close and delete the file."""
        self._connection.close()
        self._folder.cleanup()


Item = TypeVar("Item")
_SCAN_BATCH_ROWS = 1000  # batch size for an endpoint that must be scanned for each lookup


def looked_up(endpoint: Endpoint, keys: Sequence[Key | None]) -> list[AnyRow | None]:
    """Return the current rows of keys. None if there is no row or no key.

    An endpoint without lookups is scanned.
    """
    present_keys = [key for key in keys if key is not None]
    if not present_keys:
        return [None] * len(keys)
    rows = iter(endpoint.get(present_keys) if endpoint.looks_up else _scanned(endpoint, present_keys))
    return [None if key is None else next(rows) for key in keys]


def _scanned(endpoint: Endpoint, keys: Sequence[Key]) -> list[AnyRow | None]:
    rows: dict[Position, AnyRow] = {}
    positions = {key.position for key in keys}
    for segment in endpoint.segments(1):
        for page in endpoint.scan(segment):
            rows.update((row.position, row) for row in page.all_rows if row.position in positions)
    return [rows.get(key.position) for key in keys]


def batch_rows(*endpoints: Endpoint) -> int:
    if not all(endpoint.looks_up for endpoint in endpoints):
        return _SCAN_BATCH_ROWS
    return max(1, min(endpoint.write_rows for endpoint in endpoints))


def lookup_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items. The last one may be shorter."""
    rest = iter(items)
    while batch := list(itertools.islice(rest, size)):
        yield batch

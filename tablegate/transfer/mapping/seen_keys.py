"""Exact detection of rows that have one key in the target, in bounded memory.

Rows of a service have different keys, and a mapping that keeps keys keeps them different. All other rows are checked:
lines of a file can repeat a key, and conversions of keys are not trusted. A copy keeps the keys in its job file, so that
it can be resumed (copying/job.py). Lint keeps them here, in a temporary file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from enum import Enum

from tablegate.gateway.model.values.keys import Position
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.mapping.mapping import Mapping


class Duplicates(Enum):
    """The user's choice for several rows with one key in the target. The value is its name on the command line."""

    FAIL = "fail"
    """End with an error."""
    LAST = "last"
    """Keep the row that is read last, and count the others."""


def may_repeat_keys(source: Endpoint, mapping: Mapping) -> bool:
    """True if two rows of the source could have one key in the target, so that keys must be checked."""
    return source.repeats_keys or not mapping.keeps_keys


def packed(position: Position) -> bytes:
    """Return a position as one byte string, different for each position."""
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


class SeenKeys:
    """The keys that were seen so far, in a temporary SQLite file. The caller serializes calls."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)  # "": a temporary file
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def repeated(self, positions: Sequence[Position]) -> list[bool]:
        """Add positions. Return for each one True if it was seen before."""
        with self._database:
            return [
                not self._database.execute("INSERT OR IGNORE INTO keys VALUES (?)", (packed(each),)).rowcount
                for each in positions
            ]

    def close(self) -> None:
        """Close and remove the file."""
        self._database.close()

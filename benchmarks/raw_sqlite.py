"""A process that only runs SQLite, with the gateway's statements, schema and pragmas.

It reads lines `KIND ROWS COUNT`. KIND is put or get (one row), range (ROWS rows of a partition) or batch (ROWS rows
in one transaction). It replies to each line with COUNT latencies in microseconds as a line of JSON.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database

_ROWS = 10_000
_PUT = (
    "INSERT INTO rows (table_id, partition, sort, slot, modified_at, expires_at_ms, size_bytes, kinds, body, full_key)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET modified_at = excluded.modified_at,"
    " expires_at_ms = excluded.expires_at_ms, size_bytes = excluded.size_bytes, kinds = excluded.kinds,"
    " body = excluded.body, full_key = excluded.full_key"
)
_GET = (
    "SELECT partition, sort, modified_at, expires_at_ms, size_bytes, kinds, full_key, body FROM rows"
    " WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ?"
)
_RANGE = (
    "SELECT partition, sort, modified_at, expires_at_ms, size_bytes, kinds, full_key, body FROM rows"
    " WHERE table_id = ? AND partition = ? AND sort > ? ORDER BY sort LIMIT ?"
)
KINDS = ("put", "get", "range", "batch")


class Worker:
    """The client of that process."""

    def __init__(self, command: Sequence[str], cores: frozenset[int]) -> None:
        root = str(Path(__file__).parent.parent)
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": root},
        )
        self.pid = self._popen.pid
        os.sched_setaffinity(self.pid, cores)

    def ask(self, kind: str, rows: int, count: int) -> list[int]:
        """Return latencies in microseconds of `count` requests with `rows` rows each."""
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write(f"{kind} {rows} {count}\n")
        self._popen.stdin.flush()
        latencies: list[int] = json.loads(self._popen.stdout.readline())
        return latencies

    def stop(self) -> None:
        """Close the input, which ends the process."""
        self._popen.communicate()


def serve(path: str, synchronous: str) -> None:
    """Answer lines until the input ends."""
    database = open_database(f"sqlite:///{path}", synchronous)
    migrate(database)
    pooled = (
        database.engine.raw_connection()
    )  # SQLAlchemy closes the connection when this object is collected
    connection: sqlite3.Connection = pooled.driver_connection  # type: ignore[assignment]
    body = b"x" * 1100
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(_PUT, [_columns(number, 0, body) for number in range(_ROWS)])
    in_one = [(1, b"one", *_columns(number, 0, body)[2:]) for number in range(_ROWS)]
    connection.executemany(_PUT, [(*columns[:3], 0, *columns[4:]) for columns in in_one])
    connection.execute("COMMIT")
    first_number = 1  # SQLite writes nothing where a row is replaced by just what it is
    for line in sys.stdin:
        kind, rows, count = line.split()
        latencies = []
        for number in range(first_number, first_number + int(count)):
            began = time.perf_counter()
            _do(connection, kind, int(rows), number, body)
            latencies.append(int((time.perf_counter() - began) * 1e6))
        first_number += int(count)
        print(json.dumps(latencies), flush=True)


def _do(connection: sqlite3.Connection, kind: str, rows: int, number: int, body: bytes) -> None:
    """Run one request."""
    if kind == "get":
        assert connection.execute(_GET, _columns(number * 7919 % _ROWS, 0, body)[:4]).fetchall()
    elif kind == "range":
        assert len(connection.execute(_RANGE, (1, b"one", b"", rows)).fetchall()) == rows
    else:
        connection.execute("BEGIN IMMEDIATE")
        keys = range(number * rows, (number + 1) * rows)
        connection.executemany(_PUT, [_columns(key * 7919 % _ROWS, number, body) for key in keys])
        connection.execute("COMMIT")


def _columns(number: int, modified_at: int, body: bytes) -> tuple[object, ...]:
    key = struct.pack(">q", number)
    return 1, key, key, number % 256, modified_at, None, 925, None, body, None


if __name__ == "__main__":
    serve(*sys.argv[1:])

"""The job file: the state that a copy needs to resume after any interruption.

It is an SQLite file in write-ahead mode. Facts that depend on each other are stored in one transaction: a segment's
position with the rejects before it, and a stream's position with the changed keys before it. It holds keys and
rejected rows, but no password.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablegate.gateway.model.values.keys import Position
from tablegate.transfer.copying.job_records import ChangedKey, DonePages, KeyRepeated, Rejected, SegmentState
from tablegate.transfer.endpoints.endpoint import JSON
from tablegate.transfer.errors import CannotResume, TransferError
from tablegate.transfer.mapping.identities import Duplicates, packed

_FORMAT = 2
_SCHEMA = """
CREATE TABLE job (format INTEGER NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, options TEXT NOT NULL);
CREATE TABLE tables (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, target TEXT NOT NULL, key_schema TEXT, state TEXT NOT NULL DEFAULT 'new',
    position TEXT, sweep INTEGER NOT NULL DEFAULT 0, expected_rows INTEGER, applied INTEGER NOT NULL DEFAULT 0,
    existing_rows INTEGER NOT NULL DEFAULT 0);
CREATE TABLE segments (
    table_id INTEGER NOT NULL, number INTEGER NOT NULL, segment TEXT NOT NULL, resume TEXT, is_done INTEGER NOT NULL DEFAULT 0,
    rows INTEGER NOT NULL DEFAULT 0, size_bytes INTEGER NOT NULL DEFAULT 0, repeated INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (table_id, number)) WITHOUT ROWID;
CREATE TABLE keys (
    table_id INTEGER NOT NULL, is_rejected INTEGER NOT NULL, key BLOB NOT NULL,
    PRIMARY KEY (table_id, is_rejected, key)) WITHOUT ROWID;
CREATE TABLE changed (
    table_id INTEGER NOT NULL, key BLOB NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (table_id, key)) WITHOUT ROWID;
CREATE INDEX changed_by_sequence ON changed (table_id, sequence);
CREATE TABLE copied (
    table_id INTEGER NOT NULL, key BLOB NOT NULL, sweep INTEGER NOT NULL, PRIMARY KEY (table_id, key)) WITHOUT ROWID;
CREATE TABLE rejects (
    table_id INTEGER NOT NULL, key BLOB NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, shown TEXT NOT NULL,
    row BLOB NOT NULL, PRIMARY KEY (table_id, key));
"""

NEW, COPYING, COPIED, FINISHED = "new", "copying", "copied", "finished"
"""The states of a table: not started, segments chosen, all segments copied, finished."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table of a job.

    - `position`: the stream position from which changes have not been read.
    - `existing_rows`: the number of rows in the target before the copy that it keeps.
    """

    id: int
    source: str
    target: str
    key_schema: JSON | None
    state: str
    position: JSON | None
    expected_rows: int | None
    existing_rows: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The progress of a table or of all: rows and bytes of finished pages, applied changes, rejected rows.

    - `repeated`: rows that a later row with the same key replaced.
    - `lag_s`: the lag in seconds at which following ended. None if the copy did not follow.
    - `last_changes`: number of changed rows that the last look at the source found.
    """

    rows: int = 0
    size_bytes: int = 0
    applied: int = 0
    rejected: int = 0
    changes_left: int = 0
    repeated: int = 0
    lag_s: float | None = None
    last_changes: int = 0


class CopyJob:
    """An open job file, locked against other processes. Methods may be called from several threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()
        self.source, self.target, self._options = self._row("SELECT source, target, options FROM job")

    @classmethod
    def create(
        cls, path: Path, source: str, target: str, tables: Sequence[tuple[str, str]], options: JSON
    ) -> CopyJob:
        """Create a job with (source, target) of each table. Raises TransferError if the file exists.

        `source` and `target` are the user's addresses without secrets. The job and its tables are stored at once, so
        that a kill leaves no job that lacks some of its tables.
        """
        if path.exists():
            raise TransferError(
                f"the job file {path} exists already. Continue it (tablegate copy --job {shlex.quote(str(path))} --resume)"
                " or remove it"
            )
        connection = _connect(path)
        with _sqlite_errors(path), connection:
            connection.executescript(f"BEGIN; {_SCHEMA}")
            connection.execute(
                "INSERT INTO job VALUES (?, ?, ?, ?)", (_FORMAT, source, target, json.dumps(options))
            )
            connection.executemany("INSERT INTO tables (source, target) VALUES (?, ?)", tables)
        return cls(path, connection)

    @classmethod
    def open(cls, path: Path) -> CopyJob:
        """Open an existing job. Raises TransferError if the file is no job or another process uses it."""
        if not path.exists():
            raise TransferError(f"the job file {path} does not exist")
        connection = _connect(path)
        with _sqlite_errors(path):
            try:
                [(job_format,)] = connection.execute("SELECT format FROM job")
            except (sqlite3.DatabaseError, ValueError) as error:
                if "locked" in str(error):
                    raise
                raise TransferError(
                    f"{path} is not a job file, or its creation was interrupted. Remove it"
                ) from None
        if job_format != _FORMAT:
            raise TransferError(
                f"the job file {path} has format {job_format}, which belongs to another release of tablegate"
            )
        return cls(path, connection)

    @property
    def options(self) -> JSON:
        """The user's options at the start of the job."""
        return json.loads(self._options)

    def require(self, source: str | None, target: str | None) -> None:
        """Raise TransferError unless the job has these ends. None means that an end was not given again."""
        for name, stored, address in (("source", self.source, source), ("target", self.target, target)):
            if address is not None and stored != address:
                raise TransferError(f"the job file {self.path} has another {name}: {stored}, not {address}")

    # Tables and segments

    def tables(self) -> list[TableState]:
        """Return all tables in the order in which they were given."""
        rows = self._rows(
            "SELECT id, source, target, key_schema, state, position, expected_rows, existing_rows FROM tables"
            " ORDER BY id"
        )
        return [
            TableState(
                number, source, target, _load_json(key_schema), state, _load_json(position), *row_counts
            )
            for number, source, target, key_schema, state, position, *row_counts in rows
        ]

    def begin_table(
        self, table_id: int, key_schema: JSON, expected_rows: int | None, existing_rows: int, segments: Sequence[JSON]
    ) -> None:  # fmt: skip
        """Store the segments of a table for this and all later processes."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE tables SET state = ?, key_schema = ?, expected_rows = ?, existing_rows = ? WHERE id = ?",
                (COPYING, json.dumps(key_schema), expected_rows, existing_rows, table_id),
            )
            connection.executemany(
                "INSERT INTO segments (table_id, number, segment) VALUES (?, ?, ?)",
                [(table_id, number, json.dumps(segment)) for number, segment in enumerate(segments)],
            )

    def set_state(self, table_id: int, state: str) -> None:
        with self._transaction() as connection:
            connection.execute("UPDATE tables SET state = ? WHERE id = ?", (state, table_id))

    def segments(self, table_id: int) -> list[SegmentState]:
        """Return the segments of a table."""
        rows = self._rows(
            "SELECT number, segment, resume, is_done FROM segments WHERE table_id = ? ORDER BY number",
            (table_id,),
        )
        return [
            SegmentState(number, json.loads(segment), _load_json(resume), bool(is_done))
            for number, segment, resume, is_done in rows
        ]

    def pages_done(
        self, table_id: int, number: int, pages: DonePages, keeps_keys: bool, duplicates: Duplicates | None
    ) -> int:
        """Store that pages of a segment are in the target. Return the number of written rows with new keys.

        `keeps_keys` stores the keys of the pages for sweeps. Unless `duplicates` is None, keys are compared with those
        of earlier pages. If it is FAIL and a key is repeated, raises KeyRepeated and stores nothing.
        """
        resume, written, copies, rejects, size_bytes = pages
        with self._transaction() as connection:
            repeated = repeated_rejects = 0
            if duplicates is not None:
                repeats = duplicates is Duplicates.LAST
                repeated = self._note_keys(connection, table_id, False, copies, repeats)
                refused = [reject.position for reject in rejects]
                repeated_rejects = self._note_keys(connection, table_id, True, refused, repeats)
            connection.execute(
                "UPDATE segments SET resume = ?, is_done = ?, rows = rows + ?, size_bytes = size_bytes + ?,"
                " repeated = repeated + ? WHERE table_id = ? AND number = ?",
                (json.dumps(resume), resume is None, len(written) - repeated, size_bytes, repeated + repeated_rejects,
                 table_id, number),
            )  # fmt: skip
            self._reject(connection, table_id, rejects)
            if keeps_keys:
                self._keep_keys(connection, table_id, written, rejects)
        return len(written) - repeated

    def _note_keys(
        self, connection: sqlite3.Connection, table_id: int, is_rejected: bool, positions: Sequence[Position],
        repeats: bool,
    ) -> int:  # fmt: skip
        """Add keys and return the number of those that were there. Raises KeyRepeated unless `repeats`."""
        repeated = 0
        for position in positions:
            key = (table_id, is_rejected, packed(position))
            if not connection.execute("INSERT OR IGNORE INTO keys VALUES (?, ?, ?)", key).rowcount:
                repeated += 1
                if not repeats:
                    raise KeyRepeated(position, is_rejected)
        return repeated

    # Changes

    def set_position(self, table_id: int, position: JSON) -> None:
        """Set the stream position from which changes are read."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE tables SET position = ? WHERE id = ?", (json.dumps(position), table_id)
            )

    def add_changes(self, table_id: int, positions: Iterable[Position], position: JSON) -> None:
        """Store the keys that changed before a new stream position."""
        with self._transaction() as connection:
            self._change(connection, table_id, map(packed, positions))
            connection.execute(
                "UPDATE tables SET position = ? WHERE id = ?", (json.dumps(position), table_id)
            )

    def changes(self, table_id: int, limit: int) -> list[ChangedKey]:
        """Return the oldest changes that are not applied."""
        rows = self._rows(
            "SELECT key, sequence FROM changed WHERE table_id = ? ORDER BY sequence LIMIT ?",
            (table_id, limit),
        )
        return [ChangedKey(unpacked(key), sequence) for key, sequence in rows]

    def changes_applied(
        self, table_id: int, applied: Sequence[ChangedKey], written: Sequence[Position], deleted: Sequence[Position],
        rejects: Sequence[Rejected], keeps_keys: bool,
    ) -> None:  # fmt: skip
        """Remove applied changes and store their rejects. A row that has changed again stays in the list."""
        with self._transaction() as connection:
            connection.executemany(
                "DELETE FROM changed WHERE table_id = ? AND key = ? AND sequence = ?",
                [(table_id, packed(position), sequence) for position, sequence in applied],
            )
            rejects_to_delete = [(table_id, packed(position)) for position in (*written, *deleted)]
            connection.executemany("DELETE FROM rejects WHERE table_id = ? AND key = ?", rejects_to_delete)
            self._reject(connection, table_id, rejects)
            connection.execute(
                "UPDATE tables SET applied = applied + ? WHERE id = ?",
                (len(written) + len(deleted), table_id),
            )
            if keeps_keys:
                connection.executemany(
                    "DELETE FROM copied WHERE table_id = ? AND key = ?",
                    [(table_id, packed(one_position)) for one_position in deleted],
                )
                self._keep_keys(connection, table_id, written, rejects)

    # Sweeps: a search for copied and rejected rows that no longer exist. `copied` has the keys of both.

    def begin_sweep(self, table_id: int) -> int:
        """Start a sweep and return its number."""
        with self._transaction() as connection:
            connection.execute("UPDATE tables SET sweep = sweep + 1 WHERE id = ?", (table_id,))
            [(number,)] = connection.execute("SELECT sweep FROM tables WHERE id = ?", (table_id,))
        return int(number)

    def mark_seen(self, table_id: int, sweep: int, positions: Sequence[Position]) -> None:
        """Mark rows that a sweep found at the source. Rows that no page and no change had become changes."""
        keys = [packed(position) for position in positions]
        with self._transaction() as connection:
            for key in keys:
                cursor = connection.execute(
                    "UPDATE copied SET sweep = ? WHERE table_id = ? AND key = ?", (sweep, table_id, key)
                )
                if not cursor.rowcount:
                    self._change(connection, table_id, [key])

    def end_sweep(self, table_id: int, sweep: int) -> int:
        """Store rows that the sweep did not find as changes. Return their number."""
        with self._transaction() as connection:
            unseen = connection.execute(
                "SELECT key FROM copied WHERE table_id = ? AND sweep < ?", (table_id, sweep)
            ).fetchall()
            self._change(connection, table_id, [key for (key,) in unseen])
        return len(unseen)

    # Results

    def counts(self, table_id: int | None = None) -> Counts:
        """Return the progress of one table, or of all if `table_id` is None."""
        where, values = ("", ()) if table_id is None else (" WHERE table_id = ?", (table_id,))
        rows, size_bytes, repeated = self._row(
            f"SELECT total(rows), total(size_bytes), total(repeated) FROM segments{where}", values
        )
        [applied] = self._row(f"SELECT total(applied) FROM tables{where.replace('table_id', 'id')}", values)
        [rejected] = self._row(f"SELECT count(*) FROM rejects{where}", values)
        [left] = self._row(f"SELECT count(*) FROM changed{where}", values)
        return Counts(int(rows), int(size_bytes), int(applied), rejected, left, int(repeated))

    def sources_without_rows(self) -> list[str]:
        """Return the source of each table without a row that was read or a change that was applied."""
        counts = {table.source: self.counts(table.id) for table in self.tables()}
        return [source for source, each in counts.items() if not (each.rows or each.rejected or each.applied)]

    def rejects(self) -> Iterator[tuple[str, str, str, str, bytes]]:
        """Yield (source of the table, shown key, code, reason, body) of each rejected row."""
        last = 0
        while rows := self._rows(
            "SELECT r.rowid, t.source, r.shown, r.code, r.reason, r.row FROM rejects r JOIN tables t ON t.id = r.table_id"
            " WHERE r.rowid > ? ORDER BY r.rowid LIMIT 200", (last,)
        ):  # fmt: skip
            for rowid, *reject in rows:
                last = rowid
                yield tuple(reject)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _change(self, connection: sqlite3.Connection, table_id: int, keys: Iterable[bytes]) -> None:
        [(last,)] = connection.execute(
            "SELECT coalesce(max(sequence), 0) FROM changed WHERE table_id = ?", (table_id,)
        )
        connection.executemany(
            "INSERT OR REPLACE INTO changed VALUES (?, ?, ?)",
            [(table_id, key, number) for number, key in enumerate(keys, last + 1)],
        )

    def _keep_keys(
        self,
        connection: sqlite3.Connection,
        table_id: int,
        written: Iterable[Position],
        rejects: Iterable[Rejected],
    ) -> None:
        positions = [*written, *(reject.position for reject in rejects)]
        connection.executemany(
            "INSERT OR IGNORE INTO copied VALUES (?, ?, 0)",
            [(table_id, packed(position)) for position in positions],
        )

    def _reject(self, connection: sqlite3.Connection, table_id: int, rejects: Sequence[Rejected]) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO rejects VALUES (?, ?, ?, ?, ?, ?)",
            [
                (table_id, packed(reject.position), reject.code, reject.reason, reject.shown_key, reject.body)
                for reject in rejects
            ],
        )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _sqlite_errors(self.path), self._connection:
            self._connection.execute("BEGIN")
            yield self._connection

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, _sqlite_errors(self.path):
            return self._connection.execute(statement, values).fetchall()

    def _row(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._rows(statement, values)[0]


def unpacked(key: bytes) -> Position:
    split = 4 + int.from_bytes(key[:4], "big")
    return Position(key[4:split], key[split:])


def _load_json(text: str | None) -> JSON | None:
    return None if text is None else json.loads(text)


def _connect(path: Path) -> sqlite3.Connection:
    with _sqlite_errors(path):
        connection = sqlite3.connect(path, timeout=0.2, isolation_level=None, check_same_thread=False)
        # One process at a time. The lock lasts until the file is closed or the process ends.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        with contextlib.suppress(sqlite3.DatabaseError):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        return connection


@contextlib.contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite to a TransferError."""
    try:
        yield
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise TransferError(f"another process uses the job file {path}") from None
        if isinstance(error, sqlite3.OperationalError):
            raise TransferError(f"the job file {path} cannot be used: {error}") from error
        raise CannotResume(f"the job file {path} is damaged ({error}). Remove it and copy again") from error

"""The database interface of the store: sessions, transactions, dialect-specific SQL and errors.

Code of one database on the request path is only in its folder (sqlite/, postgresql/): connections, begin and end of
transactions, the meaning of errors, and the SQL that locks, claims, moves sets of rows or reads inside bodies
(`Statements`). Otherwise only the SQL tables (types of columns, partial indexes) and migrating.py (its lock) distinguish
databases. opening.py chooses the class by URL, so that a gateway on SQLite loads no other driver.
docs/contribute/adding-a-database.md describes how to add a database.

All other statements are shared, with `?` for parameters. SQLAlchemy has the schema, the migrations and PostgreSQL's
pool. It is imported only where needed, since its import takes most of a start on SQLite. The data path uses raw DBAPI
connections held per thread: a SQLAlchemy transaction for every operation costs 4 to 10 times the driver
(docs/architecture.md section 11).
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tablegate.gateway.model.tables.pages import Concatenation

if TYPE_CHECKING:
    import sqlalchemy

T = TypeVar("T")
Pending = Callable[[], T]
"""A pending result: call it for the value.

Statements that are sent before the first result is requested share a round trip.
"""
Row = tuple[Any, ...]
Key = tuple[int, bytes, bytes, int]
"""The key of a stored row or entry: (table id or index id, partition, sort, slot)."""


class Wildcards(Enum):
    """A wildcard in a pattern."""

    RUN = "any number of characters"
    STOP = "a quote or a decimal point (where patterns cannot say that, one character)"


BodyPattern = tuple[str | Wildcards, ...]
"""A pattern in the bytes of a body: texts with wildcards between."""
Condition = tuple[str, list[str | bytes | float]]
"""SQL about a row `r`, and its parameters."""

# Maximum wait for a lock before LockTimeout, and the maximum for a transaction with `nowait`.
LOCK_TIMEOUT_MS = 500
NOWAIT_LOCK_TIMEOUT_MS = 10
# The only advisory lock. It excludes concurrent migrations, not writers of data, which may be on several nodes.
DEFINITION_LOCK = 7_421_954_300


class NodeShards(NamedTuple):
    """A node and its number of shards of `rows`."""

    name: str
    shards: int


class TablePlacement(NamedTuple):
    """The placement of tables: distributed, on every node, on one node only, and the nodes."""

    distributed: list[str]
    everywhere: list[str]
    alone: list[str]
    nodes: list[NodeShards]


class DatabaseUnusable(Exception):
    """The database, or its location, cannot be used like this. The text says why and what to do."""


class CommitInterrupted(Exception):
    """The connection broke during COMMIT. `transaction_id`: for a query of the outcome."""

    def __init__(self, transaction_id: str | None) -> None:
        super().__init__(transaction_id)
        self.transaction_id = transaction_id


class KeyOccupied(Exception):
    """A row that was inserted as new already exists."""


class RetryableFailure(Exception):
    """The transaction failed before COMMIT was sent, for a transient reason: deadlock, time-out, lost connection."""


class Unreachable(RetryableFailure):
    """No connection to the database could be opened. A retry makes sense only after a pause."""


class LockTimeout(RetryableFailure):
    """Another transaction held a lock for longer than the time-out."""


class Session:
    """One connection inside a transaction. Statements have `?` parameters.

    Methods raise the driver's errors, which leave the block of the transaction as the gateway's errors (Database).
    `transaction_id`: identifies the transaction in PostgreSQL, if a statement has already returned it.
    """

    statements: Statements
    transaction_id: str | None = None

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a statement and return all its rows."""
        rows: list[Row] = self._connection.execute(statement, parameters).fetchall()
        return rows

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        """Send a statement. Its rows are pending."""
        rows = self.query(statement, parameters)
        return lambda: rows

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        """Send a statement. Its number of affected rows is pending. An error may be raised only by a later statement."""
        count: int = self._connection.execute(statement, parameters).rowcount
        return lambda: count

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement and return the number of affected rows."""
        count: int = self._connection.execute(statement, parameters).rowcount
        return count

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each set of parameters. On SQLite, return the number of affected rows."""
        count: int = self._connection.executemany(statement, parameters).rowcount
        return count

    def copy(self, statement: str, data: bytes) -> int:
        """Run a bulk-load statement on encoded rows and return their number. Not every database has such statements."""
        raise NotImplementedError(statement)


class Statements(ABC):
    """The SQL that differs between databases. Stateless, so one object serves all sessions.

    Rows and entries are tuples of columns in the order of rows.COLUMNS and entries.COLUMNS. Lists of them and of keys
    are sorted by key, so that two writers lock in the same order.
    """

    for_update: str
    """The end of a SELECT that locks its rows until the transaction ends."""
    big_number: str
    """A parameter of 64 bits, where the context does not determine the type."""
    greatest: str
    """The function that returns the greater of two numbers."""
    stripe: str
    """The stripe of row_counts to which this connection adds. Concurrent connections should have different ones."""
    server_start: str
    """An expression with a new value after the database server restarts or fails over.

    Committed data may then be lost, so data cached in memory must be dropped.
    """
    guards_partitions = False
    """True if local transactions and other writers exclude each other by a guard row for the partition's slot.

    Otherwise they use the table's row, which every writer locks anyway (features/local_transactions/local_transaction_store.py).
    """
    joins_entries = True
    """True if one statement can join index entries with their rows, which may be at another slot."""

    @abstractmethod
    def has_table(self, session: Session, name: str) -> bool:
        """Return True if the database has a SQL table of this name."""

    @abstractmethod
    def table_names(self, session: Session) -> list[str]:
        """Return the names of the SQL tables of the database, or of its current schema, without those of extensions."""

    @abstractmethod
    def one_of(self, column: str, numbers: Sequence[int]) -> tuple[str, Sequence[Any]]:
        """Return a condition that the column has one of these numbers, and its parameters."""

    @abstractmethod
    def plan_by_values(self, session: Session) -> None:
        """Let the database plan each statement of the transaction for its values. By default it looks up keys."""

    @abstractmethod
    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        """Return (id, version) of the existing tables, and possibly the transaction's id.

        With `lock` the tables are share-locked until the transaction ends. `near`: a partition to which the transaction
        will write, or b"". A database of several nodes takes the lock there.
        """

    @abstractmethod
    def lock_rows(self, session: Session, table: str, column: str, row_ids: Sequence[int]) -> None:
        """Lock catalogue rows exclusively until the transaction ends, in the order of their ids.

        The catalogue is small and copied to every node. `column`: the primary key.
        """

    @abstractmethod
    def claim_rows(self, session: Session, keys: Sequence[Key]) -> None:
        """Lock these keys until the transaction ends, with or without rows.

        May insert a placeholder without a body. remove_rows deletes it, or a saved row replaces it.
        """

    @abstractmethod
    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        """Return (index of the key, checksums.ROW_COLUMNS) for the existing rows."""

    @abstractmethod
    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        """Return (index of the key, checksums.ROW_COLUMNS and the table's version) for the keys of existing tables.

        Runs one statement. The row's columns are NULL if there is no row.
        """

    def are_unchanged(self, session: Session, versions: Sequence[Row]) -> bool:
        """Return True if the rows that were read before were all valid at one moment. A version is (key, modified_at).

        Only for databases without snapshots. May return False if that cannot be verified.
        """
        raise NotImplementedError

    @abstractmethod
    def save_rows(self, session: Session, rows: Sequence[Row]) -> None:
        """Insert or replace rows. Their keys must be claimed."""

    @abstractmethod
    def load_rows(self, session: Session, rows: Sequence[Row]) -> None:
        """Insert many new rows as fast as the database can.

        Raises KeyOccupied if a row exists. The transaction must then be rolled back.
        """

    @abstractmethod
    def remove_rows(self, session: Session, keys: Sequence[Key], claims: Sequence[Key]) -> None:
        """Delete rows, and the placeholders of unused claims."""

    @abstractmethod
    def remove_unchanged_rows(self, session: Session, versions: Sequence[Row]) -> int:
        """Delete the rows that still have this version, and return their number.

        A version is (key, modified_at). Rows that another transaction has locked may be skipped, and no lock is waited
        for.
        """

    def page_count(self, session: Session, table: str) -> int:
        """Return the number of pages of a SQL table. 0 if `delete_pages` cannot delete by them."""
        return 0

    def delete_pages(
        self, session: Session, table: str, owner: str, owner_id: int, pages: tuple[int, int]
    ) -> int:
        """Delete the rows with this value in the column `owner` on a range of pages. Return their number."""
        raise NotImplementedError

    @abstractmethod
    def add_entries(self, session: Session, entries: Sequence[Row]) -> None:
        """Insert index entries. An existing entry gets the new size."""

    @abstractmethod
    def remove_entries(self, session: Session, keys: Sequence[Key]) -> None:
        pass

    @abstractmethod
    def claim_token(self, session: Session, key: tuple[str, str, int]) -> None:
        """Lock an idempotency token (scope, name, slot) until the transaction ends, whether or not it exists."""

    @abstractmethod
    def concatenation(self, concatenation: Concatenation, reverse: bool) -> tuple[str, str, str]:
        """Return SQL aggregates over rows `s` in the order of `s.sort`.

        They are: the last sort key, the times of the last writes separated by commas, and the bodies with the reader's
        separator.
        """

    @abstractmethod
    def pattern_condition(self, pattern: BodyPattern) -> Condition:
        """Return a condition for rows with this pattern in their body. It may accept other rows, but rejects no match."""

    @abstractmethod
    def number_condition(self, name: str, above: bool, bound: float) -> Condition:
        """Return a condition for rows with a numeric attribute on this side of a bound.

        It may accept other rows, but rejects no match.
        """


Traced = Callable[[str, list[str]], AbstractContextManager[Any]]
"""Wraps the statements of a database: called with its name and the statements."""


def _trace(method: Callable[..., Any], wrap: Traced, database: str) -> Callable[..., Any]:
    @wraps(method)
    def ask(session: Session, statement: str, *arguments: Any) -> Any:
        with wrap(database, [statement]):
            return method(session, statement, *arguments)

    return ask


class NodeState(NamedTuple):
    """A node of a distributed database.

    - `answers`: False if requests for the node are refused at once.
    - `stuck`: number of prepared transactions that are older than 30 s. They keep rows locked.
    """

    name: str
    answers: bool
    stuck: int


class Database:
    """Base of all databases.

    `read()` opens a session in a read-only transaction with one snapshot, on a connection that never waits for a
    writer. A thread keeps a connection for each number `reader`, so concurrent reads of a thread need different
    numbers. `read_one()` opens a session for a single statement, which has a snapshot by itself. `write()` opens a
    write transaction that commits at the end of the block and rolls back on any exception. With `nowait`, it waits only
    a few milliseconds for a lock.

    `shared`: other processes may write too, so cached data may be stale. `looks_up_at_once`: one statement can look up
    any number of rows with the versions of their tables. `has_snapshots`: a session of `read()` has one snapshot.
    Otherwise only the rows of one slot share one. `is_distributed`: writes to several partitions may be faster as a
    transaction for each node (`node_of`). `tracks_lsn`: every write stores the position of the database's log after it
    in `written_up_to`. `refuses_writes`: the error text after a write failed with OutOfSpace, until a write succeeds,
    else "".

    Database errors leave these blocks as LockTimeout, RetryableFailure, Busy, OutOfSpace or DatabaseFailed. `write()`
    raises CommitInterrupted if the outcome of the commit is unknown.
    """

    shared = False
    looks_up_at_once = False
    has_snapshots = True
    is_distributed = False
    tracks_lsn = False
    written_up_to = 0
    name: str
    """The name of this kind of database in file names."""

    def __init__(self) -> None:
        self.refuses_writes = ""
        self._local = threading.local()

    @property
    def engine(self) -> sqlalchemy.Engine:
        """SQLAlchemy's engine, for the schema and the migrations."""
        raise NotImplementedError

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        """Open a read-only transaction on this thread's connection `reader`. Raises Busy, RetryableFailure,
        DatabaseFailed."""
        raise NotImplementedError

    def read_one(self, reader: int = 0) -> AbstractContextManager[Session]:
        """Open a session for a single reading statement."""
        return self.read(reader)

    def write(self, nowait: bool = False, near: bytes = b"") -> AbstractContextManager[Session]:
        """Open a write transaction. Raises Busy, RetryableFailure (LockTimeout), CommitInterrupted, DatabaseFailed.

        `near`: a partition to which it will write, or b"". A database of several nodes enters at that node.
        """
        raise NotImplementedError

    def node_of(self, partition: bytes) -> Hashable:
        """Return the node that has a partition, or None if it is unknown or irrelevant."""
        return None

    def check_place(self) -> None:
        """Raise OutOfSpace if the database is not where it was opened. Takes no lock."""

    def check_files(self) -> None:
        """Raise OutOfSpace if database files were removed, so that data would be lost at a restart."""

    def damaged_pages(self, limit_s: float) -> list[str] | None:
        """Return the damage in the structure of pages, or None if the database cannot check that quickly.

        Raises TimeoutError, and the driver's errors.
        """
        return None

    def define(self) -> AbstractContextManager[Session]:
        """Open a transaction that creates the schema and excludes other gateways from creating or migrating it."""
        raise NotImplementedError

    def begin_migrating(self) -> None:
        """Prepare a migration. Raises DatabaseUnusable if it must run elsewhere."""

    def end_migrating(self) -> None:
        """Finish a migration. Also called if no revision was applied."""

    def committed(self, transaction_id: str | None) -> bool | None:
        """Return the outcome of a transaction with an interrupted COMMIT, or None if it is unknown."""
        return None

    def finish_interrupted(self) -> None:
        """Finish transactions over several nodes that another process has left undecided. Called every few seconds."""

    def node_states(self) -> list[NodeState]:
        """Return the nodes of a distributed database, as the last `finish_interrupted` found them. Others have none."""
        return []

    # For databases with standbys (replicas.py).

    def log_written(self) -> tuple[int, int]:
        """Return the position of the log and its timeline. Raises Busy, RetryableFailure, DatabaseFailed."""
        raise NotImplementedError

    def log_replayed(self, reader: int = 0) -> int:
        """Return the position up to which a standby has replayed the log, or -1 if it is not a standby.

        Uses this thread's connection `reader`. Raises Busy, RetryableFailure, DatabaseFailed.
        """
        raise NotImplementedError

    def log_timeline(self) -> int:
        """Return the timeline of the log that a standby follows. Raises Busy, RetryableFailure, DatabaseFailed."""
        raise NotImplementedError

    def trace_statements(self, wrap: Traced) -> None:
        """Wrap all statements of this process in `wrap`, singly or those that are sent together."""
        for name in ("query", "send", "execute", "execute_many"):
            setattr(Session, name, _trace(getattr(Session, name), wrap, self.name))

    def back_up(self, target: Path, progress: Callable[[int, int], None]) -> float:
        """Copy the whole database into a new file while others write. Return the time of the copy (seconds since 1970).

        `progress` is called with the number of pages copied and of all pages. Raises DatabaseUnusable.
        """
        raise DatabaseUnusable(f"tablegate does not back up {self.name}: use its own tools, such as pg_dump")

    def compact(self) -> tuple[int, int]:
        """Give free pages of the database back to the disk. Return the bytes before and after.

        Raises DatabaseUnusable, and RetryableFailure if the database is in use.
        """
        raise DatabaseUnusable(
            f"tablegate does not compact {self.name}: its autovacuum lets new rows use the free space. `VACUUM FULL` or"
            " pg_repack give it back to the disk"
        )

    def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError

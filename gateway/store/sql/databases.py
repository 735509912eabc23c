"""What a database is to the store: sessions, transactions, the SQL that it does not share, and what may go wrong with it.

What databases do not share, on the path of requests, is in a folder for each (sqlite/, postgresql/) and nowhere else:
connections, how a transaction begins and ends, which errors mean what, and the SQL that locks, claims, moves sets of rows or
reads inside bodies (`Statements`). Besides, only schema.py (types of columns, partial indexes) and migrating.py (its lock)
tell databases apart. opening.py gives the database that a URL names, so that a gateway on SQLite loads no other's driver.
docs/contribute/adding-a-database.md says what a third one takes.

All other statements are written once, with `?` for parameters. SQLAlchemy has the schema and the migrations (and PostgreSQL's
pool); it is imported where one of them is needed, since that takes longer than all else of a start on SQLite. The data path
runs on raw DBAPI connections held per thread, because opening a SQLAlchemy transaction for every operation costs 4 to 10
times the driver (docs/architecture.md section 11).
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
"""The answer to statements that have been sent: call it for the value. Where a statement costs a round trip, statements that are
sent before the first answer is called for share one."""
Row = tuple[Any, ...]
Key = tuple[int, bytes, bytes, int]
"""Where a row or an entry is stored: (table id or index id, partition, sort, slot)."""


class Wildcards(Enum):
    """What stands for other characters in a pattern."""

    RUN = "any number of characters"
    STOP = "a quote or a decimal point (where patterns cannot say that, one character)"


BodyPattern = tuple[str | Wildcards, ...]
"""What may stand in the bytes of a body: texts, with wildcards between."""
Condition = tuple[str, list[str | bytes | float]]
"""SQL about a row `r`, and its parameters."""

# How long a transaction waits for a lock before it says LockTimeout; and how long one that must not wait.
LOCK_TIMEOUT_MS = 500
NOWAIT_LOCK_TIMEOUT_MS = 10
# Of the only advisory lock: it keeps two starting gateways apart, not writers of data (which may be on several nodes).
DEFINITION_LOCK = 7_421_954_300


class NodeShards(NamedTuple):
    """A node, and how many shards of the rows are on it."""

    name: str
    shards: int


class TablePlacement(NamedTuple):
    """Where things are: tables that are spread, those that every node has, those that are on one node only; the nodes."""

    distributed: list[str]
    everywhere: list[str]
    alone: list[str]
    nodes: list[NodeShards]


class DatabaseUnusable(Exception):
    """The database, or where it is, cannot be used like this. The text says why, and what to do."""


class CommitInterrupted(Exception):
    """The connection broke while COMMIT was under way. `transaction_id`: to ask PostgreSQL what became of it."""

    def __init__(self, transaction_id: str | None) -> None:
        super().__init__(transaction_id)
        self.transaction_id = transaction_id


class KeyOccupied(Exception):
    """A row is there already that was to be the first of its key."""


class RetryableFailure(Exception):
    """The transaction failed before COMMIT was sent, for a reason that may pass: deadlock, time-out, lost connection."""


class Unreachable(RetryableFailure):
    """No connection to the database could be opened. Another attempt at once is of no use; somewhat later it may be."""


class LockTimeout(RetryableFailure):
    """Somebody else holds a lock, and did not give it up while this transaction waited."""


class Session:
    """One connection inside a transaction. Statements have `?` parameters. What they raise is the driver's error, which leaves
    the block of the transaction as one of ours (Database).

    `transaction_id`: to ask PostgreSQL with what became of the transaction, if a statement has told it on the way.
    """

    statements: Statements
    transaction_id: str | None = None

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run a statement; all its rows."""
        found: list[Row] = self._connection.execute(statement, parameters).fetchall()
        return found

    def query_each(self, statement: str, parameters: Iterable[Sequence[Any]]) -> list[list[Row]]:
        """Run a statement once for each set of parameters; the rows of each."""
        execute = self._connection.execute
        return [execute(statement, each).fetchall() for each in parameters]

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        """Send a statement; its rows are pending."""
        found = self.query(statement, parameters)
        return lambda: found

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        """Send a statement; the number of rows it touches is pending. An error may show only with a later statement."""
        count: int = self._connection.execute(statement, parameters).rowcount
        return lambda: count

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; the number of rows it touched."""
        count: int = self._connection.execute(statement, parameters).rowcount
        return count

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each set of parameters; on SQLite, the number of rows they touched."""
        count: int = self._connection.executemany(statement, parameters).rowcount
        return count

    def copy(self, statement: str, data: bytes) -> int:
        """Run a statement that takes rows in a form of their own, and give it these; how many it took. Where the database has
        such statements."""
        raise NotImplementedError(statement)


class Statements(ABC):
    """The SQL that a database does not share with others. Holds no state: one object serves all sessions.

    Rows and entries are tuples of columns in the order of rows.COLUMNS and entries.COLUMNS. Lists of them, and of keys, are
    sorted by key, so that two writers lock in one order.
    """

    for_update: str
    """What ends a SELECT whose rows are to be locked until the transaction ends."""
    big_number: str
    """A parameter that is a number of 64 bits, where nothing else says so."""
    greatest: str
    """The function that gives the greater of two numbers."""
    server_start: str
    """A text that is another one after the database server was started anew or another has taken its place, and may have lost
    what was committed: what was kept in memory of the database is then of no more use."""
    guards_partitions = False
    """Whether who begins a local transaction and who writes beside it meet at a row that guards the partition's slot
    (store/transactions/local_transactions.py). Otherwise they meet at the table's row, which every writer locks anyway."""
    joins_entries = True
    """Whether one statement can read index entries and their rows, which may be at another slot."""

    @abstractmethod
    def has_table(self, session: Session, name: str) -> bool:
        """Whether the database has a table of SQL of this name."""

    @abstractmethod
    def one_of(self, column: str, numbers: Sequence[int]) -> tuple[str, Sequence[Any]]:
        """A condition, and its parameters: the column has one of these numbers."""

    @abstractmethod
    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        """(id, version) of those tables that there are, and perhaps the transaction's id. With `lock` none of them can change
        until the transaction ends, while others may lock them likewise. `near`: a partition that the transaction is about to
        write to, if it is known; a database of several nodes takes the lock where that is."""

    @abstractmethod
    def lock_rows(self, session: Session, table: str, column: str, row_ids: Sequence[int]) -> None:
        """Lock rows of the catalogue, of which there are few and which every node has, against everybody else until the
        transaction ends, in the order of their ids. `column`: their primary key."""

    @abstractmethod
    def claim_rows(self, session: Session, keys: Sequence[Key]) -> None:
        """Lock these keys until the transaction ends, whether or not they have rows. May leave a placeholder without a body
        where there is none: remove_rows takes it away, or a row is saved over it."""

    @abstractmethod
    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        """(number of the key in the list, checksums.ROW_COLUMNS) of the rows that are there."""

    @abstractmethod
    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> list[tuple[int, Row]]:
        """(number of the key in the list, checksums.ROW_COLUMNS and the version of the table) of those keys whose table is there,
        in one statement. The columns are NULL where there is no row."""

    @abstractmethod
    def save_rows(self, session: Session, rows: Sequence[Row]) -> None:
        """Store rows over what is there, on keys that have been claimed."""

    @abstractmethod
    def load_rows(self, session: Session, rows: Sequence[Row]) -> None:
        """Store many rows where there are none, as quickly as the database can. Raises Occupied where there is one; then the
        transaction is of no more use."""

    @abstractmethod
    def remove_rows(self, session: Session, keys: Sequence[Key], claims: Sequence[Key]) -> None:
        """Delete rows, and the placeholders of claims that came to nothing."""

    @abstractmethod
    def add_entries(self, session: Session, entries: Sequence[Row]) -> None:
        """Store index entries. One that is there gets the new size."""

    @abstractmethod
    def remove_entries(self, session: Session, keys: Sequence[Key]) -> None:
        """Delete index entries."""

    @abstractmethod
    def claim_token(self, session: Session, key: tuple[str, str, int]) -> None:
        """Lock an idempotency token (scope, name, slot) until the transaction ends, whether or not it is known."""

    @abstractmethod
    def concatenation(self, concatenation: Concatenation, reverse: bool) -> tuple[str, str, str]:
        """SQL aggregates over rows `s` in the order of `s.sort`: the last sort key; the moments when they were written, with
        commas between; the bodies, with the reader's separator between."""

    @abstractmethod
    def pattern_condition(self, pattern: BodyPattern) -> Condition:
        """What is true of rows whose body has this pattern in it. May let others through, never keep one back."""

    @abstractmethod
    def number_condition(self, name: str, above: bool, bound: float) -> Condition:
        """What is true of rows with an attribute that is a number on this side of a bound, or about there. May let others
        through, never keep one back."""


Traced = Callable[[str, list[str]], AbstractContextManager[Any]]
"""Given a database's name and statements, what stands around these."""


def _traced(method: Callable[..., Any], traced: Traced, database: str) -> Callable[..., Any]:
    @wraps(method)
    def ask(session: Session, statement: str, *given: Any) -> Any:
        with traced(database, [statement]):
            return method(session, statement, *given)

    return ask


class Database:
    """Base of all databases.

    `read()` gives a session in a read-only transaction with one snapshot, on a connection that never waits for a writer.
    Those that a thread has open at the same time have different numbers as `reader`: each is a connection that the thread keeps;
    `look()` one for a single statement, which is a snapshot by itself;
    `write()` one in a write transaction that commits at the end of the block and rolls back on any exception; `nowait`
    ones wait a few milliseconds for a lock and no longer.
    `shared`: other processes may write too, so that what was read before may be out of date. `looks_up_at_once`: whether
    rows are looked up together with the versions of their tables by one statement, however many they are. `has_snapshots`:
    what a session of `read()` reads is all of one moment. Without, that is true of the rows of one slot only.
    `has_nodes`: whether writes to several partitions may be quicker as a transaction for each node (`node_of`).
    `notes_written`: every write says in `written_up_to` how far the database's log was after it.
    `refuses_writes`: the reason, from a write that met OutOfSpace until one has room again; else "".

    Errors of the database leave these blocks as LockTimeout, Retry, Busy, OutOfSpace or DatabaseFailed; `write()`
    raises CommitInterrupted
    if nobody knows whether it committed.
    """

    shared = False
    looks_up_at_once = False
    has_snapshots = True
    has_nodes = False
    notes_written = False
    written_up_to = 0
    name: str
    """What files that belong to one database are called after."""

    def __init__(self) -> None:
        self.refuses_writes = ""
        self._local = threading.local()

    @property
    def engine(self) -> sqlalchemy.Engine:
        """SQLAlchemy's view of the database, for the schema and the migrations."""
        raise NotImplementedError

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        """A session in a read-only transaction, on the connection of that number of this thread. Raises Busy, Retry,
        DatabaseFailed."""
        raise NotImplementedError

    def look(self, reader: int = 0) -> AbstractContextManager[Session]:
        """A session for a single statement that reads."""
        return self.read(reader)

    def write(self, nowait: bool = False, near: bytes = b"") -> AbstractContextManager[Session]:
        """A session in a write transaction. `near`: a partition that it is about to write to, if it is known; a database of
        several nodes enters where that is. Raises Busy, Retry (LockTimeout), CommitInterrupted, DatabaseFailed."""
        raise NotImplementedError

    def node_of(self, partition: bytes) -> Hashable:
        """Which node has a partition, as far as that is known; None: it does not matter."""
        return None

    def check_files(self) -> None:
        """Raise OutOfSpace if files of the database were removed, so that a restart would not find what is written."""

    def define(self) -> AbstractContextManager[Session]:
        """A session in a transaction that makes the schema: while it lasts no other gateway makes or migrates it."""
        raise NotImplementedError

    def begin_migrating(self) -> None:
        """Called before steps of the schema are taken. Raises Unusable if they must be taken elsewhere."""

    def end_migrating(self) -> None:
        """Called when the database has this release's schema, whether or not steps were taken."""

    def committed(self, transaction_id: str | None) -> bool | None:
        """What became of a transaction whose COMMIT was cut off: True, False, or None if nobody can say."""
        return None

    # Of databases that have standbys (replicas.py)

    def log_written(self) -> tuple[int, int]:
        """How far the log has been written, and on which timeline. Raises Busy, Retry, DatabaseFailed."""
        raise NotImplementedError

    def log_replayed(self, reader: int = 0) -> int:
        """How far a standby has replayed its primary's log, asked on the connection of that number of this thread; -1: it is no
        standby (any more). Raises Busy, Retry, DatabaseFailed."""
        raise NotImplementedError

    def log_timeline(self) -> int:
        """The timeline of the log that a standby follows. Raises Busy, Retry, DatabaseFailed."""
        raise NotImplementedError

    def trace_statements(self, traced: Traced) -> None:
        """From now on, in this process, something stands around statements while they are carried out: one, or those that go
        out together."""
        for name in ("query", "query_each", "send", "execute", "execute_many"):
            setattr(Session, name, _traced(getattr(Session, name), traced, self.name))

    def back_up(self, target: Path, progress: Callable[[int, int], None]) -> float:
        """Copy the whole database into a new file while others write; the moment (seconds since 1970) that the copy is of.
        `progress` is told how many pages are copied, and of how many. Raises Unusable."""
        raise DatabaseUnusable(f"{self.name} is backed up by its own means: docs/operate/backup.md")

    def close(self) -> None:
        """Give back every connection."""
        raise NotImplementedError

"""What a database is to the store: sessions, transactions, and what may go wrong with one.

What differs between the two is in sqlite.py and postgresql.py, and only there: connections, how a transaction begins and
ends, which errors mean what. opening.py gives the one that a URL names, so that a gateway on SQLite never loads a driver it
does not need.

Statements are written once, with `?` for parameters. SQLAlchemy keeps the pool, the schema and the migrations; the data
path runs on raw DBAPI connections held per thread, because opening a SQLAlchemy transaction for every operation costs 4 to
10 times the driver (ARCHITECTURE section 5).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import sqlalchemy

Row = tuple[Any, ...]

# How long a transaction waits for a lock before it says LockHeld; and how long one that must not wait.
LOCK_TIMEOUT_MS = 500
HURRIED_LOCK_TIMEOUT_MS = 10


class Unusable(Exception):
    """The database, or where it is, cannot be used like this. The text says why, and what to do."""


class CommitLost(Exception):
    """The connection broke while COMMIT was under way. `transaction_id`: to ask PostgreSQL what became of it."""

    def __init__(self, transaction_id: str | None) -> None:
        super().__init__(transaction_id)
        self.transaction_id = transaction_id


class Retry(Exception):
    """The transaction failed before COMMIT was sent, for a reason that may pass: deadlock, time-out, lost connection."""


class LockHeld(Retry):
    """Somebody else holds a lock, and did not give it up while this transaction waited."""


class Session:
    """One connection inside a transaction. Statements have `?` parameters.

    `transaction_id`: to ask PostgreSQL with what became of the transaction, if a statement has told it on the way.
    """

    is_postgresql = False
    transaction_id: str | None = None

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement."""
        found: list[Row] = self._connection.execute(statement, parameters).fetchall()
        return found

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Callable[[], list[Row]]:
        """The same, its rows to be had by calling what this returns. Where statements cost a round trip, those asked one
        after the other cost one together."""
        found = self.query(statement, parameters)
        return lambda: found

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement whose result nobody wants; an error may show only with a later statement."""
        self._connection.execute(statement, parameters)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; the number of rows it touched."""
        count: int = self._connection.execute(statement, parameters).rowcount
        return count

    def ask_count(self, statement: str, parameters: Sequence[Any] = ()) -> Callable[[], int]:
        """The same, the number to be had by calling what this returns."""
        count = self.execute(statement, parameters)
        return lambda: count

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each set of parameters; on SQLite, the number of rows they touched."""
        count: int = self._connection.executemany(statement, parameters).rowcount
        return count


class Database:
    """Base of the two databases.

    `read()` gives a session in a read-only transaction with one snapshot, on a connection that never waits for a writer.
    Those that a thread has open at the same time need different slots: each is a connection that the thread keeps;
    `look()` one for a single statement, which is a snapshot by itself;
    `write()` one in a write transaction that commits at the end of the block and rolls back on any exception; `nowait`
    ones wait a few milliseconds for a lock and no longer.
    `shared`: other processes may write too, so that what was read before may be out of date.
    `refuses_writes`: why, since a write met OutOfSpace and until somebody found that there is room again; else "".
    """

    shared = False

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        self.engine = engine
        self.refuses_writes = ""
        self._local = threading.local()

    @contextmanager
    def read(self, reader: int = 0) -> Iterator[Session]:
        raise NotImplementedError
        yield

    def look(self) -> AbstractContextManager[Session]:
        return self.read()

    @contextmanager
    def write(self, nowait: bool = False) -> Iterator[Session]:
        raise NotImplementedError
        yield

    def committed(self, transaction_id: str | None) -> bool | None:
        """What became of a transaction whose COMMIT was cut off: True, False, or None if nobody can say."""
        return None

    def close(self) -> None:
        """Give back every connection."""
        self.engine.dispose()

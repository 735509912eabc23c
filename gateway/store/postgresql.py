"""PostgreSQL: pipelined sessions with time-outs; which of its errors mean what. See databases.py."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy

from gateway.model.errors import Busy, DatabaseFailed, GatewayError
from gateway.store.databases import (
    HURRIED_LOCK_TIMEOUT_MS,
    LOCK_TIMEOUT_MS,
    CommitLost,
    Database,
    LockHeld,
    Retry,
    Row,
    Session,
)

log = logging.getLogger(__name__)

STATEMENT_TIMEOUT_MS = 30_000
IDLE_TRANSACTION_TIMEOUT_MS = 5_000
# A write transaction ends after this whatever it is doing, so that its locks do (PostgreSQL 17 and later).
WRITE_TRANSACTION_TIMEOUT_MS = 5_000


class PostgresSession(Session):
    """A psycopg connection, in pipeline mode while it writes. Results come in binary form: bytea without hex.

    Where it waits for results it ends its part of the pipeline with a Sync: only after that does the server count the
    session as idle, so that idle_in_transaction_session_timeout frees the locks of a gateway that has stopped. One that
    stopped before its Sync is "active" for ever; transaction_timeout is for that.
    """

    is_postgresql = True

    def __init__(self, connection: Any, pipeline: Any = None) -> None:
        super().__init__(connection)
        self._pipeline = pipeline
        self._asked = self._settled = 0

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self.ask(statement, parameters)()

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Callable[[], list[Row]]:
        cursor = self._connection.cursor(binary=True)
        cursor.execute(_percent(statement), parameters)
        if self._pipeline is None:
            return cursor.fetchall
        self._asked = asked = self._asked + 1

        def answer() -> list[Row]:
            self._settle(asked)
            return cursor.fetchall()

        return answer

    def _settle(self, asked: int) -> None:
        """Have the answers to everything up to a question, unless they are there."""
        if asked > self._settled:
            self._settled = self._asked
            self._pipeline.sync()

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(_percent(statement), parameters)

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        cursor = self._connection.execute(_percent(statement), parameters)
        if self._pipeline is not None:
            self._settled = self._asked
            self._pipeline.sync()  # the count is there only with the answer
        return cursor.rowcount

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> None:
        self._connection.cursor().executemany(_percent(statement), parameters)


_percent_forms: dict[str, str] = {}


def _percent(statement: str) -> str:
    known = _percent_forms.get(statement)
    if known is None:
        known = _percent_forms[statement] = statement.replace("%", "%%").replace("?", "%s")
    return known


class PostgreSQL(Database):
    """A server that other gateways may share. Sessions have time-outs, so that a stopped lock holder freezes nobody.

    `pooled`: behind a pooler in transaction mode (PgBouncer), where sessions are not ours: time-outs are then set in each
    transaction, and statements are not prepared.
    """

    shared = True

    def __init__(self, url: str, pooled: bool = False, schema: str | None = None) -> None:
        timeouts = {
            "lock_timeout": LOCK_TIMEOUT_MS,
            "statement_timeout": STATEMENT_TIMEOUT_MS,
            "idle_in_transaction_session_timeout": IDLE_TRANSACTION_TIMEOUT_MS,
            # For a session that is sending rows to a gateway which has stopped taking them.
            "tcp_user_timeout": 20_000,
            # Every statement of the data path is a look-up by key; without statistics the planner may think otherwise.
            "enable_hashjoin": "off",
            "enable_mergejoin": "off",
            "enable_seqscan": "off",
            "jit": "off",
        }
        arguments: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": None if pooled else 2,
            "keepalives": 1,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            "connect_timeout": 5,
        }
        self._begin_settings: list[str] = []
        if schema:
            timeouts["search_path"] = schema
        if pooled:
            self._begin_settings = [f"SET LOCAL {name} = '{value}'" for name, value in timeouts.items()]
        else:
            said = sqlalchemy.make_url(url).query.get("options", "")
            arguments["options"] = " ".join(
                [str(said), *(f"-c {name}={value}" for name, value in timeouts.items())]
            )
        engine = sqlalchemy.create_engine(
            url, connect_args=arguments, pool_size=32, max_overflow=-1, pool_reset_on_return=None
        )
        super().__init__(engine)

    def _connection(self, purpose: str) -> Any:
        pooled = getattr(self._local, purpose, None)
        if pooled is None or pooled.driver_connection is None or pooled.driver_connection.closed:
            pooled = self._opened(purpose)
            setattr(self._local, purpose, pooled)
        return pooled.driver_connection

    def _opened(self, purpose: str) -> sqlalchemy.PoolProxiedConnection:
        try:
            pooled = self.engine.raw_connection()
            connection: Any = pooled.driver_connection
            if purpose == "writer" and not self._begin_settings and _has_transaction_timeout(connection):
                connection.execute(f"SET transaction_timeout = {WRITE_TRANSACTION_TIMEOUT_MS}")
        except (sqlalchemy.exc.DBAPIError, psycopg.Error) as error:
            raise Busy(str(getattr(error, "orig", error))) from error
        return pooled

    def _drop(self, purpose: str) -> None:
        pooled = getattr(self._local, purpose, None)
        setattr(self._local, purpose, None)
        if pooled is not None:
            pooled.invalidate()

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self._guarded("reader") as connection, connection.pipeline() as pipeline:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._set_locally(connection)
            yield PostgresSession(connection, pipeline)
            connection.execute("COMMIT")

    @contextmanager
    def look(self) -> Iterator[Session]:
        with self._guarded("reader") as connection:
            if not self._begin_settings:
                yield PostgresSession(connection)
                return
            with connection.pipeline() as pipeline:
                connection.execute("BEGIN READ ONLY")
                self._set_locally(connection)
                yield PostgresSession(connection, pipeline)
                connection.execute("COMMIT")

    @contextmanager
    def write(self, hurried: bool = False) -> Iterator[Session]:
        transaction_id = None
        with self._guarded("writer") as connection:
            try:
                with connection.pipeline() as pipeline:
                    connection.execute("BEGIN")
                    self._set_locally(connection)
                    if self._begin_settings and _has_transaction_timeout(connection):
                        connection.execute(f"SET LOCAL transaction_timeout = {WRITE_TRANSACTION_TIMEOUT_MS}")
                    if hurried:
                        connection.execute(f"SET LOCAL lock_timeout = {HURRIED_LOCK_TIMEOUT_MS}")
                    session = PostgresSession(connection, pipeline)
                    identity = session.ask("SELECT pg_current_xact_id()::text")
                    yield session
                    [(identified,)] = identity()
                    transaction_id = identified
                    connection.execute("COMMIT")
            except psycopg.OperationalError as error:
                # An error with a code is the server's word that there was no commit. Without one the connection broke.
                if transaction_id is not None and error.sqlstate is None:
                    raise CommitLost(transaction_id) from error
                raise

    def _set_locally(self, connection: Any) -> None:
        for statement in self._begin_settings:
            connection.execute(statement)

    @contextmanager
    def _guarded(self, purpose: str) -> Iterator[Any]:
        """This thread's connection for a purpose; rolled back after an error of ours, given up after one of the database's.

        psycopg (3.3) may go on believing that a statement was prepared whose turn in a pipeline never came, because one
        before it failed; on the same connection that statement then fails for ever.
        """
        try:
            connection = self._connection(purpose)
            try:
                yield connection
            except psycopg.Error:
                raise
            except BaseException:
                if not connection.closed:
                    connection.execute("ROLLBACK")
                raise
        except CommitLost:
            self._drop(purpose)
            raise
        except psycopg.Error as error:
            self._drop(purpose)
            raise _postgresql_error(error) from error

    def committed(self, transaction_id: str | None) -> bool | None:
        if transaction_id is None:
            return None
        try:
            connection = self._connection("reader")
            [(status,)] = connection.execute(
                "SELECT pg_xact_status(%s::text::xid8)", (transaction_id,)
            ).fetchall()
        except (psycopg.Error, GatewayError):
            self._drop("reader")
            return None
        return {"committed": True, "aborted": False}.get(status)


# InvalidSqlStatementName: driver and server disagree about what is prepared; a new connection knows of nothing.
_RETRYABLE = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.SerializationFailure,
    psycopg.errors.DeadlockDetected,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)

# QueryCanceled: a statement took its whole time, and would again.
_EXHAUSTED = (
    psycopg.errors.DiskFull,
    psycopg.errors.OutOfMemory,
    psycopg.errors.TooManyConnections,
    psycopg.errors.QueryCanceled,
)

# Given up by the server for the time it took. Most of that was spent waiting, or this process had stopped.
_GIVEN_UP = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)


def _postgresql_error(error: psycopg.Error) -> Exception:
    if isinstance(error, _EXHAUSTED):
        return Busy(str(error))
    if isinstance(error, (psycopg.errors.LockNotAvailable, *_GIVEN_UP)):
        return LockHeld(str(error))
    if isinstance(error, _RETRYABLE):
        return Retry(str(error))
    return DatabaseFailed(str(error))


def _has_transaction_timeout(connection: Any) -> bool:
    found: int = connection.info.server_version
    return found >= 170_000

"""PostgreSQL: pipelined sessions with time-outs. databases.py describes the interface."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import psycopg
import psycopg.conninfo
import sqlalchemy
from sqlalchemy import event

from tablegate.gateway.model.errors import GatewayError, OutOfSpace
from tablegate.gateway.store.postgresql import write_ahead_log
from tablegate.gateway.store.postgresql.pipeline import (
    MIN_CONNECT_S,
    Pipeline,
    accepts_connections,
    trace,
    translate_error,
)
from tablegate.gateway.store.postgresql.statements import TRANSACTION_ID, PostgreSQLStatements
from tablegate.gateway.store.sql.databases import (
    DEFINITION_LOCK,
    LOCK_TIMEOUT_MS,
    NOWAIT_LOCK_TIMEOUT_MS,
    CommitInterrupted,
    Database,
    DatabaseUnusable,
    Pending,
    RetryableFailure,
    Row,
    Session,
    Traced,
    Unreachable,
)

log = logging.getLogger(__name__)

STATEMENT_TIMEOUT_MS = 30_000
# Maximum time between two statements of a transaction. Writers hold locks of rows. Readers delay only vacuum and
# migrations, and between two slices of a page a busy server does other work.
IDLE_WRITER_TIMEOUT_MS, IDLE_READER_TIMEOUT_MS = 5_000, 30_000
# Maximum duration of a write transaction, so that its locks are released (PostgreSQL 17 and later).
WRITE_TRANSACTION_TIMEOUT_MS = 5_000
_TRANSACTION_TIMEOUT_SINCE = 170_000
# After a failed connection, further attempts fail at once for this long.
_RECONNECT_PAUSE_S = 0.1
# Identity of a server: its start time and the log position up to which it replayed before it accepted writes (None
# after a normal start). The outcome of a transaction of another server, or from before a crash, is known only up to
# that position.
SERVER = "SELECT pg_postmaster_start_time()::text || coalesce(pg_last_wal_replay_lsn()::text, '')"
_REPLAYED_BEFORE = "SELECT (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint"
_HAS_CITUS = "to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
_SERVER_AND_CITUS = f"{SERVER}, {_HAS_CITUS}"
_GROUP = "SELECT groupid FROM pg_dist_local_group"
_IS_DISTRIBUTED = """
SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('rows') AND partmethod = 'h')"""
# Settings of every session.
_SETTINGS: Mapping[str, int | str] = {
    "lock_timeout": LOCK_TIMEOUT_MS,
    "statement_timeout": STATEMENT_TIMEOUT_MS,
    "idle_in_transaction_session_timeout": IDLE_WRITER_TIMEOUT_MS,
    # Ends a session if the gateway no longer reads its rows.
    "tcp_user_timeout": 20_000,
    # Every statement of the data path looks up keys. Without statistics, the planner may choose otherwise.
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "jit": "off",
}
_DEFINING = {"lock_timeout": "60s", "statement_timeout": "0"}


def _timeouts_of(purpose: str, server_version: int) -> dict[str, str]:
    """Return the settings of a session that depend on its purpose, with values in milliseconds.

    Each is set for every purpose, because the pool can pass a session on.
    """
    is_writer = purpose == "writer"
    idle_ms = IDLE_WRITER_TIMEOUT_MS if is_writer else IDLE_READER_TIMEOUT_MS
    timeouts = {"idle_in_transaction_session_timeout": str(idle_ms)}
    if server_version >= _TRANSACTION_TIMEOUT_SINCE:
        timeouts["transaction_timeout"] = str(WRITE_TRANSACTION_TIMEOUT_MS) if is_writer else "DEFAULT"
    return timeouts


class PostgresSession(Session):
    """A pipeline inside a transaction. Results come in binary form.

    Before it waits for results, the session sends a Sync. Only then does the server count it as idle, so that
    idle_in_transaction_session_timeout releases the locks of a stopped gateway. A session that stops before its Sync
    stays "active" and is ended by transaction_timeout.
    """

    statements = PostgreSQLStatements()

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self.ask(statement, parameters)()

    def ask(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[list[Row]]:
        pipeline = self._pipeline
        answer = pipeline.send(statement, parameters)

        def rows() -> list[Row]:
            if answer.result is None:
                pipeline.settle()
            return pipeline.rows(answer)

        return rows

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        return self.send(statement, parameters)()

    def send(self, statement: str, parameters: Sequence[Any] = ()) -> Pending[int]:
        pipeline = self._pipeline
        answer = pipeline.send(statement, parameters)

        def count() -> int:
            if answer.result is None:
                pipeline.settle()
            return pipeline.count(answer)

        return count

    def settle(self) -> None:
        """Wait for the results of all statements that were sent."""
        self._pipeline.settle()

    def flush(self) -> None:
        """Send buffered statements, so that the server starts on them while other servers get theirs."""
        self._pipeline.flush()

    def copy(self, statement: str, data: bytes) -> int:
        return self._pipeline.copy(statement, data)

    def execute_many(self, statement: str, parameters: Iterable[Sequence[Any]]) -> int:
        for values in parameters:
            self._pipeline.send(statement, values)
        return -1


class PostgreSQL(Database):
    """A PostgreSQL server that several gateways may share. Sessions have time-outs, so that a stopped lock holder
    blocks no others.

    `pooled`: connections go through a pooler in transaction mode (PgBouncer), where session state does not persist.
    Time-outs are then set in each transaction, and statements are not prepared. `patience_ms`: a connection without
    data for this long is closed. `silence_ms`: a connection without data for this long is closed if the server does not
    answer a new connection either. If None, only the server's own time-outs apply.
    """

    shared = True
    looks_up_at_once = True
    name = "postgresql"
    session_class = PostgresSession
    own_settings: ClassVar[Mapping[str, str]] = {}
    """Additional settings of every session of this class."""
    verifies_distribution = True

    def __init__(
        self,
        url: str,
        pooled: bool = False,
        schema: str | None = None,
        patience_ms: int | None = None,
        silence_ms: int | None = None,
    ) -> None:
        timeouts = {**_SETTINGS, **self.own_settings}
        if schema:
            timeouts["search_path"] = schema
        arguments: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": None if pooled else 2,
            "keepalives": 1,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            "connect_timeout": MIN_CONNECT_S if patience_ms or silence_ms else 5,
        }
        self._url = url
        self._pooled = pooled
        self._patience_ms = patience_ms or silence_ms
        self._probes_server = not patience_ms
        self._unreachable = (0.0, "")
        self._written_lock = threading.Lock()
        self._settings = timeouts
        if not pooled:
            options = sqlalchemy.make_url(url).query.get("options", "")
            arguments["options"] = " ".join(
                [str(options), *(f"-c {name}={value}" for name, value in timeouts.items())]
            )
        super().__init__()
        # A thread takes connections from the pool once. Those of ended threads may have broken meanwhile.
        self._engine = sqlalchemy.create_engine(
            url,
            connect_args=arguments,
            pool_size=32,
            max_overflow=-1,
            pool_reset_on_return=None,
            pool_pre_ping=True,
        )
        event.listen(self._engine, "do_connect", _connect)

    @property
    def engine(self) -> sqlalchemy.Engine:
        return self._engine

    def _pipeline(self, purpose: str) -> Pipeline:
        pool_connection = getattr(self._local, purpose, None)
        if (
            pool_connection is None
            or pool_connection.driver_connection is None
            or pool_connection.driver_connection.closed
        ):
            pool_connection = self._open_connection(purpose)
            setattr(self._local, purpose, pool_connection)
        # The pipeline is kept with the pooled connection, because it tracks which statements are prepared on it.
        # Another thread may have used the connection before.
        pipeline: Pipeline | None = pool_connection.info.get("pipeline")
        if pipeline is None:
            connection: Any = pool_connection.driver_connection
            is_alive = partial(accepts_connections, connection.info) if self._probes_server else None
            pipeline = pool_connection.info["pipeline"] = Pipeline(
                connection, not self._pooled, self._patience_ms, is_alive
            )
        return pipeline

    def _open_connection(self, purpose: str) -> sqlalchemy.PoolProxiedConnection:
        retry_at, reason = self._unreachable
        if time.monotonic() < retry_at:
            raise Unreachable(reason)
        try:
            pool_connection = self.engine.raw_connection()
            connection: Any = pool_connection.driver_connection
            if not self._pooled:
                for name, value in _timeouts_of(purpose, connection.info.server_version).items():
                    connection.execute(f"SET {name} = {value}")
            if purpose == "writer":
                pool_connection.info["server"], has_citus = connection.execute(_SERVER_AND_CITUS).fetchone()
                if (
                    self.verifies_distribution
                    and (has_citus and is_distributed(connection)) != self.is_distributed
                ):
                    raise DatabaseUnusable(
                        "the tables were distributed or undistributed since the start: restart the server"
                    )
        except (sqlalchemy.exc.DBAPIError, psycopg.Error) as error:
            reason = str(getattr(error, "orig", error))
            self._unreachable = (time.monotonic() + _RECONNECT_PAUSE_S, reason)
            raise Unreachable(reason) from error
        return pool_connection

    def _drop(self, purpose: str) -> None:
        pool_connection = getattr(self._local, purpose, None)
        setattr(self._local, purpose, None)
        if pool_connection is not None:
            pool_connection.invalidate()

    @contextmanager
    def read(self, reader: int = 0) -> Iterator[Session]:
        with self._use_pipeline(f"reader {reader}") as pipeline:
            pipeline.send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._set_locally(pipeline, "reader")
            yield self.session_class(pipeline)
            pipeline.send("COMMIT")
            pipeline.settle()

    @contextmanager
    def read_one(self, reader: int = 0) -> Iterator[Session]:
        with self._use_pipeline(f"reader {reader}") as pipeline:
            if not self._pooled:
                yield self.session_class(pipeline)  # each query is a transaction by itself
                pipeline.settle()
                return
            pipeline.send("BEGIN READ ONLY")
            self._set_locally(pipeline, "reader")
            yield self.session_class(pipeline)
            pipeline.send("COMMIT")
            pipeline.settle()

    @contextmanager
    def write(self, nowait: bool = False, near: bytes = b"") -> Iterator[Session]:
        transaction_id = None
        with self._use_pipeline("writer") as pipeline:
            try:
                pipeline.send("BEGIN")
                self._set_for_writing(pipeline, nowait)
                session = self.session_class(pipeline)
                yield session
                if session.transaction_id is None:
                    [(session.transaction_id,)] = session.query(f"SELECT {TRANSACTION_ID}")
                transaction_id = session.transaction_id
                pipeline.send("COMMIT")
                pending_position = session.ask(write_ahead_log.WRITTEN) if self.tracks_lsn else None
                pipeline.settle()
                if pending_position is not None:
                    self._note_written(write_ahead_log.parse_written(pending_position())[0])
            except psycopg.OperationalError as error:
                # An error with a code is the server's statement that there was no commit. Without one the connection
                # broke.
                if transaction_id is not None and error.sqlstate is None:
                    raise CommitInterrupted(f"{transaction_id}/{self.server_of_writer()}") from error
                raise

    def _set_locally(self, pipeline: Pipeline, purpose: str) -> None:
        """Set the session settings for one transaction, if there is a pooler."""
        if self._pooled:
            values = {name: f"'{value}'" for name, value in self._settings.items()}
            for name, value in {**values, **_timeouts_of(purpose, pipeline.server_version)}.items():
                pipeline.send(f"SET LOCAL {name} = {value}")

    def _set_for_writing(self, pipeline: Pipeline, nowait: bool) -> None:
        self._set_locally(pipeline, "writer")
        if nowait:
            pipeline.send(f"SET LOCAL lock_timeout = {NOWAIT_LOCK_TIMEOUT_MS}")

    @contextmanager
    def _use_pipeline(self, purpose: str) -> Iterator[Pipeline]:
        """Yield this thread's pipeline for a purpose.

        It is rolled back after an error of the caller and closed after an error of the database.
        """
        try:
            pipeline = self._pipeline(purpose)
            pipeline.begin()
            try:
                yield pipeline
            except (psycopg.Error, CommitInterrupted):
                raise
            except BaseException:
                self._roll_back(purpose, pipeline)
                raise
            pipeline.end()
        except CommitInterrupted:
            self._drop(purpose)
            raise
        except psycopg.Error as error:
            self._drop(purpose)
            translated = translate_error(error)
            if purpose == "writer" and isinstance(translated, OutOfSpace):
                self.refuses_writes = str(translated)
            raise translated from error

    def _roll_back(self, purpose: str, pipeline: Pipeline) -> None:
        try:
            pipeline.settle()
            pipeline.send("ROLLBACK")
            pipeline.settle()
            pipeline.end()
        except psycopg.Error:
            log.info("closed a connection after a failed rollback", exc_info=True)
            self._drop(purpose)

    @contextmanager
    def define(self) -> Iterator[Session]:
        with self.write() as session:
            for name, value in _DEFINING.items():
                session.send(f"SET LOCAL {name} = '{value}'")
            if self._pipeline("writer").server_version >= _TRANSACTION_TIMEOUT_SINCE:
                session.send("SET LOCAL transaction_timeout = 0")
            session.query(f"SELECT pg_advisory_xact_lock({DEFINITION_LOCK})::text")
            yield session

    def log_written(self) -> tuple[int, int]:
        with self.read_one() as session:
            return write_ahead_log.parse_written(session.query(write_ahead_log.WRITTEN))

    def log_replayed(self, reader: int = 0) -> int:
        with self.read_one(reader) as session:
            return write_ahead_log.replayed_position(session)

    def log_timeline(self) -> int:
        with self.read_one() as session:
            return write_ahead_log.timeline(session)

    def _note_written(self, position: int) -> None:
        with self._written_lock:
            self.written_up_to = max(self.written_up_to, position)

    def trace_statements(self, wrap: Traced) -> None:
        trace(partial(wrap, self.name))

    def close(self) -> None:
        for purpose in [*vars(self._local)]:
            self._drop(purpose)  # those of other threads are closed with their threads
        self._engine.dispose()

    def committed(self, transaction_id: str | None) -> bool | None:
        if transaction_id is None:
            return None
        number, position, server = transaction_id.split("/", 2)
        try:
            with self.read_one() as session:
                if session.query("SELECT pg_is_in_recovery()") == [(True,)]:
                    return None
                if session.query(SERVER) != [(server,)]:
                    # This server may have reused the transaction's number, unless it replayed a part of the transaction.
                    # A COMMIT is later in the log than `position`.
                    [(replay_position,)] = session.query(_REPLAYED_BEFORE)
                    if replay_position is not None and replay_position < int(position):
                        return False
                [(status,)] = session.query("SELECT pg_xact_status(?::text::xid8)", (number,))
            if status == "committed" and self.tracks_lsn:
                self._note_written(self.log_written()[0])
        except (RetryableFailure, GatewayError):
            return None
        return {"committed": True, "aborted": False}.get(status)

    def server_of_writer(self) -> str:
        """Return the identity of the server of this thread's write transaction (SERVER)."""
        pool_connection: sqlalchemy.PoolProxiedConnection = self._local.writer
        return str(pool_connection.info["server"])


def is_url_distributed(url: str, schema: str | None) -> bool:
    """Return True if the rows of the database at a URL are distributed.

    An unreachable database counts as not distributed. If that is wrong, PostgreSQL._open_connection later reports it, and the
    server must be restarted. Raises DatabaseUnusable at a Citus worker without our tables, because they would be
    created there.
    """
    plain = sqlalchemy.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(plain, autocommit=True, connect_timeout=5) as connection:
            if schema:
                connection.execute("SELECT set_config('search_path', %s, false)", (schema,))
            if is_distributed(connection):
                return True
            has_citus = connection.execute(f"SELECT {_HAS_CITUS}").fetchone() == (True,)
            if has_citus and connection.execute(_GROUP).fetchone() != (0,):
                raise DatabaseUnusable(
                    "this node is a worker of Citus, and the tables are not distributed: run tablegate distribute at the"
                    " coordinator first"
                )
            return False
    except psycopg.Error:
        return False


def is_distributed(connection: psycopg.Connection[Any]) -> bool:
    """True if `rows` is a distributed table of Citus, in the schema of a connection."""
    if connection.execute(f"SELECT {_HAS_CITUS}").fetchone() != (True,):
        return False
    return connection.execute(_IS_DISTRIBUTED).fetchone() == (True,)


def _connect(dialect: Any, record: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
    """Connect, and raise DatabaseUnusable if the encoding of the database is not UTF-8.

    With SQL_ASCII all texts would come as bytes, and other encodings cannot store every text.
    """
    connection = dialect.connect(*arguments, **keywords)
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        connection.close()
        raise DatabaseUnusable(
            f"the encoding of the PostgreSQL database is {encoding}, and must be UTF8: make another with "
            "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )
    return connection

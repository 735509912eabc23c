"""Pipelined statements and their results over libpq (psycopg.pq), and the meaning of PostgreSQL's errors.

psycopg's cursors cost 50 microseconds for each statement. They send arrays as text, which doubles the bytes of a body
and makes the server parse it. Here each statement is prepared once for each connection, and arrays are sent as bytes.
psycopg's loaders read the results. Transactions and the meaning of errors are in database.py.
"""

from __future__ import annotations

import functools
import re
import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer

from tablegate.gateway.model.errors import Busy, DatabaseFailed, DataCorrupted, OutOfSpace
from tablegate.gateway.store.sql.databases import LockTimeout, RetryableFailure

# InvalidSqlStatementName: the driver and the server disagree about prepared statements. A new connection has none.
_RETRYABLE = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.SerializationFailure,
    psycopg.errors.ReadOnlySqlTransaction,  # the primary has become a standby, a new connection goes to the new primary
    psycopg.errors.DeadlockDetected,
    psycopg.OperationalError,
    psycopg.InterfaceError,
)

# QueryCanceled: a statement exceeded its time-out, and would again.
_EXHAUSTED = (
    psycopg.errors.OutOfMemory,
    psycopg.errors.TooManyConnections,
    psycopg.errors.QueryCanceled,
)

# Ended by a time-out of the server, mostly while waiting for locks or because this process was stopped.
_TIMED_OUT = (psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.TransactionTimeout)


class ServerSilent(psycopg.OperationalError):
    """A server does not answer, and takes no new connection. `address`: its host and port."""

    def __init__(self, reason: str, address: tuple[str, int]) -> None:
        super().__init__(reason)
        self.address = address


def translate_error(error: psycopg.Error) -> Exception:
    """Return the gateway's error for an error of the driver."""
    if isinstance(error, psycopg.errors.DiskFull):
        return OutOfSpace(str(error))
    if isinstance(error, _EXHAUSTED):
        return Busy(str(error))
    if isinstance(error, (psycopg.errors.LockNotAvailable, *_TIMED_OUT)):
        return LockTimeout(str(error))
    if isinstance(error, _RETRYABLE):
        return RetryableFailure(str(error))
    if isinstance(error, (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)):
        return DataCorrupted(str(error))
    return DatabaseFailed(str(error))


Row = tuple[Any, ...]
Wire = tuple[bytes | None, int]
"""A parameter for libpq: bytes, and their format, text (0) or binary (1)."""

# The minimum that libpq accepts, in seconds.
MIN_CONNECT_S = 2
# Maximum number of prepared statements. More texts than this occur only if a caller formats values into statements.
_MAX_PREPARED = 500
_TEXT, _BINARY = 0, 1
_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED, pq.ExecStatus.BAD_RESPONSE)


# Parameters


def _plain(value: Any) -> Wire:
    """Encode a parameter. The server infers its type. Text is sent as binary, because libpq would truncate it at a
    NUL."""
    kind = type(value)
    if kind is bytes:
        return value, _BINARY
    if kind is int:
        return b"%d" % value, _TEXT
    if kind is str:
        return value.encode(), _BINARY
    if value is None:
        return None, _TEXT
    raise TypeError(f"a parameter cannot be of type {kind.__name__}")


def _integers(code: str, width: int, oid: int) -> Callable[[Sequence[int | None]], Wire]:
    """Return an encoder of arrays of integers of this width.

    The header has the dimensions, whether there are NULLs, the type, the length and the lower bound. Each element
    follows with its length before it.
    """
    element = struct.Struct(f">i{code}").pack

    def encode(values: Sequence[int | None]) -> Wire:
        members = [_NULL if value is None else element(width, value) for value in values]
        return _array(oid, members, None in values), _BINARY

    return encode


def _byte_strings(values: Sequence[bytes | None]) -> Wire:
    members = [_NULL if value is None else _length(len(value)) + value for value in values]
    return _array(_BYTEA, members, None in values), _BINARY


def _array(oid: int, members: list[bytes], has_nulls: bool) -> bytes:
    if not members:
        return _array_header(0, 0, oid)[:12]
    return _array_header(1, has_nulls, oid, len(members), 1) + b"".join(members)


def _array_header(dimensions: int, has_nulls: int, oid: int, length: int = 0, lower: int = 1) -> bytes:
    return struct.pack(">iiIii", dimensions, has_nulls, oid, length, lower)


_length = struct.Struct(">i").pack
_NULL = _length(-1)
_BYTEA = 17

_ARRAYS: dict[str, Callable[[Any], Wire]] = {
    "smallint": _integers("h", 2, 21),
    "int": _integers("i", 4, 23),
    "bigint": _integers("q", 8, 20),
    "bytea": _byte_strings,
}


class PipelineStatement:
    """A statement in PostgreSQL's form, with an encoder for each parameter. `?::bigint[]` selects the array encoder."""

    __slots__ = ("command", "encoders")

    def __init__(self, text: str) -> None:
        encoders: list[Callable[[Any], Wire]] = []

        def number(match: re.Match[str]) -> str:
            encoders.append(_ARRAYS[match[2]] if match[2] else _plain)
            return f"${len(encoders)}{match[1] or ''}"

        self.command = re.sub(r"\?(::(\w+)\[\])?", number, text).encode()
        self.encoders = tuple(encoders)


@functools.lru_cache(2 * _MAX_PREPARED)
def _statement(text: str) -> PipelineStatement:
    return PipelineStatement(text)


# Sending and receiving


class StatementResult:
    """The result of one statement, available once the pipeline is settled."""

    __slots__ = ("result",)

    def __init__(self) -> None:
        self.result: pq.abc.PGresult | None = None


def trace(wrap: Callable[[list[str]], AbstractContextManager[Any]]) -> None:
    """Wrap each wait for the results of statements that were sent together in `wrap`, from now on."""
    send, settle = Pipeline.send, Pipeline.settle
    texts_by_pipeline: dict[int, list[str]] = {}

    @functools.wraps(send)
    def noting_send(pipeline: Pipeline, text: str, parameters: Sequence[Any] = ()) -> StatementResult:
        texts_by_pipeline.setdefault(id(pipeline), []).append(text)
        return send(pipeline, text, parameters)

    @functools.wraps(settle)
    def traced_settle(pipeline: Pipeline) -> None:
        texts = texts_by_pipeline.pop(id(pipeline), [])
        if not texts:
            settle(pipeline)
            return
        with wrap(texts):
            settle(pipeline)

    Pipeline.send, Pipeline.settle = noting_send, traced_settle  # type: ignore[assignment,method-assign]


class Pipeline:
    """One psycopg connection in pipeline mode: `begin`, any number of `send` and `settle`, `end`.

    Between `end` and `begin`, psycopg may use the connection too. `prepares`: one server session serves the connection
    all the time, so it keeps prepared statements. `patience_ms`: maximum wait for data from the server, or None
    for no limit. After it, ServerSilent is raised, unless `is_alive` returns True.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        prepares: bool,
        patience_ms: int | None = None,
        is_alive: Callable[[], bool] | None = None,
    ) -> None:
        self._libpq = connection.pgconn
        self._transformer = Transformer(connection)
        self.server_version: int = connection.info.server_version
        self._prepares = prepares
        self._prepared: dict[str, bytes] = {}
        self._due: deque[StatementResult | None] = deque()  # None stands for a Sync
        self._patience_ms = patience_ms
        self._is_alive = is_alive
        self._address = connection.info.host, connection.info.port
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)

    def begin(self) -> None:
        """Enter pipeline mode, so that statements can be sent."""
        self._libpq.enter_pipeline_mode()

    def send(self, text: str, parameters: Sequence[Any] = ()) -> StatementResult:
        """Send a statement. Its result is available after `settle`."""
        statement = _statement(text)
        values: list[bytes | None] = []
        formats: list[int] = []
        for encode, parameter in zip(statement.encoders, parameters, strict=True):
            value, form = encode(parameter)
            values.append(value)
            formats.append(form)
        name = self._prepared.get(text) or self._prepare(text, statement)
        if name:
            self._libpq.send_query_prepared(name, values, formats, _BINARY)
        else:
            self._libpq.send_query_params(statement.command, values, None, formats, _BINARY)
        answer = StatementResult()
        self._due.append(answer)
        return answer

    def send_once(self, text: str) -> None:
        """Send a statement without parameters that will not be repeated, so that it is not prepared."""
        self._libpq.send_query_params(text.encode(), None)
        self._due.append(StatementResult())

    def _prepare(self, text: str, statement: PipelineStatement) -> bytes:
        if not self._prepares or len(self._prepared) == _MAX_PREPARED:
            return b""
        name = self._prepared[text] = b"%s_%d" % (statement.command.split(maxsplit=1)[0], len(self._prepared))
        self._libpq.send_prepare(name, statement.command)
        self._due.append(StatementResult())
        return name

    def settle(self) -> None:
        """Wait for the results of all statements that were sent.

        Raises the first error among them. After an error the connection must be closed: a statement that was not
        executed may be considered prepared.
        """
        if not self._due:
            return
        self._libpq.pipeline_sync()
        self._due.append(None)
        while self._due:
            answer, result = self._due.popleft(), self._next_result()
            if result is None:
                raise psycopg.OperationalError("the connection closed before all results arrived")
            if result.status in _FAILED:
                raise self._error(result)
            if answer is not None:
                answer.result = result
                self._next_result()  # None, the end of a statement's results

    def flush(self) -> None:
        """Send buffered statements without waiting for results."""
        self._libpq.flush()

    def copy(self, text: str, data: bytes) -> int:
        """Run a COPY ... FROM STDIN and return its number of rows.

        libpq supports no COPY in pipeline mode, so this leaves the mode meanwhile. After an error the transaction can
        only be rolled back.
        """
        self.settle()
        self._libpq.exit_pipeline_mode()
        self._libpq.send_query(text.encode())
        result = self._next_result()
        if result is not None and result.status == pq.ExecStatus.COPY_IN:
            self._libpq.put_copy_data(data)
            self._libpq.put_copy_end()
            result = self._next_result()
        if result is None:
            raise psycopg.OperationalError("the connection closed before all results arrived")
        while self._next_result() is not None:
            pass
        self._libpq.enter_pipeline_mode()
        if result.status in _FAILED:
            raise self._error(result)
        return result.command_tuples or 0

    def end(self) -> None:
        """Leave pipeline mode. All statements must have been settled."""
        self._libpq.exit_pipeline_mode()

    def rows(self, answer: StatementResult) -> list[Row]:
        """Return the rows of a settled result."""
        result = answer.result
        assert result is not None
        self._transformer.set_pgresult(result)
        return self._transformer.load_rows(0, result.ntuples, tuple)

    @staticmethod
    def count(answer: StatementResult) -> int:
        """Return the number of rows affected by a settled statement."""
        assert answer.result is not None
        return answer.result.command_tuples or 0

    def _next_result(self) -> pq.abc.PGresult | None:
        libpq = self._libpq
        while libpq.is_busy():
            self._wait(is_sent=not libpq.flush())
            libpq.consume_input()
        return libpq.get_result()

    def _wait(self, is_sent: bool) -> None:
        """Wait until there is data to read, or until unsent data can be written."""
        poll = self._poll
        if not is_sent:
            poll = select.poll()
            poll.register(self._libpq.socket, select.POLLIN | select.POLLOUT)
        while not poll.poll(self._patience_ms):
            if self._is_alive is not None and self._is_alive():
                continue
            raise ServerSilent(f"the database server sent nothing for {self._patience_ms} ms", self._address)

    def _error(self, result: pq.abc.PGresult) -> psycopg.Error:
        if result.status == pq.ExecStatus.PIPELINE_ABORTED:
            return psycopg.errors.PipelineAborted("pipeline aborted")
        if not result.error_field(pq.DiagnosticField.SQLSTATE):
            # An error of libpq itself, not of the server.
            return psycopg.OperationalError(result.get_error_message())
        return psycopg.errors.error_from_result(result)


# Asks a server whether it speaks TLS. It answers with one byte before it asks for credentials.
_SSL_REQUEST = struct.pack(">ii", 8, 80_877_103)


def accepts_connections(info: psycopg.ConnectionInfo) -> bool:
    """True if the server of a connection answers a new connection. No credentials are sent.

    libpq's own function for it (PQping) holds the interpreter lock while it waits.
    """
    try:
        with _connect(info.hostaddr or info.host, info.port) as probe:
            probe.sendall(_SSL_REQUEST)
            return probe.recv(1) != b""
    except OSError:
        return False


def _connect(host: str, port: int) -> socket.socket:
    """Connect to a server by its address, or by the folder of its local socket. Raises OSError."""
    if not host.startswith("/"):
        return socket.create_connection((host, port), timeout=MIN_CONNECT_S)
    local = socket.socket(socket.AF_UNIX)
    local.settimeout(MIN_CONNECT_S)
    try:
        local.connect(f"{host}/.s.PGSQL.{port}")
    except OSError:
        local.close()
        raise
    return local

"""SQLite: one file in write-ahead mode, pooled connections, the meaning of errors. databases.py has the interface."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from tablegate.gateway.model.errors import Busy, CommitUnknown, DatabaseFailed, DataCorrupted, OutOfSpace
from tablegate.gateway.store.sql.databases import (
    LOCK_TIMEOUT_MS,
    NOWAIT_LOCK_TIMEOUT_MS,
    Database,
    DatabaseUnusable,
    LockTimeout,
    Session,
)
from tablegate.gateway.store.sqlite.files import OpenFiles
from tablegate.gateway.store.sqlite.statements import SQLiteStatements

if TYPE_CHECKING:
    import sqlalchemy


class HeldConnection:
    """A connection in use. It becomes free when this object is garbage-collected."""

    __slots__ = ("_connections", "connection")

    def __init__(self, connection: sqlite3.Connection, connections: Connections) -> None:
        self.connection = connection
        self._connections: Connections | None = connections

    def discard(self) -> None:
        """Close the connection for good."""
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.discard(self.connection)

    def __del__(self) -> None:
        if self._connections is not None:
            self._connections.free.append(self.connection)


class Connections:
    """All connections to one database. Thread-safe."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._all: set[sqlite3.Connection] = set()
        self.free: deque[sqlite3.Connection] = deque()

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which `close` also closes. Raises sqlite3.Error."""
        connection = self._connect()
        self._all.add(connection)
        return connection

    def take(self) -> HeldConnection:
        """Return a free or new connection. Raises sqlite3.Error."""
        try:
            connection = self.free.pop()
        except IndexError:
            connection = self.connect()
        return HeldConnection(connection, self)

    def discard(self, connection: sqlite3.Connection) -> None:
        self._all.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections, including those in use by threads, because they keep files open."""
        self.free.clear()
        while self._all:
            self._all.pop().close()


log = logging.getLogger(__name__)

SQLITE_PAGE_BYTES = 8_192
_RETRY_S = 0.005
_EFFECTIVE = os.access in os.supports_effective_ids


def prepare_file(path: Path) -> None:
    """Create a database file that only its owner can access. Raises DatabaseUnusable if SQLite could not use it.

    SQLite gives the log the mode of the database file. So the mode must be right before SQLite first opens the file,
    and a umask would affect the whole process. The mode of an existing file is not changed. Two hard links would have
    one log each ("How To Corrupt An SQLite Database File", 2.5). Symbolic links are followed, as by SQLite.
    """
    path = path.resolve()
    folder = path.parent
    if not folder.is_dir():
        raise DatabaseUnusable(f"the folder of the database, {folder}, does not exist: create it first")
    if not os.access(folder, os.W_OK | os.X_OK, effective_ids=_EFFECTIVE):
        raise DatabaseUnusable(
            f"the folder of the database, {folder}, cannot be written, and SQLite keeps its log there"
        )
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not os.access(path, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):
            raise DatabaseUnusable(f"the database {path} cannot be written") from None
    except OSError as error:
        raise DatabaseUnusable(f"the database {path} cannot be created: {error.strerror}") from None
    names = path.stat().st_nlink
    if path.is_file() and names > 1:
        raise DatabaseUnusable(
            f"the database {path} has {names} hard links, and SQLite would keep a log for each: "
            "remove all but one, or use a symbolic link"
        )


class SQLiteSession(Session):
    """A connection to SQLite inside a transaction."""

    statements = SQLiteStatements()


class _ReadSession(AbstractContextManager[Session]):
    """A reading session, in a transaction or for one statement, which has a snapshot by itself.

    This is a class because a generator would cost more than the transaction, and every tick that reads opens one.
    """

    __slots__ = ("_connection", "_is_one_statement", "_reader", "_readers")

    def __init__(self, readers: dict[int, HeldConnection], reader: int, is_one_statement: bool) -> None:
        self._readers = readers
        self._reader = reader
        self._is_one_statement = is_one_statement
        self._connection = readers[reader].connection

    def __enter__(self) -> Session:
        if not self._is_one_statement:
            try:
                self._connection.execute("BEGIN")
            except sqlite3.Error as error:
                self._give_up(error)
        return SQLiteSession(self._connection)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not self._is_one_statement:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as failure:
                self._give_up(failure)
        if isinstance(error, sqlite3.Error):
            self._give_up(error)

    def _give_up(self, error: sqlite3.Error) -> NoReturn:
        """Close the connection and raise the error as one of the gateway's."""
        self._readers.pop(self._reader).discard()
        raise _sqlite_error(error) from error


class SQLite(Database):
    """One file in write-ahead mode: one writer at a time, any number of readers, each with its own snapshot."""

    name = "sqlite"

    def __init__(
        self, url: str, synchronous: str = "full", reads_only: bool = False, cache_bytes: int = 32 << 20
    ) -> None:
        """`reads_only`: another process of this server writes the file. `cache_bytes`: for each connection."""
        super().__init__()
        self.shared = reads_only
        self._files: OpenFiles | None = None
        self._lost = ""
        self._is_saved = True
        place = url.removeprefix("sqlite://").removeprefix("/") or ":memory:"
        if place != ":memory:" and not place.startswith("file:"):
            place = place.partition("?")[0]
            prepare_file(Path(place))
            # The log is beside the file, not beside a link to it.
            self._files = OpenFiles(Path(place).resolve())
        self._place = place
        self._synchronous = synchronous
        self._cache_kib = max(1, cache_bytes >> 10)
        self._connections = Connections(self._connect)
        if "vfs=memdb" in place:
            self._connections.connect()  # a database in memory is gone with its last connection
        self._writer: HeldConnection | None = None
        self._write_lock = Lock()
        self._is_nowait = False

    def _connect(self) -> sqlite3.Connection:
        self.check_place()
        connection = sqlite3.connect(
            self._place,
            uri=self._place.startswith("file:"),
            check_same_thread=False,
            isolation_level=None,
            cached_statements=512,
            timeout=LOCK_TIMEOUT_MS / 1000,
        )
        connection.execute(f"PRAGMA page_size = {SQLITE_PAGE_BYTES}")
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        # Large enough that a checkpoint is rare, small enough that recovery is fast.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute(f"PRAGMA cache_size = -{self._cache_kib}")
        if self.shared:
            connection.execute("PRAGMA query_only = ON")
        return connection

    @cached_property
    def engine(self) -> sqlalchemy.Engine:
        import sqlalchemy

        return sqlalchemy.create_engine(
            "sqlite://",
            creator=self._connections.connect,
            poolclass=sqlalchemy.pool.NullPool,
            pool_reset_on_return=None,
        )

    def _take_connection(self) -> HeldConnection:
        try:
            return self._connections.take()
        except sqlite3.Error as error:
            raise _sqlite_error(error) from error

    def _readers_with(self, reader: int) -> dict[int, HeldConnection]:
        """Return this thread's read connections by number, including `reader`."""
        try:
            readers: dict[int, HeldConnection] = self._local.readers
        except AttributeError:
            readers = self._local.readers = {}
        if reader not in readers:
            readers[reader] = self._take_connection()
        return readers

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        return _ReadSession(self._readers_with(reader), reader, is_one_statement=False)

    def read_one(self, reader: int = 0) -> AbstractContextManager[Session]:
        return _ReadSession(self._readers_with(reader), reader, is_one_statement=True)

    @contextmanager
    def write(self, nowait: bool = False, near: bytes = b"") -> Iterator[Session]:
        with self._write_lock:
            connection = self._writer_connection()
            if self._lost:
                raise OutOfSpace(self._lost)
            try:
                if nowait != self._is_nowait:
                    self._is_nowait = nowait
                    timeout_ms = NOWAIT_LOCK_TIMEOUT_MS if nowait else LOCK_TIMEOUT_MS
                    connection.execute(f"PRAGMA busy_timeout = {timeout_ms}")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield SQLiteSession(connection)
                    self._commit(connection)
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                translated = _sqlite_error(error)
                if isinstance(translated, OutOfSpace):
                    self.refuses_writes = str(translated)
                raise translated from error

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit, unless the files are lost. Raises OutOfSpace, and CommitUnknown if they are lost at the same time."""
        if self._files is not None and self._files.find_lost():
            connection.execute("ROLLBACK")
            self._refuse_writes(connection)
            raise OutOfSpace(self._lost)
        connection.execute("COMMIT")
        if self._files is not None and self._files.find_lost():
            self._refuse_writes(connection)
            if not self._is_saved:
                raise CommitUnknown(self._lost)

    def _writer_connection(self) -> sqlite3.Connection:
        if self._writer is None:
            self._writer = self._take_connection()
        return self._writer.connection

    def check_place(self) -> None:
        path = "" if self._files is None else self._files.find_lost_database()
        if path:
            self._note_lost(path)
            raise OutOfSpace(self._lost)

    def check_files(self) -> None:
        if self._files is not None and not self.shared:
            with self._write_lock:
                if not self._is_saved or (not self._lost and self._files.find_lost()):
                    try:
                        self._refuse_writes(self._writer_connection())
                    except sqlite3.Error as error:
                        raise _sqlite_error(error) from error
        if self._lost:
            raise OutOfSpace(self._lost)

    def _refuse_writes(self, connection: sqlite3.Connection) -> None:
        """Refuse writes from now on, since they would be lost at a restart.

        If the log was removed, move its contents into the database file, where a restart finds them.
        """
        assert self._files is not None
        path = self._files.find_lost()
        self._note_lost(path)
        self._is_saved = False
        if path.endswith("-wal"):
            [is_busy, *_] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_saved = not is_busy
            if self._is_saved:
                log.error("all acknowledged writes are in the database: restart the server")

    def _note_lost(self, path: str) -> None:
        if not self._lost:
            self._lost = self.refuses_writes = f"{path} was removed or replaced: restart the server"
            log.error("writes are refused: %s", self._lost)

    def define(self) -> AbstractContextManager[Session]:
        return self.write()

    def back_up(self, target: Path, progress: Callable[[int, int], None]) -> float:
        from tablegate.gateway.store.sqlite.files import back_up

        try:
            return back_up(Path(self._place), target, progress)
        except sqlite3.Error as error:
            raise _sqlite_error(error) from error

    def damaged_pages(self, limit_s: float) -> list[str] | None:
        from tablegate.gateway.store.sqlite.files import damaged_pages

        return None if self._files is None else damaged_pages(Path(self._place), limit_s)

    def compact(self) -> tuple[int, int]:
        if self._files is None:
            raise DatabaseUnusable("a database in memory has no file to compact")
        path = Path(self._place)
        before = path.stat().st_size
        with self._write_lock:
            connection = self._writer_connection()
            try:
                connection.execute("VACUUM")
                # The file becomes shorter when the log is moved into it.
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            except sqlite3.Error as error:
                raise _sqlite_error(error) from error
        return before, path.stat().st_size

    def close(self) -> None:
        with self._write_lock:
            if self._writer is not None:
                try:
                    self._writer.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                except sqlite3.Error:
                    log.warning("the checkpoint at shutdown failed", exc_info=True)
                self._writer = None
        self._connections.close()


def _sqlite_error(error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LockTimeout(str(error))
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")):
        return OutOfSpace(str(error))
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_NOMEM")):
        return Busy(str(error))
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DataCorrupted(str(error))
    return DatabaseFailed(str(error))


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log. If processes do so at once, SQLite fails without waiting for its timeout."""
    deadline = time.monotonic() + LOCK_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_S)

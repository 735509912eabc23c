"""Engine commands on one table of a database, with retries while the database is busy or the table changes.

Endpoints of one database in this process share its engine.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.dynamodb.values.keys import index_view as dynamodb_view
from tablegate.adapters.tablestore import DIALECT as TABLE_STORE
from tablegate.adapters.tablestore.views import index_view as tablestore_view
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.database_urls import BadDatabaseURL, normalise, without_password
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability import audit
from tablegate.gateway.security import gate
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.gateway.server.file_lock import FileLock, LockAlreadyHeld
from tablegate.gateway.store.migrating import NewerDatabase, migrate
from tablegate.gateway.store.opening import open_database, prepare_file
from tablegate.gateway.store.sql.databases import DatabaseUnusable
from tablegate.gateway.store.store import Store
from tablegate.transfer.errors import (
    AccessRefused,
    BadAddress,
    CannotResume,
    ServiceUnavailable,
    TableAbsent,
    TransferError,
)


def acquire_database(url: str, settings: Settings, shown: str) -> OpenDatabase:
    """Return the database at a URL, opened if no endpoint has it open. Raises TransferError."""
    with _opening:
        database = _open_databases.get(url)
        if database is None:
            database = _open_databases[url] = OpenDatabase(settings, shown)
        database.users += 1
        return database


def release_database(url: str) -> None:
    """Close the database at a URL if no other endpoint uses it."""
    with _opening:
        database = _open_databases[url]
        database.users -= 1
        if not database.users:
            del _open_databases[url]
            database.close()


class OpenDatabase:
    """An open database with the number of endpoints that use it. An SQLite file is locked against other processes."""

    def __init__(self, settings: Settings, shown: str) -> None:
        self.users = 0
        path = settings.database_path
        self._lock = None
        if path is not None:
            try:
                prepare_file(path)
                self._lock = FileLock(path)
            except (DatabaseUnusable, OSError) as error:
                raise TransferError(f"{shown}: {error}") from None
            except LockAlreadyHeld as held:
                raise TransferError(
                    f"{shown}: another process (pid {held.pid or 'unknown'}) uses this database, probably a server. Stop it, or "
                    "copy through it: dynamodb://TABLE?endpoint=http://HOST:PORT"
                ) from None
        try:
            self._store = _open_store(settings, shown)
            self.engine = _engine_on(self._store)
        except BaseException:
            self._release()
            raise

    def close(self) -> None:
        """Close the engine and unlock the file."""
        self.engine.close()
        self._release()

    def record(self, operation: str, table: str) -> None:
        """Write an operation to the audit log, if the environment configures one (TABLEGATE_AUDIT...)."""
        configured = {name: value for name, value in os.environ.items() if name.startswith("TABLEGATE_AUDIT")}
        if configured:
            from tablegate.gateway.observability.audit_sinks import recording

            try:
                with recording(load({"memory": True}, configured), self._store, sys.stderr):
                    audit.record_operation(operation, [table], "done")
            except OSError as error:
                raise TransferError(f"cannot write the audit log: {error}") from None

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _open_store(settings: Settings, shown: str) -> Store:
    try:
        # Opened as in gateway/app.py, without importing a web framework.
        database = open_database(
            settings.database, settings.synchronous, pooled=not settings.prepared_statements
        )
        migrate(database)
    except NewerDatabase as newer:
        raise TransferError(
            f"{shown}: the database belongs to a later release of tablegate (schema {newer.revision}). Use that release"
        ) from None
    except DatabaseUnusable as error:
        raise TransferError(f"{shown}: {error}") from None
    except Exception as error:
        raise _unreachable(shown, error) from None
    return Store(database)


def _engine_on(store: Store) -> Engine:
    engine = new_engine(store)
    engine.register_view(DYNAMODB, dynamodb_view)
    engine.register_view(TABLE_STORE, tablestore_view)
    return engine


def _unreachable(shown: str, error: Exception) -> TransferError:
    """Return a TransferError with the driver's message. It names host and user, but no password."""
    text = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    is_refused = "authentication" in text or "role" in text
    return (AccessRefused if is_refused else ServiceUnavailable)(f"{shown}: cannot open the database: {text}")


_open_databases: dict[str, OpenDatabase] = {}
_opening = threading.Lock()


_PATIENCE_S = 180.0
_EXPECTED = (
    errors.StaleTable,
    errors.TableBusy,
    errors.TableMissing,
    errors.PositionExpired,
    errors.StreamMissing,
)
"""The errors that callers of `Client.run` handle."""


class Client:
    """One table of a database by name."""

    def __init__(self, address: str) -> None:
        """Parse an address DATABASE-URL#[NAMESPACE/]TABLE without opening the database. Raises BadAddress."""
        url, hash_sign, table_path = address.rpartition("#")
        if not hash_sign or not url or not table_path:
            raise BadAddress(
                f"{_shown_url(address)}: the address must have the form DATABASE-URL#[NAMESPACE/]TABLE"
            )
        namespace, _, self.name = table_path.rpartition("/")
        self.namespace = namespace or SHARED_NAMESPACE
        try:
            self._url = normalise(url)
            self.settings = load({"database": self._url}, {})
        except (BadDatabaseURL, BadSetting) as error:
            raise BadAddress(str(error)) from None
        if self.settings.memory:
            raise BadAddress(
                "a database in memory is private to its process. Use a file or a database server"
            )
        self.shown = f"{_shown_url(self._url)}#{table_path}"
        self._known: Table | None = None
        self._opened: OpenDatabase | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the database if no other endpoint uses it."""
        with self._lock:
            database, self._opened = self._opened, None
        if database is not None:
            release_database(self._url)

    def database(self) -> OpenDatabase:
        """Return the database, which the first call opens. A missing SQLite file is created."""
        with self._lock:
            if self._opened is None:
                self._opened = acquire_database(self._url, self.settings, self.shown)
            return self._opened

    def remember(self, table: Table) -> None:
        with self._lock:
            self._known = table

    def find(self, is_refreshed: bool = False) -> Table:
        """Return the table. Raises TableAbsent, and CannotResume if it was replaced by another table."""
        with self._lock:
            remembered = self._known
        if remembered is not None and not is_refreshed:
            return remembered
        self.require_file()
        try:
            table: Table = self.run([FindTable(self.namespace, self.name)])[0]
        except errors.TableMissing:
            raise TableAbsent(f"{self.shown}: no such table") from None
        if remembered is not None and remembered.id != table.id:
            raise CannotResume(
                f"{self.shown}: the table was dropped and created again during the transfer. Start it again"
            )
        self.remember(table)
        return table

    def require_file(self) -> None:
        """Raise TableAbsent if the database file does not exist, so that no empty database is created."""
        path = self.settings.database_path
        if self._opened is None and path is not None and not path.exists():
            raise TableAbsent(f"{self.shown}: no such database")

    def on_table(
        self, commands_on: Callable[[Table], list[Command[Any]]], returns_errors: bool = False
    ) -> list[Any]:
        """Return the outcomes of commands that name the table, with retries while another process changes it."""
        until = time.monotonic() + _PATIENCE_S
        is_refreshed = False
        while True:
            try:
                return self.run(commands_on(self.find(is_refreshed)), returns_errors)
            except (errors.StaleTable, errors.TableBusy) as error:
                if time.monotonic() > until:
                    raise ServiceUnavailable(f"{self.shown}: the table keeps changing: {error!r}") from None
                is_refreshed = True
                time.sleep(0.05)

    def alter(self, command_on: Callable[[Table], AlterTable]) -> Table:
        """Change the table's definition and return the new table."""
        self.find(is_refreshed=True)
        altered: Table = self.on_table(lambda table: [command_on(table)])[0]
        self.remember(altered)
        return altered

    def run(self, commands: Sequence[Command[Any]], returns_errors: bool = False) -> list[Any]:
        """Return the outcomes of commands. Transient errors are retried for minutes.

        With `returns_errors`, other errors are returned as outcomes. Otherwise they are raised. Raises `_EXPECTED`,
        TransferError.
        """
        until = time.monotonic() + _PATIENCE_S
        pause = 0.1
        while True:
            outcomes = gate.run(self.database().engine, list(commands), None)
            transient = [
                result for result in outcomes if isinstance(result, (errors.Busy, errors.CommitUnknown))
            ]
            full = [result for result in transient if isinstance(result, errors.OutOfSpace)]
            if full:
                raise ServiceUnavailable(f"{self.shown}: the database is out of space: {full[0]}")
            if not transient:
                break
            if time.monotonic() > until:
                raise ServiceUnavailable(f"{self.shown}: the database is not available: {transient[0]}")
            time.sleep(pause)
            pause = min(2 * pause, 5.0)
        for outcome in outcomes:
            if isinstance(outcome, _EXPECTED):
                raise outcome
            if isinstance(outcome, errors.GatewayError) and not returns_errors:
                raise TransferError(f"{self.shown}: the database returned an error: {outcome!r}")
        return outcomes


def _shown_url(address: str) -> str:
    return "tablegate:" + without_password(address)

"""Databases that endpoints of this process have open. Endpoints of one database share its engine."""

from __future__ import annotations

import os
import sys
import threading

from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.dynamodb.values.keys import index_view as dynamodb_view
from tablegate.adapters.tablestore import DIALECT as TABLE_STORE
from tablegate.adapters.tablestore.values.views import index_view as tablestore_view
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.observability import audit
from tablegate.gateway.server.file_lock import FileLock, LockAlreadyHeld
from tablegate.gateway.store.opening.migrating import NewerDatabase, migrate
from tablegate.gateway.store.opening.opening import open_database, prepare_file
from tablegate.gateway.store.sql.databases import DatabaseUnusable
from tablegate.gateway.store.store import Store
from tablegate.transfer.errors import AccessRefused, ServiceUnavailable, TransferError


def acquire(url: str, settings: Settings, shown: str) -> OpenDatabase:
    """Return the database at a URL, opened if no endpoint has it open. Raises TransferError."""
    with _opening:
        database = _open_databases.get(url)
        if database is None:
            database = _open_databases[url] = OpenDatabase(settings, shown)
        database.users += 1
        return database


def release(url: str) -> None:
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

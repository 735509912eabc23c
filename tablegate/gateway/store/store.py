"""The store: one database, its catalogue and its health."""

from __future__ import annotations

import contextlib
import logging
from contextlib import AbstractContextManager

from tablegate.gateway.model.errors import DataCorrupted, SchemaTooNew
from tablegate.gateway.store.migrating import NewerDatabase, revision_of, steps
from tablegate.gateway.store.sql import damage
from tablegate.gateway.store.sql.databases import Database, Session
from tablegate.gateway.store.tables.catalog import Catalog

log = logging.getLogger(__name__)


class Store:
    """A database with its catalogue. `read()` and `write()` open sessions for the functions of this package.

    `table_cache_bytes`: the memory of cached descriptors of tables.
    """

    def __init__(self, database: Database, table_cache_bytes: int = 64 << 20) -> None:
        self.database = database
        self.catalog = Catalog(table_cache_bytes)
        self.damage = damage.DamageLog()
        self._revisions = steps()
        self._is_schema_too_new = False

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        """Open a read-only snapshot. Concurrent sessions of a thread need different numbers `reader`."""
        return self.database.read(reader)

    def write(self, nowait: bool = False, near: bytes = b"") -> AbstractContextManager[Session]:
        """Open a write transaction, which commits at the end of the block and rolls back on any exception.

        `nowait`: wait only a few milliseconds for a lock. `near`: a partition to which it will write, or b"". Raises
        SchemaTooNew.
        """
        if self._is_schema_too_new:
            raise SchemaTooNew("the database has the schema of a later release")
        return self.database.write(nowait, near)

    def check_schema(self) -> None:
        """Read the revision of the schema. Raises SchemaTooNew if this release cannot serve it.

        Writes are then refused until a later check succeeds.
        """
        try:
            revision_of(self.database, self._revisions)
        except NewerDatabase as newer:
            text = f"the database has schema {newer.revision} of a later release, this server has {self._revisions[-1]}"
            if not self._is_schema_too_new:
                log.error("%s: install that release or a later one", text)
            self._is_schema_too_new = True
            raise SchemaTooNew(text) from None
        self._is_schema_too_new = False

    def note_damage(self, error: DataCorrupted) -> None:
        """Log and record damaged data that was read. Must not be called inside a session."""
        table = None
        if error.row is not None:
            with contextlib.suppress(Exception), self.read() as session:
                table = damage.table_of(session, *error.row)
        self.damage.note(error, table)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

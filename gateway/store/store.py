"""The store: one database, its catalogue, and what became of commits that were cut off."""

from __future__ import annotations

import contextlib
import logging
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from tablegate.gateway.model.errors import DataCorrupted, SchemaTooNew
from tablegate.gateway.store.opening.migrating import NewerDatabase, revision_of, steps
from tablegate.gateway.store.sql import damage
from tablegate.gateway.store.sql.databases import Database, Session
from tablegate.gateway.store.tables.catalog import Catalog

if TYPE_CHECKING:
    from tablegate.gateway.store.tables.backup_files import BackupDirectory

log = logging.getLogger(__name__)


class Store:
    """`read()` and `write()` give sessions; the functions of rows, entries, tokens and changes take them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.catalog = Catalog()
        # What vector searches keep in memory, how many bytes of it at most, and of how many vectors on they are approximate
        # (0: never); see engine/vectors/searching.py.
        self.vector_images: Any = None
        self.vector_memory_bytes = 0
        self.vector_approximate_from = 0
        self.backup_files: BackupDirectory | None = None
        """Where backups are kept as files; None: in the database."""
        self.damage = damage.DamageLog()
        self._revisions = steps()
        self._is_schema_too_new = False

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        """A session in a read-only snapshot. Those that a thread has open at the same time have different numbers as `reader`."""
        return self.database.read(reader)

    def write(self, nowait: bool = False, near: bytes = b"") -> AbstractContextManager[Session]:
        """A write transaction: commits at the end of the block, rolls back on any exception. `nowait`: waits for no lock
        longer than a moment. `near`: a partition that it is about to write to, if it is known. Raises SchemaTooNew."""
        if self._is_schema_too_new:
            raise SchemaTooNew("the database has the schema of a later release")
        return self.database.write(nowait, near)

    def check_schema(self) -> None:
        """Read the revision of the schema. Raises SchemaTooNew if it is one that this release cannot serve; from then on, until
        it is found otherwise, nothing is written."""
        try:
            revision_of(self.database, self._revisions)
        except NewerDatabase as newer:
            text = f"the database has schema {newer.revision} of a later release, this server has {self._revisions[-1]}"
            if not self._is_schema_too_new:
                log.error("%s: replace the server by that release", text)
            self._is_schema_too_new = True
            raise SchemaTooNew(text) from None
        self._is_schema_too_new = False

    def note_damage(self, error: DataCorrupted) -> None:
        """Log damaged data that was read, and remember it. Not to be called inside a session."""
        table = None
        if error.row is not None:
            with contextlib.suppress(Exception), self.read() as session:
                table = damage.table_of(session, *error.row)
        self.damage.note(error, table)

    def close(self) -> None:
        """Give back every connection."""
        self.database.close()

"""The store: one database, its catalogue, and what became of commits that were cut off."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from gateway.store.catalog import Catalog
from gateway.store.databases import Database, Session

if TYPE_CHECKING:
    from gateway.store.backup_files import BackupDirectory


class Store:
    """`read()` and `write()` give sessions; the functions of rows, entries, tokens and changes take them."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.catalog = Catalog()
        # By table, on the monotonic clock; see engine/writing.py.
        self.looks_first_until: dict[int, float] = {}
        # What vector searches keep in memory, how many bytes of it at most, and of how many vectors on they are approximate
        # (0: never); see engine/searching.py.
        self.vector_images: Any = None
        self.vector_memory_bytes = 0
        self.vector_approximate_from = 0
        self.backup_files: BackupDirectory | None = None
        """Where backups are kept as files; None: in the database."""

    @property
    def shared(self) -> bool:
        """Whether other processes may change what this one has cached."""
        return self.database.shared

    def read(self, reader: int = 0) -> AbstractContextManager[Session]:
        """A session in a read-only snapshot. Those that a thread has open at the same time have different numbers as `reader`."""
        return self.database.read(reader)

    def look(self) -> AbstractContextManager[Session]:
        """A session for a single statement that reads."""
        return self.database.look()

    def write(self, nowait: bool = False, near: bytes = b"") -> AbstractContextManager[Session]:
        """A write transaction: commits at the end of the block, rolls back on any exception. `nowait`: waits for no lock
        longer than a moment. `near`: a partition that it is about to write to, if it is known."""
        return self.database.write(nowait, near)

    def close(self) -> None:
        """Give back every connection."""
        self.database.close()

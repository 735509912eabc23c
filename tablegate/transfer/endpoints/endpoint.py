"""The interface of an endpoint: a table that can be described, read, written and followed.

Rows and keys have the gateway's types: a `Row` (gateway/model/values/rows.py) with typed values, and positions of
the table's own key schema. Rows have the endpoint's own schema. Conversions between services are in
transfer/mapping.

Positions of scans and streams are JSON values, so that another process can resume a job. All methods are
synchronous. `scan`, `get`, `write` and `delete` may be called from several threads at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.errors import TableAbsent

JSON = Any
"""A value that json.dumps accepts."""


class Service(Enum):
    """The service that determines an endpoint's values, keys, names and limits. The value is its name on the command
    line."""

    DYNAMODB = "dynamodb"
    AZURE_TABLE = "azure-table"
    TABLE_STORE = "tablestore"
    TABLEGATE = "tablegate"
    """All features of the others, unchanged."""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a table.

    - `service`: the table's service, also if a database or a file holds tables of several services.
    - `properties`: data of a dialect, which is copied only between tablegate databases.
    - `rows`, `size_bytes`: approximate, None if unknown.
    - `is_stored`: the table is in a tablegate database or file, where attributes have their gateway names
    (`my-attr`). Otherwise
      they have the service's names (`my_x002D_attr` in Azure Table).
    - `other_indexes`: indexes of other kinds than the ordered ones.
    """

    name: str
    service: Service
    key_schema: KeySchema
    indexes: tuple[NewIndex, ...] = ()
    rules: Rules = field(default_factory=Rules)
    properties: dict[str, Any] = field(default_factory=dict)
    rows: int | None = None
    size_bytes: int | None = None
    is_stored: bool = False
    other_indexes: tuple[BaseIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that is invalid for its own service, such as an item with an empty attribute name.

    `wire` is the row as the service sent it, as JSON.
    """

    key: Key
    reason: str
    wire: bytes

    @property
    def position(self) -> Position:
        return self.key.position

    @property
    def size_bytes(self) -> int:
        """Approximate size for read limits."""
        return len(self.wire)


AnyRow = Row | UnreadableRow


class ScanPage(NamedTuple):
    """Rows of a segment in a stable order, and the position to resume after them. None at the end of the segment."""

    rows: list[Row]
    resume: JSON | None
    unreadable: Sequence[UnreadableRow] = ()

    @property
    def all_rows(self) -> list[AnyRow]:
        return [*self.rows, *self.unreadable]

    @classmethod
    def of(cls, rows: Sequence[AnyRow], resume: JSON | None) -> ScanPage:
        """Return a page of rows. Some of them may be unreadable."""
        return cls(
            [row for row in rows if isinstance(row, Row)],
            resume,
            [row for row in rows if isinstance(row, UnreadableRow)],
        )


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be written: a stable code of the service or of a rule, and a sentence."""

    row: Row
    code: str
    reason: str


class ChangedKeys(NamedTuple):
    """Keys of rows that were written or deleted, oldest first, from one poll.

    A change means only that a row may have changed. The follower reads the current row. So duplicates and disorder
    between keys are harmless.

    - `position`: where the next call of `changes` begins. It must be stored together with the keys.
    - `at_ms`: time of the newest change in milliseconds since 1970, None if there is none.
    - `caught_up`: there were no more changes at the time of the poll.
    """

    keys: list[Key]
    position: JSON
    at_ms: int | None
    caught_up: bool


class Endpoint(ABC):
    """A table at some service. Created by `tablegate.transfer.endpoints.addresses.open_endpoint`."""

    service: Service
    """The service that determines values, keys, names and limits."""
    shown: str
    """The address for messages and job files, without secrets."""
    follows: ClassVar[bool] = True
    """True if `capture` and `changes` report every change."""
    unseen_changes: ClassVar[str] = ""
    """A sentence about changes that `changes` does not report. Empty if `follows`."""
    takes_changes: ClassVar[bool] = True
    """True if `write` replaces rows and `delete` deletes them, as following needs. A file is written once."""
    repeats_keys: ClassVar[bool] = False
    """True if several rows of a scan may have one key, as lines of a file may."""
    looks_up: ClassVar[bool] = True
    """True if `get` finds rows by key. Otherwise the table can only be scanned."""
    write_rows: ClassVar[int] = 100
    """Maximum number of rows for one call of `write`, `get` or `delete`."""

    @abstractmethod
    def describe(self) -> Definition:
        """Return the table's definition. Raises TableAbsent, AccessRefused, ServiceUnavailable."""

    def existing(self) -> Definition | None:
        """Return the table that a copy would write to, None if it must be created. Raises AccessRefused,
        ServiceUnavailable."""
        try:
            return self.describe()
        except TableAbsent:
            return None

    @abstractmethod
    def create(self, definition: Definition) -> list[str]:
        """Create the table and wait until it can be written. Return sentences about unsupported parts of the
        definition.

        An existing table of that name and key is left unchanged.
        """

    def count_existing(self, limit: int) -> int | None:
        """Return the number of rows of the table that a copy would write to, at most `limit`. None if it must be created.

        Rows are read, because the numbers in definitions are approximate.
        """
        return None if self.existing() is None else self._count_rows(limit)

    def _count_rows(self, limit: int) -> int:
        number = 0
        for segment in self.segments(1):
            for page in self.scan(segment):
                number += len(page.all_rows)
                if number >= limit:
                    return limit
        return number

    def clear(self, before_delete: Callable[[Sequence[Row]], None]) -> None:
        """Delete all rows of an existing table. `before_delete` waits until some rows may be deleted."""
        schema = self.describe().key_schema
        for segment in self.segments(1):
            for page in self.scan(segment):
                before_delete(page.rows)
                keys = [schema.decode(row.position) for row in page.all_rows]
                for at in range(0, len(keys), self.write_rows):
                    self.delete(keys[at : at + self.write_rows])

    def reopen(self) -> None:  # noqa: B027
        """Continue what an earlier process began with `create`. Only files need this, as they have no name until
        complete."""

    def finish(self) -> None:  # noqa: B027
        """Complete the copy after all rows are written. Files get their end and their name.

        Not called if a copy stops early, so that an incomplete file never looks complete.
        """

    @abstractmethod
    def segments(self, count: int) -> list[JSON]:
        """Divide the table into about `count` disjoint parts for parallel reading. They stay valid in another
        process."""

    @abstractmethod
    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        """Yield the pages of a segment from its beginning or after a page. The last page has `resume` None.

        Rows that are written during the scan may be missing. All others appear exactly once.
        """

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> Sequence[AnyRow | None]:
        """Return the current rows of these keys in order, with strong consistency if the service supports it."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> list[Reject]:
        """Write rows, replacing existing ones. Rows that are not among the rejects are durable afterwards.

        Throttling and lost connections are retried for minutes. Then ServiceUnavailable is raised.
        """

    @abstractmethod
    def delete(self, keys: Sequence[Key]) -> None:
        """Delete rows that may be missing already."""

    @abstractmethod
    def capture(self) -> JSON:
        """Return the current position, from which `changes` reports every change that begins after this call.

        Enables the table's stream if the service has streams. Raises TransferError if the source cannot be
        followed.
        """

    @abstractmethod
    def changes(self, position: JSON) -> ChangedKeys:
        """Poll once for changes after a position without waiting. Raises PositionLost."""

    def list_tables(self) -> list[str]:
        """Return the names of all tables of this account, database or folder, for addresses with a pattern."""
        raise NotImplementedError(f"{self.shown}: tables cannot be listed")

    @abstractmethod
    def close(self) -> None:
        """Close connections and files, also of an incomplete copy (see `finish`)."""

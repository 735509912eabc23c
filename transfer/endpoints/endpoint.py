"""The protocol of an endpoint: a table somewhere, to be described, read, written and followed.

An endpoint speaks the gateway's own terms: a row is a `Row` (gateway/model/values/rows.py), whose values are typed. Keys are
positions of the table's own key schema. What its service cannot hold is not its business (transfer/mapping): it is only
given rows of its own schema, and writes them as they are.

All positions that leave an endpoint (of a scan, of a stream of changes) are JSON values, so that a job can be resumed by another
process. All methods are synchronous; `scan`, `get`, `write` and `delete` may be called from several threads at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from tablegate.gateway.model.commands.table_commands import NewIndex, NewVectorIndex
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.errors import TableAbsent

JSON = Any
"""A value that json.dumps takes."""


class Service(Enum):
    """Whose values, keys, names and limits an endpoint has. The value is what the command line calls it."""

    DYNAMODB = "dynamodb"
    AZURE_TABLE = "azure-table"
    TABLE_STORE = "tablestore"
    TABLEGATE = "tablegate"
    """Everything that any of the others has, as it is."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as an endpoint describes it.

    `service`: whose table it is, also where the endpoint is a database or a file that holds several services' tables.
    `properties`: what a dialect keeps for itself, carried over between databases of tablegate only.
    `rows`, `size_bytes`: approximate; None: unknown.
    `is_stored`: it is in a database of tablegate, or a file of it, where attributes have their names in the gateway (`my-attr`);
    otherwise they have those of the service (`my_x002D_attr` in Azure Table).
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
    vector_indexes: tuple[NewVectorIndex, ...] = ()


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that its service has and that no service of its kind should have, such as an item with an empty attribute name.
    `wire`: the row as the service gave it, JSON."""

    key: Key
    reason: str
    wire: bytes

    @property
    def position(self) -> Position:
        """Where it stands in the table."""
        return self.key.position

    @property
    def size_bytes(self) -> int:
        """About how much of the service's capacity it takes to read."""
        return len(self.wire)


AnyRow = Row | UnreadableRow


class ScanPage(NamedTuple):
    """Rows of a segment in some order that stays the same, and where to go on after them; None: the segment ends here."""

    rows: list[Row]
    resume: JSON | None
    unreadable: Sequence[UnreadableRow] = ()

    @property
    def all_rows(self) -> list[AnyRow]:
        """Both kinds of rows."""
        return [*self.rows, *self.unreadable]

    @classmethod
    def of(cls, found: Sequence[AnyRow], resume: JSON | None) -> ScanPage:
        """A page of rows, some of which may be unreadable."""
        return cls(
            [row for row in found if isinstance(row, Row)],
            resume,
            [row for row in found if isinstance(row, UnreadableRow)],
        )


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be written, and why: a stable code of the service or of a rule, and a sentence for people."""

    row: Row
    code: str
    reason: str


class ChangedKeys(NamedTuple):
    """Keys of rows that were written or deleted, oldest first, as far as one look showed.

    A change says that a row is not what it was, and no more: whoever follows reads the row as it is now. That makes doubles and
    disorder between keys harmless. `position`: what to give to `changes` to go on; to be remembered together with the keys.
    `at_ms`: when the newest of the changes was made, in milliseconds since 1970; None: nothing new. `caught_up`: nothing more was
    there at the time of the look.
    """

    keys: list[Key]
    position: JSON
    at_ms: int | None
    caught_up: bool


class Endpoint(ABC):
    """A table somewhere. Made by `tablegate.transfer.endpoints.addresses.open_endpoint`."""

    service: Service
    """Whose values, keys, names and limits this end has."""
    shown: str
    """The address for people and job files: without any secret."""
    follows: ClassVar[bool] = True
    """Whether `capture` and `changes` see every change."""
    unseen_changes: ClassVar[str] = ""
    """What `changes` cannot see, in a sentence; empty where `follows`."""
    takes_changes: ClassVar[bool] = True
    """Whether `write` replaces rows and `delete` deletes them, so that a copy can follow its source. A file is written once."""
    looks_up: ClassVar[bool] = True
    """Whether `get` finds rows by their keys; otherwise the table can only be read as a whole."""
    write_rows: ClassVar[int] = 100
    """How many rows at most one call of `write`, `get` or `delete` is good for."""

    @abstractmethod
    def describe(self) -> Definition:
        """The table. Raises TableAbsent, AccessRefused, ServiceUnavailable."""

    def existing(self) -> Definition | None:
        """The table that a copy would write to, None if the copy has to make it. Raises AccessRefused, ServiceUnavailable."""
        try:
            return self.describe()
        except TableAbsent:
            return None

    @abstractmethod
    def create(self, definition: Definition) -> list[str]:
        """Make the table and wait until it takes writes. Gives sentences about what of the definition could not be carried
        over. A table of that name and key that is already there is left as it is."""

    def reopen(self) -> None:  # noqa: B027
        """Go on writing what a process before this one began with `create`, in place of it. Only files, which have no name
        before they are whole, need to know; elsewhere there is nothing to do."""

    def finish(self) -> None:  # noqa: B027
        """All rows of the copy are written. Files get their end and their name by it; elsewhere there is nothing to do. Not
        called where a copy stopped before its end, so that nothing half-written looks whole."""

    @abstractmethod
    def segments(self, wanted: int) -> list[JSON]:
        """Parts that together are the whole table and do not overlap, about as many as wanted, for parallel reading. The same
        for a later process that is given this list back."""

    @abstractmethod
    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        """The rows of a segment, page by page, from its beginning or after a page. Rows written meanwhile may or may not be
        there; every other row is there exactly once. The last page has `resume` None."""

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> Sequence[AnyRow | None]:
        """The rows of these keys as they are now (strongly consistent where the service can), in order."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> list[Reject]:
        """Put rows, replacing what is there. What is not among the rejects is durable when this returns. Throttling and lost
        connections are tried again, for minutes; then ServiceUnavailable."""

    @abstractmethod
    def delete(self, keys: Sequence[Key]) -> None:
        """Delete rows that may or may not be there."""

    @abstractmethod
    def capture(self) -> JSON:
        """The position of now: `changes` from here on tells every change that begins after this call. Switches a stream on
        where the service has one and the table has none. Raises TransferError if the source cannot be followed."""

    @abstractmethod
    def changes(self, position: JSON) -> ChangedKeys:
        """One look for changes after a position; does not wait. Raises PositionLost."""

    def list_tables(self) -> list[str]:
        """Names of all tables of this account, database or folder, for addresses with a pattern."""
        raise NotImplementedError(f"{self.shown}: tables cannot be listed")

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files, whether or not all was written (see `finish`)."""

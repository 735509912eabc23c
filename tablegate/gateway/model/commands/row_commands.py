"""Commands that read and write rows.

Commands that are created for each request or row are named tuples. These are immutable and three times as fast to
create as frozen dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, View
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Concatenation, Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row


class VisibleAttributes(Protocol):
    """The visible part of a row. Evaluated only for callers with conditions on attributes."""

    @property
    def names(self) -> frozenset[str]:
        """The top-level attributes that are returned or evaluated. Empty: the rows are only counted."""
        ...


class VisibleNames(NamedTuple):
    """A fixed set of visible attributes."""

    names: frozenset[str]


class Get(NamedTuple):
    """Read one row. Outcome: Row or None. Error: TransactionMissing.

    - `transaction`: the id of an open local transaction. The read sees its staged writes.
    - `may_be_old`: an eventually consistent read, which a replica may answer.
    - `visible_attributes`: the visible part of the row. None: everything.
    """

    table: Table
    position: Position
    transaction: str = ""
    may_be_old: bool = False
    visible_attributes: VisibleAttributes | None = None

    def outcome(self) -> Row | None:
        """Never called. See Command."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ReadAll(BaseCommand[list[Row | None]]):
    """Read rows of any tables in one snapshot. Outcome: list of Row or None, in order.

    `max_bytes`: maximum billed size of all rows together. The outcome of the row that exceeds it is LimitExceeded
    `rows-together`. No row after it is read.
    """

    gets: tuple[Get, ...]
    max_bytes: int | None = None
    may_be_old: ClassVar[bool] = False


class Read(NamedTuple):
    """Read a page of a table or one of its indexes, in key order. Outcome: Page. Errors: IndexMissing, TableBusy.

    - `range`: positions of rows, or of entries if there is an index.
    - `segment`: a part of a parallel scan. The range is ignored, and `after` (position of a row or entry) resumes.
    - `whole_rows`: read all of each row through an index, not only its projection.
    - `cut`: a pure function that returns the visible part of a row (columns, versions), or None. Filter, limits and
      page use the visible part. A row without one counts as evaluated, has no bytes and is not returned.
    - `transaction`: the id of an open local transaction. The read sees its staged writes in the table, not in indexes.
      Error: TransactionMissing.
    - `concatenation`: the reader needs only this part of each row, so rows may be concatenated (Page.concatenated).
    - `may_be_old`, `visible_attributes`: as in Get.
    """

    table: Table
    range: KeyRange
    limits: PageLimits
    index: Index | None = None  # type: ignore[assignment]  # hides tuple.index, which is not called
    reverse: bool = False
    filter: Predicate = ALWAYS
    view: View | None = None
    segment: Segment | None = None
    after: Position | None = None
    whole_rows: bool = False
    cut: Callable[[Row], Row | None] | None = None
    transaction: str = ""
    concatenation: Concatenation | None = None
    may_be_old: bool = False
    visible_attributes: VisibleAttributes | None = None

    def outcome(self) -> Page:
        """Never called. See Command."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class IdempotencyToken:
    """An idempotency token: a name in a scope, the digest of the request, and its lifetime in milliseconds."""

    scope: str
    name: str
    digest: bytes
    lifetime_ms: int


class WriteGroup(NamedTuple):
    """Atomic writes. Outcome: a list of WriteOutcome, one for each write, in order.

    A group of one write fails with the error of that write, a larger one with GroupRefused. If an equal request has
    used the token before, the outcome is ReplayedOutcome. If a local transaction has locked the partition, the error is
    PartitionLocked. `transaction`: the local transaction that these writes commit.
    """

    writes: tuple[Write, ...]
    token: IdempotencyToken | None = None
    transaction: str = ""

    def outcome(self) -> list[WriteOutcome] | ReplayedOutcome:
        """Never called. See Command."""
        raise NotImplementedError


class BulkLoad(NamedTuple):
    """Put many rows of one table atomically, replacing existing ones. Outcome: None, or the error that the group would
    get.

    The effect is that of a WriteGroup of puts that return no old row. It is faster for new rows.
    """

    table: Table
    rows: Sequence[tuple[Position, Contents]]

    def outcome(self) -> None:
        """Never called. See Command."""
        raise NotImplementedError


class WriteOutcome(NamedTuple):
    """A row before and after a write."""

    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class ReplayedOutcome:
    """The outcome for a repeated idempotency token: billed sizes of each first write (old, new). None: there was no
    row."""

    sizes: tuple[tuple[int | None, int | None], ...]


GroupOutcome = list[WriteOutcome] | ReplayedOutcome | GatewayError
"""The outcome or the error of a group of writes. ReplayedOutcome: only for groups with a token."""

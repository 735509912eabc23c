"""Commands that read and write rows.

Commands that are made for every request or row are named tuples: as immutable as a dataclass and three times quicker to make.
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
    """The part of a row that the reader will show. Looked up only for callers whose rights depend on it."""

    @property
    def names(self) -> frozenset[str]:
        """The top-level attributes that are shown or evaluated. Empty: the rows are only counted."""
        ...


class VisibleNames(NamedTuple):
    """These attributes."""

    names: frozenset[str]


class Get(NamedTuple):
    """Read one row. Outcome: Row or None; TransactionMissing.

    - `transaction`: read as this open local transaction sees the row.
    - `may_be_old`: an eventually consistent read, which a replica may answer.
    - `shown`: the part of the row that the reader will show. None: everything.
    """

    table: Table
    position: Position
    transaction: str = ""
    may_be_old: bool = False
    shown: VisibleAttributes | None = None

    def outcome(self) -> Row | None:
        """Never called. See Command."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ReadAll(BaseCommand[list[Row | None]]):
    """Read rows of any tables in one snapshot. Outcome: list of Row or None, in order.

    `max_bytes`: maximum billed size of all rows together. The row that exceeds it is LimitExceeded `rows-together`, and no row
    after it is read.
    """

    gets: tuple[Get, ...]
    max_bytes: int | None = None
    may_be_old: ClassVar[bool] = False


class Read(NamedTuple):
    """Read a page of a table or one of its indexes, in key order. Outcome: Page; IndexMissing, TableBusy.

    - `range`: positions of rows, or of entries if there is an index.
    - `segment`: a part of a parallel scan. The range is ignored, and `after` (position of a row or entry) resumes.
    - `whole_rows`: read all of each row through an index, not only its projection.
    - `cut`: a pure function that returns the visible part of a row (columns, versions), or None. Filter, limits and page use
      the visible part. A row without one counts as evaluated, has no bytes and is not returned.
    - `cut_many`: the same for many rows at once, if `cut` never returns None. `cut` is given as well.
    - `transaction`: read as this local transaction sees the table (not its indexes); TransactionMissing.
    - `concatenation`: the reader needs no more of a row than this says, so many may come in one piece (Page.concatenated).
    - `may_be_old`, `shown`: as in Get.
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
    cut_many: Callable[[Sequence[Row]], list[Row]] | None = None
    transaction: str = ""
    concatenation: Concatenation | None = None
    may_be_old: bool = False
    shown: VisibleAttributes | None = None

    def outcome(self) -> Page:
        """Never called. See Command."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class IdempotencyToken:
    """An idempotency token: a name in a scope, what the request was (digest), and how long it is remembered."""

    scope: str
    name: str
    digest: bytes
    lifetime_ms: int


class WriteGroup(NamedTuple):
    """Atomic writes. Outcome: a list of Outcome, one for each write, in order.

    A group of one write fails with the error of that write, a larger one with GroupRefused. If an equal request has used the
    token before, the outcome is Replayed. A partition that a local transaction has locked is PartitionLocked. `transaction`:
    the local transaction that these writes commit.
    """

    writes: tuple[Write, ...]
    token: IdempotencyToken | None = None
    transaction: str = ""

    def outcome(self) -> list[WriteOutcome] | ReplayedOutcome:
        """Never called. See Command."""
        raise NotImplementedError


class BulkLoad(NamedTuple):
    """Put many rows of one table, replacing existing ones, atomically. Outcome: None, or the error that the group would get.

    The effect is that of a WriteGroup of puts that return no old row. It is faster where the rows are new.
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
    """The outcome for a repeated idempotency token: billed sizes of each first write (old, new; None: no row)."""

    sizes: tuple[tuple[int | None, int | None], ...]


GroupOutcome = list[WriteOutcome] | ReplayedOutcome | GatewayError
"""The outcome or the error of a group of writes. Replayed: only for groups with a token."""

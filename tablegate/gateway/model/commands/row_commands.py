"""Commands that read and write rows, and groups of writes, which are applied atomically.

Commands that are created for each request or row derive from named tuples (command.py).

Pure: without locks and SQL. Each write sees the results of the earlier writes in the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tablegate.gateway.model.authorization.accesses import Access, any_rows, finer, leading_keys
from tablegate.gateway.model.authorization.conditions import EVERYTHING, ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import (
    NO_COST,
    READ_UNITS,
    WRITE_UNITS,
    Cost,
    read_units,
    write_units,
)
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.writes import PERMISSION_OF_CHANGE, Write, apply, names_in
from tablegate.gateway.model.errors import DatabaseFailed, GatewayError, GroupRefused
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate, View
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Concatenation, Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import HIGHEST, LOWEST, Position
from tablegate.gateway.model.values.rows import Contents, Row


class VisibleAttributes(Protocol):
    """The visible part of a row. Evaluated only for callers with conditions on attributes."""

    @property
    def names(self) -> frozenset[str]:
        """The top-level attributes that are returned or evaluated. If there are none, the rows are only counted."""
        ...


class VisibleNames(NamedTuple):
    """A fixed set of visible attributes."""

    names: frozenset[str]


def attributes_with(names: set[str], visible: VisibleAttributes | None) -> FactValues:
    """Return names and the visible attributes, or None if everything is visible."""
    return EVERYTHING if visible is None else frozenset(names | visible.names)


def _select(visible: VisibleAttributes | None, whole: str = "ALL_ATTRIBUTES") -> FactValues:
    """Return the Select value of a read, as DynamoDB names it."""
    if visible is None:
        return (whole,)
    return ("SPECIFIC_ATTRIBUTES" if visible.names else "COUNT",)


class _GetFields(NamedTuple):
    table: Table
    position: Position
    may_be_old: bool = False
    visible_attributes: VisibleAttributes | None = None


class Get(_GetFields, Command["Row | None"]):
    """Read one row. Outcome: Row or None.

    - `may_be_old`: an eventually consistent read, which a replica may answer.
    - `visible_attributes`: the visible part of the row, or None if all of it is visible.
    """

    __slots__ = ()

    only_reads = True
    rate = READ_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        table = self.table
        return (Access(Permission.READ, purpose.channel, table.namespace, table.name, self, table),)

    def fact(self, key: ConditionKey) -> FactValues:
        match key:
            case ConditionKey.LEADING_KEYS:
                return leading_keys(self.table.key_schema, self.position.partition)
            case ConditionKey.ATTRIBUTES:
                return attributes_with({*self.table.key_schema.names}, self.visible_attributes)
            case ConditionKey.SELECT:
                return _select(self.visible_attributes)
        return None

    def cost(self, outcome: Row | None) -> Cost:
        return Cost(read_units=read_units([0 if outcome is None else outcome.size_bytes]))


@dataclass(frozen=True, slots=True)
class ReadAll(Command[list[Row | None]]):
    """Read rows of any tables in one snapshot. Outcome: list of Row or None, in order.

    `max_bytes`: maximum billed size of all rows together. The outcome of the row that exceeds it is LimitExceeded
    `rows-together`. No row after it is read.
    """

    gets: tuple[Get, ...]
    max_bytes: int | None = None

    only_reads = True
    rate = READ_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        for get in self.gets:
            yield from get.accesses(purpose)

    def cost(self, outcome: list[Row | None]) -> Cost:
        return Cost(read_units=read_units([0 if row is None else row.size_bytes for row in outcome]))


class _ReadFields(NamedTuple):
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
    concatenation: Concatenation | None = None
    may_be_old: bool = False
    visible_attributes: VisibleAttributes | None = None


class Read(_ReadFields, Command[Page]):
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

    __slots__ = ()

    only_reads = True
    is_sliced = True
    rate = READ_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        table, index = self.table, self.index
        if Permission.DESCRIBE in purpose.permissions:  # counted, not shown
            permission = Permission.DESCRIBE
        elif Permission.SPLIT in purpose.permissions:
            permission = Permission.SPLIT
        elif self.partition is None:
            permission = Permission.SCAN
        else:
            permission = finer(purpose, Permission.QUERY, Permission.READ)
        path = table.name if index is None else f"{table.name}/index/{index.name}"
        yield Access(permission, purpose.channel, table.namespace, path, self, table)

    @property
    def partition(self) -> bytes | None:
        """The only partition that the page can be in, or None if there may be several."""
        lower, upper = self.range
        if self.segment is not None or lower.partition != upper.partition:
            return None
        return None if lower.partition in (LOWEST, HIGHEST) else lower.partition

    def fact(self, key: ConditionKey) -> FactValues:
        match key:
            case ConditionKey.LEADING_KEYS:
                schema = (self.index or self.table).key_schema
                return EVERYTHING if self.partition is None else leading_keys(schema, self.partition)
            case ConditionKey.ATTRIBUTES:
                names = self._names_of_range() | names_in(self.filter)
                if self.visible_attributes is None and self.index is not None and not self.whole_rows:
                    projected_names = self.index.projected_names
                    return EVERYTHING if projected_names is None else frozenset(names | projected_names)
                return attributes_with(names, self.visible_attributes)
            case ConditionKey.SELECT:
                is_projected = self.index is not None and not self.whole_rows
                whole = "ALL_PROJECTED_ATTRIBUTES" if is_projected else "ALL_ATTRIBUTES"
                return _select(self.visible_attributes, whole)
        return None

    def _names_of_range(self) -> set[str]:
        """Return the key columns that the range constrains."""
        if self.partition is None:
            return set()
        schema = self.table.key_schema if self.index is None else self.index.key_schema
        lower, upper = self.range
        bounds_sort = lower.sort != LOWEST or upper.sort != HIGHEST
        return set(schema.names if bounds_sort else [column.name for column in schema.partition])

    def cost(self, outcome: Page) -> Cost:
        return Cost(read_units=read_units([outcome.scanned_bytes]))


@dataclass(frozen=True, slots=True)
class IdempotencyToken:
    """An idempotency token: a name in a scope, the digest of the request, and its lifetime in milliseconds."""

    scope: str
    name: str
    digest: bytes
    lifetime_ms: int


class _WriteGroupFields(NamedTuple):
    writes: tuple[Write, ...]
    token: IdempotencyToken | None = None
    transaction: str = ""


class WriteGroup(_WriteGroupFields, Command["list[WriteOutcome]"]):
    """Atomic writes. Outcome: a list of WriteOutcome, one for each write, in order.

    A group of one write fails with the error of that write, a larger one with GroupRefused. If an equal request has
    used the token before, the outcome is ReplayedOutcome (`GroupOutcome`). If a local transaction has locked the
    partition, the error is PartitionLocked. `transaction`: the local transaction that these writes commit.
    """

    __slots__ = ()

    rate = WRITE_UNITS

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        for write in self.writes:
            table, permission = write.table, PERMISSION_OF_CHANGE[type(write.change)]
            yield Access(permission, purpose.channel, table.namespace, table.name, write, table)

    def min_added_bytes(self) -> int:
        return int(any(write.adds_bytes for write in self.writes))

    def cost(self, outcome: list[WriteOutcome] | ReplayedOutcome) -> Cost:
        return cost_of_writes(outcome) if isinstance(outcome, list) else NO_COST


@dataclass(frozen=True, slots=True)
class BulkLoad(Command[None]):
    """Put many rows of one table atomically, replacing existing ones. Outcome: None, or the error that the group would
    get.

    The effect is that of a WriteGroup of puts that return no old row. It is faster for new rows.
    """

    table: Table
    rows: Sequence[tuple[Position, Contents]]

    permission = Permission.PUT
    rate = WRITE_UNITS

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)

    def min_added_bytes(self) -> int:
        return 1

    def cost(self, outcome: None) -> Cost:
        sizes = [contents.size_bytes for _, contents in self.rows]
        return Cost(0.0, write_units(sizes), sum(sizes))


class WriteOutcome(NamedTuple):
    """A row before and after a write."""

    old: Row | None
    new: Row | None


@dataclass(frozen=True, slots=True)
class ReplayedOutcome:
    """The outcome for a repeated idempotency token: billed sizes (old, new) of each first write. None for an absent row."""

    sizes: tuple[tuple[int | None, int | None], ...]


GroupOutcome = list[WriteOutcome] | ReplayedOutcome | GatewayError
"""The outcome or the error of a group of writes. ReplayedOutcome: only for groups with a token."""


def cost_of_writes(outcomes: Sequence[WriteOutcome]) -> Cost:
    """Return the cost of writes. Each takes units for the larger of its old and its new row."""
    sizes = [
        (0 if old is None else old.size_bytes, 0 if new is None else new.size_bytes) for old, new in outcomes
    ]
    return Cost(0.0, write_units(map(max, sizes)), sum(new - old for old, new in sizes))


RowKey = tuple[int, Position]
"""(table id, position)."""


def apply_group(
    writes: Sequence[Write],
    view: MutableMapping[RowKey, Row | None],
    now: int,
    refusal: Callable[[Write], GatewayError | None] | None = None,
) -> list[WriteOutcome] | GatewayError:
    """Apply writes to a view, in order. `now` is in ticks of 100 ns since 1970.

    Returns the outcome of each write, and updates the view. If a write fails, the view is unchanged. The result is then
    the error of the write if the group has one write, else GroupRefused with an error or None for each. `refusal`
    returns an error for writes that must not be evaluated. An unexpected exception is a defect and becomes
    DatabaseFailed, with the exception as its cause.
    """
    drafts: dict[RowKey, Row | None] = {}
    outcomes: list[WriteOutcome] = []
    reasons: list[GatewayError | None] = []
    for write in writes:
        key = write.table.id, write.key.position
        old = drafts[key] if key in drafts else view.get(key)
        try:
            reason = None if refusal is None else refusal(write)
            if reason is None:
                drafts[key] = new = apply(write, old, now)
                outcomes.append(WriteOutcome(old, new))
        except GatewayError as error:
            reason = error
        except Exception as error:
            reason = DatabaseFailed("internal error")
            reason.__cause__ = error
        reasons.append(reason)
    if len(outcomes) < len(writes):
        [*_, only] = reasons
        return only if len(reasons) == 1 and only is not None else GroupRefused(reasons)
    view.update(drafts)
    return outcomes


def defects_of_group(error: GatewayError) -> list[BaseException]:
    """Return the unexpected exceptions that failed a group, for the log."""
    reasons = error.reasons if isinstance(error, GroupRefused) else [error]
    return [
        reason.__cause__
        for reason in reasons
        if isinstance(reason, DatabaseFailed) and reason.__cause__ is not None
    ]

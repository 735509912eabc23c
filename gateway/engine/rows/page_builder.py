"""A page while it is filled: which rows it takes, as its reader may see them. Where a limit stops it, the budget says.

Knows in which forms the store gives rows (columns, scanned ranges, concatenated bodies), and judges filters; knows no SQL and
no limits. reading.py brings the rows and page_budget.py counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from time import perf_counter

from tablegate.gateway.engine.rows.page_budget import PageBudget
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.predicates import ALWAYS, matches
from tablegate.gateway.model.tables.pages import ConcatenatedRows, Page
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import concatenated
from tablegate.gateway.store.rows.prefiltered_scans import ScannedRange
from tablegate.gateway.store.rows.scans import Chunk, Columns, StoredRow

# How many bodies are asked for concatenated: at first (the second where the number of rows is limited, so that many are
# likely to be wanted), and at most.
_FIRST_CONCATENATED, _FIRST_OF_NUMBER, _MOST_CONCATENATED = 64, 256, 1024
# At most so many rows are judged in one slice, and no further one once it has taken so long: large rows, documents and
# patterns take as long as thousands of others.
_SLICE_ROWS = 32
_SLICE_S = 0.002


SHOWN_AS_STORED = frozenset(
    (
        "indexes",
        "vector_indexes",
        "stream",
        "expiry.attribute",
        "max_versions",
        "stamped",
        "has_local_transactions",
        "auto_increment",
    )
)
"""What a table may have (Table.features) of whose rows a reader sees all that is stored, whenever it looks."""
READ_FIELDS = (
    "table range limits index reverse filter view segment after whole_rows cut cut_many transaction concatenation"
    " may_be_old shown"
)
"""What the fast ways to fill a page have been thought through for (fast_paths.covers)."""
_TAKES_MANY = fast_paths.covers(Read, READ_FIELDS)


class PageBuilder:
    """A page while it is filled. `size_at`: where in a row of the result its billed size stands."""

    def __init__(self, command: Read, size_at: int, now_ms: int) -> None:
        self._command = command
        self._now_ms = now_ms
        self._size_at = size_at
        self.budget = PageBudget(command.limits)
        shown = None if command.index is None or command.whole_rows else command.index.shown
        self._shown = shown
        self._takes_many = (
            _TAKES_MANY
            and shown is None
            and command.filter is ALWAYS
            and (command.cut is None or command.cut_many is not None)
            and command.table.features <= SHOWN_AS_STORED
        )
        self._rows: list[Row] = []
        self._last: Row | None = None
        self._next: Row | None = None
        self._is_stopped = False
        self._concatenated: list[ConcatenatedRows] = []
        self._last_concatenated: Position | None = None

    def page(self) -> Page:
        """The page as it stands."""
        budget = self.budget
        last = self._last if self._is_stopped else None
        return Page(self._rows, budget.scanned, budget.scanned_bytes, last, self._next, self._concatenated)

    # Bodies that SQL has concatenated

    @property
    def takes_concatenated(self) -> bool:
        """Whether the reader takes all rows as they are, and no limit has to be asked about at each."""
        return self._takes_many and self._command.cut is None and self.budget.allows_concatenation

    def wanted(self) -> int:
        """How many bodies to ask for next."""
        budget = self.budget
        wanted = _FIRST_OF_NUMBER if budget.returns_a_number else _FIRST_CONCATENATED
        if budget.scanned and budget.bytes_left is not None:
            wanted = min(budget.bytes_left * budget.scanned // (budget.scanned_bytes + 1), _MOST_CONCATENATED)
        left = budget.rows_left
        return wanted if left is None else min(wanted, left)

    def take_concatenated(self, found: concatenated.ConcatenatedBodies) -> bool:
        """Take bodies, if they do not fill the page."""
        bytes_left = self.budget.bytes_left
        if bytes_left is not None and found.size >= bytes_left:
            return False
        if found.number:
            self._concatenated.append(ConcatenatedRows(found.number, found.bodies, found.modified_at))
            self._last_concatenated = found.last
        self.budget.scan(found.number, found.size)
        self.budget.give(found.number, found.size)
        return True

    def stop_if_all_are_seen(self) -> bool:
        """End the page if as many rows have been looked at as may be. Whether it is ended."""
        self._is_stopped = self.budget.has_scanned_enough
        return self._is_stopped

    @property
    def lacks_last(self) -> Position | None:
        """Where the page's last row is, if its body was concatenated and the page has to say which it is."""
        return self._last_concatenated if self._is_stopped and self._last is None else None

    def set_last(self, last: Row) -> None:
        """Say which row is the page's last."""
        self._last = last

    # Rows one by one, and many at once

    def add(self, chunk: Chunk) -> bool:
        """Add rows of the result in order. Whether a limit has stopped the page."""
        if self._takes_many:
            chunk = chunk[self._fast_take(chunk) :]
            if chunk and self.budget.scanned and self.budget.rows_left == 0:  # however large the next row is
                self._stop_before(StoredRow(chunk[0]))
            if self._is_stopped:
                return True
        for columns in chunk:
            if self._add_row(columns):
                return True
        return False

    def add_in_slices(self, chunks: Iterable[Chunk]) -> Generator[None, None, None]:
        """Add rows of the result in order until a limit stops the page, one by one, in slices that are bounded in time."""
        left, until = _SLICE_ROWS, perf_counter() + _SLICE_S
        for chunk in chunks:
            for columns in chunk:
                if self._add_row(columns):
                    return
                left -= 1
                if not left or perf_counter() >= until:
                    yield
                    left, until = _SLICE_ROWS, perf_counter() + _SLICE_S

    def _fast_take(self, chunk: Chunk) -> int:
        """The fast path of `_add_row`: take the first rows of a chunk together, as many as need no look at each; how many."""
        budget = self.budget
        left = budget.rows_left
        if left is not None and len(chunk) > left:
            chunk = chunk[:left]
        if not chunk or budget.is_late:
            return 0
        found: list[Row] = list(map(StoredRow, chunk))
        rows, sizes = self._cut(found, chunk)
        number = budget.fitting(sizes)
        if not number:
            return 0
        size = sum(sizes[:number])
        budget.scan(number, size)
        budget.give(number, size)
        self._rows += rows[:number]
        self._last = found[number - 1]
        self._is_stopped = budget.is_spent
        return number

    def _cut(self, found: list[Row], chunk: Chunk) -> tuple[list[Row], list[int]]:
        """Rows as the reader may see them, and their sizes."""
        if self._command.cut_many is None:
            at = self._size_at
            return found, [columns[at] for columns in chunk]
        rows = self._command.cut_many(found)
        return rows, [row.size_bytes for row in rows]

    def _add_row(self, columns: Columns) -> bool:
        command, budget = self._command, self.budget
        found = StoredRow(columns)
        row = command.table.visible(found, self._now_ms)
        size = columns[self._size_at]
        if command.cut is not None:
            row = None if row is None else command.cut(row)
            size = 0 if row is None else row.size_bytes
        if budget.refuses(size):
            self._stop_before(found)
            return True
        budget.scan(1, size)
        self._last = found
        row = None if row is None else self._passed(row)
        if row is not None:
            self._rows.append(row)
            budget.give(1, size)
        self._is_stopped = budget.is_spent
        return self._is_stopped

    def _stop_before(self, found: Row) -> None:
        self._next = found if self.budget.peeks else None
        self._is_stopped = True

    def _passed(self, row: Row) -> Row | None:
        """A row as the reader may see it, or None if the filter is not true of it."""
        if self._shown is not None:
            row = projected(row, self._shown)
        command = self._command
        return row if command.filter is ALWAYS or matches(command.filter, row, command.view) else None

    # Scanned ranges of which only what passes a prefilter was fetched

    def take_scanned_range(
        self, scanned_range: ScannedRange, measure: Callable[[Columns], tuple[int, int]]
    ) -> Generator[None, None, Columns | None]:
        """Take a scanned range for which the budget has room, whole (None) or up to the row that is the last to be returned,
        in slices. `measure`: the number of rows up to one, and their size."""
        until = perf_counter() + _SLICE_S
        for columns in scanned_range.passing:
            if perf_counter() >= until:
                yield
                until = perf_counter() + _SLICE_S
            row = self._passed(StoredRow(columns))
            if row is not None:
                self._rows.append(row)
                self.budget.give(1, columns[self._size_at])
                if self.budget.has_returned_enough:
                    return self._advance(*measure(columns), columns)
        self._advance(scanned_range.count, scanned_range.size, scanned_range.last)
        return None

    def _advance(self, count: int, size: int, last: Columns | None) -> Columns | None:
        self.budget.scan(count, size)
        self._last = None if last is None else StoredRow(last)
        return last


def projected(row: Row, names: frozenset[str]) -> Row:
    """A row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

"""Point reads and pages: limits, filters, projections of indexes. Everything read for one list is of one moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from gateway.model.commands import Get, Page, Read, ReadAll
from gateway.model.errors import GatewayError, IndexMissing, SessionMissing, StaleTable, TableBusy
from gateway.model.keys import Position
from gateway.model.predicates import ALWAYS, holds
from gateway.model.ranges import KeyRange
from gateway.model.rows import Row
from gateway.model.tables import State, Table
from gateway.store import rows, staged
from gateway.store.databases import Session
from gateway.store.scans import Chunk, Columns, Source, StoredRow, Walk, entries_source, overlaid, rows_source
from gateway.store.screens import condition_of, screen_of
from gateway.store.skims import Skim, Stretch
from gateway.store.store import Store

Reading = Get | ReadAll | Read
# So many rows are sooner judged one by one than in further statements.
_FEW_ROWS = 24

Outcome = Row | list[Row | None] | Page | GatewayError | None


def read(store: Store, commands: list[Reading], now_ms: int) -> list[Outcome]:
    """The outcome of each command, all from one snapshot."""
    if store.shared and not any(isinstance(command, Read) or _transaction(command) for command in commands):
        return _look_up(store, cast(list[Get | ReadAll], commands), now_ms)
    tables = {table.id: table for command in commands for table in _tables_of(command)}
    with store.read() as session:
        stale = store.catalog.check(session, tables.values(), lock=False) if store.shared else set()
        wanted = {
            (get.table.id, get.position)
            for command in commands
            for get in (
                command.gets
                if isinstance(command, ReadAll)
                else [command]
                if isinstance(command, Get)
                else []
            )
        }
        found = rows.fetch_many(session, list(wanted)) if wanted else {}
        outcomes: list[Outcome] = []
        for command in commands:
            refusal = _refusal(command, stale, now_ms)
            if refusal is not None:
                outcomes.append(refusal)
                continue
            transaction = _transaction(command)
            if transaction:
                outcomes.append(_staged(session, command, found, now_ms))
            elif isinstance(command, Read):
                outcomes.append(_page(session, command, now_ms))
            else:
                outcomes.append(_found(command, found, now_ms))
    for table_id in stale:
        store.catalog.cache.forget(table_id)
    return outcomes


def _transaction(command: Reading) -> str:
    """The local transaction through which a command reads, if any."""
    return "" if isinstance(command, ReadAll) else command.transaction


def _staged(session: Session, command: Reading, found: dict[rows.RowKey, Row], now_ms: int) -> Outcome:
    """The outcome of a command that reads through a local transaction."""
    assert not isinstance(command, ReadAll)
    hold = staged.find(session, command.transaction, now_ms)
    if hold is None:
        return SessionMissing()
    written = {write.position: write.new for write in staged.writes_of(session, hold.id)}
    if hold.table_id != command.table.id:
        written = {}
    if isinstance(command, Read):
        return _page(session, command, now_ms, written)
    if command.position in written:
        return command.table.visible(written[command.position], now_ms)
    return _found(command, found, now_ms)


def _look_up(store: Store, commands: list[Get | ReadAll], now_ms: int) -> list[Outcome]:
    """Point reads, in one statement."""
    gets = [
        get for command in commands for get in (command.gets if isinstance(command, ReadAll) else [command])
    ]
    with store.look() as session:
        found, versions = rows.look_up(session, list({(get.table.id, get.position) for get in gets}))
    stale = {get.table.id for get in gets if versions.get(get.table.id) != get.table.version}
    for table_id in stale:
        store.catalog.cache.forget(table_id)
    outcomes: list[Outcome] = []
    for command in commands:
        refusal = _refusal(command, stale, now_ms)
        outcomes.append(_found(command, found, now_ms) if refusal is None else refusal)
    return outcomes


def _found(command: Get | ReadAll, found: dict[rows.RowKey, Row], now_ms: int) -> Outcome:
    if isinstance(command, Get):
        return command.table.visible(found.get((command.table.id, command.position)), now_ms)
    return [get.table.visible(found.get((get.table.id, get.position)), now_ms) for get in command.gets]


def _tables_of(command: Reading) -> list[Table]:
    return [get.table for get in command.gets] if isinstance(command, ReadAll) else [command.table]


def _refusal(command: Reading, stale: set[int], now_ms: int) -> GatewayError | None:
    for table in _tables_of(command):
        if table.id in stale:
            return StaleTable()
        state = table.state_at(now_ms)
        if state is State.CREATING or state is State.DELETING:
            return TableBusy(table.name, state.value)
    if isinstance(command, Read) and command.index is not None:
        index = command.table.index(command.index.name)
        if index is None:
            return IndexMissing(command.table.name, command.index.name)
        if not index.is_active(now_ms):
            return TableBusy(command.table.name, "index " + State.CREATING.value)
    return None


def _page(
    session: Session, command: Read, now_ms: int, written: Mapping[Position, Row | None] | None = None
) -> Page:
    if command.index is None:
        source = rows_source(command.table.id)
    else:
        source = entries_source(command.table.id, command.index.id)
    filling = _Filling(command, source.size, now_ms)
    rest = command.range if written else _skim(session, command, source, filling)
    chunks = _walk(session, command, source, rest)
    if written and command.index is None:
        within = {at: row for at, row in written.items() if command.range.lower <= at < command.range.upper}
        chunks = overlaid(chunks, within, source, command.reverse)
    for chunk in chunks:
        if filling.add(chunk):
            break
    return filling.page()


def _skim(session: Session, command: Read, source: Source, filling: _Filling) -> KeyRange:
    """Fill a page from what a screen lets through, as far as that can be; what is left to be looked at row by row. The row
    at which a limit stops the page is always among that."""
    if command.segment is not None or command.cut is not None or command.table.hides_rows:
        return command.range
    if command.limits.scanned is not None and command.limits.scanned < _FEW_ROWS:
        return command.range
    screen = screen_of(command.filter)
    if screen is None:
        return command.range
    condition = condition_of(screen, session.is_postgresql)
    skim = Skim(session, source, command.range, command.reverse, condition, command.limits.weighs)
    is_worth_it = True
    while is_worth_it and not skim.rest.is_empty:
        stretch = skim.next(*filling.room())
        if stretch is None:
            break
        is_worth_it = 2 * len(stretch.passing) <= stretch.count
        full = filling.take_stretch(stretch, skim.until)
        skim.take(stretch.last if full is None else full)
        is_worth_it = is_worth_it and full is None
    return skim.rest


def _walk(session: Session, command: Read, source: Source, bounds: KeyRange) -> Iterator[Chunk]:
    expected = command.limits.scanned
    if command.filter is ALWAYS and command.limits.returned is not None:
        expected = min(expected or command.limits.returned, command.limits.returned)
    walk = Walk(session, source, expected and expected + command.limits.peek)
    if command.segment is not None:
        return walk.segment(command.segment.lowest, command.segment.highest, command.after)
    return walk.range(bounds, command.reverse)


class _Filling:
    """A page while it fills. `size_at`: where in a row of the result its billed size stands."""

    def __init__(self, command: Read, size_at: int, now_ms: int) -> None:
        self._command = command
        self._now_ms = now_ms
        self._limits = limits = command.limits
        self._size_at = size_at
        self._deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
        shown = None if command.index is None or command.whole_rows else command.index.shown
        self._shown = shown
        self._is_plain = (
            shown is None
            and command.filter is ALWAYS
            and command.cut is None
            and not command.table.hides_rows
            and self._deadline is None
        )
        self._rows: list[Row] = []
        self._scanned = self._size = self._returned_size = 0
        self._last: Row | None = None
        self._next: Row | None = None
        self._is_stopped = False

    def page(self) -> Page:
        """The page as it stands."""
        last = self._last if self._is_stopped else None
        return Page(self._rows, self._scanned, self._size, last, self._next)

    def add(self, chunk: Chunk) -> bool:
        """Add rows of the result in order. Whether a limit has stopped the page."""
        if self._is_plain:
            chunk = chunk[self._take(chunk) :]
            if self._is_stopped:
                return True
        for columns in chunk:
            if self._add_row(columns):
                return True
        return False

    def _take(self, chunk: Chunk) -> int:
        """Take the first rows of a chunk together, as far as the limits on numbers allow, if no other limit is met among
        them; how many were taken."""
        limits = self._limits
        most = min(limit for limit in (limits.scanned, limits.returned, sys.maxsize) if limit is not None)
        if len(chunk) > most - self._scanned:
            chunk = chunk[: most - self._scanned]
        at = self._size_at
        size = sum([columns[at] for columns in chunk])
        if not chunk or (limits.size_bytes is not None and self._size + size > limits.size_bytes):
            return 0
        if limits.filled_bytes is not None and self._size + size >= limits.filled_bytes:
            return 0
        if limits.returned_bytes is not None:
            if self._returned_size + size >= limits.returned_bytes:
                return 0
            self._returned_size += size
        self._rows += map(StoredRow, chunk)
        self._scanned += len(chunk)
        self._size += size
        self._last = self._rows[-1]
        self._is_stopped = self._scanned == limits.scanned and not limits.peek
        return len(chunk)

    def room(self) -> tuple[int, int]:
        """How many rows and bytes may be taken without looking at each, so that no limit is met but that on rows returned."""
        limits = self._limits
        if self._deadline is not None and time.monotonic() > self._deadline:
            return 0, 0
        rows = sys.maxsize if limits.scanned is None else limits.scanned - 1 - self._scanned
        size = sys.maxsize if limits.size_bytes is None else limits.size_bytes - self._size
        if limits.filled_bytes is not None:
            size = min(size, limits.filled_bytes - 1 - self._size)
        return (0 if self._has_enough else rows), size

    def take_stretch(self, stretch: Stretch, measure: Callable[[Columns], tuple[int, int]]) -> Columns | None:
        """Take a stretch for which there is room, whole (None) or up to the row that is the last to be returned. `measure`:
        the number of rows up to one, and their size."""
        for columns in stretch.passing:
            row = self._passed(StoredRow(columns))
            if row is not None:
                self._rows.append(row)
                self._returned_size += columns[self._size_at]
                if self._has_enough:
                    return self._advance(*measure(columns), columns)
        self._advance(stretch.count, stretch.size, stretch.last)
        return None

    def _advance(self, count: int, size: int, last: Columns | None) -> Columns | None:
        self._scanned += count
        self._size += size
        self._last = None if last is None else StoredRow(last)
        return last

    def _add_row(self, columns: Columns) -> bool:
        command = self._command
        found = StoredRow(columns)
        row = command.table.visible(found, self._now_ms)
        size = columns[self._size_at]
        if command.cut is not None:
            row = None if row is None else command.cut(row)
            size = 0 if row is None else row.size_bytes
        if self._scanned and self._is_full(size):
            self._next = found if self._limits.peek else None
            self._is_stopped = True
            return True
        self._scanned += 1
        self._size += size
        self._last = found
        row = None if row is None else self._passed(row)
        if row is not None:
            self._rows.append(row)
            self._returned_size += size
        limits = self._limits
        self._is_stopped = (self._scanned == limits.scanned and not limits.peek) or (
            limits.filled_bytes is not None and self._size >= limits.filled_bytes
        )
        return self._is_stopped

    def _passed(self, row: Row) -> Row | None:
        """A row as the reader may see it, or None if the filter is not true of it."""
        if self._shown is not None:
            row = projected(row, self._shown)
        command = self._command
        return row if command.filter is ALWAYS or holds(command.filter, row, command.view) else None

    @property
    def _has_enough(self) -> bool:
        """Whether as much is to be returned as may be."""
        limits = self._limits
        return (limits.returned is not None and len(self._rows) >= limits.returned) or (
            limits.returned_bytes is not None and self._returned_size >= limits.returned_bytes
        )

    def _is_full(self, next_bytes: int) -> bool:
        limits = self._limits
        return (
            (limits.scanned is not None and self._scanned >= limits.scanned)
            or self._has_enough
            or (limits.size_bytes is not None and self._size + next_bytes > limits.size_bytes)
            or (self._deadline is not None and time.monotonic() > self._deadline)
        )


def projected(row: Row, names: frozenset[str]) -> Row:
    """A row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

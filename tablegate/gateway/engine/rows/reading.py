"""Point reads and pages, with limits, filters and index projections.

All reads of a list use one snapshot. If pages are read in slices, their session stays open until the last page is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from time import perf_counter
from typing import Any

from tablegate.gateway.engine.rows.page_builder import READ_FIELDS, SHOWN_AS_STORED, PageBuilder
from tablegate.gateway.engine.rows.point_reads import (
    Outcome,
    fetched_together,
    is_byte_limited,
    outcome_of,
    outcome_within_limit,
    read_without_snapshot,
    refusal_of,
    stale_tables,
    tables_of,
)
from tablegate.gateway.model import errors, fast_paths
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Concatenation, Page
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import range_scans, rows, scans
from tablegate.gateway.store.rows.range_scans import Counts, PrefilteredScan
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.prefilters import condition_of, prefilter_of
from tablegate.gateway.store.store import Store

# Pages that take less time are read in one slice.
_SLICE_S = 0.001
# Up to this number, checking rows one by one is faster than further statements.
_MIN_PREFILTER_ROWS = 24
_IS_SAFE = fast_paths.covers(Read, READ_FIELDS)

Slices = Generator[None, None, Page | errors.GatewayError]
"""A page that is being read. It yields after each slice and returns the page."""


Reader = Callable[[Store, Session, Any, int], Generator[None, None, Any]]
"""Reads in slices for a command of a capability, with the current time in milliseconds. Returns its outcome."""
Readers = Mapping[type[Command[Any]], Reader]


def read(store: Store, commands: list[Command[Any]], readers: Readers, now_ms: int) -> list[Outcome]:
    """Return the outcome of each command, all from one snapshot."""
    outcomes: dict[int, Outcome] = {}
    for _ in read_in_slices(store, commands, readers, now_ms, outcomes):
        pass
    return [outcomes[at] for at in range(len(commands))]


def read_in_slices(
    store: Store,
    commands: list[Command[Any]],
    readers: Readers,
    now_ms: int,
    outcomes: dict[int, Outcome],
    reader: int = 0,
) -> Iterator[None]:
    """Do what `read` does, and yield after each slice of a page, or after several short pages. Pages take turns.

    `outcomes` is filled under the index of each command. `reader` identifies the session, which is open until the end.
    """
    if not store.database.has_snapshots:
        outcomes |= read_without_snapshot(store, commands, now_ms)
        if len(outcomes) == len(commands):
            return
    remaining: dict[int, Any] = {at: command for at, command in enumerate(commands) if at not in outcomes}
    keys = list({(get.table.id, get.position) for get in fetched_together([*remaining.values()])})
    # A single statement is a snapshot.
    is_one_statement = all(map(_is_fetched_together, remaining.values())) and (
        len(keys) == 1 or store.database.looks_up_at_once
    )
    with store.database.read_one() if is_one_statement else store.read(reader) as session:
        stale: set[int] = set()
        if not store.database.shared:
            rows_by_key = rows.fetch_many(session, keys)
        elif is_one_statement:
            rows_by_key, versions = rows.look_up(session, keys)
            stale = stale_tables(remaining.values(), versions)
        else:
            stale = _stale(store, session, commands)
            rows_by_key = rows.fetch_many(session, keys)
        counts: Counts = {}
        pages: deque[tuple[int, Generator[None, None, Any]]] = deque()
        for at, command in remaining.items():
            kind = type(command)
            table: Any = command.table if kind is Get or kind is Read else None
            is_ready = table is not None and table.busy_until_ms <= now_ms and table.id not in stale
            if is_ready and kind is Get and table.features <= SHOWN_AS_STORED:
                # The most frequent case. The general code below would find the same row.
                outcomes[at] = rows_by_key.get((table.id, command.position))
            elif is_ready and kind is Read and command.index is None:
                pages.append((at, page(session, command, now_ms, counts)))
            elif (refusal := refusal_of(command, stale, now_ms)) is not None:
                outcomes[at] = refusal
            elif isinstance(command, Read):
                pages.append((at, page(session, command, now_ms, counts)))
            elif kind is not Get and kind is not ReadAll:
                pages.append((at, readers[kind](store, session, command, now_ms)))
            elif is_byte_limited(command):
                outcomes[at] = outcome_within_limit(session, command, now_ms)
            else:
                outcomes[at] = outcome_of(command, rows_by_key, now_ms)
        for table_id in stale:
            store.catalog.cache.forget(table_id)
        yield from _interleave(pages, outcomes)


def _interleave(
    pages: deque[tuple[int, Generator[None, None, Any]]], outcomes: dict[int, Outcome]
) -> Iterator[None]:
    """Read pages in turns, one slice each, and yield after each slice. Short pages share one."""
    deadline = perf_counter() + _SLICE_S
    while pages:
        at, page = pages.popleft()
        try:
            next(page)
        except StopIteration as end:
            outcomes[at] = end.value
            if pages and perf_counter() < deadline:
                continue
        else:
            pages.append((at, page))
        yield
        deadline = perf_counter() + _SLICE_S


def _stale(store: Store, session: Session, commands: list[Command[Any]]) -> set[int]:
    tables = [table for command in commands for table in tables_of(command)]
    return store.catalog.check(session, tables, lock=False, near=_a_partition(commands))()


def _a_partition(commands: list[Command[Any]]) -> bytes:
    partitions = (command.partition for command in commands if isinstance(command, Read))
    return next((partition for partition in partitions if partition), b"")


def _is_fetched_together(command: Command[Any]) -> bool:
    """Return True for a point read, unless its rows are fetched in steps."""
    return type(command) is Get or (type(command) is ReadAll and not is_byte_limited(command))


def page(
    session: Session,
    command: Read,
    now_ms: int,
    counts: Counts,
    staged_rows: Mapping[Position, Row | None] | None = None,
) -> Slices:
    """Read a page in slices. `staged_rows`: rows to show in place of the stored ones. None hides the stored row."""
    if command.index is None:
        source = scans.rows_source(command.table.id)
    else:
        source = scans.entries_source(command.table.id, command.index.id)
    page_builder = PageBuilder(command, source.size, now_ms)
    remaining = command.range
    if not staged_rows:
        if command.concatenation is not None and page_builder.takes_concatenated:
            remaining = _concatenated(session, command, command.concatenation, page_builder)
        else:
            remaining = yield from _prefiltered(session, command, source, page_builder, counts)
    if remaining.is_empty and not staged_rows:  # the range is exhausted
        return _finish_page(session, command, page_builder)
    expected_rows = page_builder.budget.expected_rows(is_filtered=command.filter is not ALWAYS)
    chunks = _walk(session, command, source, remaining, expected_rows)
    if staged_rows and command.index is None:
        within = {
            at: row for at, row in staged_rows.items() if command.range.lower <= at < command.range.upper
        }
        chunks = scans.overlay(chunks, within, source, command.reverse)
    yield from page_builder.add(chunks)
    return _finish_page(session, command, page_builder)


def _finish_page(session: Session, command: Read, page_builder: PageBuilder) -> Page:
    position = page_builder.missing_last_position
    if position is None:
        return page_builder.page()
    key = command.table.id, position
    return page_builder.page(rows.fetch_many(session, [key])[key])


def fast_prefiltered(
    session: Session,
    command: Read,
    source: scans.ScanSource,
    page_builder: PageBuilder,
    counts: Counts,
) -> Generator[None, None, KeyRange]:
    """Fill a page from rows that pass a prefilter in SQL (fast path of `PageBuilder.add`).

    Return the rest of the range, which is checked row by row. It includes the row at which a limit stops the page.
    """
    if command.index is not None and not session.statements.joins_entries:
        return command.range
    is_whole = command.segment is None and command.cut is None
    if not is_whole or not command.table.features <= SHOWN_AS_STORED:
        return command.range
    if page_builder.budget.scans_fewer_than(_MIN_PREFILTER_ROWS):
        return command.range
    prefilter = prefilter_of(command.filter)
    if prefilter is None:
        return command.range
    condition = condition_of(prefilter, session.statements)
    scan = PrefilteredScan(
        session,
        source,
        command.range,
        command.reverse,
        condition,
        counts,
        page_builder.budget.needs_sizes,
    )
    is_worth_it = True
    while is_worth_it and not scan.rest.is_empty:
        scanned_range = scan.next(*page_builder.budget.skippable())
        if scanned_range is None:
            break
        is_worth_it = 2 * len(scanned_range.passing_rows) <= scanned_range.count
        full = yield from page_builder.take_scanned_range(scanned_range, scan.measure_through)
        scan.take(scanned_range.last if full is None else full)
        is_worth_it = is_worth_it and full is None and not scan.is_full
        yield
    return scan.rest


def fast_concatenated(
    session: Session, command: Read, concatenation: Concatenation, page_builder: PageBuilder
) -> KeyRange:
    """Fill a page with bodies that SQL has concatenated (fast path of `PageBuilder.add`).

    Return the rest of the range, which is checked row by row. It includes the row that fills the bytes of a page.
    """
    remaining = command.range
    if command.index is not None or command.segment is not None:
        return remaining
    while not remaining.is_empty and remaining.lower.partition == remaining.upper.partition:
        limit = page_builder.rows_to_request()
        if limit <= 0:
            break
        bodies = range_scans.fetch(
            session, command.table.id, remaining, limit, concatenation, command.reverse
        )
        if bodies is None or not page_builder.take_concatenated(bodies):
            break
        if bodies.number < limit:
            return KeyRange(remaining.upper, remaining.upper)
        remaining = remaining.before(bodies.last) if command.reverse else remaining.after(bodies.last)
        if page_builder.stop_if_scan_limit_reached():
            return KeyRange(remaining.upper, remaining.upper)
    return remaining


def _row_by_row(
    session: Session, command: Read, source: scans.ScanSource, page_builder: PageBuilder, counts: Counts
) -> Generator[None, None, KeyRange]:
    yield from ()
    return command.range


def _no_bodies(
    session: Session, command: Read, concatenation: Concatenation, page_builder: PageBuilder
) -> KeyRange:
    return command.range


_prefiltered = fast_paths.choose(fast_prefiltered, _row_by_row, _IS_SAFE)
_concatenated = fast_paths.choose(fast_concatenated, _no_bodies, _IS_SAFE)


def _walk(
    session: Session, command: Read, source: scans.ScanSource, bounds: KeyRange, expected_rows: int | None
) -> Iterator[scans.Chunk]:
    walk = scans.Walk(session, source, expected_rows)
    if command.segment is not None:
        chunks = walk.segment(command.segment.lowest, command.segment.highest, command.after)
    else:
        chunks = walk.range(bounds, command.reverse)
    if command.index is not None and not session.statements.joins_entries:
        return _with_current_entries(command.index, source, chunks)
    return chunks


def _with_current_entries(
    index: Index, source: scans.ScanSource, chunks: Iterator[scans.Chunk]
) -> Iterator[scans.Chunk]:
    """Drop rows that were found by an entry that they no longer have.

    A row may have changed in between if entries are read before rows.
    """
    for chunk in chunks:
        current_chunk = [
            columns
            for columns in chunk
            if (entry := index.entry(scans.StoredRow(columns))) is not None
            and entry.position == source.position(columns)
        ]
        if current_chunk:
            yield current_chunk

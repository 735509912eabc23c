"""Point reads and pages: limits, filters, projections of indexes. Everything read for one list is of one moment."""

from __future__ import annotations

import time
from collections.abc import Iterator

from gateway.model.commands import Get, Page, PageLimits, Read, ReadAll
from gateway.model.errors import GatewayError, IndexMissing, StaleTable, TableBusy
from gateway.model.predicates import ALWAYS, holds
from gateway.model.rows import Row
from gateway.model.tables import State, Table
from gateway.store import rows
from gateway.store.databases import Session
from gateway.store.scans import Found, Walk, entries_source, rows_source
from gateway.store.store import Store

Reading = Get | ReadAll | Read
Outcome = Row | list[Row | None] | Page | GatewayError | None


def read(store: Store, commands: list[Reading], now_ms: int) -> list[Outcome]:
    """The outcome of each command, all from one snapshot."""
    tables = {table.id: table for command in commands for table in _tables_of(command)}
    with store.read() as session:
        stale = store.catalog.check(session, tables.values(), lock=False) if store.shared else set()
        wanted = {
            (get.table.id, get.position)
            for command in commands
            for get in (command.gets if isinstance(command, ReadAll) else [command] if isinstance(command, Get) else [])
        }
        found = rows.fetch_many(session, list(wanted)) if wanted else {}
        outcomes: list[Outcome] = []
        for command in commands:
            refusal = _refusal(command, stale, now_ms)
            if refusal is not None:
                outcomes.append(refusal)
                continue
            match command:
                case Get(table, position):
                    outcomes.append(table.visible(found.get((table.id, position)), now_ms))
                case ReadAll(gets):
                    outcomes.append(
                        [get.table.visible(found.get((get.table.id, get.position)), now_ms) for get in gets]
                    )
                case Read():
                    outcomes.append(_page(session, command, now_ms))
    for table_id in stale:
        store.catalog.cache.forget(table_id)
    return outcomes


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


def _page(session: Session, command: Read, now_ms: int) -> Page:
    limits = command.limits
    deadline = None if limits.seconds is None else time.monotonic() + limits.seconds
    shown = None if command.index is None or command.whole_rows else command.index.shown
    returned: list[Row] = []
    scanned = size = 0
    last: Row | None = None
    for found in _walk(session, command):
        row = command.table.visible(found.row, now_ms)
        weight = found.size_bytes
        if command.cut is not None:
            row = None if row is None else command.cut(row)
            weight = 0 if row is None else row.size_bytes
        if scanned and _is_full(limits, scanned, len(returned), size + weight, deadline):
            return Page(returned, scanned, size, last, found.row if limits.peek else None)
        scanned += 1
        size += weight
        last = found.row
        if row is not None and shown is not None:
            row = projected(row, shown)
        if row is not None and (command.filter is ALWAYS or holds(command.filter, row, command.view)):
            returned.append(row)
        if scanned == limits.scanned and not limits.peek:
            return Page(returned, scanned, size, last, None)
    return Page(returned, scanned, size, None, None)


def _is_full(limits: PageLimits, scanned: int, returned: int, size_bytes: int, deadline: float | None) -> bool:
    return (
        (limits.scanned is not None and scanned >= limits.scanned)
        or (limits.returned is not None and returned >= limits.returned)
        or (limits.size_bytes is not None and size_bytes > limits.size_bytes)
        or (deadline is not None and time.monotonic() > deadline)
    )


def _walk(session: Session, command: Read) -> Iterator[Found]:
    if command.index is None:
        source = rows_source(command.table.id)
    else:
        source = entries_source(command.table.id, command.index.id)
    expected = command.limits.scanned
    if command.filter is ALWAYS and command.limits.returned is not None:
        expected = min(expected or command.limits.returned, command.limits.returned)
    walk = Walk(session, source, expected)
    if command.segment is not None:
        return walk.segment(command.segment.lowest, command.segment.highest, command.after)
    return walk.range(command.range, command.reverse)


def projected(row: Row, names: frozenset[str]) -> Row:
    """A row with only these attributes."""
    return Row(row.position, row.contents.only(names), row.modified_at, row.expires_at_ms)

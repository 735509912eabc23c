"""An exact table in memory behind the endpoint protocol, with faults that a test selects.

`MemoryTable` is the storage. Several endpoints can be open on one table, as several processes would be.
`MemoryEndpoint` counts its calls and fails as configured:

    target = MemoryEndpoint(MemoryTable(definition))
    target.fail("write", ServiceUnavailable("the line is cut"), after=3, times=1)
    target.reject = lambda row: ("TooLarge", "a row is too large") if row.size_bytes > 100 else None
"""

from __future__ import annotations

import base64
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tablegate.gateway.model.tables.pages import Segment
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import (
    JSON,
    AnyRow,
    ChangedKeys,
    Definition,
    Endpoint,
    Reject,
    ScanPage,
    Service,
    UnreadableRow,
)
from tablegate.transfer.errors import PositionLost, TableAbsent

PAIR = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("sk", Kind.TEXT),))
"""A key of two texts, for tests to which keys are all the same."""


def definition_of(
    name: str = "table", service: Service = Service.TABLEGATE, key_schema: KeySchema = PAIR
) -> Definition:
    """A table without anything special."""
    return Definition(name, service, key_schema)


def row_of(key_schema: KeySchema, **values: Value) -> Row:
    """Return a row of these values, including key columns."""
    return Row(key_schema.key(values).position, Contents.of_values(dict(values)), 0)


def rows_of(number: int, size: int = 10, start: int = 0) -> list[Row]:
    """Return this many different rows with the key PAIR."""
    return [
        row_of(
            PAIR,
            pk=Value(Kind.TEXT, f"partition {at // 3}"),
            sk=Value(Kind.TEXT, f"row {at}"),
            number=Value(Kind.INT64, at),
            text=Value(Kind.TEXT, "x" * size),
        )
        for at in range(start, start + number)
    ]


class MemoryTable:
    """The stored rows by position, and the log of changed keys. Several threads can write rows."""

    def __init__(self, definition: Definition | None, rows: Iterable[Row] = ()) -> None:
        """`definition` is None if there is no such table yet."""
        self.lock = threading.Lock()
        self.definition = definition
        self.rows: dict[Position, Row] = {}
        self.log: list[tuple[Key, int]] = []
        self.first_kept = 0
        """The number of the oldest changes that have been forgotten."""
        self.records = False
        """True if changes are recorded: from the first `capture` on."""
        self.unreadable: set[Position] = set()
        """Rows that cannot be read."""
        for row in rows:
            self.put(row)

    @property
    def values(self) -> dict[Position, dict[str, Value]]:
        """The values of all rows, to be compared."""
        with self.lock:
            return {position: dict(row.latest) for position, row in self.rows.items()}

    def put(self, row: Row) -> None:
        """Store a row, replacing an existing one."""
        with self.lock:
            self.rows[row.position] = row
            self._record(row.position)

    def remove(self, position: Position) -> None:
        """Delete a row, if it is there."""
        with self.lock:
            if self.rows.pop(position, None) is not None:
                self._record(position)

    def forget_changes(self) -> None:
        """Changes so far are no longer kept."""
        with self.lock:
            self.first_kept = len(self.log)

    def read(self, row: Row | None) -> AnyRow | None:
        """A row as an endpoint gives it."""
        if row is None or row.position not in self.unreadable:
            return row
        assert self.definition is not None
        key = self.definition.key_schema.decode(row.position)
        return UnreadableRow(key, "an attribute has no name", row.body)

    def _record(self, position: Position) -> None:
        if self.records and self.definition is not None:
            self.log.append((self.definition.key_schema.decode(position), time.time_ns() // 1_000_000))


class _Fault:
    """The calls of a method that fail: `times` of them after the first `after`."""

    def __init__(
        self, error: BaseException | None, after: int, times: int, action: Callable[[], Any] | None
    ) -> None:
        self.error = error
        self.calls = range(after, after + times)
        self.action = action


class MemoryEndpoint(Endpoint):
    """An endpoint in memory. `page_rows` is the maximum number of rows in a page of `scan` and in a result of
    `changes`.

    `calls` counts the calls of each method ("scan": its pages). `pages` has (segment, resume) of each requested page.
    """

    def __init__(
        self,
        table: MemoryTable,
        service: Service = Service.TABLEGATE,
        page_rows: int = 10,
        shown: str = "memory:table",
    ) -> None:
        self.table = table
        self.service = service
        self.shown = shown
        self.page_rows = page_rows
        self.calls: Counter[str] = Counter()
        self.pages: list[tuple[JSON, JSON | None]] = []
        self.reject: Callable[[Row], tuple[str, str] | None] = lambda row: None
        self.not_carried_over: list[str] = []
        """The warnings of `create` about parts of a definition that it could not take over."""
        self.writes_half = False
        """True if a failing call of `write` has written the first half of its rows, as a lost connection may leave it."""
        self.is_closed = False
        self._faults: dict[str, list[_Fault]] = {}
        self._counting = threading.Lock()

    # Faults

    def fail(self, method: str, error: BaseException, after: int = 0, times: int = 1) -> None:
        """Calls of a method ("describe", "scan", "write", ...) raise an error: `times` of them, after `after` more that are
        good. Of "scan" each page counts."""
        self._add(method, error, after, times, None)

    def when(self, method: str, action: Callable[[], Any], after: int = 0, times: int = 1) -> None:
        """Run a function just before calls of a method: a schema change, another writer, a clock change."""
        self._add(method, None, after, times, action)

    def throttle(self, method: str, seconds: float, after: int = 0, times: int = 1) -> None:
        """Calls of a method take so long, as those of a client do that waits for a throttled service."""
        self._add(method, None, after, times, lambda: time.sleep(seconds))

    def _add(
        self,
        method: str,
        error: BaseException | None,
        after: int,
        times: int,
        action: Callable[[], Any] | None,
    ) -> None:
        with self._counting:
            fault = _Fault(error, self.calls[method] + after, times, action)
            self._faults.setdefault(method, []).append(fault)

    def _enter(self, method: str) -> None:
        with self._counting:
            number = self.calls[method]
            self.calls[method] += 1
            due = [fault for fault in self._faults.get(method, ()) if number in fault.calls]
        for fault in due:
            if fault.action is not None:
                fault.action()
            if fault.error is not None:
                raise fault.error

    # The protocol

    def describe(self) -> Definition:
        self._enter("describe")
        if self.table.definition is None:
            raise TableAbsent(f"{self.shown}: there is no such table")
        return self.table.definition

    def create(self, definition: Definition) -> list[str]:
        self._enter("create")
        if self.table.definition is None:
            self.table.definition = definition
        return list(self.not_carried_over)

    def reopen(self) -> None:
        self._enter("reopen")

    def finish(self) -> None:
        self._enter("finish")

    def segments(self, wanted: int) -> list[JSON]:
        self._enter("segments")
        return [[number, wanted] for number in range(wanted)]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        part = Segment(*segment)
        while True:
            with self._counting:
                self.pages.append((segment, resume))
            self._enter("scan")
            after = None if resume is None else _position_of(resume)
            with self.table.lock:
                rows = [
                    self.table.read(row)
                    for position, row in sorted(self.table.rows.items())
                    if part.contains(position) and (after is None or position > after)
                ]
            if len(rows) <= self.page_rows:
                yield ScanPage.of(rows, None)
                return
            rows = rows[: self.page_rows]
            resume = _json_of(rows[-1].position)
            yield ScanPage.of(rows, resume)

    def get(self, keys: Sequence[Key]) -> list[AnyRow | None]:
        self._enter("get")
        with self.table.lock:
            return [self.table.read(self.table.rows.get(key.position)) for key in keys]

    def write(self, rows: Sequence[Row]) -> list[Reject]:
        try:
            self._enter("write")
        except BaseException:
            if self.writes_half:
                self._store(rows[: len(rows) // 2])
            raise
        return self._store(rows)

    def _store(self, rows: Sequence[Row]) -> list[Reject]:
        rejects = []
        for row in rows:
            refusal = self.reject(row)
            if refusal is None:
                self.table.put(row)
            else:
                rejects.append(Reject(row, *refusal))
        return rejects

    def delete(self, keys: Sequence[Key]) -> None:
        self._enter("delete")
        for key in keys:
            self.table.remove(key.position)

    def capture(self) -> JSON:
        self._enter("capture")
        with self.table.lock:
            self.table.records = True
            return len(self.table.log)

    def changes(self, position: JSON) -> ChangedKeys:
        self._enter("changes")
        with self.table.lock:
            if position < self.table.first_kept:
                raise PositionLost(f"{self.shown}: changes after {position} are no longer kept")
            found = list(itertools.islice(self.table.log, position, position + self.page_rows))
            after = position + len(found)
            at_ms = found[-1][1] if found else None
            return ChangedKeys([key for key, _ in found], after, at_ms, after == len(self.table.log))

    def list_tables(self) -> list[str]:
        return [] if self.table.definition is None else [self.table.definition.name]

    def close(self) -> None:
        self.is_closed = True


class PollingMemoryEndpoint(MemoryEndpoint):
    """An endpoint with `changes` that cannot report deletes, as Azure Table's."""

    follows = False
    unseen_changes = "Deletes are found by a sweep over the keys that were copied."

    def changes(self, position: JSON) -> ChangedKeys:
        seen = super().changes(position)
        with self.table.lock:
            return seen._replace(keys=[key for key in seen.keys if key.position in self.table.rows])


def _json_of(position: Position) -> JSON:
    return [base64.b64encode(part).decode() for part in position]


def _position_of(resume: JSON) -> Position:
    return Position(*[base64.b64decode(part) for part in resume])

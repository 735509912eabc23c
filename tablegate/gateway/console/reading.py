"""Reads of the console by engine commands: tables, pages of rows in the order of a search, and changes from streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple, cast

from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import ListNamespaces
from tablegate.gateway.features.jobs.job_commands import CancelJob, Job, ListJobs, ListUnfinishedJobs
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.commands.row_commands import Get, Read
from tablegate.gateway.model.commands.row_search import RowSearch
from tablegate.gateway.model.commands.table_commands import CountRows, FindTable, ListTables, TableStatistics
from tablegate.gateway.model.errors import GatewayError, TableMissing
from tablegate.gateway.model.expressions.predicates import View
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.changes import Change, Latest, Oldest, Stream
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tablegate.gateway.security.gate import run, run_one

DESCRIBING = Purpose((Permission.DESCRIBE,))
LOOKING_UP = Purpose((Permission.QUERY, Permission.SCAN, Permission.READ))
READING_A_ROW = Purpose((Permission.READ,))
PUTTING, DELETING = Purpose((Permission.PUT,)), Purpose((Permission.DELETE,))
STREAMING = Purpose((Permission.READ_STREAM,))
DESCRIBING_JOBS, CANCELLING = Purpose((Permission.DESCRIBE_JOB,)), Purpose((Permission.CANCEL_JOB,))
TABLES = 200
CHANGES = 5_000
"""Maximum number of changes that are searched for the history of a row. The search ends after some time, too."""
HISTORY = 50
"""Maximum number of changes in the history of a row."""
_HISTORY_S = 2.0
# Their images are in memory together.
_CHANGES_AT_ONCE = 25
_LIVE = 100


class RowHistory(NamedTuple):
    """The newest changes of a row, the number of changes that were searched, and True if the row has older ones."""

    changes: list[Change]
    searched: int
    has_older: bool


class TableReader:
    """The tables, rows and changes that one visitor is allowed to read. Raises GatewayError."""

    def __init__(self, engine: Engine, visitor: ConsoleUser) -> None:
        self._engine = engine
        self._visitor = visitor

    def tables(self, after: tuple[str, str] = ("", "")) -> tuple[list[Table], bool]:
        """Return the tables after a (namespace, name) that the visitor can describe, and True if there are more."""
        found: list[Table] = []
        # `sees` limits the namespaces to those of the visitor.
        for namespace in run_one(self._engine, ListNamespaces(), None):
            if namespace < after[0] or not self._visitor.sees(namespace):
                continue
            name = after[1] if namespace == after[0] else ""
            while page := self.run(ListTables(namespace, name, TABLES + 1), DESCRIBING):
                found += [each for each in page if self.may(Permission.DESCRIBE, namespace, each.name)]
                if len(found) > TABLES:
                    return found[:TABLES], True
                name = page[-1].name
        return found, False

    def may(self, permission: Permission, namespace: str, path: str) -> bool:
        """True if the visitor has a permission on a table, or a part of one."""
        authorization = self._visitor.authorization
        if authorization is None:
            return True
        authorization.purpose = Purpose((permission,))
        return authorization.allows(namespace, path)

    def shows_metrics(self, table: Table) -> bool:
        """True if the visitor can see the metrics of a table. That requires the permission to describe it.

        Metrics are counted by table name without namespace. So a visitor that is limited to its own namespaces sees none, since
        they would include tables of other namespaces.
        """
        has_all = self._visitor.scope in (None, SHARED_NAMESPACE)
        return has_all and self.may(Permission.DESCRIBE, table.namespace, table.name)

    def table(self, namespace: str, name: str, purpose: Purpose) -> Table:
        """Return a table if the visitor has permission for it, for an index or for its stream.

        Raises NotPermitted whether or not the table exists, and TableMissing also for tables of others.
        """
        if not self._visitor.sees(namespace):
            raise TableMissing(name)
        [found] = run(self._engine, [FindTable(namespace, name)], None)
        authorization = self._visitor.authorization
        if authorization is not None:
            authorization.purpose = purpose
            refusals = [
                authorization.refusal_of_named([NamedResource(purpose.permissions, namespace, path)])
                for path in _paths(name, found)
            ]
            if None not in refusals and refusals[0] is not None:
                raise refusals[0]
        if isinstance(found, GatewayError):
            raise found
        return cast(Table, found)

    def statistics(self, table: Table) -> TableStatistics:
        """Return the approximate numbers of rows and bytes of a table and its indexes."""
        found: TableStatistics = self.run(CountRows(table), DESCRIBING)
        return found

    def row(self, table: Table, position: Position) -> Row | None:
        """Return the row at a position, or None."""
        found: Row | None = self.run(Get(table, position), READING_A_ROW)
        return found

    def history(self, table: Table, position: Position) -> RowHistory:
        """Return the newest changes of one row in the table's stream.

        Raises NotPermitted whether or not there is a stream.
        """
        self.table(table.namespace, table.name, STREAMING)
        found: list[Change] = []
        searched, until = 0, monotonic() + _HISTORY_S
        for stream in self.run(stream_commands.ListStreams(table.namespace, table.name), STREAMING):
            if stream.table_id == table.id:
                changes, number = self._history_in(stream, table, position, until)
                found += changes
                searched += number
        newest = sorted(found, key=lambda change: -change.at_ms)
        return RowHistory(newest[:HISTORY], searched, len(newest) > HISTORY)

    def _history_in(
        self, stream: Stream, table: Table, position: Position, until: float
    ) -> tuple[list[Change], int]:
        """Return the newest changes of a row in a stream, one more than HISTORY, and the number of those searched."""
        found: list[Change] = []
        searched = 0
        for change in self._newest_changes(stream, until):
            searched += 1
            if table.key_schema.key(change.key_values).position == position:
                found.append(change)
                if len(found) > HISTORY:
                    break
        return found, searched

    def latest_changes(self, table: Table, since: str) -> tuple[list[Change], str]:
        """Return changes of a table's present stream, and the next position. `since` is "" to begin at its end."""
        streams: list[Stream] = self.run(stream_commands.ListStreams(table.namespace, table.name), STREAMING)
        streams = [each for each in streams if each.ended_at_ms is None and each.table_id == table.id]
        if not streams:
            return [], ""
        [stream] = streams
        places = _places(since)
        found: list[Change] = []
        going_on: list[str] = []
        for shard in self.run(stream_commands.ListShards(stream), STREAMING):
            place = places.get(shard.number)
            if place is None:
                start = Latest() if not since else Oldest()
                place = self.run(stream_commands.FindPosition(stream, shard.number, start), STREAMING)
            page = self.run(stream_commands.ReadChanges(stream, shard.number, place, _LIVE), STREAMING)
            found += page.changes
            going_on.append(f"{shard.number}-{place if page.next is None else page.next}")
        return found, " ".join(going_on)

    def _newest_changes(self, stream: Stream, until: float) -> Iterator[Change]:
        """Yield the last changes of a stream, newest first in each shard: at most CHANGES, and not after a time."""
        left = CHANGES
        for shard in reversed(self.run(stream_commands.ListShards(stream), STREAMING)):
            oldest, end = (
                self.run(stream_commands.FindPosition(stream, shard.number, at), STREAMING)
                for at in (Oldest(), Latest())
            )
            while oldest < end and left > 0 and monotonic() < until:
                start = max(oldest, end - min(left, _CHANGES_AT_ONCE))
                yield from reversed(self._changes_between(stream, shard.number, start, end))
                left -= end - start
                end = start

    def _changes_between(self, stream: Stream, shard: int, start: int, end: int) -> list[Change]:
        found: list[Change] = []
        place: int | None = start
        while place is not None and place < end:
            read = stream_commands.ReadChanges(stream, shard, place, end - place)
            page = self.run(read, STREAMING)
            found += [each for each in page.changes if each.sequence < end]
            place = page.next if page.changes else None
        return found

    def jobs(self) -> list[Job]:
        """Return the unfinished jobs that the visitor can describe."""
        found = run_one(self._engine, ListUnfinishedJobs(), None)
        return [job for job in found if self._shows(job)]

    def cancel(self, job_id: int) -> None:
        """Cancel an unfinished job that the visitor can describe. Raises NotPermitted."""
        found = [job for job in run_one(self._engine, ListUnfinishedJobs(job_id), None) if self._shows(job)]
        if found:
            self.run(CancelJob(found[0]), CANCELLING)

    def _shows(self, job: Job) -> bool:
        """True if a job belongs to a namespace of the visitor and the visitor can describe it."""
        authorization = self._visitor.authorization
        if not self._visitor.sees(job.namespace):
            return False
        if authorization is None:
            return True
        authorization.purpose = DESCRIBING_JOBS
        command = ListJobs(job.namespace, job.kind, limit=1, table_name=job.table_name)
        return authorization.refusal_of_command(command) is None

    def run(self, command: Any, purpose: Purpose) -> Any:
        """Return the outcome of one command of the visitor. Raises NotPermitted, QuotaExceeded."""
        [outcome] = self.run_all([command], purpose)
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome

    def run_all(self, commands: list[Any], purpose: Purpose) -> list[Any]:
        """Return the outcomes and errors of commands of the visitor. Raises NotPermitted, QuotaExceeded."""
        authorization = self._visitor.authorization
        if authorization is not None:
            authorization.purpose = purpose
        return run(self._engine, commands, authorization)


def _paths(name: str, found: Any) -> Iterator[str]:
    """Yield the paths in grants of a table, its indexes and its stream. The table can be missing."""
    yield name
    if isinstance(found, Table):
        yield from (f"{name}/index/{index.name}" for index in found.indexes)
        rule = found.rules.stream
        yield f"{name}/stream/{'' if rule is None else rule.label}"


def _places(since: str) -> dict[int, int]:
    """Return shard -> sequence number from a position of `latest_changes`. Raises BadSearch."""
    places = {}
    for part in since.split()[:1000]:
        shard, _, sequence = part.partition("-")
        if not (shard.isdecimal() and sequence.isdecimal() and len(shard) < 10 and len(sequence) < 19):
            raise BadSearch("This is not a position in a stream. Reload the page.")
        places[int(shard)] = int(sequence)
    return places


# A page of a rare filter ends after this time. The next request continues there.
_SECONDS = 2.0
# The limits of one command of such a page, and of the rows on a page together.
_SCANNED, _SLICE_S, _BYTES = 5_000, 0.25, 1 << 20


class Cursor(NamedTuple):
    """The place in an order of rows where a page begins. `is_backwards`: it is the page before this position."""

    position: Position | None = None
    is_backwards: bool = False


@dataclass(frozen=True, slots=True)
class RowPage:
    """A page of rows in the order of the search.

    - `before`, `after`: the positions where the previous and the next page begin, or None if there is no such page.
    - `scanned`: number of rows that were read.
    - `is_whole`: False if the time ended before the page was full. Then it goes on in the direction of reading.
    """

    rows: list[Row]
    before: Position | None
    after: Position | None
    scanned: int
    is_whole: bool


def read_page(reading: TableReader, search: RowSearch, view: View, cursor: Cursor, size: int) -> RowPage:
    """Return a page of at most `size` results of a search. It ends early after some time or with large rows.

    Through an index, rows have the attributes that the index shows, as for an SDK: a grant on the index covers no others.
    """
    reverse = search.reverse is not cursor.is_backwards
    bounds = search.key_range()
    if cursor.position is not None:
        bounds = _beyond(bounds, cursor.position, reverse)
    until = monotonic() + _SECONDS
    rows: list[Row] = []
    scanned = held = 0
    while True:
        limits = PageLimits(
            _SCANNED, size - len(rows), seconds=_SLICE_S, peek=True, returned_bytes=_BYTES - held
        )
        page = reading.run(
            Read(search.table, bounds, limits, search.search_index, reverse, search.filter(), view),
            LOOKING_UP,
        )
        rows += page.rows
        scanned += page.scanned
        held += sum(row.size_bytes for row in page.rows)
        end = None if page.last is None or page.next is None else position_in(search, page.last)
        is_whole = end is None or len(rows) >= size or held >= _BYTES
        if end is None or is_whole or monotonic() >= until:
            break
        bounds = _beyond(bounds, end, reverse)
    start = cursor.position
    if rows and start is not None:
        start = position_in(search, rows[0])
    if cursor.is_backwards:
        return RowPage(rows[::-1], end, start, scanned, is_whole)
    return RowPage(rows, start, end, scanned, is_whole)


def _beyond(bounds: KeyRange, position: Position, reverse: bool) -> KeyRange:
    """Return the part of a range behind a position in the direction of reading."""
    return bounds.before(position) if reverse else bounds.after(position)


def position_in(search: RowSearch, row: Row) -> Position:
    """Return the position of a row in the table or index of a search."""
    entry = None if search.search_index is None else search.search_index.entry(row)
    return row.position if entry is None else entry.position

"""What the console reads, by commands of the engine alone: tables, pages of rows, and what a stream kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gateway.console.searches import BadSearch, Search, place_of
from gateway.console.sign_in import Visitor
from gateway.engine.engine import Engine, run_with_retries
from gateway.model.changes import Change, Latest, Oldest, Stream
from gateway.model.commands import (
    CountRows,
    FindPosition,
    FindTable,
    Get,
    ListNamespaces,
    ListShards,
    ListStreams,
    ListTables,
    Read,
    ReadChanges,
    TableStatistics,
)
from gateway.model.errors import GatewayError, NotPermitted, TableMissing
from gateway.model.fast_dataclasses import dataclass
from gateway.model.keys import Position
from gateway.model.pages import PageLimits
from gateway.model.permissions import Permission, Purpose
from gateway.model.rows import Row
from gateway.model.tables import Index, Table
from gateway.security.authorizing import authorize, settle

_LOOKING, _DESCRIBING = Purpose((Permission.QUERY,)), Purpose((Permission.DESCRIBE,))
ROWS = 50
TABLES = 200
# A page looks no further, however few rows pass the filter: the next one goes on there.
_SCANNED = 5_000
_SECONDS = 1.0
CHANGES = 5_000
"""What a history goes through at most."""
_CHANGES_AT_ONCE = 500
_LIVE = 100


@dataclass(frozen=True, slots=True)
class Rows:
    """A page. `after`: where the next one begins; "": this is the last. `scanned`: how many rows were looked at."""

    rows: list[Row]
    after: str
    scanned: int


class Reading:
    """What one visitor may read. Raises GatewayError."""

    def __init__(self, engine: Engine, visitor: Visitor) -> None:
        self._engine = engine
        self._visitor = visitor

    def tables(self, after: tuple[str, str] = ("", "")) -> tuple[list[Table], bool]:
        """The visitor's tables after a (namespace, name), and whether there are more."""
        found: list[Table] = []
        [namespaces] = self._engine.run([ListNamespaces()])
        for namespace in namespaces:
            if namespace < after[0] or not self._visitor.sees(namespace):
                continue
            name = after[1] if namespace == after[0] else ""
            found += self.run(ListTables(namespace, name, TABLES + 1 - len(found)))
            if len(found) > TABLES:
                return found[:TABLES], True
        return found, False

    def table(self, namespace: str, name: str) -> Table:
        """One table of the visitor's. Raises TableMissing, also of others' tables."""
        if not self._visitor.sees(namespace):
            raise TableMissing(name)
        found: Table = self.run(FindTable(namespace, name))
        return found

    def statistics(self, table: Table) -> TableStatistics:
        """Rows and bytes of a table and its indexes, about. Raises NotPermitted where a table may not be described."""
        found: TableStatistics = self.run(CountRows(table), _DESCRIBING)
        return found

    def statistics_if_allowed(self, table: Table) -> TableStatistics | None:
        """Those of a table in a list; None where it may not be described."""
        try:
            return self.statistics(table)
        except NotPermitted:
            return None

    def rows(self, table: Table, search: Search) -> Rows:
        """A page of what a search finds. Raises BadSearch."""
        index = _index(table, search.index)
        schema = table.key_schema if index is None else index.key_schema
        limits = PageLimits(scanned=_SCANNED, returned=ROWS, seconds=_SECONDS)
        page = self.run(
            Read(table, search.range(schema), limits, index, filter=search.predicate(), whole_rows=True)
        )
        after = ""
        if page.last is not None:
            last = page.last if index is None else index.entry(page.last)
            after = "" if last is None else place_of(last.position)
        return Rows(page.rows, after, page.scanned)

    def row(self, table: Table, position: Position) -> Row | None:
        """The row at a position."""
        found: Row | None = self.run(Get(table, position))
        return found

    def history(self, table: Table, position: Position) -> list[Change]:
        """What the table's stream has kept of one row, newest first; of a long stream its last CHANGES changes are looked at."""
        found: list[Change] = []
        for stream in self.run(ListStreams(table.namespace, table.name)):
            if stream.table_id == table.id:
                found += [
                    each
                    for each in self._newest_changes(stream)
                    if table.key_schema.key(each.key_values).position == position
                ]
        return sorted(found, key=lambda change: -change.at_ms)

    def latest_changes(self, table: Table, since: str) -> tuple[list[Change], str]:
        """Changes of the stream that a table has now, and where to go on; `since` is "" to begin at its end."""
        streams: list[Stream] = self.run(ListStreams(table.namespace, table.name))
        streams = [each for each in streams if each.ended_at_ms is None and each.table_id == table.id]
        if not streams:
            return [], ""
        [stream] = streams
        places = _places(since)
        found: list[Change] = []
        going_on: list[str] = []
        for shard in self.run(ListShards(stream)):
            place = places.get(shard.number)
            if place is None:
                start = Latest() if not since else Oldest()
                place = self.run(FindPosition(stream, shard.number, start))
            page = self.run(ReadChanges(stream, shard.number, place, _LIVE))
            found += page.changes
            going_on.append(f"{shard.number}-{place if page.next is None else page.next}")
        return found, " ".join(going_on)

    def _newest_changes(self, stream: Stream) -> Iterator[Change]:
        """The last changes of a stream, at most CHANGES of them."""
        left = CHANGES
        for shard in reversed(self.run(ListShards(stream))):
            oldest, end = (self.run(FindPosition(stream, shard.number, at)) for at in (Oldest(), Latest()))
            place: int | None = max(oldest, end - left)
            left -= end - max(oldest, end - left)
            while place is not None and place < end:
                page = self.run(ReadChanges(stream, shard.number, place, _CHANGES_AT_ONCE))
                yield from page.changes
                place = page.next if page.changes else None
            if left <= 0:
                return

    def run(self, command: Any, purpose: Purpose = _LOOKING) -> Any:
        """The outcome of one command, if the visitor may have it. Raises NotPermitted."""
        authorization = self._visitor.authorization
        if authorization is not None:
            authorization.purpose = purpose
            refusal = authorize(authorization, [command])
            if refusal is not None:
                raise refusal
        outcomes = run_with_retries(self._engine, [command])
        [outcome] = outcomes if authorization is None else settle(authorization, [command], outcomes)
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome


def _index(table: Table, name: str) -> Index | None:
    if not name:
        return None
    index = table.index(name)
    if index is None:
        raise BadSearch(f"there is no index {name}")
    return index


def _places(since: str) -> dict[int, int]:
    """Shard -> sequence, of what `latest_changes` gave."""
    places = {}
    for part in since.split()[:1000]:
        shard, _, sequence = part.partition("-")
        if not (shard.isdecimal() and sequence.isdecimal() and len(part) < 60):
            raise BadSearch("this is no place in a stream")
        places[int(shard)] = int(sequence)
    return places

"""A table in a tablegate database as an endpoint, accessed by the engine without a server."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import ClassVar

from tablegate.gateway.model.commands.row_commands import BulkLoad, Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import CountRows, ListTables, TableStatistics
from tablegate.gateway.model.commands.writes import Remove, Replace, Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key, Position
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents, Row
from tablegate.gateway.security import gate
from tablegate.transfer.endpoints import endpoint
from tablegate.transfer.endpoints.database import streams, tables
from tablegate.transfer.endpoints.database.client import Client
from tablegate.transfer.endpoints.definitions import definition_of_table

_PAGE = PageLimits(scanned=1_000, filled_bytes=1 << 20)
_MAX_SEGMENTS = 256  # more segments than slots bring no gain (gateway/store/rows/scans.py)
# Below this number of rows puts are faster than a bulk load.
_FEW_ROWS = 20


class DatabaseEndpoint(endpoint.Endpoint):
    """A table of a tablegate database."""

    service = endpoint.Service.TABLEGATE
    write_rows: ClassVar[int] = 2_000

    def __init__(self, address: str) -> None:
        """Parse an address DATABASE-URL#[NAMESPACE/]TABLE without opening the database. Raises BadAddress."""
        self.client = Client(address)
        self.shown = self.client.shown
        self._count: tuple[int | None, int | None] | None = None

    def close(self) -> None:
        self.client.close()

    # The table

    def describe(self) -> endpoint.Definition:
        table = self.client.find(is_refreshed=True)
        if self._count is None:
            [statistics] = gate.run(self.client.database().engine, [CountRows(table)], None)
            # The count of a very large table may exceed the statement timeout.
            is_counted = isinstance(statistics, TableStatistics)
            self._count = (statistics.rows, statistics.size_bytes) if is_counted else (None, None)
        return definition_of_table(tables.as_completed(table), *self._count)

    def create(self, definition: endpoint.Definition) -> list[str]:
        tables.create(self.client, definition)
        return []

    def finish(self) -> None:
        tables.finish(self.client)

    def list_tables(self) -> list[str]:
        self.client.require_file()
        return [table.name for table in self.client.run([ListTables(self.client.namespace)])[0]]

    # Rows

    def segments(self, count: int) -> list[endpoint.JSON]:
        # Several readers of one process, each with its own cache, do not read one SQLite file faster.
        segments_max = _MAX_SEGMENTS if self.client.settings.database_path is None else 1
        total = max(1, min(count, segments_max))
        return [[number, total] for number in range(total)]

    def scan(
        self, segment: endpoint.JSON, resume: endpoint.JSON | None = None
    ) -> Iterator[endpoint.ScanPage]:
        part = Segment(*segment)
        after = None if resume is None else Position(*map(base64.b64decode, resume))
        while True:
            page = self._page(part, after)
            if page.last is None:
                yield endpoint.ScanPage(page.rows, None)
                return
            after = page.last.position
            yield endpoint.ScanPage(page.rows, [base64.b64encode(bound).decode() for bound in after])

    def _page(self, part: Segment, after: Position | None) -> Page:
        if part.total == 1:  # in the order of keys, in which SQLite keeps them
            rest = EVERYTHING if after is None else KeyRange(after.after, EVERYTHING.upper)
            [page] = self.client.on_table(lambda table: [Read(table, rest, _PAGE)])
        else:
            [page] = self.client.on_table(
                lambda table: [Read(table, EVERYTHING, _PAGE, segment=part, after=after)]
            )
        return page

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        rows: list[Row | None] = self.client.on_table(
            lambda table: [ReadAll(tuple(Get(table, key.position) for key in keys))]
        )[0]
        return rows

    def write(self, rows: Sequence[Row]) -> list[endpoint.Reject]:
        if len(rows) >= _FEW_ROWS:
            [refusal] = self.client.on_table(
                lambda table: [_load(table, rows)],
                returns_errors=True,
            )
            if not isinstance(refusal, GatewayError):
                return []
        answers = self.client.on_table(lambda table: [_put(table, row) for row in rows], returns_errors=True)
        return [
            endpoint.Reject(row, type(answer).__name__, repr(answer))
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(answer, GatewayError)
        ]

    def delete(self, keys: Sequence[Key]) -> None:
        self.client.on_table(lambda table: [WriteGroup((Write(table, key, Remove()),)) for key in keys])

    # Changes

    def capture(self) -> endpoint.JSON:
        return streams.capture(self.client)

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        return streams.changes(self.client, position)


def _keeps_times(table: Table) -> bool:
    """True if the table uses ages or versions. Then values without a stamp get the time of their row."""
    rules = table.rules
    return rules.stamped or (rules.expiry is not None and rules.expiry.age_ms is not None)


def _contents_for(table: Table, row: Row) -> Contents:
    """Return a row's contents for a table."""
    contents = row.contents
    if not row.modified_at or contents.kinds not in (None, FOREIGN_KINDS) or not _keeps_times(table):
        return contents
    return Contents.of_cells(table.key_values(row.latest), table.cells_of(row))


def _load(table: Table, rows: Sequence[Row]) -> BulkLoad:
    if _keeps_times(table):
        return BulkLoad(table, [(row.position, _contents_for(table, row)) for row in rows])
    return BulkLoad(table, [(row.position, row.contents) for row in rows])


def _put(table: Table, row: Row) -> WriteGroup:
    key = table.key_schema.decode(row.position)
    return WriteGroup((Write(table, key, Replace(_contents_for(table, row))),))

"""A table in a tablegate database as an endpoint, accessed by the engine without a server.

A table is created at the beginning of a copy and completed at its end. The stream of a new table is enabled at the end,
since copied rows are no changes of this table. Until then its rule is stored in the table's properties.

The position in a change stream is `{"stream": LABEL, "shards": {NUMBER: SEQUENCE}}`. The sequence is null for a shard that
was read to its end.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from tablegate.adapters.dynamodb import DIALECT as DYNAMODB
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.tablestore import DIALECT as TABLE_STORE
from tablegate.adapters.tablestore.table_properties import TableOptions
from tablegate.gateway.model.commands.row_commands import BulkLoad, Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.stream_commands import FindPosition, FindStream, ListShards, ReadChanges
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    CountRows,
    CreateTable,
    ListTables,
    TableStatistics,
)
from tablegate.gateway.model.commands.writes import Remove, Replace, Write
from tablegate.gateway.model.errors import GatewayError, PositionExpired, StreamMissing
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.changes import Latest, Oldest
from tablegate.gateway.model.tables.pages import Page, PageLimits, Segment
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.model.values.keys import Key, Position
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents, Row
from tablegate.gateway.security import gate
from tablegate.gateway.store.tables.descriptors import stream_rule
from tablegate.transfer.endpoints import endpoint
from tablegate.transfer.endpoints.database_client import Client
from tablegate.transfer.endpoints.definitions import definition_of_table, service_of
from tablegate.transfer.endpoints.endpoint import JSON, ChangedKeys, Definition, Service
from tablegate.transfer.errors import PositionLost, SchemaChanged, TableAbsent

# The property with settings that are applied at the end of the copy.
_PENDING = "transfer"
_DIALECTS = {
    Service.DYNAMODB: "dynamodb",
    Service.AZURE_TABLE: "azuretable",
    Service.TABLE_STORE: "tablestore",
    Service.TABLEGATE: "",
}


def dialect_of(table: Table) -> str:
    """Return the dialect that created the table, "" if unknown."""
    return _DIALECTS[service_of(table)]


def as_completed(table: Table) -> Table:
    """Return a table with the stream that it gets at the end of the copy."""
    pending = table.properties.get(_PENDING, {})
    rules = table.rules
    if "stream" in pending:
        rules = dataclasses.replace(rules, stream=stream_rule(pending["stream"]))
    properties = {name: value for name, value in table.properties.items() if name != _PENDING}
    return dataclasses.replace(table, rules=rules, properties=properties)


def create_table(client: Client, definition: Definition) -> None:
    """Create a table, or use an existing one with the same key. Raises SchemaChanged."""
    command = _creation_of(client, definition)
    try:
        table = client.find()
    except TableAbsent:
        [table] = client.run([command])
        client.remember(table)
    if table.key_schema != definition.key_schema:
        raise SchemaChanged(f"{client.shown}: a table of that name exists with another key")
    client.database().record("copy", client.name)


def _creation_of(client: Client, definition: Definition) -> CreateTable:
    service = definition.service
    rules, properties = definition.rules, dict(definition.properties)
    if service is Service.TABLE_STORE:
        rules = dataclasses.replace(rules, stamped=True)
        properties.setdefault(
            TABLE_STORE, TableOptions(table_id=secrets.token_hex(16)).as_properties()[TABLE_STORE]
        )
    elif service is Service.DYNAMODB:
        properties.setdefault(DYNAMODB, TableProperties().document()[DYNAMODB])
    if rules.stream is not None and rules.stream.enabled:
        stream = dataclasses.replace(rules.stream, id=0, shards=())
        properties[_PENDING] = {"stream": dataclasses.asdict(stream)}
    rules = dataclasses.replace(rules, stream=None)
    return CreateTable(
        _DIALECTS[service], client.namespace, client.name, definition.key_schema, definition.indexes, rules, properties,
        other_indexes=definition.other_indexes,
    )  # fmt: skip


def finish_table(client: Client) -> None:
    """Enable the stream at the end of a copy."""
    table = client.find(is_refreshed=True)
    if stream := table.properties.get(_PENDING, {}).get("stream"):
        rule = dataclasses.replace(stream_rule(stream), enabled_at_ms=time.time_ns() // 1_000_000)
        client.alter(
            lambda table: AlterTable(
                dialect_of(table), table, dataclasses.replace(table.rules, stream=rule),
                {_PENDING: {}}, instant=True,
            )
        )  # fmt: skip


# Limits of changes for each shard and poll. A page counts as cut by bytes if more than half is used, since a change
# has two rows of at most 4 MB each.
_CHANGES, _CHANGES_BYTES = 500, 16 << 20
_STREAM_RETENTION_MS = 7 * 86_400_000


def capture_position(client: Client) -> JSON:
    """Return the current position. Enables the stream if necessary."""
    table = client.find(is_refreshed=True)
    if table.rules.stream is None or not table.rules.stream.enabled:
        table = client.alter(_with_stream)
    assert table.rules.stream is not None
    label = table.rules.stream.label
    stream = client.run([FindStream(client.namespace, client.name, label)])[0]
    shards = client.run([ListShards(stream)])[0]
    positions = client.run([FindPosition(stream, shard.number, Latest()) for shard in shards])
    return {
        "stream": label,
        "shards": {
            str(shard.number): None if shard.closed_at_ms is not None else sequence
            for shard, sequence in zip(shards, positions, strict=True)
        },
    }


def changes_since(client: Client, position: JSON) -> ChangedKeys:
    """Return the keys that changed after a position. Raises PositionLost."""
    try:
        return _changes(client, position["stream"], position["shards"])
    except (PositionExpired, StreamMissing):
        raise PositionLost(
            f"{client.shown}: changes after the stored position have been deleted. Copy the table again"
        ) from None


def _changes(client: Client, label: str, sequences: dict[str, int | None]) -> ChangedKeys:
    stream = client.run([FindStream(client.namespace, client.name, label)])[0]
    keys: dict[Position, Key] = {}
    after: dict[str, int | None] = {}
    at_ms, caught_up = None, True
    for shard in client.run([ListShards(stream)])[0]:
        name = str(shard.number)
        sequence = (
            sequences[name]
            if name in sequences
            else client.run([FindPosition(stream, shard.number, Oldest())])[0]
        )
        if sequence is not None:
            page = client.run([ReadChanges(stream, shard.number, sequence, _CHANGES, _CHANGES_BYTES)])[0]
            for change in page.changes:
                key = stream.key_schema.key(change.key_values)
                keys.pop(key.position, None)
                keys[key.position] = key
                at_ms = max(at_ms or 0, change.at_ms)
            caught_up = caught_up and not _is_cut(page.changes)
            sequence = page.next
        after[name] = sequence
    if stream.ended_at_ms is not None and not keys:
        raise PositionLost(
            f"{client.shown}: the stream {label} was disabled, so later changes are not recorded. Copy the table again"
        )
    return ChangedKeys(list(keys.values()), {"stream": label, "shards": after}, at_ms, caught_up)


def _with_stream(table: Table) -> AlterTable:
    """Enable a stream, with a label in the form that DynamoDB clients expect."""
    now = datetime.datetime.now(datetime.UTC)
    label = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}"
    rule = StreamRule(label, True, "KEYS_ONLY", _STREAM_RETENTION_MS, round(now.timestamp() * 1000))
    rules: Rules = dataclasses.replace(table.rules, stream=rule)
    return AlterTable(dialect_of(table), table, rules, instant=True)


def _is_cut(changes: Sequence[Any]) -> bool:
    """True if a page of changes may have ended at its limits."""
    weight = sum(len(row.body) for change in changes for row in (change.old, change.new) if row is not None)
    return len(changes) >= _CHANGES or weight > _CHANGES_BYTES // 2


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
        return definition_of_table(as_completed(table), *self._count)

    def create(self, definition: endpoint.Definition) -> list[str]:
        create_table(self.client, definition)
        return []

    def finish(self) -> None:
        finish_table(self.client)

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
        return capture_position(self.client)

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        return changes_since(self.client, position)


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

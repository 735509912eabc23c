"""A Table Store table as an endpoint.

Rows keep the stamps and versions of their cells. Segments lie between split points that the service computes by
size.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise

from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire import limits, plainbuffer
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints import endpoint, table_store_streams, table_store_tables
from tablegate.transfer.endpoints.batching import (
    PATIENCE_S,
    Backoff,
    RetryBudget,
    Sent,
    in_batches,
    require_deleted,
    write_batch,
)
from tablegate.transfer.endpoints.table_store_client import Account, Client, is_transient
from tablegate.transfer.errors import RequestRefused, TransferError

_UNLIMITED = sys.maxsize
_SPLIT_UNIT_BYTES = limits.SPLIT_SIZE_UNIT_MIN_BYTES
_IGNORE = messages.Condition(row_existence=messages.IGNORE)


class TableStoreEndpoint(endpoint.Endpoint):
    """One table. If `table` is "", an instance for listing tables."""

    service = endpoint.Service.TABLE_STORE
    write_rows = limits.BATCH_WRITE_ROWS_MAX

    def __init__(self, table: str, account: Account, shown: str, patience_s: float = PATIENCE_S) -> None:
        self.shown = shown
        self._table = table
        self._client = Client(account, RetryBudget(patience_s, shown))

    # The table

    def describe(self) -> endpoint.Definition:
        return table_store_tables.definition_of(
            self._table, table_store_tables.describe(self._client, self._table)
        )

    def create(self, definition: endpoint.Definition) -> list[str]:
        return table_store_tables.create(self._client, self._table, definition)

    def list_tables(self) -> list[str]:
        answer = self._client.call("ListTable", messages.ListTableRequest(), messages.ListTableResponse)
        return list(answer.table_names)

    @cached_property
    def _definition(self) -> endpoint.Definition:
        return self.describe()

    @property
    def _schema(self) -> KeySchema:
        return self._definition.key_schema

    # Reading

    def segments(self, count: int) -> list[endpoint.JSON]:
        points = self._split_points(count) if count > 1 else []
        lowest, highest = self._bound(plainbuffer.Bound.INF_MIN), self._bound(plainbuffer.Bound.INF_MAX)
        bounds = [lowest, *map(self._complete_key, points), highest]
        return [{"from": _text(low), "to": _text(high)} for low, high in pairwise(bounds)]

    def _split_points(self, count: int) -> list[bytes]:
        """Return at most `count` - 1 points that divide the table evenly by size, none if the service has none."""
        points: list[bytes] = []
        for unit in (None, _SPLIT_UNIT_BYTES):  # the default of 100 MB, then the smallest unit
            request = messages.ComputeSplitPointsBySizeRequest(table_name=self._table, split_size=1)
            if unit is not None:
                request.split_size_unit_in_byte = unit
            try:
                answer = self._client.call(
                    "ComputeSplitPointsBySize", request, messages.ComputeSplitPointsBySizeResponse
                )
            except RequestRefused:
                break
            points = list(answer.split_points)
            if len(points) >= count - 1:
                break
        parts = min(count, len(points) + 1)
        return [points[number * (len(points) + 1) // parts - 1] for number in range(1, parts)]

    def _bound(self, value: plainbuffer.Bound) -> bytes:
        return plainbuffer.encode_row(
            plainbuffer.WireRow([plainbuffer.WireCell(name, value) for name in self._schema.names])
        )

    def _complete_key(self, point: bytes) -> bytes:
        """Return a split point as a bound with all key columns."""
        cells = list(self._decode(point).key)
        names = self._schema.names
        cells += [plainbuffer.WireCell(name, plainbuffer.Bound.INF_MIN) for name in names[len(cells) :]]
        return plainbuffer.encode_row(plainbuffer.WireRow(cells))

    def scan(
        self, segment: endpoint.JSON, resume: endpoint.JSON | None = None
    ) -> Iterator[endpoint.ScanPage]:
        while True:
            request = messages.GetRangeRequest(
                table_name=self._table,
                direction=messages.FORWARD,
                max_versions=self._definition.rules.max_versions,
                inclusive_start_primary_key=_bytes(resume or segment["from"]),
                exclusive_end_primary_key=_bytes(segment["to"]),
            )
            answer = self._client.call("GetRange", request, messages.GetRangeResponse)
            rows = [self._row(wire) for wire in self._decoded_rows(answer.rows)]
            resume = _text(answer.next_start_primary_key) if answer.next_start_primary_key else None
            yield endpoint.ScanPage(rows, resume)
            if resume is None:
                return

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        rows: dict[Position, Row | None] = {}
        distinct = list({key.position: key for key in keys}.values())
        for at in range(0, len(distinct), limits.BATCH_GET_ROWS_MAX):
            self._get_batch(distinct[at : at + limits.BATCH_GET_ROWS_MAX], rows)
        return [rows[key.position] for key in keys]

    def _get_batch(self, wanted_keys: list[Key], rows: dict[Position, Row | None]) -> None:
        backoff = Backoff(self._client.patience)
        while wanted_keys:
            request = messages.BatchGetRowRequest()
            request.tables.add(
                table_name=self._table,
                primary_key=[
                    plainbuffer.encode_row(plainbuffer.WireRow(self._key_cells(key.values)))
                    for key in wanted_keys
                ],
                max_versions=self._definition.rules.max_versions,
            )
            answer = self._client.call("BatchGetRow", request, messages.BatchGetRowResponse)
            unread, reason = [], ""
            for key, result in zip(wanted_keys, answer.tables[0].rows, strict=True):
                if result.is_ok:
                    rows[key.position] = self._row(self._decode(result.row)) if result.row else None
                elif is_transient(result.error.code, result.error.message):
                    unread.append(key)
                    reason = result.error.code
                else:
                    text = f"{result.error.code}: {result.error.message}"
                    raise TransferError(f"{self.shown}: a row cannot be read: {text}")
            if len(unread) < len(wanted_keys):
                backoff.progressed()
            if unread:
                backoff.wait(reason)
            wanted_keys = unread

    def _decode(self, data: bytes) -> plainbuffer.WireRow:
        try:
            return plainbuffer.decode_row(data, _UNLIMITED)
        except plainbuffer.PlainBufferError as error:
            raise TransferError(f"{self.shown}: a row has an invalid encoding: {error}") from None

    def _decoded_rows(self, data: bytes) -> list[plainbuffer.WireRow]:
        try:
            return plainbuffer.decode_rows(data, _UNLIMITED)
        except plainbuffer.PlainBufferError as error:
            raise TransferError(f"{self.shown}: rows have an invalid encoding: {error}") from None

    def _row(self, wire: plainbuffer.WireRow) -> Row:
        key_values: dict[str, Value] = {cell.name: cell.value for cell in wire.key}  # type: ignore[misc]
        cells: dict[str, tuple[Cell, ...]] = {}
        for cell in wire.cells:
            version = Cell(cell.value, cell.stamp_ms or 0)  # type: ignore[arg-type]
            before = cells.get(cell.name)
            cells[cell.name] = (version,) if before is None else (*before, version)
        position = self._schema.position([key_values[name] for name in self._schema.names])
        contents = Contents.of_cells(key_values, cells) if cells else Contents.of_values(key_values)
        return Row(position, contents, 0)

    # Writing

    def write(self, rows: Sequence[Row]) -> list[endpoint.Reject]:
        changes = [(row, self._put(row)) for row in {row.position: row for row in rows}.values()]
        return self._write(changes, messages.PUT)

    def _put(self, row: Row) -> bytes:
        names = self._schema.names
        latest = row.latest
        key = self._key_cells([latest[name] for name in names])
        if row.kinds is None or row.kinds == FOREIGN_KINDS:  # no cell has a stamp
            cells = [
                plainbuffer.WireCell(name, view(value)) for name, value in latest.items() if name not in names
            ]
        else:
            cells = [
                plainbuffer.WireCell(name, view(version.value), version.stamp_ms)
                for name, versions in row.cells.items()
                if name not in names
                for version in versions
            ]
        stored_cells = [
            cell for cell in cells if not (isinstance(cell.value, Value) and cell.value.kind is Kind.NULL)
        ]
        return plainbuffer.encode_row(plainbuffer.WireRow(key, stored_cells))

    def delete(self, keys: Sequence[Key]) -> None:
        changes = []
        for key in {key.position: key for key in keys}.values():
            contents = Contents.of_values(dict(zip(self._schema.names, key.values, strict=True)))
            change = plainbuffer.encode_row(
                plainbuffer.WireRow(self._key_cells(key.values), (), is_delete=True)
            )
            changes.append((Row(key.position, contents, 0), change))
        require_deleted(self._write(changes, messages.DELETE), self.shown)

    def _key_cells(self, values: Sequence[Value]) -> list[plainbuffer.WireCell]:
        return [
            plainbuffer.WireCell(name, value) for name, value in zip(self._schema.names, values, strict=True)
        ]

    def _write(self, changes: list[tuple[Row, bytes]], kind: messages.OperationType) -> list[endpoint.Reject]:
        rejects: list[endpoint.Reject] = []
        for batch in _batches(changes):
            rejects += write_batch(batch, partial(self._send_batch, kind), self._client.patience)
        return rejects

    def _send_batch(self, kind: messages.OperationType, batch: list[tuple[Row, bytes]]) -> Sent[bytes]:
        request = messages.BatchWriteRowRequest()
        rows = [
            messages.RowInBatchWriteRowRequest(type=kind, row_change=change, condition=_IGNORE)
            for _, change in batch
        ]
        request.tables.add(table_name=self._table, rows=rows)
        answer = self._client.call("BatchWriteRow", request, messages.BatchWriteRowResponse)
        outcome = Sent[bytes]()
        for entry, result in zip(batch, answer.tables[0].rows, strict=True):
            error = result.error
            if result.is_ok:
                continue
            if is_transient(error.code, error.message):
                outcome.left.append(entry)
                outcome.reason = error.code
            else:
                outcome.rejects.append(endpoint.Reject(entry[0], error.code, error.message))
        return outcome

    # Following

    @cached_property
    def _follower(self) -> table_store_streams.StreamFollower:
        return table_store_streams.StreamFollower(self._table, self._client)

    def capture(self) -> endpoint.JSON:
        return self._follower.capture()

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        return self._follower.poll(position, self._schema)

    def close(self) -> None:
        self._client.close()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _batches(changes: list[tuple[Row, bytes]]) -> Iterator[list[tuple[Row, bytes]]]:
    """Yield batches for BatchWriteRow: at most 200 rows and 4 MB."""
    return in_batches(
        changes, lambda change: len(change[1]), limits.BATCH_WRITE_ROWS_MAX, limits.WRITE_MAX_BYTES
    )

"""ListStream, DescribeStream, GetShardIterator, GetStreamRecord, and the records of changes.

An iterator is a text with stream, shard and sequence. Source: docs/protocols/table-store.md section 4.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import CallContext
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.values import key_value_shown
from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire import limits, plainbuffer
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.commands.writes import ChangeKind
from tablegate.gateway.model.errors import StreamMissing
from tablegate.gateway.model.expressions.updates import DeleteCell, DeleteCells, PutCell
from tablegate.gateway.model.tables.changes import AtTime, Change, Oldest, Shard, Stream
from tablegate.gateway.model.values.rows import Cell, Row
from tablegate.gateway.model.values.values import Kind, Value

_HOUR_MS = 3_600_000
_ACTIONS = {
    ChangeKind.PUT: messages.PUT_ROW,
    ChangeKind.UPDATE: messages.UPDATE_ROW,
    ChangeKind.DELETE: messages.DELETE_ROW,
}


def stream_id(stream: Stream) -> str:
    """Return the id of a stream: the name of its table and its label."""
    return f"{stream.table_name}_{stream.label}"


async def list_stream(call: CallContext) -> Message:
    """ListStream: the enabled streams of one table or of all tables."""
    message = call.message
    name = message.table_name if message.HasField("table_name") else None
    streams = await stream_commands.ListStreams(call.caller.namespace, name)
    return messages.ListStreamResponse(
        streams=[
            messages.Stream(
                stream_id=stream_id(stream),
                table_name=stream.table_name,
                creation_time=stream.opened_at_ms * 1000,
            )
            for stream in streams
            if stream.ended_at_ms is None
        ]
    )


async def describe_stream(call: CallContext) -> Message:
    """DescribeStream: a page of the shards of a stream, parents before their children. Raises ServiceError."""
    message = call.message
    stream = await _find(call, message.stream_id)
    shards = await stream_commands.ListShards(stream)
    if message.HasField("inclusive_start_shard_id"):
        first = _shard_number(message.inclusive_start_shard_id)
        shards = [shard for shard in shards if shard.number >= first]
    limit = message.shard_limit if message.HasField("shard_limit") else limits.SHARDS_DESCRIBED_MAX
    if limit <= 0:
        raise invalid("The shard limit must be greater than 0.")
    answer = messages.DescribeStreamResponse(
        stream_id=message.stream_id,
        expiration_time=stream.rule.retention_ms // _HOUR_MS,
        table_name=stream.table_name,
        creation_time=stream.opened_at_ms * 1000,
        stream_status=messages.STREAM_ACTIVE,
        shards=[_shard_message(shard) for shard in shards[:limit]],
    )
    if len(shards) > limit:
        answer.next_shard_id = _shard_id(shards[limit])
    return answer


def _shard_message(shard: Shard) -> messages.StreamShard:
    shard_message = messages.StreamShard(shard_id=_shard_id(shard))
    if shard.parents:
        shard_message.parent_id = _id_of(shard.parents[0])
    if len(shard.parents) > 1:
        shard_message.parent_sibling_id = _id_of(shard.parents[1])
    return shard_message


def _shard_id(shard: Shard) -> str:
    return _id_of(shard.number)


def _id_of(number: int) -> str:
    return f"shard-{number:08d}"


def _shard_number(shard_id: str) -> int:
    digits = shard_id.removeprefix("shard-")
    if not (digits.isascii() and digits.isdigit() and len(digits) == 8):
        raise invalid(f"Invalid shard id: '{shard_id}'.")
    return int(digits)


async def get_shard_iterator(call: CallContext) -> Message:
    """GetShardIterator: an iterator at the oldest retained record, or at the first one at or after a time. Raises
    ServiceError."""
    message = call.message
    stream = await _find(call, message.stream_id)
    number = _shard_number(message.shard_id)
    # Records have times in milliseconds, so a time between two milliseconds is rounded up.
    at = AtTime(-(-message.timestamp // 1000)) if message.HasField("timestamp") else Oldest()
    try:
        sequence = await stream_commands.FindPosition(stream, number, at)
    except StreamMissing:
        raise _no_shard(message.shard_id) from None
    return messages.GetShardIteratorResponse(shard_iterator=_iterator(message.stream_id, number, sequence))


async def get_stream_record(call: CallContext) -> Message:
    """GetStreamRecord: records from an iterator on, and the next iterator, which is unchanged without new records.

    Raises ServiceError, PositionExpired.
    """
    message = call.message
    stream_name, number, sequence = _parse_iterator(message.shard_iterator)
    stream = await _find(call, stream_name)
    if len(stream.table_name) > limits.STREAM_TABLE_NAME_MAX:
        raise invalid(f"Invalid stream id: '{stream_name}'.")
    limit = message.limit if message.HasField("limit") else limits.STREAM_RECORDS_MAX
    if limit <= 0:
        raise invalid("The limit must be greater than 0.")
    limit = min(limit, limits.STREAM_RECORDS_MAX)
    try:
        page = await stream_commands.ReadChanges(stream, number, sequence, limit, limits.STREAM_MAX_BYTES)
    except StreamMissing:
        raise _no_shard(_id_of(number)) from None
    records = [stream_record(stream, change) for change in page.changes]
    answer = messages.GetStreamRecordResponse(
        stream_records=records,
        consumed=capacity.of_read(sum(len(record.record) for record in records)),
        may_more_record=bool(records),
    )
    if page.next is not None:
        answer.next_shard_iterator = _iterator(stream_name, number, page.next)
    return answer


async def _find(call: CallContext, name: str) -> Stream:
    """Look a stream up by its id. Raises ServiceError."""
    table_name, _, label = name.rpartition("_")
    try:
        if not table_name:
            raise StreamMissing(table_name, label)
        return await stream_commands.FindStream(call.caller.namespace, table_name, label)
    except StreamMissing:
        raise invalid(f"Invalid stream id: '{name}'.") from None


def _no_shard(shard_id: str) -> ServiceError:
    return ServiceError("OTSObjectNotExist", f"Requested shard does not exist: '{shard_id}'.")


def _iterator(stream_name: str, shard: int, sequence: int) -> str:
    return f"{stream_name}:{shard}:{sequence}"


def _parse_iterator(iterator: str) -> tuple[str, int, int]:
    """Return stream id, shard number and sequence of an iterator. Raises ServiceError if the iterator is invalid."""
    parts = iterator.rsplit(":", 2)
    if len(parts) < 3 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts[1:]):
        raise invalid(f"Invalid shard iterator: '{iterator[:300]}'.")
    name, shard, sequence = parts
    return name, int(shard), int(sequence)


# Records


def put_record(key_names: tuple[str, ...], row: Row) -> bytes:
    """Return a row as the record of its put, without a place in a stream."""
    key = [plainbuffer.WireCell(name, key_value_shown(row.latest[name])) for name in key_names]
    return plainbuffer.encode_row(plainbuffer.WireRow(key, _put_cells(row, key_names)))


def stream_record(stream: Stream, change: Change) -> messages.StreamRecord:
    """Return a change as clients read it."""
    names = stream.key_schema.names
    key = [plainbuffer.WireCell(name, key_value_shown(change.key_values[name])) for name in names]
    cells: Iterable[plainbuffer.WireCell] = ()
    if change.kind is ChangeKind.PUT and change.new is not None:
        cells = _put_cells(change.new, names)
    elif change.kind is ChangeKind.UPDATE:
        cells = _update_cells(change, names)
    # The sequence replaces the index among records of one time. Clients only need it to increase.
    extension = plainbuffer.SequenceInfo(0, change.at_ms * 1000, change.sequence & 0x7FFFFFFF)
    record = messages.StreamRecord(
        action_type=_ACTIONS[change.kind],
        record=plainbuffer.encode_row(plainbuffer.WireRow(key, list(cells), extension=extension)),
    )
    origin_columns = stream.rule.properties.get("columns", ())
    if origin_columns and change.old is not None:
        before = [cell for cell in _put_cells(change.old, names) if cell.name in origin_columns]
        record.origin_record = plainbuffer.encode_row(plainbuffer.WireRow(key, before, extension=extension))
    return record


def _put_cells(row: Row, key_names: tuple[str, ...]) -> list[plainbuffer.WireCell]:
    """Return all cells of a row that was put."""
    return [
        plainbuffer.WireCell(name, value, cell.stamp_ms)
        for name, versions in sorted(row.cells.items())
        if name not in key_names
        for cell in versions
        if (value := _visible_value(cell)) is not None
    ]


def _visible_value(cell: Cell) -> Any:
    return None if cell.value.kind is Kind.NULL else view(cell.value)


def _update_cells(change: Change, key_names: tuple[str, ...]) -> list[plainbuffer.WireCell]:
    """Return the cells of an update in the order of its request, or the difference if another dialect made it."""
    if not change.actions:
        return _difference(change, key_names)
    cells = []
    for action in change.actions:
        match action:
            case PutCell(name, value, stamp_ms):
                cells.append(plainbuffer.WireCell(name, view(value), stamp_ms))
            case DeleteCell(name, stamp_ms):
                cells.append(plainbuffer.WireCell(name, None, stamp_ms, plainbuffer.CellOperation.DELETE_ONE))
            case DeleteCells(name):
                cells.append(plainbuffer.WireCell(name, None, None, plainbuffer.CellOperation.DELETE_ALL))
    return cells


def _difference(change: Change, key_names: tuple[str, ...]) -> list[plainbuffer.WireCell]:
    """Return cells that express the difference between the old and the new row."""
    before, after = _columns(change.old, key_names), _columns(change.new, key_names)
    removed = [
        plainbuffer.WireCell(name, None, None, plainbuffer.CellOperation.DELETE_ALL)
        for name in sorted(before)
        if name not in after
    ]
    changed = [
        plainbuffer.WireCell(name, view(value), change.at_ms)
        for name, value in sorted(after.items())
        if before.get(name) != value
    ]
    return removed + changed


def _columns(row: Row | None, key_names: tuple[str, ...]) -> dict[str, Value]:
    """Return the newest values of a row's columns that Table Store can show."""
    if row is None:
        return {}
    return {
        name: value
        for name, value in row.latest.items()
        if name not in key_names and value.kind is not Kind.NULL
    }


_P = Permission
OPERATIONS: Mapping[str, Operation] = {
    "ListStream": Operation(messages.ListStreamRequest, list_stream, Purpose((_P.LIST_STREAMS,))),
    "DescribeStream": Operation(messages.DescribeStreamRequest, describe_stream, Purpose((_P.DESCRIBE_STREAM,))),
    "GetShardIterator": Operation(
        messages.GetShardIteratorRequest, get_shard_iterator, Purpose((_P.POSITION_STREAM,)),
    ),
    "GetStreamRecord": Operation(messages.GetStreamRecordRequest, get_stream_record, Purpose((_P.READ_STREAM,))),
}  # fmt: skip

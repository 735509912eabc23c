"""ComputeSplitPointsBySize: split points for parallel reads of a table in parts of similar size."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import capacity
from tablegate.adapters.tablestore.values.values import key_type, key_value_shown
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex, find_table
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.predicates import Or
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import HIGHEST, Position
from tablegate.gateway.model.values.rows import Row

_LOCATION = hashlib.md5(
    b"tablegate", usedforsecurity=False
).hexdigest()  # the service also returns 32 characters
# Maximum number of rows that one read counts, to limit the time that other requests wait for the database session.
_RANGE_ROWS = 50_000
_NOTHING = Or(())


async def compute_split_points_by_size(call: CallContext) -> Message:
    """ComputeSplitPointsBySize: split points between partitions.

    The parts between them have split_size or a little more. Raises ServiceError, TableMissing.
    """
    message = call.message
    table = await find_table(call, message.table_name)
    size = _split_size(message)
    limit = message.split_point_limit if message.HasField("split_point_limit") else None
    points = await _points(table, size, limit)
    target = TableOrIndex.of(table)
    return messages.ComputeSplitPointsBySizeResponse(
        consumed=capacity.of_read(0),
        schema=[
            messages.PrimaryKeySchema(name=column.name, type=key_type(column))
            for column in table.key_schema.columns
        ],
        split_points=[_point(target, row) for row in points],
        locations=[messages.SplitLocation(location=_LOCATION, repeat=len(points) + 1)],
    )


async def _points(table: Table, size: int, limit: int | None) -> list[Row]:
    """Return the first rows of the partitions that follow a full part of the table.

    The database counts the rows in between: the filter passes no row. Expired cells count until the expiry job deletes
    them.
    """
    table_without_expiry = replace(table, rules=replace(table.rules, expiry=None))
    points: list[Row] = []
    rest, part_size = EVERYTHING, 0
    while limit is None or len(points) < limit:
        range_limits = PageLimits(scanned=_RANGE_ROWS, filled_bytes=size - part_size)
        page = await Read(table_without_expiry, rest, range_limits, filter=_NOTHING)
        if page.last is None:
            break
        rest, part_size = rest.after(page.last.position), part_size + page.scanned_bytes
        if part_size < size:
            continue
        rest = rest.after(Position(page.last.position.partition, HIGHEST))
        page = await Read(table_without_expiry, rest, PageLimits(returned=1))
        if not page.rows:
            break
        points += page.rows
        rest, part_size = KeyRange(page.rows[0].position, rest.upper), 0
    return points


def _split_size(message: messages.ComputeSplitPointsBySizeRequest) -> int:
    """Source of the texts: aliyun-tablestore-java-sdk, functiontest/TestComputeSplitPointsBySize."""
    unit, unit_min = limits.SPLIT_SIZE_UNIT_BYTES, limits.SPLIT_SIZE_UNIT_MIN_BYTES
    if message.HasField("split_size_unit_in_byte"):
        unit = message.split_size_unit_in_byte
    if message.split_size <= 0:
        raise invalid("The split_size should be greater than 0.")
    if unit < unit_min:
        raise invalid(f"The split_size_unit_in_byte should be greater equal than: {unit_min}")
    return message.split_size * unit


def _point(target: TableOrIndex, row: Row) -> bytes:
    first, *rest = target.key_names
    value = key_value_shown(row.latest[first])
    return encode_row(WireRow([WireCell(first, value), *(WireCell(name, Bound.INF_MIN) for name in rest)]))

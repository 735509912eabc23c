"""ComputeSplitPointsBySize: where to cut a table into parts of about equal size, for clients that read it in parallel."""

from __future__ import annotations

import hashlib

from adapters.tablestore import capacity, limits
from adapters.tablestore.calls import Call, Target, find_table
from adapters.tablestore.errors import invalid
from adapters.tablestore.plainbuffer import Bound, WireCell, WireRow, encode_row
from adapters.tablestore.protocol import table_store_pb2 as messages
from adapters.tablestore.values import key_type, key_value_shown
from gateway.engine.engine import one
from gateway.model.commands import Exchange, Page, PageLimits, Read
from gateway.model.ranges import EVERYTHING
from gateway.model.rows import Row
from gateway.model.tables import Table

_LOCATION = hashlib.md5(
    b"tablegate", usedforsecurity=False
).hexdigest()  # the service gives 32 characters, too


def compute_split_points_by_size(call: Call) -> Exchange:
    """ComputeSplitPointsBySize. Points lie between partitions; the parts between them hold split_size or a little more."""
    message = call.message
    table: Table = yield from find_table(call, message.table_name)
    size = _split_size(message)
    most = message.split_point_limit if message.HasField("split_point_limit") else None
    points: list[Row] = []
    key_range, partition, part_size = EVERYTHING, b"", 0
    while True:
        page: Page = yield from one(Read(table, key_range, PageLimits(limits.RANGE_ROWS_MAX, peek=True)))
        for row in page.rows:
            if (
                part_size >= size
                and row.position.partition != partition
                and (most is None or len(points) < most)
            ):
                points.append(row)
                part_size = 0
            partition = row.position.partition
            part_size += row.size_bytes
        if page.next is None or page.last is None or (most is not None and len(points) >= most):
            break
        key_range = key_range.after(page.last.position)
    target = Target.of_table(table)
    return messages.ComputeSplitPointsBySizeResponse(
        consumed=capacity.of_read(0),
        schema=[
            messages.PrimaryKeySchema(name=column.name, type=key_type(column))
            for column in table.key_schema.columns
        ],
        split_points=[_point(target, row) for row in points],
        locations=[messages.SplitLocation(location=_LOCATION, repeat=len(points) + 1)],
    )


def _split_size(message: messages.ComputeSplitPointsBySizeRequest) -> int:
    """Source of the texts: aliyun-tablestore-java-sdk, functiontest/TestComputeSplitPointsBySize."""
    unit, least = limits.SPLIT_SIZE_UNIT_BYTES, limits.SPLIT_SIZE_UNIT_MIN_BYTES
    if message.HasField("split_size_unit_in_byte"):
        unit = message.split_size_unit_in_byte
    if message.split_size <= 0:
        raise invalid("The split_size should be greater than 0.")
    if unit < least:
        raise invalid(f"The split_size_unit_in_byte should be greater equal than: {least}")
    return message.split_size * unit


def _point(target: Target, row: Row) -> bytes:
    first, *rest = target.key_names
    value = key_value_shown(row.latest[first])
    return encode_row(WireRow([WireCell(first, value), *(WireCell(name, Bound.INF_MIN) for name in rest)]))

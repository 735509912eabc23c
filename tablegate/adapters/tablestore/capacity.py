"""Capacity units of requests, calculated from sizes, and their metric `tablegate_consumed_capacity_total`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.errors import ConditionFailed
from tablegate.gateway.model.values.values import Value, size_bytes
from tablegate.gateway.observability import metrics


def units(size: int) -> int:
    """Return the units of a size in bytes, rounded up, at least one."""
    return max(1, -(-size // limits.UNIT_BYTES))


def cells_size(cells: Iterable[WireCell]) -> int:
    """Return the size of cells in bytes. For a deletion only the name counts, for an increment also 8 bytes."""
    return sum(
        len(name.encode()) + (size_bytes(value) if isinstance(value, Value) else 0)
        for name, value, _, _ in cells
    )


def request_size(row: WireRow) -> int:
    """Return the size of a row for the limit of a request, which includes 8 bytes for each explicit stamp.

    Source: aliyun-tablestore-java-sdk, functiontest/RestrictedItemTest, testCase48.
    """
    stamps = sum(8 for cell in row.cells if cell.stamp_ms is not None)
    return cells_size(row.key) + cells_size(row.cells) + stamps


@lru_cache(maxsize=256)
def consumed(read: int, write: int) -> messages.ConsumedCapacity:
    """Return the consumed capacity for a reply. Both figures are set, even to zero. It is cached and must not be
    modified."""
    return messages.ConsumedCapacity(capacity_unit=messages.CapacityUnit(read=read, write=write))


def of_bulk(read: int, write: int) -> messages.ConsumedCapacity:
    """Return the consumed capacity of a bulk operation: zero units, and the bytes read or written.

    Source: aliyun-tablestore-java-sdk, functiontest/TestBulkExportFunciton and TestBulkImportFunction.
    """
    message = messages.ConsumedCapacity(capacity_unit=messages.CapacityUnit(read=0, write=0))
    message.capacity_data_size.read_size = read
    message.capacity_data_size.write_size = write
    return message


def of_read(size: int) -> messages.ConsumedCapacity:
    """Return the charge of reading this many bytes: one row (0 if it is missing), or all scanned rows of a range."""
    return consumed(units(size), 0)


def of_write(key_size: int, size: int, is_checked: bool, has_indexes: bool) -> messages.ConsumedCapacity:
    """Return the charge of a write: the size of the cells in the request and of its key. For a delete, of its key.

    `is_checked`: a condition requires a read. A table with indexes is also read before a write.
    """
    return consumed(units(key_size) if is_checked else int(has_indexes), units(size))


def count_read(target: TableOrIndex, units: messages.ConsumedCapacity) -> None:
    """Count the units of a read of a table or an index."""
    _count(target.table.name, "" if target.index is None else target.index.name, units)


def count_write(write: Write, units: messages.ConsumedCapacity) -> None:
    """Count the units of a successful write."""
    _count(write.table.name, "", units)


def count_failed_write(write: Write, reason: object) -> None:
    """Count the units of a failed write.

    A false condition costs a unit of each kind, for a delete the write unit only, whatever its size. Source: Table
    Store, "Data operations", 3 August 2017, the rules of PutRow, UpdateRow and DeleteRow.
    """
    if isinstance(reason, ConditionFailed):
        read = 0 if isinstance(write.change, Remove) else 1
        _count(write.table.name, "", consumed(read, 1))


def _count(table: str, index: str, units: messages.ConsumedCapacity) -> None:
    unit = units.capacity_unit
    if unit.read:
        metrics.record_consumption((DIALECT, table, index, "read", unit.read))
    if unit.write:
        metrics.record_consumption((DIALECT, table, index, "write", unit.write))

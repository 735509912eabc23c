"""Capacity units: what a request is charged. Pure arithmetic on sizes.

The size of a row is the names and values of its key and of the cells in question; stamps do not count. A unit is 4,096
bytes, begun units count. Where the 2017 document contradicts itself, docs/protocols/table-store.md section 4.9 says which way
the service goes, and tests/source_documents tests it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import Value, size_bytes


def units(size: int) -> int:
    """Begun units of a size in bytes, at least one."""
    return max(1, -(-size // limits.UNIT_BYTES))


def cells_size(cells: Iterable[WireCell]) -> int:
    """Bytes of cells as they travel. A cell that deletes counts its name only, an increment 8 bytes besides."""
    return sum(
        len(name.encode()) + (size_bytes(value) if isinstance(value, Value) else 0)
        for name, value, _, _ in cells
    )


def request_size(row: WireRow) -> int:
    """Bytes of a row as the limit of a request counts them: with 8 for each stamp that is given.

    Source: aliyun-tablestore-java-sdk, functiontest/RestrictedItemTest, testCase48.
    """
    stamps = sum(8 for cell in row.cells if cell.stamp_ms is not None)
    return cells_size(row.key) + cells_size(row.cells) + stamps


@lru_cache(maxsize=256)
def consumed(read: int, write: int) -> messages.ConsumedCapacity:
    """What an answer says; both figures always, zeros too. Not to be changed: it is given out again."""
    return messages.ConsumedCapacity(capacity_unit=messages.CapacityUnit(read=read, write=write))


def of_bulk(read: int, write: int) -> messages.ConsumedCapacity:
    """What a bulk operation says: no units, but the bytes that it read or wrote.

    Source: aliyun-tablestore-java-sdk, functiontest/TestBulkExportFunciton and TestBulkImportFunction.
    """
    made = messages.ConsumedCapacity(capacity_unit=messages.CapacityUnit(read=0, write=0))
    made.capacity_data_size.read_size = read
    made.capacity_data_size.write_size = write
    return made


def of_read(size: int) -> messages.ConsumedCapacity:
    """What reading this many bytes costs: a row (none: 0 bytes), or all scanned rows of a range together."""
    return consumed(units(size), 0)


def of_write(key_size: int, size: int, is_checked: bool, has_indexes: bool) -> messages.ConsumedCapacity:
    """What a write costs: the bytes of the request's own cells, key included (a delete: its key). `is_checked`: a condition
    made the service read; tables with indexes are read before they are written, too."""
    return consumed(units(key_size) if is_checked else int(has_indexes), units(size))

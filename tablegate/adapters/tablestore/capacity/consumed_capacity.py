"""The metric `tablegate_consumed_capacity_total`: capacity units in replies, and those of writes with a false
condition.

Error replies have no field for the latter. capacity.py calculates the units.
"""

from __future__ import annotations

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.capacity import capacity
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.writes import Remove, Write
from tablegate.gateway.model.errors import ConditionFailed
from tablegate.gateway.observability import metrics


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
        _count(write.table.name, "", capacity.consumed(read, 1))


def _count(table: str, index: str, units: messages.ConsumedCapacity) -> None:
    unit = units.capacity_unit
    if unit.read:
        metrics.record_consumption((DIALECT, table, index, "read", unit.read))
    if unit.write:
        metrics.record_consumption((DIALECT, table, index, "write", unit.write))

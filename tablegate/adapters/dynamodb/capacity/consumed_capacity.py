"""Consumption of a call, for its answer if requested and always for the metrics.

This module decides what each operation is billed for. The arithmetic is in capacity.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.capacity import capacity
from tablegate.adapters.dynamodb.capacity.capacity import READ, WRITE, RequestConsumption, TableConsumption
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.adapters.dynamodb.wire.limits import TRANSACTION_FACTOR
from tablegate.gateway.model.commands.row_commands import Read, ReplayedOutcome, WriteOutcome
from tablegate.gateway.model.commands.writes import CheckOnly, Write
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.observability import metrics

# Consumption of a call


Blocks = dict[str, Any]
"""The members of an answer about consumption: ConsumedCapacity and ItemCollectionMetrics, if requested."""


def meter(table: str, index: str, kind: str, units: float) -> None:
    """Count units in `tablegate_consumed_capacity_total`. `table`: its name or ARN."""
    metrics.record_consumption((DIALECT, table.rpartition("/")[2], index, kind, units))


def mode_of(call: CallContext) -> str:
    """Return the ReturnConsumedCapacity of a call."""
    return call.input.get("ReturnConsumedCapacity", "NONE")


def item_read(call: CallContext, row: Row | None) -> Blocks:
    """Return the blocks of GetItem: empty, or with ConsumedCapacity."""
    arguments = call.input
    if "ReturnConsumedCapacity" not in arguments:
        size_bytes = 0 if row is None else row.size_bytes
        units = capacity.read_units(size_bytes, bool(arguments.get("ConsistentRead")))
        meter(arguments["TableName"], "", READ, units)
        return {}
    charge = TableConsumption(arguments["TableName"], READ)
    charge.add_item(row, bool(arguments.get("ConsistentRead")))
    charge.report(meter)
    return _block_of(charge, mode_of(call))


def page_read(call: CallContext, read: Read, page: Page) -> Blocks:
    """Return the blocks of Query and Scan."""
    arguments = call.input
    consistent = bool(arguments.get("ConsistentRead"))
    if read.index is None and "ReturnConsumedCapacity" not in arguments:
        units = capacity.read_units(page.scanned_bytes, consistent)
        meter(read.table.name, "", READ, units)
        return {}
    charge = TableConsumption(arguments["TableName"], READ)
    charge.add_page(page, read.index, consistent)
    if read.whole_rows:
        for row in page.rows:
            charge.add_item(row, consistent)
    charge.report(meter)
    return _block_of(charge, mode_of(call))


def item_write(call: CallContext, write: Write, outcome: WriteOutcome) -> Blocks:
    """Return the blocks of PutItem, UpdateItem and DeleteItem."""
    arguments = call.input
    old, new = outcome
    is_reported = "ReturnConsumedCapacity" in arguments or "ReturnItemCollectionMetrics" in arguments
    if not is_reported and not (write.table.indexes or write.table.other_indexes):
        old_bytes = None if old is None else old.contents.size_bytes
        new_bytes = None if new is None else new.contents.size_bytes
        units = capacity.write_units(old_bytes, new_bytes)
        meter(write.table.name, "", WRITE, units)
        return {}
    charge = TableConsumption(arguments["TableName"], WRITE)
    charge.add_write(write.table, outcome)
    charge.report(meter)
    blocks = _block_of(charge, mode_of(call))
    if call.input.get("ReturnItemCollectionMetrics") == "SIZE":
        collection = capacity.collection_metrics(write.table, outcome.new or outcome.old)
        if collection is not None:
            blocks["ItemCollectionMetrics"] = collection
    return blocks


def failed_write(table: Table, row: Row | None) -> None:
    """Count a write after a failed condition, by the size of the existing item. The answer omits it."""
    meter(table.name, "", WRITE, capacity.write_units(None if row is None else row.size_bytes, None))


def batch_read(call: CallContext, items: Iterable[tuple[str, Row | None, bool]]) -> Blocks:
    """Return the blocks of BatchGetItem. `items` has (table name in the request, item, consistent) for each."""
    bill = RequestConsumption(READ)
    for name, row, consistent in items:
        bill.charge(name).add_item(row, consistent)
    return _blocks_of(bill, mode_of(call))


def batch_write(call: CallContext, outcomes: Sequence[tuple[str, Write, WriteOutcome]]) -> Blocks:
    """Return the blocks of BatchWriteItem. `outcomes` has (table name in the request, write, outcome) for each."""
    is_reported = "ReturnConsumedCapacity" in call.input or "ReturnItemCollectionMetrics" in call.input
    if not is_reported and not any(
        write.table.indexes or write.table.other_indexes for _, write, _ in outcomes
    ):
        units: dict[str, float] = {}
        for name, _, (old, new) in outcomes:
            old_bytes = None if old is None else old.size_bytes
            new_bytes = None if new is None else new.size_bytes
            units[name] = units.get(name, 0.0) + capacity.write_units(old_bytes, new_bytes)
        for name, sum_of_units in units.items():
            meter(name, "", WRITE, sum_of_units)
        return {}
    bill = RequestConsumption(WRITE)
    for name, write, outcome in outcomes:
        bill.charge(name).add_write(write.table, outcome)
    return _blocks_of(bill, mode_of(call)) | _collections(call, outcomes)


def transaction_write(call: CallContext, outcomes: Sequence[tuple[str, Write, WriteOutcome]]) -> Blocks:
    """Return the blocks of TransactWriteItems."""
    bill = RequestConsumption(WRITE)
    for name, write, outcome in outcomes:
        if isinstance(write.change, CheckOnly):
            bill.charge(name).add_check(outcome.old)
        else:
            bill.charge(name).add_write(write.table, outcome, TRANSACTION_FACTOR)
    row_writes = [row for row in outcomes if not isinstance(row[1].change, CheckOnly)]
    return _blocks_of(bill, mode_of(call), split=True) | _collections(call, row_writes)


def transaction_replay(call: CallContext, names: Sequence[str], outcome: ReplayedOutcome) -> Blocks:
    """Return the blocks of a transaction that is answered from its token."""
    tables = [(name, old, new) for name, (old, new) in zip(names, outcome.sizes, strict=True)]
    return _blocks_of(capacity.replayed(tables), mode_of(call), split=True)


def transaction_read(call: CallContext, names: Sequence[str], rows: Sequence[Row | None]) -> Blocks:
    """Return the blocks of TransactGetItems."""
    bill = RequestConsumption(READ)
    for name, row in zip(names, rows, strict=True):
        bill.charge(name).table_units += capacity.transactional_read_units(
            0 if row is None else row.size_bytes
        )
    return _blocks_of(bill, mode_of(call), split=True)


def _block_of(charge: TableConsumption, mode: str) -> Blocks:
    block = charge.block(mode)
    return {} if block is None else {"ConsumedCapacity": block}


def _blocks_of(bill: RequestConsumption, mode: str, split: bool = False) -> Blocks:
    bill.report(meter)
    blocks = bill.blocks(mode, split)
    return {} if blocks is None else {"ConsumedCapacity": blocks}


def _collections(call: CallContext, outcomes: Iterable[tuple[str, Write, WriteOutcome]]) -> Blocks:
    """Return ItemCollectionMetrics by table, one for each item collection written to."""
    if call.input.get("ReturnItemCollectionMetrics") != "SIZE":
        return {}
    collections: dict[str, dict[bytes, Any]] = {}
    for name, write, outcome in outcomes:
        collection = capacity.collection_metrics(write.table, outcome.new or outcome.old)
        if collection is not None:
            collections.setdefault(name, {})[write.key.position.partition] = collection
    return {"ItemCollectionMetrics": {name: list(blocks.values()) for name, blocks in collections.items()}}

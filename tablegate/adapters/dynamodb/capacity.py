"""Capacity units that a request consumes, for its answer if requested and always for the metrics.

The arithmetic follows docs/protocols/dynamodb.md rules 30 to 33, from the billed sizes of rows before and after. The
module also makes the ConsumedCapacity and ItemCollectionMetrics blocks, and decides what each operation is billed for.
It takes outcomes and never calls the engine. `report` gives the units to a Meter that the caller passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.values.values import render_value
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.limits import TRANSACTION_FACTOR
from tablegate.gateway.model.commands.row_commands import Read, ReplayedOutcome, WriteOutcome
from tablegate.gateway.model.commands.writes import CheckOnly, Write
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.observability import metrics

# Units


Meter = Callable[[str, str, str, float], None]
"""Counts units: (table, index or "", "read" or "write", units)."""

READ, WRITE = "read", "write"

# Units


def read_units(size_bytes: int, consistent: bool) -> float:
    """Return the units of reading one item or one page.

    The sum of a page is rounded up, not each item. A missing item (0 bytes) costs as much as a small one.
    """
    units = max(1, -(-size_bytes // limits.READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def transactional_read_units(size_bytes: int) -> float:
    """Return the units of reading one item in TransactGetItems.

    Each write of a transaction that is answered from its token costs the same.
    """
    return float(limits.TRANSACTION_FACTOR * max(1, -(-size_bytes // limits.READ_UNIT_BYTES)))


def write_units(old_bytes: int | None, new_bytes: int | None) -> float:
    """Return the units of one write, by the larger of the item before and after. None means no item."""
    return float(max(1, -(-max(old_bytes or 0, new_bytes or 0) // limits.WRITE_UNIT_BYTES)))


def index_write_units(index: Index, old: Row | None, new: Row | None) -> float | None:
    """Return the units that a write costs an index, by the change of its entry. None if there is no change.

    | before | after                | units                     |
    |--------|--------------------------|---------------------------|
    | none   | entry                | of the new entry          |
    | entry  | none                 | of the old entry          |
    | entry  | same key, same content   | none                      |
    | entry  | same key, other content  | of the larger entry       |
    | entry  | another key          | of both: delete, insert   |

    Source: captures by paritysuite (September 2026).
    """
    before = None if old is None else index.entry(old)
    after = None if new is None else index.entry(new)
    if before is None and after is None:
        return None
    if before is None or after is None:
        return write_units((before or after).size_bytes, None)  # type: ignore[union-attr]
    if before.position != after.position:
        return write_units(before.size_bytes, None) + write_units(after.size_bytes, None)
    if is_same_in(index.projected_names, before.row, after.row):
        return None
    return write_units(before.size_bytes, after.size_bytes)


def is_same_in(names: frozenset[str] | None, before: Row, after: Row) -> bool:
    """Return True if two rows are equal in these attributes. None means all attributes."""
    if before is after:
        return True
    old, new = before.latest, after.latest
    if names is None:
        return old == new
    return all(old.get(name) == new.get(name) for name in names)


# Charges


@dataclass(slots=True)
class TableConsumption:
    """Consumption of one table by one request: units of the table and of each index.

    `table_name` is the name in the answer.
    """

    table_name: str
    kind: str
    table_units: float = 0.0
    global_units: dict[str, float] = field(default_factory=dict)
    local_units: dict[str, float] = field(default_factory=dict)
    _extended_writes: list[tuple[Table, WriteOutcome]] = field(default_factory=list)

    @property
    def total(self) -> float:
        return self.table_units + sum(self.global_units.values()) + sum(self.local_units.values())

    def add_write(self, table: Table, outcome: WriteOutcome, factor: int = 1) -> None:
        """Add one write.

        `factor` multiplies the units of the table only, also in transactions: indexes cost the same as always.
        """
        old, new = outcome.old, outcome.new
        if table.other_indexes:
            self._extended_writes.append((table, outcome))
            units = write_units(_extended_size(table, old), _extended_size(table, new))
        else:
            units = write_units(_size(old), _size(new))
        self.table_units += factor * units
        for index in table.indexes:
            index_units = index_write_units(index, old, new)
            if index_units is not None:
                self.add_index(index, index_units)

    def add_check(self, row: Row | None) -> None:
        """Add a ConditionCheck of a transaction. It writes nothing and costs as much as a write of the checked item."""
        self.table_units += limits.TRANSACTION_FACTOR * write_units(_size(row), None)

    def add_item(self, row: Row | None, consistent: bool) -> None:
        """Add one read by key, of an item that exists or not."""
        self.table_units += read_units(_size(row) or 0, consistent)

    def add_page(self, page: Page, index: Index | None, consistent: bool) -> None:
        units = read_units(page.scanned_bytes, consistent)
        if index is None:
            self.table_units += units
        else:
            self.add_index(index, units)

    def add_index(self, index: Index, units: float) -> None:
        by_index = self.local_units if index.local else self.global_units
        by_index[index.name] = by_index.get(index.name, 0.0) + units

    def block(self, mode: str, split: bool = False) -> dict[str, Any] | None:
        """Return the ConsumedCapacity block for ReturnConsumedCapacity = `mode`. None for NONE.

        `split` adds ReadCapacityUnits or WriteCapacityUnits, as transactions have them. Single operations do not.
        """
        if mode not in ("TOTAL", "INDEXES"):
            return None
        members: dict[str, Any] = {"TableName": self.table_name, **self._units(self.total, split)}
        if mode == "INDEXES":
            members["Table"] = self._units(self.table_units, split)
            for member, by_index in (
                ("GlobalSecondaryIndexes", self.global_units),
                ("LocalSecondaryIndexes", self.local_units),
            ):
                if by_index:
                    members[member] = {name: self._units(units, split) for name, units in by_index.items()}
            for extension in EXTENSIONS if self._extended_writes else ():
                members |= extension.consumed_members(self._extended_writes)
        return members

    def _units(self, units: float, split: bool) -> dict[str, float]:
        if not split:
            return {"CapacityUnits": units}
        return {
            "CapacityUnits": units,
            "ReadCapacityUnits" if self.kind == READ else "WriteCapacityUnits": units,
        }

    def report(self, meter: Meter) -> None:
        meter(self.table_name, "", self.kind, self.table_units)
        for by_index in (self.global_units, self.local_units):
            for name, units in by_index.items():
                meter(self.table_name, name, self.kind, units)


def _size(row: Row | None) -> int | None:
    return None if row is None else row.size_bytes


def _extended_size(table: Table, row: Row | None) -> int | None:
    """Return the billed size of an item in a table with indexes of other kinds. None if there is no item."""
    if row is None:
        return None
    size = row.size_bytes
    for extension in EXTENSIONS:
        size = extension.item_bytes(table, row, size)
    return size


class RequestConsumption:
    """Consumption of a request on several tables, by the table names in the request."""

    __slots__ = ("charges", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.charges: dict[str, TableConsumption] = {}

    def charge(self, table_name: str) -> TableConsumption:
        """Return the consumption of a table, creating it on first use."""
        consumption = self.charges.get(table_name)
        if consumption is None:
            consumption = self.charges[table_name] = TableConsumption(table_name, self.kind)
        return consumption

    def blocks(self, mode: str, split: bool = False) -> list[dict[str, Any]] | None:
        """Return the ConsumedCapacity list, one block for each table. None for NONE."""
        if mode not in ("TOTAL", "INDEXES"):
            return None
        return [block for charge in self.charges.values() if (block := charge.block(mode, split)) is not None]

    def report(self, meter: Meter) -> None:
        for charge in self.charges.values():
            charge.report(meter)


def replayed(tables: Iterable[tuple[str, int | None, int | None]]) -> RequestConsumption:
    """Return the consumption of a transaction that is answered from its token: reads of the items that it wrote.

    `tables` has (table, old bytes, new bytes) for each write.
    """
    bill = RequestConsumption(READ)
    for table_name, old_bytes, new_bytes in tables:
        size = new_bytes if new_bytes is not None else old_bytes or 0
        bill.charge(table_name).table_units += transactional_read_units(size)
    return bill


# Item collections


def collection_metrics(table: Table, row: Row | None) -> dict[str, Any] | None:
    """Return ItemCollectionMetrics of a row's partition. None unless the table has a local index (rule 33).

    The estimate is a range of two whole numbers of gigabytes, always the lowest, as sizes are not kept by partition.
    """
    if row is None or not any(index.local for index in table.indexes):
        return None
    values = row.latest
    key = {column.name: render_value(values[column.name]) for column in table.key_schema.partition}
    return {"ItemCollectionKey": key, "SizeEstimateRangeGB": [0.0, 1.0]}


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
        units = read_units(size_bytes, bool(arguments.get("ConsistentRead")))
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
        units = read_units(page.scanned_bytes, consistent)
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
        units = write_units(old_bytes, new_bytes)
        meter(write.table.name, "", WRITE, units)
        return {}
    charge = TableConsumption(arguments["TableName"], WRITE)
    charge.add_write(write.table, outcome)
    charge.report(meter)
    blocks = _block_of(charge, mode_of(call))
    if call.input.get("ReturnItemCollectionMetrics") == "SIZE":
        collection = collection_metrics(write.table, outcome.new or outcome.old)
        if collection is not None:
            blocks["ItemCollectionMetrics"] = collection
    return blocks


def failed_write(table: Table, row: Row | None) -> None:
    """Count a write after a failed condition, by the size of the existing item. The answer omits it."""
    meter(table.name, "", WRITE, write_units(None if row is None else row.size_bytes, None))


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
            units[name] = units.get(name, 0.0) + write_units(old_bytes, new_bytes)
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
    return _blocks_of(replayed(tables), mode_of(call), split=True)


def transaction_read(call: CallContext, names: Sequence[str], rows: Sequence[Row | None]) -> Blocks:
    """Return the blocks of TransactGetItems."""
    bill = RequestConsumption(READ)
    for name, row in zip(names, rows, strict=True):
        bill.charge(name).table_units += transactional_read_units(0 if row is None else row.size_bytes)
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
        collection = collection_metrics(write.table, outcome.new or outcome.old)
        if collection is not None:
            collections.setdefault(name, {})[write.key.position.partition] = collection
    return {"ItemCollectionMetrics": {name: list(blocks.values()) for name, blocks in collections.items()}}

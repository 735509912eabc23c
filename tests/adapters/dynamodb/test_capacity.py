"""Capacity arithmetic, and the blocks of an answer that report it (docs/protocols/dynamodb.md rules 30 to 33)."""

from __future__ import annotations

import pytest

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.capacity import READ, WRITE, RequestConsumption, TableConsumption
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.tables.indexes import Index, IndexProjection
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, text

TABLE_KEY = KeySchema((KeyColumn("pk", Kind.TEXT),))


def index(
    name: str,
    column: str,
    projection: IndexProjection = IndexProjection.KEYS,
    included: tuple[str, ...] = (),
    local: bool = False,
) -> Index:
    schema = KeySchema((KeyColumn(column, Kind.TEXT),))
    return Index(1, name, schema, projection, included, local, table_keys=("pk",))


def table(*indexes: Index) -> Table:
    return Table(1, "n", "orders", "orders", TABLE_KEY, indexes, Rules(), {}, State.ACTIVE, 0, 1, 0)


def row(**attributes: str) -> Row:
    values = {"pk": text("k")} | {name: text(data) for name, data in attributes.items()}
    return Row(TABLE_KEY.key(values).position, Contents.of_values(values), 1)


# Units


@pytest.mark.parametrize(
    ("size", "consistent", "units"),
    [(0, True, 1), (0, False, 0.5), (4096, True, 1), (4097, True, 2), (4097, False, 1), (8193, False, 1.5)],
)
def test_reads_cost_a_unit_for_every_four_kilobytes(size: int, consistent: bool, units: float) -> None:
    assert capacity.read_units(size, consistent) == units


@pytest.mark.parametrize(
    ("old", "new", "units"),
    [(None, None, 1), (None, 1024, 1), (None, 1025, 2), (3000, 10, 3), (10, 3000, 3), (2049, None, 3)],
)
def test_writes_cost_a_unit_for_every_kilobyte_of_the_larger_item(
    old: int | None, new: int | None, units: float
) -> None:
    assert capacity.write_units(old, new) == units


def test_transactional_reads_cost_twice() -> None:
    assert capacity.transactional_read_units(0) == 2
    assert capacity.transactional_read_units(4097) == 4


# Indexes


def test_a_new_entry_and_a_removed_one_cost_one_write() -> None:
    gsi = index("gsi", "g")
    assert capacity.index_write_units(gsi, None, row(g="a")) == 1
    assert capacity.index_write_units(gsi, row(g="a"), None) == 1
    assert capacity.index_write_units(gsi, row(g="a"), row()) == 1


def test_a_moved_entry_costs_a_delete_and_an_insert() -> None:
    gsi = index("gsi", "g", IndexProjection.ALL)
    assert capacity.index_write_units(gsi, row(g="a"), row(g="b")) == 2
    assert capacity.index_write_units(gsi, row(g="a", x="x" * 1500), row(g="b", x="x" * 1500)) == 4


def test_an_entry_that_shows_no_change_costs_nothing() -> None:
    gsi = index("gsi", "g", IndexProjection.INCLUDE, ("shown",))
    assert capacity.index_write_units(gsi, row(g="a", shown="x"), row(g="a", shown="x", hidden="y")) is None
    assert capacity.index_write_units(gsi, row(g="a"), row(g="a")) is None
    assert capacity.index_write_units(gsi, row(), row(hidden="y")) is None


def test_a_projected_change_costs_the_larger_entry() -> None:
    gsi = index("gsi", "g", IndexProjection.INCLUDE, ("shown",))
    assert capacity.index_write_units(gsi, row(g="a", shown="x"), row(g="a", shown="y")) == 1
    assert capacity.index_write_units(gsi, row(g="a", shown="x" * 2000), row(g="a", shown="y")) == 2


# Blocks


def test_a_block_has_the_total_or_every_index() -> None:
    tables = table(index("gsi", "g"), index("lsi", "l", local=True), index("other", "o"))
    charge = TableConsumption("orders", WRITE)
    charge.add_write(tables, WriteOutcome(None, row(g="a", l="b")))
    assert charge.block("NONE") is None
    assert charge.block("TOTAL") == {"TableName": "orders", "CapacityUnits": 3.0}
    assert charge.block("INDEXES") == {
        "TableName": "orders",
        "CapacityUnits": 3.0,
        "Table": {"CapacityUnits": 1.0},
        "GlobalSecondaryIndexes": {"gsi": {"CapacityUnits": 1.0}},
        "LocalSecondaryIndexes": {"lsi": {"CapacityUnits": 1.0}},
    }


def test_untouched_indexes_have_no_arm() -> None:
    charge = TableConsumption("orders", WRITE)
    charge.add_write(table(index("gsi", "g")), WriteOutcome(row(g="a"), row(g="a")))
    assert charge.block("INDEXES") == {
        "TableName": "orders",
        "CapacityUnits": 1.0,
        "Table": {"CapacityUnits": 1.0},
    }


def test_transactions_report_the_kind_and_double_the_table_only() -> None:
    bill = RequestConsumption(WRITE)
    charge = bill.charge("orders")
    charge.add_write(table(index("gsi", "g")), WriteOutcome(None, row(g="a")), limits.TRANSACTION_FACTOR)
    charge.add_check(None)
    assert bill.blocks("INDEXES", split=True) == [
        {
            "TableName": "orders",
            "CapacityUnits": 5.0,
            "WriteCapacityUnits": 5.0,
            "Table": {"CapacityUnits": 4.0, "WriteCapacityUnits": 4.0},
            "GlobalSecondaryIndexes": {"gsi": {"CapacityUnits": 1.0, "WriteCapacityUnits": 1.0}},
        }
    ]


def test_a_replayed_transaction_costs_reads() -> None:
    bill = capacity.replayed([("orders", None, 5000), ("orders", 100, None), ("carts", None, None)])
    assert bill.blocks("TOTAL", split=True) == [
        {"TableName": "orders", "CapacityUnits": 6.0, "ReadCapacityUnits": 6.0},
        {"TableName": "carts", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0},
    ]


def test_a_page_rounds_its_sum_and_a_batch_each_item() -> None:
    page = TableConsumption("orders", READ)
    page.add_page(Page([], 3, 6000, None, None), None, consistent=False)
    assert page.total == 1
    batch = TableConsumption("orders", READ)
    for _ in range(3):
        batch.add_item(row(x="x" * 2000), consistent=False)
    batch.add_item(None, consistent=False)
    assert batch.total == 2


def test_a_page_of_an_index_is_charged_to_its_arm() -> None:
    charge = TableConsumption("orders", READ)
    charge.add_page(Page([], 1, 100, None, None), index("gsi", "g"), consistent=False)
    assert charge.block("INDEXES") == {
        "TableName": "orders",
        "CapacityUnits": 0.5,
        "Table": {"CapacityUnits": 0.0},
        "GlobalSecondaryIndexes": {"gsi": {"CapacityUnits": 0.5}},
    }


# Metering


def test_a_failed_condition_is_metered_by_the_item_it_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str, str, float]] = []
    monkeypatch.setattr(capacity, "meter", lambda *counted: told.append(counted))
    capacity.failed_write(table(), row(x="x" * 2000))
    capacity.failed_write(table(), None)
    assert told == [("orders", "", "write", 2.0), ("orders", "", "write", 1.0)]


def test_every_arm_is_metered() -> None:
    told: list[tuple[str, str, str, float]] = []
    charge = TableConsumption("orders", WRITE, 1.0, {"gsi": 2.0}, {"lsi": 3.0})
    charge.report(lambda *counted: told.append(counted))
    assert told == [
        ("orders", "", "write", 1.0),
        ("orders", "gsi", "write", 2.0),
        ("orders", "lsi", "write", 3.0),
    ]


# Item collections


def test_collection_metrics_are_for_tables_with_a_local_index() -> None:
    assert capacity.collection_metrics(table(index("gsi", "g")), row()) is None
    assert capacity.collection_metrics(table(index("lsi", "l", local=True)), row()) == {
        "ItemCollectionKey": {"pk": {"S": "k"}},
        "SizeEstimateRangeGB": [0.0, 1.0],
    }


def test_foreign_key_kinds_are_shown_as_this_dialect_sees_them() -> None:
    schema = KeySchema((KeyColumn("pk", Kind.INT64),))
    lsi = table(index("lsi", "l", local=True))
    with_number = Table(1, "n", "t", "t", schema, lsi.indexes, Rules(), {}, State.ACTIVE, 0, 1, 0)
    values = {"pk": Value(Kind.INT64, 7)}
    made = Row(schema.key(values).position, Contents.of_values(values), 1)
    assert capacity.collection_metrics(with_number, made) == {
        "ItemCollectionKey": {"pk": {"N": "7"}},
        "SizeEstimateRangeGB": [0.0, 1.0],
    }

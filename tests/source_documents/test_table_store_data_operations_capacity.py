"""Each worked example of capacity units in "Data operations" (Table Store documentation, 3 August 2017).

The document of 2017 sometimes contradicts its own rule. docs/protocols/table-store.md section 4.9 has the service's
behaviour, and the tests name the differences.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import CellOperation, WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, cells_of, row, units_of
from tests.adapters.tablestore.filter_messages import single
from tests.support.live_tablestore import LiveTableStore

IGNORE, EXPECT_EXIST, EXPECT_NOT_EXIST = messages.IGNORE, messages.EXPECT_EXIST, messages.EXPECT_NOT_EXIST


@pytest.fixture
def table(tablestore: LiveTableStore) -> str:
    """A new table with key `pk` INTEGER."""
    name = tablestore.new_name()
    tablestore.create(name)
    return name


def failed(tablestore: LiveTableStore, table: str, ask: Any) -> tuple[float, float]:
    """Return (read, write) units of a write with a failed check. They are metered and appear in no answer."""
    return metered(tablestore, table, lambda: refused(ask))


def refused(ask: Any) -> None:
    with pytest.raises(Refused) as told:
        ask()
    assert told.value.code == "OTSConditionCheckFail"


def metered(tablestore: LiveTableStore, table: str, ask: Any) -> tuple[float, float]:
    """(read, write) units that a request adds to /metrics."""
    read, write = tablestore.consumed(table)
    ask()
    read_then, write_then = tablestore.consumed(table)
    return read_then - read, write_then - write


TWO = {"value1": "x" * 1300, "value2": "x" * 3000}  # with the key 2 + 6 + 6 + 8 + 1300 + 3000 = 4322 bytes


@pytest.fixture
def one_row(tablestore: LiveTableStore, table: str) -> str:
    tablestore.put({"pk": 1}, {"value2": "x" * 900}, table)
    return table


def test_example_1_a_put_of_4322_bytes(tablestore: LiveTableStore, one_row: str) -> None:
    assert units_of(tablestore.put({"pk": 1}, TWO, one_row, expect=EXPECT_EXIST)) == (1, 2)


def test_example_1_with_ignore_costs_two_units_and_not_one(tablestore: LiveTableStore, one_row: str) -> None:
    """The text rounds 4322 / 4096 up to 1."""
    assert units_of(tablestore.put({"pk": 1}, TWO, one_row, expect=IGNORE)) == (0, 2)


def test_example_1_charges_a_failing_check(tablestore: LiveTableStore, one_row: str) -> None:
    def write() -> Any:
        return tablestore.put({"pk": 1}, TWO, one_row, expect=EXPECT_NOT_EXIST)

    assert failed(tablestore, one_row, write) == (1, 1)


def test_example_2_an_update_that_makes_a_row(tablestore: LiveTableStore, table: str) -> None:
    """2 + 6 + 6 + 8 + 900 = 922 bytes: a column that is deleted counts its name."""
    cells = [*cells_of({"value1": "x" * 900}), WireCell("value2", None, None, CellOperation.DELETE_ALL)]
    assert failed(
        tablestore, table, lambda: tablestore.update({"pk": 1}, cells, table, expect=EXPECT_EXIST)
    ) == (1, 1)
    assert units_of(tablestore.update({"pk": 1}, cells, table, expect=IGNORE)) == (0, 1)


@pytest.mark.parametrize(("length", "units"), [(4096 - 22, 1), (4096 - 21, 2)])
def test_a_deleted_column_counts_its_name_and_no_more(
    tablestore: LiveTableStore, table: str, length: int, units: int
) -> None:
    tablestore.put({"pk": 1}, {"value2": "x" * 5_000}, table)
    cells = [*cells_of({"value1": "x" * length}), WireCell("value2", None, None, CellOperation.DELETE_ALL)]
    assert units_of(tablestore.update({"pk": 1}, cells, table)) == (0, units)


def test_example_3_an_update_of_4322_bytes(tablestore: LiveTableStore, one_row: str) -> None:
    assert units_of(tablestore.update({"pk": 1}, TWO, one_row, expect=EXPECT_EXIST)) == (1, 2)


def test_example_3_with_ignore_costs_two_units_and_not_one(tablestore: LiveTableStore, one_row: str) -> None:
    """The text has the same error as in example 1."""
    assert units_of(tablestore.update({"pk": 1}, TWO, one_row, expect=IGNORE)) == (0, 2)


def test_example_4_charges_a_delete_of_no_row_with_ignore(tablestore: LiveTableStore, table: str) -> None:
    """The text adds a read unit, against its own rule: nothing is checked."""
    assert units_of(tablestore.delete({"pk": 1}, table, expect=IGNORE)) == (0, 1)


def test_example_4_a_delete_of_no_row_that_is_expected(tablestore: LiveTableStore, table: str) -> None:
    """No read unit, as the rule for deletes states."""
    assert failed(tablestore, table, lambda: tablestore.delete({"pk": 1}, table, expect=EXPECT_EXIST)) == (
        0,
        1,
    )


def test_a_failed_write_consumes_a_unit_of_each_kind_whatever_its_size(tablestore: LiveTableStore) -> None:
    name = tablestore.new_name()
    key = dict.fromkeys("abcd", "x" * 1024)
    tablestore.create(name, *((column, messages.STRING) for column in key))
    large = {"value": "x" * 9_000}
    assert failed(tablestore, name, lambda: tablestore.put(key, large, name, expect=EXPECT_EXIST)) == (1, 1)
    assert failed(tablestore, name, lambda: tablestore.update(key, large, name, expect=EXPECT_EXIST)) == (
        1,
        1,
    )
    assert failed(tablestore, name, lambda: tablestore.delete(key, name, expect=EXPECT_EXIST)) == (0, 1)
    if_there = single("value", messages.CT_EXIST)
    assert failed(tablestore, name, lambda: tablestore.put(key, {}, name, column_condition=if_there)) == (
        1,
        1,
    )


def test_the_capacity_of_answers_is_metered(tablestore: LiveTableStore, one_row: str) -> None:
    table = one_row
    for ask in (
        lambda: tablestore.put({"pk": 1}, TWO, table, expect=EXPECT_EXIST),
        lambda: tablestore.update({"pk": 1}, TWO, table),
        lambda: tablestore.delete({"pk": 1}, table),
        lambda: tablestore.call("GetRow", table_name=table, primary_key=_key(2), max_versions=1),
        lambda: tablestore.range({"pk": 0}, {"pk": 9}, table),
    ):
        answers: list[Any] = []
        added = metered(tablestore, table, lambda: answers.append(ask()))  # noqa: B023
        assert added == units_of(answers[0])


def test_the_capacity_of_batches_is_metered_row_by_row(tablestore: LiveTableStore, one_row: str) -> None:
    batch = messages.BatchWriteRowRequest()
    part = batch.tables.add(table_name=one_row)
    for kind, number, expect in (
        (messages.PUT, 1, EXPECT_EXIST),
        (messages.PUT, 2, EXPECT_EXIST),
        (messages.UPDATE, 3, IGNORE),
        (messages.DELETE, 4, EXPECT_EXIST),
    ):
        part.rows.add(
            type=kind,
            row_change=row({"pk": number}, {} if kind == messages.DELETE else TWO),
            condition=messages.Condition(row_existence=expect),
        )
    answers: list[Any] = []
    added = metered(tablestore, one_row, lambda: answers.append(tablestore.ask("BatchWriteRow", batch)))
    assert [result.is_ok for result in answers[0].tables[0].rows] == [True, False, True, False]
    assert added == (1 + 1, 2 + 1 + 2 + 1)
    reads = messages.BatchGetRowRequest()
    reads.tables.add(table_name=one_row, primary_key=[_key(1), _key(2)], max_versions=1)
    assert metered(tablestore, one_row, lambda: tablestore.ask("BatchGetRow", reads)) == (2 + 1, 0)


def test_a_refused_request_consumes_nothing(tablestore: LiveTableStore, one_row: str) -> None:
    def write() -> None:
        with pytest.raises(Refused):
            tablestore.put({"pk": 1}, {"#": 1}, one_row)

    assert metered(tablestore, one_row, write) == (0, 0)


def test_a_delete_that_is_checked_costs_a_read(tablestore: LiveTableStore, one_row: str) -> None:
    assert units_of(tablestore.delete({"pk": 1}, one_row, expect=EXPECT_EXIST)) == (1, 1)


def test_a_column_condition_costs_a_read(tablestore: LiveTableStore, one_row: str) -> None:
    condition = single("value2", messages.CT_EXIST)
    assert units_of(tablestore.update({"pk": 1}, {"a": 1}, one_row, column_condition=condition)) == (1, 1)


@pytest.mark.parametrize(("length", "units"), [(4096 - 11, 1), (4096 - 10, 2)])
def test_sizes_are_rounded_up_to_four_kilobytes(
    tablestore: LiveTableStore, table: str, length: int, units: int
) -> None:
    assert units_of(tablestore.put({"pk": 1}, {"a": "x" * length}, table)) == (0, units)
    answer = tablestore.call("GetRow", table_name=table, primary_key=_key(1), max_versions=1)
    assert units_of(answer) == (units, 0)


def _key(number: int) -> bytes:
    return row({"pk": number})


def test_the_key_of_a_checked_write_is_read(tablestore: LiveTableStore) -> None:
    """Four key columns of a kilobyte each need two units."""
    name = tablestore.new_name()
    key = dict.fromkeys("abcd", "x" * 1024)
    tablestore.create(name, *((column, messages.STRING) for column in key))
    assert units_of(tablestore.put(key, {}, name, expect=EXPECT_NOT_EXIST)) == (2, 2)
    assert units_of(tablestore.put(key, {}, name)) == (0, 2)
    assert units_of(tablestore.delete(key, name, expect=EXPECT_EXIST)) == (2, 2)


def test_reading_one_of_two_columns(tablestore: LiveTableStore, table: str) -> None:
    """2 + 6 + 8 + 1200 = 1216 bytes. The text once prints 1218."""
    tablestore.put({"pk": 1}, {"value1": "x" * 1200, "value2": "x" * 3100}, table)
    members: Any = {"table_name": table, "primary_key": _key(1), "max_versions": 1}
    assert units_of(tablestore.call("GetRow", **members, columns_to_get=["value1"])) == (1, 0)
    assert units_of(tablestore.call("GetRow", **members)) == (2, 0)


def test_reading_no_row_costs_a_unit(tablestore: LiveTableStore, table: str) -> None:
    answer = tablestore.call("GetRow", table_name=table, primary_key=_key(1), max_versions=1)
    assert units_of(answer) == (1, 0)


def test_a_range_is_summed_up_and_then_rounded(tablestore: LiveTableStore, table: str) -> None:
    """Ten rows of 330 bytes: 3,300 bytes, one unit. Thirteen: 4,290 bytes, two."""
    for number in range(13):
        tablestore.put({"pk": number}, {"a": "x" * (330 - 11)}, table)
    assert units_of(tablestore.range({"pk": 0}, {"pk": 10}, table)) == (1, 0)
    assert units_of(tablestore.range({"pk": 0}, {"pk": 12}, table)) == (1, 0)
    assert units_of(tablestore.range({"pk": 0}, {"pk": 13}, table)) == (2, 0)


def test_only_rows_up_to_the_breakpoint_count(tablestore: LiveTableStore, table: str) -> None:
    for number in range(4):
        tablestore.put({"pk": number}, {"a": "x" * 4_000}, table)
    assert units_of(tablestore.range({"pk": 0}, {"pk": 9}, table, limit=2)) == (2, 0)


def test_failed_writes_of_an_atomic_batch_are_metered(tablestore: LiveTableStore, one_row: str) -> None:
    def batch(*numbers: int) -> Any:
        message = messages.BatchWriteRowRequest(is_atomic=True)
        part = message.tables.add(table_name=one_row)
        for number in numbers:
            cells = [*cells_of({"a": number})]
            part.rows.add(
                type=messages.UPDATE,
                row_change=row({"pk": 1}, cells),
                condition=messages.Condition(row_existence=EXPECT_NOT_EXIST if number else EXPECT_EXIST),
            )
        return tablestore.ask("BatchWriteRow", message)

    assert metered(tablestore, one_row, lambda: batch(0, 1)) == (1, 1)
    assert metered(tablestore, one_row, lambda: batch(1)) == (1, 1)
    assert metered(tablestore, one_row, lambda: batch(0)) == (1, 1)
    assert metered(tablestore, one_row, lambda: batch(0, 0)) == (2, 2)

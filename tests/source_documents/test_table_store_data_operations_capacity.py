"""Each worked example of capacity units in "Data operations" (Table Store documentation, 3 August 2017).

Where the document of 2017 contradicts its own rule, docs/protocols/table-store.md section 4.9 says which way the service
goes; the tests say so where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import Operation, WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, cells_of, row, units_of
from tests.adapters.tablestore.filter_messages import single
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import start

IGNORE, EXPECT_EXIST, EXPECT_NOT_EXIST = messages.IGNORE, messages.EXPECT_EXIST, messages.EXPECT_NOT_EXIST


@pytest.fixture(scope="module")
def live(shared_database_url: str) -> Iterator[LiveTableStore]:
    """The wire client at a live server with default settings."""
    running = start(shared_database_url, dialects="tablestore")
    yield LiveTableStore(running.url)
    running.stop()


@pytest.fixture
def table(live: LiveTableStore) -> str:
    """A new table with key `pk` INTEGER."""
    name = live.new_name()
    live.create(name)
    return name


def failed(live: LiveTableStore, table: str, ask: Any) -> tuple[float, float]:
    """(read, write) units of a write whose check fails, which are metered, and told in no answer."""
    return metered(live, table, lambda: refused(ask))


def refused(ask: Any) -> None:
    with pytest.raises(Refused) as told:
        ask()
    assert told.value.code == "OTSConditionCheckFail"


def metered(live: LiveTableStore, table: str, ask: Any) -> tuple[float, float]:
    """(read, write) units that a request adds to /metrics."""
    read, write = live.consumed(table)
    ask()
    read_then, write_then = live.consumed(table)
    return read_then - read, write_then - write


TWO = {"value1": "x" * 1300, "value2": "x" * 3000}  # with the key 2 + 6 + 6 + 8 + 1300 + 3000 = 4322 bytes


@pytest.fixture
def one_row(live: LiveTableStore, table: str) -> str:
    live.put({"pk": 1}, {"value2": "x" * 900}, table)
    return table


def test_example_1_a_put_of_4322_bytes(live: LiveTableStore, one_row: str) -> None:
    assert units_of(live.put({"pk": 1}, TWO, one_row, expect=EXPECT_EXIST)) == (1, 2)


def test_example_1_with_ignore_costs_two_units_and_not_one(live: LiveTableStore, one_row: str) -> None:
    """The text rounds 4322 / 4096 up to 1."""
    assert units_of(live.put({"pk": 1}, TWO, one_row, expect=IGNORE)) == (0, 2)


def test_example_1_with_a_failing_check(live: LiveTableStore, one_row: str) -> None:
    def write() -> Any:
        return live.put({"pk": 1}, TWO, one_row, expect=EXPECT_NOT_EXIST)

    assert failed(live, one_row, write) == (1, 1)


def test_example_2_an_update_that_makes_a_row(live: LiveTableStore, table: str) -> None:
    """2 + 6 + 6 + 8 + 900 = 922 bytes: a column that is deleted counts its name."""
    cells = [*cells_of({"value1": "x" * 900}), WireCell("value2", None, None, Operation.DELETE_ALL)]
    assert failed(live, table, lambda: live.update({"pk": 1}, cells, table, expect=EXPECT_EXIST)) == (1, 1)
    assert units_of(live.update({"pk": 1}, cells, table, expect=IGNORE)) == (0, 1)


@pytest.mark.parametrize(("length", "units"), [(4096 - 22, 1), (4096 - 21, 2)])
def test_a_deleted_column_counts_its_name_and_no_more(
    live: LiveTableStore, table: str, length: int, units: int
) -> None:
    live.put({"pk": 1}, {"value2": "x" * 5_000}, table)
    cells = [*cells_of({"value1": "x" * length}), WireCell("value2", None, None, Operation.DELETE_ALL)]
    assert units_of(live.update({"pk": 1}, cells, table)) == (0, units)


def test_example_3_an_update_of_4322_bytes(live: LiveTableStore, one_row: str) -> None:
    assert units_of(live.update({"pk": 1}, TWO, one_row, expect=EXPECT_EXIST)) == (1, 2)


def test_example_3_with_ignore_costs_two_units_and_not_one(live: LiveTableStore, one_row: str) -> None:
    """The same slip of the text as in example 1."""
    assert units_of(live.update({"pk": 1}, TWO, one_row, expect=IGNORE)) == (0, 2)


def test_example_4_a_delete_of_no_row_with_ignore(live: LiveTableStore, table: str) -> None:
    """The text adds a read unit, against its own rule: nothing is checked."""
    assert units_of(live.delete({"pk": 1}, table, expect=IGNORE)) == (0, 1)


def test_example_4_a_delete_of_no_row_that_is_expected(live: LiveTableStore, table: str) -> None:
    """No read unit, as the rule for deletes says."""
    assert failed(live, table, lambda: live.delete({"pk": 1}, table, expect=EXPECT_EXIST)) == (0, 1)


def test_a_failed_write_consumes_a_unit_of_each_kind_whatever_its_size(live: LiveTableStore) -> None:
    name = live.new_name()
    key = dict.fromkeys("abcd", "x" * 1024)
    live.create(name, *((column, messages.STRING) for column in key))
    large = {"value": "x" * 9_000}
    assert failed(live, name, lambda: live.put(key, large, name, expect=EXPECT_EXIST)) == (1, 1)
    assert failed(live, name, lambda: live.update(key, large, name, expect=EXPECT_EXIST)) == (1, 1)
    assert failed(live, name, lambda: live.delete(key, name, expect=EXPECT_EXIST)) == (0, 1)
    if_there = single("value", messages.CT_EXIST)
    assert failed(live, name, lambda: live.put(key, {}, name, column_condition=if_there)) == (1, 1)


def test_what_answers_tell_is_metered(live: LiveTableStore, one_row: str) -> None:
    table = one_row
    for ask in (
        lambda: live.put({"pk": 1}, TWO, table, expect=EXPECT_EXIST),
        lambda: live.update({"pk": 1}, TWO, table),
        lambda: live.delete({"pk": 1}, table),
        lambda: live.call("GetRow", table_name=table, primary_key=_key(2), max_versions=1),
        lambda: live.range({"pk": 0}, {"pk": 9}, table),
    ):
        answers: list[Any] = []
        added = metered(live, table, lambda: answers.append(ask()))  # noqa: B023
        assert added == units_of(answers[0])


def test_what_batches_tell_is_metered_row_by_row(live: LiveTableStore, one_row: str) -> None:
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
    added = metered(live, one_row, lambda: answers.append(live.ask("BatchWriteRow", batch)))
    assert [result.is_ok for result in answers[0].tables[0].rows] == [True, False, True, False]
    assert added == (1 + 1, 2 + 1 + 2 + 1)
    reads = messages.BatchGetRowRequest()
    reads.tables.add(table_name=one_row, primary_key=[_key(1), _key(2)], max_versions=1)
    assert metered(live, one_row, lambda: live.ask("BatchGetRow", reads)) == (2 + 1, 0)


def test_a_refused_request_consumes_nothing(live: LiveTableStore, one_row: str) -> None:
    def write() -> None:
        with pytest.raises(Refused):
            live.put({"pk": 1}, {"#": 1}, one_row)

    assert metered(live, one_row, write) == (0, 0)


def test_a_delete_that_is_checked_costs_a_read(live: LiveTableStore, one_row: str) -> None:
    assert units_of(live.delete({"pk": 1}, one_row, expect=EXPECT_EXIST)) == (1, 1)


def test_a_column_condition_costs_a_read(live: LiveTableStore, one_row: str) -> None:
    condition = single("value2", messages.CT_EXIST)
    assert units_of(live.update({"pk": 1}, {"a": 1}, one_row, column_condition=condition)) == (1, 1)


@pytest.mark.parametrize(("length", "units"), [(4096 - 11, 1), (4096 - 10, 2)])
def test_sizes_are_rounded_up_to_four_kilobytes(
    live: LiveTableStore, table: str, length: int, units: int
) -> None:
    assert units_of(live.put({"pk": 1}, {"a": "x" * length}, table)) == (0, units)
    answer = live.call("GetRow", table_name=table, primary_key=_key(1), max_versions=1)
    assert units_of(answer) == (units, 0)


def _key(number: int) -> bytes:
    return row({"pk": number})


def test_the_key_of_a_checked_write_is_read(live: LiveTableStore) -> None:
    """Four key columns of a kilobyte each need two units."""
    name = live.new_name()
    key = dict.fromkeys("abcd", "x" * 1024)
    live.create(name, *((column, messages.STRING) for column in key))
    assert units_of(live.put(key, {}, name, expect=EXPECT_NOT_EXIST)) == (2, 2)
    assert units_of(live.put(key, {}, name)) == (0, 2)
    assert units_of(live.delete(key, name, expect=EXPECT_EXIST)) == (2, 2)


def test_reading_one_of_two_columns(live: LiveTableStore, table: str) -> None:
    """2 + 6 + 8 + 1200 = 1216 bytes; the text once prints 1218."""
    live.put({"pk": 1}, {"value1": "x" * 1200, "value2": "x" * 3100}, table)
    members: Any = {"table_name": table, "primary_key": _key(1), "max_versions": 1}
    assert units_of(live.call("GetRow", **members, columns_to_get=["value1"])) == (1, 0)
    assert units_of(live.call("GetRow", **members)) == (2, 0)


def test_reading_no_row_costs_a_unit(live: LiveTableStore, table: str) -> None:
    answer = live.call("GetRow", table_name=table, primary_key=_key(1), max_versions=1)
    assert units_of(answer) == (1, 0)


def test_a_range_is_summed_up_and_then_rounded(live: LiveTableStore, table: str) -> None:
    """Ten rows of 330 bytes: 3,300 bytes, one unit; thirteen: 4,290 bytes, two."""
    for number in range(13):
        live.put({"pk": number}, {"a": "x" * (330 - 11)}, table)
    assert units_of(live.range({"pk": 0}, {"pk": 10}, table)) == (1, 0)
    assert units_of(live.range({"pk": 0}, {"pk": 12}, table)) == (1, 0)
    assert units_of(live.range({"pk": 0}, {"pk": 13}, table)) == (2, 0)


def test_only_rows_up_to_the_breakpoint_count(live: LiveTableStore, table: str) -> None:
    for number in range(4):
        live.put({"pk": number}, {"a": "x" * 4_000}, table)
    assert units_of(live.range({"pk": 0}, {"pk": 9}, table, limit=2)) == (2, 0)


def test_of_an_atomic_batch_the_writes_that_failed_are_metered(live: LiveTableStore, one_row: str) -> None:
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
        return live.ask("BatchWriteRow", message)

    assert metered(live, one_row, lambda: batch(0, 1)) == (1, 1)
    assert metered(live, one_row, lambda: batch(1)) == (1, 1)
    assert metered(live, one_row, lambda: batch(0)) == (1, 1)
    assert metered(live, one_row, lambda: batch(0, 0)) == (2, 2)

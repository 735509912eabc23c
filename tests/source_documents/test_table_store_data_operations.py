"""Statements of "Data operations" (Table Store documentation, 3 August 2017) about rows, conditions and batches.

All eight of its GetRange examples are here.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import Bound, CellOperation, WireCell, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, cells_of, plain, row, rows_of, units_of
from tests.support.live_tablestore import LiveTableStore

INTEGER, STRING = messages.INTEGER, messages.STRING
IGNORE, EXPECT_EXIST, EXPECT_NOT_EXIST = messages.IGNORE, messages.EXPECT_EXIST, messages.EXPECT_NOT_EXIST
MIN, MAX = Bound.INF_MIN, Bound.INF_MAX


@pytest.fixture
def table(tablestore: LiveTableStore) -> str:
    """A new table with key `pk` INTEGER."""
    name = tablestore.new_name()
    tablestore.create(name)
    return name


# Rows


def test_rows_of_one_table_have_one_key_and_attributes_of_their_own(
    tablestore: LiveTableStore, table: str
) -> None:
    tablestore.put({"pk": 1}, {"a": 1}, table)
    tablestore.put({"pk": 2}, {"b": "text", "a": "other"}, table)
    tablestore.put({"pk": 3}, {}, table)
    assert plain(tablestore.get({"pk": 2}, table)) == {"pk": 2, "b": "text", "a": "other"}
    assert plain(tablestore.get({"pk": 3}, table)) == {"pk": 3}
    for key in ({}, {"other": 1}, {"pk": "1"}, {"pk": 1, "more": 1}):
        with pytest.raises(Refused) as told:
            tablestore.put(key, {"a": 1}, table)
        assert told.value.status == 400


def test_the_seven_operations(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"a": 1}, table)
    tablestore.update({"pk": 1}, {"b": 2}, table)
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 1, "b": 2}
    write_batch(tablestore, table, [(messages.PUT, 2, {"a": 2}), (messages.DELETE, 1, {})])
    assert read_batch(tablestore, table, [1, 2]) == [None, {"pk": 2, "a": 2}]
    assert rows_of(tablestore.range({"pk": MIN}, {"pk": MAX}, table)) == [{"pk": 2, "a": 2}]
    tablestore.delete({"pk": 2}, table)
    assert tablestore.get({"pk": 2}, table) is None


def write_batch(
    tablestore: LiveTableStore, table: str, changes: list[tuple[int, Any, Any]], expect: int = IGNORE
) -> Any:
    request = messages.BatchWriteRowRequest()
    part = request.tables.add(table_name=table)
    for kind, pk, cells in changes:
        part.rows.add(
            type=kind,  # type: ignore[arg-type]
            row_change=row({"pk": pk}, cells),
            condition=messages.Condition(row_existence=expect),  # type: ignore[arg-type]
        )
    return tablestore.ask("BatchWriteRow", request)


def read_batch(tablestore: LiveTableStore, table: str, keys: list[Any]) -> list[Any]:
    request = messages.BatchGetRowRequest()
    request.tables.add(table_name=table, primary_key=[row({"pk": pk}) for pk in keys], max_versions=1)
    [part] = tablestore.ask("BatchGetRow", request).tables
    return [plain(decode_row(result.row)) if result.row else None for result in part.rows]


def test_a_put_deletes_all_earlier_columns(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"a": 1, "b": 2}, table)
    tablestore.put({"pk": 1}, {"c": 3}, table)
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "c": 3}


def test_an_update_adds_modifies_and_deletes_columns(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"a": 1, "b": 2}, table)
    cells = [*cells_of({"c": 3, "a": 9}), WireCell("b", None, None, CellOperation.DELETE_ALL)]
    tablestore.update({"pk": 1}, cells, table)
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 9, "c": 3}


def test_an_update_of_no_row_makes_one_but_not_by_deletes_alone(
    tablestore: LiveTableStore, table: str
) -> None:
    tablestore.update({"pk": 1}, {"a": 1}, table)
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 1}
    tablestore.update({"pk": 2}, [WireCell("a", None, None, CellOperation.DELETE_ALL)], table)
    assert tablestore.get({"pk": 2}, table) is None


def test_deleting_an_absent_row_does_nothing(tablestore: LiveTableStore, table: str) -> None:
    tablestore.delete({"pk": 1}, table)
    assert tablestore.get({"pk": 1}, table) is None


# Conditions


def test_ignore_checks_nothing(tablestore: LiveTableStore, table: str) -> None:
    for _ in range(2):
        tablestore.put({"pk": 1}, {"a": 1}, table, expect=IGNORE)
        tablestore.update({"pk": 1}, {"a": 2}, table, expect=IGNORE)
    for _ in range(2):
        tablestore.delete({"pk": 1}, table, expect=IGNORE)


def failing(ask: Any) -> str:
    with pytest.raises(Refused) as told:
        ask()
    assert told.value.status == 403
    return told.value.code


def test_expect_exist_succeeds_only_if_the_row_exists(tablestore: LiveTableStore, table: str) -> None:
    for ask in (
        lambda: tablestore.put({"pk": 1}, {"a": 1}, table, expect=EXPECT_EXIST),
        lambda: tablestore.update({"pk": 1}, {"a": 1}, table, expect=EXPECT_EXIST),
        lambda: tablestore.delete({"pk": 1}, table, expect=EXPECT_EXIST),
    ):
        assert failing(ask) == "OTSConditionCheckFail"
    tablestore.put({"pk": 1}, {"a": 1}, table)
    tablestore.put({"pk": 1}, {"a": 2}, table, expect=EXPECT_EXIST)
    tablestore.update({"pk": 1}, {"a": 3}, table, expect=EXPECT_EXIST)
    tablestore.delete({"pk": 1}, table, expect=EXPECT_EXIST)


def test_expect_not_exist_succeeds_only_if_the_row_does_not_exist(
    tablestore: LiveTableStore, table: str
) -> None:
    tablestore.put({"pk": 1}, {"a": 1}, table, expect=EXPECT_NOT_EXIST)
    assert (
        failing(lambda: tablestore.put({"pk": 1}, {"a": 2}, table, expect=EXPECT_NOT_EXIST))
        == "OTSConditionCheckFail"
    )
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 1}


def test_updates_and_deletes_of_rows_that_must_not_exist_today(
    tablestore: LiveTableStore, table: str
) -> None:
    """They succeed where there is no row, as a PutRow does: "Conditional update", Alibaba Cloud help, Tablestore, 2025."""
    tablestore.delete({"pk": 1}, table, expect=EXPECT_NOT_EXIST)
    tablestore.update({"pk": 1}, {"a": 1}, table, expect=EXPECT_NOT_EXIST)
    for ask in (
        lambda: tablestore.update({"pk": 1}, {"a": 2}, table, expect=EXPECT_NOT_EXIST),
        lambda: tablestore.delete({"pk": 1}, table, expect=EXPECT_NOT_EXIST),
    ):
        assert failing(ask) == "OTSConditionCheckFail"
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 1}


def test_failures_have_a_code(tablestore: LiveTableStore, table: str) -> None:
    for ask, code in (
        (lambda: tablestore.put({"pk": 1}, {"#": 1}, table), "OTSParameterInvalid"),
        (lambda: tablestore.put({"pk": 1}, {"a": "x" * 2_097_153}, table), "OTSParameterInvalid"),
        (lambda: tablestore.put({"pk": 1}, {"a": 1}, table, expect=EXPECT_EXIST), "OTSConditionCheckFail"),
    ):
        with pytest.raises(Refused) as told:
            ask()
        assert told.value.code == code


# Reading one row


def test_get_row_returns_all_columns_or_the_requested_ones(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 1}, {"a": 1, "b": 2}, table)
    assert plain(tablestore.get({"pk": 1}, table)) == {"pk": 1, "a": 1, "b": 2}
    assert plain(tablestore.get({"pk": 1}, table, columns_to_get=["b"])) == {"pk": 1, "b": 2}
    assert plain(tablestore.get({"pk": 1}, table, columns_to_get=["pk", "a"])) == {"pk": 1, "a": 1}
    with pytest.raises(Refused) as told:
        tablestore.call("GetRow", table_name=table, primary_key=row({}), max_versions=1)
    assert told.value.status == 400


# Batches


def test_writes_of_a_batch_are_independent(tablestore: LiveTableStore, table: str) -> None:
    other = tablestore.new_name()
    tablestore.create(other)
    tablestore.put({"pk": 1}, {"a": 1}, table)
    request = messages.BatchWriteRowRequest()
    for name, pk, expect in ((table, 1, EXPECT_EXIST), (other, 1, EXPECT_EXIST), (table, 2, IGNORE)):
        part = request.tables.add(table_name=name)
        condition = messages.Condition(row_existence=expect)  # type: ignore[arg-type]
        cells = {"a": "x" * 5_000}
        part.rows.add(type=messages.PUT, row_change=row({"pk": pk}, cells), condition=condition)
    answer = tablestore.ask("BatchWriteRow", request)
    results = [part.rows[0] for part in answer.tables]
    assert [result.is_ok for result in results] == [True, False, True]
    assert results[1].error.code == "OTSConditionCheckFail"
    assert [units_of(result) for result in results if result.is_ok] == [(1, 2), (0, 2)]
    assert tablestore.get({"pk": 2}, table) is not None


def test_puts_updates_and_deletes_in_one_batch(tablestore: LiveTableStore, table: str) -> None:
    tablestore.put({"pk": 2}, {"a": 1}, table)
    tablestore.put({"pk": 3}, {"a": 1}, table)
    write_batch(
        tablestore,
        table,
        [(messages.PUT, 1, {"a": 1}), (messages.UPDATE, 2, {"b": 2}), (messages.DELETE, 3, {})],
    )
    assert read_batch(tablestore, table, [1, 2, 3]) == [{"pk": 1, "a": 1}, {"pk": 2, "a": 1, "b": 2}, None]


def test_reads_of_a_batch_are_independent(tablestore: LiveTableStore, table: str) -> None:
    other = tablestore.new_name()
    tablestore.create(other)
    tablestore.put({"pk": 1}, {"a": "x" * 5_000}, table)
    tablestore.put({"pk": 1}, {"a": 1}, other)
    request = messages.BatchGetRowRequest()
    request.tables.add(table_name=table, primary_key=[row({"pk": 1}), row({"pk": "x"})], max_versions=1)
    request.tables.add(table_name=other, primary_key=[row({"pk": 1}), row({"pk": 2})], max_versions=1)
    first, second = tablestore.ask("BatchGetRow", request).tables
    assert [result.is_ok for result in (*first.rows, *second.rows)] == [True, False, True, True]
    assert first.rows[1].error.code == "OTSInvalidPK"
    assert [units_of(result) for result in (first.rows[0], *second.rows)] == [(2, 0), (1, 0), (1, 0)]


# Ranges

ROWS: list[dict[str, Any]] = [
    {"PK1": "A", "PK2": 2, "Attr1": "Hell", "Attr2": "Bell"},
    {"PK1": "A", "PK2": 5, "Attr1": "Hello"},
    {"PK1": "A", "PK2": 6, "Attr2": "Blood"},
    {"PK1": "B", "PK2": 10, "Attr1": "Apple"},
    {"PK1": "C", "PK2": 1},
    {"PK1": "C", "PK2": 9, "Attr1": "Alpha"},
]


@pytest.fixture(scope="module")
def letters(tablestore: LiveTableStore) -> str:
    """The table of the GetRange examples 1 to 7."""
    name = "letters"
    tablestore.create(name, ("PK1", STRING), ("PK2", INTEGER))
    for each in ROWS:
        attributes = {column: value for column, value in each.items() if column.startswith("Attr")}
        tablestore.put({"PK1": each["PK1"], "PK2": each["PK2"]}, attributes, name)
    return name


def bound(first: Any, second: Any) -> dict[str, Any]:
    return {"PK1": first, "PK2": second}


def test_example_1_reads_a_range(tablestore: LiveTableStore, letters: str) -> None:
    answer = tablestore.range(bound("A", 2), bound("C", 1), letters)
    assert rows_of(answer) == ROWS[:4]
    assert units_of(answer) == (1, 0)
    assert not answer.HasField("next_start_primary_key")


def test_example_2_reads_the_whole_table(tablestore: LiveTableStore, letters: str) -> None:
    """The example omits PK2. The text requires as many columns in a bound as in the key."""
    answer = tablestore.range(bound(MIN, MIN), bound(MAX, MAX), letters)
    assert rows_of(answer) == ROWS
    assert units_of(answer) == (1, 0)
    with pytest.raises(Refused) as told:
        tablestore.range({"PK1": MIN}, {"PK1": MAX}, letters)
    assert told.value.code == "OTSInvalidPK"


def test_example_3_virtual_points_in_some_columns(tablestore: LiveTableStore, letters: str) -> None:
    answer = tablestore.range(bound("A", MIN), bound("A", MAX), letters)
    assert rows_of(answer) == ROWS[:3]
    assert units_of(answer) == (1, 0)


def test_example_4_reads_backward(tablestore: LiveTableStore, letters: str) -> None:
    answer = tablestore.range(bound("C", 1), bound("A", 5), letters, direction=messages.BACKWARD)
    assert rows_of(answer) == [ROWS[4], ROWS[3], ROWS[2]]
    assert units_of(answer) == (1, 0)


def test_example_5_a_column_that_is_no_key(tablestore: LiveTableStore, letters: str) -> None:
    asked: Any = (bound("C", MIN), bound("C", MAX), letters)
    literally = tablestore.range(*asked, columns_to_get=["Attr1"], return_entire_primary_keys=False)
    assert rows_of(literally) == [{"Attr1": "Alpha"}]
    today = tablestore.range(*asked, columns_to_get=["Attr1"])
    assert rows_of(today) == [ROWS[5]]
    assert units_of(today) == (1, 0)


def test_example_6_a_column_that_is_a_key(tablestore: LiveTableStore, letters: str) -> None:
    asked: Any = (bound("C", MIN), bound("C", MAX), letters)
    literally = tablestore.range(*asked, columns_to_get=["Attr1", "PK1"], return_entire_primary_keys=False)
    assert rows_of(literally) == [{"PK1": "C"}, {"PK1": "C", "Attr1": "Alpha"}]
    today = tablestore.range(*asked, columns_to_get=["Attr1", "PK1"])
    assert rows_of(today) == [ROWS[4], ROWS[5]]
    assert units_of(today) == (1, 0)


def test_example_7_continues_at_the_breakpoint_after_a_limit(
    tablestore: LiveTableStore, letters: str
) -> None:
    first = tablestore.range(bound("A", MIN), bound("A", MAX), letters, limit=2)
    assert rows_of(first) == ROWS[:2]
    assert units_of(first) == (1, 0)
    breakpoint_ = plain(decode_row(first.next_start_primary_key))
    assert breakpoint_ == bound("A", 6)
    second = tablestore.range(breakpoint_, bound("A", MAX), letters, limit=2)
    assert rows_of(second) == [ROWS[2]]
    assert units_of(second) == (1, 0)
    assert not second.HasField("next_start_primary_key")


def test_example_8_counts_the_capacity_of_a_range(tablestore: LiveTableStore) -> None:
    name = tablestore.new_name()
    tablestore.create(name, ("PK1", INTEGER))
    long = "x" * 1000
    table: dict[int, dict[str, Any]] = {
        1: {"Attr2": long},
        2: {"Attr1": 8, "Attr2": long},
        3: {"Attr1": long},
        4: {"Attr1": long, "Attr2": long},
    }
    for key, attributes in table.items():
        tablestore.put({"PK1": key}, attributes, name)
    answer = tablestore.range({"PK1": 1}, {"PK1": 4}, name, columns_to_get=["PK1", "Attr1"])
    assert rows_of(answer) == [{"PK1": 1}, {"PK1": 2, "Attr1": 8}, {"PK1": 3, "Attr1": long}]
    assert 11 + 24 + 1016 == 1051
    assert units_of(answer) == (1, 0)


def test_a_column_that_is_not_read_is_not_paid(tablestore: LiveTableStore) -> None:
    """Example 8 with values large enough to show it: with Attr2 the rows would have 60,015 more bytes."""
    name = tablestore.new_name()
    tablestore.create(name, ("PK1", INTEGER))
    for key in (1, 2):
        tablestore.put({"PK1": key}, {"Attr1": "x" * (2048 - 11 - 5), "Attr2": "x" * 20_000}, name)
    tablestore.put({"PK1": 3}, {"Attr2": "x" * 20_000}, name)

    def read_units(end: int, *names: str) -> int:
        answer = tablestore.range({"PK1": 1}, {"PK1": end}, name, columns_to_get=names)
        return int(units_of(answer)[0])

    assert read_units(3, "PK1", "Attr1") == 1  # 4,096 bytes
    assert read_units(4, "PK1", "Attr1") == 2  # and 11 of the third row's key
    assert read_units(4, "PK1", "Attr1", "Attr2") == 16  # 64,122 bytes


def test_virtual_points_are_beyond_every_value(tablestore: LiveTableStore) -> None:
    name = tablestore.new_name()
    tablestore.create(name, ("i", INTEGER), ("s", STRING))
    keys = [(-(2**63), ""), (0, "\U0010ffff"), (2**63 - 1, "\uffff" * 300)]
    for i, s in keys:
        tablestore.put({"i": i, "s": s}, {}, name)
    found = rows_of(tablestore.range({"i": MIN, "s": MIN}, {"i": MAX, "s": MAX}, name))
    assert [(each["i"], each["s"]) for each in found if each] == keys
    assert rows_of(tablestore.range({"i": 0, "s": MIN}, {"i": 0, "s": MAX}, name)) == [
        {"i": 0, "s": "\U0010ffff"}
    ]


def test_rows_come_in_the_order_of_their_keys(tablestore: LiveTableStore) -> None:
    name = tablestore.new_name()
    tablestore.create(name, ("i", INTEGER), ("s", STRING))
    keys = [(i, s) for i in (-10, -1, 0, 2, 10) for s in ("", "a", "b", "ba")]
    for i, s in reversed(keys):
        tablestore.put({"i": i, "s": s}, {}, name)
    found = rows_of(tablestore.range({"i": MIN, "s": MIN}, {"i": MAX, "s": MAX}, name))
    assert [(each["i"], each["s"]) for each in found if each] == keys


def test_ranges_are_closed_on_their_start_and_open_on_their_end_either_way(
    tablestore: LiveTableStore, letters: str
) -> None:
    a, b = bound("A", 5), bound("B", 10)
    assert rows_of(tablestore.range(a, b, letters)) == ROWS[1:3]
    assert rows_of(tablestore.range(b, a, letters, direction=messages.BACKWARD)) == [ROWS[3], ROWS[2]]


def test_a_row_without_the_columns_asked_for_is_left_out(tablestore: LiveTableStore, letters: str) -> None:
    whole: Any = (bound(MIN, MIN), bound(MAX, MAX), letters)
    found = rows_of(tablestore.range(*whole, columns_to_get=["Attr2"]))
    assert found == [{"PK1": "A", "PK2": 2, "Attr2": "Bell"}, {"PK1": "A", "PK2": 6, "Attr2": "Blood"}]
    found = rows_of(tablestore.range(*whole, columns_to_get=["Attr1", "Attr2"]))
    assert found == [each for each in ROWS if len(each) > 2]


def test_a_page_has_no_more_rows_than_the_limit(tablestore: LiveTableStore, letters: str) -> None:
    whole: Any = (bound(MIN, MIN), bound(MAX, MAX), letters)
    for limit in (1, 3, 6, 7):
        assert rows_of(tablestore.range(*whole, limit=limit)) == ROWS[:limit]


def test_a_page_ends_at_four_megabytes(tablestore: LiveTableStore, table: str) -> None:
    for number in range(3):
        tablestore.put({"pk": number}, {"blob": b"x" * 2_000_000}, table)
    answer = tablestore.range({"pk": MIN}, {"pk": MAX}, table)
    assert [each["pk"] for each in rows_of(answer) if each] == [0, 1]
    assert plain(decode_row(answer.next_start_primary_key)) == {"pk": 2}


@pytest.mark.parametrize(("last", "read"), [(100, 3), (101, 2)])
def test_a_page_holds_exactly_four_megabytes(
    tablestore: LiveTableStore, table: str, last: int, read: int
) -> None:
    """Three rows of 4,194,304 bytes are a page.

    With one byte more the third is on the next page. In both directions.
    """
    overhead = len("pk") + 8 + len("blob")
    half = 4_194_304 // 2
    for number, size in enumerate((half, half - 100, last, 100)):
        tablestore.put({"pk": number}, {"blob": b"x" * (size - overhead)}, table)
        tablestore.put({"pk": 100 - number}, {"blob": b"x" * (size - overhead)}, table)
    forward = tablestore.range({"pk": MIN}, {"pk": 50}, table)
    assert [each["pk"] for each in rows_of(forward) if each] == list(range(read))
    assert plain(decode_row(forward.next_start_primary_key)) == {"pk": read}
    backward = tablestore.range({"pk": MAX}, {"pk": 50}, table, direction=messages.BACKWARD)
    assert [each["pk"] for each in rows_of(backward) if each] == [100 - number for number in range(read)]
    assert plain(decode_row(backward.next_start_primary_key)) == {"pk": 100 - read}


def test_a_page_ends_at_five_thousand_rows(tablestore: LiveTableStore, table: str) -> None:
    for start_ in range(0, 5_200, 200):
        write_batch(tablestore, table, [(messages.PUT, number, {}) for number in range(start_, start_ + 200)])
    answer = tablestore.range({"pk": MIN}, {"pk": MAX}, table)
    assert len(rows_of(answer)) == 5_000
    breakpoint_ = plain(decode_row(answer.next_start_primary_key))
    assert breakpoint_ == {"pk": 5_000}
    answer = tablestore.range(breakpoint_, {"pk": MAX}, table)
    assert len(rows_of(answer)) == 200
    assert not answer.HasField("next_start_primary_key")

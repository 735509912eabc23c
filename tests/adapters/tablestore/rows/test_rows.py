"""GetRow, PutRow, UpdateRow, DeleteRow: conditions, versions, increments, what is returned, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, CellOperation, WireCell, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tests.adapters.tablestore.client import (
    Refused,
    TableStoreService,
    datum,
    no_throughput,
    plain,
    row,
    units_of,
)
from tests.adapters.tablestore.filter_messages import single

EXPECT_EXIST, EXPECT_NOT_EXIST = messages.EXPECT_EXIST, messages.EXPECT_NOT_EXIST
PRICE_IS_1 = single("price", messages.CT_EQUAL, 1, if_missing=False)


def cell(
    name: str, value: Any = None, stamp_ms: int | None = None, operation: CellOperation | None = None
) -> WireCell:
    return WireCell(name, None if value is None else datum(value), stamp_ms, operation)


def increment(name: str, delta: Any) -> WireCell:
    return cell(name, delta, None, CellOperation.INCREMENT)


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """A table `t`, key `pk` INTEGER, one version."""
    service.create()
    return service


@pytest.fixture
def versions(service: TableStoreService) -> TableStoreService:
    """A table `t` that keeps three versions."""
    service.create(table_options=messages.TableOptions(time_to_live=-1, max_versions=3))
    return service


# Putting and getting


def test_put_values_are_read_with_their_types(table: TableStoreService) -> None:
    values = {"b": True, "d": 1.5, "i": -(2**63), "s": "héllo", "x": b"\x00\xff"}
    table.put({"pk": 1}, values)
    wire = table.get({"pk": 1})
    assert plain(wire) == {"pk": 1, **values}
    assert wire is not None
    assert [type(found.value.data) for found in wire.cells] == [bool, float, int, str, bytes]  # type: ignore[union-attr]
    assert {found.stamp_ms for found in wire.cells} == {table.clock.ms}


def test_columns_come_in_the_order_of_their_names(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"b": 1, "a": 2, "B": 3, "_": 4})
    wire = table.get({"pk": 1})
    assert wire is not None
    assert [found.name for found in wire.cells] == ["B", "_", "a", "b"]


def test_no_row_is_zero_bytes(table: TableStoreService) -> None:
    answer = table.call("GetRow", table_name="t", primary_key=_key(1), max_versions=1)
    assert answer.row == b""
    assert units_of(answer) == (1, 0)


def test_a_put_replaces_the_whole_row(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1, "b": 2})
    table.put({"pk": 1}, {"c": 3})
    assert plain(table.get({"pk": 1})) == {"pk": 1, "c": 3}


def test_a_row_may_have_no_attributes(table: TableStoreService) -> None:
    table.put({"pk": 1})
    assert plain(table.get({"pk": 1})) == {"pk": 1}


def test_a_deleted_row_is_absent(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    table.delete({"pk": 1})
    assert table.get({"pk": 1}) is None
    table.delete({"pk": 1})


# Conditions


@pytest.mark.parametrize("operation", ["put", "update", "delete"])
@pytest.mark.parametrize(
    ("expect", "exists", "holds"),
    [
        (messages.IGNORE, False, True),
        (messages.IGNORE, True, True),
        (EXPECT_EXIST, False, False),
        (EXPECT_EXIST, True, True),
        (EXPECT_NOT_EXIST, True, False),
    ],
)
def test_a_write_can_depend_on_the_existence_of_its_row(
    table: TableStoreService, operation: str, expect: int, exists: bool, holds: bool
) -> None:
    if exists:
        table.put({"pk": 1}, {"price": 1})
    arguments = () if operation == "delete" else ({"price": 2},)
    if holds:
        getattr(table, operation)({"pk": 1}, *arguments, expect=expect)
        return
    with pytest.raises(Refused) as told:
        getattr(table, operation)({"pk": 1}, *arguments, expect=expect)
    assert (told.value.status, told.value.code) == (403, "OTSConditionCheckFail")
    assert (
        told.value.message
        == {
            EXPECT_EXIST: "Row does not exist which is expected existent",
            EXPECT_NOT_EXIST: "Row exists which is expected nonexistent",
        }[expect]
    )


def test_a_put_that_expects_no_row_succeeds_without_one(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1}, expect=EXPECT_NOT_EXIST)
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 1}


# A missing row satisfies the condition: "Conditional update" of the current documentation (Alibaba Cloud help,
# Tablestore, August 2025: expect non-existence is met if the row does not exist, for PutRow, UpdateRow, DeleteRow and
# BatchWriteRow alike); aliyun-tablestore-java-sdk, model/CapacityUnitTest testDeleteRow, functiontest/IncrementRequest
# testAtomicAddWithCondition.


def test_update_expecting_no_row_makes_one(table: TableStoreService) -> None:
    assert units_of(table.update({"pk": 1}, {"a": 2}, expect=EXPECT_NOT_EXIST)) == (1, 1)
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 2}
    assert refused_by_condition(lambda: table.update({"pk": 1}, {"a": 3}, expect=EXPECT_NOT_EXIST))
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 2}


def test_a_delete_that_expects_no_row_succeeds_without_one(table: TableStoreService) -> None:
    assert units_of(table.delete({"pk": 1}, expect=EXPECT_NOT_EXIST)) == (1, 1)
    table.put({"pk": 1}, {"a": 1})
    assert refused_by_condition(lambda: table.delete({"pk": 1}, expect=EXPECT_NOT_EXIST))
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": 1}


def refused_by_condition(write: Callable[[], object]) -> bool:
    with pytest.raises(Refused) as told:
        write()
    return (told.value.status, told.value.code) == (403, "OTSConditionCheckFail")


def test_a_write_can_depend_on_a_column(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"price": 1})
    table.update({"pk": 1}, {"price": 2}, column_condition=PRICE_IS_1)
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, {"price": 3}, column_condition=PRICE_IS_1)
    assert told.value.code == "OTSConditionCheckFail"
    assert plain(table.get({"pk": 1})) == {"pk": 1, "price": 2}


def test_a_missing_column_passes_or_fails_as_the_condition_says(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"other": 1})
    with pytest.raises(Refused):
        table.update({"pk": 1}, {"price": 3}, column_condition=PRICE_IS_1)
    passing = single("price", messages.CT_EQUAL, 1, if_missing=True)
    table.update({"pk": 1}, {"price": 3}, column_condition=passing)


# Updating


def test_an_update_leaves_other_columns_alone(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1, "b": 2})
    table.update({"pk": 1}, [cell("a", "now text"), cell("b", None, None, CellOperation.DELETE_ALL)])
    assert plain(table.get({"pk": 1})) == {"pk": 1, "a": "now text"}


def test_an_update_makes_a_row_but_not_for_deletes_alone(table: TableStoreService) -> None:
    table.update({"pk": 1}, [cell("a", None, None, CellOperation.DELETE_ALL)])
    assert table.get({"pk": 1}) is None
    table.update({"pk": 1}, [cell("a", None, None, CellOperation.DELETE_ALL), cell("b", 1)])
    assert plain(table.get({"pk": 1})) == {"pk": 1, "b": 1}
    table.update({"pk": 2}, [increment("n", 5)])
    assert plain(table.get({"pk": 2})) == {"pk": 2, "n": 5}


def test_the_row_stays_when_its_last_column_goes(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1})
    table.update({"pk": 1}, [cell("a", None, None, CellOperation.DELETE_ALL)])
    assert plain(table.get({"pk": 1})) == {"pk": 1}


def test_cells_apply_in_the_order_of_the_request(versions: TableStoreService) -> None:
    now = versions.clock.ms
    versions.update(
        {"pk": 1},
        [
            cell("a", 1, now),
            cell("a", None, None, CellOperation.DELETE_ALL),
            cell("a", 2, now - 1),
            cell("b", 3),
        ],
    )
    assert plain(versions.get({"pk": 1})) == {"pk": 1, "a": 2, "b": 3}


def test_one_version_of_a_cell_can_be_deleted(versions: TableStoreService) -> None:
    now = versions.clock.ms
    versions.put({"pk": 1}, [cell("a", 1, now - 2), cell("a", 2, now - 1), cell("a", 3, now)])
    versions.update({"pk": 1}, [cell("a", None, now - 1, CellOperation.DELETE_ONE)])
    wire = versions.get({"pk": 1}, max_versions=9)
    assert wire is not None
    assert [(found.value.data, found.stamp_ms) for found in wire.cells] == [(3, now), (1, now - 2)]  # type: ignore[union-attr]


# Increments


def test_an_update_increments_numbers(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"n": 5, "d": 0.5})
    table.update({"pk": 1}, [increment("n", -7), increment("m", 3), increment("d", 0.25)])
    assert plain(table.get({"pk": 1})) == {"pk": 1, "n": -2, "m": 3, "d": 0.75}


def test_an_increment_is_a_new_version(versions: TableStoreService) -> None:
    versions.put({"pk": 1}, {"n": 1})
    versions.clock.advance(1)
    versions.update({"pk": 1}, [increment("n", 1)])
    wire = versions.get({"pk": 1}, max_versions=9)
    assert wire is not None
    assert [found.value.data for found in wire.cells] == [2, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("stored", "delta"), [("text", 1), (1.5, 1), (1, 1.5), (2**63 - 1, 1), (-(2**63), -1)]
)
def test_increments_that_cannot_be(table: TableStoreService, stored: Any, delta: Any) -> None:
    table.put({"pk": 1}, {"n": stored})
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, [increment("n", delta)])
    assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
    assert plain(table.get({"pk": 1})) == {"pk": 1, "n": stored}


def test_a_column_that_is_incremented_may_not_be_changed_otherwise(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, [increment("n", 1), cell("n", 5)])
    assert told.value.code == "OTSParameterInvalid"
    with pytest.raises(Refused):
        table.update({"pk": 1}, [increment("n", "x")])


# Returned values


def returning(kind: int, *names: str) -> messages.ReturnContent:
    return messages.ReturnContent(return_type=kind, return_column_names=names)  # type: ignore[arg-type]


def test_return_nothing_or_the_key(table: TableStoreService) -> None:
    assert not table.put({"pk": 1}, {"a": 1}).row
    assert not table.put({"pk": 1}, {"a": 1}, return_content=returning(messages.RT_NONE)).row
    answer = table.put({"pk": 1}, {"a": 1}, return_content=returning(messages.RT_PK))
    assert plain(decode_row(answer.row)) == {"pk": 1}
    answer = table.delete({"pk": 1}, return_content=returning(messages.RT_PK))
    assert plain(decode_row(answer.row)) == {"pk": 1}


def test_return_columns_after_the_update(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"n": 5, "m": 1, "a": 1})
    answer = table.update(
        {"pk": 1},
        [increment("n", 1), increment("m", 1), cell("a", 2)],
        return_content=returning(messages.RT_AFTER_MODIFY, "n"),
    )
    assert plain(decode_row(answer.row)) == {"pk": 1, "n": 6}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (messages.RT_AFTER_MODIFY, ("n", "a")),
        (messages.RT_AFTER_MODIFY, ("n", "nothing")),
        (messages.RT_PK, ("n",)),
    ],
)
def test_only_incremented_columns_can_be_returned(
    table: TableStoreService, kind: int, names: tuple[str, ...]
) -> None:
    """aliyun-tablestore-java-sdk, functiontest/IncrementRequest, testReturnColumnNames: nothing of such a request is done."""
    table.put({"pk": 1}, {"n": 5, "a": 1})
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, [increment("n", 1), cell("a", 2)], return_content=returning(kind, *names))
    assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
    assert plain(table.get({"pk": 1})) == {"pk": 1, "n": 5, "a": 1}


# Versions and times


def test_versions_newest_first_and_no_more_than_are_kept(versions: TableStoreService) -> None:
    for value in range(5):
        versions.clock.advance(1)
        versions.update({"pk": 1}, {"a": value})
    wire = versions.get({"pk": 1}, max_versions=100)
    assert wire is not None
    assert [found.value.data for found in wire.cells] == [4, 3, 2]  # type: ignore[union-attr]
    assert plain(versions.get({"pk": 1})) == {"pk": 1, "a": 4}


def test_shrinking_max_versions_hides_old_versions(versions: TableStoreService) -> None:
    now = versions.clock.ms
    versions.put({"pk": 1}, [cell("a", 1, now - 1), cell("a", 2, now)])
    versions.call("UpdateTable", table_name="t", table_options=messages.TableOptions(max_versions=1))
    wire = versions.get({"pk": 1}, max_versions=9)
    assert wire is not None
    assert [found.value.data for found in wire.cells] == [2]  # type: ignore[union-attr]


def test_time_range_is_half_open(versions: TableStoreService) -> None:
    now = versions.clock.ms
    versions.put(
        {"pk": 1}, [cell("a", 1, now - 2), cell("a", 2, now - 1), cell("a", 3, now), cell("b", 1, now)]
    )
    found = versions.get({"pk": 1}, time_range=messages.TimeRange(start_time=now - 2, end_time=now))
    assert found is not None
    assert [(each.name, each.value.data) for each in found.cells] == [("a", 2), ("a", 1)]  # type: ignore[union-attr]
    found = versions.get({"pk": 1}, time_range=messages.TimeRange(specific_time=now - 1))
    assert plain(found) == {"pk": 1, "a": 2}
    found = versions.get(
        {"pk": 1}, time_range=messages.TimeRange(start_time=now - 2, end_time=now), max_versions=1
    )
    assert plain(found) == {"pk": 1, "a": 2}
    assert plain(versions.get({"pk": 1}, time_range=messages.TimeRange(specific_time=1))) == {"pk": 1}


@pytest.mark.parametrize(
    "members",
    [
        {"max_versions": 0},
        {"max_versions": -1},
        {"time_range": messages.TimeRange(start_time=5)},
        {"time_range": messages.TimeRange(start_time=5, end_time=5)},
        {"time_range": messages.TimeRange(start_time=-1, end_time=5)},
        {"time_range": messages.TimeRange(start_time=1, end_time=5, specific_time=3)},
    ],
)
def test_version_conditions_that_cannot_be(table: TableStoreService, members: dict[str, Any]) -> None:
    with pytest.raises(Refused) as told:
        table.get({"pk": 1}, **members)
    assert told.value.code == "OTSParameterInvalid"


def test_a_read_must_say_which_versions(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.call("GetRow", table_name="t", primary_key=_key(1))
    assert told.value.message == "No version condition is specified."


@pytest.mark.parametrize("stamp_ms", [-1, limits.STAMP_END_MS])
def test_stamps_that_are_none(table: TableStoreService, stamp_ms: int) -> None:
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, [cell("a", 1, stamp_ms)])
    assert told.value.message == "Timestamp must be in range [0, INT64_MAX/1000)."


@pytest.mark.parametrize(
    ("time_to_live_s", "deviation_s", "before_s", "after_s"),
    [
        (-1, 86_400, 86_400, 86_400),
        (86_400, 200_000, 86_400, 200_000),
        (86_400, 86_400, 86_400, 86_400),
        (86_400, 1_000, 1_000, 1_000),
    ],
)
def test_stamps_are_not_too_far_from_now(
    service: TableStoreService, time_to_live_s: int, deviation_s: int, before_s: int, after_s: int
) -> None:
    """Valid version range: [max(time of writing - offset, time of writing - time to live), time of writing + offset) in
    seconds ("Error codes", Alibaba Cloud help, Tablestore, May 2026, at "Invalid timestamp. Cell:")."""
    options = messages.TableOptions(
        time_to_live=time_to_live_s, max_versions=1, deviation_cell_version_in_sec=deviation_s
    )
    service.create(table_options=options)
    now_s = service.clock.ms // 1000
    first_ms, end_ms = (now_s - before_s) * 1000, (now_s + after_s) * 1000
    for write in (service.put, service.update):
        write({"pk": 1}, [cell("a", 1, first_ms), cell("b", 1, end_ms - 1)])
        for stamp_ms in (first_ms - 1, end_ms, 0):
            with pytest.raises(Refused) as told:
                write({"pk": 1}, [cell("a", 1), cell("late", 1, stamp_ms)])
            assert (told.value.status, told.value.code) == (400, "OTSParameterInvalid")
            assert told.value.message == "Invalid timestamp. Cell:late."


def test_expired_cells_are_not_returned(service: TableStoreService) -> None:
    service.create(table_options=messages.TableOptions(time_to_live=86_400, max_versions=3))
    service.put({"pk": 1}, {"old": 1})
    service.clock.advance(80_000)
    service.update({"pk": 1}, {"young": 2})
    assert plain(service.get({"pk": 1})) == {"pk": 1, "old": 1, "young": 2}
    service.clock.advance(10_000)
    assert plain(service.get({"pk": 1})) == {"pk": 1, "young": 2}
    service.clock.advance(80_000)
    assert service.get({"pk": 1}) is None
    service.put({"pk": 1}, {"a": 1}, expect=EXPECT_NOT_EXIST)


# Columns


def test_columns_to_get(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1, "b": 2, "c": 3})
    assert plain(table.get({"pk": 1}, columns_to_get=["a", "c", "x"])) == {"pk": 1, "a": 1, "c": 3}
    assert table.get({"pk": 1}, columns_to_get=["x"]) is None
    assert plain(table.get({"pk": 1}, columns_to_get=["x", "pk"])) == {"pk": 1}


def test_column_range_includes_its_start_and_not_its_end(table: TableStoreService) -> None:
    table.put({"pk": 1}, {"a": 1, "b": 2, "c": 3, "d": 4})
    assert plain(table.get({"pk": 1}, start_column="b", end_column="d")) == {"pk": 1, "b": 2, "c": 3}
    assert plain(table.get({"pk": 1}, start_column="c")) == {"pk": 1, "c": 3, "d": 4}
    assert plain(table.get({"pk": 1}, end_column="b")) == {"pk": 1, "a": 1}


# Keys


@pytest.fixture
def four(service: TableStoreService) -> TableStoreService:
    service.create(
        "t", ("p", messages.STRING), ("i", messages.INTEGER), ("b", messages.BINARY), ("s", messages.STRING)
    )
    return service


def test_four_key_columns_of_three_types(four: TableStoreService) -> None:
    key = {"p": "", "i": -5, "b": b"\x00", "s": "ü"}
    four.put(key, {"a": 1})
    assert plain(four.get(key)) == {**key, "a": 1}
    assert four.get({**key, "b": b""}) is None


@pytest.mark.parametrize(
    ("key", "code", "message"),
    [
        ({"p": "x"}, "OTSInvalidPK", "Validate PK size fail. Input: 1, Meta: 4."),
        (
            {"p": "x", "j": 1, "b": b"", "s": ""},
            "OTSInvalidPK",
            "Validate PK name fail. Input: j, Meta: i.",
        ),
        (
            {"p": 1, "i": 1, "b": b"", "s": ""},
            "OTSInvalidPK",
            "Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.",
        ),
        (
            {"p": "x", "i": 1.5, "b": b"", "s": ""},
            "OTSParameterInvalid",
            "DOUBLE is an invalid type for the primary key.",
        ),
        (
            {"p": "x", "i": True, "b": b"", "s": ""},
            "OTSParameterInvalid",
            "BOOLEAN is an invalid type for the primary key.",
        ),
        (
            {"p": "x", "i": Bound.INF_MIN, "b": b"", "s": ""},
            "OTSParameterInvalid",
            "VT_INF_MIN is an invalid type for the primary key.",
        ),
        (
            {"p": "x", "i": Bound.INF_MAX, "b": b"", "s": ""},
            "OTSParameterInvalid",
            "VT_INF_MAX is an invalid type for the primary key.",
        ),
    ],
)
def test_keys_that_do_not_fit(four: TableStoreService, key: dict[str, Any], code: str, message: str) -> None:
    for ask in (four.get, four.put, four.delete):
        with pytest.raises(Refused) as told:
            ask(key)
        assert (told.value.status, told.value.code, told.value.message) == (400, code, message)


@pytest.mark.parametrize(("kind", "unit"), [(messages.STRING, "x"), (messages.BINARY, b"x")])
def test_a_key_value_has_a_maximum_length(service: TableStoreService, kind: int, unit: Any) -> None:
    service.create("t", ("p", kind))
    longest = {"p": unit * limits.KEY_VALUE_MAX_BYTES}
    service.put(longest, {"a": 1})
    assert plain(service.get(longest)) == {**longest, "a": 1}
    with pytest.raises(Refused) as told:
        service.put({"p": unit * (limits.KEY_VALUE_MAX_BYTES + 1)})
    assert told.value.message == (
        "The length of primary key column: 'p' exceeds the MaxLength:1024 with CurrentLength:1025."
    )


def test_length_of_a_key_value_is_in_bytes(service: TableStoreService) -> None:
    service.create("t", ("p", messages.STRING))
    service.put({"p": "ü" * 512})
    with pytest.raises(Refused):
        service.put({"p": "ü" * 513})


# Attributes


@pytest.mark.parametrize("unit", ["x", b"x"])
def test_an_attribute_has_a_maximum_length(table: TableStoreService, unit: Any) -> None:
    table.put({"pk": 1}, {"a": unit * limits.VALUE_MAX_BYTES})
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, {"a": unit * (limits.VALUE_MAX_BYTES + 1)})
    assert told.value.message == (
        "The length of attribute column: 'a' exceeds the MaxLength:2097152 with CurrentLength:2097153."
    )


def test_number_of_attributes(table: TableStoreService) -> None:
    most = {f"c{number}": 1 for number in range(limits.COLUMNS_MAX)}
    table.put({"pk": 1}, most)
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, {**most, "more": 1})
    assert told.value.message == (
        "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025."
    )
    table.get({"pk": 1}, columns_to_get=most)
    with pytest.raises(Refused) as told:
        table.get({"pk": 1}, columns_to_get=[*most, "more"])
    assert told.value.message == (
        "The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025."
    )


def test_a_row_has_a_maximum_size(table: TableStoreService) -> None:
    """Names and values of the request: 2 + 8 for the key, 1 for each name."""
    half = limits.VALUE_MAX_BYTES
    table.put({"pk": 1}, {"a": "x" * half, "b": "x" * (half - 12)})
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, {"a": "x" * half, "b": "x" * (half - 11)})
    assert told.value.message == (
        "The total data size of PutRow request exceeds the limit, limit size: 4194304, data size: 4194305."
    )


def test_a_key_column_is_no_attribute(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.put({"pk": 1}, {"pk": 2})
    assert told.value.code == "OTSParameterInvalid"


def test_an_update_needs_a_cell(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, {})
    assert told.value.message == "Attribute column is missing."


def test_updates_can_be_forbidden(service: TableStoreService) -> None:
    service.create(table_options=messages.TableOptions(time_to_live=-1, max_versions=1, allow_update=False))
    service.put({"pk": 1}, {"a": 1})
    with pytest.raises(Refused) as told:
        service.update({"pk": 1}, {"a": 2})
    assert told.value.code == "OTSParameterInvalid"


def test_errors_of_a_row_are_found_before_its_table_is_looked_up(service: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        service.put({"pk": 1}, {"#b": 1}, table="nowhere")
    assert told.value.code == "OTSParameterInvalid"
    with pytest.raises(Refused) as told:
        service.put({"pk": 1}, {"ab": 1}, table="nowhere")
    assert (told.value.status, told.value.code) == (404, "OTSObjectNotExist")
    assert told.value.message == "Requested table does not exist."


# Auto-increment


@pytest.fixture
def drawn(service: TableStoreService) -> TableStoreService:
    meta = messages.TableMeta(
        table_name="t",
        primary_key=[
            messages.PrimaryKeySchema(name="p", type=messages.STRING),
            messages.PrimaryKeySchema(name="id", type=messages.INTEGER, option=messages.AUTO_INCREMENT),
        ],
    )
    service.call(
        "CreateTable",
        table_meta=meta,
        reserved_throughput=no_throughput(),
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
    )
    return service


def test_numbers_are_drawn_and_grow(drawn: TableStoreService) -> None:
    key = {"p": "x", "id": AUTO_INCREMENT}
    numbers = []
    for value in range(3):
        answer = drawn.put(key, {"a": value}, return_content=returning(messages.RT_PK))
        found = plain(decode_row(answer.row))
        assert found is not None
        numbers.append(found["id"])
        known = {"p": "x", "id": found["id"]}
        assert plain(drawn.get(known)) == {**known, "a": value}
        drawn.put(known, {"a": "changed"})
        assert plain(drawn.get(known)) == {**known, "a": "changed"}
    assert numbers == sorted(set(numbers))


def test_updates_draw_too(drawn: TableStoreService) -> None:
    answer = drawn.update(
        {"p": "x", "id": AUTO_INCREMENT}, {"a": 1}, return_content=returning(messages.RT_PK)
    )
    found = plain(decode_row(answer.row))
    assert found is not None
    assert plain(drawn.get(found)) == {**found, "a": 1}


@pytest.mark.parametrize("expectation", ["EXPECT_NOT_EXIST", "EXPECT_EXIST"])
def test_write_that_asks_for_a_number_expects_nothing(drawn: TableStoreService, expectation: str) -> None:
    """Source: aliyun/aliyun-tablestore-python-sdk issue 3, for EXPECT_NOT_EXIST."""
    key = {"p": "x", "id": AUTO_INCREMENT}
    for write in (drawn.put, drawn.update):
        with pytest.raises(Refused) as refused:
            write(key, {"a": 1}, expect=messages.RowExistenceExpectation.Value(expectation))
        text = f"Invalid expect:{expectation} when modify row with pk auto increment"
        assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")
        assert refused.value.message == text


@pytest.mark.parametrize("existence", [messages.IGNORE, messages.EXPECT_EXIST, messages.EXPECT_NOT_EXIST])
def test_a_new_row_does_not_get_the_number_of_a_client(drawn: TableStoreService, existence: int) -> None:
    for write in (drawn.put, drawn.update):
        with pytest.raises(Refused) as refused:
            write({"p": "x", "id": 1}, {"a": 1}, expect=existence)
        assert (refused.value.status, refused.value.code) == (403, "OTSConditionCheckFail")
    assert plain(drawn.get({"p": "x", "id": 1})) is None


def test_only_an_auto_increment_column_can_be_drawn(
    table: TableStoreService, service: TableStoreService
) -> None:
    with pytest.raises(Refused) as told:
        table.put({"pk": AUTO_INCREMENT}, {"a": 1})
    assert told.value.status == 400
    with pytest.raises(Refused):
        table.get({"pk": AUTO_INCREMENT})


def _key(number: int) -> bytes:
    return row({"pk": number})


def test_malformed_cells(table: TableStoreService) -> None:
    for cells in (
        [cell("a", 1, None, CellOperation.DELETE_ALL)],
        [cell("a", None, None, CellOperation.DELETE_ONE)],
        [cell("a")],
    ):
        with pytest.raises(Refused) as told:
            table.update({"pk": 1}, cells)
        assert told.value.code == "OTSParameterInvalid"
    for cells in (
        [cell("a", None, None, CellOperation.DELETE_ALL)],
        [WireCell("a", Bound.INF_MIN)],
        [increment("a", 1)],
    ):
        with pytest.raises(Refused):
            table.put({"pk": 1}, cells)
    with pytest.raises(Refused):
        table.call(
            "GetRow",
            table_name="t",
            primary_key=b"\x75\x00\x00\x00",
            max_versions=1,
        )

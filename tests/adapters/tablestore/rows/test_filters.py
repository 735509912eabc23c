"""Filters and conditions: each comparator, each type, combinations, versions, patterns, pages of columns, limits."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService, datum, plain, rows_of
from tests.adapters.tablestore.filter_messages import composite, pagination, single

EQ, NE = messages.CT_EQUAL, messages.CT_NOT_EQUAL
GT, GE, LT, LE = (
    messages.CT_GREATER_THAN,
    messages.CT_GREATER_EQUAL,
    messages.CT_LESS_THAN,
    messages.CT_LESS_EQUAL,
)
NOT, AND, OR = messages.LO_NOT, messages.LO_AND, messages.LO_OR


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    service.create(table_options=messages.TableOptions(time_to_live=-1, max_versions=3))
    service.put({"pk": 1}, {"i": 5, "d": 5.0, "s": "b", "x": b"b", "b": True, "page": "t1:42,"})
    return service


def passes(table: TableStoreService, data: bytes) -> bool:
    return table.get({"pk": 1}, filter=data) is not None


@pytest.mark.parametrize(
    ("column", "lower", "same", "higher"),
    [("i", 4, 5, 6), ("d", 4.5, 5.0, 5.5), ("s", "a", "b", "ba"), ("x", b"a", b"b", b"ba"), ("pk", 0, 1, 2)],
)
def test_comparators(table: TableStoreService, column: str, lower: Any, same: Any, higher: Any) -> None:
    expected = {
        EQ: (False, True, False),
        NE: (True, False, True),
        GT: (True, False, False),
        GE: (True, True, False),
        LT: (False, False, True),
        LE: (False, True, True),
    }
    for comparator, answers in expected.items():
        found = tuple(passes(table, single(column, comparator, value)) for value in (lower, same, higher))
        assert found == answers, comparator


def test_values_of_other_types_are_just_different(table: TableStoreService) -> None:
    for column, value in (("i", 5.0), ("d", 5), ("s", b"b"), ("x", "b"), ("b", 1)):
        assert not passes(table, single(column, EQ, value))
        assert not passes(table, single(column, GE, value))
        assert passes(table, single(column, NE, value))


def test_missing_columns(table: TableStoreService) -> None:
    for comparator in (EQ, NE, LT):
        assert passes(table, single("missing", comparator, 1, if_missing=True))
        assert not passes(table, single("missing", comparator, 1, if_missing=False))


def test_a_condition_can_test_the_existence_of_a_column(table: TableStoreService) -> None:
    assert passes(table, single("i", messages.CT_EXIST))
    assert not passes(table, single("i", messages.CT_NOT_EXIST))
    assert not passes(table, single("missing", messages.CT_EXIST))
    assert passes(table, single("missing", messages.CT_NOT_EXIST))


def test_combinations(table: TableStoreService) -> None:
    true, false = single("i", EQ, 5), single("i", EQ, 6)
    assert passes(table, composite(AND, true, true))
    assert not passes(table, composite(AND, true, false))
    assert passes(table, composite(OR, false, true))
    assert not passes(table, composite(OR, false, false))
    assert passes(table, composite(NOT, false))
    assert passes(table, composite(AND, composite(NOT, false), composite(OR, false, true), true))


def test_a_filter_compares_all_versions_or_the_newest(table: TableStoreService) -> None:
    now = table.clock.ms
    cells = [WireCell("v", datum(value), now - age) for value, age in ((1, 2), (2, 1), (3, 0))]
    table.put({"pk": 1}, cells)
    assert table.get({"pk": 1}, max_versions=3, filter=single("v", EQ, 1, latest_only=False)) is not None
    assert table.get({"pk": 1}, max_versions=3, filter=single("v", EQ, 1)) is None
    assert table.get({"pk": 1}, max_versions=2, filter=single("v", EQ, 1, latest_only=False)) is None


def test_a_filter_sees_only_the_columns_selected(table: TableStoreService) -> None:
    assert table.get({"pk": 1}, columns_to_get=["s"], filter=single("i", EQ, 5, if_missing=False)) is None
    assert table.get({"pk": 1}, columns_to_get=["s"], filter=single("i", EQ, 6, if_missing=True)) is not None


# Patterns


def rule(regex: str, cast: int | None = None) -> messages.ValueTransferRule:
    made = messages.ValueTransferRule(regex=regex)
    if cast is not None:
        made.cast_type = cast  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("regex", "cast", "value", "expected"),
    [
        ("t1:([0-9]+),", messages.VT_INTEGER, 42, True),
        ("t1:([0-9]+),", messages.VT_INTEGER, 43, False),
        ("t1:([0-9]+),", messages.VT_DOUBLE, 42.0, True),
        ("t1:([0-9]+),", messages.VT_STRING, "42", True),
        ("t1:([0-9]+),", None, "42", True),
        ("t1:([0-9]+),", messages.VT_BLOB, b"42", True),
        ("[a-z]", messages.VT_STRING, "t", True),
        ("t1", messages.VT_INTEGER, 1, False),
        ("absent", messages.VT_STRING, "", False),
    ],
)
def test_value_rules(
    table: TableStoreService, regex: str, cast: int | None, value: Any, expected: bool
) -> None:
    assert passes(table, single("page", EQ, value, if_missing=False, rule=rule(regex, cast))) is expected


def test_a_value_rule_that_finds_nothing_makes_the_column_missing(table: TableStoreService) -> None:
    assert passes(table, single("page", EQ, 1, if_missing=True, rule=rule("absent", messages.VT_INTEGER)))
    assert passes(table, single("i", EQ, 1, if_missing=True, rule=rule("5", messages.VT_INTEGER)))


@pytest.mark.parametrize("regex", ["(", r"(a)\1", "(?=a)"])
def test_patterns_that_are_none(table: TableStoreService, regex: str) -> None:
    with pytest.raises(Refused) as told:
        passes(table, single("page", EQ, "", rule=rule(regex)))
    assert told.value.code == "OTSParameterInvalid"


def test_the_length_of_a_pattern_on_both_sides(table: TableStoreService) -> None:
    """256 bytes at most (developer reference, ValueTransferRule)."""
    for regex in ("(t|" + "x" * 252 + ")", "t1|" + "é" * 126 + "x"):
        assert len(regex.encode()) == limits.REGEX_MAX_BYTES == 256
        assert passes(table, single("page", messages.CT_EXIST, rule=rule(regex)))
        with pytest.raises(Refused, match="exceeds the max: 256") as told:
            passes(table, single("page", messages.CT_EXIST, rule=rule(regex + "x")))
        assert told.value.code == "OTSParameterInvalid"


def test_a_pattern_that_is_too_large_gets_a_clear_error(table: TableStoreService) -> None:
    with pytest.raises(Refused, match="pattern too large") as told:
        passes(table, single("page", EQ, "", rule=rule(r"\pL{40}")))
    assert told.value.code == "OTSParameterInvalid"


HOSTILE = "(a|b|c)*" * 20
"""160 characters, which took 11.5 s a row of 65,000 characters before patterns were searched by RE2."""


def test_hostile_patterns_cost_little(table: TableStoreService) -> None:
    for pk in range(5):
        table.put({"pk": pk}, {"page": ("abc" * 21_667)[:65_000]})
    began = time.process_time()
    answer = table.range({"pk": 0}, {"pk": 5}, filter=single("page", messages.CT_EXIST, rule=rule(HOSTILE)))
    assert time.process_time() - began < 3
    assert len(rows_of(answer)) == 5


def test_many_patterns_search_less_of_a_text(table: TableStoreService) -> None:
    """Together they may take only so long: 16 MiB of bytes times steps."""
    table.put({"pk": 1}, {"page": "a" * 65_000 + "b"})
    assert passes(table, single("page", messages.CT_EXIST, rule=rule("b")))
    many = [single("page", messages.CT_EXIST, rule=rule("b|" + "[xy]z?" * 40)) for _ in range(8)]
    assert not passes(table, composite(AND, *many))
    table.put({"pk": 1}, {"page": "a" * 1_000 + "b"})
    assert passes(table, composite(AND, *many))


# Pages of columns


def test_pages_of_columns(table: TableStoreService) -> None:
    table.put({"pk": 1}, {f"c{number}": number for number in range(6)})
    assert plain(table.get({"pk": 1}, filter=pagination(0, 2))) == {"pk": 1, "c0": 0, "c1": 1}
    assert plain(table.get({"pk": 1}, filter=pagination(5, 9))) == {"pk": 1, "c5": 5}
    assert plain(table.get({"pk": 1}, start_column="c2", filter=pagination(1, 2))) == {
        "pk": 1,
        "c3": 3,
        "c4": 4,
    }
    both = composite(AND, single("c0", EQ, 0), pagination(1, 1))
    assert plain(table.get({"pk": 1}, filter=both)) == {"pk": 1, "c1": 1}
    answer = table.range({"pk": 0}, {"pk": 9}, filter=pagination(2, 1))
    assert rows_of(answer) == [{"pk": 1, "c2": 2}]


@pytest.mark.parametrize("data", [pagination(-1, 1), pagination(0, 0), composite(NOT, pagination(0, 1))])
def test_pages_that_cannot_be(table: TableStoreService, data: bytes) -> None:
    with pytest.raises(Refused) as told:
        passes(table, data)
    assert told.value.code == "OTSParameterInvalid"


def test_conditions_have_no_pages(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.update({"pk": 1}, {"a": 1}, column_condition=pagination(0, 1))
    assert told.value.code == "OTSParameterInvalid"


# Limits


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (composite(NOT), "Invalid NOT operator: the number of sub-filters must be 1."),
        (
            composite(NOT, single("i", EQ, 5), single("i", EQ, 5)),
            "Invalid NOT operator: the number of sub-filters must be 1.",
        ),
        (
            composite(AND, single("i", EQ, 5)),
            "Invalid AND/OR operator: the number of sub-filters must be more than 1.",
        ),
        (composite(OR), "Invalid AND/OR operator: the number of sub-filters must be more than 1."),
        (single("#i", EQ, 5), "Invalid column name: '#i'."),
        (single("a" * 256, EQ, 5), f"Invalid column name: '{'a' * 256}'."),
        (
            single("s", EQ, "x" * (limits.VALUE_MAX_BYTES + 1)),
            "The length of attribute column: 's' exceeds the MaxLength:2097152 with CurrentLength:2097153.",
        ),
    ],
)
def test_filters_that_cannot_be(table: TableStoreService, data: bytes, message: str) -> None:
    for ask in (
        lambda: passes(table, data),
        lambda: table.range({"pk": 0}, {"pk": 9}, filter=data),
        lambda: table.update({"pk": 1}, {"a": 1}, column_condition=data),
    ):
        with pytest.raises(Refused) as told:
            ask()
        assert (told.value.status, told.value.code, told.value.message) == (
            400,
            "OTSParameterInvalid",
            message,
        )


def test_number_of_filters(table: TableStoreService) -> None:
    one = single("i", EQ, 5)
    assert passes(table, composite(AND, *[one] * (limits.FILTER_NODES_MAX - 1)))
    with pytest.raises(Refused) as told:
        passes(table, composite(AND, *[one] * limits.FILTER_NODES_MAX))
    assert told.value.message == "The count of filter exceeds the max: 32."


def test_depth_of_filters(table: TableStoreService) -> None:
    deep = single("i", EQ, 5)
    for _ in range(limits.FILTER_NODES_MAX - 1):
        deep = composite(NOT, deep)
    assert not passes(table, deep)
    for _ in range(500):
        deep = composite(NOT, deep)
    with pytest.raises(Refused) as told:
        passes(table, deep)
    assert told.value.message == "The count of filter exceeds the max: 32."


@pytest.mark.parametrize("data", [b"\xff", b"\x08\x09\x12\x00", b"\x08\x01\x12\x02\xff\xff", b"\x08\x01"])
def test_bytes_that_are_no_filter(table: TableStoreService, data: bytes) -> None:
    with pytest.raises(Refused) as told:
        passes(table, data)
    assert told.value.code == "OTSParameterInvalid"

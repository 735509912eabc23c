"""Wire values: what is taken, what is refused and how, what the canonical form is, and how foreign kinds look."""

from __future__ import annotations

import base64
import json
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.values import scalars, values
from tablegate.adapters.dynamodb.values.values import (
    is_too_large,
    item_of,
    keep_kinds,
    render_row,
    value_of,
    view,
)
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, number_size_bytes
from tests.support.tables import each_row


def refusal(wire: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        value_of(wire)
    assert caught.value.code == "ValidationException"
    return str(caught.value.message)


def type_refusal(wire: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        value_of(wire)
    assert caught.value.code == "SerializationException"
    return str(caught.value.message)


# Numbers (rule 21)


@each_row(
    "text, canonical",
    [
        ("0", "0"),
        ("-0", "0"),
        ("0.000", "0"),
        ("0e125", "0"),
        ("0.0e-129", "0"),
        ("+5", "5"),
        ("5.", "5"),
        (".5", "0.5"),
        ("1.e5", "100000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        ("007", "7"),
        ("1.500", "1.5"),
        ("-12.50", "-12.5"),
        ("100", "100"),
        ("1" * 38, "1" * 38),
        ("1" * 38 + "000", "1" * 38 + "000"),
        ("9.9999999999999999999999999999999999999E+125", "9" * 38 + "0" * 88),
        ("1E-130", "0." + "0" * 129 + "1"),
    ],
)
def test_numbers_are_put_into_plain_digits(text: str, canonical: str) -> None:
    assert scalars.canonical_number(text) == canonical


@each_row(
    "text, reason",
    [
        ("", "The parameter cannot be converted to a numeric value"),
        ("b", "The parameter cannot be converted to a numeric value: b"),
        (" 1", "The parameter cannot be converted to a numeric value:  1"),
        ("NaN", "The parameter cannot be converted to a numeric value: NaN"),
        ("Infinity", "The parameter cannot be converted to a numeric value: Infinity"),
        ("1+2", "The parameter cannot be converted to a numeric value: 1+2"),
        ("0x10", "The parameter cannot be converted to a numeric value: 0x10"),
        ("1_0", "The parameter cannot be converted to a numeric value: 1_0"),
        ("\u0661", "The parameter cannot be converted to a numeric value: \u0661"),
        ("1" * 39, "Attempting to store more than 38 significant digits in a Number"),
        ("1E126", "Number overflow. Attempting to store a number with magnitude larger than supported range"),
        (
            "-1E126",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
        (
            "1E-131",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        ),
        # paritysuite numberExponent.test.ts (eu-west-2, October 2026)
        (
            "1e99999999999",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
        (
            "1e-99999999999",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        ),
        (
            "1e9223372036854775808",
            "The parameter cannot be converted to a numeric value: 1e9223372036854775808",
        ),
        ("0e126", "Number overflow. Attempting to store a number with magnitude larger than supported range"),
        (
            "0e-131",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        ),
        ("1e" + "9" * 60, "The parameter cannot be converted to a numeric value: 1e" + "9" * 60),
    ],
)
def test_numbers_out_of_range_are_refused(text: str, reason: str) -> None:
    assert refusal({"N": text}) == reason


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**12), max_value=10**12))
def test_canonical_numbers_keep_their_value_and_their_billed_size(number: Decimal) -> None:
    text = scalars.canonical_number(str(number))
    assert Decimal(text) == number
    assert scalars.number_size_bytes(text) == number_size_bytes(number)


# Sets (rule 22)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
        ({"NS": []}, "One or more parameter values were invalid: An number set  may not be empty"),
        ({"BS": []}, "One or more parameter values were invalid: Binary sets should not be empty"),
        (
            {"SS": ["a", "a"]},
            "One or more parameter values were invalid: Input collection [a, a] contains duplicates.",
        ),
        ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        (
            {"BS": ["YQ==", "YQ=="]},
            "One or more parameter values were invalid: Input collection [YQ==, YQ==]of type BS contains duplicates.",
        ),
        ({"NS": [""]}, "The parameter cannot be converted to a numeric value"),
    ],
)
def test_empty_sets_and_duplicates_are_refused(wire: dict[str, Any], reason: str) -> None:
    assert refusal(wire) == reason


def test_empty_members_of_string_and_binary_sets_are_taken() -> None:
    assert value_of({"SS": ["", "a"]}).data == frozenset({"", "a"})
    assert value_of({"BS": ["", "YQ=="]}).data == frozenset({b"", b"a"})


def test_sets_are_stored_in_order() -> None:
    wire = {"a": {"SS": ["b", "a"]}, "b": {"NS": ["10", "9", "-1"]}, "c": {"BS": ["/w==", "AA=="]}}
    assert json.loads(item_of(wire).contents.body) == {
        "a": {"SS": ["a", "b"]},
        "b": {"NS": ["-1", "9", "10"]},
        "c": {"BS": ["AA==", "/w=="]},
    }


# Other kinds


def test_null_must_be_true() -> None:
    assert refusal({"NULL": False}).endswith("Null attribute value types must have the value of true")
    assert value_of({"NULL": True}) == Value(Kind.NULL, None)


def test_empty_strings_and_binaries_are_taken() -> None:
    assert value_of({"S": ""}).data == ""
    assert value_of({"B": ""}).data == b""


@pytest.mark.parametrize("wire", [{}, None, {"dog": "cat"}, {"S": None}])
def test_a_value_without_a_type_is_empty(wire: Any) -> None:
    assert (
        refusal(wire)
        == "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
    )


def test_a_value_has_one_type_and_errors_in_its_data_come_first() -> None:
    several = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
    assert refusal({"S": "a", "N": "1"}) == several
    assert refusal({"S": "a", "N": "x"}) == "The parameter cannot be converted to a numeric value: x"


@each_row(
    "wire, reason",
    [
        ({"N": 123}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"S": True}, "TRUE_VALUE cannot be converted to String"),
        ({"S": []}, "Unrecognized collection type class java.lang.String"),
        ({"S": {}}, "Start of structure or map found where not expected"),
        ({"BOOL": "maybe"}, "Unexpected token received from parser"),
        ({"B": 1}, "only base-64-encoded strings are convertible to bytes"),
        ({"B": "YWJjZGVmZ2g"}, "Base64 encoded length is expected a multiple of 4 bytes but found: 11"),
        ({"B": "YWJj??!!"}, "Invalid last non-pad Base64 character dectected"),
        ({"B": "YR=="}, "Invalid last non-pad Base64 character dectected"),
        ({"B": "\u00e9aaa"}, "Invalid last non-pad Base64 character dectected"),
        ({"L": "a"}, "Unexpected field type"),
        *(
            ([element], "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue")
            for element in (0, True, "S", None, [])
        ),
        (
            {"M": []},
            "Unrecognized collection type java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
        ),
    ],
)
def test_wrong_json_types_are_serialization_errors(wire: Any, reason: str) -> None:
    assert type_refusal(wire) == reason


@given(st.binary(max_size=40))
def test_every_binary_is_taken_and_measured(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert scalars.binary_bytes(text) == len(data)
    assert value_of({"B": text}).data == data


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(ServiceError, match="SerializationException"):
        value_of({"M": {"a": {"S": "\ud800"}}})


# Depth, names, size


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"M": {"a": value}}
    return value


def test_thirty_one_levels_of_documents_are_taken_and_thirty_two_are_not() -> None:
    value_of(nested(31))
    assert refusal(nested(32)).startswith("Nesting Levels have exceeded supported limits")


def test_attribute_names_of_65535_bytes_are_taken_and_longer_or_empty_ones_are_not() -> None:
    item_of({"a" * 65_535: {"S": ""}})
    for name, reason in (("a" * 65_536, "65536"), ("\u00e9" * 32_768, "65536"), ("", "Empty attribute name")):
        with pytest.raises(ServiceError, match=reason):
            item_of({name: {"S": ""}})


def test_an_item_of_409600_bytes_is_taken_and_one_byte_more_is_not() -> None:
    assert not is_too_large(item_of({"a": {"S": "x" * 409_599}}).size_bytes)
    assert is_too_large(item_of({"a": {"S": "x" * 409_600}}).size_bytes)


# Canonical bodies

SCALARS = st.one_of(
    st.builds(lambda text: {"S": text}, st.text(max_size=8)),
    st.builds(
        lambda number: {"N": str(number)}, st.integers(-(10**20), 10**20) | st.decimals(-1000, 1000, places=3)
    ),
    st.builds(lambda data: {"B": base64.b64encode(data).decode()}, st.binary(max_size=8)),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(
        lambda texts: {"SS": texts}, st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True)
    ),
    st.builds(
        lambda texts: {"NS": texts},
        st.lists(st.integers(-(10**37), 10**37).map(str), min_size=1, max_size=4, unique=True),
    ),
)
WIRE = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3))
        | st.builds(
            lambda members: {"M": members},
            st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3),
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), WIRE, max_size=5))
def test_contents_are_what_the_model_would_make_of_the_values(wire: dict[str, Any]) -> None:
    plain = {name: value_of(orjson.loads(orjson.dumps(member))) for name, member in wire.items()}
    made, model = item_of(wire).contents, Contents.of_values(plain)
    assert made.latest == model.latest
    assert made.size_bytes == model.size_bytes
    assert made.body == bodies.encode(plain)
    assert made.is_native


def test_an_item_is_checked_once() -> None:
    item = values.item_of({"a": {"S": "x"}})
    assert values.item_of(item) is item


# Foreign kinds


@pytest.mark.parametrize(
    ("stored", "wire"),
    [
        (Value(Kind.INT32, -5), {"N": "-5"}),
        (Value(Kind.INT64, 2**63 - 1), {"N": "9223372036854775807"}),
        (Value(Kind.DOUBLE, 0.1), {"N": "0.1"}),
        (Value(Kind.DOUBLE, 1e22), {"N": "1" + "0" * 22}),
        (Value(Kind.DOUBLE, -0.0), {"N": "0"}),
        (Value(Kind.DOUBLE, 1e300), {"S": "1e+300"}),
        (Value(Kind.DOUBLE, 1e-300), {"S": "1e-300"}),
        (Value(Kind.DOUBLE, math.inf), {"S": "Infinity"}),
        (Value(Kind.DOUBLE, -math.inf), {"S": "-Infinity"}),
        (Value(Kind.DOUBLE, math.nan), {"S": "NaN"}),
        (Value(Kind.DATETIME, 0), {"S": "0001-01-01T00:00:00.0000000Z"}),
        (Value(Kind.DATETIME, 637_134_336_000_000_001), {"S": "2020-01-01T00:00:00.0000001Z"}),
        (Value(Kind.GUID, UUID(int=1)), {"S": "00000000-0000-0000-0000-000000000001"}),
    ],
)
def test_foreign_kinds_are_shown_exactly_or_as_text(stored: Value, wire: dict[str, str]) -> None:
    assert values.render_value(stored) == wire


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_shown_as_a_number_is_that_number(data: float) -> None:
    seen = view(Value(Kind.DOUBLE, data))
    assert float(seen.data) == data


def row_of(stored: dict[str, Value]) -> Row:
    return Row(Position(b"p", b""), Contents.of_values(stored), 1)


@pytest.mark.fast_paths
def test_a_row_of_native_kinds_is_rendered_as_its_stored_bytes() -> None:
    row = Row(Position(b"p", b""), Contents(b'{"a":{"S":"x"}}', None, 2), 1)
    assert render_row(row) is row.body


def test_a_row_of_foreign_kinds_is_rendered_through_the_view() -> None:
    row = row_of({"a": Value(Kind.TEXT, "x"), "n": Value(Kind.INT32, 7)})
    assert json.loads(render_row(row)) == {"a": {"S": "x"}, "n": {"N": "7"}}


def test_writing_back_what_was_shown_keeps_the_stored_kinds() -> None:
    stored = {
        "n": Value(Kind.INT32, 7),
        "d": Value(Kind.DOUBLE, 0.5),
        "when": Value(Kind.DATETIME, 0),
        "s": Value(Kind.TEXT, "x"),
    }
    row = row_of(stored)
    kept = keep_kinds(row, item_of(orjson.loads(render_row(row))).contents)
    assert kept.latest == stored
    assert kept.kinds == row.contents.kinds


def test_a_changed_attribute_gets_the_kind_that_was_written() -> None:
    row = row_of({"n": Value(Kind.INT32, 7), "m": Value(Kind.INT32, 8)})
    kept = keep_kinds(row, item_of({"n": {"N": "7"}, "m": {"N": "9"}}).contents)
    assert kept.latest == {"n": Value(Kind.INT32, 7), "m": Value(Kind.DECIMAL, Decimal(9))}


def test_nothing_to_keep_leaves_the_new_contents_alone() -> None:
    new = item_of({"a": {"S": "y"}}).contents
    assert keep_kinds(None, new) is new
    assert keep_kinds(row_of({"a": Value(Kind.TEXT, "x")}), new) is new


def test_numbers_fit_an_integer_key_column_only_if_they_are_integers() -> None:
    assert values.as_kind(Value(Kind.DECIMAL, Decimal("5")), Kind.INT64) == Value(Kind.INT64, 5)
    assert values.as_kind(Value(Kind.DECIMAL, Decimal("5.5")), Kind.INT64) is None
    assert values.as_kind(Value(Kind.DECIMAL, Decimal(2**63)), Kind.INT64) is None
    assert values.as_kind(Value(Kind.TEXT, "5"), Kind.INT64) is None

"""Key bytes order as values do, decode back, and mark the bounds of prefixes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.errors import BadKey
from tablegate.gateway.model.expressions.ranges import KeyRange, prefix, within
from tablegate.gateway.model.values.keys import (
    KeyColumn,
    KeySchema,
    Position,
    decode_column,
    encode_column,
    encode_prefix,
    slot_of,
)
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tests.support.numbers import DECIMALS

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=8)
zero_heavy_bytes = st.binary(max_size=6) | st.lists(st.sampled_from([0, 1, 254, 255]), max_size=6).map(bytes)


@given(DECIMALS, DECIMALS)
def test_numbers_order_by_value(left: Decimal, right: Decimal) -> None:
    assert (encode_column(decimal(left)) < encode_column(decimal(right))) == (left < right)
    assert (encode_column(decimal(left)) == encode_column(decimal(right))) == (left == right)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_and_an_equal_decimal_are_the_same_key(number: int) -> None:
    assert encode_column(Value(Kind.INT64, number)) == encode_column(decimal(number))


@given(texts, texts)
def test_texts_order_by_their_utf8_bytes(left: str, right: str) -> None:
    assert (encode_column(text(left)) < encode_column(text(right))) == (left.encode() < right.encode())


@given(zero_heavy_bytes, zero_heavy_bytes)
def test_bytes_order_as_unsigned(left: bytes, right: bytes) -> None:
    encoded = encode_column(Value(Kind.BYTES, left)), encode_column(Value(Kind.BYTES, right))
    assert (encoded[0] < encoded[1]) == (left < right)


@given(zero_heavy_bytes, zero_heavy_bytes)
def test_a_prefix_bounds_exactly_what_begins_with_it(head: bytes, value: bytes) -> None:
    lower, upper = prefix(encode_prefix(Value(Kind.BYTES, head)))
    assert (lower <= encode_column(Value(Kind.BYTES, value)) < upper) == value.startswith(head)


@given(st.tuples(texts, zero_heavy_bytes, DECIMALS, st.integers(-(2**63), 2**63 - 1)))
def test_a_key_of_four_columns_decodes_back(values: tuple[str, bytes, Decimal, int]) -> None:
    kinds = (Kind.TEXT, Kind.BYTES, Kind.DECIMAL, Kind.INT64)
    columns = tuple(KeyColumn(name, kind) for name, kind in zip("abcd", kinds, strict=True))
    schema = KeySchema(columns[:1], columns[1:])
    key = schema.key({c.name: Value(c.kind, value) for c, value in zip(columns, values, strict=True)})
    assert schema.decode(key.position) == key


@given(zero_heavy_bytes, zero_heavy_bytes, zero_heavy_bytes, zero_heavy_bytes)
def test_columns_compare_one_after_the_other(a: bytes, b: bytes, c: bytes, d: bytes) -> None:
    schema = KeySchema(
        (KeyColumn("p", Kind.BYTES),), (KeyColumn("q", Kind.BYTES), KeyColumn("r", Kind.BYTES))
    )
    left = schema.position([Value(Kind.BYTES, part) for part in (a, b, c)])
    right = schema.position([Value(Kind.BYTES, part) for part in (a, d, b)])
    assert (left < right) == ((a, b, c) < (a, d, b))


def test_numbers_keep_their_38_digits() -> None:
    number = Decimal("-1.2345678901234567890123456789012345678")
    value, _ = decode_column(encode_column(decimal(number)), 0, Kind.DECIMAL)
    assert value.data == number


def test_a_missing_and_a_mistyped_column_have_different_errors() -> None:
    schema = KeySchema((KeyColumn("p", Kind.TEXT),))
    with pytest.raises(BadKey) as missing:
        schema.key({})
    with pytest.raises(BadKey) as mistyped:
        schema.key({"p": decimal(1)})
    assert (missing.value.rule, mistyped.value.rule) == ("missing", "kind")


def test_after_is_the_next_position() -> None:
    here = Position(b"p", b"s")
    assert here < here.after < Position(b"p", b"s\x00\x00")


def test_a_range_resumes_on_either_side_of_a_position() -> None:
    whole = within(b"p")
    here = Position(b"p", b"s")
    assert whole.after(here) == KeyRange(here.after, whole.upper)
    assert whole.before(here) == KeyRange(whole.lower, here)


def test_slots_never_change() -> None:
    """Rows are stored under these slots. With other numbers they would be lost."""
    assert [slot_of(key) for key in (b"", b"a", encode_column(text("user#1")))] == [
        0,
        2418,
        slot_of(b" user#1\x00"),
    ]

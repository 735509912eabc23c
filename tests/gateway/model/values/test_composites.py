"""Several key columns as one text: each key has one spelling, and no text is two keys."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values.composites import composite_text, name_of, split, value_of
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.values import Kind, Value

COLUMNS = (KeyColumn("t", Kind.TEXT), KeyColumn("n", Kind.INT64), KeyColumn("b", Kind.BYTES))
texts = st.text(st.sampled_from("ab|%27C5"), max_size=6)
keys = st.tuples(texts, st.integers(-(2**63), 2**63 - 1), st.binary(max_size=4))


def values(key: tuple[str, int, bytes]) -> list[Value]:
    return [Value(column.kind, data) for column, data in zip(COLUMNS, key, strict=True)]


@given(keys, keys)
def test_every_key_comes_back_and_no_two_have_one_text(one: tuple, other: tuple) -> None:
    text = composite_text(values(one))
    assert split(COLUMNS, text) == values(one)
    assert (text == composite_text(values(other))) is (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a|1",
        "a|1|00|",
        "a|01|00",
        "a|1|0",
        "a|1|0G",
        "a|1|AB",
        "a%|1|00",
        "a%7c|1|00",
        "a|9223372036854775808|",
    ],
)
def test_a_text_that_no_key_is_shown_as_is_no_key(text: str) -> None:
    assert split(COLUMNS, text) is None


def test_one_column_is_its_plain_text() -> None:
    assert composite_text([Value(Kind.TEXT, "a|%")]) == "a|%"
    assert split(COLUMNS[:1], "a|%") == [Value(Kind.TEXT, "a|%")]
    assert (split((), ""), split((), "a")) == ([], None)
    assert name_of(COLUMNS) == "t/n/b"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", "0"),
        ("-1.5", "-1.5"),
        ("9" * 38, "9" * 38),
        ("-0", None),
        ("1.0", None),
        ("1e1", None),
        ("9" * 39, None),
        ("٣", None),
    ],
)
def test_canonical_decimals(text: str, number: str | None) -> None:
    assert value_of(Kind.DECIMAL, text) == (None if number is None else Value(Kind.DECIMAL, Decimal(number)))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)),
        ("1.5", None),
    ],
)
def test_canonical_integers(text: str, number: int | None) -> None:
    assert value_of(Kind.INT64, text) == (None if number is None else Value(Kind.INT64, number))

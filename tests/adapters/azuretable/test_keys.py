"""Keys of any table as two texts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import keys
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tests.support.tables import each_row


def schema(*kinds: Kind) -> KeySchema:
    columns = tuple(KeyColumn(f"k{at}", kind) for at, kind in enumerate(kinds))
    return KeySchema(columns[:1], columns[1:])


@pytest.mark.parametrize(
    ("kinds", "values", "texts"),
    [
        ((Kind.TEXT, Kind.TEXT), (text("p"), text("r")), ("p", "r")),
        ((Kind.TEXT,), (text("p"),), ("p", "")),
        ((Kind.DECIMAL, Kind.TEXT), (decimal("-1.50"), text("r")), ("-1.5", "r")),
        ((Kind.INT64,), (Value(Kind.INT64, 42),), ("42", "")),
        ((Kind.BYTES, Kind.DECIMAL), (Value(Kind.BYTES, b"\x00\xff"), decimal(0)), ("00ff", "0")),
        (
            (Kind.TEXT, Kind.TEXT, Kind.INT64),
            (text("p"), text("a|b%"), Value(Kind.INT64, 7)),
            ("p", "a%7Cb%25|7"),
        ),
    ],
)
def test_keys_are_shown_and_read_back(
    kinds: tuple[Kind, ...], values: tuple[Value, ...], texts: tuple[str, str]
) -> None:
    table = schema(*kinds)
    assert keys.texts_of(table, values) == texts
    key = keys.key_of(table, *texts)
    assert key is not None
    assert key.values == values


@each_row(
    "kinds, texts",
    [
        ((Kind.TEXT,), ("p", "r")),
        ((Kind.DECIMAL,), ("01", "")),
        ((Kind.DECIMAL,), ("1.0", "")),
        ((Kind.DECIMAL,), ("1e3", "")),
        ((Kind.DECIMAL,), ("-0", "")),
        ((Kind.DECIMAL,), ("", "")),
        ((Kind.INT64,), ("1.5", "")),
        ((Kind.INT64,), ("9223372036854775808", "")),
        ((Kind.BYTES,), ("0", "")),
        ((Kind.BYTES,), ("FF", "")),
        ((Kind.BYTES,), ("0 0", "")),
        ((Kind.TEXT, Kind.TEXT, Kind.TEXT), ("p", "a")),
        ((Kind.TEXT, Kind.TEXT, Kind.TEXT), ("p", "a|b|c")),
        ((Kind.TEXT, Kind.TEXT, Kind.TEXT), ("p", "a|%41")),
        ((Kind.TEXT, Kind.TEXT, Kind.TEXT), ("p", "a|%")),
    ],
)
def test_a_text_that_is_no_keys_spelling_belongs_to_no_row(
    kinds: tuple[Kind, ...], texts: tuple[str, str]
) -> None:
    assert keys.key_of(schema(*kinds), *texts) is None


_values = {
    Kind.TEXT: st.text("ab01|%/\x00é🙂", max_size=5).map(text),
    Kind.BYTES: st.binary(max_size=5).map(lambda data: Value(Kind.BYTES, data)),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1).map(lambda number: Value(Kind.INT64, number)),
    Kind.DECIMAL: st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000
    ).map(lambda number: decimal(Decimal(number))),
}


@st.composite
def _keys(draw: st.DrawFn) -> tuple[KeySchema, tuple[Value, ...]]:
    kinds = draw(
        st.lists(st.sampled_from(sorted(_values, key=lambda kind: kind.value)), min_size=1, max_size=4)
    )
    return schema(*kinds), tuple(draw(_values[kind]) for kind in kinds)


@given(_keys())
def test_every_key_of_every_schema_is_read_back(case: tuple[KeySchema, tuple[Value, ...]]) -> None:
    table, values = case
    key = keys.key_of(table, *keys.texts_of(table, values))
    assert key is not None
    assert key.values == values
    assert key.position == table.position(values)


@pytest.mark.parametrize("key", ["a" * 512, "", "%'(),;=&+ é", "🙂" * 256])
def test_keys_that_clients_may_make(key: str) -> None:
    keys.check_new_key(key, key)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("a" * 513, "PropertyValueTooLarge"),
        ("🙂" * 257, "PropertyValueTooLarge"),
        *((f"a{character}b", "OutOfRangeInput") for character in "/\\#?\x00\x1f\x7f\x9f\t\n"),
    ],
)
def test_keys_that_clients_may_not_make(key: str, code: str) -> None:
    for pair in ((key, "r"), ("p", key)):
        with pytest.raises(ServiceError, match=code):
            keys.check_new_key(*pair)


def _refusal(partition_key: str, row_key: str) -> str | None:
    """Return the refusal of a key by the documented rules."""
    forbidden = {*"/\\#?", *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0))}
    for key in (partition_key, row_key):
        if len(key.encode("utf-16-le")) > 1024:
            return "PropertyValueTooLarge"
        if forbidden & {*key}:
            return "OutOfRangeInput"
    return None


_key_texts = st.one_of(
    st.text(),
    st.text(alphabet="ab-é🙂", max_size=20),
    st.builds(
        lambda text, times: text * times, st.sampled_from(["a", "-", "🙂", "a#"]), st.integers(100, 520)
    ),
)


@given(_key_texts, _key_texts)
def test_keys_are_refused_by_their_length_and_characters(partition_key: str, row_key: str) -> None:
    found = None
    try:
        keys.check_new_key(partition_key, row_key)
    except ServiceError as error:
        found = error.code
    assert found == _refusal(partition_key, row_key)


@given(_key_texts, _key_texts)
def test_the_key_of_a_table_of_azures_own_is_as_the_schema_makes_it(partition_key: str, row_key: str) -> None:
    for _ in range(2):  # the second time it may be known
        key = keys.own_key(partition_key, row_key)
        assert key.values == (text(partition_key), text(row_key))
        assert key.position == keys.OWN_SCHEMA.position(key.values)

"""Rows of every kind of value for property-based tests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, number_set
from tests.support.numbers import DECIMALS
from tests.transfer.support.small_table import PAIR

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = (
    DECIMALS
    | st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)
    | st.sampled_from(
        [Decimal("1e125"), Decimal("-9.9999999999999999999999999999999999999e125"), Decimal("1e-130")]
    )
)
BINARIES = st.binary(max_size=12)
TICKS = st.integers(0, 3_155_378_975_999_999_999)

_SCALARS = (
    TEXTS.map(lambda data: Value(Kind.TEXT, data))
    | NUMBERS.map(lambda data: Value(Kind.DECIMAL, data))
    | BINARIES.map(lambda data: Value(Kind.BYTES, data))
    | st.sampled_from([TRUE, FALSE, NULL])
    | st.frozensets(TEXTS, min_size=1, max_size=3).map(lambda data: Value(Kind.TEXT_SET, data))
    | st.frozensets(NUMBERS, min_size=1, max_size=3).map(number_set)
    | st.frozensets(BINARIES, min_size=1, max_size=3).map(lambda data: Value(Kind.BYTES_SET, data))
)
DYNAMODB_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda data: Value(Kind.LIST, tuple(data)))
        | st.dictionaries(TEXTS.filter(bool), inner, max_size=3).map(lambda data: Value(Kind.MAP, data))
    ),
    max_leaves=6,
)
AZURE_VALUES = (
    TEXTS.map(lambda data: Value(Kind.TEXT, data))
    | BINARIES.map(lambda data: Value(Kind.BYTES, data))
    | st.sampled_from([TRUE, FALSE])
    | st.integers(-(2**31), 2**31 - 1).map(lambda data: Value(Kind.INT32, data))
    | st.integers(-(2**63), 2**63 - 1).map(lambda data: Value(Kind.INT64, data))
    | st.floats().map(lambda data: Value(Kind.DOUBLE, data))
    | st.integers(504_911_232_000_000_000, 3_155_378_975_999_999_999).map(
        lambda data: Value(Kind.DATETIME, data)
    )
    | st.uuids().map(lambda data: Value(Kind.GUID, data))
)
ALL_VALUES = DYNAMODB_VALUES | AZURE_VALUES | TICKS.map(lambda data: Value(Kind.DATETIME, data))

_KEY_VALUES = {
    Kind.TEXT: TEXTS.filter(bool), Kind.DECIMAL: NUMBERS, Kind.BYTES: BINARIES.filter(bool),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
}  # fmt: skip


@st.composite
def rows(
    draw: Any,
    schema: KeySchema = PAIR,
    values: st.SearchStrategy[Value] = ALL_VALUES,
    names: st.SearchStrategy[str] = TEXTS,
    stamped: bool = True,
) -> Row:
    """A row of a schema, with or without stamps of its cells."""
    key_values = {
        column.name: Value(column.kind, draw(_KEY_VALUES[column.kind])) for column in schema.columns
    }
    attributes = draw(
        st.dictionaries(names.filter(lambda name: bool(name) and name not in key_values), values, max_size=4)
    )
    if stamped and draw(st.booleans()):
        versions = st.lists(st.tuples(values, st.integers(0, 2**48)), max_size=2)
        cells = {
            name: (
                Cell(value, draw(st.integers(0, 2**48))),
                *(Cell(older, at) for older, at in draw(versions)),
            )
            for name, value in attributes.items()
        }
        contents = Contents.of_cells(key_values, cells)
    else:
        contents = Contents.of_values({**key_values, **attributes})
    position = schema.key(contents.latest).position
    expires = draw(st.none() | st.integers(0, 2**50)) if stamped else None
    return Row(position, contents, draw(st.integers(0, 2**62)) if stamped else 0, expires)


def table_of(schema: KeySchema = PAIR, size: int = 5, **kinds: Any) -> st.SearchStrategy[list[Row]]:
    """Rows of different keys."""
    return st.lists(rows(schema, **kinds), max_size=size, unique_by=lambda row: row.position)

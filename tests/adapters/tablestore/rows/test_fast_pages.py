"""Rows encoded many at once are, byte for byte and in their sizes, what they are one by one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablegate.adapters.tablestore.rows import fast_pages, fast_rows, selections
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tests.adapters.tablestore.rows.test_fast_rows import (
    NOW_MS,
    SCHEMA,
    STAMPED,
    UNSTAMPED,
    integers,
    key_values,
    keys,
    names,
    stamps,
    texts,
    values,
)

pytestmark = pytest.mark.fast_paths

LONG = "\u00e4" * 3000
kinds_of_values = (
    st.one_of(texts, st.sampled_from(['"', "\\", "\u00fc\U0001f600", "\n", LONG, ""])).map(
        lambda data: Value(Kind.TEXT, data)
    ),
    integers.map(lambda data: Value(Kind.INT64, data)),
    st.floats().map(lambda data: Value(Kind.DOUBLE, data)),
    st.binary(max_size=40).map(lambda data: Value(Kind.BYTES, data)),
    st.booleans().map(lambda data: Value(Kind.BOOL, data)),
)
odd_names = st.sampled_from(['a"b', "\u00e4", "a.b", "*", "a\\", "{", "\n"])
layouts = st.dictionaries(st.one_of(names, odd_names), st.sampled_from(kinds_of_values), max_size=4)


@st.composite
def rows_of(draw: Any, *, is_stamped: bool) -> list[Row]:
    """Rows of few layouts, with one here and there that has none of them."""
    some = draw(st.lists(layouts, min_size=1, max_size=3))
    times = draw(st.lists(stamps, min_size=1, max_size=3))
    rows = []
    for _ in range(draw(st.integers(0, 40))):
        layout = draw(st.sampled_from(some))
        found = {name: draw(of_kind) for name, of_kind in layout.items()}
        if draw(st.integers(0, 9)) == 0:
            found.update(draw(st.dictionaries(names, values, max_size=2)))
        key = key_values(draw(keys))
        modified_at = draw(st.sampled_from(times)) * 10_000
        if is_stamped:
            cells = {name: (Cell(value, draw(st.sampled_from(times))),) for name, value in found.items()}
            if cells and draw(st.integers(0, 9)) == 0:
                name = draw(st.sampled_from(sorted(cells)))
                cells[name] = (*cells[name], Cell(draw(values), 0))
            made = Contents.of_cells(key, cells)
        else:
            if draw(st.integers(0, 9)) == 0:
                found["foreign"] = NULL
            made = Contents.of_values({**key, **found})
        rows.append(Row(SCHEMA.position(()), Contents(made.body, made.kinds, made.size_bytes), modified_at))
    return rows


def check(table: Any, rows: list[Row]) -> None:
    target, selection = TableOrIndex.of(table), selections.everything()
    one = selection.encoder(target)
    many = selection.encoder_of_many(target, one)
    assert many is not None
    for row, encoded in zip(rows, many(rows), strict=True):
        alone = one(row)
        assert selection.row_bytes(target, encoded) == selection.row_bytes(target, alone)
        assert encoded.size_bytes == alone.size_bytes


@settings(deadline=None)
@given(rows_of(is_stamped=True))
def test_rows_with_stamps(rows: list[Row]) -> None:
    check(STAMPED, rows)


@settings(deadline=None)
@given(rows_of(is_stamped=False))
def test_rows_without_stamps(rows: list[Row]) -> None:
    check(UNSTAMPED, rows)


def row_of(body: bytes) -> Row:
    return Row(SCHEMA.position(()), Contents(body, b"{}", 0), NOW_MS * 10_000)


def body_of(**others: Any) -> bytes:
    return orjson.dumps({"b": {"B": ""}, "n": {"I64": "1"}, "pk": {"S": "a"}, **others})


PLAIN = body_of(t={"S": "x"})


def is_alike(body: bytes) -> bool:
    """True if a body is encoded together with others of its shape, and not separately."""
    alone: list[Row] = []

    def one(row: Row) -> Row:
        alone.append(row)
        return row

    rows = [row_of(PLAIN)] * 19 + [row_of(body)]
    encoded = fast_pages.encoder_of_many(SCHEMA.names, one)(rows)
    assert all(isinstance(row, fast_rows.EncodedRow) for row in encoded[:19])
    assert alone in ([], rows[19:])
    return not alone


@pytest.mark.parametrize(
    "body",
    [
        body_of(t={"S": 'a"b'}),
        body_of(t={"S": "a\\b"}),
        body_of(t={"I64": "1"}),
        body_of(t={"L": [{"S": "x"}]}),
        body_of(),
        body_of(t={"S": "x"}, u={"S": "x"}),
        PLAIN.replace(b'"1"', b'"1e3"'),
        PLAIN.replace(b'"1"', b'" 1"'),
        PLAIN.replace(b":", b": "),
        PLAIN.replace(b'"x"', b'"\\u0061"'),
        PLAIN + b"\n",
        b"[" + PLAIN + b"]",
    ],
)
def test_what_is_spelled_otherwise_is_left_alone(body: bytes) -> None:
    assert not is_alike(body)


def test_text_in_other_scripts_is_not() -> None:
    assert is_alike(body_of(t={"S": "\u00fc\U0001f600 }},{"}))

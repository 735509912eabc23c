"""The fast paths and the general ones give equal bytes, sizes, keys and contents. Complex rows use the general path."""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex
from tablegate.adapters.tablestore.rows import fast_rows, selections, writes
from tablegate.adapters.tablestore.views import WIRE_KINDS
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.plainbuffer import (
    CellOperation,
    WireCell,
    WireRow,
    encode_row,
    row_bytes,
)
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value
from tests.support.examples import examples

pytestmark = pytest.mark.fast_paths

NOW_MS = 1_800_000_000_000
SCHEMA = KeySchema((KeyColumn("pk", Kind.TEXT),), (KeyColumn("n", Kind.INT64), KeyColumn("b", Kind.BYTES)))
STAMPED = Table(
    1, "x", "T", "T", SCHEMA, (), Rules(stamped=True, max_versions=3), {}, State.ACTIVE, 0, 1, NOW_MS
)
UNSTAMPED = dataclasses.replace(STAMPED, rules=Rules())

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=60)
integers = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(
    texts.map(lambda data: Value(Kind.TEXT, data)),
    integers.map(lambda data: Value(Kind.INT64, data)),
    st.floats().map(lambda data: Value(Kind.DOUBLE, data)),
    st.binary(max_size=60).map(lambda data: Value(Kind.BYTES, data)),
    st.sampled_from([TRUE, FALSE]),
)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: name not in SCHEMA.names
)
keys = st.tuples(texts, integers, st.binary(max_size=20)).map(
    lambda parts: tuple(Value(column.kind, part) for column, part in zip(SCHEMA.columns, parts, strict=True))
)
stamps = st.integers(0, NOW_MS)


def key_values(key: tuple[Value, ...]) -> dict[str, Value]:
    return dict(zip(SCHEMA.names, key, strict=True))


# Rows -> PlainBuffer

versions = st.lists(st.tuples(values, stamps), min_size=1, max_size=2).map(
    lambda found: tuple(Cell(*each) for each in sorted(found, key=lambda each: -each[1]))
)
foreign = st.one_of(values, st.sampled_from([NULL, Value(Kind.INT32, 7), Value(Kind.GUID, UUID(int=5))]))


@examples(300)
@given(
    keys,
    st.dictionaries(names, versions, max_size=5),
    st.dictionaries(names, foreign, max_size=5),
    st.booleans(),
)
def test_rows_are_encoded_the_same(key: Any, cells: Any, unversioned: Any, is_stamped: bool) -> None:
    table = STAMPED if is_stamped else UNSTAMPED
    made = (
        Contents.of_cells(key_values(key), cells)
        if is_stamped
        else Contents.of_values({**key_values(key), **unversioned})
    )
    stored = Row(SCHEMA.position(key), Contents(made.body, made.kinds, made.size_bytes), NOW_MS * 10_000)
    target = TableOrIndex.of(table)
    selection = selections.everything()
    general = selection.cutter(target)(stored)
    encoded = selection.encoder(target)(stored)
    assert selection.row_bytes(target, encoded) == row_bytes(selection.wire_row(target, general))
    assert encoded.size_bytes == general.size_bytes
    kinds = {value.kind for value in made.latest.values()}
    is_simple = kinds <= WIRE_KINDS and (not is_stamped or all(len(each) == 1 for each in cells.values()))
    assert isinstance(encoded, fast_rows.EncodedRow) is is_simple


def test_only_whole_rows_are_encoded() -> None:
    """Columns, ranges of them, times, filters and pages of columns all need cells."""
    target = TableOrIndex.of(STAMPED)
    contents = Contents.of_values(
        key_values((Value(Kind.TEXT, "a"), Value(Kind.INT64, 1), Value(Kind.BYTES, b"")))
    )
    row = Row(SCHEMA.position(()), contents, 0)
    whole = selections.everything()
    assert isinstance(whole.encoder(target)(row), fast_rows.EncodedRow)
    for asked in (
        whole._replace(columns=frozenset({"a"})),
        whole._replace(start="a"),
        whole._replace(end="z"),
        whole._replace(window=whole.window._replace(start_ms=0)),
        whole._replace(window=whole.window._replace(end_ms=9)),
        whole._replace(predicate=writes.ROW_EXISTS),
        whole._replace(pagination=selections.Pagination(0, 1)),
    ):
        assert not isinstance(asked.encoder(target)(row), fast_rows.EncodedRow)


# PlainBuffer -> rows

cells = st.builds(
    WireCell,
    st.one_of(names, st.sampled_from(["pk", "no-name", ""])),
    st.one_of(values, st.none()),
    st.one_of(st.none(), st.none(), st.just(NOW_MS)),
    st.one_of(st.none(), st.none(), st.sampled_from(CellOperation)),
)
plain_cells = st.dictionaries(names, values, max_size=6).map(
    lambda found: [WireCell(name, value) for name, value in found.items()]
)
key_cells = keys.map(
    lambda key: [WireCell(name, value) for name, value in zip(SCHEMA.names, key, strict=True)]
)
odd_key_cells = st.lists(
    st.builds(lambda name, value: WireCell(name, value), st.sampled_from(["pk", "n", "b", "x"]), values),
    max_size=5,
)


def written(table: Table, data: bytes) -> Any:
    """Return the result of a put of these bytes: everything stored and answered, or the error."""
    call = CallContext("PutRow", None, mock.Mock(), mock.Mock(), NOW_MS)
    message = messages.PutRowRequest(condition=messages.Condition(row_existence=messages.IGNORE))
    try:
        put = writes.parse_put(call, writes.WriteTarget.of(call, table), writes.checked_put(data), message)
    except ServiceError as error:
        return type(error), str(error)
    contents: Any = put.write.change.contents  # type: ignore[union-attr]
    stored = (
        contents.body,
        contents.kinds,
        contents.size_bytes,
        repr(contents.latest),
        repr(contents.cells(NOW_MS)),
    )
    return put.write.key, stored, put.consumed, put.size, put.return_type


def check_equal(table: Table, data: bytes) -> None:
    fast = written(table, data)
    with mock.patch.object(fast_rows, "put_of", return_value=None):
        general = written(table, data)
    if fast[1:2] != general[1:2] and isinstance(fast[1], tuple):
        # Contents that were never decoded have their key among the cells. There is no other difference.
        assert fast[1][:-1] == general[1][:-1]
        assert (fast[0], *fast[2:]) == (general[0], *general[2:])
    else:
        assert fast == general


@examples(300)
@given(key_cells, plain_cells, st.booleans())
def test_plain_puts_come_to_the_same(key: Any, attributes: Any, is_stamped: bool) -> None:
    data = encode_row(WireRow(key, attributes))
    put = fast_rows.put_of(data)
    assert put is not None
    assert put.size == capacity.cells_size(key) + capacity.cells_size(attributes)
    check_equal(STAMPED if is_stamped else UNSTAMPED, data)


@examples(400)
@given(st.one_of(key_cells, odd_key_cells), st.lists(cells, max_size=4), st.booleans(), st.booleans())
def test_odd_puts_come_to_the_same(key: Any, attributes: Any, is_delete: bool, is_stamped: bool) -> None:
    check_equal(STAMPED if is_stamped else UNSTAMPED, encode_row(WireRow(key, attributes, is_delete)))


@examples(400)
@given(key_cells, plain_cells, st.data())
def test_broken_puts_come_to_the_same(key: Any, attributes: Any, chosen: Any) -> None:
    data = bytearray(encode_row(WireRow(key, attributes)))
    for _ in range(chosen.draw(st.integers(1, 2))):
        data[chosen.draw(st.integers(0, len(data) - 1))] = chosen.draw(st.integers(0, 255))
    cut = chosen.draw(st.integers(0, len(data)))
    check_equal(STAMPED, bytes(data))
    check_equal(STAMPED, bytes(data[:cut]))
    check_equal(STAMPED, bytes(data) + b"\0" * 3)


def test_limits_are_the_general_ways() -> None:
    """Values that are too long, too many or of another type than their defined column are refused equally."""
    key = [
        WireCell("pk", Value(Kind.TEXT, "a")),
        WireCell("n", Value(Kind.INT64, 1)),
        WireCell("b", Value(Kind.BYTES, b"")),
    ]
    defined = dataclasses.replace(
        STAMPED, properties={"tablestore": {"defined": [["d", messages.DCT_STRING]], "deviation_s": 1}}
    )
    for table, attributes in (
        (STAMPED, [WireCell("a", Value(Kind.TEXT, "x" * (2 * 1024 * 1024 + 1)))]),
        (STAMPED, [WireCell("a", Value(Kind.BYTES, b"x" * 2 * 1024 * 1024))]),
        (STAMPED, [WireCell(f"a{number}", TRUE) for number in range(1025)]),
        (STAMPED, [WireCell(f"a{number}", TRUE) for number in range(1024)]),
        (STAMPED, [WireCell("a" * 256, TRUE)]),
        (STAMPED, [WireCell(f"a{number}", Value(Kind.TEXT, "x" * 1024 * 1024)) for number in range(5)]),
        (defined, [WireCell("d", Value(Kind.INT64, 1))]),
        (defined, [WireCell("d", Value(Kind.TEXT, "1"))]),
    ):
        check_equal(table, encode_row(WireRow(key, attributes)))
    long_key = [WireCell("pk", Value(Kind.TEXT, "a" * 1025)), *key[1:]]
    check_equal(STAMPED, encode_row(WireRow(long_key)))

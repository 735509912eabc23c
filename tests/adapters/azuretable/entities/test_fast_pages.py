"""Pages that are spliced from bodies are byte for byte what the general path writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import keys
from tablegate.adapters.azuretable.entities import fast_pages
from tablegate.adapters.azuretable.entities.entity_renderer import EntityFormat, MetadataLevel
from tablegate.gateway.model.tables.pages import ConcatenatedRows, Page
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal, text
from tests.support.tables import each_row

pytestmark = pytest.mark.fast_paths

TABLE = Table(1, "ns", "People", "People", keys.OWN_SCHEMA, (), Rules(), {}, State.ACTIVE, 0, 1, 0)

# Text that looks like the structure of a body, and text that must be escaped.
awkward = st.lists(
    st.sampled_from(
        [
            '"',
            "\\",
            "\n",
            "\t",
            "\x00",
            "}",
            "{",
            '"},"',
            '":{"S":"',
            '"}',
            "},",
            ":",
            "%s",
            "%",
            "é",
            "😀",
            "a",
            "",
        ]
    ),
    max_size=6,
).map("".join)
texts = awkward | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
kinds: list[st.SearchStrategy[Value]] = [
    texts.map(text),
    st.sampled_from([TRUE, FALSE]),
    st.integers(-(2**31), 2**31 - 1).map(lambda n: Value(Kind.INT32, n)),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: Value(Kind.INT64, n)),
    st.floats().map(lambda n: Value(Kind.DOUBLE, n)),
    st.sampled_from([1e16, 1e-7, 5e-324, 100.0, -0.0, math.inf]).map(lambda n: Value(Kind.DOUBLE, n)),
    st.integers(504911232000000000, 3155378975999999999).map(lambda n: Value(Kind.DATETIME, n)),
    st.uuids().map(lambda it: Value(Kind.GUID, it)),
    st.binary(max_size=9).map(lambda it: Value(Kind.BYTES, it)),
]
foreign: list[st.SearchStrategy[Value]] = [
    st.integers(-(10**20), 10**20).map(decimal),
    st.just(NULL),
    st.just(Value(Kind.LIST, (text('"},"'),))),
    st.just(Value(Kind.MAP, {"PartitionKey": text("p"), "n": Value(Kind.DECIMAL, Decimal(1))})),
    st.just(Value(Kind.TEXT_SET, frozenset({"a", '"'}))),
]
property_names = st.sampled_from(
    ["Name", "X", "Größe", "my-attr", "1st", "Timestamp", 'a"b', "a:", "%s", "}", "\\", ""]
)


@st.composite
def pages_of_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of a few forms, in any order, some written at the same moment."""
    forms = draw(
        st.lists(
            st.dictionaries(
                property_names,
                st.sampled_from(kinds) if draw(st.booleans()) else st.sampled_from(kinds + foreign),
                max_size=6,
            ),
            min_size=1,
            max_size=3,
        )
    )
    rows = []
    for _ in range(draw(st.integers(14, 30))):
        members: list[tuple[str, Value]] = [
            (name, draw(kind)) for name, kind in draw(st.sampled_from(forms)).items()
        ]
        members.insert(0, ("PartitionKey", text(draw(texts))))
        members.insert(draw(st.sampled_from([1, 1, len(members)])), ("RowKey", text(draw(texts))))
        body = Contents.of_values(dict(members)).body
        written_at = draw(
            st.sampled_from([17_000_000_000_000_000, 17_000_000_000_000_001, 17_000_000_009_999_999])
        )
        rows.append(Row(Position(b"", b""), Contents(body, None, 0), written_at))
    return rows


def as_before(entity_format: EntityFormat, rows: list[Row]) -> bytes:
    head: dict[str, Any] = (
        {} if entity_format.level is MetadataLevel.NONE else {"odata.metadata": entity_format.metadata}
    )
    return orjson.dumps({**head, "value": [entity_format.member(row) for row in rows]})


def page_of(rows: list[Row], concatenated: Sequence[int] = ()) -> Page:
    """Return a page of rows in concatenated pieces of these sizes."""
    pieces = []
    for number in concatenated:
        some, rows = rows[:number], rows[number:]
        if some:
            lines = b"\n".join(row.body for row in some)
            pieces.append(ConcatenatedRows(len(some), lines, [row.modified_at for row in some]))
    return Page(rows, 0, 0, None, None, pieces)


@given(
    pages_of_rows(),
    st.sampled_from(MetadataLevel),
    st.sampled_from([None, frozenset({"Name", "RowKey"})]),
    st.sampled_from([2, 5, 64]),
    st.lists(st.integers(1, 30), max_size=3),
)
def test_a_page_equals_its_rendered_rows(
    rows: list[Row],
    level: MetadataLevel,
    selected: frozenset[str] | None,
    at_once: int,
    concatenated: list[int],
) -> None:
    entity_format = EntityFormat(TABLE, 'http://host"/account', "account", level, selected)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(fast_pages, "_ROWS_AT_ONCE", at_once)
        assert entity_format.many(page_of(rows)) == as_before(entity_format, rows)
        if entity_format.is_spliced:
            assert entity_format.many(page_of(rows, concatenated)) == as_before(entity_format, rows)


@each_row("level", MetadataLevel)
@each_row("count", [0, 1, 63, 64, 65, 200])
def test_pages_of_every_length(level: MetadataLevel, count: int) -> None:
    entity_format = EntityFormat(TABLE, "http://host/account", "account", level)
    rows = [
        Row(
            Position(b"", b""),
            Contents.of_values(
                {
                    "PartitionKey": text("p"),
                    "RowKey": text(f"{at}"),
                    "Text": text('say "yes"' if at == 70 else "back\\slash" if at == 150 else "plain"),
                    "Active": TRUE if at % 2 else FALSE,
                    "Seen": Value(Kind.DATETIME, 638000000000000000 + at),
                    "Height": Value(Kind.DOUBLE, math.nan if at % 3 else at / 7),
                }
            ),
            17_000_000_000_000_000 + at // 10,
        )
        for at in range(count)
    ]
    assert entity_format.many(page_of(rows)) == as_before(entity_format, rows)
    if entity_format.is_spliced:
        assert entity_format.many(page_of(rows, [50, 80, 3])) == as_before(entity_format, rows)


def test_rows_of_a_known_form_are_not_decoded() -> None:
    body = Contents.of_values({"PartitionKey": text("p"), "RowKey": text("r"), "A": text('"')}).body
    rows = [Row(Position(b"", b""), Contents(body, None, 0), 1) for _ in range(40)]
    by_the_book: list[bytes] = []

    def general(body: bytes, written_at: int) -> bytes:
        by_the_book.append(body)
        return b"{}"

    found = orjson.loads(b"[%s]" % b",".join(fast_pages.entities(page_of(rows), True, general)))
    assert [entity.get("A") for entity in found] == [None, None, *['"'] * 38]
    assert len(by_the_book) == 2
    fast_pages.entities(page_of(rows, [40]), True, general)
    assert len(by_the_book) == 2

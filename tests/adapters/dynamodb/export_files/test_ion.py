"""Ion text of exports, against Amazon's own library and the specification."""

from __future__ import annotations

import sys
from base64 import b64encode
from decimal import Decimal
from typing import Any

import orjson
import pytest
from amazon.ion import simpleion
from amazon.ion.simple_types import IonPyBytes, IonPyNull, IonPySymbol
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import (
    LineFormat,
    form_of,
    ion_reader,
    ion_text,
    item_line,
    line_of,
    parse_ion,
    read_item,
)
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import Value
from tests.support.tables import each_row
from tests.transfer.support.generated_rows import DYNAMODB_VALUES, rows
from tests.transfer.support.small_table import of_values

# "Data formats" in the developer guide: an item of the ProductCatalog in Ion, and what it is in DynamoDB JSON.
DOCUMENTED = (
    b'$ion_1_0 {Item:{Authors:$dynamodb_SS::["Author1","Author2"],Dimensions:"8.5 x 11.0 x 1.5",ISBN:"333-3333333333",'
    b'Id:103.,InPublication:false,PageCount:6d2,Price:2d3,ProductCategory:"Book",Title:"Book 103 Title"}}\n'
)


def test_the_documented_item_is_read():
    assert form_of(DOCUMENTED) is LineFormat.ION
    assert read_item(DOCUMENTED, LineFormat.ION) == {
        "Authors": {"SS": ["Author1", "Author2"]},
        "Dimensions": {"S": "8.5 x 11.0 x 1.5"},
        "ISBN": {"S": "333-3333333333"},
        "Id": {"N": "103"},
        "InPublication": {"BOOL": False},
        "PageCount": {"N": "600"},
        "Price": {"N": "2000"},
        "ProductCategory": {"S": "Book"},
        "Title": {"S": "Book 103 Title"},
    }


@given(rows(values=DYNAMODB_VALUES, stamped=False))
def test_written_items_are_read_back_exactly(row):
    line = line_of(row, as_ion=True)
    assert line.count(b"\n") == 1 and form_of(line) is LineFormat.ION
    assert orjson.loads(read_item(line, LineFormat.ION).contents.body) == of_values(row)[1]


def test_values_of_every_size_are_read_back_exactly():
    """Items have up to 400 KB. By default amazon-ion refuses texts of 16 KB and more (IERR_BUFFER_TOO_SMALL)."""
    for size in (1, 4_096, 16_383, 16_384, 20_000, 65_536, 400_000):
        texts = [
            unit * max(1, size // len(unit.encode())) for unit in ("a", "é", '"', "\\", "\n", "\0", "😀")
        ]
        binary = b64encode(bytes(at % 256 for at in range(size))).decode()
        members: list[dict[str, Any]] = [{"B": binary}, {"BS": [binary]}]
        for text in texts:
            members += [
                {"S": text},
                {"SS": [text]},
                {"L": [{"S": text}, {"N": "1"}]},
                {"M": {"m": {"S": text}}},
            ]
            if size <= 65_535:
                members.append({"M": {text: {"BOOL": True}}})
        for member in members:
            body = orjson.dumps({"a": member})
            assert read_item(item_line(body, as_ion=True), LineFormat.ION).contents.body == body, size


@given(rows(values=DYNAMODB_VALUES, stamped=False))
def test_amazons_library_reads_what_is_written(row):
    [found] = simpleion.loads(line_of(row, as_ion=True), single_value=False)
    assert {name: tagged(value) for name, value in found["Item"].items()} == canonical(of_values(row)[1])


@given(rows(values=DYNAMODB_VALUES, stamped=False))
def test_items_written_by_amazons_library_are_read(row):
    """Its own spelling: every number with an exponent, symbols quoted or not, its escapes."""
    [found] = simpleion.loads(line_of(row, as_ion=True), single_value=False)
    again = simpleion.dumps(found, binary=False)
    assert canonical(orjson.loads(read_item(again.encode(), LineFormat.ION).contents.body)) == canonical(
        of_values(row)[1]
    )


def tagged(value: Any) -> Any:
    """Return a value of Amazon's library as DynamoDB JSON with Decimals as numbers."""
    annotations = [symbol.text for symbol in getattr(value, "ion_annotations", ())]
    if isinstance(value, IonPyNull) or value is None:
        return {"NULL": True}
    if isinstance(value, bool) or type(value).__name__ == "IonPyBool":
        return {"BOOL": bool(value)}
    if annotations:
        members = [next(iter(tagged(member).values())) for member in value]
        return {annotations[0].removeprefix("$dynamodb_"): frozenset(members)}
    if isinstance(value, IonPyBytes | bytes):
        return {"B": bytes(value)}
    if isinstance(value, dict) or hasattr(value, "items"):
        return {"M": {name: tagged(member) for name, member in value.items()}}
    if isinstance(value, list):
        return {"L": [tagged(member) for member in value]}
    if isinstance(value, Decimal):
        return {"N": Decimal(value)}
    assert isinstance(value, str) and not isinstance(value, IonPySymbol)
    return {"S": str(value)}


def canonical(members: Any) -> Any:
    """DynamoDB JSON in the shape that `tagged` gives."""
    return {name: _canonical(bodies.untagged(member)) for name, member in members.items()}


def _canonical(value: Value) -> Any:
    [tag] = bodies.tagged(value)
    match tag:
        case "NULL":
            return {"NULL": True}
        case "M":
            return {"M": {name: _canonical(member) for name, member in value.data.items()}}
        case "L":
            return {"L": [_canonical(member) for member in value.data]}
        case "NS":
            return {"NS": frozenset(map(Decimal, value.data))}
    return {tag: value.data}


@pytest.mark.parametrize(
    ("text", "wire"),
    [
        ("$ion_1_0 {a:1}", {"a": {"N": "1"}}),
        ("{a:-1_000.5d-2}", {"a": {"N": "-10.005"}}),
        ("{a:0x1f}", {"a": {"N": "31"}}),
        ("{a:1.5e3}", {"a": {"N": "1500"}}),
        ("{a:1234567890123456768e0}", {"a": {"N": "1234567890123456768"}}),
        ("{a:null.string,b:null}", {"a": {"NULL": True}, "b": {"NULL": True}}),
        ("{'a b':true, \"c\":false}", {"a b": {"BOOL": True}, "c": {"BOOL": False}}),
        (r'{a:"\x41\u00e9\U0001F600\n\0\'\?\/"}', {"a": {"S": "Aé😀\n\0'?/"}}),
        (r'{a:"\ud83d\ude00"}', {"a": {"S": "😀"}}),
        ("{a:'''b''' // and\n '''c'd'''}", {"a": {"S": "bc'd"}}),
        ("{a:{{ aGVs bG8= }}}", {"a": {"B": "aGVsbG8="}}),
        ("{a:[1,[],{}], /* none */ }", {"a": {"L": [{"N": "1"}, {"L": []}, {"M": {}}]}}),
        ("{b:{c:[null,],},}", {"b": {"M": {"c": {"L": [{"NULL": True}]}}}}),
        ("{a:$dynamodb_BS::[{{aQ==}}],b:'$dynamodb_NS'::[1.,2.]}", {"a": {"BS": ["aQ=="]}, "b": {"NS": ["1", "2"]}}),
    ],
)  # fmt: skip
def test_spellings_of_the_specification(text, wire):
    """https://amazon-ion.github.io/ion-docs/docs/spec.html"""
    assert parse_ion(text) == wire


@each_row(
    "text",
    [
        "", "[1]", "1", "{a:1", "{a:1}}", "{a:1}{b:2}", "{a:sym}", "{a:2020-01-01T}", "{a:2020-01-01}", "{a:x::1}",
        '{a:{{"clob"}}}', "{a}", "{1:2}",
        "{a:(1)}", '{a:"\\q"}', '{a:"\\ud83d"}', '{a:"\\U00110000"}', "{a:1 b:2}", "{a:00}", "{a:1,a:2}",
        '{"a":"\x00\\0"}', "{$0:1}", "{a:1d1000000000}", "{a:1e999}", "{a:$dynamodb_SS::$dynamodb_SS::[]}",
        "{a:$dynamodb_SS::[1]}", "{a:$dynamodb_SS::{b:1}}", "{a:+1}", "{a:nan}", "{a:" + "[" * 100 + "]" * 100 + "}", "{a:'x",
    ],
)  # fmt: skip
def test_a_text_that_is_no_item_is_refused(text):
    with pytest.raises(UnreadableFile):
        parse_ion(text)


@given(st.text(alphabet="{}[]:,'\"\\$_abn0129.-+de /*\n", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse_ion(text)
    except UnreadableFile:
        return
    assert parse_ion(ion_text(found)) is not None


def test_names_that_are_words_of_ion_are_quoted():
    written = ion_text({name: {"N": "1"} for name in ("null", "true", "nan", "a", "a-b", "", "1", "'")})
    assert written == r"{'null':1.,'true':1.,'nan':1.,a:1.,'a-b':1.,'':1.,'1':1.,'\'':1.}"
    assert set(parse_ion(written)) == {"null", "true", "nan", "a", "a-b", "", "1", "'"}


@pytest.fixture
def without_library(monkeypatch):
    """Hides amazon-ion, as in an installation without the extra."""
    monkeypatch.setitem(sys.modules, "tablegate.adapters.dynamodb.export_files.ion_values", None)


def test_lines_are_refused_without_the_library(without_library):
    with pytest.raises(UnreadableFile, match=r"pip install 'tablegate\[ion\]'"):
        parse_ion("{}")
    with pytest.raises(NotInstalled):
        ion_reader()


def test_exports_need_no_library(without_library):
    assert ion_text({"a": {"NS": ["1", "2.5"]}}) == "{a:$dynamodb_NS::[1.,2.5]}"

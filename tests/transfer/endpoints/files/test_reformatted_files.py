"""Files that were truncated, re-encoded or reformatted: each row is read, or reading fails. Rows are never left out."""

from __future__ import annotations

import base64
import codecs
import csv
import gzip
import io
import json
import math
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable.keys import OWN_SCHEMA
from tablegate.adapters.azuretable.values import SPELLINGS
from tablegate.adapters.dynamodb.export_files.line_formats import ion_text
from tablegate.adapters.tablestore.views import WIRE_KINDS
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import TransferError
from tests.support.examples import examples
from tests.transfer.endpoints.files.test_typed_csv import AZURE, NAMES
from tests.transfer.support.generated_rows import AZURE_VALUES, DYNAMODB_VALUES, TEXTS, table_of
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, simple_row, written

KEYS = {"keys": "pk:S,sk:N"}
OPTIONS = {".json": KEYS, ".ion": KEYS, ".jsonl": {}, ".csv": {}, ".parquet": {}}
Item = dict[str, Any]
Writer = Callable[[list[Item]], list[str]]
"""The text of items, in parts. Each part ends with an item, after which the file may end, or is the rest."""


def whole(text: str) -> list[str]:
    """A text that cannot end before its end."""
    return [text]


def lowered(member: Any) -> Any:
    [(tag, data)] = member.items()
    if tag in ("M", "L"):
        data = (
            {name: lowered(each) for name, each in data.items()}
            if tag == "M"
            else [lowered(each) for each in data]
        )
    return {tag.lower(): data}


def with_buffers(member: Any) -> Any:
    """A typed value with its binaries as Node writes them to JSON."""
    [(tag, data)] = member.items()
    match tag:
        case "B":
            data = {"type": "Buffer", "data": list(base64.b64decode(data))}
        case "BS":
            data = [dict(zip(map(str, range(99)), base64.b64decode(each), strict=False)) for each in data]
        case "M":
            data = {name: with_buffers(each) for name, each in data.items()}
        case "L":
            data = list(map(with_buffers, data))
    return {tag: data}


FORMS: dict[str, Writer] = {
    "wrapped": lambda items: [json.dumps({"Item": item}) + "\n" for item in items],
    "bare": lambda items: [json.dumps(item, ensure_ascii=False) + "\n" for item in items],
    "lower case": lambda items: [
        json.dumps({name: lowered(member) for name, member in item.items()}) + "\n" for item in items
    ],
    "pretty wrapped": lambda items: [json.dumps({"Item": item}, indent=2) + "\n" for item in items],
    "pretty bare": lambda items: [json.dumps(item, indent=4) + "\n" for item in items],
    "one on each line, then pretty": lambda items: [
        json.dumps(item, indent=number or None) + "\n" for number, item in enumerate(items)
    ],
    "on one line": lambda items: [json.dumps({"Item": item}) for item in items],
    "get-item": lambda items: [
        json.dumps({"Item": item, "ConsumedCapacity": {"TableName": "t"}}, indent=4) + "\n" for item in items
    ],
    "put-item": lambda items: [json.dumps({"TableName": "t", "Item": item}) + "\n" for item in items],
    "array": lambda items: whole(json.dumps(items)),
    "pretty array": lambda items: whole(json.dumps(items, indent=4)),
    "array of wrapped": lambda items: whole(json.dumps([{"Item": item} for item in items], indent=1)),
    "scan": lambda items: whole(
        json.dumps({"Items": items, "Count": len(items), "ScannedCount": 9}, indent=4)
    ),
    "scan on one line": lambda items: whole(json.dumps({"Count": len(items), "Items": items})),
    "pages": lambda items: whole(
        "".join(
            json.dumps(
                {"Items": [item], "Count": 1}
                | ({"LastEvaluatedKey": {"pk": {"S": "x"}}} if item is not items[-1] else {})
            )
            for item in items
        )
    ),
    "batch-write-item": lambda items: whole(
        json.dumps({"t": [{"PutRequest": {"Item": item}} for item in items]}, indent=4)
    ),
    "batches": lambda items: [
        json.dumps({"RequestItems": {"t": [{"PutRequest": {"Item": item}}]}}) + "\n" for item in items
    ],
    "binaries of Node": lambda items: [
        json.dumps({name: with_buffers(member) for name, member in item.items()}) + "\n" for item in items
    ],
    "batch-get-item": lambda items: whole(json.dumps({"Responses": {"table": items}, "UnprocessedKeys": {}})),
    "transact-get-items": lambda items: whole(json.dumps({"Responses": [{"Item": item} for item in items]})),
    "a batch for the table items": lambda items: whole(
        json.dumps({"items": [{"PutRequest": {"Item": item}} for item in items]}, indent=1)
    ),
    "Ion": lambda items: [f"$ion_1_0 {{Item:{ion_text(item)}}}\n" for item in items],
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037")
READ_ENCODINGS = ("utf-8", "utf-8-sig", "utf-16")
PACKED: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def read(path: Path, options: dict[str, str]) -> list[Any] | None:
    """Return the rows, None if reading fails with a message that names a file."""
    try:
        return list(map(of_values, scanned(open_file(str(path), options))))
    except TransferError as error:
        assert str(path) in str(error), error
        return None


def encoded(text: str, encoding: str) -> bytes | None:
    """Return the bytes, None if the encoding lacks a character."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError:
        return None


@examples(60)
@given(
    table=table_of(values=DYNAMODB_VALUES, stamped=False, size=3),
    form=st.sampled_from(sorted(FORMS)),
    encoding=st.sampled_from(ENCODINGS),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    packing=st.sampled_from(sorted(PACKED)),
    kept=st.floats(0, 1) | st.just(1),
)
def test_items_of_every_form_are_read_or_refused(
    tmp_path_factory, table, form, encoding, line_end, packing, kept
):
    parts = [part.replace("\n", line_end) for part in FORMS[form]([orjson.loads(row.body) for row in table])]
    text = "".join(parts)
    data = encoded(text, encoding)
    if data is None:
        return
    size = round(kept * len(data))
    ends = [
        len("".join([*parts[:at], part.rstrip()]).encode(encoding)) for at, part in enumerate(parts)
    ]  # of the last character of each part
    complete = sum(end <= size for end in ends)
    rest = data[ends[complete - 1] if complete else 0 : size].decode(encoding, errors="replace")
    rows = len(table) if complete == len(parts) else complete
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = Path(folder) / f"in{'.ion' if form == 'Ion' else '.json'}{packing}"
        path.write_bytes(PACKED[packing](data[:size]))
        found = read(path, KEYS)
    expected = [of_values(row) for row in table][:rows]
    if not rest.strip("\ufeff \r\n"):
        is_readable = encoding in READ_ENCODINGS and (form != "Ion" or line_end != "\r")
        is_readable = is_readable and (
            table != [] or form not in ("batch-write-item", "a batch for the table items")
        )
        assert found == expected or (found is None and not is_readable)
    else:
        assert found is None or (found == [] and data[:size] == codecs.BOM_UTF16_LE)


def change_of(item: Item, number: int, is_of_kinesis: bool) -> Item:
    change = {"Keys": {name: item[name] for name in ("pk", "sk")}, "NewImage": item, "SizeBytes": 1}
    change |= {"ApproximateCreationDateTime": number} if is_of_kinesis else {"SequenceNumber": str(number)}
    return {"eventName": "INSERT", "eventSource": "aws:dynamodb", "tableName": "t", "dynamodb": change}


def model_of(items: list[Item]) -> Item:
    keys = {"PartitionKey": ("pk", "S"), "SortKey": ("sk", "N")}
    shown = {name: {"AttributeName": each, "AttributeType": kind} for name, (each, kind) in keys.items()}
    return {
        "ModelName": "m",
        "DataModel": [{"TableName": "t", "KeyAttributes": shown, "TableData": items}],
    }


TABLES_OF_TOOLS: dict[str, Writer] = {
    "an event of Lambda": lambda items: whole(
        json.dumps(
            {"Records": [change_of(item, number, False) for number, item in enumerate(items)]}, indent=1
        )
    ),
    "records of Firehose": lambda items: [
        json.dumps(change_of(item, number, True)) for number, item in enumerate(items)
    ],
    "a model of NoSQL Workbench": lambda items: whole(json.dumps(model_of(items), indent=2)),
}


@examples(60)
@given(
    table=table_of(values=DYNAMODB_VALUES, stamped=False, size=3),
    form=st.sampled_from(sorted(TABLES_OF_TOOLS)),
    encoding=st.sampled_from(ENCODINGS),
    packing=st.sampled_from(sorted(PACKED)),
    kept=st.floats(0, 1) | st.just(1),
)
def test_tables_of_tools_are_read_or_refused(tmp_path_factory, table, form, encoding, packing, kept):
    parts = TABLES_OF_TOOLS[form]([orjson.loads(row.body) for row in table])
    check_parts(tmp_path_factory, parts, encoding, packing, kept, KEYS, list(map(of_values, table)))


def entity_of(row: Row) -> dict[str, Any]:
    """An entity of OData with minimal metadata."""
    entity: dict[str, Any] = {}
    for name, value in row.latest.items():
        wire = SPELLINGS[value.kind][1](value.data)
        if value.kind not in (Kind.TEXT, Kind.BOOL, Kind.INT32):
            entity[name + "@odata.type"] = _EDM_OF[value.kind]
        entity[name] = wire
    return entity


_EDM_OF = {
    Kind.INT64: "Edm.Int64", Kind.DOUBLE: "Edm.Double", Kind.DATETIME: "Edm.DateTime", Kind.GUID: "Edm.Guid",
    Kind.BYTES: "Edm.Binary",
}  # fmt: skip
TABLES_OF_AZURE: dict[str, Writer] = {
    "an answer": lambda entities: whole(json.dumps({"odata.metadata": "m", "value": entities})),
    "an array": lambda entities: whole(json.dumps(entities, indent=1)),
    "lines": lambda entities: [json.dumps(entity) + "\n" for entity in entities],
    "az": lambda entities: whole(
        json.dumps(
            {"items": [{**entity, "etag": 'W/"x"'} for entity in entities], "nextMarker": {}}, indent=2
        )
    ),
}


@examples(40)
@given(
    table=table_of(
        OWN_SCHEMA, values=AZURE_VALUES, names=NAMES.filter(str.isidentifier), stamped=False, size=3
    ),
    form=st.sampled_from(sorted(TABLES_OF_AZURE)),
    encoding=st.sampled_from(ENCODINGS),
    packing=st.sampled_from(sorted(PACKED)),
    kept=st.floats(0, 1) | st.just(1),
)
def test_entities_of_tools_are_read_or_refused(tmp_path_factory, table, form, encoding, packing, kept):
    parts = TABLES_OF_AZURE[form](list(map(entity_of, table)))
    options = {"format": "azure-json", "types": "text"}
    check_parts(tmp_path_factory, parts, encoding, packing, kept, options, list(map(of_values, table)))


TOOL_SCHEMA = KeySchema((KeyColumn("u", Kind.TEXT),), (KeyColumn("p", Kind.INT64),))
TOOL_VALUES = AZURE_VALUES.filter(
    lambda value: value.kind in WIRE_KINDS and value.data not in (math.inf, -math.inf)
).filter(lambda value: value.data == value.data)


def line_of_tool(row: Row) -> str:
    columns = []
    for name, (kind, data) in row.latest.items():
        if name not in ("u", "p"):
            column = {"C": name, "V": base64.b64encode(data).decode() if kind is Kind.BYTES else data}
            columns.append(
                column
                | ({"IsInt": True} if kind is Kind.INT64 else {"T": "binary"} if kind is Kind.BYTES else {})
            )
    keys = [row.latest[name].data for name in ("u", "p")]
    return json.dumps({"PK": {"Values": keys}, "Attr": {"Values": columns}}) + "\n"


@examples(30)
@given(
    table=table_of(TOOL_SCHEMA, values=TOOL_VALUES, stamped=False, size=3),
    encoding=st.sampled_from(ENCODINGS),
    packing=st.sampled_from(sorted(PACKED)),
    kept=st.floats(0, 1) | st.just(1),
)
def test_rows_of_the_command_line_are_read_or_refused(tmp_path_factory, table, encoding, packing, kept):
    options = {"format": "tablestore-json", "keys": "u:S,p:I"}
    parts = list(map(line_of_tool, table))
    check_parts(tmp_path_factory, parts, encoding, packing, kept, options, list(map(of_values, table)))


@examples(30)
@given(
    table=table_of(
        values=TEXTS.map(lambda text: Value(Kind.TEXT, text)), names=st.just("v"), stamped=False, size=3
    ),
    encoding=st.sampled_from(ENCODINGS),
    kept=st.floats(0, 1) | st.just(1),
)
def test_csv_of_dynamodb_is_read_or_refused(tmp_path_factory, table, encoding, kept):
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    parts = []
    for record in [
        ["pk", "sk", "v"],
        *(
            [row.latest["pk"].data, str(row.latest["sk"].data), row.latest["v"].data]
            for row in table
            if "v" in row.latest
        ),
    ]:
        writer.writerow(record)
        parts.append(text.getvalue()[sum(map(len, parts)) :])
    expected = [of_values(row) for row in table if "v" in row.latest]
    data = encoded("".join(parts), encoding)
    if data is None:
        return
    size = round(kept * len(data))
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = Path(folder) / "in.csv"
        path.write_bytes(data[:size])
        found = read(path, {**KEYS, "types": "text"})
    if size == len(data) and encoding in READ_ENCODINGS:
        assert found == expected
    elif found is not None:
        kept_text = data[:size].decode("utf-16" if encoding == "utf-16" else "utf-8-sig")
        assert kept_text.endswith(("\n", "\r"))
        assert found == expected[: len(list(csv.reader(io.StringIO(kept_text, newline="")))) - 1]


def check_parts(
    tmp_path_factory: Any,
    parts: list[str],
    encoding: str,
    packing: str,
    kept: float,
    options: dict[str, str],
    expected: list[Any],
) -> None:
    """Assert that the rows of complete parts are read, and that reading fails if anything follows them."""
    data = encoded("".join(parts), encoding)
    if data is None:
        return
    size = round(kept * len(data))
    ends = [len("".join([*parts[:at], part.rstrip()]).encode(encoding)) for at, part in enumerate(parts)]
    complete = sum(end <= size for end in ends)
    rest = data[ends[complete - 1] if complete else 0 : size].decode(encoding, errors="replace")
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = Path(folder) / f"in.json{packing}"
        path.write_bytes(PACKED[packing](data[:size]))
        found = read(path, options)
    if rest.strip("\ufeff \r\n"):
        assert found is None or (found == [] and data[:size] == codecs.BOM_UTF16_LE)
    elif found is None:
        assert encoding not in READ_ENCODINGS
    else:
        assert sorted(found) == sorted(expected if complete == len(parts) else expected[:complete])


@examples(20)
@given(
    table=table_of(OWN_SCHEMA, values=AZURE_VALUES, names=NAMES, stamped=False, size=3),
    encoding=st.sampled_from(ENCODINGS),
    kept=st.floats(0, 1) | st.just(1),
)
def test_typed_csv_is_read_or_refused(tmp_path_factory, table, encoding, kept):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = Path(folder) / "in.csv"
        written(open_file(str(path), {}), AZURE, table)
        data = encoded(path.read_bytes().decode(), encoding)
        if data is None:
            return
        size = round(kept * len(data))
        is_whole = size == len(data)
        data = data[:size]
        path.write_bytes(data)
        found = read(path, {})
    expected = list(map(of_values, table))
    if is_whole and encoding in READ_ENCODINGS:
        assert found == expected
    elif found is not None:
        text = data.decode("utf-16" if encoding == "utf-16" else "utf-8-sig")
        records = list(csv.reader(io.StringIO(text, newline="")))
        assert found == expected[: len(records) - 1]


@examples(20)
@given(
    table=table_of(values=DYNAMODB_VALUES, size=3),
    packing=st.sampled_from(sorted(PACKED)),
    encoding=st.sampled_from(ENCODINGS),
    indent=st.sampled_from([None, 0, 2]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    kept=st.floats(0, 1) | st.just(1),
)
def test_own_lines_are_read_or_refused(tmp_path_factory, table, packing, encoding, indent, line_end, kept):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = Path(folder) / "in.jsonl"
        written(open_file(str(path), {}), DEFINITION, table)
        text = path.read_bytes().decode()
        if indent is not None:
            text = "".join(
                json.dumps(json.loads(line), indent=indent) + "\n" for line in text[:-1].split("\n")
            )
        data = encoded(text.replace("\n", line_end), encoding)
        if data is None:
            return
        path = Path(folder) / f"again.jsonl{packing}"
        size = round(kept * len(data))
        path.write_bytes(PACKED[packing](data[:size]))
        found = read(path, {"format": "jsonl"})
        as_items = read(path, {"format": "dynamodb-json", **KEYS})
    is_same = size == len(data) and indent is None and line_end == "\n"
    is_same = is_same and (encoding in READ_ENCODINGS or data == text.encode())
    assert found == (list(map(of_values, table)) if is_same else None)
    assert as_items is None or not data[:size].decode(encoding, errors="replace").strip()


@pytest.mark.parametrize("name", ["in.jsonl.gz", "in.jsonl.zst", "in.json.gz", "in.ion.zst", "in.parquet"])
def test_truncated_files_that_know_their_end_are_refused(tmp_path, name):
    options = KEYS if name.startswith(("in.json.", "in.ion.")) else {}
    path = tmp_path / name
    written(open_file(str(path), {}), DEFINITION, [simple_row(number) for number in range(5)])
    data = path.read_bytes()
    for size in sorted({0, 1, 4, 8, len(data) - 1, *random.Random(1).sample(range(len(data)), 30)}):
        path.write_bytes(data[:size])
        assert read(path, options) is None, size


def reformatted(data: bytes) -> bytes | None:
    """The JSON documents of lines indented, one document in a line, None for other data."""
    try:
        if data.startswith(b"{\n"):
            return orjson.dumps(orjson.loads(data))
        return b"".join(json.dumps(json.loads(line), indent=2).encode() + b"\n" for line in data.splitlines())
    except ValueError:
        return data


CHANGES: dict[str, Callable[[bytes], bytes | None]] = {
    "removed": lambda data: None,
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "without its last line": lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
    "twice": lambda data: data * 2,
    "reformatted": reformatted,
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "with a byte order mark": lambda data: data.decode().encode("utf-8-sig"),
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
}


@pytest.mark.parametrize("lines", ["json", "ion"])
def test_exports_with_changed_files_are_read_or_refused(tmp_path, lines):
    rows = [simple_row(number) for number in range(5)]
    original = tmp_path / "original"
    written(open_file(str(original), {"format": "dynamodb-export", "lines": lines}), DEFINITION, rows)
    expected = sorted(map(of_values, rows))
    files = [path.relative_to(original) for path in sorted(original.rglob("*")) if path.is_file()]
    for md5 in ("check", "ignore"):
        for file in files:
            for change, changed in CHANGES.items():
                copy = tmp_path / "copy"
                shutil.copytree(original, copy)
                if md5 == "ignore":
                    for checksum in copy.rglob("*.md5"):
                        checksum.unlink()
                data = (original / file).read_bytes()
                is_packed = file.suffix == ".gz"
                new = changed(gzip.decompress(data) if is_packed else data)
                (copy / file).unlink(missing_ok=True)
                if new is not None:
                    (copy / file).write_bytes(gzip.compress(new) if is_packed else new)
                found = read(copy, {"md5": md5, **KEYS})
                assert found is None or sorted(found) == expected, (md5, file, change)
                shutil.rmtree(copy)

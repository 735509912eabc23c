"""Files that were truncated, re-encoded or reformatted: each row is read, or reading fails. Rows are never left out."""

from __future__ import annotations

import csv
import gzip
import io
import json
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

from tablegate.adapters.azuretable.values.keys import OWN_SCHEMA
from tablegate.adapters.dynamodb.export_files.ion import text_of
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import TransferError
from tests.support.examples import examples
from tests.transfer.endpoints.files.test_typed_csv import AZURE, NAMES
from tests.transfer.support.generated_rows import AZURE_VALUES, DYNAMODB_VALUES, table_of
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
    "Ion": lambda items: [f"$ion_1_0 {{Item:{text_of(item)}}}\n" for item in items],
}
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp037")
READ_ENCODINGS = ("utf-8", "utf-8-sig")
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
        is_readable = is_readable and (form != "batch-write-item" or table != [])
        assert found == expected or (found is None and not is_readable)
    else:
        assert found is None


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
        records = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
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
    is_same = size == len(data) and indent is None and line_end == "\n" and encoding in READ_ENCODINGS
    assert found == (list(map(of_values, table)) if is_same else None)
    assert as_items is None or not data[:size].strip()


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

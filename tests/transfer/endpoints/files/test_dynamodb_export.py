"""Exports of DynamoDB to S3 as folders: the documented ones, their variants, incremental ones, and our own."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import BadAddress, BadFile, CannotResume, TableAbsent, TransferError
from tests.support.examples import examples
from tests.transfer.support.generated_rows import DYNAMODB_VALUES, table_of
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, simple_row, written

EXPORT = "format=dynamodb-export"
OURS = {"format": "dynamodb-export"}
PLAIN = dataclasses.replace(
    DEFINITION,
    name="Music",
    indexes=tuple(dataclasses.replace(index, properties={}) for index in reversed(DEFINITION.indexes)),
)


@pytest.mark.parametrize("lines", ["json", "ion"])
@examples(20)
@given(table=table_of(values=DYNAMODB_VALUES, stamped=False))
def test_a_table_comes_back_exactly(tmp_path_factory, lines, table):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = f"{folder}/music"
        written(open_file(path, {**OURS, "lines": lines}), PLAIN, table)
        back = open_file(path, {})
        described = back.describe()
        assert described == dataclasses.replace(
            PLAIN, rules=described.rules, properties={}, rows=len(table)
        ), "key and indexes come back, too"
        assert sorted(map(of_values, scanned(back)), key=str) == sorted(map(of_values, table), key=str)


def test_the_layout_is_the_services(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "FILE_ITEMS", 2)
    written(open_file(str(tmp_path / "b"), OURS), PLAIN, [simple_row(number) for number in range(5)])
    [export] = (tmp_path / "b/AWSDynamoDB").iterdir()
    assert len(export.name) == 14 + 1 + 8 and export.name[:14].isdigit() and export.name[14] == "-"
    assert sorted(path.name for path in export.iterdir()) == [
        "_started", "data", "manifest-files.json", "manifest-files.md5", "manifest-summary.json", "manifest-summary.md5",
    ]  # fmt: skip
    assert (export / "_started").read_bytes() == b""
    for name in ("manifest-files", "manifest-summary"):
        md5 = hashlib.md5((export / f"{name}.json").read_bytes()).digest()
        assert (export / f"{name}.md5").read_bytes() == base64.b64encode(md5)
    summary = orjson.loads((export / "manifest-summary.json").read_bytes())
    assert (summary["version"], summary["outputFormat"], summary["itemCount"]) == (
        "2020-06-30",
        "DYNAMODB_JSON",
        5,
    )
    assert summary["manifestFilesS3Key"] == f"AWSDynamoDB/{export.name}/manifest-files.json"
    assert summary["exportArn"] == f"{summary['tableArn']}/export/{export.name}"
    entries = [orjson.loads(line) for line in (export / "manifest-files.json").read_bytes().splitlines()]
    assert [entry["itemCount"] for entry in entries] == [2, 2, 1]
    for entry in entries:
        assert list(entry) == ["itemCount", "md5Checksum", "etag", "dataFileS3Key"]
        file = tmp_path / "b" / entry["dataFileS3Key"]
        assert len(file.name) == 26 + len(".json.gz")
        assert base64.b64decode(entry["md5Checksum"]) == hashlib.md5(file.read_bytes()).digest()
        first = gzip.decompress(file.read_bytes()).splitlines()[0]
        assert list(orjson.loads(first)) == ["Item"]
    assert [len(rows) for rows in by_segment(open_file(str(tmp_path / "b"), {}), 2)] == [3, 2]


def by_segment(source: Any, wanted: int) -> list[list[Any]]:
    return [
        [row for page in source.scan(segment) for row in page.rows] for segment in source.segments(wanted)
    ]


def test_an_empty_table_is_a_file_without_items(tmp_path):
    written(open_file(str(tmp_path / "b"), OURS), PLAIN, [])
    [data] = (tmp_path / "b").rglob("data/*.json.gz")
    assert gzip.decompress(data.read_bytes()) == b""
    assert scanned(open_file(str(tmp_path / "b"), {})) == []


# "DynamoDB table export output format" in the developer guide, with its own mistake: the keys have no prefix.
SUMMARY = {
    "version": "2020-06-30",
    "exportArn": "arn:aws:dynamodb:us-east-1:123456789012:table/ProductCatalog/export/01234567890123-a1b2c3d4",
    "startTime": "2020-11-04T07:28:34.028Z",
    "endTime": "2020-11-04T07:33:43.897Z",
    "tableArn": "arn:aws:dynamodb:us-east-1:123456789012:table/ProductCatalog",
    "tableId": "12345a12-abcd-123a-ab12-1234abc12345",
    "exportTime": "2020-11-04T07:28:34.028Z",
    "s3Bucket": "ddb-productcatalog-export",
    "s3Prefix": "2020-Nov",
    "s3SseAlgorithm": "AES256",
    "s3SseKmsKeyId": None,
    "manifestFilesS3Key": "AWSDynamoDB/01693685827463-2d8752fd/manifest-files.json",
    "billedSizeBytes": 0,
    "itemCount": 8,
    "outputFormat": "DYNAMODB_JSON",
}
ID = "01693685827463-2d8752fd"


def put_export(
    root: Path,
    files: dict[str, list[bytes]],
    prefix: str = "2020-Nov/",
    key: str = "2020-Nov/AWSDynamoDB/" + ID + "/data/{}",
    md5_of: str = "stored",
    identifier: str = ID,
    **changed: Any,
) -> Path:
    """Create a copy of a bucket with one export, from data files by name. Returns the export's folder."""
    folder = root / prefix / "AWSDynamoDB" / identifier
    (folder / "data").mkdir(parents=True)
    entries = []
    for name, lines in files.items():
        inflated = b"".join(lines)
        stored = gzip.compress(inflated) if name.endswith(".gz") else inflated
        (folder / "data" / name).write_bytes(stored)
        md5 = hashlib.md5(stored if md5_of == "stored" else inflated).digest()
        entry = {"itemCount": len(lines), "dataFileS3Key": key.format(name), "etag": "f76fc4a3-1"}
        if md5_of != "none":
            entry["md5Checksum"] = base64.b64encode(md5).decode()
        entries.append(entry)
    (folder / "manifest-files.json").write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
    count = sum(len(lines) for lines in files.values())
    summary = {**SUMMARY, "itemCount": count, **changed}
    (folder / "manifest-summary.json").write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
    (root / prefix / "AWSDynamoDB" / "_started").touch()
    return folder


def item(number: int, **more: Any) -> bytes:
    return orjson.dumps({"Item": {"Id": {"N": str(number)}, **more}}) + b"\n"


KEYS = {"keys": "Id:N"}
# The documented line of a data file.
BOOK = (
    b'{"Item":{"Authors":{"SS":["Author1","Author2"]},"Dimensions":{"S":"8.5 x 11.0 x 1.5"},"ISBN":{"S":"333-3333333333"},'
    b'"Id":{"N":"103"},"InPublication":{"BOOL":false},"PageCount":{"N":"600"},"Price":{"N":"2000"},'
    b'"ProductCategory":{"S":"Book"},"Title":{"S":"Book 103 Title"}}}\n'
)
FILES = {"asdl123dasas4a.json.gz": [BOOK, item(1)], "empty.json.gz": [], "sgfsd4asd4a.json.gz": [item(2)]}


@pytest.mark.parametrize(
    "below",
    ["", "2020-Nov", f"2020-Nov/AWSDynamoDB/{ID}", f"2020-Nov/AWSDynamoDB/{ID}/manifest-summary.json"],
)
@pytest.mark.parametrize(
    "key",
    ["2020-Nov/AWSDynamoDB/{id}/data/{{}}", "AWSDynamoDB/{id}/data/{{}}", "data/{{}}", "elsewhere/{{}}"],
)
@pytest.mark.parametrize("md5_of", ["stored", "inflated", "none"])
def test_the_documented_export_is_read_wherever_its_keys_point(tmp_path, below, key, md5_of):
    """Keys can start at the bucket's root, or omit the prefix as documented, or be relative to the manifest
    (scylla-migrator).

    The documents do not specify whether an MD5 is that of the file or of its contents.
    """
    put_export(tmp_path, FILES, key=key.format(id=ID), md5_of=md5_of)
    source = open_file(str(tmp_path / below), {**KEYS, **OURS})
    described = source.describe()
    assert (described.name, described.service, described.rows) == ("ProductCatalog", Service.DYNAMODB, 3)
    assert described.key_schema == KeySchema((KeyColumn("Id", Kind.DECIMAL),))
    found = {row.latest["Id"].data: row for row in scanned(source)}
    assert sorted(found) == [1, 2, 103]
    assert found[103].latest["Authors"].data == {"Author1", "Author2"}


def test_a_folder_is_an_export_by_itself(tmp_path):
    put_export(tmp_path, FILES)
    assert len(scanned(open_file(str(tmp_path), KEYS))) == 3


def test_a_count_of_the_summary_alone_is_compared(tmp_path):
    folder = put_export(tmp_path, {"a.json": [item(1), item(2)], "b.json": [item(3)]}, md5_of="none")
    entries = [{"dataFileS3Key": f"data/{name}"} for name in ("a.json", "b.json")]
    (folder / "manifest-files.json").write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in entries))
    assert len(scanned(open_file(str(tmp_path), KEYS))) == 3
    (folder / "data" / "a.json").write_bytes(item(1))
    with pytest.raises(BadFile, match="has a count of 3 items, but its data files have 2"):
        scanned(open_file(str(tmp_path), KEYS))


def test_lines_in_ion(tmp_path):
    put_export(
        tmp_path,
        {"a.ion.gz": [b"$ion_1_0 {Item:{Id:103.,Price:2d3}}\n", b"$ion_1_0 {Item:{Id:4.}}\n"]},
        outputFormat="ION",
    )
    assert sorted(row.latest["Id"].data for row in scanned(open_file(str(tmp_path), KEYS))) == [4, 103]


def test_the_key_comes_from_describe_table_too(tmp_path):
    folder = put_export(tmp_path, FILES)
    with pytest.raises(BadAddress, match=r"\?keys=NAME:S"):
        open_file(str(tmp_path), {}).describe()
    table = {
        "TableName": "ProductCatalog",
        "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "N"}],
        "TableStatus": "ACTIVE",
    }
    (folder / "table.json").write_bytes(orjson.dumps({"Table": table}))
    assert open_file(str(tmp_path), {}).describe().key_schema.names == ("Id",)
    (folder / "table.json").write_bytes(b'{"Table":{}}')
    with pytest.raises(BadFile, match=r"table\.json is not an output"):
        open_file(str(tmp_path), {}).describe()


def test_reading_goes_on_in_the_middle_of_a_file(tmp_path):
    put_export(
        tmp_path,
        {f"{name}.json.gz": [item(at * 700 + n) for n in range(700)] for at, name in enumerate("abc")},
    )
    source = open_file(str(tmp_path), KEYS)
    for segment in source.segments(2):
        pages = list(source.scan(segment))
        for at, page in enumerate(pages[:-1]):
            rest = source.scan(orjson.loads(orjson.dumps(segment)), orjson.loads(orjson.dumps(page.resume)))
            assert numbers(list(rest)) == numbers(pages[at + 1 :])
    assert len({*map(of_key, scanned(source, 7))}) == 2100 and len(source.segments(7)) == 3


def numbers(pages: list[Any]) -> list[Any]:
    return [of_key(row) for page in pages for row in page.rows]


def of_key(row: Any) -> Any:
    return row.latest["Id"].data


def test_errors_of_an_export_are_named(tmp_path):
    def refused(words: str, **options: str) -> None:
        with pytest.raises(BadFile) as error:
            scanned(open_file(str(tmp_path), {**KEYS, **options}))
        assert words in str(error.value)
        shutil.rmtree(tmp_path)

    put_export(tmp_path, {"a.json.gz": [item(1)]}, itemCount=2)
    refused("manifest-summary.json has a count of 2 items, but its data files have 1")
    folder = put_export(tmp_path, {"a.json.gz": [item(1)]})
    (folder / "data/a.json.gz").unlink()
    refused("a.json.gz, which is missing")
    folder = put_export(tmp_path, {"a.json.gz": [item(1), item(2)]})
    (folder / "data/a.json.gz").write_bytes(gzip.compress(item(1)))
    refused("a.json.gz has 1 items, but the manifest has 2")
    folder = put_export(tmp_path, {"a.json.gz": [item(1)]})
    (folder / "data/a.json.gz").write_bytes(gzip.compress(item(3)))
    refused("its MD5 differs from the manifest")
    folder = put_export(tmp_path, {"a.json.gz": [item(1)]})
    (folder / "data/a.json.gz").write_bytes(gzip.compress(item(3)))
    assert len(scanned(open_file(str(tmp_path), {**KEYS, "md5": "ignore"}))) == 1
    data = gzip.compress(item(1) * 50)
    (folder / "data/a.json.gz").write_bytes(data[: len(data) // 2])
    refused("the file was cut off")
    put_export(tmp_path, {"a.json.gz": [item(1), b'{"Item":{"Id":{"N":"x"}}}\n']})
    refused("a.json.gz, line 2: ")
    put_export(tmp_path, {"a.json.gz": [item(1), b'{"Item":{"Name":{"S":"x"}}}\n']})
    refused("a.json.gz, line 2: the key column 'Id' is missing")
    put_export(tmp_path, {"a.json.gz": [item(1), b'{"Id":{"N":"1"}}\n']})
    refused("a.json.gz, line 2: no Item")
    put_export(tmp_path, {"a.json.gz": [b'{"Id":1}\n']})
    refused("a.json.gz, line 1: no typed item")
    folder = put_export(tmp_path, FILES)
    (folder / "manifest-summary.md5").write_bytes(b"AAAA")
    refused("manifest-summary.json does not match the MD5 in manifest-summary.md5")
    folder = put_export(tmp_path, FILES)
    (folder / "manifest-files.json").write_bytes(b"{}\n")
    refused("line 1: no dataFileS3Key")
    folder = put_export(tmp_path, FILES)
    (folder / "manifest-summary.json").write_bytes(b"{")
    refused("not JSON")
    folder = put_export(tmp_path, FILES)
    (folder / "manifest-files.json").unlink()
    refused("manifest-files.json")
    folder = put_export(tmp_path, FILES)
    (folder / "manifest-summary.json").unlink()
    refused("has no manifest-summary.json: it is not an export or was never finished")
    put_export(tmp_path, FILES)
    put_export(tmp_path, FILES, identifier="01693685827464-2d8752fd")
    refused("has 2 exports. Name one of them")
    put_export(tmp_path, {"a.json.gz": [item(1)]}, key="../../etc/passwd-{}")
    refused("which is missing")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(TableAbsent):
        open_file(str(tmp_path / "x"), {**OURS, **KEYS}).describe()


# Incremental exports


def change(number: int, new: dict[str, Any] | None = None, old: dict[str, Any] | None = None) -> bytes:
    keys = {"Id": {"N": str(number)}}
    line: dict[str, Any] = {"Metadata": {"WriteTimestampMicros": {"N": "1680109764000000"}}, "Keys": keys}
    if old is not None:
        line["OldImage"] = {**keys, **old}
    if new is not None:
        line["NewImage"] = {**keys, **new}
    return orjson.dumps(line) + b"\n"


def put_window(root: Path, name: str, start: str, end: str, lines: list[bytes], **changed: Any) -> Path:
    """An incremental export. Its data files are in the folder that all of a bucket's share."""
    folder = put_export(
        root, {}, prefix="", identifier=name, version="2023-08-01", exportType="INCREMENTAL_EXPORT", exportTime=None,
        exportFromTime=start, exportToTime=end, outputView="NEW_AND_OLD_IMAGES", itemCount=len(lines), **changed,
    )  # fmt: skip
    shared = root / "AWSDynamoDB/data"
    shared.mkdir(exist_ok=True)
    (shared / f"{name}.json.gz").write_bytes(gzip.compress(b"".join(lines)))
    entry = {"itemCount": len(lines), "dataFileS3Key": f"2020-Nov/AWSDynamoDB/data/{name}.json.gz"}
    (folder / "manifest-files.json").write_bytes(orjson.dumps(entry) + b"\n")
    return folder


T0, T1, T2 = "2020-11-04T07:28:34.028Z", "2020-11-04T08:00:00Z", "2020-11-04T09:00:00Z"
OLD, NEW, NEWER = {"v": {"S": "old"}}, {"v": {"S": "new"}}, {"v": {"S": "newer"}}


def test_windows_of_changes_are_applied_in_their_order(tmp_path):
    """ "Using incremental exports": a missing NewImage is a delete.

    The lines of a window have the last state of each item.
    """
    full = put_export(tmp_path / "full", {"a.json.gz": [item(n, **OLD) for n in (1, 2, 3, 4)]})
    first = put_window(
        tmp_path, "1", T0, T1, [change(1, NEW, OLD), change(2, None, OLD), change(5, NEW), change(6, NEW)]
    )
    second = put_window(tmp_path, "2", T1, T2, [change(1, NEWER, NEW), change(2, NEWER), change(6)])
    source = open_file(str(full), {**KEYS, "incremental": f"{second},{first}"})
    expected = {1: "newer", 2: "newer", 3: "old", 4: "old", 5: "new"}
    rows = scanned(source)
    assert {int(of_key(row)): row.latest["v"].data for row in rows} == expected and len(rows) == 5
    changes = source.segments(1)[-1]
    [page] = source.scan(changes)
    assert [int(of_key(row)) for row in page.rows] == [1, 2, 5]
    source.close()


@given(
    st.dictionaries(st.integers(0, 20), st.sampled_from(["a", "b"])),
    st.lists(st.dictionaries(st.integers(0, 20), st.sampled_from(["c", "d", None])), max_size=3),
)
def test_windows_have_the_effect_of_a_dictionary(tmp_path_factory, items, windows):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        root = Path(folder)
        full = put_export(
            root / "full", {"a.json.gz": [item(n, v={"S": value}) for n, value in items.items()]}
        )
        expected: dict[int, str] = dict(items)
        paths = []
        for at, window in enumerate(windows):
            lines = [change(n, None if value is None else {"v": {"S": value}}) for n, value in window.items()]
            hours = [T0, *(f"2020-11-04T{hour:02}:00:00Z" for hour in range(8, 12))]
            paths.append(str(put_window(root, str(at), hours[at], hours[at + 1], lines)))
            expected.update({n: value for n, value in window.items() if value is not None})
            for n in [n for n, value in window.items() if value is None]:
                expected.pop(n, None)
        source = open_file(str(full), {**KEYS, "incremental": ",".join(paths)})
        assert {int(of_key(row)): row.latest["v"].data for row in scanned(source)} == expected
        source.close()


def test_changes_in_ion_and_with_new_images_only(tmp_path):
    full = put_export(tmp_path / "full", {"a.json.gz": [item(1, **OLD), item(2, **OLD)]})
    lines = [
        b'$ion_1_0 {Record:{Keys:{Id:1.},Metadata:{WriteTimestampMicros:1680109764000000.},NewImage:{Id:1.,v:"new"}}}\n',
        b"$ion_1_0 {Record:{Keys:{Id:2.},Metadata:{WriteTimestampMicros:1680109764000000.}}}\n",
    ]
    window = put_window(tmp_path, "1", T0, T1, lines, outputFormat="ION")
    rows = scanned(open_file(str(full), {**KEYS, "incremental": str(window)}))
    assert [(int(of_key(row)), row.latest["v"].data) for row in rows] == [(1, "new")]


def test_only_a_missing_new_image_is_a_deletion(tmp_path):
    full = put_export(tmp_path / "full", {"a.json.gz": [item(1)]})
    cases = [
        (
            change(1, {}).replace(b'"NewImage"', b'"newImage"'),
            "JSON",
            "unexpected members beside Keys: newImage",
        ),
        (change(1, {}).replace(b'"NewImage":{"Id":{"N":"1"}}', b'"NewImage":null'), "JSON", "no NewImage"),
        (change(1, {"Id": {"N": "2"}}), "JSON", "the key of NewImage differs from Keys"),
        (
            b"$ion_1_0 {Record:{Keys:{Id:1.},Metadata:{},NewImage:5}}\n",
            "ION",
            "expected a struct in NewImage",
        ),
    ]
    for number, (line, output_format, words) in enumerate(cases):
        window = put_window(tmp_path, f"{number}", T0, T1, [line], outputFormat=output_format)
        with pytest.raises(BadFile) as refused:
            scanned(open_file(str(full), {**KEYS, "incremental": str(window)}))
        assert f"{number}.json.gz, line 1: {words}" in str(refused.value)


def test_a_gap_between_windows_is_refused(tmp_path):
    full = put_export(tmp_path / "full", {"a.json.gz": [item(1)]})
    window = put_window(tmp_path, "1", T1, T2, [change(1)])
    with pytest.raises(BadFile, match="the changes between them are missing"):
        scanned(open_file(str(full), {**KEYS, "incremental": str(window)}))
    with pytest.raises(BadFile, match="has changes only"):
        open_file(str(window), KEYS).describe()
    with pytest.raises(BadFile, match="is a full export, not an incremental one"):
        scanned(open_file(str(full), {**KEYS, "incremental": str(full)}))


ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"


def test_an_incremental_export_of_another_table_is_refused(tmp_path):
    """The members of the summary are those of "DynamoDB table export output format"."""
    full = put_export(tmp_path / "full", {"a.json.gz": [item(1, **OLD)]})
    other = {"tableArn": f"{ARN}Orders", "exportArn": f"{ARN}Orders/export/1"}
    cases: list[tuple[dict[str, Any], str | None]] = [
        (other, f"is an export of another table than .*: tableArn {ARN}Orders, not {ARN}ProductCatalog"),
        ({"tableArn": None, "exportArn": f"{ARN}Orders/export/1"}, "is an export of another table"),
        ({"tableId": "another"}, "is an export of another table than .*: tableId another, not 12345a12"),
        ({"exportArn": f"{ARN}Orders/export/1"}, f"exportArn is of {ARN}Orders, but tableArn is"),
        ({"exportFromTime": "2020-11-04T05:00:00Z", "exportToTime": "2020-11-04T06:00:00Z"}, "Omit it"),
        ({"exportArn": f"{ARN}ProductCatalog/export/2"}, None),
        ({"tableArn": None, "exportArn": None, "tableId": None}, None),
    ]
    for number, (members, refusal) in enumerate(cases):
        window = put_window(tmp_path / str(number), "1", T0, T1, [change(1, NEW, OLD)])
        summary = window / "manifest-summary.json"
        summary.write_bytes(orjson.dumps({**orjson.loads(summary.read_bytes()), **members}))
        source = open_file(str(full), {**KEYS, "incremental": str(window)})
        if refusal is None:
            assert [row.latest["v"].data for row in scanned(source)] == ["new"], members
        else:
            with pytest.raises(BadFile, match=refusal):
                scanned(source)


def test_a_description_of_another_table_is_refused(tmp_path):
    folder = put_export(tmp_path, FILES)
    table = {
        "TableName": "Orders",
        "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "N"}],
    }
    (folder / "table.json").write_bytes(orjson.dumps({"Table": table}))
    with pytest.raises(BadFile, match="describes the table Orders, but the export is of ProductCatalog"):
        open_file(str(tmp_path), {}).describe()
    assert open_file(str(tmp_path), KEYS).describe().key_schema.names == ("Id",)


def test_a_job_does_not_continue_with_another_export(tmp_path):
    put_export(tmp_path / "one", {"a.json.gz": [item(1)]})
    put_export(tmp_path / "other", {"a.json.gz": [item(2)]}, tableId="another")
    [segment] = open_file(str(tmp_path / "one"), KEYS).segments(1)
    with pytest.raises(CannotResume, match="has changed since reading began"):
        list(open_file(str(tmp_path / "other"), KEYS).scan(segment))


def test_an_existing_folder_is_not_overwritten(tmp_path):
    put_export(tmp_path, FILES)
    target = open_file(str(tmp_path), {**OURS, **KEYS})
    with pytest.raises(TransferError):
        target.write([simple_row(1)])


@pytest.mark.parametrize("keys", ["Id", "Id:X", ":S", "a:S,a:S", "a:S,b:S,c:S,d:S,e:S", ""])
def test_keys_that_are_none(keys):
    with pytest.raises(BadAddress, match="keys="):
        open_file("x", {**OURS, "keys": keys})
    with pytest.raises(BadAddress, match="lines=xml"):
        open_file("x", {**OURS, "lines": "xml"})

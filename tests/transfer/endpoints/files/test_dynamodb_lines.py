"""Items of DynamoDB as people and tools have them: lines with and without a wrapper, scans, EMR's, Ion."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import boto3
import moto
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.endpoints.files import document_files
from tablegate.transfer.endpoints.files.opening import FORMATS, format_of, open_file
from tablegate.transfer.errors import BadAddress, BadFile, TransferError
from tests.support.examples import examples
from tests.transfer.support.generated_rows import DYNAMODB_VALUES, table_of
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, simple_row, written

KEYS = {"keys": "pk:S,sk:N"}
ITEM = {
    "pk": {"S": "a"},
    "sk": {"N": "1"},
    "set": {"SS": ["x", "y"]},
    "bin": {"B": "AAE="},
    "deep": {"M": {"l": {"L": [{"NULL": True}]}}},
}
SECOND = {"pk": {"S": "b"}, "sk": {"N": "2"}}


def put(tmp_path: Path, data: str | bytes, name: str = "in.json") -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def items(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(row.body) for row in scanned(open_file(str(path), KEYS))]


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".ion", ".ion.zst"])
@examples(20)
@given(table=table_of(values=DYNAMODB_VALUES, stamped=False))
def test_items_come_back_exactly(tmp_path_factory, ending, table):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = f"{folder}/t{ending}"
        written(open_file(path, {}), DEFINITION, table)
        assert list(map(of_values, scanned(open_file(path, KEYS)))) == list(map(of_values, table))


SHAPES = {
    "wrapped lines": lambda found: "".join(json.dumps({"Item": item}) + "\n" for item in found),
    "bare lines": lambda found: "\n".join(json.dumps(item) for item in found),
    "an empty line between": lambda found: "\n\n".join(json.dumps(item) for item in found),
    "aws dynamodb scan": lambda found: json.dumps(
        {"Items": found, "Count": len(found), "ScannedCount": 9, "ConsumedCapacity": None}, indent=4
    ),
    "a scan on one line": lambda found: json.dumps({"Count": len(found), "Items": found, "ConsumedCapacity": {"TableName": "}"}}),
    "pages of a scan": lambda found: "\n".join(json.dumps({"Items": [item], "Count": 1}, indent=1) for item in found),
    "pages on one line": lambda found: "".join(json.dumps({"Items": [item]}) for item in found),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["in.json", "in.jsonl", "in.json.gz"])
def test_shapes_that_people_have_are_read(tmp_path, shape, name):
    data = SHAPES[shape]([ITEM, SECOND]).encode()
    path = put(tmp_path, gzip.compress(data) if name.endswith(".gz") else data, name)
    assert items(path) == [ITEM, SECOND]
    described = open_file(str(path), KEYS).describe()
    assert (described.name, described.service) == ("in", Service.DYNAMODB)


@given(st.lists(DYNAMODB_VALUES, max_size=4), st.sampled_from([None, 0, 3]))
def test_a_scan_of_any_values_is_taken_apart(tmp_path_factory, values, indent):
    """Brackets, quotes and escapes in texts are no structure."""
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        found = [
            {"pk": {"S": '"}]'}, "sk": {"N": str(at)}, "v": bodies.tagged(value)}
            for at, value in enumerate(values)
        ]
        path = put(Path(folder), json.dumps({"Items": found, "Count": len(found)}, indent=indent))
        assert items(path) == found


def test_types_in_lower_case(tmp_path):
    line = '{"pk":{"s":"a"},"sk":{"n":"1"},"l":{"l":[{"bOOL":true}]},"m":{"m":{"b":{"b":"AA=="}}},"t":{"sS":["q"]}}\n'
    assert items(put(tmp_path, line)) == [
        {"pk": {"S": "a"}, "sk": {"N": "1"}, "l": {"L": [{"BOOL": True}]}, "m": {"M": {"b": {"B": "AA=="}}}, "t": {"SS": ["q"]}}
    ]  # fmt: skip


def test_an_attribute_called_item_is_no_wrapper(tmp_path):
    """The first line decides, by what can be read."""
    path = put(tmp_path, '{"Item":{"S":"x"}}\n{"Item":{"S":"y"},"a":{"N":"1"}}\n')
    rows: list[Row] = scanned(open_file(str(path), {"keys": "Item:S"}))
    assert [row.latest["Item"] for row in rows] == [Value(Kind.TEXT, "x"), Value(Kind.TEXT, "y")]
    path = put(tmp_path, '{"Item":{"S":{"S":"x"}}}\n')
    [found] = scanned(open_file(str(path), {"keys": "S:S"}))
    assert found.latest == {"S": Value(Kind.TEXT, "x")}


WRONG = [
    ('{"pk":"a","sk":1}\n', "in.json, line 1: no typed item: its values have no types of DynamoDB (plain JSON"),
    ('{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}\n{"pk":{"S":"b"},"sk":{"N":"1"}}\n', "in.json, line 2: no Item"),
    ('{"pk":{"S":"b"},"sk":{"N":"1"}}\n{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}\n', "in.json, line 2: "),
    ('{"pk":{"S":"b"},"sk":{"N":"1"}}\n{"pk":{"S":"b"},"sk":{"N":"1"\n', "in.json, line 2: the document is incomplete"),
    ('{"pk":{"S":"b"},"sk":{"N":"1e999"}}\n', "in.json, line 1: "),
    ('{"pk":{"S":"b"},"sk":{"S":"1"}}\n', "in.json, line 1: the key column 'sk' is of kind TEXT, not DECIMAL"),
    ('{"Items":[{"pk":{"S":"b"},"sk":{"N":"1"}},', "in.json, line 1: the document is incomplete"),
    ('{\n"Items":[\n{"pk":{"S":"b"}}\n]}', "in.json, line 3: the key column 'sk' is missing"),
    ('{"Items":[{"pk":1}]}', "in.json, line 1: "),
    ('{"Items":[]}}', "in.json, line 1: a closing bracket has no opening bracket"),
    ('[,{"pk":{"S":"b"},"sk":{"N":"1"}}]', "in.json, line 1: expected an item, found a comma"),
    ('[{"pk":{"S":"b"},"sk":{"N":"1"}},,{}]', "in.json, line 1: expected an item, found ,"),
    ("[1]\n", "in.json, line 1: expected an item, found 1"),
    ('{"Metadata":{},"Keys":{"pk":{"S":"b"}}}\n', "in.json, line 1: a change of an incremental export is no item"),
    ("$ion_1_0 {Item:{pk:a}}\n", "in.json, line 1: a value that DynamoDB has not"),
    ('{"Items":["a",5,null]}', 'in.json, line 1: expected an item, found "a",5,null'),
    ('{"Items":[\n{"pk":{"S":"b"},"sk":{"N":"1"}},\nnull\n]}', "in.json, line 3: expected an item, found null"),
    ('[{"pk":{"S":"b"},"sk":{"N":"1"}}\n{"pk":{"S":"b"},"sk":{"N":"1"}}]', "line 2: expected a comma, found an item"),
    ('[{"pk":{"S":"b"},"sk":{"N":"1"}},]', "in.json, line 1: expected an item, found a comma"),
    ('[{"pk":{"S":"b"},"sk":{"N":"1"}}}', "in.json, line 1: not JSON"),
    ('{"Items":[],"Count":0}\n{"value":[]}\n', "in.json, line 2: no typed item"),
    ('{"Items":[{"pk":{"S":"b"},"sk":{"N":"1"}}]}\n{\n"Item":{"pk":{"S":"b"}}}\n', "in.json, line 2: "),
    ('{"Items":[],"Rest":[]}', "in.json, line 1: unexpected members beside Items: Rest"),
    ('{"Item":{"pk":{"S":"a"},"sk":{"N":"1"}}}\n{"Item":{"pk":{"S":"b"},"sk":{"N":"1"}},"More":1}\n',
     "in.json, line 2: unexpected members beside Item: More"),
    ('{\n "ModelName": "m",\n "Table": []\n}', "in.json, line 1: no typed item: its values have no types"),
    ('{\n "ModelName": "m",\n "Table": []\n}',
     'Expected {"id":{"S":"a"}} or {"Item":{...}}, found the members ModelName, Table'),
    ('{\n "ModelName": "m",\n "DataModel": []\n}', "the data model of NoSQL Workbench has 0 tables"),
    ('{"t":[{"DeleteRequest":{"Key":{}}}]}', "in.json, line 1: a DeleteRequest is no item"),
    ('{"t":[{"PutRequest":{"Item":{}}}],"u":[{"PutRequest":{"Item":{}}}]}', "requests for several tables: t, u"),
    ("5\n", "in.json, line 1: not JSON: expected a document, found 5"),
    ('{"pk":{"S":"b"},"sk":{"N":"1"}} and more\n', "in.json, line 1: not JSON: expected a document, found and more"),
    ("\ufeff5\n", "in.json, line 1: not JSON: expected a document, found 5"),
]  # fmt: skip
"""(file, a part of the message)"""


def test_errors_are_named_with_their_line(tmp_path):
    for data, words in WRONG:
        with pytest.raises(BadFile) as refused:
            items(put(tmp_path, data))
        assert words in str(refused.value), data


def test_answers_without_their_rest_are_refused(tmp_path):
    """Count, LastEvaluatedKey ("Scan" in the API reference) and NextToken ("Pagination" in the guide to the AWS CLI).

    With --max-items, the AWS CLI leaves the Count of the page. With --starting-token, it counts 0.
    """
    key = {"pk": {"S": "a"}, "sk": {"N": "1"}}
    cases: list[tuple[list[dict[str, Any]], str | None]] = [
        ([{"Items": [ITEM], "Count": 5}], "line 1: the answer has a Count of 5, but 1 items"),
        ([{"Items": [ITEM, SECOND], "Count": 1}], "line 1: the answer has a Count of 1, but 2 items"),
        ([{"Items": [ITEM], "Count": "1"}], "line 1: the Count is not a number"),
        ([{"Items": [ITEM], "NextToken": "e"}], "line 1: the last answer has a NextToken"),
        ([{"Items": [ITEM], "LastEvaluatedKey": key}], "Read the rest with --exclusive-start-key"),
        ([{"Items": [ITEM]}, {"Items": [SECOND], "LastEvaluatedKey": key}], "line 2: the last answer has a LastEvaluatedKey"),
        ([{"Items": [ITEM], "Count": 5, "NextToken": "e"}, {"Items": [SECOND], "Count": 0}], "a Count of 5, but 2 items"),
        ([{"Items": [ITEM], "Count": 2, "NextToken": "e"}, {"Items": [SECOND], "Count": 0}], None),
        ([{"Items": [ITEM], "Count": 1, "LastEvaluatedKey": key}, {"Items": [SECOND], "Count": 1}], None),
        ([{"Items": [ITEM, SECOND], "Count": 2, "LastEvaluatedKey": None, "NextToken": None}], None),
    ]  # fmt: skip
    for answers, words in cases:
        path = put(tmp_path, "".join(json.dumps(answer) + "\n" for answer in answers))
        if words is None:
            assert items(path) == [ITEM, SECOND], answers
        else:
            with pytest.raises(BadFile) as refused:
                items(path)
            assert words in str(refused.value), answers


def test_utf_16_is_read_and_other_encodings_are_refused_with_the_remedy(tmp_path):
    """PowerShell 5.1 writes `aws dynamodb scan > in.json` in UTF-16 with a byte order mark (about_Character_Encoding)."""
    line = json.dumps(ITEM, ensure_ascii=False) + "\r\n"
    for encoding in ("utf-8-sig", "utf-16"):
        assert items(put(tmp_path, line.encode(encoding))) == [ITEM]
        assert items(put(tmp_path, gzip.compress(line.encode(encoding)), "in.json.gz")) == [ITEM]
    for encoding, remedy in (
        ("utf-32", "UTF-32"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE"),
    ):  # fmt: skip
        with pytest.raises(BadFile, match=rf"in\.json: .*iconv -t UTF-8 -f {remedy}"):
            items(put(tmp_path, line.encode(encoding)))
    with pytest.raises(BadFile, match=r"in\.json, after line 0: not UTF-16, or truncated"):
        items(put(tmp_path, line.encode("utf-16")[:-1]))
    with pytest.raises(
        BadFile, match=r"in\.json\.gz: the file is empty, but a compressed file has some bytes"
    ):
        items(put(tmp_path, b"", "in.json.gz"))


def test_reading_goes_on_after_a_page(tmp_path):
    found = [{"pk": {"S": "a"}, "sk": {"N": str(number)}} for number in range(1200)]
    for data in (SHAPES["bare lines"](found), SHAPES["aws dynamodb scan"](found)):
        source = open_file(str(put(tmp_path, data)), KEYS)
        [segment] = source.segments(4)
        pages = list(source.scan(segment))
        assert len(pages) == 3
        for at, page in enumerate(pages[:-1]):
            rest = [row.position for each in source.scan(segment, page.resume) for row in each.rows]
            assert rest == [row.position for each in pages[at + 1 :] for row in each.rows]


def test_an_item_without_an_end_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(document_files, "LINE_BYTES", 1000)
    with pytest.raises(BadFile, match="line 200: the item or document has no end within"):
        items(put(tmp_path, '{"Items":[{"pk":[\n' + '"x",\n' * 500))


def test_an_empty_file_is_an_empty_table(tmp_path):
    assert items(put(tmp_path, "")) == []


def test_motos_export_to_s3_is_read(tmp_path):
    """moto writes data files without manifests, so each is read by itself."""
    with moto.mock_aws():
        s3 = boto3.client("s3", "us-east-1")
        s3.create_bucket(Bucket="exports")
        dynamodb = boto3.client("dynamodb", "us-east-1")
        arn = dynamodb.create_table(
            TableName="t",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )["TableDescription"]["TableArn"]
        dynamodb.update_continuous_backups(
            TableName="t", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        expected = []
        for number in range(20):
            item = {
                "pk": {"S": f"p{number % 3}"},
                "sk": {"N": str(number)},
                "s": {"SS": ["y", "z"]},
                "n": {"NULL": True},
            }
            dynamodb.put_item(TableName="t", Item=item)
            expected.append(item)
        export = dynamodb.export_table_to_point_in_time(TableArn=arn, S3Bucket="exports", S3Prefix="p")
        arn = export["ExportDescription"]["ExportArn"]
        while dynamodb.describe_export(ExportArn=arn)["ExportDescription"]["ExportStatus"] == "IN_PROGRESS":
            pass
        [made] = s3.list_objects_v2(Bucket="exports")["Contents"]
        path = tmp_path / "moto.json.gz"
        path.write_bytes(s3.get_object(Bucket="exports", Key=made["Key"])["Body"].read())
    assert sorted(items(path), key=lambda item: int(item["sk"]["N"])) == expected


# Format by path


@pytest.mark.parametrize(
    ("path", "options", "expected"),
    [
        ("a.jsonl", {}, "jsonl"), ("a.NDJSON.gz", {}, "jsonl"), ("a.jsonl.zst", {}, "jsonl"), ("-", {}, "jsonl"),
        ("a.b.json", {}, "dynamodb-json"), ("a.ion.gz", {}, "dynamodb-json"), ("a.typed.csv", {}, "csv"),
        ("a.parquet", {}, "parquet"),
        ("a/manifest-summary.json", {}, "dynamodb-export"), ("a", {"format": "dynamodb-export"}, "dynamodb-export"),
        ("a.txt", {"format": "csv"}, "csv"), ("/", {}, "dynamodb-export"),
    ],
)  # fmt: skip
def test_the_name_determines_the_format(path, options, expected):
    assert format_of(path, options) == expected


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("a", {}, "Add ?format=NAME: jsonl"), ("a.gz", {}, "Add ?format="), ("a.xlsx", {}, "Add ?format="),
        ("a.jsonl", {"format": "xml"}, "format=xml: unknown format"), ("-", {"format": "csv"}, "jsonl only"),
        ("a.jsonl", {"keys": "a:S"}, "keys: unknown option. Options of format jsonl: format"),
        ("a.csv", {"nonsense": "1"}, "Options of format csv: delimiter, empty, format, formulas, types"),
        ("a.json", {}, "Add ?keys=NAME:S"),
    ],
)  # fmt: skip
def test_other_addresses_are_refused(path, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.json").touch()
    with pytest.raises(BadAddress) as refused:
        open_file(path, options).describe()
    assert words in str(refused.value)


def test_every_format_is_described():
    document = (Path(__file__).parents[4] / "docs/migrate/file-formats.md").read_text()
    assert [name for name in FORMATS if f"`{name}`" not in document] == []


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.csv", "t.parquet", "t"])
def test_no_format_has_a_name_before_it_is_finished(tmp_path, name):
    """After a kill or a stop, the partial file cannot be mistaken for a complete table, and can be continued."""
    options = {"format": "dynamodb-export"} if name == "t" else {}
    path = tmp_path / name
    for number in range(3):
        target = open_file(str(path), options)
        if number == 0:
            target.create(DEFINITION)
        else:
            target.reopen()
        target.write([simple_row(number)])
        target.close()
        assert not path.exists()
        with pytest.raises(TransferError, match=r"incomplete|does not exist|no manifest"):
            open_file(str(path), {**options, **({} if name in ("t.jsonl", "t.csv") else KEYS)}).describe()
    left = tmp_path / f"{name}.finishing"
    left.mkdir() if name == "t" else left.touch()
    target = open_file(str(path), options)
    target.finish()
    assert (
        len(scanned(open_file(str(path), {**options, **({} if name in ("t.jsonl", "t.csv") else KEYS)}))) == 3
    )


def test_a_file_with_an_unknown_key_is_not_overwritten(tmp_path):
    path = put(tmp_path, '{"pk":{"S":"a"},"sk":{"N":"1"}}\n')
    with pytest.raises(TransferError, match="exists already"):
        open_file(str(path), {}).create(DEFINITION)
    assert open_file(str(path), KEYS).create(DEFINITION) == []

"""ImportTable, DescribeImport and ListImports.

Sources: measurements of ack-api-quirks on the live service in October 2026 (its notes on imports), botocore's model,
and the developer guide for the formats ("DynamoDB data import format").
"""

from __future__ import annotations

import gzip
import json
import logging
from typing import Any

import pytest
import zstandard

from tests.adapters.dynamodb.features.exports_imports.conftest import ACCOUNT, HOUR_MS, TABLE_ARN, Exporter

KEY = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def parameters(name: str = "orders", **more: Any) -> dict[str, Any]:
    return {"TableName": name, **KEY, **more}


def given(prefix: str | None = "in/", **more: Any) -> dict[str, Any]:
    source = {"S3Bucket": "some-bucket"} | ({} if prefix is None else {"S3KeyPrefix": prefix})
    return {
        "S3BucketSource": source,
        "InputFormat": "DYNAMODB_JSON",
        "TableCreationParameters": parameters(),
        **more,
    }


def line(key: str, **more: Any) -> bytes:
    return json.dumps({"Item": {"pk": {"S": key}, **more}}).encode() + b"\n"


def begun(exporter: Exporter, **more: Any) -> dict[str, Any]:
    return exporter.ok("ImportTable", **given(**more))["ImportTableDescription"]


def described(exporter: Exporter, arn: str) -> dict[str, Any]:
    return exporter.ok("DescribeImport", ImportArn=arn)["ImportTableDescription"]


def imported(exporter: Exporter, **more: Any) -> dict[str, Any]:
    arn = begun(exporter, **more)["ImportArn"]
    exporter.work()
    return described(exporter, arn)


def counts(shown: dict[str, Any]) -> tuple[int, int, int]:
    return shown["ProcessedItemCount"], shown["ImportedItemCount"], shown["ErrorCount"]


def test_an_import_knows_its_bytes(exporter: Exporter) -> None:
    first, second = line("a"), line("b") + line("c")
    exporter.place.put("in/1.json", first)
    exporter.place.put("in/2.json", second)
    begun(exporter)
    progress = set()
    while exporter.step():
        progress.add(exporter.done_of_total())
    assert (0, len(first) + len(second)) in progress


def test_an_import_creates_a_table_with_the_items(exporter: Exporter) -> None:
    """IMPORT-001, IMPORT-003, IMPORT-006, IMPORT-008."""
    exporter.place.put("in/1.json", line("a", n={"N": "1"}) + b"\n" + line("b"))
    exporter.place.put("in/2.json", line("c") + line("a", n={"N": "2"}))
    exporter.place.put("out/3.json", line("d"))
    made = begun(exporter)
    now = exporter.service.clock.ms
    assert made == {
        "ImportArn": made["ImportArn"],
        "ImportStatus": "IN_PROGRESS",
        "TableArn": TABLE_ARN,
        "TableId": made["TableId"],
        "ClientToken": made["ClientToken"],
        "S3BucketSource": {"S3Bucket": "some-bucket", "S3KeyPrefix": "in/", "S3BucketOwner": ACCOUNT},
        "ErrorCount": 0,
        "CloudWatchLogGroupArn": f"arn:aws:logs:us-east-1:{ACCOUNT}:log-group:/aws-dynamodb/imports:*",
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "NONE",
        "TableCreationParameters": parameters(),
        "StartTime": now / 1000,
        "ProcessedSizeBytes": 0,
        "ProcessedItemCount": 0,
        "ImportedItemCount": 0,
    }
    assert made["ImportArn"].startswith(f"{TABLE_ARN}/import/0{now}-")
    assert exporter.error("DescribeTable", TableName="orders")[0] == "ResourceNotFoundException"
    assert exporter.step()
    assert exporter.service.described()["TableStatus"] == "CREATING"
    assert exporter.error("DeleteTable", TableName="orders")[0] == "ResourceInUseException"
    assert exporter.error("PutItem", TableName="orders", Item={"pk": {"S": "x"}})[0] == (
        "ResourceNotFoundException"
    )
    exporter.work()
    shown = described(exporter, made["ImportArn"])
    size = sum(len(data) for key, data in exporter.place.objects().items() if key.startswith("in/"))
    assert shown == made | {
        "ImportStatus": "COMPLETED",
        "EndTime": exporter.service.clock.ms / 1000,
        "ProcessedSizeBytes": size,
        "ProcessedItemCount": 4,
        "ImportedItemCount": 4,
    }
    table = exporter.service.described()
    assert (table["TableStatus"], table["TableId"]) == ("ACTIVE", made["TableId"])
    assert exporter.items("orders") == [
        {"n": {"N": "2"}, "pk": {"S": "a"}},
        {"pk": {"S": "b"}},
        {"pk": {"S": "c"}},
    ]
    exporter.put("ordinary")
    exporter.keep_history()
    exporter.ok("DeleteTable", TableName="orders")
    assert described(exporter, made["ImportArn"]) == shown


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
def test_an_export_comes_in_again(exporter: Exporter, format_: str) -> None:
    """IMPORT-020."""
    exporter.service.table()
    exporter.keep_history()
    odd = {"b": {"B": "AAE="}, "m": {"M": {"in 'quotes'": {"NULL": True}}}, "ns": {"NS": ["1", "-2.5"]}}
    exporter.put(*"abc", odd={"S": 'é\n"x"'}, **odd)
    exporter.put("long", s={"S": "é" * 20_000}, b={"B": "AAEC" * 20_000})
    manifest = exporter.exported(ExportFormat=format_, S3Prefix="p")["ExportManifest"]
    shown = imported(
        exporter,
        prefix=manifest.rpartition("/")[0] + "/data/",
        InputFormat=format_,
        InputCompressionType="GZIP",
        TableCreationParameters=parameters("again"),
    )
    assert shown["ImportStatus"] == "COMPLETED", shown
    assert counts(shown) == (4, 4, 0)
    assert exporter.items("again") == exporter.items("orders")


def test_the_manifests_are_errors(exporter: Exporter) -> None:
    """The export's root as prefix: what is no item counts, what is one is stored. IMPORT-020."""
    exporter.service.table()
    exporter.keep_history()
    exporter.put(*"abc")
    manifest = exporter.exported()["ExportManifest"]
    shown = imported(
        exporter,
        prefix=manifest.rpartition("/")[0],
        InputCompressionType="GZIP",
        TableCreationParameters=parameters("again"),
    )
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert counts(shown) == (7, 3, 4)
    assert len(exporter.items("again")) == 3


@pytest.mark.parametrize("compression", ["GZIP", "ZSTD"])
def test_compressions(exporter: Exporter, compression: str) -> None:
    data = line("a") + line("b")
    pack = gzip.compress if compression == "GZIP" else zstandard.ZstdCompressor().compress
    exporter.place.put("in/1", pack(data) + pack(line("c")))
    shown = imported(exporter, InputCompressionType=compression)
    assert counts(shown) == (3, 3, 0)
    assert len(exporter.items("orders")) == 3


def test_an_import_with_the_wrong_compression_fails(exporter: Exporter) -> None:
    """IMPORT-015."""
    exporter.place.put("in/1", line("a"))
    shown = imported(exporter, InputCompressionType="GZIP")
    assert counts(shown) == (1, 0, 1)
    assert shown["FailureCode"] == "ItemValidationError"
    assert exporter.service.described()["TableStatus"] == "ACTIVE"


CSV = b"""\xef\xbb\xbfpk,sort,name,blob
a,1,"x, ""y""\nz",AAE=
b,-2.50,,
c,3
"""
TYPED = {
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sort", "AttributeType": "N"},
        {"AttributeName": "blob", "AttributeType": "B"},
    ],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sort", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_blob",
            "KeySchema": [{"AttributeName": "blob", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


def test_an_import_reads_csv(exporter: Exporter) -> None:
    """IMPORT-015."""
    exporter.place.put("in/1.csv", CSV.replace(b"b,-2.50,,\n", b"b,-2.50,\n"))
    shown = imported(exporter, InputFormat="CSV", TableCreationParameters=parameters(**TYPED))
    assert shown["ImportStatus"] == "COMPLETED", shown
    assert exporter.items("orders") == [
        {"blob": {"B": "AAE="}, "name": {"S": 'x, "y"\nz'}, "pk": {"S": "a"}, "sort": {"N": "1"}},
        {"name": {"S": ""}, "pk": {"S": "b"}, "sort": {"N": "-2.5"}},
        {"pk": {"S": "c"}, "sort": {"N": "3"}},
    ]
    assert exporter.ok("Scan", TableName="orders", IndexName="by_blob")["Count"] == 1


def test_an_empty_key_cell_is_an_error(exporter: Exporter) -> None:
    exporter.place.put("in/1.csv", CSV + b",4,x,AAE=\nd,,x,AAE=\ne,5,x,AAE=,more\nf,6,x,AAE=\n")
    shown = imported(exporter, InputFormat="CSV", TableCreationParameters=parameters(**TYPED))
    assert counts(shown) == (7, 3, 4)  # an empty binary is no key of an index either


def test_csv_options(exporter: Exporter) -> None:
    """IMPORT-015."""
    exporter.place.put("in/1", b"a|x\nb|y\n")
    options = {"Csv": {"Delimiter": "|", "HeaderList": ["pk", "name"]}}
    shown = imported(exporter, InputFormat="CSV", InputFormatOptions=options)
    assert shown["InputFormatOptions"] == options
    assert exporter.items("orders") == [
        {"name": {"S": "x"}, "pk": {"S": "a"}},
        {"name": {"S": "y"}, "pk": {"S": "b"}},
    ]


def test_an_item_without_its_key(exporter: Exporter, caplog: pytest.LogCaptureFixture) -> None:
    """IMPORT-013."""
    caplog.set_level(logging.INFO, "tablegate")
    lines = [line(str(number)) for number in range(9)]
    exporter.place.put("in/1", b"".join([*lines[:4], b'{"Item":{"x":{"S":"y"}}}\n', *lines[4:]]))
    shown = imported(exporter)
    assert counts(shown) == (10, 9, 1)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert shown["FailureMessage"] == (
        "Some of the items failed validation checks and were not imported. Please check CloudWatch error logs for more details."
    )
    assert exporter.service.described()["TableStatus"] == "ACTIVE"
    assert len(exporter.items("orders")) == 9
    [told] = [
        record.facts  # type: ignore[attr-defined]
        for record in caplog.records
        if "itemS3Pointer" in getattr(record, "facts", {})
    ]
    assert told == {
        "itemS3Pointer": {"bucket": "some-bucket", "key": "in/1", "itemIndex": 4},
        "importArn": shown["ImportArn"],
        "errorMessages": ["One or more parameter values were invalid: Missing the key pk in the item"],
    }


@pytest.mark.parametrize(
    "bad",
    [
        b'{"Item":{"pk":{"S":""}}}\n',
        b'{"Item":{"pk":{"N":"1"}}}\n',
        b'{"Item":{"pk":{"S":"x"},"n":{"N":"one"}}}\n',
        b'{"Item":{"pk":{"S":"x"},"n":{"SS":["a","a"]}}}\n',
        b'{"Item":{"pk":{"S":"x"},"n":{"Q":"a"}}}\n',
        b'{"Item":{"pk":{"S":"x"},"n":7}}\n',
        b'{"Item":{"pk":{"S":"x"},"n":{"S":"' + b"a" * 409_600 + b'"}}}\n',
    ],
)
def test_items_that_cannot_be(exporter: Exporter, bad: bytes) -> None:
    exporter.place.put("in/1", line("a") + bad + line("b"))
    assert counts(imported(exporter)) == (3, 2, 1)


def test_a_line_that_cannot_be_read_ends_its_object(exporter: Exporter) -> None:
    """IMPORT-013."""
    lines = [line(str(number)) for number in range(9)]
    exporter.place.put("in/1", b"".join([*lines[:5], b"no JSON\n", *lines[5:]]))
    exporter.place.put("in/2", line("another"))
    shown = imported(exporter)
    assert counts(shown) == (7, 6, 1)


def test_objects_behind_each_other_on_a_line(exporter: Exporter) -> None:
    """moto's test_import_table_single_file_with_multiple_items, verified on the service."""
    together = b"".join(line(str(number)).rstrip() for number in range(5))
    exporter.place.put(
        "in/1", line("first") + together + b"\n" + line("last") + together.replace(b"S", b"X", 1)[:-1]
    )
    assert counts(imported(exporter)) == (12, 10, 2)  # a value without a type; an object that does not end
    assert len(exporter.items("orders")) == 7


def test_an_import_without_objects_completes(exporter: Exporter) -> None:
    """IMPORT-012."""
    shown = imported(exporter, prefix="nothing/")
    assert shown["ImportStatus"] == "COMPLETED"
    assert exporter.service.described()["TableStatus"] == "ACTIVE"
    assert exporter.items("orders") == []


def test_an_import_from_a_missing_bucket_fails(exporter: Exporter) -> None:
    """IMPORT-012."""
    shown = imported(exporter, S3BucketSource={"S3Bucket": "another-bucket"})
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert counts(shown) == (0, 0, 0)
    assert "TableId" in shown
    assert exporter.error("DescribeTable", TableName="orders")[0] == "ResourceNotFoundException"


def test_a_prefix_is_no_folder(exporter: Exporter) -> None:
    """IMPORT-014."""
    for key in ("data", "data.bak", "data2/x", "other"):
        exporter.place.put(key, line(key)) if key != "data" else None
    assert counts(imported(exporter, prefix="data")) == (2, 2, 0)
    one = imported(exporter, prefix="data2/x", TableCreationParameters=parameters("one"))
    assert counts(one) == (1, 1, 0)
    everything = imported(exporter, prefix=None, TableCreationParameters=parameters("everything"))
    assert counts(everything) == (3, 3, 0)


def test_two_imports_of_one_name(exporter: Exporter) -> None:
    """IMPORT-018, IMPORT-019."""
    first, second = begun(exporter)["ImportArn"], begun(exporter)["ImportArn"]
    exporter.work()
    assert described(exporter, first)["ImportStatus"] == "COMPLETED"
    shown = described(exporter, second)
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "TableAlreadyExists")


def test_tokens(exporter: Exporter) -> None:
    """IMPORT-017, IMPORT-019."""
    first = begun(exporter, ClientToken="one")["ImportArn"]
    assert begun(exporter, ClientToken="one", prefix="elsewhere/")["ImportArn"] == first
    exporter.step()
    assert begun(exporter, ClientToken="one")["ImportArn"] == first
    other = given(ClientToken="one", TableCreationParameters=parameters("other"))
    assert exporter.error("ImportTable", **other) == (
        "ImportConflictException",
        "Import conflict: Duplicate request detected with conflicting parameters",
    )
    exporter.work()
    in_use = ("ResourceInUseException", "Table already exists: orders")
    assert exporter.error("ImportTable", **given(ClientToken="one")) == in_use
    assert exporter.error("ImportTable", **given()) == in_use
    exporter.ok("DeleteTable", TableName="orders")
    assert begun(exporter, ClientToken="one")["ImportArn"] == first
    exporter.work()
    assert exporter.error("DescribeTable", TableName="orders")[0] == "ResourceNotFoundException"
    exporter.service.clock.ms += 8 * HOUR_MS
    assert begun(exporter, ClientToken="one")["ImportArn"] != first


VALUES = "One or more parameter values were invalid: "
ENUM = "failed to satisfy constraint: Member must satisfy enum value set: "


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            {"TableCreationParameters": parameters(BillingMode="PROVISIONED")},
            VALUES
            + "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        ),
        (
            {"InputFormatOptions": {"Csv": {"Delimiter": ";"}}},
            "Invalid Request: Unsupported InputFormatOptions for the given input format: DYNAMODB_JSON.",
        ),
        (
            {"InputCompressionType": "LZ4"},
            f"1 validation error detected: Value 'LZ4' at 'inputCompressionType' {ENUM}[ZSTD, NONE, GZIP]",
        ),
        (
            {"InputFormat": "CSV", "InputFormatOptions": {"Csv": {"Delimiter": ";;"}}},
            "2 validation errors detected: ",
        ),
        (
            {"TableCreationParameters": parameters(KeySchema=[{"AttributeName": "x", "KeyType": "HASH"}])},
            VALUES,
        ),
    ],
)
def test_refusals(exporter: Exporter, more: dict[str, Any], expected: str) -> None:
    code, text = exporter.error("ImportTable", **given(**more))
    assert code == "ValidationException"
    assert text.startswith(expected)
    assert exporter.ok("ListImports") == {"ImportSummaryList": []}


def test_an_unknown_import_is_not_found(exporter: Exporter) -> None:
    unknown = f"{TABLE_ARN}/import/01700000000000-0123abcd"
    assert exporter.error("DescribeImport", ImportArn=unknown)[0] == "ImportNotFoundException"
    for wrong in (TABLE_ARN, f"{TABLE_ARN}/export/01700000000000-0123abcd"):
        assert exporter.error("DescribeImport", ImportArn=wrong) == (
            "ValidationException",
            "Invalid Import ARN",
        )


def test_lists(exporter: Exporter) -> None:
    """IMPORT-016, EXPORT-006."""
    made = []
    for number in range(11):
        exporter.service.clock.ms += 1
        made.append(begun(exporter, TableCreationParameters=parameters(f"name{number}"))["ImportArn"])
    page = exporter.ok("ListImports")
    assert [each["ImportArn"] for each in page["ImportSummaryList"]] == made[:0:-1]
    assert set(page["ImportSummaryList"][0]) == {
        "ImportArn", "ImportStatus", "TableArn", "S3BucketSource", "CloudWatchLogGroupArn", "InputFormat", "StartTime",
    }  # fmt: skip
    assert len(page["NextToken"]) >= 112 and len(page["NextToken"]) % 16 == 0
    rest = exporter.ok("ListImports", NextToken=page["NextToken"])
    assert [each["ImportArn"] for each in rest["ImportSummaryList"]] == made[:1]
    exporter.work()
    exporter.ok("DeleteTable", TableName="name3")
    arn = TABLE_ARN.replace("orders", "name3")
    assert len(exporter.ok("ListImports", TableArn=arn)["ImportSummaryList"]) == 1
    assert exporter.error("ListExports", NextToken=page["NextToken"])[1] == (
        f"Invalid Request: Provided nextToken is invalid: {page['NextToken']}"
    )


@pytest.mark.usefixtures("short_claims")
def test_another_server_continues_after_every_batch(exporter: Exporter) -> None:
    """A server is killed after each batch. Nothing is lost, and nothing is counted twice."""
    keys = [f"{number:04}" for number in range(700)]
    for first in range(0, 700, 100):
        exporter.place.put(
            f"in/{first:04}", b"".join(map(line, keys[first : first + 100])) + b'{"Item":{}}\n'
        )
    arn = begun(exporter)["ImportArn"]
    batches = 0
    while exporter.step():
        exporter.restart()
        batches += 1
    assert batches > 5
    shown = described(exporter, arn)
    assert counts(shown) == (707, 700, 7)
    assert [item["pk"]["S"] for item in exporter.items("orders")] == keys


@pytest.mark.usefixtures("without_ion")
def test_ion_is_refused_without_its_library(exporter: Exporter) -> None:
    code, text = exporter.error("ImportTable", **given(InputFormat="ION"))
    assert code == "ValidationException"
    assert "tablegate[ion]" in text

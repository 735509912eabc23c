"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations and CancelBulkOperation, as botocore 1.44.5's model and the
documentation in it have them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.adapters.dynamodb.features.exports_imports.conftest import HOUR_MS, TABLE_ARN, Exporter
from tests.support.capabilities import needs
from tests.support.clock import Clock

ABSENT = {"ConditionExpression": "attribute_not_exists(pk)"}


@pytest.fixture
def orders(exporter: Exporter) -> Exporter:
    exporter.service.table()
    return exporter


def line(key: str, beside: Any = None, **more: Any) -> bytes:
    return json.dumps({"Item": {"pk": {"S": key}, **more}, **(beside or {})}).encode() + b"\n"


def given(**more: Any) -> dict[str, Any]:
    return {
        "TableName": "orders",
        "InputS3Configuration": {
            "S3Bucket": "some-bucket",
            "InputFormat": "DYNAMODB_JSON",
            "S3KeyPrefix": "in/",
        },
        "OutputS3Configuration": {
            "S3Bucket": "some-bucket",
            "S3KeyPrefix": "out",
            "OutputType": ["ERROR", "CONDITION_CHECK_FAILURE"],
        },
        **more,
    }


def begun(exporter: Exporter, **more: Any) -> dict[str, Any]:
    return exporter.ok("StartBulkPutItems", **given(**more))["BulkOperationDescription"]


def described(exporter: Exporter, arn: str) -> dict[str, Any]:
    return exporter.ok("DescribeBulkOperation", BulkOperationArn=arn)["BulkOperationDescription"]


def done(exporter: Exporter, **more: Any) -> dict[str, Any]:
    arn = begun(exporter, **more)["BulkOperationArn"]
    exporter.work()
    return described(exporter, arn)


def report(exporter: Exporter, kind: str) -> list[dict[str, Any]]:
    objects = exporter.place.objects()
    found = [gzip.decompress(data) for key, data in objects.items() if f"/{kind}/" in key]
    return [json.loads(each) for data in found for each in data.splitlines()]


def test_a_bulk_put(orders: Exporter) -> None:
    orders.put("a", n={"N": "0"})
    objects = {"in/1": line("a", n={"N": "1"}) + line("b"), "in/2": line("c")}
    for key, data in objects.items():
        orders.place.put(key, data)
    made = begun(orders, TableName=TABLE_ARN, PerformanceTier="ACCELERATED")
    now = orders.service.clock.ms / 1000
    whole = given(TableName=TABLE_ARN)
    assert made == {
        "BulkOperationArn": made["BulkOperationArn"],
        "BulkOperationStatus": "IN_PROGRESS",
        "TableDetails": [{"TableName": "orders", "TableId": orders.service.described()["TableId"]}],
        "ClientToken": made["ClientToken"],
        "InputS3Configuration": whole["InputS3Configuration"],
        "OutputS3Configuration": whole["OutputS3Configuration"],
        "StartTime": now,
        "ProcessedItemCount": 0,
        "ProcessedInputBytes": 0,
        "FailedItemCount": 0,
        "PerformanceTier": "ACCELERATED",
    }
    orders.work()
    size = sum(map(len, objects.values()))
    shown = described(orders, made["BulkOperationArn"])
    assert shown == made | {
        "BulkOperationStatus": "COMPLETED",
        "EndTime": orders.service.clock.ms / 1000,
        "ProcessedItemCount": 3,
        "ProcessedInputBytes": size,
        "TotalInputBytes": size,
        "BulkOperationUsage": [{"TableName": "orders", "BulkPutBytes": 12, "Table": {"BulkPutBytes": 12}}],
    }
    assert orders.items("orders") == [
        {"n": {"N": "1"}, "pk": {"S": "a"}},
        {"pk": {"S": "b"}},
        {"pk": {"S": "c"}},
    ]
    folder = f"out/AWSDynamoDB/{made['BulkOperationArn'].rpartition('/')[2]}/"
    written = {key: data for key, data in orders.place.objects().items() if key.startswith("out/")}
    assert set(written) == {
        folder + name
        for name in (
            "manifest-summary.json",
            "manifest-summary.md5",
            "manifest-files.json",
            "manifest-files.md5",
        )
    }
    for name in ("manifest-summary", "manifest-files"):
        digest = hashlib.md5(written[f"{folder}{name}.json"]).digest()
        assert base64.b64decode(written[f"{folder}{name}.md5"]) == digest


def test_errors_and_conditions(orders: Exporter) -> None:
    orders.put("there", n={"N": "0"})
    orders.place.put(
        "in/1",
        line("there", ABSENT, n={"N": "1"})
        + line("new", ABSENT)
        + b'{"Item":{"x":{"S":"y"}}}\n'
        + line("named", {"ConditionExpression": "#n = :n", "ExpressionAttributeNames": {"#n": "n"},
                         "ExpressionAttributeValues": {":n": {"N": "7"}}})
        + line("bad", {"ConditionExpression": "n ="})
        + b"no JSON\n"
        + line("not read"),
    )  # fmt: skip
    shown = done(orders)
    assert shown["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (6, 3)
    assert "FailureCode" not in shown
    assert [item["pk"]["S"] for item in orders.items("orders")] == ["new", "there"]
    assert orders.items("orders")[1]["n"] == {"N": "0"}
    errors = report(orders, "ERROR")
    assert [each["itemS3Pointer"] for each in errors] == [
        {"bucket": "some-bucket", "key": "in/1", "itemIndex": index} for index in (2, 4, 5)
    ]
    assert errors[0]["Item"] == {"x": {"S": "y"}}
    assert (
        errors[0]["errorMessage"]
        == "One or more parameter values were invalid: Missing the key pk in the item"
    )
    assert "Item" not in errors[2]
    refused = report(orders, "CONDITION_CHECK_FAILURE")
    assert [each["itemS3Pointer"]["itemIndex"] for each in refused] == [0, 3]
    assert refused[0]["Item"] == {"n": {"N": "1"}, "pk": {"S": "there"}}
    assert refused[0]["ExistingItem"] == {"n": {"N": "0"}, "pk": {"S": "there"}}
    assert "ExistingItem" not in refused[1]
    [summary] = [
        json.loads(data) for key, data in orders.place.objects().items() if key.endswith("summary.json")
    ]
    assert (summary["processedItemCount"], summary["failedItemCount"]) == (6, 3)


def test_conditions_alone_are_no_errors(orders: Exporter) -> None:
    orders.put("there")
    orders.place.put("in/1", line("there", ABSENT))
    output = given()["OutputS3Configuration"] | {"OutputType": ["ERROR"]}
    shown = done(orders, OutputS3Configuration=output)
    assert shown["BulkOperationStatus"] == "COMPLETED"
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (1, 0)
    assert report(orders, "CONDITION_CHECK_FAILURE") == []


def test_ion_and_its_conditions(orders: Exporter) -> None:
    orders.put("there")
    condition = 'ConditionExpression:"attribute_not_exists(#k)",ExpressionAttributeNames:{\'#k\':"pk"}'
    orders.place.put(
        "in/1", f'{{Item:{{pk:"there"}},{condition}}}\n$ion_1_0 {{Item:{{pk:"new"}},{condition}}}\n'.encode()
    )
    source = given()["InputS3Configuration"] | {"InputFormat": "ION"}
    shown = done(orders, InputS3Configuration=source)
    assert (shown["BulkOperationStatus"], shown["ProcessedItemCount"]) == ("COMPLETED", 2)
    assert len(report(orders, "CONDITION_CHECK_FAILURE")) == 1


def test_usage_of_indexes(exporter: Exporter) -> None:
    index = {
        "IndexName": "by_c",
        "KeySchema": [{"AttributeName": "c", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "c")]
    exporter.service.table(AttributeDefinitions=definitions, GlobalSecondaryIndexes=[index])
    exporter.place.put("in/1", line("a", c={"S": "x"}, d={"S": "12345"}) + line("b"))
    [usage] = done(exporter)["BulkOperationUsage"]
    assert usage == {
        "TableName": "orders",
        "BulkPutBytes": 19,
        "Table": {"BulkPutBytes": 14},
        "GlobalSecondaryIndexes": {"by_c": {"BulkPutBytes": 5}},
    }


def test_tokens(orders: Exporter) -> None:
    first = begun(orders, ClientToken="one")["BulkOperationArn"]
    assert begun(orders, ClientToken="one")["BulkOperationArn"] == first
    code, _ = orders.error("StartBulkPutItems", **given(ClientToken="one", MaxWriteRequestUnits=1024))
    assert code == "IdempotentParameterMismatchException"
    orders.service.clock.ms += 8 * HOUR_MS
    assert begun(orders, ClientToken="one")["BulkOperationArn"] != first


def test_cancelled(orders: Exporter) -> None:
    orders.place.put("in/1", b"".join(line(f"{number:04}") for number in range(1_000)))
    arn = begun(orders)["BulkOperationArn"]
    orders.step()
    orders.step()
    answer = orders.ok("CancelBulkOperation", BulkOperationArn=arn)
    assert answer == {"BulkOperationArn": arn, "BulkOperationStatus": "CANCELLING"}
    assert described(orders, arn)["BulkOperationStatus"] == "CANCELLING"
    orders.work()
    shown = described(orders, arn)
    assert shown["BulkOperationStatus"] == "CANCELLED"
    assert "FailureCode" in shown
    assert len(orders.items("orders")) == shown["ProcessedItemCount"]
    assert 0 < shown["ProcessedItemCount"] < 1_000
    assert orders.ok("CancelBulkOperation", BulkOperationArn=arn)["BulkOperationStatus"] == "CANCELLED"


def test_a_bulk_put_fails_if_its_table_is_created_again(orders: Exporter) -> None:
    orders.place.put("in/1", b"".join(line(f"{number:04}") for number in range(500)))
    arn = begun(orders)["BulkOperationArn"]
    orders.step()
    orders.step()
    orders.ok("DeleteTable", TableName="orders")
    orders.service.table()
    orders.work()
    assert described(orders, arn)["BulkOperationStatus"] == "FAILED"
    assert orders.items("orders") == []


def test_lists(orders: Exporter) -> None:
    made = []
    for _ in range(11):
        orders.service.clock.ms += 1
        made.append(begun(orders)["BulkOperationArn"])
    page = orders.ok("ListBulkOperations")
    assert [each["BulkOperationArn"] for each in page["BulkOperationsSummaryList"]] == made[:0:-1]
    rest = orders.ok("ListBulkOperations", NextToken=page["NextToken"])
    assert [each["BulkOperationArn"] for each in rest["BulkOperationsSummaryList"]] == made[:1]


def test_refusals(orders: Exporter) -> None:
    def code(**more: Any) -> str:
        return orders.error("StartBulkPutItems", **given(**more))[0]

    assert code(TableName="nobody") == "ResourceNotFoundException"
    assert code(MaxWriteRequestUnits=1023) == "ValidationException"
    assert code(OutputS3Configuration={"OutputType": ["ERROR"]}) == "ValidationException"
    assert (
        code(InputS3Configuration={"S3Bucket": "some-bucket", "InputFormat": "CSV"}) == "ValidationException"
    )
    unknown = f"{TABLE_ARN}/bulk-operation/01700000000000-0123abcd"
    for operation in ("DescribeBulkOperation", "CancelBulkOperation"):
        assert orders.error(operation, BulkOperationArn=unknown)[0] == "ResourceNotFoundException"


@pytest.mark.usefixtures("short_claims")
def test_another_server_continues_after_every_batch(exporter: Exporter) -> None:
    """A server is killed after each batch: no put happens twice, so that every condition holds, and a stream has each once."""
    exporter.service.table(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    keys = [f"{number:04}" for number in range(600)]
    exporter.place.put("in/1", b"".join(line(key, ABSENT) for key in [*keys, *keys[:5]]) + b"no JSON\n")
    arn = begun(exporter)["BulkOperationArn"]
    while exporter.step():
        exporter.restart()
    shown = described(exporter, arn)
    assert (shown["ProcessedItemCount"], shown["FailedItemCount"]) == (606, 1)
    assert [item["pk"]["S"] for item in exporter.items("orders")] == keys
    assert len(report(exporter, "CONDITION_CHECK_FAILURE")) == 5
    assert len(report(exporter, "ERROR")) == 1
    with exporter.service.gateway.engine._store.read() as session:
        assert session.query("SELECT count(*) FROM changes") == [(600,)]


@needs("global_tables")
def test_a_global_table_is_refused(clock: Clock, tmp_path: Path) -> None:
    """Developer guide, "Bulk put items considerations, quotas, and permissions"."""
    with DynamoDBService.opened(clock, namespaces="separate", s3_folder=tmp_path) as service:
        service.table()
        replica = [{"Create": {"RegionName": "us-west-2"}}]
        service.call("UpdateTable", {"TableName": "orders", "ReplicaUpdates": replica})
        assert service.last.status == 200
        code, text = service.error("StartBulkPutItems", given())
        assert (code, "global tables" in text) == ("ValidationException", True)
        assert service.call("ListBulkOperations") == {"BulkOperationsSummaryList": []}


@pytest.mark.usefixtures("without_ion")
def test_ion_is_refused_without_its_library(orders: Exporter) -> None:
    source = given()["InputS3Configuration"] | {"InputFormat": "ION"}
    code, text = orders.error("StartBulkPutItems", **given(InputS3Configuration=source))
    assert code == "ValidationException"
    assert "tablegate[ion]" in text

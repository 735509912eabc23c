"""ExportTableToPointInTime, DescribeExport and ListExports.

Sources: measurements of ack-api-quirks on the live service in October 2026 (its notes on exports), botocore's model,
and the developer guide for the objects ("DynamoDB table export output format").
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import re
from typing import Any

import pytest

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, text
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tests.adapters.dynamodb.features.exports_imports.conftest import HOUR_MS, TABLE_ARN, Exporter

ITEM = {
    "n": {"N": "1.5"},
    "b": {"B": "AAE="},
    "l": {"L": [{"BOOL": True}, {"NULL": True}]},
    "s": {"SS": ["x", "y"]},
}


@pytest.fixture
def orders(exporter: Exporter) -> Exporter:
    exporter.service.table()
    exporter.service.clock.ms += 10_000
    exporter.keep_history()
    return exporter


def lines_of(exporter: Exporter, folder: str) -> list[dict[str, Any]]:
    objects = exporter.place.objects()
    found = [
        gzip.decompress(data)
        for key, data in objects.items()
        if key.startswith(folder) and key.endswith(".gz")
    ]
    return [json.loads(line) for data in found for line in data.splitlines()]


def test_a_full_export_writes_items_and_manifests(orders: Exporter) -> None:
    """EXPORT-016, EXPORT-017, EXPORT-022."""
    orders.put("a", "b", "c", **ITEM)
    begun = orders.export(S3Prefix="some/prefix")
    now = orders.service.clock.ms / 1000
    assert re.fullmatch(rf"{TABLE_ARN}/export/0{orders.service.clock.ms}-[0-9a-f]{{8}}", begun["ExportArn"])
    assert begun == {
        "ExportArn": begun["ExportArn"],
        "ExportStatus": "IN_PROGRESS",
        "StartTime": now,
        "ExportTime": now,
        "TableArn": TABLE_ARN,
        "TableId": orders.service.described()["TableId"],
        "ClientToken": begun["ClientToken"],
        "S3Bucket": "some-bucket",
        "S3Prefix": "some/prefix",
        "S3SseAlgorithm": "AES256",
        "ExportFormat": "DYNAMODB_JSON",
        "DestinationType": "S3",
    }
    orders.put("later")
    orders.work()
    shown = orders.ok("DescribeExport", ExportArn=begun["ExportArn"])["ExportDescription"]
    folder = f"some/prefix/AWSDynamoDB/{begun['ExportArn'].rpartition('/')[2]}/"
    ended = orders.service.clock.ms / 1000
    assert shown == begun | {
        "ExportStatus": "COMPLETED",
        "EndTime": ended,
        "ExportManifest": folder + "manifest-summary.json",
        "ItemCount": 3,
        "BilledSizeBytes": shown["BilledSizeBytes"],
    }
    assert shown["BilledSizeBytes"] > 0
    objects = orders.place.objects()
    [data_key] = [key for key in objects if key.startswith(folder + "data/")]
    assert re.fullmatch(r"[a-z0-9]{26}\.json\.gz", data_key.rpartition("/")[2])
    assert set(objects) == {data_key} | {
        folder + name
        for name in (
            "_started", "manifest-summary.json", "manifest-summary.md5", "manifest-files.json", "manifest-files.md5",
        )
    }  # fmt: skip
    assert objects[folder + "_started"] == b""
    for name in ("manifest-summary", "manifest-files"):
        digest = hashlib.md5(objects[f"{folder}{name}.json"]).digest()
        assert base64.b64decode(objects[f"{folder}{name}.md5"]) == digest
    assert json.loads(objects[folder + "manifest-summary.json"]) == {
        "version": "2020-06-30",
        "exportArn": begun["ExportArn"],
        "startTime": "2023-11-14T22:13:30.126Z",
        "endTime": "2023-11-14T22:13:30.127Z",
        "tableArn": TABLE_ARN,
        "tableId": begun["TableId"],
        "exportTime": "2023-11-14T22:13:30.126Z",
        "s3Bucket": "some-bucket",
        "s3Prefix": "some/prefix",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": folder + "manifest-files.json",
        "billedSizeBytes": shown["BilledSizeBytes"],
        "itemCount": 3,
        "outputFormat": "DYNAMODB_JSON",
    }
    [listed] = [json.loads(line) for line in objects[folder + "manifest-files.json"].splitlines()]
    assert listed == {
        "itemCount": 3,
        "md5Checksum": base64.b64encode(hashlib.md5(objects[data_key]).digest()).decode(),
        "etag": listed["etag"],
        "dataFileS3Key": data_key,
    }
    found = sorted(lines_of(orders, folder), key=repr)
    assert found == [{"Item": {"pk": {"S": key}, **ITEM}} for key in "abc"]


def test_an_empty_table_is_one_empty_file(orders: Exporter) -> None:
    shown = orders.exported()
    assert shown["ItemCount"] == 0
    folder = shown["ExportManifest"].rpartition("/")[0]
    assert folder.startswith("AWSDynamoDB/")
    [data] = [data for key, data in orders.place.objects().items() if key.startswith(folder + "/data/")]
    assert gzip.decompress(data) == b""


def test_an_export_of_an_earlier_time_has_the_items_of_that_time(orders: Exporter) -> None:
    orders.put("a", "b")
    then = orders.service.clock.ms / 1000
    orders.put("c")
    orders.ok("DeleteItem", TableName="orders", Key={"pk": {"S": "a"}})
    orders.service.clock.ms += 1_000
    shown = orders.exported(ExportTime=then)
    assert shown["ExportTime"] == then
    found = lines_of(orders, "AWSDynamoDB/")
    assert sorted(line["Item"]["pk"]["S"] for line in found) == ["a", "b"]


def test_an_export_can_be_in_ion(orders: Exporter) -> None:
    orders.put("a", **ITEM)
    shown = orders.exported(ExportFormat="ION")
    folder = shown["ExportManifest"].rpartition("/")[0]
    [(key, data)] = [pair for pair in orders.place.objects().items() if pair[0].startswith(folder + "/data/")]
    assert key.endswith(".ion.gz")
    assert (
        gzip.decompress(data).decode()
        == ('$ion_1_0 {Item:{b:{{AAE=}},l:[true,null],n:1.5,pk:"a",s:$dynamodb_SS::["x","y"]}}\n')
        or "$ion_1_0 {Item:{" in gzip.decompress(data).decode()
    )
    assert json.loads(orders.place.objects()[shown["ExportManifest"]])["outputFormat"] == "ION"


@pytest.mark.usefixtures("short_claims")
def test_several_files_and_a_restart_in_between(orders: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "FILE_ITEMS", 7)
    orders.put(*(f"{number:03}" for number in range(40)))
    arn = orders.export()["ExportArn"]
    while orders.service.gateway.engine.background.next_batch():
        pass
    progress = set()
    while orders.step():
        progress.add(orders.done_of_total())
        orders.restart()
    assert progress - {None} == {(items, 40) for items in (0, 7, 14, 21, 28, 35, 40)}
    shown = orders.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", 40)
    folder = shown["ExportManifest"].rpartition("/")[0]
    assert sorted(line["Item"]["pk"]["S"] for line in lines_of(orders, folder)) == [
        f"{n:03}" for n in range(40)
    ]
    files = [
        json.loads(line) for line in orders.place.objects()[f"{folder}/manifest-files.json"].splitlines()
    ]
    assert [file["itemCount"] for file in files] == [7, 7, 7, 7, 7, 5]
    assert len([key for key in orders.place.objects() if "/data/" in key]) == 6


def test_the_table_may_go_meanwhile(orders: Exporter) -> None:
    """EXPORT-013, EXPORT-020."""
    orders.put("a", "b")
    arn = orders.export()["ExportArn"]
    orders.ok("DeleteTable", TableName="orders")
    orders.work()
    shown = orders.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", 2)
    assert orders.ok("ListExports", TableArn=TABLE_ARN) == {"ExportSummaries": []}
    assert len(orders.ok("ListExports")["ExportSummaries"]) == 1


def test_the_copy_made_for_an_export_is_removed_after_it(orders: Exporter) -> None:
    orders.put("a", "b")
    orders.exported()
    orders.exported()
    with orders.service.gateway.engine._store.read() as session:
        assert session.query("SELECT count(*) FROM tables") == [(1,)]
        assert session.query("SELECT count(*) FROM rows") == [(2,)]


def test_filters(orders: Exporter) -> None:
    """EXPORT-008."""
    orders.put("a", "b", n={"N": "1"}, x={"S": "x"})
    orders.put("c", n={"N": "2"})
    spec = {
        "FilterExpression": "n = :n",
        "ProjectionExpression": "pk, #n",
        "ExpressionAttributeNames": {"#n": "n"},
        "ExpressionAttributeValues": {":n": {"N": "1"}},
    }
    shown = orders.exported(FilterSpecification=spec)
    assert (shown["ItemCount"], shown["FilterSpecification"]) == (2, spec)
    found = sorted(lines_of(orders, "AWSDynamoDB/"), key=repr)
    assert found == [{"Item": {"pk": {"S": key}, "n": {"N": "1"}}} for key in "ab"]
    key = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "c"}}}
    assert orders.exported(FilterSpecification=key)["ItemCount"] == 1


def test_a_filter_that_cannot_be(orders: Exporter) -> None:
    code, text = orders.error(
        "ExportTableToPointInTime",
        TableArn=TABLE_ARN,
        S3Bucket="some-bucket",
        FilterSpecification={"FilterExpression": "n ="},
    )
    assert code == "ValidationException"
    assert "FilterExpression" in text


# Refusals

INVALID = "Invalid Request: "
VALUES = "One or more parameter values were invalid: "
ENUM = "failed to satisfy constraint: Member must satisfy enum value set: "
SPEC = {"ExportFromTime": 1_700_000_000}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"TableArn": "orders"}, ("ValidationException", f"{VALUES}tableArn is not a valid ARN")),
        ({"TableArn": f"{TABLE_ARN}/index/x"}, ("ValidationException", f"{INVALID}Table ARN is invalid.")),
        ({"TableArn": TABLE_ARN + "x"}, ("TableNotFoundException", f"Table not found: {TABLE_ARN}x")),
        (
            {"IncrementalExportSpecification": SPEC},
            (
                "ValidationException",
                f"{INVALID}Export Type expected to be Incremental Export when incremental export specification is provided",
            ),
        ),
        (
            {"IncrementalExportSpecification": SPEC, "ExportType": "FULL_EXPORT"},
            (
                "ValidationException",
                f"{INVALID}When Export Type is Full Export , Incremental Export Specification should not be provided",
            ),
        ),
        (
            {"ExportType": "INCREMENTAL_EXPORT"},
            (
                "ValidationException",
                f"{INVALID}Incremental Export Specification expected when export type is set as Incremental Export",
            ),
        ),
        (
            {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {}},
            ("ValidationException", f"{INVALID}ExportFromTime must be provided in IncrementalExportSpecification"),
        ),
        (
            {"S3SseKmsKeyId": "alias/x"},
            ("ValidationException", f"{INVALID}KMS Key Id is not supported for this encryption type"),
        ),
        (
            {"FilterSpecification": {}},
            (
                "ValidationException",
                f"{INVALID}Invalid FilterSpecification: The specification can not be empty",
            ),
        ),
        ({"ExportTime": 1_700_000_000}, ("InvalidExportTimeException", "Export Time is invalid")),
        ({"ExportTime": 1_800_000_000}, ("InvalidExportTimeException", "Export Time is invalid")),
        (
            {"ExportFormat": "CSV"},
            (
                "ValidationException",
                f"1 validation error detected: Value 'CSV' at 'exportFormat' {ENUM}[DYNAMODB_JSON, ION]",
            ),
        ),
    ],
)  # fmt: skip
def test_refusals(orders: Exporter, given: dict[str, Any], expected: tuple[str, str]) -> None:
    """EXPORT-001, EXPORT-003, EXPORT-005."""
    whole = {"TableArn": TABLE_ARN, "S3Bucket": "some-bucket", **given}
    assert orders.error("ExportTableToPointInTime", **whole) == expected
    assert orders.ok("ListExports") == {"ExportSummaries": []}


def test_an_export_needs_point_in_time_recovery(exporter: Exporter) -> None:
    """EXPORT-001."""
    exporter.service.table()
    assert exporter.error("ExportTableToPointInTime", TableArn=TABLE_ARN, S3Bucket="some-bucket") == (
        "PointInTimeRecoveryUnavailableException",
        "Point in time recovery is not enabled for table 'orders'",
    )


def test_an_export_needs_an_object_store_in_the_settings(service: Any) -> None:
    service.table()
    code, text = service.error("ExportTableToPointInTime", {"TableArn": TABLE_ARN, "S3Bucket": "some-bucket"})
    assert code == "ValidationException"
    assert text == (
        "Invalid Request: ExportTableToPointInTime is not switched on in this server: start it with --s3-endpoint-url or "
        "--s3-folder"
    )
    assert service.call("ListExports") == {"ExportSummaries": []}


def test_an_export_to_a_missing_bucket_fails(orders: Exporter) -> None:
    """EXPORT-010."""
    arn = orders.export(S3Bucket="another-bucket")["ExportArn"]
    orders.work()
    shown = orders.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (shown["ExportStatus"], shown["FailureCode"]) == ("FAILED", "S3NoSuchBucket")
    assert shown["FailureMessage"].startswith("The specified bucket does not exist (")
    assert "ExportManifest" not in shown and "ItemCount" not in shown and "EndTime" in shown


def test_tokens(orders: Exporter) -> None:
    """EXPORT-009, EXPORT-026."""
    first = orders.export(ClientToken="one")["ExportArn"]
    assert orders.export(ClientToken="one")["ExportArn"] == first
    assert orders.export()["ExportArn"] != orders.export()["ExportArn"] != first
    orders.work()
    assert orders.export(ClientToken="one")["ExportArn"] == first
    changed = {
        "TableArn": TABLE_ARN,
        "S3Bucket": "some-bucket",
        "ClientToken": "one",
        "S3SseAlgorithm": "AES256",
    }
    assert orders.error("ExportTableToPointInTime", **changed) == (
        "ExportConflictException",
        "Export conflict: Duplicate request detected with conflicting parameters",
    )
    orders.service.clock.ms += 8 * HOUR_MS - 1
    assert orders.export(ClientToken="one")["ExportArn"] == first
    orders.service.clock.ms += 2
    assert orders.export(ClientToken="one")["ExportArn"] != first


def test_a_token_may_be_long(orders: Exporter) -> None:
    token = random.Random(1).randbytes(1500).hex()
    first = orders.export(ClientToken=token)
    assert first["ClientToken"] == token
    assert orders.export(ClientToken=token)["ExportArn"] == first["ExportArn"]
    assert orders.export(ClientToken=token[:-1])["ExportArn"] != first["ExportArn"]


def test_an_unknown_export_is_not_found(orders: Exporter) -> None:
    """EXPORT-006."""
    unknown = f"{TABLE_ARN}/export/01700000000000-0123abcd"
    assert orders.error("DescribeExport", ExportArn=unknown) == (
        "ExportNotFoundException",
        f"Export not found: Export not found: {unknown}",
    )
    for wrong in (TABLE_ARN, f"{TABLE_ARN}/import/01700000000000-0123abcd", "x" * 37):
        assert orders.error("DescribeExport", ExportArn=wrong) == (
            "ValidationException",
            "Invalid Export ARN",
        )


def test_lists(orders: Exporter) -> None:
    made = []
    for number in range(12):
        orders.service.clock.ms += 1
        more = {"ExportType": "FULL_EXPORT"} if number % 2 else {}
        made.append(orders.export(**more)["ExportArn"])
    first = orders.ok("ListExports")
    assert [each["ExportArn"] for each in first["ExportSummaries"]] == made[:1:-1]
    assert first["ExportSummaries"][0] == {
        "ExportArn": made[-1],
        "ExportStatus": "IN_PROGRESS",
        "ExportType": "FULL_EXPORT",
    }
    rest = orders.ok("ListExports", NextToken=first["NextToken"], TableArn=TABLE_ARN, MaxResults=2)
    assert [each["ExportArn"] for each in rest["ExportSummaries"]] == made[1::-1]
    assert "NextToken" not in rest
    assert orders.error("ListExports", NextToken="xyz") == (
        "ValidationException",
        "Invalid Request: Provided nextToken is invalid: xyz",
    )
    assert orders.error("ListExports", MaxResults=26)[0] == "ValidationException"
    orders.work()
    orders.service.clock.ms += 90 * 24 * HOUR_MS + 1
    assert orders.ok("ListExports") == {"ExportSummaries": []}
    assert orders.ok("DescribeExport", ExportArn=made[0])["ExportDescription"]["ExportStatus"] == "COMPLETED"


# Incremental exports


def incremental(exporter: Exporter, from_ms: int, to_ms: int | None = None, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"ExportFromTime": from_ms / 1000, **more}
    if to_ms is not None:
        spec["ExportToTime"] = to_ms / 1000
    return {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": spec}


def test_an_incremental_export_has_the_changes_of_its_window(orders: Exporter) -> None:
    clock = orders.service.clock
    orders.put("changed", "deleted", "same", "deleted and put", n={"N": "1"})
    clock.ms += 1
    begin = clock.ms
    orders.put("changed", "inserted", "came and went", n={"N": "2"})
    orders.put("changed", n={"N": "3"})
    written = clock.ms
    for key in ("deleted", "came and went", "deleted and put"):
        clock.ms += 1
        orders.ok("DeleteItem", TableName="orders", Key={"pk": {"S": key}})
    orders.put("deleted and put", n={"N": "4"})
    clock.ms += HOUR_MS
    end = clock.ms
    orders.put("changed", "later", "same", n={"N": "5"})
    orders.ok("DeleteItem", TableName="orders", Key={"pk": {"S": "inserted"}})
    clock.ms += 1
    shown = orders.exported(S3Prefix="p", **incremental(orders, begin, end))
    assert shown["ItemCount"] == 4
    assert shown["BilledSizeBytes"] == 10_000_000
    assert shown["ExportType"] == "INCREMENTAL_EXPORT"
    assert "ExportTime" not in shown
    assert shown["IncrementalExportSpecification"] == {
        "ExportFromTime": begin / 1000,
        "ExportToTime": end / 1000,
        "ExportViewType": "NEW_AND_OLD_IMAGES",
    }
    objects = orders.place.objects()
    data = [key for key in objects if key.endswith(".gz")]
    assert [key.rpartition("/")[0] for key in data] == ["p/AWSDynamoDB/data"]
    found = {line["Keys"]["pk"]["S"]: line for line in lines_of(orders, "p/AWSDynamoDB/data/")}

    def image(key: str, n: str) -> dict[str, Any]:
        return {"pk": {"S": key}, "n": {"N": n}}

    assert found.keys() == {"changed", "inserted", "deleted", "deleted and put"}
    assert found["changed"] == {
        "Metadata": {"WriteTimestampMicros": {"N": str(written * 1000)}},
        "Keys": {"pk": {"S": "changed"}},
        "OldImage": image("changed", "1"),
        "NewImage": image("changed", "3"),
    }
    assert "OldImage" not in found["inserted"] and found["inserted"]["NewImage"] == image("inserted", "2")
    assert "NewImage" not in found["deleted"] and found["deleted"]["OldImage"] == image("deleted", "1")
    deleted_at = found["deleted"]["Metadata"]["WriteTimestampMicros"]["N"]
    assert deleted_at == str((written + 1) * 1000)
    assert found["deleted and put"]["OldImage"] == image("deleted and put", "1")
    assert found["deleted and put"]["NewImage"] == image("deleted and put", "4")
    summary = json.loads(objects[shown["ExportManifest"]])
    assert "exportTime" not in summary
    assert {name: summary[name] for name in ("version", "outputView", "exportType", "itemCount")} == {
        "version": "2023-08-01",
        "outputView": "NEW_AND_OLD_IMAGES",
        "exportType": "INCREMENTAL_EXPORT",
        "itemCount": 4,
    }
    assert summary["exportToTime"].endswith("Z") and summary["exportFromTime"] < summary["exportToTime"]
    clock.ms += 1
    with_new = orders.exported(S3Prefix="q", **incremental(orders, begin, end, ExportViewType="NEW_IMAGE"))
    assert with_new["IncrementalExportSpecification"]["ExportViewType"] == "NEW_IMAGE"
    assert not any("OldImage" in line for line in lines_of(orders, "q/"))
    as_ion = orders.exported(S3Prefix="r", ExportFormat="ION", **incremental(orders, begin, end))
    assert as_ion["ItemCount"] == 4


@pytest.mark.usefixtures("short_claims")
def test_a_window_continues_where_a_killed_server_stopped(orders: Exporter) -> None:
    clock = orders.service.clock
    begin = clock.ms
    keys = [f"{number:03}" for number in range(300)]
    orders.put(*keys)
    clock.ms += HOUR_MS
    arn = orders.export(**incremental(orders, begin, clock.ms))["ExportArn"]
    orders.put(*keys[:100], n={"N": "1"})
    batches = 0
    while orders.is_copying():
        orders.service.gateway.engine.background.next_batch()
        orders.restart()
        batches += 1
    assert batches > 5
    orders.work()
    shown = orders.ok("DescribeExport", ExportArn=arn)["ExportDescription"]
    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", 300)
    found = lines_of(orders, "AWSDynamoDB/data/")
    assert sorted(line["NewImage"]["pk"]["S"] for line in found) == keys
    assert all(line["NewImage"].keys() == {"pk"} for line in found)


def test_windows_that_cannot_be(orders: Exporter) -> None:
    """EXPORT-004, EXPORT-019."""
    clock = orders.service.clock
    begin = clock.ms
    clock.ms += 25 * HOUR_MS

    def refusal(from_ms: int, to_ms: int | None) -> tuple[str, str]:
        given = {"TableArn": TABLE_ARN, "S3Bucket": "some-bucket", **incremental(orders, from_ms, to_ms)}
        return orders.error("ExportTableToPointInTime", **given)

    code = "InvalidExportTimeException"
    early = "Incremental export period from time cannot be less than the table creation time : "
    assert refusal(begin - 1, begin + HOUR_MS) == (code, early + "2023-11-14T22:13:30Z")
    assert refusal(begin + HOUR_MS, begin)[1].startswith(early)
    assert refusal(begin + HOUR_MS, clock.ms + 1) == (
        code,
        "Incremental export period to time cannot be greater than the current time : 2023-11-15T23:13:30Z",
    )
    quarter = HOUR_MS // 4
    short = "Difference between export period from time and export period to time is less than 15 minutes"
    assert refusal(begin, begin + quarter - 1) == (code, short)
    assert refusal(begin, begin + 24 * HOUR_MS + 1)[0] == code
    for to_ms in (begin + quarter, begin + 24 * HOUR_MS):
        orders.export(**incremental(orders, begin, to_ms))


def test_filters_of_changes(orders: Exporter) -> None:
    """Developer guide, "Filtering a table export": the filter applies to the latest image of a changed item, and to the
    old image of a deleted one.
    """
    clock = orders.service.clock
    one = {"n": {"N": "1"}, "x": {"S": "x"}}
    orders.put("stays", "leaves", "deleted", **one)
    orders.put("enters", "deleted, not selected", n={"N": "2"}, x={"S": "x"})
    clock.ms += 1
    begin = clock.ms
    orders.put("stays", "enters", "new", n={"N": "1"}, x={"S": "y"})
    orders.put("leaves", n={"N": "2"})
    for key in ("deleted", "deleted, not selected"):
        clock.ms += 1
        orders.ok("DeleteItem", TableName="orders", Key={"pk": {"S": key}})
    clock.ms += HOUR_MS
    window = incremental(orders, begin, clock.ms)
    spec = {
        "FilterExpression": "n = :n",
        "ProjectionExpression": "n",
        "ExpressionAttributeValues": {":n": {"N": "1"}},
    }
    shown = orders.exported(S3Prefix="p", FilterSpecification=spec, **window)
    assert (shown["ItemCount"], shown["FilterSpecification"]) == (4, spec)
    found = {line.pop("Keys")["pk"]["S"]: line for line in lines_of(orders, "p/AWSDynamoDB/data/")}
    images = {
        key: {name: image["n"]["N"] for name, image in line.items() if name != "Metadata"}
        for key, line in found.items()
    }
    assert images == {
        "stays": {"OldImage": "1", "NewImage": "1"},
        "enters": {"OldImage": "2", "NewImage": "1"},
        "new": {"NewImage": "1"},
        "deleted": {"OldImage": "1"},
    }
    assert all(
        set(image) == {"n"} for line in found.values() for name, image in line.items() if name != "Metadata"
    )
    key = {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": "deleted"}}}
    orders.exported(S3Prefix="q", FilterSpecification=key, **window)
    assert [line["Keys"]["pk"]["S"] for line in lines_of(orders, "q/AWSDynamoDB/data/")] == ["deleted"]
    wrong = {"FilterExpression": "n ="}
    given = {"TableArn": TABLE_ARN, "S3Bucket": "some-bucket", "FilterSpecification": wrong, **window}
    assert orders.error("ExportTableToPointInTime", **given)[0] == "ValidationException"


def test_an_export_takes_a_key_condition_on_a_composite_key(exporter: Exporter) -> None:
    """A table of Table Store's with three key columns has two here."""
    engine = exporter.service.gateway.engine
    schema = KeySchema((KeyColumn("a", Kind.TEXT),), (KeyColumn("b", Kind.TEXT), KeyColumn("c", Kind.INT64)))
    [table] = engine.run([CreateTable("test", SHARED_NAMESPACE, "orders", schema)])
    for number in range(4):
        values = {"a": text("a"), "b": text("bb"[number // 2 :]), "c": Value(Kind.INT64, number)}
        write = Write(table, schema.key(values), Replace(Contents.of_values(values)))
        assert isinstance(engine.run([WriteGroup((write,))])[0], list)
    exporter.keep_history()
    item, *_ = exporter.ok("Scan", TableName="orders")["Items"]
    name = next(each for each in item if each not in "abc")
    spec = {
        "KeyConditionExpression": "a = :a AND #k = :k",
        "ExpressionAttributeNames": {"#k": name},
        "ExpressionAttributeValues": {":a": item["a"], ":k": item[name]},
    }
    exporter.exported(FilterSpecification=spec)
    assert lines_of(exporter, "AWSDynamoDB/") == [{"Item": item}]

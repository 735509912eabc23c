"""Kills of a server during full exports, incremental exports, imports and bulk puts. The next server completes each job, with
every item exactly once."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock
from tests.support.object_places import BUCKET, FolderPlace
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.soak import minutes_long
from tests.support.waiting import wait_at_random, wait_until

pytestmark = pytest.mark.extended

KILLS = int(os.environ.get("TABLEGATE_TEST_EXPORT_KILLS", "2"))
ITEMS = 900
CHANGED = 300  # of them, within the window of incremental exports
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/things"
KEY = {
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def item(number: int, letter: str = "x") -> dict[str, Any]:
    return {"p": {"S": f"{number:05}"}, "x": {"S": letter * 300}}


def fill(database_url: str) -> dict[str, Any]:
    """Make a table two hours ago, and change some of its items one hour ago. Return the members of a request that exports these
    changes."""
    now_s = time.time_ns() // 1_000_000_000
    begin_s, end_s = now_s - 3_600, now_s - 1_800
    clock = Clock()
    with DynamoDBService.opened(clock, database=database_url) as service:
        clock.ms = (now_s - 7_200) * 1_000
        service.table("things", **KEY)
        on = {"PointInTimeRecoveryEnabled": True}
        given = {"TableName": "things", "PointInTimeRecoverySpecification": on}
        service.call("UpdateContinuousBackups", given)
        for at_s, letter, numbers in (
            (now_s - 7_200, "w", range(ITEMS)),
            (begin_s + 1, "x", range(CHANGED)),
            (end_s + 1, "x", range(CHANGED, ITEMS)),
        ):
            clock.ms = at_s * 1_000
            for first in numbers[::25]:
                wanted = [{"PutRequest": {"Item": item(first + more, letter)}} for more in range(25)]
                service.call("BatchWriteItem", {"RequestItems": {"things": wanted}})
                assert service.last.status == 200
    spec = {"ExportFromTime": begin_s, "ExportToTime": end_s}
    return {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": spec}


def scanned(client: RawClient, name: str) -> list[str]:
    found, more = [], {}
    while True:
        page = client.call("Scan", TableName=name, ProjectionExpression="p", **more)
        found += [each["p"]["S"] for each in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return sorted(found)
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def ended(client: RawClient, operation: str, member: str, status: str, **arn: str) -> dict[str, Any]:
    def shown() -> dict[str, Any]:
        return dict(client.call(operation, **arn)[member])

    wait_until(lambda: shown()[status] != "IN_PROGRESS", shown)
    return shown()


def test_kills_during_exports_and_imports(tmp_path: Path, database_url: str) -> None:
    chance = random.Random(7)
    place = FolderPlace(tmp_path / "exports")
    lines = [json.dumps({"Item": item(number)}).encode() for number in range(ITEMS)]
    for first in range(0, ITEMS, 300):
        place.put(f"in/{first:05}.gz", gzip.compress(b"\n".join(lines[first : first + 300])))
    once = {"ConditionExpression": "attribute_not_exists(p)"}
    conditional = [json.dumps({"Item": item(number), **once}).encode() for number in range(ITEMS)]
    place.put("bulk/1", b"\n".join(conditional))
    keys = [f"{number:05}" for number in range(ITEMS)]

    def begin() -> Process:
        folder = str(tmp_path / "exports")
        process = Process(
            tmp_path, "--database", database_url, "--dialects", "dynamodb", "--s3-folder", folder,
            "--background-cpu-share", "1",
        )  # fmt: skip
        process.wait_until_ready()
        return process

    changes = fill(database_url)
    server = begin()
    try:
        for round_ in range(KILLS):
            with RawClient(server.url) as client:
                export = client.call(
                    "ExportTableToPointInTime", TableArn=ARN, S3Bucket=BUCKET, S3Prefix=f"o{round_}"
                )
                incremental = client.call(
                    "ExportTableToPointInTime",
                    TableArn=ARN,
                    S3Bucket=BUCKET,
                    S3Prefix=f"i{round_}",
                    **changes,
                )
                imported = client.call(
                    "ImportTable",
                    S3BucketSource={"S3Bucket": BUCKET, "S3KeyPrefix": "in/"},
                    InputFormat="DYNAMODB_JSON",
                    InputCompressionType="GZIP",
                    TableCreationParameters={"TableName": f"imported{round_}", **KEY},
                )
                client.create_table(f"bulk{round_}")
                bulk = client.call(
                    "StartBulkPutItems",
                    TableName=f"bulk{round_}",
                    InputS3Configuration={
                        "S3Bucket": BUCKET,
                        "S3KeyPrefix": "bulk/",
                        "InputFormat": "DYNAMODB_JSON",
                    },
                    OutputS3Configuration={"S3Bucket": BUCKET, "S3KeyPrefix": "r", "OutputType": ["ERROR"]},
                )
                client.call("PutItem", TableName="things", Item={"p": {"S": f"later{round_}"}})
                client.call("DeleteItem", TableName="things", Key={"p": {"S": f"later{round_}"}})
            wait_at_random(chance, 0.8)
            server.kill()
            server = begin()
            with RawClient(server.url) as client:
                for begun, items in ((export, ITEMS), (incremental, CHANGED)):
                    arn = begun["ExportDescription"]["ExportArn"]
                    shown = ended(
                        client, "DescribeExport", "ExportDescription", "ExportStatus", ExportArn=arn
                    )
                    assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", items)
                arn = imported["ImportTableDescription"]["ImportArn"]
                shown = ended(
                    client, "DescribeImport", "ImportTableDescription", "ImportStatus", ImportArn=arn
                )
                assert (shown["ImportStatus"], shown["ImportedItemCount"]) == ("COMPLETED", ITEMS)
                assert scanned(client, f"imported{round_}") == keys
                arn = bulk["BulkOperationDescription"]["BulkOperationArn"]
                shown = ended(
                    client,
                    "DescribeBulkOperation",
                    "BulkOperationDescription",
                    "BulkOperationStatus",
                    BulkOperationArn=arn,
                )
                assert (shown["BulkOperationStatus"], shown["ProcessedItemCount"]) == ("COMPLETED", ITEMS)
                # Had a put been done twice, its condition would not have held: nothing would have been counted for it.
                [usage] = shown["BulkOperationUsage"]
                assert usage["BulkPutBytes"] == ITEMS * 307
                assert scanned(client, f"bulk{round_}") == keys
                assert sorted(line["Item"]["p"]["S"] for line in exported(place, f"o{round_}/")) == keys
                images = [(line["OldImage"], line["NewImage"]) for line in exported(place, f"i{round_}/")]
                images.sort(key=lambda each: each[0]["p"]["S"])
                assert images == [(item(number, "w"), item(number)) for number in range(CHANGED)]
    finally:
        if server.is_running:
            server.kill()


def exported(place: FolderPlace, prefix: str) -> list[dict[str, Any]]:
    """The lines of the data files that the manifest names."""
    objects = place.objects()
    [files] = [
        data
        for key, data in objects.items()
        if key.startswith(prefix) and key.endswith("manifest-files.json")
    ]
    listed = [json.loads(line) for line in files.splitlines()]
    found = [
        json.loads(line)
        for file in listed
        for line in gzip.decompress(objects[file["dataFileS3Key"]]).splitlines()
    ]
    assert sum(file["itemCount"] for file in listed) == len(found)
    return found


@pytest.mark.soak
@minutes_long
def test_fifty_kills(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "KILLS", int(os.environ.get("TABLEGATE_TEST_EXPORT_KILLS", "50")))
    test_kills_during_exports_and_imports(tmp_path, database_url)

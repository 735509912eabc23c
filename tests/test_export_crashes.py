"""A server that is killed while it exports and imports tables, and puts items in bulk: what is half done is never said to be
done, and the next server ends it, with every item there once."""

from __future__ import annotations

import gzip
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.object_places import BUCKET, FolderPlace
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.soak import minutes_long

KILLS = int(os.environ.get("TABLEGATE_EXPORT_KILLS", "2"))
ITEMS = 900
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/things"
KEY = {
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
_PATIENCE_S = 90


def item(number: int) -> dict[str, Any]:
    return {"p": {"S": f"{number:05}"}, "x": {"S": "x" * 300}}


def fill(client: RawClient) -> None:
    client.create_table("things")
    on = {"PointInTimeRecoveryEnabled": True}
    client.call("UpdateContinuousBackups", TableName="things", PointInTimeRecoverySpecification=on)
    for first in range(0, ITEMS, 25):
        wanted = [{"PutRequest": {"Item": item(number)}} for number in range(first, first + 25)]
        client.call("BatchWriteItem", RequestItems={"things": wanted})


def scanned(client: RawClient, name: str) -> list[str]:
    found, more = [], {}
    while True:
        page = client.call("Scan", TableName=name, ProjectionExpression="p", **more)
        found += [each["p"]["S"] for each in page["Items"]]
        if "LastEvaluatedKey" not in page:
            return sorted(found)
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def ended(client: RawClient, operation: str, member: str, status: str, **arn: str) -> dict[str, Any]:
    until = time.monotonic() + _PATIENCE_S
    while True:
        shown = client.call(operation, **arn)[member]
        if shown[status] != "IN_PROGRESS":
            return dict(shown)
        assert time.monotonic() < until, shown
        time.sleep(0.05)


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
            "--background-share", "1",
        )  # fmt: skip
        process.wait_until_ready()
        return process

    server = begin()
    try:
        with RawClient(server.url) as client:
            fill(client)
        for round_ in range(KILLS):
            with RawClient(server.url) as client:
                export = client.call(
                    "ExportTableToPointInTime", TableArn=ARN, S3Bucket=BUCKET, S3Prefix=f"o{round_}"
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
            time.sleep(chance.uniform(0.0, 0.8))
            server.kill()
            server = begin()
            with RawClient(server.url) as client:
                arn = export["ExportDescription"]["ExportArn"]
                shown = ended(client, "DescribeExport", "ExportDescription", "ExportStatus", ExportArn=arn)
                assert (shown["ExportStatus"], shown["ItemCount"]) == ("COMPLETED", ITEMS)
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
                assert exported(place, f"o{round_}/") == keys
    finally:
        if server.is_running:
            server.kill()


def exported(place: FolderPlace, prefix: str) -> list[str]:
    """The keys of the items in the data files that the manifest names."""
    objects = place.objects()
    [files] = [
        data
        for key, data in objects.items()
        if key.startswith(prefix) and key.endswith("manifest-files.json")
    ]
    listed = [json.loads(line) for line in files.splitlines()]
    found = [
        json.loads(line)["Item"]["p"]["S"]
        for file in listed
        for line in gzip.decompress(objects[file["dataFileS3Key"]]).splitlines()
    ]
    assert sum(file["itemCount"] for file in listed) == len(found)
    return sorted(found)


@pytest.mark.soak
@minutes_long
def test_fifty_kills(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "KILLS", int(os.environ.get("TABLEGATE_EXPORT_KILLS", "50")))
    test_kills_during_exports_and_imports(tmp_path, database_url)

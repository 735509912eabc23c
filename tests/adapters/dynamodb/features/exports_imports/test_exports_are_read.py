"""`tablegate verify` reads what the service exported, and AWS's SDK waits for it as it does for the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tablegate.transfer.comparing.verifying import verify
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.files.dynamodb_export import DynamoDBExport
from tests.adapters.dynamodb.client import DynamoDBService
from tests.adapters.dynamodb.features.exports_imports.conftest import HOUR_MS, Exporter
from tests.support.clock import Clock
from tests.support.object_places import BUCKET, FolderPlace
from tests.support.running import start


@pytest.mark.parametrize("format_", ["DYNAMODB_JSON", "ION"])
def test_an_export_equals_the_table(database_url: str, tmp_path: Path, clock: Clock, format_: str) -> None:
    place = FolderPlace(tmp_path / "exports")
    with DynamoDBService.opened(clock, database=database_url, **place.settings) as service:
        exporter = Exporter(service, place, lambda: service)
        service.table()
        clock.ms += 1
        exporter.keep_history()
        exporter.put(
            *(f"{number}" for number in range(200)), n={"N": "12.50"}, b={"B": "AAE="}, t={"SS": ["é", "x"]}
        )
        exporter.put("long", s={"S": "é" * 20_000}, b={"B": "AAEC" * 20_000})
        full = exporter.exported(ExportFormat=format_)
        begin = clock.ms
        clock.ms += 1
        exporter.put("7", "new", n={"N": "2"})
        exporter.ok("DeleteItem", TableName="orders", Key={"pk": {"S": "8"}})
        clock.ms += HOUR_MS
        window = {"ExportFromTime": begin / 1000}
        later = exporter.exported(
            ExportFormat=format_, ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=window
        )

    def folder(shown: dict[str, Any]) -> Path:
        return (tmp_path / "exports" / BUCKET / shown["ExportManifest"]).parent

    table = DatabaseEndpoint(f"{database_url}#orders")
    alone = DynamoDBExport(folder(full), {"keys": "pk:S"})
    together = DynamoDBExport(folder(full), {"keys": "pk:S", "incremental": str(folder(later))})
    try:
        assert verify(table, alone).counts == {"missing": 1, "extra": 1, "changed": 1}
        assert verify(table, together, "full").text().endswith("equal\n")
    finally:
        for end in (table, alone, together):
            end.close()


def test_a_client_waits_for_both(database_url: str, tmp_path: Path) -> None:
    place = FolderPlace(tmp_path / "exports")
    server = start(database_url, s3_folder=str(tmp_path / "exports"), background_cpu_share=1.0)
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    config = Config(retries={"max_attempts": 0})
    client = boto3.client("dynamodb", endpoint_url=server.url, config=config, **keys)
    try:
        key = {
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        arn = client.create_table(TableName="orders", **key)["TableDescription"]["TableArn"]
        on = {"PointInTimeRecoveryEnabled": True}
        client.update_continuous_backups(TableName="orders", PointInTimeRecoverySpecification=on)
        for number in range(50):
            client.put_item(TableName="orders", Item={"pk": {"S": f"{number}"}})
        made = client.export_table_to_point_in_time(TableArn=arn, S3Bucket=BUCKET, ClientToken="one")
        arn = made["ExportDescription"]["ExportArn"]
        soon = {"Delay": 1, "MaxAttempts": 60}
        client.get_waiter("export_completed").wait(ExportArn=arn, WaiterConfig=soon)
        exported = client.describe_export(ExportArn=arn)["ExportDescription"]
        assert exported["ItemCount"] == 50
        assert exported["ExportTime"] == made["ExportDescription"]["ExportTime"]
        prefix = exported["ExportManifest"].rpartition("/")[0] + "/data/"
        source = {"S3Bucket": BUCKET, "S3KeyPrefix": prefix}
        made = client.import_table(
            S3BucketSource=source,
            InputFormat="DYNAMODB_JSON",
            InputCompressionType="GZIP",
            TableCreationParameters={"TableName": "again", **key},
        )
        arn = made["ImportTableDescription"]["ImportArn"]
        client.get_waiter("import_completed").wait(ImportArn=arn, WaiterConfig=soon)
        assert client.scan(TableName="again", Select="COUNT")["Count"] == 50
        made = client.start_bulk_put_items(
            TableName="orders",
            InputS3Configuration={**source, "InputFormat": "DYNAMODB_JSON", "InputCompressionType": "GZIP"},
            OutputS3Configuration={"S3Bucket": BUCKET, "OutputType": ["ERROR"]},
        )
        arn = made["BulkOperationDescription"]["BulkOperationArn"]
        client.get_waiter("bulk_operation_completed").wait(BulkOperationArn=arn, WaiterConfig=soon)
        assert client.list_bulk_operations()["BulkOperationsSummaryList"][0]["BulkOperationArn"] == arn
        assert (
            len(client.list_exports()["ExportSummaries"])
            == len(client.list_imports()["ImportSummaryList"])
            == 1
        )
    finally:
        client.close()
        server.stop()
    assert place.objects()

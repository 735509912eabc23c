"""Exports, imports and bulk puts of a tenant, its buckets, and a foreign credential."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.wiring import connect, open_store
from tests.support.running import start
from tests.support.waiting import wait_until
from tests.tenants.conftest import ACCOUNTS, CREDENTIALS, SETTINGS, Tenant, told

KEY = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(autouse=True)
def untouched() -> None:
    """These tenants have a server of their own, in which the victim works too."""


@pytest.fixture
def tenants(database_url: str, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Clients of the victim, with a table and a bucket, and of the thief, with a bucket."""
    given = {
        **SETTINGS,
        "s3_folder": str(tmp_path / "objects"),
        "s3_bucket": tuple(f"{account}/{name}" for name, account in ACCOUNTS.items()),
    }
    for name in ACCOUNTS:
        (tmp_path / "objects" / name).mkdir(parents=True)
    settings = load({"database": database_url, **given}, {})
    opened = open_store(settings, connect(settings))
    for credential in CREDENTIALS:
        opened.credential_store.add(credential, [ALL])
    opened.close()
    server = start(database_url, background_cpu_share=1.0, **given)
    victim, thief = (Tenant(server.url, name).dynamodb() for name in ACCOUNTS)
    try:
        victim.create_table(TableName="music", **KEY)
        victim.update_continuous_backups(
            TableName="music", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        victim.put_item(TableName="music", Item={"pk": {"S": "secret"}})
        yield victim, thief
    finally:
        server.stop()


def ended(ask: Any, member: str, status: str) -> dict[str, Any]:
    wait_until(lambda: ask()[member][status] != "IN_PROGRESS", ask)
    return dict(ask()[member])


def test_jobs_of_the_victim_do_not_exist_for_the_thief(tenants: tuple[Any, Any]) -> None:
    victim, thief = tenants
    table = victim.describe_table(TableName="music")["Table"]["TableArn"]
    export = victim.export_table_to_point_in_time(TableArn=table, S3Bucket="victim")["ExportDescription"][
        "ExportArn"
    ]
    shown = ended(lambda: victim.describe_export(ExportArn=export), "ExportDescription", "ExportStatus")
    assert shown["ExportStatus"] == "COMPLETED"
    place = {"S3Bucket": "victim", "S3KeyPrefix": "AWSDynamoDB/"}
    imported = victim.import_table(
        S3BucketSource=place,
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={"TableName": "again", **KEY},
    )["ImportTableDescription"]["ImportArn"]
    bulk = victim.start_bulk_put_items(
        TableName="music",
        InputS3Configuration={**place, "InputFormat": "DYNAMODB_JSON"},
        OutputS3Configuration={"S3Bucket": "victim", "OutputType": ["ERROR"]},
    )["BulkOperationDescription"]["BulkOperationArn"]
    assert thief.list_exports()["ExportSummaries"] == []
    assert thief.list_imports()["ImportSummaryList"] == []
    assert thief.list_bulk_operations()["BulkOperationsSummaryList"] == []
    for said, arns in (
        (lambda arn: told(lambda: thief.describe_export(ExportArn=arn)), export),
        (lambda arn: told(lambda: thief.describe_import(ImportArn=arn)), imported),
        (lambda arn: told(lambda: thief.describe_bulk_operation(BulkOperationArn=arn)), bulk),
        (lambda arn: told(lambda: thief.cancel_bulk_operation(BulkOperationArn=arn)), bulk),
    ):
        assert said(arns).startswith("AccessDeniedException")
        as_mine = arns.replace(ACCOUNTS["victim"], ACCOUNTS["thief"])
        assert "NotFoundException" in said(as_mine)
    assert told(lambda: thief.export_table_to_point_in_time(TableArn=table, S3Bucket="thief")).startswith(
        "AccessDeniedException"
    )


def test_the_victims_bucket_cannot_be_named(tenants: tuple[Any, Any]) -> None:
    _, thief = tenants
    arn = thief.import_table(
        S3BucketSource={"S3Bucket": "victim"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={"TableName": "stolen", **KEY},
    )["ImportTableDescription"]["ImportArn"]
    shown = ended(lambda: thief.describe_import(ImportArn=arn), "ImportTableDescription", "ImportStatus")
    assert (shown["ImportStatus"], shown["FailureCode"]) == ("FAILED", "S3AccessDenied")
    assert thief.list_tables()["TableNames"] == []
    arn = thief.import_table(
        S3BucketSource={"S3Bucket": "thief"},
        InputFormat="DYNAMODB_JSON",
        TableCreationParameters={"TableName": "own", **KEY},
    )["ImportTableDescription"]["ImportArn"]
    shown = ended(lambda: thief.describe_import(ImportArn=arn), "ImportTableDescription", "ImportStatus")
    assert shown["ImportStatus"] == "COMPLETED"

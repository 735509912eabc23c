"""Findings of export.md that tests/adapters/dynamodb/features/exports_imports/test_export_api.py has not."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.exports_imports.test_export_api import incremental
from tests.adapters.dynamodb.features.exports_imports.test_import_api import given
from tests.adapters.dynamodb.measured.recorded import DETECTED, OK, Case, answer, arn, check, each

FAILS = " failed to satisfy constraint: Member must "
BUCKET = {"S3Bucket": "some-bucket"}
EXPORT = {"TableArn": arn("orders"), **BUCKET}
CONFLICT = (
    "ExportConflictException",
    "Export conflict: Duplicate request detected with conflicting parameters",
)
EARLY = "Incremental export period from time cannot be less than the table creation time : "
NO_RECOVERY = (
    "PointInTimeRecoveryUnavailableException",
    "Point in time recovery is not enabled for table 'orders'",
)


@pytest.fixture
def orders(exporter):
    exporter.service.table()
    exporter.keep_history()
    return exporter


def test_an_export_needs_point_in_time_recovery_export_001(exporter):
    exporter.service.table()
    now = exporter.service.clock.ms
    check(exporter.service, "ExportTableToPointInTime", {**EXPORT, "S3Bucket": "no-such-bucket"}, NO_RECOVERY)
    early = {**EXPORT, **incremental(exporter, now - 3_600_000)}
    check(
        exporter.service,
        "ExportTableToPointInTime",
        early,
        ("InvalidExportTimeException", f"{EARLY}2023-11-14T21:13:20Z"),
    )
    assert exporter.ok("ListExports", TableArn=arn("orders")) == {"ExportSummaries": []}


PLACES: list[Case] = [
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "TableArn": arn("orders", region="us-west-2")},
        ("TableNotFoundException", f"Table not found: {arn('orders', region='us-west-2')}"),
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "TableArn": arn("orders", account="111122223333")},
        ("AccessDeniedException", "Access is denied"),
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "TableArn": arn("orders/index/gsi1")},
        "Invalid Request: Table ARN is invalid.",
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "S3Bucket": "arn:aws:s3:::some-bucket"},
        f"{DETECTED}'arn:aws:s3:::some-bucket' at 's3Bucket' failed to satisfy co…",
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "S3BucketOwner": "not-an-account"},
        f"{DETECTED}'not-an-account' at 's3BucketOwner' failed to satisfy constraint:…",
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "ExportFormat": "CSV"},
        f"{DETECTED}'CSV' at 'exportFormat'{FAILS}…",
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "ExportType": "PARTIAL_EXPORT"},
        f"{DETECTED}'PARTIAL_EXPORT' at 'exportType'{FAILS}…",
    ),
    (
        "EXPORT-002",
        "ExportTableToPointInTime",
        {**EXPORT, "S3SseAlgorithm": "aws:kms"},
        f"{DETECTED}'aws:kms' at 's3SseAlgorithm'{FAILS}…",
    ),
    (
        "EXPORT-003",
        "ExportTableToPointInTime",
        {
            **EXPORT,
            "ExportType": "INCREMENTAL_EXPORT",
            "IncrementalExportSpecification": {
                "ExportFromTime": 1_700_000_000,
                "ExportViewType": "NEW_IMAGES",
            },
        },
        f"{DETECTED}'NEW_IMAGES' at 'incrementalExportSpecification.exportViewType'{FAILS}…",
    ),
    (
        "EXPORT-003",
        "ExportTableToPointInTime",
        {
            **EXPORT,
            "ExportType": "INCREMENTAL_EXPORT",
            "IncrementalExportSpecification": {"ExportViewType": "NEW_IMAGE"},
        },
        "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification",
    ),
    (
        "EXPORT-005",
        "ExportTableToPointInTime",
        {**EXPORT, "S3SseKmsKeyId": "alias/x", "S3SseAlgorithm": "AES256"},
        "Invalid Request: KMS Key Id is not supported for this encryption type",
    ),
    (
        "EXPORT-005",
        "ExportTableToPointInTime",
        {**EXPORT, "S3SseKmsKeyId": "not a key", "S3SseAlgorithm": "KMS"},
        f"Invalid Request: {DETECTED}'not a key' at 's3SseKmsKeyId'{FAILS}satisfy regular…",
    ),
]


@each(PLACES)
def test_exports_that_are_refused(separate, operation, request_, recorded):
    check(separate, operation, request_, recorded)


def test_a_name_of_a_bucket_may_have_capitals_export_002(orders):
    orders.export(S3Bucket="Some-Bucket")


def test_an_export_of_another_region_or_account_is_not_described_export_006(separate):
    for place in ({"region": "us-west-2"}, {"account": "111122223333"}):
        name = arn("orders/export/01700000000000-0123abcd", **place)
        recorded = ("AccessDeniedException", "Access is denied")
        if "region" in place:
            recorded = ("ExportNotFoundException", "Export not found: Invalid export arn")
        check(separate, "DescribeExport", {"ExportArn": name}, recorded)


def test_a_token_of_one_list_is_accepted_in_another_export_006(orders):
    orders.export()
    orders.service.clock.ms += 1
    orders.export()
    token = orders.ok("ListExports", MaxResults=1)["NextToken"]
    assert orders.ok("ListExports", NextToken=token, TableArn=arn("another")) == {"ExportSummaries": []}
    assert len(orders.ok("ListExports", NextToken=token, MaxResults=5)["ExportSummaries"]) == 1


def test_members_that_the_model_does_not_know_are_passed_over_export_008(orders):
    orders.export(DefinitelyNotAMember="x")


def test_a_token_stands_for_all_parameters_export_009(orders):
    orders.service.table("another")
    orders.keep_history("another")
    first = orders.export(ClientToken="one")["ExportArn"]
    for more in ({"S3Prefix": "p"}, {"TableArn": arn("another")}, {"ExportFormat": "ION"}):
        check(orders.service, "ExportTableToPointInTime", {**EXPORT, "ClientToken": "one", **more}, CONFLICT)
    assert orders.export(ClientToken="one")["ExportArn"] == first
    more = {
        "ClientToken": "one",
        "TableCreationParameters": {**given()["TableCreationParameters"], "TableName": "new"},
    }
    check(orders.service, "ImportTable", given(**more), OK)


def test_a_token_of_a_failed_export_export_010(orders):
    nowhere = {"S3Bucket": "no-such-bucket", "ClientToken": "one"}
    first = orders.export(**nowhere)["ExportArn"]
    orders.work()
    assert (
        orders.ok("DescribeExport", ExportArn=first)["ExportDescription"]["FailureCode"] == "S3NoSuchBucket"
    )
    assert orders.export(**nowhere)["ExportArn"] == first
    check(orders.service, "ExportTableToPointInTime", {**EXPORT, "ClientToken": "one"}, CONFLICT)
    orders.export(ClientToken="two")


def test_descriptions_repeat_the_keys_of_s3_export_012(orders):
    shown = orders.export(S3SseAlgorithm="KMS", S3SseKmsKeyId="alias/aws/s3")
    assert shown["S3SseKmsKeyId"] == "alias/aws/s3"
    shown = orders.export(S3SseAlgorithm="KMS")
    assert "S3SseKmsKeyId" not in shown
    assert shown["S3SseAlgorithm"] == "KMS"


def test_recovery_can_be_switched_on_and_used_at_once_export_014_export_015(service):
    service.table()
    shown = service.call(
        "UpdateContinuousBackups",
        {"TableName": "orders", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
    )["ContinuousBackupsDescription"]
    recovery = shown["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"
    assert recovery["EarliestRestorableDateTime"] == recovery["LatestRestorableDateTime"]
    restore = {"SourceTableName": "orders", "TargetTableName": "target", "UseLatestRestorableTime": True}
    check(service, "RestoreTableToPointInTime", restore, OK)


def test_an_export_of_an_empty_table_has_no_items_export_016(orders):
    shown = orders.exported()
    assert (shown["ItemCount"], shown["BilledSizeBytes"]) == (0, 0)


@pytest.mark.parametrize(("prefix", "folder"), [("foo", "foo/"), ("foo/", "foo/"), (None, "")])
def test_prefixes_end_in_one_stroke_export_018(orders, prefix, folder):
    shown = orders.exported(**({} if prefix is None else {"S3Prefix": prefix}))
    assert shown.get("S3Prefix") == prefix
    assert shown["ExportManifest"].startswith(f"{folder}AWSDynamoDB/0")


def test_a_table_created_again_lists_no_earlier_exports_export_020(orders):
    export = orders.exported()["ExportArn"]
    orders.ok("DeleteTable", TableName="orders")
    orders.service.clock.ms += 1
    orders.service.table()
    assert orders.ok("ListExports", TableArn=arn("orders")) == {"ExportSummaries": []}
    described = orders.ok("DescribeExport", ExportArn=export)
    assert described["ExportDescription"]["ExportStatus"] == "COMPLETED"
    assert answer(orders.service, "DescribeTable", {"TableName": "orders"}) == ("", "")

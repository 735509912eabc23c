"""Other operations that Terraform and CDK call for a table. Every one has a truthful answer."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("operation", "answer"),
    [
        (
            "DescribeKinesisStreamingDestination",
            {"TableName": "orders", "KinesisDataStreamDestinations": []},
        ),
    ],
)
def test_a_feature_that_is_not_there_is_off(service, operation, answer):
    service.table()
    service.clock.ms += 6_000
    assert service.call(operation, {"TableName": "orders"}) == answer


def continuous_backups(service) -> str:
    answer = service.call("DescribeContinuousBackups", {"TableName": "orders"})
    return answer["ContinuousBackupsDescription"]["ContinuousBackupsStatus"]


def test_continuous_backups_are_enabled_soon_after_the_table_is_active(delayed):
    """ack-api-quirks, TABLE-083 and TABLE-111, October 2026: ContinuousBackupsStatus is not the flag of point-in-time
    recovery.

    It becomes ENABLED automatically 3.1 seconds after a table is ACTIVE. Until then, only PointInTimeRecoveryStatus is
    DISABLED. test_backup.py of ScyllaDB requests it for a new table, and has DISABLED.
    """
    delayed.table()
    assert continuous_backups(delayed) == "DISABLED"
    delayed.clock.ms += 13_000 - 1
    assert continuous_backups(delayed) == "DISABLED"
    delayed.clock.ms += 1
    assert continuous_backups(delayed) == "ENABLED"


def test_continuous_backups_are_enabled_at_once_without_a_creation_delay(service):
    """Issue 45: delays of AWS follow --table-creation-delay."""
    service.table()
    assert continuous_backups(service) == "ENABLED"


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("DescribeContinuousBackups", "TableNotFoundException"),
        ("DescribeKinesisStreamingDestination", "ResourceNotFoundException"),
    ],
)
def test_a_missing_table_is_missed(service, operation, code):
    assert service.error(operation, {"TableName": "orders"})[0] == code


@pytest.mark.parametrize(
    ("operation", "member"),
    [
        ("ListExports", "ExportSummaries"),
        ("ListImports", "ImportSummaryList"),
    ],
)
def test_lists_without_resources_are_empty(service, operation, member):
    service.table()
    assert service.call(operation) == {member: []}


def test_a_backup_is_not_found(service):
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders/backup/01489602797149-73d8d5bc"
    assert service.error("DescribeBackup", {"BackupArn": arn}) == (
        "BackupNotFoundException",
        f"Backup not found: {arn}",
    )
    assert service.error("DescribeBackup", {})[0] == "ValidationException"


@pytest.mark.parametrize("name", ["MaxResults", "PageSize"])
def test_the_pages_of_exports_and_imports_have_1_to_25_entries(service, name):
    operation = "ListExports" if name == "MaxResults" else "ListImports"
    for size, is_fine in ((0, False), (1, True), (25, True), (26, False)):
        answer = service.call(operation, {name: size})
        assert ("__type" not in answer) is is_fine


def test_the_quotas_are_the_services(service):
    assert service.call("DescribeLimits") == {
        "AccountMaxReadCapacityUnits": 80_000,
        "AccountMaxWriteCapacityUnits": 80_000,
        "TableMaxReadCapacityUnits": 40_000,
        "TableMaxWriteCapacityUnits": 40_000,
    }


def test_the_endpoint_has_the_address_that_the_client_used(service):
    answer = service.call("DescribeEndpoints", host="127.0.0.1:4711")
    assert answer == {"Endpoints": [{"Address": "127.0.0.1:4711", "CachePeriodInMinutes": 1440}]}

"""Point-in-time recovery and backups.

Sources: measurements of ack-api-quirks on the live service in October 2026 (its notes on backups, restores and
continuous backups), and botocore's model.
"""

from __future__ import annotations

from typing import Any

import pytest

ON = {"PointInTimeRecoveryEnabled": True}
OFF = {"PointInTimeRecoveryEnabled": False}
INDEX = {
    "IndexName": "by_c",
    "KeySchema": [{"AttributeName": "c", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
WITH_INDEX = {
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "c", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [INDEX],
}
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


@pytest.fixture
def orders(service: Any) -> Any:
    service.table(**WITH_INDEX)
    service.clock.ms += 10_000
    return service


def ok(service: Any, operation: str, **given: Any) -> Any:
    answer = service.call(operation, given)
    assert service.last.status == 200, answer
    return answer


def recovery(service: Any, **spec: Any) -> dict[str, Any]:
    answer = ok(service, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=spec)
    assert answer == ok(service, "DescribeContinuousBackups", TableName="orders")
    described = answer["ContinuousBackupsDescription"]
    assert described["ContinuousBackupsStatus"] == "ENABLED"
    return described["PointInTimeRecoveryDescription"]


def put(service: Any, *keys: str, **more: Any) -> None:
    for key in keys:
        service.clock.ms += 1
        ok(service, "PutItem", TableName="orders", Item={"pk": {"S": key}, **more})


def background(service: Any) -> None:
    while service.gateway.engine.background.next_batch():
        pass


def keys(service: Any, name: str, **more: Any) -> list[str]:
    return sorted(item["pk"]["S"] for item in ok(service, "Scan", TableName=name, **more)["Items"])


def test_recovery_is_switched_on_and_off(orders: Any) -> None:
    now = orders.clock.ms / 1000
    on = recovery(orders, **ON)
    assert on == {
        "PointInTimeRecoveryStatus": "ENABLED",
        "RecoveryPeriodInDays": 35,
        "EarliestRestorableDateTime": now,
        "LatestRestorableDateTime": now,
    }
    orders.clock.ms += 60_000
    again = recovery(orders, **ON, RecoveryPeriodInDays=7)
    assert (again["RecoveryPeriodInDays"], again["EarliestRestorableDateTime"]) == (7, now)
    assert recovery(orders, **ON)["RecoveryPeriodInDays"] == 7
    orders.clock.ms += 30 * 86_400_000
    assert recovery(orders, **ON)["EarliestRestorableDateTime"] == orders.clock.ms / 1000 - 7 * 86_400
    assert recovery(orders, **OFF) == {"PointInTimeRecoveryStatus": "DISABLED"}
    anew = recovery(orders, **ON)
    assert (anew["RecoveryPeriodInDays"], anew["EarliestRestorableDateTime"]) == (35, orders.clock.ms / 1000)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {**OFF, "RecoveryPeriodInDays": 35},
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery.",
        ),
        (
            {**ON, "RecoveryPeriodInDays": 36},
            (
                "1 validation error detected: Value '36' at 'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to "
                "satisfy constraint: Member must have value less than or equal to 35"
            ),
        ),
    ],
)
def test_a_period_that_cannot_be(orders: Any, spec: Any, text: str) -> None:
    given = {"TableName": "orders", "PointInTimeRecoverySpecification": spec}
    assert orders.error("UpdateContinuousBackups", given) == ("ValidationException", text)
    given["PointInTimeRecoverySpecification"] = {**ON, "RecoveryPeriodInDays": 35}
    ok(orders, "UpdateContinuousBackups", **given)


def test_a_table_is_restored_to_an_earlier_time(orders: Any) -> None:
    recovery(orders, **ON)
    put(orders, "a", "b", c={"S": "x"})
    then = orders.clock.ms / 1000
    put(orders, "c")
    ok(orders, "DeleteItem", TableName="orders", Key={"pk": {"S": "a"}})
    put(orders, "b")
    made = ok(
        orders,
        "RestoreTableToPointInTime",
        SourceTableName="orders",
        TargetTableName="again",
        RestoreDateTime=then,
    )["TableDescription"]
    assert made["TableStatus"] == "CREATING"
    assert made["RestoreSummary"] == {
        "SourceTableArn": ARN,
        "RestoreDateTime": then,
        "RestoreInProgress": True,
    }
    assert orders.error(
        "RestoreTableToPointInTime",
        {"SourceTableName": "orders", "TargetTableName": "again", "RestoreDateTime": then},
    ) == ("TableInUseException", f"Table: again is already being restored from backup: {ARN}")
    assert orders.error("CreateBackup", {"TableName": "again", "BackupName": "one"})[0] == (
        "TableNotFoundException"
    )
    given = {"TableName": "again", "PointInTimeRecoverySpecification": ON}
    assert orders.error("UpdateContinuousBackups", given)[0] == "TableNotFoundException"
    assert orders.error("DeleteTable", {"TableName": "again"})[0] == "ResourceInUseException"
    background(orders)
    shown = orders.described("again")
    assert shown["TableStatus"] == "ACTIVE"
    assert "RestoreSummary" not in shown
    assert shown["ItemCount"] == 2
    assert keys(orders, "again") == ["a", "b"]
    assert keys(orders, "again", IndexName="by_c") == ["a", "b"]
    assert keys(orders, "orders") == ["b", "c"]
    status = ok(orders, "DescribeContinuousBackups", TableName="again")["ContinuousBackupsDescription"]
    assert status["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}


def test_the_latest_restorable_time_has_the_current_items(orders: Any) -> None:
    recovery(orders, **ON)
    put(orders, "a")
    given = {"SourceTableArn": ARN, "TargetTableName": "again", "UseLatestRestorableTime": True}
    ok(orders, "RestoreTableToPointInTime", **given)
    background(orders)
    assert keys(orders, "again") == ["a"]


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        ({}, "ValidationException", "Invalid Request: Either one of RestoreDateTime or"),
        ({"UseLatestRestorableTime": False}, "ValidationException", "Invalid Request: Either one of"),
        (
            {"UseLatestRestorableTime": True, "RestoreDateTime": 1},
            "ValidationException",
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set",
        ),
        (
            {"UseLatestRestorableTime": True, "SourceTableArn": ARN},
            "ValidationException",
            "Must provide exactly one of: sourceTableArn, sourceTableName",
        ),
        (
            {"UseLatestRestorableTime": True, "SourceTableName": None, "SourceTableArn": "orders"},
            "ValidationException",
            "One or more parameter values were invalid: sourceTableArn is not a valid ARN",
        ),
        (
            {"UseLatestRestorableTime": True, "SourceTableName": None},
            "ValidationException",
            "The parameter 'TableName' is required",
        ),
        (
            {"UseLatestRestorableTime": True, "SourceTableName": "nowhere"},
            "TableNotFoundException",
            "Table not found: nowhere",
        ),
        (
            {"RestoreDateTime": 1},
            "InvalidRestoreTimeException",
            (
                "RestoreDateTime '1970-01-01T00:00:01Z' must be within EarliestRestorableDateTime '2023-11-14T22:13:30Z' and "
                "LatestRestorableDateTime '2023-11-14T22:13:30Z'"
            ),
        ),
        ({"RestoreDateTime": 1e300}, "ValidationException", "Invalid Request: RestoreDateTime"),
        (
            {"RestoreDateTime": -62_135_596_800},
            "InvalidRestoreTimeException",
            "RestoreDateTime '1-01-01T00:00:00Z' must be within",
        ),
        ({"RestoreDateTime": -62_135_596_801}, "ValidationException", "Invalid Request: RestoreDateTime"),
        (
            {"UseLatestRestorableTime": True, "TargetTableName": "orders"},
            "TableAlreadyExistsException",
            "Table already exists: orders",
        ),
        (
            {"UseLatestRestorableTime": True, "BillingModeOverride": "PROVISIONED"},
            "ValidationException",
            "Invalid Request: Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
        ),
        (
            {
                "UseLatestRestorableTime": True,
                "ProvisionedThroughputOverride": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
            },
            "ValidationException",
            "Invalid Request: Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
        ),
        (
            {
                "UseLatestRestorableTime": True,
                "GlobalSecondaryIndexOverride": [
                    {**INDEX, "IndexName": "mine", "Projection": {"ProjectionType": "KEYS_ONLY"}}
                ],
            },
            "ValidationException",
            (
                "Invalid Request: Index mine does not match a secondary index that existed in the source table and cannot be "
                "created during the restore operation"
            ),
        ),
    ],
)
def test_an_invalid_restore_is_refused_and_creates_no_table(
    orders: Any, given: Any, code: str, text: str
) -> None:
    recovery(orders, **ON)
    request = {"SourceTableName": "orders", "TargetTableName": "again", **given}
    found = orders.error("RestoreTableToPointInTime", request)
    assert found[0] == code
    assert found[1].startswith(text)
    assert ok(orders, "ListTables")["TableNames"] == ["orders"]


def test_a_restore_needs_point_in_time_recovery(orders: Any) -> None:
    request = {"SourceTableName": "orders", "TargetTableName": "again", "UseLatestRestorableTime": True}
    assert orders.error("RestoreTableToPointInTime", request) == (
        "PointInTimeRecoveryUnavailableException",
        "Point in time recovery is not enabled for table 'orders'",
    )


@pytest.mark.parametrize(
    ("override", "names"),
    [({}, ["by_c"]), ({"GlobalSecondaryIndexOverride": []}, []), ("mine", ["mine"])],
)
def test_indexes_may_be_left_out_or_called_otherwise(orders: Any, override: Any, names: list[str]) -> None:
    recovery(orders, **ON)
    put(orders, "a", c={"S": "x"})
    if override == "mine":
        override = {"GlobalSecondaryIndexOverride": [{**INDEX, "IndexName": "mine"}]}
    ok(
        orders,
        "RestoreTableToPointInTime",
        SourceTableName="orders",
        TargetTableName="again",
        UseLatestRestorableTime=True,
        BillingModeOverride="PAY_PER_REQUEST",
        **override,
    )
    background(orders)
    shown = orders.described("again").get("GlobalSecondaryIndexes", [])
    assert [index["IndexName"] for index in shown] == names
    for name in names:
        assert keys(orders, "again", IndexName=name) == ["a"]


# Backups


def backed_up(service: Any, name: str = "one") -> dict[str, Any]:
    return ok(service, "CreateBackup", TableName="orders", BackupName=name)["BackupDetails"]


def test_a_backup_is_made_described_and_deleted(orders: Any) -> None:
    """BACKUP-003, BACKUP-005, BACKUP-006."""
    put(orders, "a", "b")
    made = backed_up(orders)
    at_ms = orders.clock.ms
    arn = made["BackupArn"]
    assert arn.startswith(f"{ARN}/backup/{at_ms:014}-")
    assert made | {"BackupArn": arn, "BackupSizeBytes": 6} == {
        "BackupArn": arn,
        "BackupName": "one",
        "BackupSizeBytes": 6,
        "BackupStatus": "CREATING",
        "BackupType": "USER",
        "BackupCreationDateTime": at_ms / 1000,
    }
    background(orders)
    shown = ok(orders, "DescribeBackup", BackupArn=arn)["BackupDescription"]
    assert shown["BackupDetails"] == made | {"BackupStatus": "AVAILABLE"}
    table = orders.described()
    assert shown["SourceTableDetails"] == {
        "TableName": "orders",
        "TableId": table["TableId"],
        "TableArn": ARN,
        "TableSizeBytes": made["BackupSizeBytes"],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "TableCreationDateTime": table["CreationDateTime"],
        "ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0},
        "ItemCount": 2,
        "BillingMode": "PAY_PER_REQUEST",
    }
    units = {"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
    assert shown["SourceTableFeatureDetails"] == {
        "GlobalSecondaryIndexes": [{**INDEX, "ProvisionedThroughput": units}]
    }
    deleted = ok(orders, "DeleteBackup", BackupArn=arn)["BackupDescription"]
    assert deleted["BackupDetails"]["BackupStatus"] == "DELETED"
    for operation in ("DescribeBackup", "DeleteBackup"):
        assert orders.error(operation, {"BackupArn": arn}) == (
            "BackupNotFoundException",
            f"Backup not found: {arn}",
        )
    assert ok(orders, "ListBackups") == {"BackupSummaries": []}


def test_a_table_is_made_of_a_backup(orders: Any) -> None:
    """BACKUP-010."""
    put(orders, "a", c={"S": "x"})
    arn = backed_up(orders)["BackupArn"]
    background(orders)
    put(orders, "b")
    request = {"BackupArn": arn, "TargetTableName": "again"}
    made = ok(orders, "RestoreTableFromBackup", **request)["TableDescription"]
    assert made["RestoreSummary"]["SourceBackupArn"] == arn
    assert orders.error("RestoreTableFromBackup", request | {"TargetTableName": "other"}) == (
        "BackupInUseException",
        f"Backup is being used to restore another table: {arn}",
    )
    assert orders.error("DeleteBackup", {"BackupArn": arn}) == (
        "BackupInUseException",
        f"Backup is being used to restore table: {arn}",
    )
    background(orders)
    assert keys(orders, "again") == keys(orders, "again", IndexName="by_c") == ["a"]


def test_backup_that_is_being_created_is_in_use(orders: Any) -> None:
    """Reference of RestoreTableFromBackup and DeleteBackup: BackupInUseException, also while it is created. Own text."""
    arn = backed_up(orders)["BackupArn"]
    creating = ("BackupInUseException", f"Backup is being created: {arn}")
    request = {"BackupArn": arn, "TargetTableName": "again"}
    assert orders.error("RestoreTableFromBackup", request) == creating
    assert orders.error("DeleteBackup", {"BackupArn": arn}) == creating
    exists = ("TableAlreadyExistsException", "Table already exists: orders")
    assert orders.error("RestoreTableFromBackup", request | {"TargetTableName": "orders"}) == exists
    background(orders)
    ok(orders, "RestoreTableFromBackup", **request)
    assert orders.error("RestoreTableFromBackup", request | {"TargetTableName": "orders"}) == exists


def test_a_deleted_table_with_recovery_leaves_a_backup(orders: Any) -> None:
    """BACKUP-015."""
    recovery(orders, **ON)
    put(orders, "a")
    ok(orders, "DeleteTable", TableName="orders")
    background(orders)
    assert ok(orders, "ListBackups", TableName="orders") == {"BackupSummaries": []}
    [summary] = ok(orders, "ListBackups", BackupType="SYSTEM")["BackupSummaries"]
    arn = summary["BackupArn"]
    assert arn.endswith("-00000000")
    assert summary["BackupName"] == "orders$DeletedTableBackup"
    assert summary["BackupExpiryDateTime"] == summary["BackupCreationDateTime"] + 35 * 86_400
    shown = ok(orders, "DescribeBackup", BackupArn=arn)["BackupDescription"]
    assert shown["SourceTableFeatureDetails"] == {}
    code, text = orders.error("DeleteBackup", {"BackupArn": arn})
    assert code == "ValidationException"
    assert text.startswith(
        f"Invalid Request: User is not allowed to delete the system backup with arn {arn}."
    )
    ok(orders, "RestoreTableFromBackup", BackupArn=arn, TargetTableName="orders")
    background(orders)
    assert keys(orders, "orders") == ["a"]


def test_backups_are_listed_in_pages(orders: Any) -> None:
    """BACKUP-014."""
    arns = []
    for number in range(5):
        orders.clock.ms += 1
        arns.append(backed_up(orders, f"b{number // 2}.x")["BackupArn"])
        background(orders)
    first = orders.clock.ms - 4
    found = []
    after: dict[str, Any] = {}
    while True:
        page = ok(orders, "ListBackups", Limit=2, **after)
        found += [summary["BackupArn"] for summary in page["BackupSummaries"]]
        if "LastEvaluatedBackupArn" not in page:
            break
        after = {"ExclusiveStartBackupArn": page["LastEvaluatedBackupArn"]}
    assert found == arns
    assert "LastEvaluatedBackupArn" not in ok(orders, "ListBackups", Limit=5)
    between = ok(
        orders,
        "ListBackups",
        TimeRangeLowerBound=(first + 1) / 1000,
        TimeRangeUpperBound=(first + 3) / 1000,
        BackupType="ALL",
    )
    assert [summary["BackupArn"] for summary in between["BackupSummaries"]] == arns[1:3]
    assert ok(orders, "ListBackups", TableName="nowhere") == {"BackupSummaries": []}
    assert orders.error("ListBackups", {"TimeRangeLowerBound": 2, "TimeRangeUpperBound": 1}) == (
        "ValidationException",
        "One or more parameter values were invalid: Time range lower bound must be less than or equal to upper bound",
    )
    assert orders.error("ListBackups", {"Limit": 101})[0] == "ValidationException"


@pytest.mark.parametrize(
    ("arn", "code", "text"),
    [
        (ARN, "ValidationException", "Invalid Backup ARN"),
        (
            "arn:aws:s3:us-east-1:000000000000:table/orders",
            "ValidationException",
            "Invalid Request: BackupArn is not valid",
        ),
        (f"{ARN}/backup/01700000000000-0000002a", "BackupNotFoundException", None),
    ],
)
def test_an_arn_of_no_backup_is_refused(orders: Any, arn: str, code: str, text: str | None) -> None:
    for operation in ("DescribeBackup", "DeleteBackup", "RestoreTableFromBackup"):
        given = {"BackupArn": arn}
        if operation == "RestoreTableFromBackup":
            given["TargetTableName"] = "again"
        assert orders.error(operation, given) == (code, text or f"Backup not found: {arn}")


def test_a_backup_of_a_missing_table_is_refused(orders: Any) -> None:
    assert orders.error("CreateBackup", {"TableName": "nowhere", "BackupName": "one"}) == (
        "TableNotFoundException",
        "Table not found: nowhere",
    )

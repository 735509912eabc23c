"""Findings of table-restore.md."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.backups.test_backups import background, ok
from tests.adapters.dynamodb.measured.conftest import BY_A, with_index
from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    INVALID,
    OK,
    answer,
    arn,
    check,
    in_use,
    not_found,
    tags,
    units,
)

REQUEST = "Invalid Request: "
ON = {"PointInTimeRecoveryEnabled": True}
LATEST = {"SourceTableName": "orders", "TargetTableName": "target", "UseLatestRestorableTime": True}
TARGET = {"TableName": "target"}
NO_RECOVERY = (
    "PointInTimeRecoveryUnavailableException",
    "Point in time recovery is not enabled for table 'orders'",
)
EXISTS = ("TableAlreadyExistsException", "Table already exists: taken")
BOTH = f"{REQUEST}Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore request. Pleas…"
EITHER = f"{REQUEST}Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}


@pytest.fixture
def recoverable(service):
    """`orders` with point-in-time recovery, `taken` without."""
    service.table("orders")
    service.table("taken")
    ok(service, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=ON)
    return service


@pytest.fixture
def backup(service) -> str:
    """The ARN of a backup of `orders`, which is on demand and has an index."""
    service.table("orders", **with_index())
    made = ok(service, "CreateBackup", TableName="orders", BackupName="bkp")["BackupDetails"]["BackupArn"]
    background(service)
    return made


def restored(service, backup: str, **more):
    """The table that a backup becomes, as it is described once it is ACTIVE."""
    ok(service, "RestoreTableFromBackup", BackupArn=backup, TargetTableName="target", **more)
    background(service)
    return service.described("target")


# To a point in time

SHAPES = [
    ({"SourceTableArn": arn("orders")}, "Must provide exactly one of: sourceTableArn, sourceTableName"),
    ({"SourceTableName": None}, "The parameter 'TableName' is required but was not present in the request"),
    ({"RestoreDateTime": 1}, BOTH),
    ({"UseLatestRestorableTime": False}, EITHER),
    ({"UseLatestRestorableTime": None}, EITHER),
    ({"SourceTableName": "missing"}, ("TableNotFoundException", "Table not found: missing")),
    (
        {"SourceTableName": "missing", "TargetTableName": "taken"},
        ("TableNotFoundException", "Table not found: missing"),
    ),
    (
        {"SourceTableName": None, "SourceTableArn": "orders"},
        f"{INVALID}sourceTableArn is not a valid ARN",
    ),
    (
        {"TargetTableName": "bad name!"},
        f"{DETECTED}'bad name!' at 'targetTableName' failed to satisfy constraint: Member must satisfy re…",
    ),
    ({"TargetTableName": ""}, "TableName must be at least 3 characters long and at most 255 characters long"),
]


@pytest.mark.parametrize(("given", "recorded"), SHAPES)
def test_shapes_are_looked_at_first_table_272_table_100_table_087(recoverable, given, recorded):
    check(recoverable, "RestoreTableToPointInTime", {**LATEST, **given}, recorded)
    check(recoverable, "DescribeTable", TARGET, not_found("Table: target not found"))


def test_a_source_of_another_account_is_refused_table_272(separate):
    request = {**LATEST, "SourceTableName": None, "SourceTableArn": arn("orders", account="111122223333")}
    text = "This action is only supported by accounts that match the resource owner\u2019s account."
    check(separate, "RestoreTableToPointInTime", request, text)


def test_recovery_and_time_are_checked_before_the_target_table_100_table_087(recoverable):
    at = recoverable.clock.ms / 1000
    check(recoverable, "RestoreTableToPointInTime", {**LATEST, "TargetTableName": "taken"}, EXISTS)
    check(
        recoverable,
        "RestoreTableToPointInTime",
        {**LATEST, "TargetTableName": "orders"},
        ("TableAlreadyExistsException", "Table already exists: orders"),
    )
    for asked in (at - 3_600, at + 3_600, 0):
        early = {
            **LATEST,
            "UseLatestRestorableTime": None,
            "RestoreDateTime": asked,
            "TargetTableName": "taken",
        }
        code, text = answer(recoverable, "RestoreTableToPointInTime", early)
        assert code == "InvalidRestoreTimeException"
        assert "' must be within EarliestRestorableDateTime '" in text
    off = {"PointInTimeRecoveryEnabled": False}
    ok(recoverable, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=off)
    for more in ({"TargetTableName": "taken"}, {"UseLatestRestorableTime": None, "RestoreDateTime": 1}):
        check(recoverable, "RestoreTableToPointInTime", {**LATEST, **more}, NO_RECOVERY)


def test_names_of_tables_that_are_being_deleted_table_100_table_275(delayed):
    for name in ("orders", "taken"):
        delayed.table(name)
    delayed.clock.ms += 20_000
    ok(delayed, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=ON)
    made = ok(delayed, "CreateBackup", TableName="orders", BackupName="bkp")["BackupDetails"]["BackupArn"]
    background(delayed)
    ok(delayed, "DeleteTable", TableName="taken")
    check(delayed, "RestoreTableToPointInTime", {**LATEST, "TargetTableName": "taken"}, EXISTS)
    check(delayed, "RestoreTableFromBackup", {"BackupArn": made, "TargetTableName": "taken"}, EXISTS)
    ok(delayed, "DeleteTable", TableName="orders")
    assert delayed.described()["TableStatus"] == "DELETING"
    check(delayed, "RestoreTableToPointInTime", LATEST, OK)


def test_a_table_can_be_restored_as_soon_as_recovery_is_on_table_086(recoverable):
    now = recoverable.clock.ms / 1000
    shown = ok(recoverable, "DescribeContinuousBackups", TableName="orders")["ContinuousBackupsDescription"]
    recovery = shown["PointInTimeRecoveryDescription"]
    assert recovery["EarliestRestorableDateTime"] == recovery["LatestRestorableDateTime"] == now
    off = ok(recoverable, "DescribeContinuousBackups", TableName="taken")["ContinuousBackupsDescription"]
    assert off["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}
    check(recoverable, "RestoreTableToPointInTime", LATEST, OK)
    background(recoverable)
    assert recoverable.described("target")["TableStatus"] == "ACTIVE"


# Restores of a backup

OVERRIDES = [
    (
        {"ProvisionedThroughputOverride": units(1, 1)},
        f"{REQUEST}Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED",
    ),
    (
        {"BillingModeOverride": "PROVISIONED"},
        f"{REQUEST}Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED",
    ),
    (
        {"BillingModeOverride": "PAY_PER_REQUEST", "ProvisionedThroughputOverride": units(1, 1)},
        f"{REQUEST}Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST",
    ),
    (
        {"OnDemandThroughputOverride": {"MaxReadRequestUnits": 0, "MaxWriteRequestUnits": 0}},
        f"{REQUEST}Requested MaxReadRequestUnits for OnDemandThroughput is outside of valid range",
    ),
    (
        {
            "GlobalSecondaryIndexOverride": [
                {**BY_A, "IndexName": "new", "Projection": {"ProjectionType": "KEYS_ONLY"}}
            ]
        },
        (
            f"{REQUEST}Index new does not match a secondary index that existed in the source table and cannot be created "
            "during the restore operation"
        ),
    ),
    (
        {"BillingModeOverride": "BOGUS"},
        (
            f"{DETECTED}'BOGUS' at 'billingModeOverride' failed to satisfy constraint: "
            "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]"
        ),
    ),
    ({"BackupArn": arn("orders")}, "Invalid Backup ARN"),
    (
        {"BackupArn": arn("orders/backup/01700000000000-0123abcd")},
        ("BackupNotFoundException", f"Backup not found: {arn('orders/backup/01700000000000-0123abcd')}"),
    ),
    ({"TargetTableName": ""}, "TableName must be at least 3 characters long and at most 255 characters long"),
    (
        {"SSESpecificationOverride": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": ""}},
        (
            f"{DETECTED}'' at 'sSESpecificationOverride.kMSMasterKeyId' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1"
        ),
    ),
    (
        {"ProvisionedThroughputOverride": {}},
        (
            "2 validation errors detected: Value null at 'provisionedThroughputOverride.writeCapacityUnits' failed to satisfy "
            "constraint: Member must not be null; Value null at 'provisionedThroughputOverride.readCapacityUnits' failed to "
            "satisfy constraint: Member must not be null"
        ),
    ),
    (
        {"GlobalSecondaryIndexOverride": [{}]},
        (
            "3 validation errors detected: Value null at 'globalSecondaryIndexOverride.1.member.indexName' failed to satisfy "
            "constraint: Member must not be null; Value null at 'globalSecondaryIndexOverride.1.member.keySchema' failed to "
            "satisfy constraint: Member must not be null; Value null at 'globalSecondaryIndexOverride.1.member.projection' "
            "failed to satisfy constraint: Member must not be null"
        ),
    ),
]


@pytest.mark.parametrize(("given", "recorded"), OVERRIDES)
def test_overrides_that_are_refused_table_273(service, backup, given, recorded):
    check(
        service,
        "RestoreTableFromBackup",
        {"BackupArn": backup, "TargetTableName": "target", **given},
        recorded,
    )
    check(service, "DescribeTable", TARGET, not_found("Table: target not found"))


def test_a_backup_of_another_region_needs_an_encryption_override_table_274(service, backup):
    elsewhere = {"BackupArn": backup.replace("us-east-1", "us-west-2"), "TargetTableName": "target"}
    text = f"{REQUEST}sseSpecificationOverride must be provided for cross-region restores"
    check(service, "RestoreTableFromBackup", elsewhere, text)
    encryption = {"Enabled": True, "SSEType": "KMS"}
    check(service, "RestoreTableFromBackup", {**elsewhere, "SSESpecificationOverride": encryption}, OK)
    background(service)
    assert ":us-east-1:" in service.described("target")["SSEDescription"]["KMSMasterKeyArn"]


def test_a_source_of_another_region_needs_an_encryption_override_table_274(separate):
    request = {**LATEST, "SourceTableName": None, "SourceTableArn": arn("orders", region="us-west-2")}
    text = f"{REQUEST}sseSpecificationOverride must be provided for cross-region restores"
    check(separate, "RestoreTableToPointInTime", request, text)


def test_an_empty_list_of_indexes_is_none_table_279(service, backup):
    assert "GlobalSecondaryIndexes" not in restored(
        service, backup, GlobalSecondaryIndexOverride=[], LocalSecondaryIndexOverride=[]
    )
    ok(service, "RestoreTableFromBackup", BackupArn=backup, TargetTableName="other")
    background(service)
    assert [index["IndexName"] for index in service.described("other")["GlobalSecondaryIndexes"]] == ["gsi1"]


@pytest.mark.parametrize("given", [{"Enabled": False}, {}])
def test_encryption_switched_off_table_276_table_463(service, backup, given):
    assert "SSEDescription" not in restored(service, backup, SSESpecificationOverride=given)


def test_a_restore_applies_given_maxima_table_405_table_463(service, backup):
    maxima = {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 10}
    assert restored(service, backup, OnDemandThroughputOverride=maxima)["OnDemandThroughput"] == maxima


def test_a_restore_without_maxima_sets_none_table_463(service, backup):
    """The service begins this restore, too, and yet refuses the request with TableInUseException."""
    assert "OnDemandThroughput" not in restored(service, backup, OnDemandThroughputOverride={})


# The table that is made


def test_a_restored_table_has_the_measured_settings_table_215_table_216(service):
    service.table(
        TableClass="STANDARD_INFREQUENT_ACCESS",
        DeletionProtectionEnabled=True,
        OnDemandThroughput={"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50},
        SSESpecification={"Enabled": True, "SSEType": "KMS"},
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=tags(a="b"),
    )
    ok(service, "UpdateTimeToLive", TableName="orders", **TTL)
    ok(service, "UpdateContinuousBackups", TableName="orders", PointInTimeRecoverySpecification=ON)
    made = ok(service, "CreateBackup", TableName="orders", BackupName="bkp")["BackupDetails"]
    background(service)
    source = service.described("orders")
    begun = ok(service, "RestoreTableFromBackup", BackupArn=made["BackupArn"], TargetTableName="target")
    summary = {
        "SourceBackupArn": made["BackupArn"],
        "SourceTableArn": arn("orders"),
        "RestoreDateTime": made["BackupCreationDateTime"],
        "RestoreInProgress": True,
    }
    assert begun["TableDescription"]["RestoreSummary"] == summary
    assert service.described("target")["RestoreSummary"] == summary
    background(service)
    shown = service.described("target")
    for gone in ("RestoreSummary", "StreamSpecification", "LatestStreamArn", "TableClassSummary"):
        assert gone not in shown
    assert shown["DeletionProtectionEnabled"] is False
    for kept in ("SSEDescription", "OnDemandThroughput"):
        assert shown[kept] == source[kept]
    assert shown["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert ok(service, "DescribeTimeToLive", **TARGET)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "DISABLED"
    }
    recovery = ok(service, "DescribeContinuousBackups", **TARGET)["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"] == {"PointInTimeRecoveryStatus": "DISABLED"}
    assert ok(service, "ListTagsOfResource", ResourceArn=arn("target")) == {"Tags": []}
    assert (
        answer(service, "GetResourcePolicy", {"ResourceArn": arn("target")})[0] == "PolicyNotFoundException"
    )


NOT_THERE = not_found("Table: target not found")
NO_BACKUPS = ("TableNotFoundException", "Table not found: target")
MEANWHILE = [
    ("UpdateTimeToLive", {**TARGET, **TTL}, NOT_THERE),
    ("DescribeTimeToLive", TARGET, NOT_THERE),
    ("UpdateTable", {**TARGET, "DeletionProtectionEnabled": True}, NOT_THERE),
    (
        "UpdateTable",
        {**TARGET, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
        NOT_THERE,
    ),
    ("DescribeContributorInsights", TARGET, NOT_THERE),
    ("UpdateContinuousBackups", {**TARGET, "PointInTimeRecoverySpecification": ON}, NO_BACKUPS),
    ("DescribeContinuousBackups", TARGET, NO_BACKUPS),
    ("CreateBackup", {**TARGET, "BackupName": "bkp"}, NO_BACKUPS),
    ("CreateTable", {**CREATE, "TableName": "target"}, in_use("Table is being used: target")),
    ("DeleteTable", TARGET, in_use("Table is being created: target")),
    ("DescribeTable", TARGET, OK),
]


@pytest.mark.parametrize(("operation", "request_", "recorded"), MEANWHILE)
def test_a_table_that_is_being_restored_table_217_table_219_table_277(
    service, backup, operation, request_, recorded
):
    restore = {"BackupArn": backup, "TargetTableName": "target"}
    check(service, "RestoreTableFromBackup", restore, OK)
    check(service, operation, request_, recorded)
    text = f"Table: target is already being restored from backup: {backup}"
    check(
        service,
        "RestoreTableFromBackup",
        restore,
        ("TableInUseException", text),
        ("BackupInUseException", f"Backup is being used to restore another table: {backup}"),
    )
    for resource in ("TagResource", "ListTagsOfResource", "GetResourcePolicy"):
        more = {"Tags": tags(a="b")} if resource == "TagResource" else {}
        assert (
            answer(service, resource, {"ResourceArn": arn("target"), **more})[0]
            == "ResourceNotFoundException"
        )
    background(service)
    check(service, "DeleteBackup", {"BackupArn": backup}, OK)
    check(service, "TagResource", {"ResourceArn": arn("target"), "Tags": tags(a="b")}, OK)


def test_a_name_that_is_taken_table_219(service, backup):
    check(
        service,
        "RestoreTableFromBackup",
        {"BackupArn": backup, "TargetTableName": "orders"},
        ("TableAlreadyExistsException", "Table already exists: orders"),
    )


def test_settings_follow_once_the_table_is_there_table_218(service, backup):
    restored(service, backup)
    service.update("target", StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    ok(service, "UpdateTimeToLive", **TARGET, **TTL)
    ok(service, "UpdateContinuousBackups", **TARGET, PointInTimeRecoverySpecification=ON)
    ok(service, "TagResource", ResourceArn=arn("target"), Tags=tags(a="b"))
    assert service.update("target", DeletionProtectionEnabled=True)["TableStatus"] == "ACTIVE"
    assert service.update("target", TableClass="STANDARD_INFREQUENT_ACCESS")["TableStatus"] == "UPDATING"
    service.update("target", OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 10})


def test_several_restores_of_one_source_table_282(service):
    service.table("orders", **with_index())
    made = []
    for number in range(7):
        backup = ok(service, "CreateBackup", TableName="orders", BackupName=f"bkp{number}")["BackupDetails"][
            "BackupArn"
        ]
        made.append(backup)
    background(service)
    for number, backup in enumerate(made):
        check(
            service, "RestoreTableFromBackup", {"BackupArn": backup, "TargetTableName": f"target{number}"}, OK
        )
    [index] = service.described("target6")["GlobalSecondaryIndexes"]
    assert "IndexStatus" not in index
    background(service)
    assert {service.described(f"target{number}")["TableStatus"] for number in range(7)} == {"ACTIVE"}

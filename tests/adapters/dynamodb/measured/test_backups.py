"""Findings of backup.md that tests/adapters/dynamodb/features/backups/test_backups.py has not."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.backups.test_backups import background, ok
from tests.adapters.dynamodb.measured.conftest import with_index
from tests.adapters.dynamodb.measured.recorded import (
    DETECTED,
    INVALID,
    OK,
    Case,
    answer,
    arn,
    check,
    each,
    units,
)

ORDERS = {"TableName": "orders"}
DENIED = ("AccessDeniedException", "Access is denied")
NOT_VALID = "Invalid Request: BackupArn is not valid"


def backed_up(service, name="bkp", **more):
    made = ok(service, "CreateBackup", **{**ORDERS, "BackupName": name, **more})["BackupDetails"]["BackupArn"]
    background(service)
    return made


def test_a_backup_of_a_table_in_other_states_backup_001_backup_007(delayed):
    missing = ("TableNotFoundException", "Table not found: orders")
    table = delayed.table()
    check(delayed, "CreateBackup", {**ORDERS, "BackupName": "one"}, missing)
    delayed.clock.ms += 20_000
    delayed.update(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    assert delayed.described()["TableStatus"] == "UPDATING"
    made = backed_up(delayed)
    delayed.clock.ms += 20_000
    ok(delayed, "DeleteTable", **ORDERS)
    assert delayed.described()["TableStatus"] == "DELETING"
    late = backed_up(delayed, "late")
    delayed.clock.ms += 20_000
    background(delayed)
    check(delayed, "CreateBackup", {**ORDERS, "BackupName": "two"}, missing)
    for each_arn in (made, late):
        shown = ok(delayed, "DescribeBackup", BackupArn=each_arn)["BackupDescription"]
        assert shown["BackupDetails"]["BackupStatus"] == "AVAILABLE"
        assert shown["SourceTableDetails"]["TableId"] == table["TableId"]
        assert shown["SourceTableDetails"]["KeySchema"] == table["KeySchema"]
    assert len(ok(delayed, "ListBackups", **ORDERS)["BackupSummaries"]) == 2


def test_a_name_of_backups_is_not_their_own_backup_011_backup_019(service):
    service.table()
    made = [backed_up(service, "same") for _ in range(12)]
    listed = ok(service, "ListBackups", **ORDERS)["BackupSummaries"]
    assert len(set(made)) == 12
    assert [summary["BackupArn"] for summary in listed] == made
    assert set(listed[0]) == {
        *(
            "BackupArn",
            "BackupCreationDateTime",
            "BackupName",
            "BackupSizeBytes",
            "BackupStatus",
            "BackupType",
        ),
        *("TableArn", "TableId", "TableName"),
    }


def test_the_region_in_an_arn_is_not_looked_at_backup_012(separate):
    made = backed_up(separate)
    elsewhere = made.replace("us-east-1", "us-west-2")
    shown = ok(separate, "DescribeBackup", BackupArn=elsewhere)["BackupDescription"]
    assert shown["BackupDetails"]["BackupArn"] == elsewhere
    wrong = {
        "xx-fake-1": NOT_VALID,
        "": DENIED,
    }
    for region, recorded in wrong.items():
        check(separate, "DescribeBackup", {"BackupArn": made.replace("us-east-1", region)}, recorded)
    for wrong_arn in (made.replace("arn:aws:", "arn:aws-cn:"), made.replace(":dynamodb:", ":s3:")):
        check(separate, "DescribeBackup", {"BackupArn": wrong_arn}, NOT_VALID)
    check(separate, "DescribeBackup", {"BackupArn": made.replace("000000000000", "111122223333")}, DENIED)
    for no_arn in (arn("orders"), "x" * 48):
        check(separate, "DescribeBackup", {"BackupArn": no_arn}, "Invalid Backup ARN")
    text = "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region"
    check(separate, "ListBackups", {"ExclusiveStartBackupArn": elsewhere}, text)
    assert (
        ok(separate, "DeleteBackup", BackupArn=elsewhere)["BackupDescription"]["BackupDetails"][
            "BackupStatus"
        ]
        == "DELETED"
    )
    check(
        separate,
        "DescribeBackup",
        {"BackupArn": made},
        ("BackupNotFoundException", f"Backup not found: {made}"),
    )


LISTED: list[Case] = [
    (
        "BACKUP-014",
        "ListBackups",
        {"BackupType": kind},
        f"{DETECTED}'{kind}' at 'backupType' failed to satisfy constraint: Member must satisfy enum value set: …",
    )
    for kind in ("BOGUS", "user")
]
LISTED += [
    ("BACKUP-014", "ListBackups", {"TableName": "missing"}, OK),
    ("BACKUP-014", "ListBackups", {"TimeRangeLowerBound": 0, "TimeRangeUpperBound": 9_999_999_999}, OK),
    (
        "BACKUP-014",
        "ListBackups",
        {"TimeRangeLowerBound": 2, "TimeRangeUpperBound": 1},
        f"{INVALID}Time range lower bound must be less than or equal to upper bound",
    ),
    (
        "BACKUP-014",
        "ListBackups",
        {"Limit": 101},
        f"{DETECTED}'101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100",
    ),
]


@each(LISTED)
def test_lists_of_backups(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


@pytest.mark.parametrize(("limit", "pages"), [(2, [2, 1]), (3, [3]), (100, [3])])
def test_pages_of_backups_backup_014_backup_027_backup_028(service, limit, pages):
    service.table()
    made = []
    for number in range(3):
        service.clock.ms += 1
        made.append(backed_up(service, f"backup{number}"))
    found, more = [], {}
    for size in pages:
        page = ok(service, "ListBackups", Limit=limit, **more)
        assert len(page["BackupSummaries"]) == size
        found += [summary["BackupArn"] for summary in page["BackupSummaries"]]
        more = {"ExclusiveStartBackupArn": page.get("LastEvaluatedBackupArn")}
    assert found == made
    assert more == {"ExclusiveStartBackupArn": None}
    ok(service, "DeleteBackup", BackupArn=made[0])
    rest = ok(service, "ListBackups", ExclusiveStartBackupArn=made[0])["BackupSummaries"]
    assert [summary["BackupArn"] for summary in rest] == made[1:]
    for kind, count in (("USER", 2), ("ALL", 2), ("SYSTEM", 0), ("AWS_BACKUP", 0)):
        assert len(ok(service, "ListBackups", BackupType=kind)["BackupSummaries"]) == count


def test_backups_of_tables_of_one_name_backup_016(service):
    made = []
    for _ in range(2):
        table_id = service.table()["TableId"]
        made.append((backed_up(service), table_id))
        ok(service, "DeleteTable", **ORDERS)
        background(service)
        service.clock.ms += 1
    listed = ok(service, "ListBackups", **ORDERS)["BackupSummaries"]
    assert [(summary["BackupArn"], summary["TableId"]) for summary in listed] == made
    assert {summary["TableArn"] for summary in listed} == {arn("orders")}
    check(service, "RestoreTableFromBackup", {"BackupArn": made[0][0], "TargetTableName": "again"}, OK)


def test_a_backup_describes_its_source_backup_004_backup_006_backup_009_backup_024(service):
    service.table(
        TableClass="STANDARD_INFREQUENT_ACCESS",
        DeletionProtectionEnabled=True,
        OnDemandThroughput={"MaxReadRequestUnits": 100, "MaxWriteRequestUnits": 50},
        SSESpecification={"Enabled": True, "SSEType": "KMS"},
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "a", "Value": "b"}],
    )
    ttl = {"Enabled": True, "AttributeName": "ttl"}
    ok(service, "UpdateTimeToLive", **ORDERS, TimeToLiveSpecification=ttl)
    answered = ok(service, "CreateBackup", **ORDERS, BackupName="bkp")
    made = answered["BackupDetails"]
    assert answered.keys() == {"BackupDetails"}
    assert made.keys() == {
        *(
            "BackupArn",
            "BackupCreationDateTime",
            "BackupName",
            "BackupSizeBytes",
            "BackupStatus",
            "BackupType",
        )
    }
    assert made["BackupStatus"] == "CREATING"
    assert made["BackupCreationDateTime"] == service.clock.ms / 1000
    background(service)
    shown = ok(service, "DescribeBackup", BackupArn=made["BackupArn"])["BackupDescription"]
    assert shown.keys() == {"BackupDetails", "SourceTableDetails", "SourceTableFeatureDetails"}
    assert shown["BackupDetails"] == {**made, "BackupStatus": "AVAILABLE"}
    assert shown["SourceTableDetails"].keys() == {
        *("TableName", "TableId", "TableArn", "TableSizeBytes", "KeySchema", "TableCreationDateTime"),
        *("ProvisionedThroughput", "OnDemandThroughput", "ItemCount", "BillingMode"),
    }
    assert shown["SourceTableDetails"]["ProvisionedThroughput"] == units(0, 0)
    features = shown["SourceTableFeatureDetails"]
    assert features == {
        "StreamDescription": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"},
        "SSEDescription": {
            "Status": "ENABLED",
            "SSEType": "KMS",
            "KMSMasterKeyArn": features["SSEDescription"]["KMSMasterKeyArn"],
        },
    }
    [summary] = ok(service, "ListBackups")["BackupSummaries"]
    assert summary["BackupCreationDateTime"] == made["BackupCreationDateTime"]


def test_a_plain_table_has_no_features_backup_004(service):
    service.table()
    shown = ok(service, "DescribeBackup", BackupArn=backed_up(service))["BackupDescription"]
    assert shown["SourceTableFeatureDetails"] == {}
    assert "OnDemandThroughput" not in shown["SourceTableDetails"]


def test_a_backup_has_the_maxima_of_its_time_backup_017(service):
    service.table(OnDemandThroughput={"MaxReadRequestUnits": 200, "MaxWriteRequestUnits": 100})
    made = backed_up(service)
    service.update(OnDemandThroughput={"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1})
    shown = ok(service, "DescribeBackup", BackupArn=made)["BackupDescription"]["SourceTableDetails"]
    assert shown["OnDemandThroughput"] == {"MaxReadRequestUnits": 200, "MaxWriteRequestUnits": 100}


def test_a_backup_has_the_indexes_of_its_time_backup_021(service):
    service.table(
        BillingMode=None, ProvisionedThroughput=units(5, 5), **with_index(ProvisionedThroughput=units(5, 5))
    )
    made = backed_up(service)
    update = {"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(10, 10)}}
    service.update(GlobalSecondaryIndexUpdates=[update])
    features = ok(service, "DescribeBackup", BackupArn=made)["BackupDescription"]["SourceTableFeatureDetails"]
    [index] = features["GlobalSecondaryIndexes"]
    assert index.keys() == {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"}
    assert index["ProvisionedThroughput"] == units(5, 5)
    ok(service, "RestoreTableFromBackup", BackupArn=made, TargetTableName="again")
    background(service)
    [index] = service.described("again")["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_a_table_without_recovery_leaves_no_backup_backup_015(service):
    service.table()
    ok(service, "DeleteTable", **ORDERS)
    background(service)
    assert ok(service, "ListBackups", BackupType="ALL") == {"BackupSummaries": []}


def test_a_system_backup_cannot_be_deleted_backup_015(service):
    service.table()
    on = {"PointInTimeRecoveryEnabled": True}
    ok(service, "UpdateContinuousBackups", **ORDERS, PointInTimeRecoverySpecification=on)
    ok(service, "DeleteTable", **ORDERS)
    background(service)
    [summary] = ok(service, "ListBackups", BackupType="SYSTEM")["BackupSummaries"]
    text = (
        f"Invalid Request: User is not allowed to delete the system backup with arn {summary['BackupArn']}. "
    )
    code, told = answer(service, "DeleteBackup", {"BackupArn": summary["BackupArn"]})
    assert code == "ValidationException"
    assert told.startswith(f"{text}It will automatically expire on ")

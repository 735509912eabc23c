"""Findings of table-subresources.md on time to live, continuous backups and indexes. test_insights.py has the others."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.backups.test_backups import OFF, ON, background, ok
from tests.adapters.dynamodb.measured.conftest import with_index
from tests.adapters.dynamodb.measured.recorded import (
    DETECTED,
    OK,
    Case,
    answer,
    arn,
    check,
    each,
    in_use,
    not_found,
    tags,
    units,
)
from tests.adapters.dynamodb.measured.test_indexes import (
    DELETE_A,
    OF_B,
    ORDERS,
    defined,
    index,
    keys,
    updates,
)

# Time to live


def ttl(enabled, attribute="ttl_a"):
    given = {"Enabled": enabled, "AttributeName": attribute}
    return {**ORDERS, "TimeToLiveSpecification": {k: v for k, v in given.items() if v is not None}}


def time_to_live(service):
    return ok(service, "DescribeTimeToLive", **ORDERS)["TimeToLiveDescription"]


ALREADY = "TimeToLive is already "
OTHER = "TimeToLive is active on a different AttributeName: current AttributeName is ttl_a"
TOO_SOON = "Time to live has been modified multiple times within a fixed interval"
NOT_NULL = "failed to satisfy constraint: Member must not be null"
SPECIFICATION = "timeToLiveSpecification"


def test_a_change_of_time_to_live_is_answered_as_it_was_asked_for_table_145_table_144(service):
    service.table()
    assert time_to_live(service) == {"TimeToLiveStatus": "DISABLED"}
    asked = ttl(True)
    answered = ok(service, "UpdateTimeToLive", **asked)
    assert answered == {"TimeToLiveSpecification": asked["TimeToLiveSpecification"]}
    assert time_to_live(service) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl_a"}
    assert service.described()["TableStatus"] == "ACTIVE"
    ok(service, "UpdateTimeToLive", **ttl(False))
    assert time_to_live(service) == {"TimeToLiveStatus": "DISABLED"}


NEVER_HAD: list[Case] = [
    ("TABLE-146", "UpdateTimeToLive", ttl(False, "x"), f"{ALREADY}disabled"),
    ("TABLE-146", "UpdateTimeToLive", ttl(True, "pk"), OK),
    (
        "TABLE-146",
        "UpdateTimeToLive",
        ttl(True, "a" * 256),
        (
            f"{DETECTED}'{'a' * 256}' at '{SPECIFICATION}.attributeName' failed to satisfy constraint: "
            "Member must have length less than or equal to 255"
        ),
    ),
    *(
        ("TABLE-146", "UpdateTimeToLive", ttl(on, None), f"{DETECTED}null at '{SPECIFICATION}.attributeName' {NOT_NULL}")
        for on in (True, False)
    ),
    ("TABLE-146", "UpdateTimeToLive", ttl(None), f"{DETECTED}null at '{SPECIFICATION}.enabled' {NOT_NULL}"),
]  # fmt: skip


@each(NEVER_HAD)
def test_a_new_table_has_time_to_live_disabled(service, operation, request_, recorded):
    service.table()
    check(service, operation, request_, recorded)


def test_changes_of_time_to_live_that_change_nothing_table_147_table_146(service):
    service.table()
    check(service, "UpdateTimeToLive", ttl(True), OK)
    check(service, "UpdateTimeToLive", ttl(True), f"{ALREADY}enabled")
    check(service, "UpdateTimeToLive", ttl(True, "ttl_b"), OTHER)
    check(service, "UpdateTimeToLive", ttl(False, "ttl_b"), OTHER)
    assert time_to_live(service) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl_a"}
    check(service, "UpdateTimeToLive", ttl(False), OK)
    check(service, "UpdateTimeToLive", ttl(False), f"{ALREADY}disabled")


def test_time_to_live_cannot_be_changed_again_for_half_an_hour_table_143_table_147(delayed):
    """Refused after 1,811.6 seconds, accepted after 1,871.7. The request itself is validated first."""
    delayed.table()
    delayed.clock.ms += 20_000
    for enabled in (True, False):
        check(delayed, "UpdateTimeToLive", ttl(enabled), OK)
        for elapsed in (0, 8_100, 1_811_600 - 8_100):
            delayed.clock.ms += elapsed
            check(delayed, "UpdateTimeToLive", ttl(not enabled), TOO_SOON)
            check(
                delayed, "UpdateTimeToLive", ttl(enabled), f"{ALREADY}{'enabled' if enabled else 'disabled'}"
            )
            if enabled:
                check(delayed, "UpdateTimeToLive", ttl(True, "ttl_b"), OTHER)
        delayed.clock.ms += 1_871_700 - 1_811_600
    check(delayed, "UpdateTimeToLive", ttl(True, "ttl_b"), OK)


# Continuous backups


def backups(service, operation="DescribeContinuousBackups", **more):
    answered = ok(service, operation, **ORDERS, **more)
    assert answered.keys() == {"ContinuousBackupsDescription"}
    return answered["ContinuousBackupsDescription"]


def recovery(service, **specification):
    answered = backups(service, "UpdateContinuousBackups", PointInTimeRecoverySpecification=specification)
    assert answered == backups(service)
    return answered["PointInTimeRecoveryDescription"]


NO_RECOVERY = {"PointInTimeRecoveryStatus": "DISABLED"}


def test_continuous_backups_are_enabled_by_themselves_table_111_table_083(delayed):
    """Three seconds after the table became ACTIVE."""
    delayed.table()
    delayed.clock.ms += 10_000
    assert delayed.described()["TableStatus"] == "ACTIVE"
    new = {"ContinuousBackupsStatus": "DISABLED", "PointInTimeRecoveryDescription": NO_RECOVERY}
    assert backups(delayed) == new
    delayed.clock.ms += 2_900
    assert backups(delayed) == new
    delayed.clock.ms += 200
    assert backups(delayed) == {**new, "ContinuousBackupsStatus": "ENABLED"}


def test_recovery_switched_off_leaves_continuous_backups_on_table_083(delayed):
    delayed.table()
    delayed.clock.ms += 10_000
    assert backups(delayed)["ContinuousBackupsStatus"] == "DISABLED"
    on = backups(delayed, "UpdateContinuousBackups", PointInTimeRecoverySpecification=ON)
    assert on["ContinuousBackupsStatus"] == "ENABLED"
    assert on["PointInTimeRecoveryDescription"].keys() == {
        *("EarliestRestorableDateTime", "LatestRestorableDateTime"),
        *("PointInTimeRecoveryStatus", "RecoveryPeriodInDays"),
    }
    off = backups(delayed, "UpdateContinuousBackups", PointInTimeRecoverySpecification=OFF)
    assert off == {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": NO_RECOVERY}
    assert backups(delayed) == off


def test_recovery_that_is_switched_off_and_on_begins_anew_table_085(service):
    service.table()
    since = service.clock.ms / 1000
    assert recovery(service, **ON)["EarliestRestorableDateTime"] == since
    service.clock.ms += 20_000
    assert recovery(service, **ON)["EarliestRestorableDateTime"] == since
    assert recovery(service, **OFF) == recovery(service, **OFF) == NO_RECOVERY
    assert recovery(service, **ON)["EarliestRestorableDateTime"] == since + 20
    assert service.described()["TableStatus"] == "ACTIVE"


def test_days_of_recovery_table_084(service):
    service.table()
    assert recovery(service, **ON)["RecoveryPeriodInDays"] == 35
    for days in (7, 1, 35, 7):
        assert recovery(service, **ON, RecoveryPeriodInDays=days)["RecoveryPeriodInDays"] == days
    text = "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
    place = "'pointInTimeRecoverySpecification.recoveryPeriodInDays' failed to satisfy constraint:"
    for specification, recorded in (
        ({**ON, "RecoveryPeriodInDays": 36}, f"{DETECTED}'36' at {place} Member must have value less tha…"),
        ({**OFF, "RecoveryPeriodInDays": 7}, text),
        ({**OFF, "RecoveryPeriodInDays": 35}, text),
    ):
        request = {**ORDERS, "PointInTimeRecoverySpecification": specification}
        check(service, "UpdateContinuousBackups", request, recorded)
    assert recovery(service, **OFF) == NO_RECOVERY
    assert recovery(service, **ON)["RecoveryPeriodInDays"] == 35


@pytest.fixture
def deleting(delayed):
    """`orders` as it is being deleted: with recovery, or without."""

    def deleted(specification):
        delayed.table()
        delayed.clock.ms += 20_000
        recovery(delayed, **specification)
        ok(delayed, "DeleteTable", **ORDERS)
        assert delayed.described()["TableStatus"] == "DELETING"
        return delayed

    return deleted


def system_backups(service):
    """Return the backups that remain after the table is deleted."""
    service.clock.ms += 20_000
    background(service)
    check(service, "DescribeTable", ORDERS, not_found("Table: orders not found"))
    return ok(service, "ListBackups", BackupType="SYSTEM")["BackupSummaries"]


def test_a_deleted_table_leaves_a_backup_table_167(deleting):
    service = deleting(ON)
    [backup] = system_backups(service)
    assert backup["BackupName"] == "orders$DeletedTableBackup"
    assert backup["BackupExpiryDateTime"] == backup["BackupCreationDateTime"] + 35 * 86_400
    text = (
        f"Invalid Request: User is not allowed to delete the system backup with arn {backup['BackupArn']}. "
    )
    check(
        service, "DeleteBackup", {"BackupArn": backup["BackupArn"]}, f"{text}It will automatically expire on…"
    )
    check(
        service, "RestoreTableFromBackup", {"BackupArn": backup["BackupArn"], "TargetTableName": "again"}, OK
    )


def test_a_table_that_never_had_recovery_leaves_none_table_167_table_088(deleting):
    assert system_backups(deleting(OFF)) == []


def test_recovery_switched_off_while_a_table_is_being_deleted_table_088_table_113_table_167(deleting):
    service = deleting(ON)
    assert recovery(service, **OFF) == NO_RECOVERY
    assert system_backups(service) == []


def test_recovery_switched_on_while_a_table_is_being_deleted_table_453(deleting):
    service = deleting(OFF)
    assert recovery(service, **ON)["PointInTimeRecoveryStatus"] == "ENABLED"
    [backup] = system_backups(service)
    assert (backup["BackupName"], backup["BackupStatus"], backup["BackupSizeBytes"]) == (
        "orders$DeletedTableBackup", "AVAILABLE", 0,
    )  # fmt: skip
    assert backup["BackupExpiryDateTime"] == backup["BackupCreationDateTime"] + 35 * 86_400
    shown = ok(service, "DescribeBackup", BackupArn=backup["BackupArn"])["BackupDescription"]
    assert shown["SourceTableFeatureDetails"] == {}
    assert answer(service, "DeleteBackup", {"BackupArn": backup["BackupArn"]})[0] == "ValidationException"
    service.table()
    assert backups(service)["PointInTimeRecoveryDescription"] == NO_RECOVERY


def test_an_export_of_a_table_that_is_being_deleted_table_454(delayed_exporter):
    exporter, clock = delayed_exporter, delayed_exporter.service.clock
    exporter.service.table()
    clock.ms += 20_000
    exporter.keep_history()
    exporter.put("a")
    exporter.ok("DeleteTable", **ORDERS)
    begun = exporter.export()
    assert begun["ExportStatus"] == "IN_PROGRESS"
    clock.ms += 20_000
    exporter.work()
    check(exporter.service, "DescribeTable", ORDERS, not_found("Table: orders not found"))
    done = exporter.ok("DescribeExport", ExportArn=begun["ExportArn"])["ExportDescription"]
    assert (done["ExportStatus"], done["ItemCount"]) == ("COMPLETED", 1)
    gone = ("TableNotFoundException", f"Table not found: {arn('orders')}")
    again = {"TableArn": arn("orders"), "S3Bucket": "some-bucket", "ClientToken": "another"}
    check(exporter.service, "ExportTableToPointInTime", again, gone)


# Indexes


LOCAL = {
    "KeySchema": keys("pk", "-sk"),
    "AttributeDefinitions": defined("pk", "sk", "a", "b"),
    "LocalSecondaryIndexes": [index("lsi-b", keys("pk", "-b"))],
    "GlobalSecondaryIndexes": [index("gsi1")],
}
WARM = {"ReadUnitsPerSecond": 12_001, "WriteUnitsPerSecond": 4_001}
NOT_GLOBAL = "an index that is not a GlobalSecondaryIndex: lsi-b"

OF_LOCAL: list[Case] = [
    ("TABLE-137", "UpdateTable", {**ORDERS, **updates({"Delete": {"IndexName": "lsi-b"}})}, f"Cannot delete {NOT_GLOBAL}"),
    *(
        (
            "TABLE-137",
            "UpdateTable",
            {**ORDERS, **updates({"Update": {"IndexName": "lsi-b", **more}})},
            f"Cannot update {NOT_GLOBAL}",
        )
        for more in ({"ProvisionedThroughput": units(1, 1)}, {"WarmThroughput": WARM})
    ),
    (
        "TABLE-137",
        "UpdateTable",
        {**ORDERS, **OF_B, **updates({"Create": index("lsi-b", keys("b"))})},
        "Attempting to create an index which already exists",
    ),
    (
        "TABLE-137",
        "UpdateContributorInsights",
        {**ORDERS, "IndexName": "lsi-b", "ContributorInsightsAction": "ENABLE"},
        not_found("Index: lsi-b not found for table: orders"),
    ),
]  # fmt: skip


@each(OF_LOCAL)
def test_local_indexes_cannot_be_changed(service, operation, request_, recorded):
    service.table(**LOCAL)
    check(service, operation, request_, recorded)


def test_a_local_index_has_the_measured_description_table_137(service):
    service.table(**LOCAL)
    [shown] = service.described()["LocalSecondaryIndexes"]
    assert shown.keys() == {"IndexName", "KeySchema", "Projection", "IndexSizeBytes", "ItemCount", "IndexArn"}


PROVISIONED = {"TableName": "provisioned"}
GHOST = not_found("Index ghost for table provisioned")
NO_GHOST = not_found("Index: ghost not found for table: provisioned")
UNKNOWN: list[Case] = [
    ("TABLE-161", "UpdateTable", {**PROVISIONED, **updates(*actions)}, GHOST)
    for actions in (
        [{"Delete": {"IndexName": "ghost"}}],
        [{"Update": {"IndexName": "ghost", "ProvisionedThroughput": units(6, 6)}}],
        [
            {"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(6, 6)}},
            {"Update": {"IndexName": "ghost", "ProvisionedThroughput": units(6, 6)}},
        ],
        # AWS fails with status 500, which this server never does.
        [{"Update": {"IndexName": "ghost", "WarmThroughput": WARM}}],
    )
]
UNKNOWN += [
    ("TABLE-161", "UpdateTable", {"TableName": "missing", **updates(DELETE_A)}, not_found("Table: missing not found")),
    ("TABLE-161", "DescribeContributorInsights", {**PROVISIONED, "IndexName": "ghost"}, NO_GHOST),
    (
        "TABLE-161",
        "UpdateContributorInsights",
        {**PROVISIONED, "IndexName": "ghost", "ContributorInsightsAction": "ENABLE"},
        NO_GHOST,
    ),
    (
        "TABLE-161",
        "Query",
        {
            **PROVISIONED,
            "IndexName": "ghost",
            "KeyConditionExpression": "a = :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}},
        },
        "The table does not have the specified index: ghost",
    ),
]  # fmt: skip


@each(UNKNOWN)
def test_indexes_that_are_not_there(prepared, operation, request_, recorded):
    check(prepared, operation, request_, recorded)
    [shown] = prepared.described("provisioned")["GlobalSecondaryIndexes"]
    assert shown["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


ONE_AT_A_TIME = ("LimitExceededException", "Subscriber limit exceeded: Only 1 online index can be…")
STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}


def created(name, attribute):
    return {"Create": index(name, keys(attribute), ProvisionedThroughput=units(1, 1))}


def raised(name, read):
    return updates({"Update": {"IndexName": name, "ProvisionedThroughput": units(read, 5)}})


@pytest.fixture
def indexed(delayed):
    """A table with 5 and 5 units and two indexes."""
    indexes = [index(name, keys("a"), ProvisionedThroughput=units(5, 5)) for name in ("gsi1", "gsi2")]
    delayed.table(
        BillingMode=None,
        ProvisionedThroughput=units(5, 5),
        AttributeDefinitions=defined("pk", "a"),
        GlobalSecondaryIndexes=indexes,
    )
    delayed.clock.ms += 20_000
    return delayed


def test_changes_while_an_index_is_created_have_recorded_answers_table_163(indexed):
    indexed.update(AttributeDefinitions=defined("b"), **updates(created("gsi4", "b")))
    described = indexed.described()
    assert described["TableStatus"] == "UPDATING"
    named = "Table: orders Indexes: [gsi4]"
    for change, recorded in (
        ({"ProvisionedThroughput": units(6, 6)}, in_use(f"Can't change table IOPS when an index is being created. {named}")),
        (STREAM, in_use(f"Can't change stream status when an index is being created. {named}")),
        (raised("gsi4", 6), in_use("Index is being created but is not backfilling yet. Table: orders Index: gsi4")),
        (raised("gsi2", 6), OK),
    ):  # fmt: skip
        check(indexed, "UpdateTable", {**ORDERS, **change}, recorded)


def test_changes_while_an_index_is_filled_have_recorded_answers_table_163(indexed):
    indexed.update(AttributeDefinitions=defined("b"), **updates(created("gsi4", "b")))
    indexed.clock.ms += 10_000
    shown = {each["IndexName"]: each for each in indexed.described()["GlobalSecondaryIndexes"]}["gsi4"]
    assert (indexed.described()["TableStatus"], shown["Backfilling"]) == ("ACTIVE", True)
    another = {"AttributeDefinitions": defined("c"), **updates(created("gsi5", "c"))}
    check(indexed, "UpdateTable", {**ORDERS, **another}, ONE_AT_A_TIME)
    check(indexed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": True}, OK)
    check(indexed, "UpdateTimeToLive", ttl(True), OK)
    check(indexed, "TagResource", {"ResourceArn": arn("orders"), "Tags": tags(a="b")}, OK)
    check(indexed, "UpdateTable", {**ORDERS, **raised("gsi1", 6)}, OK)
    indexed.clock.ms += 10_000
    check(indexed, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(6, 6)}, OK)
    assert indexed.described()["TableStatus"] == "UPDATING"
    text = "Can't enable or disable stream while table IOPS are being updated"
    check(indexed, "UpdateTable", {**ORDERS, **STREAM}, in_use(f"{text}…"))


def test_changes_while_an_index_is_deleted_have_recorded_answers_table_163(indexed):
    indexed.update(**updates(DELETE_A))
    iops = "Can't change table IOPS when an index is being deleted. Table: orders Indexes: [gsi1]"
    gone = in_use("Index is being deleted. Table: orders Index: gsi1")
    for change, recorded in (
        ({"ProvisionedThroughput": units(6, 6)}, in_use(iops)),
        ({"AttributeDefinitions": defined("a"), **updates(created("gsi1", "a"))}, gone),
        (updates(DELETE_A), gone),
        ({"AttributeDefinitions": defined("b"), **updates(created("gsi4", "b"))}, ONE_AT_A_TIME),
        (updates({"Delete": {"IndexName": "gsi2"}}), ONE_AT_A_TIME),
        (raised("gsi2", 6), OK),
    ):
        check(indexed, "UpdateTable", {**ORDERS, **change}, recorded)


# Requests accepted in each state of the table

RECOVERY = {"PointInTimeRecoverySpecification": ON}
INSIGHTS = {"ContributorInsightsAction": "ENABLE"}
OF_INDEX = {"IndexName": "gsi1"}
SUBRESOURCES: list[tuple[str, dict]] = [
    ("DescribeTimeToLive", ORDERS),
    ("UpdateTimeToLive", ttl(True)),
    ("DescribeContinuousBackups", ORDERS),
    ("UpdateContinuousBackups", {**ORDERS, **RECOVERY}),
    ("DescribeContributorInsights", ORDERS),
    ("UpdateContributorInsights", {**ORDERS, **INSIGHTS}),
    ("ListContributorInsights", ORDERS),
]
NOT_READY = "Table or Index is not in a valid state to update Key Access Insights: "


def test_requests_while_a_table_with_an_index_is_created_have_recorded_answers_table_116(delayed):
    delayed.table(**with_index())
    no_table = not_found("Table: orders not found")
    no_backups = ("TableNotFoundException", "Table not found: orders")
    enabling = (
        "ContinuousBackupsUnavailableException",
        "Backups are being enabled for the table: orders. Please retry later",
    )
    inactive = f"{NOT_READY}TableStatus must be ACTIVE to enable ContributorIn…"
    check(delayed, "DescribeContinuousBackups", ORDERS, no_backups, OK)
    check(delayed, "UpdateContinuousBackups", {**ORDERS, **RECOVERY}, no_backups, enabling)
    for place in (ORDERS, {**ORDERS, **OF_INDEX}):
        check(delayed, "UpdateContributorInsights", {**place, **INSIGHTS}, no_table, inactive)
        check(delayed, "DescribeContributorInsights", place, no_table, OK)
    delayed.clock.ms += 20_000
    for operation, request in (
        *SUBRESOURCES,
        ("UpdateContributorInsights", {**ORDERS, **OF_INDEX, **INSIGHTS}),
    ):
        check(delayed, operation, request, OK)


def test_requests_while_an_index_is_added_have_recorded_answers_table_116(delayed):
    delayed.table(**with_index())
    delayed.clock.ms += 20_000
    delayed.update(**OF_B, **updates({"Create": index("gsi2", keys("b"))}))
    assert delayed.described()["TableStatus"] == "UPDATING"
    for operation, request in SUBRESOURCES:
        check(delayed, operation, request, OK)
    none = not_found("Index: gsi2 not found for table: orders")
    inactive = f"{NOT_READY}IndexStatus must be ACTIVE to enable ContributorInsights."
    of_index = {**ORDERS, "IndexName": "gsi2"}
    check(delayed, "DescribeContributorInsights", of_index, none, OK)
    check(delayed, "UpdateContributorInsights", {**of_index, **INSIGHTS}, none, inactive)
    delayed.clock.ms += 20_000
    background(delayed)
    check(delayed, "UpdateContributorInsights", {**of_index, **INSIGHTS}, OK)
    check(delayed, "DescribeContributorInsights", of_index, OK)
    assert time_to_live(delayed) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl_a"}

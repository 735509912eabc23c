"""Findings of table-indexes.md about what is shown of indexes, and what may happen while one changes."""

from __future__ import annotations

import pytest

from tests.adapters.dynamodb.features.backups.test_backups import background, ok
from tests.adapters.dynamodb.measured.conftest import BY_A, with_index
from tests.adapters.dynamodb.measured.recorded import OK, answer, arn, check, in_use, not_found, tags, units
from tests.adapters.dynamodb.measured.test_indexes import (
    CREATE_B,
    DELETE_A,
    MAXIMA,
    OF_B,
    ORDERS,
    defined,
    index,
    keys,
    updates,
)

INDEXES = (
    "Attempt to change a resource which is still in use: "
    "Cannot delete table while indexes are being created, updated, or deleted."
)
STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
LOCAL = {
    "KeySchema": keys("pk", "-sk"),
    "AttributeDefinitions": defined("pk", "sk", "a"),
    "LocalSecondaryIndexes": [index("l-a", keys("pk", "-a"))],
}


def shown(service, name="gsi1", table="orders"):
    found = service.described(table).get("GlobalSecondaryIndexes", [])
    return next((each for each in found if each["IndexName"] == name), None)


def updated(service, *actions, **more):
    answered = service.update(**updates(*actions), **more)
    return answered["TableStatus"], {
        each["IndexName"]: each for each in answered.get("GlobalSecondaryIndexes", [])
    }


def test_on_demand_tables_tell_units_of_zero_table_133(service):
    zero = {**units(0, 0), "NumberOfDecreasesToday": 0}
    service.table(**{**LOCAL, "GlobalSecondaryIndexes": [BY_A]})
    described = service.described()
    assert described["ProvisionedThroughput"] == shown(service)["ProvisionedThroughput"] == zero
    assert described["LocalSecondaryIndexes"][0].keys() == {
        *("IndexName", "KeySchema", "Projection", "IndexSizeBytes", "ItemCount", "IndexArn")
    }


def test_descriptions_have_the_measured_order_table_125(service):
    projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["zz", "aa", "mm"]}
    second = {**BY_A, "IndexName": "g-a"}
    answered = service.table(
        AttributeDefinitions=defined("z", "a", "pk"),
        GlobalSecondaryIndexes=[index("g-z", keys("z"), projection), second],
    )
    assert [each["AttributeName"] for each in answered["AttributeDefinitions"]] == ["a", "pk", "z"]
    described = service.described()["GlobalSecondaryIndexes"]
    assert [each["IndexName"] for each in described] == ["g-z", "g-a"]
    assert described[0]["Projection"]["NonKeyAttributes"] == ["aa", "mm", "zz"]


def test_an_index_describes_its_warm_throughput_table_134(service):
    service.table(
        BillingMode=None,
        ProvisionedThroughput=units(5, 5),
        **with_index(ProvisionedThroughput=units(13_000, 4_500)),
    )
    warm = {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_500, "Status": "ACTIVE"}
    assert service.described()["WarmThroughput"] == {
        "ReadUnitsPerSecond": 5,
        "WriteUnitsPerSecond": 5,
        "Status": "ACTIVE",
    }
    assert shown(service)["WarmThroughput"] == warm
    updated(service, {"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(1, 1)}})
    assert shown(service)["WarmThroughput"] == warm
    service.table("cold", **with_index())
    assert shown(service, table="cold")["WarmThroughput"]["ReadUnitsPerSecond"] == 12_000


def test_a_new_index_is_described_in_each_state_table_138_table_148(delayed):
    answered = delayed.table(**with_index())["GlobalSecondaryIndexes"][0]
    assert answered["IndexStatus"] == "CREATING"
    assert not {"WarmThroughput", "Backfilling"} & answered.keys()
    making = shown(delayed)
    assert (making["IndexStatus"], making["WarmThroughput"]["Status"]) == ("CREATING", "UPDATING")
    assert "Backfilling" not in making
    delayed.clock.ms += 20_000
    active = shown(delayed)
    assert active.keys() - BY_A.keys() == {
        *("IndexArn", "IndexStatus", "IndexSizeBytes", "ItemCount", "ProvisionedThroughput", "WarmThroughput")
    }
    assert active["IndexArn"] == arn("orders/index/gsi1")
    assert (active["IndexStatus"], active["IndexSizeBytes"], active["ItemCount"]) == ("ACTIVE", 0, 0)


def test_an_index_that_comes_later_table_148_table_149_table_165(delayed):
    delayed.table()
    delayed.clock.ms += 20_000
    status, indexes = updated(delayed, CREATE_B, **OF_B)
    new = indexes["new"]
    assert (status, new["IndexStatus"], new["Backfilling"]) == ("UPDATING", "CREATING", False)
    assert new["IndexArn"] == arn("orders/index/new")
    delete = updates({"Delete": {"IndexName": "new"}})
    phase = "Index creation is in resource allocation phase. Retry deletion during backfilling phase or when the index is active."
    check(delayed, "UpdateTable", {**ORDERS, **delete}, in_use(f"{phase} Table: orders Index: new"))
    delayed.clock.ms += 10_000
    assert delayed.described()["TableStatus"] == "ACTIVE"
    assert (shown(delayed, "new")["IndexStatus"], shown(delayed, "new")["Backfilling"]) == ("CREATING", True)
    check(delayed, "DeleteTable", ORDERS, ("ResourceInUseException", INDEXES))
    status, indexes = updated(delayed, {"Delete": {"IndexName": "new"}})
    assert (status, indexes["new"]["IndexStatus"]) == ("UPDATING", "DELETING")


def test_a_table_whose_index_changes_cannot_be_deleted_table_150(service):
    service.table()
    updated(service, CREATE_B, **OF_B)
    assert shown(service, "new")["IndexStatus"] == "CREATING"
    check(service, "DeleteTable", ORDERS, ("ResourceInUseException", INDEXES))
    background(service)
    check(service, "DeleteTable", ORDERS, OK)


def test_definitions_go_with_the_index_table_151_table_149_table_166(service):
    service.table(DeletionProtectionEnabled=True, **with_index())
    answered, indexes = updated(service, DELETE_A)
    assert (answered, indexes["gsi1"]["IndexStatus"]) == ("UPDATING", "DELETING")
    background(service)
    described = service.described()
    assert "GlobalSecondaryIndexes" not in described
    assert described["AttributeDefinitions"] == defined("pk")
    updated(
        service,
        {"Create": {**BY_A, "Projection": {"ProjectionType": "KEYS_ONLY"}}},
        AttributeDefinitions=defined("a"),
    )


def test_maxima_of_an_index_are_described_and_changed_table_135_table_419_table_430(service):
    service.table(**with_index(OnDemandThroughput=MAXIMA))
    assert shown(service)["OnDemandThroughput"] == MAXIMA
    assert "OnDemandThroughput" not in service.described()
    higher = {"MaxReadRequestUnits": 5_000, "MaxWriteRequestUnits": 5_000}
    status, indexes = updated(service, {"Update": {"IndexName": "gsi1", "OnDemandThroughput": higher}})
    assert (status, indexes["gsi1"]["IndexStatus"]) == ("ACTIVE", "UPDATING")
    assert shown(service)["OnDemandThroughput"] == higher
    updated(service, {"Update": {"IndexName": "gsi1", "OnDemandThroughput": higher}})
    table = service.update(OnDemandThroughput={"MaxReadRequestUnits": 10})
    assert (table["TableStatus"], table["OnDemandThroughput"]) == ("ACTIVE", {"MaxReadRequestUnits": 10})


def test_an_index_is_warmed_by_update_table_155(service):
    service.table(**with_index())
    status, _ = updated(
        service, {"Update": {"IndexName": "gsi1", "WarmThroughput": {"ReadUnitsPerSecond": 12_001}}}
    )
    assert status == "ACTIVE"
    warm = shown(service)["WarmThroughput"]
    assert (warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]) == (12_001, 4_000)


def test_the_answer_shows_the_former_units_table_165_table_159(service):
    service.table(
        BillingMode=None,
        ProvisionedThroughput=units(1, 1),
        AttributeDefinitions=defined("pk", "a"),
        GlobalSecondaryIndexes=[
            {**BY_A, "IndexName": name, "ProvisionedThroughput": units(1, 1)} for name in ("gsi1", "gsi2")
        ],
    )
    both = [
        {"Update": {"IndexName": name, "ProvisionedThroughput": units(2, 2)}} for name in ("gsi1", "gsi2")
    ]
    status, indexes = updated(service, *both)
    assert status == "ACTIVE"
    for each in indexes.values():
        assert each["IndexStatus"] == "UPDATING"
        assert each["ProvisionedThroughput"]["ReadCapacityUnits"] == 1
    after = shown(service)["ProvisionedThroughput"]
    assert after["ReadCapacityUnits"] == 2
    assert "LastIncreaseDateTime" in after


def test_a_switch_of_billing_drops_maxima_table_153_table_158(service):
    service.table(OnDemandThroughput=MAXIMA, **with_index(OnDemandThroughput=MAXIMA))
    updated(service, {"Update": {"IndexName": "gsi1", "WarmThroughput": {"ReadUnitsPerSecond": 12_002}}})
    for _ in range(2):
        units_of_a = {"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(5, 5)}}
        answered, _ = updated(
            service, units_of_a, BillingMode="PROVISIONED", ProvisionedThroughput=units(5, 5)
        )
        assert answered == "UPDATING"
        assert "OnDemandThroughput" not in service.described()
        assert "OnDemandThroughput" not in shown(service)
        assert shown(service)["WarmThroughput"]["ReadUnitsPerSecond"] == 12_002
        assert service.update(BillingMode="PAY_PER_REQUEST")["TableStatus"] == "UPDATING"


TOO_MANY = (
    "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. After the first 4 "
    "decreases, each subsequent decrease in the same UTC day can be performed at most once every 3600 seconds. "
    "Number of decreases today: 4. Last decrease at "
)


def decreased(service, **more):
    code, text = answer(service, "UpdateTable", {**ORDERS, **more})
    if code:
        assert (code, text[: len(TOO_MANY)]) == ("LimitExceededException", TOO_MANY)
    return not code


def of_index(read, write):
    return updates({"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(read, write)}})


def test_decreases_of_table_and_index_are_counted_apart_table_157_table_380(service):
    service.table(
        BillingMode=None,
        ProvisionedThroughput=units(50, 50),
        **with_index(ProvisionedThroughput=units(50, 50)),
    )
    for number, given in enumerate([units(40, 40), units(30, 60), units(20, 20), units(10, 10)], 1):
        assert decreased(service, ProvisionedThroughput=given)
        assert service.described()["ProvisionedThroughput"]["NumberOfDecreasesToday"] == number
    before = service.described()
    assert not decreased(service, ProvisionedThroughput=units(5, 5), **of_index(40, 40))
    assert not decreased(service, ProvisionedThroughput=units(5, 20))
    assert service.described() == before
    assert decreased(service, ProvisionedThroughput=units(20, 20))
    for read in (40, 30, 20, 10):
        assert decreased(service, **of_index(read, 50))
    assert shown(service)["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 4
    assert not decreased(service, **of_index(5, 50))


# While one change is under way

WHILE_DELETED = in_use(
    "Can't change table IOPS when an index is being deleted. Table: orders Indexes: [gsi1]"
)
MEANWHILE = ("ResourceInUseException", "Attempt to change a resource which is still in use: …")


@pytest.mark.parametrize(
    ("first", "recorded"),
    [
        (
            STREAM,
            in_use(
                "Can't create or delete an index when stream status is being updated. Table: orders Stream: …"
            ),
        ),
        (
            {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            in_use(
                "Can't create or delete an index when a table class update is in progress. "
                "Table: orders TableClassUpdateInProgress: STANDARD_INFREQUENT_ACCESS"
            ),
        ),
        ({"SSESpecification": {"Enabled": True, "SSEType": "KMS"}}, OK),
        ({"DeletionProtectionEnabled": True}, OK),
        ({"WarmThroughput": {"ReadUnitsPerSecond": 13_000}}, OK),
    ],
)
def test_an_index_is_made_beside_another_change_table_175(delayed, first, recorded):
    delayed.table()
    delayed.clock.ms += 20_000
    delayed.update(**first)
    check(delayed, "UpdateTable", {**ORDERS, **OF_B, **updates(CREATE_B)}, recorded)


def test_an_index_is_made_beside_a_change_of_units_table_175(delayed):
    delayed.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.clock.ms += 20_000
    delayed.update(ProvisionedThroughput=units(2, 2))
    create = {"Create": index("new", keys("b"), ProvisionedThroughput=units(1, 1))}
    text = "Can't create or delete indexes while table IOPS are being updated. Table: orders"
    check(delayed, "UpdateTable", {**ORDERS, **OF_B, **updates(create)}, in_use(text))


def test_other_changes_while_an_index_is_deleted_have_recorded_answers_table_375(delayed):
    delayed.table(**with_index())
    delayed.clock.ms += 20_000
    delayed.update(**updates(DELETE_A))
    to_units = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(1, 1)}
    check(delayed, "UpdateTable", {**ORDERS, **to_units}, WHILE_DELETED)
    check(delayed, "UpdateTable", {**ORDERS, "OnDemandThroughput": MAXIMA}, MEANWHILE, OK)
    delayed.clock.ms += 20_000
    background(delayed)
    assert delayed.described()["TableStatus"] == "ACTIVE"
    ghost = updates({"Update": {"IndexName": "gsi1", "OnDemandThroughput": MAXIMA}})
    check(delayed, "UpdateTable", {**ORDERS, **ghost}, not_found("Index gsi1 for table orders"))
    check(delayed, "UpdateTable", {**ORDERS, **to_units}, OK)


def test_other_changes_while_an_index_of_units_is_deleted_have_recorded_answers_table_376(delayed):
    delayed.table(
        BillingMode=None, ProvisionedThroughput=units(1, 1), **with_index(ProvisionedThroughput=units(1, 1))
    )
    delayed.clock.ms += 20_000
    delayed.update(**updates(DELETE_A))
    for change in ({"BillingMode": "PAY_PER_REQUEST"}, {"ProvisionedThroughput": units(2, 2)}):
        check(delayed, "UpdateTable", {**ORDERS, **change}, WHILE_DELETED)
    check(delayed, "DeleteTable", ORDERS, ("ResourceInUseException", INDEXES))
    check(delayed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": True}, OK)
    delayed.clock.ms += 20_000
    background(delayed)
    delayed.update(ProvisionedThroughput=units(2, 2))


def test_other_changes_while_an_index_is_created_have_recorded_answers_table_458(delayed):
    delayed.table()
    delayed.clock.ms += 20_000
    delayed.update(**OF_B, **updates(CREATE_B))
    check(delayed, "UpdateTable", {**ORDERS, "SSESpecification": {"Enabled": True, "SSEType": "KMS"}}, OK)
    check(delayed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": True}, OK)
    check(delayed, "TagResource", {"ResourceArn": arn("orders"), "Tags": tags(a="b")}, OK)
    text = "Can't change stream status when an index is being created. Table: orders Indexes: [new]"
    check(delayed, "UpdateTable", {**ORDERS, **STREAM}, in_use(text))
    assert delayed.described()["TableStatus"] == "UPDATING"


def test_encryption_beside_other_changes_table_462(delayed):
    delayed.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.clock.ms += 20_000
    delayed.update(ProvisionedThroughput=units(2, 2))
    check(delayed, "UpdateTable", {**ORDERS, "SSESpecification": {"Enabled": True, "SSEType": "KMS"}}, OK)
    assert delayed.described()["TableStatus"] == "UPDATING"
    check(delayed, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(3, 3)}, MEANWHILE)
    delayed.clock.ms += 20_000
    described = delayed.described()
    assert (described["TableStatus"], described["ProvisionedThroughput"]["ReadCapacityUnits"]) == (
        "ACTIVE",
        2,
    )
    assert described["SSEDescription"]["Status"] == "ENABLED"


# Restores

UNITS_AND_INDEXES = {
    "BillingMode": None,
    "ProvisionedThroughput": units(5, 5),
    "KeySchema": keys("pk", "-sk"),
    "AttributeDefinitions": defined("pk", "sk", "a"),
    "LocalSecondaryIndexes": [index("lsi1", keys("pk", "-a"))],
    "GlobalSecondaryIndexes": [{**BY_A, "ProvisionedThroughput": units(5, 5)}],
}


@pytest.fixture
def backup(service) -> str:
    service.table(**UNITS_AND_INDEXES)
    made = ok(service, "CreateBackup", **ORDERS, BackupName="bkp")["BackupDetails"]["BackupArn"]
    background(service)
    return made


REQUEST = "Invalid Request: "
NO_MATCH = "does not match a secondary index that existed in the source table and cannot be created during the restore operation"
TO_ON_DEMAND = "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST"
OVERRIDES = [
    (
        {"GlobalSecondaryIndexOverride": [index("gsi1", keys("sk"), ProvisionedThroughput=units(5, 5))]},
        f"Index gsi1 {NO_MATCH}",
    ),
    ({"LocalSecondaryIndexOverride": [index("lsi1", keys("pk", "-sk"))]}, f"Index lsi1 {NO_MATCH}"),
    ({"GlobalSecondaryIndexOverride": [BY_A]}, "Must specify provisioned throughput for index gsi1"),
    (
        {
            "BillingModeOverride": "PAY_PER_REQUEST",
            "GlobalSecondaryIndexOverride": [{**BY_A, "ProvisionedThroughput": units(5, 5)}],
        },
        f"{TO_ON_DEMAND} for index gsi1",
    ),
    (
        {"OnDemandThroughputOverride": MAXIMA},
        "Cannot override MaxReadRequestUnits for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST",
    ),
]


@pytest.mark.parametrize(("given", "text"), OVERRIDES)
def test_overrides_of_indexes_that_are_refused_table_280(service, backup, given, text):
    check(
        service,
        "RestoreTableFromBackup",
        {"BackupArn": backup, "TargetTableName": "target", **given},
        REQUEST + text,
    )


def test_overrides_may_rename_indexes_table_280(service, backup):
    ok(
        service,
        "RestoreTableFromBackup",
        BackupArn=backup,
        TargetTableName="target",
        GlobalSecondaryIndexOverride=[{**BY_A, "IndexName": "gsi-new", "ProvisionedThroughput": units(5, 5)}],
        LocalSecondaryIndexOverride=[index("lsi-new", keys("pk", "-a"))],
    )
    background(service)
    described = service.described("target")
    assert [each["IndexName"] for each in described["GlobalSecondaryIndexes"]] == ["gsi-new"]
    assert [each["IndexName"] for each in described["LocalSecondaryIndexes"]] == ["lsi-new"]


@pytest.mark.parametrize(
    ("given", "table", "of_gsi"),
    [
        ({}, 5, 5),
        ({"ProvisionedThroughputOverride": units(7, 7)}, 7, 5),
        ({"GlobalSecondaryIndexOverride": [{**BY_A, "ProvisionedThroughput": units(8, 8)}]}, 5, 8),
        ({"BillingModeOverride": "PAY_PER_REQUEST", "OnDemandThroughputOverride": MAXIMA}, 0, 0),
    ],
)
def test_overrides_of_units_apply_to_the_restored_table_or_index_table_281(
    service, backup, given, table, of_gsi
):
    ok(service, "RestoreTableFromBackup", BackupArn=backup, TargetTableName="target", **given)
    background(service)
    described = service.described("target")
    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == table
    assert shown(service, table="target")["ProvisionedThroughput"]["ReadCapacityUnits"] == of_gsi
    assert described.get("OnDemandThroughput") == given.get("OnDemandThroughputOverride")

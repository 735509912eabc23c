"""Findings of table-throughput-billing.md."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.measured.conftest import with_index
from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    INVALID,
    OK,
    Case,
    check,
    each,
    in_use,
    not_found,
    units,
)
from tests.adapters.dynamodb.measured.test_index_states import MEANWHILE, TOO_MANY
from tests.adapters.dynamodb.measured.test_indexes import BOTH_UNITS, NO_UNITS, WANTED, defined, keys, updates

ORDERS = {"TableName": "orders"}
ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}
PROVISIONED = {"BillingMode": "PROVISIONED"}
FAILS = " failed to satisfy constraint: Member must "
RANGE = f"{INVALID}Requested {{}} for OnDemandThroughput for table is outside of valid range"
LOWER = (
    f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
    "decreasing WarmThroughput is not supported"
)
LOW = (
    f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for OnDemand. See: "
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html#on-demand-capacity-mode-initial"
)
UNCHANGED = "The provisioned throughput for the table will not change. The requested value equals the current value. Current …"
NO_MAXIMA = "MaxReadRequestUnits for OnDemandThroughput cannot be specified when"
UNITS_WANTED = f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
NOT_FIRST = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"


def maxima(read: int | None = None, write: int | None = None) -> dict[str, int]:
    given = {"MaxReadRequestUnits": read, "MaxWriteRequestUnits": write}
    return {name: value for name, value in given.items() if value is not None}


def warm(read: int | None = None, write: int | None = None) -> dict[str, int]:
    given = {"ReadUnitsPerSecond": read, "WriteUnitsPerSecond": write}
    return {name: value for name, value in given.items() if value is not None}


def too_low(value: int) -> str:
    names = [f"'provisionedThroughput.{name}CapacityUnits'" for name in ("write", "read")]
    listed = "; ".join(
        f"Value '{value}' at {name}{FAILS}have value greater than or equal to 1" for name in names
    )
    return f"2 validation errors detected: {listed}"


def null(*names: str) -> str:
    listed = "; ".join(f"Value null at '{name}'{FAILS}not be null" for name in names)
    return f"{len(names)} validation error{'s' if len(names) > 1 else ''} detected: {listed}"


WRITE, READ = "provisionedThroughput.writeCapacityUnits", "provisionedThroughput.readCapacityUnits"


def made(finding: str, recorded, **more: Any) -> Case:
    given = {**CREATE, **more}
    return (
        finding,
        "CreateTable",
        {name: value for name, value in given.items() if value is not None},
        recorded,
    )


MADE: list[Case] = [
    made("TABLE-024", INVALID + BOTH_UNITS, BillingMode=None),
    made("TABLE-024", OK, BillingMode=None, ProvisionedThroughput=units(1, 1)),
    made("TABLE-038", INVALID + NO_UNITS, ProvisionedThroughput=units(1, 1)),
    made("TABLE-038", too_low(0), ProvisionedThroughput=units(0, 0)),
    made(
        "TABLE-038",
        f"{INVALID}{NO_MAXIMA} table BillingMode is PROVISIONED.",
        **PROVISIONED,
        ProvisionedThroughput=units(1, 1),
        OnDemandThroughput=maxima(100, 100),
    ),
    made("TABLE-038", too_low(0), **PROVISIONED, ProvisionedThroughput=units(0, 0)),
    made("TABLE-038", too_low(-1), **PROVISIONED, ProvisionedThroughput=units(-1, -1)),
    made("TABLE-038", null(WRITE), **PROVISIONED, ProvisionedThroughput={"ReadCapacityUnits": 1}),
    made("TABLE-038", null(WRITE, READ), **PROVISIONED, ProvisionedThroughput={}),
    made("TABLE-038", too_low(0), BillingMode=None, ProvisionedThroughput=units(0, 0)),
    *(
        made("TABLE-039", RANGE.format("MaxReadRequestUnits"), OnDemandThroughput=maxima(value, value))
        for value in (0, -1, -2)
    ),
    made("TABLE-039", OK, OnDemandThroughput={}),
    made("TABLE-039", LOW, WarmThroughput=warm(1, 1)),
    made("TABLE-039", LOW, WarmThroughput=warm(0, 0)),
    made("TABLE-039", OK, WarmThroughput={}),
    made(
        "TABLE-039",
        f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for table is lower than ReadCapacityUnits of "
        "ProvisionedThroughput",
        **PROVISIONED,
        ProvisionedThroughput=units(10, 10),
        WarmThroughput=warm(5, 5),
    ),
    made("TABLE-042", NOT_FIRST, KeySchema=keys("-sk", "pk"), AttributeDefinitions=defined("pk", "sk")),
    made(
        "TABLE-042",
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        KeySchema=keys("pk", "sk"),
        AttributeDefinitions=defined("pk", "sk"),
    ),
    made("TABLE-042", NOT_FIRST, KeySchema=keys("-pk")),
    made(
        "TABLE-042",
        f"{DETECTED}'[…",
        KeySchema=keys("pk", "-a", "-b"),
        AttributeDefinitions=defined("pk", "a", "b"),
    ),
    made(
        "TABLE-042",
        f"{DETECTED}'[]' at 'keySchema'{FAILS}have length greater than or equal to 1",
        KeySchema=[],
    ),
    made("TABLE-042", null("keySchema"), KeySchema=None),
    made(
        "TABLE-042",
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: [PK], AttributeDefinitions: [pk]",
        KeySchema=keys("PK"),
    ),
    made("TABLE-042", "Attribute Name is duplicated: pk", AttributeDefinitions=defined("pk", "pk")),
    made(
        "TABLE-042",
        "Attribute Name is duplicated: pk",
        AttributeDefinitions=[*defined("pk"), {"AttributeName": "pk", "AttributeType": "N"}],
    ),
    made(
        "TABLE-042",
        f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
        AttributeDefinitions=defined("pk", "spare"),
    ),
    made(
        "TABLE-042", "Invalid KeySchema: Some index key attribute have no definition", AttributeDefinitions=[]
    ),
    made("TABLE-042", null("attributeDefinitions"), AttributeDefinitions=None),
    made(
        "TABLE-042",
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
        "Keys: [pk], AttributeDefinitions: [other]",
        AttributeDefinitions=defined("other"),
    ),
    made("TABLE-042", OK, KeySchema=keys("pk", "-sk"), AttributeDefinitions=defined("sk", "pk")),
    *(
        made("TABLE-040", f"{DETECTED}'{value}' at '{path}'{FAILS}satisfy enum value set: [{known}]", **given)
        for path, value, known, given in [
            (
                "billingMode",
                "pay_per_request",
                "PROVISIONED, PAY_PER_REQUEST",
                {"BillingMode": "pay_per_request"},
            ),
            (
                "keySchema.1.member.keyType",
                "hash",
                "HASH, RANGE",
                {"KeySchema": [{"AttributeName": "pk", "KeyType": "hash"}]},
            ),
            (
                "attributeDefinitions.1.member.attributeType",
                "s",
                "B, N, S",
                {"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "s"}]},
            ),
        ]
    ),
]


@each(MADE)
def test_throughput_of_a_new_table_is_checked(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


def changed(finding: str, recorded, name: str = "plain", /, **more: Any) -> Case:
    return finding, "UpdateTable", {"TableName": name, **more}, recorded


CHANGED: list[Case] = [
    changed("TABLE-047", WANTED, AttributeDefinitions=defined("pk")),
    changed("TABLE-047", OK, **ON_DEMAND),
    changed("TABLE-047", OK, TableClass="STANDARD"),
    changed(
        "TABLE-047",
        "Table has no stream to disable: TableName: plain",
        StreamSpecification={"StreamEnabled": False},
    ),
    changed(
        "TABLE-047", f"{INVALID}Table is already encrypted by default", SSESpecification={"Enabled": False}
    ),
    changed("TABLE-057", UNITS_WANTED, "provisioned", **PROVISIONED),
    changed("TABLE-057", UNCHANGED, "provisioned", ProvisionedThroughput=units(5, 5)),
    changed("TABLE-057", UNCHANGED, "provisioned", **PROVISIONED, ProvisionedThroughput=units(5, 5)),
    changed("TABLE-057", OK, "provisioned", **PROVISIONED, ProvisionedThroughput=units(6, 6)),
    changed("TABLE-058", null(WRITE), "provisioned", ProvisionedThroughput={"ReadCapacityUnits": 4}),
    changed("TABLE-058", too_low(0), "provisioned", ProvisionedThroughput=units(0, 0)),
    changed(
        "TABLE-059",
        f"{INVALID}{NO_MAXIMA} the table BillingMode is PROVISIONED",
        "provisioned",
        OnDemandThroughput=maxima(100, 100),
    ),
    changed("TABLE-059", LOWER, "provisioned", WarmThroughput=warm(1, 1)),
    changed("TABLE-059", OK, "provisioned", WarmThroughput=warm(50, 50)),
    changed("TABLE-059", INVALID + NO_UNITS, ProvisionedThroughput=units(1, 1)),
    changed("TABLE-056", UNITS_WANTED, **PROVISIONED),
    changed("TABLE-411", UNITS_WANTED, **PROVISIONED),
    changed("TABLE-412", UNITS_WANTED, **PROVISIONED),
    changed(
        "TABLE-056",
        f"{INVALID}ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST",
        "provisioned",
        **ON_DEMAND,
        ProvisionedThroughput=units(1, 1),
    ),
    changed("TABLE-056", OK, "provisioned", **ON_DEMAND, OnDemandThroughput=maxima(100, 100)),
    changed(
        "TABLE-156",
        f"{INVALID}DeletionProtection modification must be the only operation in the request",
        **ON_DEMAND,
        DeletionProtectionEnabled=True,
    ),
    changed("TABLE-358", WANTED, AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "N"}]),
    changed(
        "TABLE-358",
        OK,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "N"}],
        DeletionProtectionEnabled=False,
    ),
    changed(
        "TABLE-358", OK, AttributeDefinitions=[{"AttributeName": "new", "AttributeType": "B"}], **ON_DEMAND
    ),
    changed("TABLE-358", OK, AttributeDefinitions=[], DeletionProtectionEnabled=True),
    changed("TABLE-437", null("streamSpecification.streamEnabled"), StreamSpecification={}),
    changed(
        "TABLE-437",
        null("streamSpecification.streamEnabled"),
        StreamSpecification={"StreamViewType": "KEYS_ONLY"},
    ),
    changed(
        "TABLE-437",
        f"{INVALID}If stream is being enabled then UpdateViewType is required",
        StreamSpecification={"StreamEnabled": True},
    ),
    changed("TABLE-437", null(WRITE, READ), ProvisionedThroughput={}),
    changed("TABLE-437", f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, …", **updates({})),
    *(
        changed(
            "TABLE-437",
            null(f"globalSecondaryIndexUpdates.1.member.{action.lower()}.indexName"),
            **updates({action: {}}),
        )
        for action in ("Update", "Delete")
    ),
    changed(
        "TABLE-437", not_found("Index ghost for table plain"), **updates({"Update": {"IndexName": "ghost"}})
    ),
    changed(
        "TABLE-437",
        f"{DETECTED}'[]' at 'replicaUpdates'{FAILS}have length greater than or equal to 1",
        ReplicaUpdates=[],
    ),
    changed(
        "TABLE-437",
        "There are no actions specified in the Replica Update Action of the request.",
        ReplicaUpdates=[{}],
    ),
    *(
        changed(
            "TABLE-437",
            f"{DETECTED}'' at '{name[0].lower()}{name[1:]}'{FAILS}satisfy enum value set: …",
            **{name: ""},
        )
        for name in ("BillingMode",)
    ),
    changed("TABLE-437", f"{INVALID}Table is already encrypted by default", SSESpecification={}),
    changed("TABLE-437", OK, SSESpecification={"Enabled": True}),
    changed(
        "TABLE-437",
        f"{INVALID}SSEType can not be specified if Enabled is false",
        SSESpecification={"Enabled": False, "SSEType": "KMS"},
    ),
    changed("TABLE-051", RANGE.format("MaxWriteRequestUnits"), OnDemandThroughput=maxima(write=0)),
    changed("TABLE-051", RANGE.format("MaxReadRequestUnits"), OnDemandThroughput=maxima(read=-2)),
]


@each(CHANGED)
def test_changes_of_throughput(prepared, operation, request_, recorded):
    before = prepared.described(request_["TableName"])
    check(prepared, operation, request_, recorded)
    if recorded != OK:
        assert prepared.described(request_["TableName"]) == before
    assert prepared.described(request_["TableName"])["AttributeDefinitions"] == before["AttributeDefinitions"]


# Maxima of tables on demand


def test_one_of_two_maxima_can_be_set_table_045_table_420_table_421_table_429(service):
    service.table(OnDemandThroughput=maxima(read=100), WarmThroughput=warm(read=12_001))
    described = service.described()
    assert described["OnDemandThroughput"] == maxima(read=100)
    assert described["WarmThroughput"] == {**warm(12_001, 4_000), "Status": "ACTIVE"}


def test_maxima_are_merged_and_cleared_by_minus_one_table_051_table_154_table_178_table_182_table_415(
    service,
):
    """The service shows -1 in DescribeTable, too, for a second."""
    service.table()
    for given, told, kept in [
        (maxima(1_000, 500), maxima(1_000, 500), maxima(1_000, 500)),
        (maxima(read=2_000), maxima(2_000, 500), maxima(2_000, 500)),
        (maxima(read=2_000), maxima(2_000, 500), maxima(2_000, 500)),
        (maxima(read=-1), maxima(-1, 500), maxima(write=500)),
        (maxima(write=-1), maxima(write=-1), None),
        (maxima(-1, -1), maxima(-1, -1), None),
        (maxima(write=700), maxima(write=700), maxima(write=700)),
    ]:
        answered = service.update(OnDemandThroughput=given)
        assert (answered["TableStatus"], answered["OnDemandThroughput"]) == ("ACTIVE", told)
        assert service.described().get("OnDemandThroughput") == kept


# Provisioned units


def shown_units(service) -> dict[str, Any]:
    return service.described()["ProvisionedThroughput"]


def test_increases_and_decreases_are_noted_table_058_table_061_table_060(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    assert shown_units(service) == {**units(1, 1), "NumberOfDecreasesToday": 0}
    answered = service.update(ProvisionedThroughput=units(2, 2))
    assert (answered["TableStatus"], answered["ProvisionedThroughput"]["ReadCapacityUnits"]) == (
        "UPDATING",
        1,
    )
    assert "LastIncreaseDateTime" in answered["ProvisionedThroughput"]
    after = shown_units(service)
    assert after == {
        **units(2, 2),
        "NumberOfDecreasesToday": 0,
        "LastIncreaseDateTime": after["LastIncreaseDateTime"],
    }
    service.update(ProvisionedThroughput=units(3, 3))
    service.update(ProvisionedThroughput=units(1, 1))
    decreased = shown_units(service)
    assert decreased["NumberOfDecreasesToday"] == 1
    service.update(ProvisionedThroughput=units(2, 1))
    mixed = shown_units(service)
    assert (mixed["NumberOfDecreasesToday"], mixed["LastDecreaseDateTime"]) == (
        1,
        decreased["LastDecreaseDateTime"],
    )
    assert service.described()["WarmThroughput"]["ReadUnitsPerSecond"] == 3
    assert "BillingModeSummary" not in service.described()


def test_the_fifth_decrease_of_a_day_is_refused_table_184_table_326_table_381_table_171(service):
    service.clock.ms = 1_760_000_000_000 // 86_400_000 * 86_400_000 + 600_000  # ten minutes after midnight
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 10))
    for count, write in enumerate((9, 8, 7, 6)):
        answered = service.update(ProvisionedThroughput=units(10, write))["ProvisionedThroughput"]
        assert answered["NumberOfDecreasesToday"] == count
        assert "LastDecreaseDateTime" in answered
    fifth = {**ORDERS, "ProvisionedThroughput": units(10, 5)}
    text = (
        f"{TOO_MANY}Thursday, October 9, 2025 at 12:10:00 AM Coordinated Universal Time. "
        "Next decrease can be made at Thursday, October 9, 2025 at 1:10:00 AM Coordinated Universal Time"
    )
    refused = ("LimitExceededException", text)
    check(service, "UpdateTable", fifth, refused)
    check(service, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(9, 20)}, refused)
    check(service, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(11, 6)}, OK)
    service.clock.ms += 3_540_000
    check(service, "UpdateTable", fifth, refused)
    service.clock.ms += 60_000
    check(service, "UpdateTable", fifth, OK)
    assert shown_units(service)["NumberOfDecreasesToday"] == 5
    later = ("LimitExceededException", f"{TOO_MANY.replace('today: 4', 'today: 5')}…")
    check(service, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(10, 4)}, later)


def test_a_new_day_allows_decreases_again_table_185(service):
    service.clock.ms = (
        1_760_000_000_000 // 86_400_000 * 86_400_000 + 86_400_000 - 2_400_000
    )  # forty minutes before midnight
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 10))
    for write in (9, 8, 7, 6):
        service.update(ProvisionedThroughput=units(10, write))
    fifth = {**ORDERS, "ProvisionedThroughput": units(10, 5)}
    text = "Next decrease can be made at Friday, October 10, 2025 at 12:00:00 AM Coordinated Universal Time"
    code, told = service.error("UpdateTable", fifth)
    assert (code, told[-len(text) :]) == ("LimitExceededException", text)
    last = shown_units(service)["LastDecreaseDateTime"]
    service.clock.ms += 2_400_000
    assert shown_units(service) == {**units(10, 6), "NumberOfDecreasesToday": 0, "LastDecreaseDateTime": last}
    for write in (5, 4, 3, 2):
        check(service, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(10, write)}, OK)


# Billing modes


def test_a_new_table_describes_its_throughput_table_025_table_028_table_032_table_033(service):
    answered = service.table("plain")
    assert answered["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert not {"WarmThroughput", "OnDemandThroughput"} & answered.keys()
    described = service.described("plain")
    assert described["BillingModeSummary"].keys() == {"BillingMode", "LastUpdateToPayPerRequestDateTime"}
    assert described["ProvisionedThroughput"] == {**units(0, 0), "NumberOfDecreasesToday": 0}
    assert described["WarmThroughput"] == {**warm(12_000, 4_000), "Status": "ACTIVE"}
    assert described.keys() - answered.keys() == {"WarmThroughput"}
    answered = service.table("warm", WarmThroughput=warm(12_001, 4_001))
    assert answered["WarmThroughput"] == {**warm(12_001, 4_001), "Status": "UPDATING"}
    answered = service.table("provisioned", BillingMode=None, ProvisionedThroughput=units(5, 5))
    assert not {"WarmThroughput", "BillingModeSummary"} & answered.keys()
    described = service.described("provisioned")
    assert described["WarmThroughput"] == {**warm(5, 5), "Status": "ACTIVE"}
    assert "BillingModeSummary" not in described


def test_switches_of_the_billing_mode_table_055_table_056_table_062_table_064_table_067_table_068_table_183(
    service,
):
    service.table(BillingMode=None, ProvisionedThroughput=units(3, 3))
    service.update(ProvisionedThroughput=units(1, 1))
    before = shown_units(service)
    answered = service.update(**ON_DEMAND)
    assert (answered["TableStatus"], answered["BillingModeSummary"]["BillingMode"]) == (
        "UPDATING",
        "PAY_PER_REQUEST",
    )
    assert answered["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    described = service.described()
    assert described["ProvisionedThroughput"] == {**before, **units(0, 0)}
    assert described["WarmThroughput"] == {**warm(12_000, 4_000), "Status": "ACTIVE"}
    since = described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    service.clock.ms += 60_000
    answered = service.update(**PROVISIONED, ProvisionedThroughput=units(1, 1))
    assert (answered["TableStatus"], answered["ProvisionedThroughput"]["ReadCapacityUnits"]) == (
        "UPDATING",
        1,
    )
    described = service.described()
    assert described["ProvisionedThroughput"] == before
    assert described["BillingModeSummary"] == {
        "BillingMode": "PROVISIONED",
        "LastUpdateToPayPerRequestDateTime": since,
    }
    assert described["WarmThroughput"] == {**warm(12_000, 4_000), "Status": "ACTIVE"}
    assert service.update(**ON_DEMAND)["TableStatus"] == "UPDATING"


def test_table_throughput_mode_replaces_an_absent_billing_mode(service):
    """ExtendDB/extenddb#320, measured on AWS in August 2026: no model has the member, and the service honours it."""
    mode = "TableThroughputMode"
    described = service.table("one", BillingMode=None, **{mode: "PAY_PER_REQUEST"})
    assert described["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert service.update("one", **{mode: "PROVISIONED"}, ProvisionedThroughput=units(1, 1))
    assert service.described("one")["TableThroughputModeSummary"][mode] == "PROVISIONED"
    assert service.update("one", **{mode: "PAY_PER_REQUEST"})["TableStatus"] == "UPDATING"
    assert service.error("UpdateTable", {"TableName": "one", mode: "PROVISIONED"}) == (
        "ValidationException",
        UNITS_WANTED,
    )


def test_billing_mode_decides_beside_table_throughput_mode(service):
    """ExtendDB/extenddb#320."""
    described = service.table("two", TableThroughputMode="PROVISIONED")
    assert described["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    both = {"TableThroughputMode": "PAY_PER_REQUEST", **PROVISIONED, "ProvisionedThroughput": units(1, 1)}
    service.update("two", **both)
    assert service.described("two")["BillingModeSummary"]["BillingMode"] == "PROVISIONED"


@pytest.mark.parametrize("operation", ["CreateTable", "UpdateTable"])
@pytest.mark.parametrize("more", [{}, ON_DEMAND])
def test_wrong_table_throughput_mode_precedes_all_other_rules(service, operation, more):
    """ExtendDB/extenddb#320: even beside a valid BillingMode, and before the table is looked up."""
    given = {
        "TableName": "absent",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "TableThroughputMode": "SOMETIMES",
        **more,
    }
    code, text = service.error(operation, given)
    assert code == "ValidationException"
    assert text == (
        f"1 validation error detected: Value 'SOMETIMES' at 'tableThroughputMode'{FAILS}satisfy enum value set: "
        "[PROVISIONED, PAY_PER_REQUEST]"
    )


@pytest.mark.parametrize(
    ("given", "status"), [(ON_DEMAND, "UPDATING"), ({"TableClass": "STANDARD"}, "UPDATING")]
)
def test_a_change_to_the_current_value_is_done_at_once_table_156_table_057_table_410(delayed, given, status):
    delayed.table()
    delayed.clock.ms += 20_000
    assert delayed.update(**given)["TableStatus"] == status
    assert delayed.described()["TableStatus"] == "ACTIVE"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"DeletionProtectionEnabled": True}, "ACTIVE"),
        ({"OnDemandThroughput": maxima(10, 10)}, "ACTIVE"),
        ({"WarmThroughput": warm(13_000)}, "ACTIVE"),
        ({"TableClass": "STANDARD_INFREQUENT_ACCESS"}, "UPDATING"),
        ({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}, "UPDATING"),
        ({**PROVISIONED, "ProvisionedThroughput": units(1, 1)}, "UPDATING"),
    ],
)
def test_changes_make_a_table_updating_as_measured_table_410(delayed, given, status):
    delayed.table()
    delayed.clock.ms += 20_000
    assert delayed.update(**given)["TableStatus"] == status
    assert delayed.described()["TableStatus"] == status


def test_changes_while_units_change_have_recorded_answers_table_063_table_370_table_381(delayed):
    delayed.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.clock.ms += 20_000
    delayed.update(ProvisionedThroughput=units(2, 2))
    assert shown_units(delayed)["ReadCapacityUnits"] == 1
    iops = in_use("Table IOPS are currently being updated. Table: orders")
    check(delayed, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(3, 3)}, iops)
    check(delayed, "UpdateTable", {**ORDERS, **ON_DEMAND}, iops)
    check(delayed, "DeleteTable", ORDERS, in_use("Table: orders is in the process of being updated."))
    check(delayed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": False}, OK)
    delayed.clock.ms += 20_000
    assert shown_units(delayed)["ReadCapacityUnits"] == 2
    check(delayed, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(2, 2)}, UNCHANGED)
    check(delayed, "UpdateTable", {**ORDERS, "ProvisionedThroughput": units(3, 3)}, OK)


def test_changes_while_the_billing_mode_changes_have_recorded_answers_table_064_table_452(delayed):
    delayed.table(BillingMode=None, ProvisionedThroughput=units(1, 1))
    delayed.clock.ms += 20_000
    delayed.update(**ON_DEMAND)
    assert delayed.described()["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    back = {**ORDERS, **PROVISIONED, "ProvisionedThroughput": units(1, 1)}
    check(delayed, "UpdateTable", back, MEANWHILE)
    check(delayed, "DeleteTable", ORDERS, MEANWHILE)
    check(delayed, "UpdateTable", {**ORDERS, "DeletionProtectionEnabled": False}, OK)
    delayed.clock.ms += 20_000
    check(delayed, "UpdateTable", back, OK)


# Warm throughput


def test_warmth_rises_table_066_table_179_table_061(service):
    service.table(**with_index())
    answered = service.update(WarmThroughput=warm(12_001, 4_001))
    assert answered["TableStatus"] == "ACTIVE"
    assert answered["WarmThroughput"] == {**warm(12_000, 4_000), "Status": "UPDATING"}
    assert service.described()["WarmThroughput"] == {**warm(12_001, 4_001), "Status": "ACTIVE"}
    check(service, "UpdateTable", {**ORDERS, "WarmThroughput": warm(12_001, 4_001)}, OK)
    check(service, "UpdateTable", {**ORDERS, "WarmThroughput": warm(12_000, 4_000)}, LOWER)
    service.update(WarmThroughput=warm(write=4_002))
    assert service.described()["WarmThroughput"] == {**warm(12_001, 4_002), "Status": "ACTIVE"}


# Descriptions


def test_a_deleted_table_has_the_measured_description_table_363(service):
    service.table(**with_index())
    described = service.call("DeleteTable", ORDERS)["TableDescription"]
    assert described["TableStatus"] == "DELETING"
    assert not described.keys() & {
        *("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "CreationDateTime", "WarmThroughput")
    }


@pytest.mark.parametrize("name", [" pk ", "p\nk", "p\tk", "🔑", "a.b", "x" * 255])
def test_names_of_keys_are_taken_as_they_are_table_364(service, name):
    described = service.table(KeySchema=keys(name), AttributeDefinitions=defined(name))
    assert described["KeySchema"] == keys(name)
    assert described["AttributeDefinitions"] == defined(name)

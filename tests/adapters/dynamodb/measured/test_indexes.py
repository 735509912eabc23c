"""Findings of table-indexes.md about requests: key schemas, projections, counts, throughput, permitted combinations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.measured.conftest import BY_A
from tests.adapters.dynamodb.measured.recorded import (
    CREATE,
    DETECTED,
    GONE,
    INVALID,
    OK,
    Case,
    answer,
    check,
    each,
    not_found,
    units,
)

ORDERS = {"TableName": "orders"}
ALL = {"ProjectionType": "ALL"}
FAILS = " failed to satisfy constraint: Member must "
MAXIMA = {"MaxReadRequestUnits": 50, "MaxWriteRequestUnits": 50}
WANTED = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, "
    "ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, "
    "OnDemandThroughput, WarmThroughput or TableClass is required"
)
NO_UNITS = (
    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
BOTH_UNITS = "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED"


def defined(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def keys(*given: str) -> list[dict[str, str]]:
    """A key schema of "a" (HASH) and "-a" (RANGE)."""
    return [
        {"AttributeName": each.lstrip("-"), "KeyType": "RANGE" if each[0] == "-" else "HASH"}
        for each in given
    ]


def index(name: str = "g-a", schema: Any = None, projection: Any = None, **more: Any) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": schema or keys("a"), "Projection": projection or ALL, **more}


def made(finding: str, recorded, *indexes, attributes=("pk", "a"), **more: Any) -> Case:
    given = {**CREATE, "AttributeDefinitions": defined(*attributes), **more}
    if indexes:
        given["GlobalSecondaryIndexes"] = list(indexes)
    return (
        finding,
        "CreateTable",
        {name: value for name, value in given.items() if value is not None},
        recorded,
    )


def local(finding: str, recorded, *indexes, **more: Any) -> Case:
    return made(
        finding,
        recorded,
        **{
            "KeySchema": keys("pk", "-sk"),
            "attributes": ("pk", "sk", "a"),
            "LocalSecondaryIndexes": list(indexes),
            **more,
        },
    )


def projected(recorded: str, **projection: Any) -> Case:
    return made("TABLE-126", recorded, {**BY_A, "Projection": projection})


EIGHT = ("h1", "h2", "h3", "h4", "-r1", "-r2", "-r3", "-r4")
ROLES = "The KeySchema exceeds the maximum allowed number of {} key attributes"
IN_INDEX = "globalSecondaryIndexes.1.member"
NAMES = f"'{IN_INDEX}.projection.nonKeyAttributes'{FAILS}"
NO_MAXIMA = "cannot be specified when table BillingMode is PROVISIONED."
NOT_FIRST = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"

MADE: list[Case] = [
    made("TABLE-123", OK, index(schema=keys("a", "b")), attributes=("pk", "a", "b")),
    made("TABLE-123", OK, index(schema=keys("a", "-b", "-c")), attributes=("pk", "a", "b", "c")),
    made(
        "TABLE-389", OK, index(schema=keys(*EIGHT)), attributes=("pk", *(each.lstrip("-") for each in EIGHT))
    ),
    made(
        "TABLE-389",
        INVALID + ROLES.format("HASH"),
        index(schema=keys(*"abcde")),
        attributes=("pk", *"abcde"),
    ),
    made(
        "TABLE-389",
        INVALID + ROLES.format("RANGE"),
        index(schema=keys("a", "-b", "-c", "-d", "-e", "-f")),
        attributes=("pk", *"abcdef"),
    ),
    made(
        "TABLE-123",
        f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema",
        index(schema=keys("a", "-b", "c")),
        attributes=("pk", *"abc"),
    ),
    made(
        "TABLE-123",
        "The KeySchema contains multiple key attributes with the same name",
        index(schema=keys("a", "b", "-a")),
        attributes=("pk", "a", "b"),
    ),
    made(
        "TABLE-123",
        f"{DETECTED}'[…",
        KeySchema=keys("pk", "-a", "-b"),
        attributes=("pk", "a", "b"),
    ),
    made("TABLE-124", NOT_FIRST, KeySchema=keys("-a", "pk")),
    made("TABLE-124", NOT_FIRST, index(schema=keys("-b", "a")), attributes=("pk", "a", "b")),
    made("TABLE-124", NOT_FIRST, index(schema=keys("-a"))),
    made(
        "TABLE-124",
        "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type",
        KeySchema=keys("pk", "a"),
    ),
    projected(
        f"{DETECTED}'[]' at {NAMES}have length greater than or equal to 1",
        ProjectionType="INCLUDE",
        NonKeyAttributes=[],
    ),
    projected(
        f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified", ProjectionType="INCLUDE"
    ),
    projected(
        f"{INVALID}ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified",
        ProjectionType="KEYS_ONLY",
        NonKeyAttributes=["x"],
    ),
    projected(
        f"{INVALID}ProjectionType is ALL, but NonKeyAttributes is specified",
        ProjectionType="ALL",
        NonKeyAttributes=["x"],
    ),
    projected(
        f"{INVALID}Duplicate element in NonKeyAttributes: x",
        ProjectionType="INCLUDE",
        NonKeyAttributes=["x", "x"],
    ),
    projected(
        f"{DETECTED}'[{', '.join(f'x{n}' for n in range(21))}]' at {NAMES}have length less than or equal to 20",
        ProjectionType="INCLUDE",
        NonKeyAttributes=[f"x{n}" for n in range(21)],
    ),
    projected(OK, ProjectionType="INCLUDE", NonKeyAttributes=["pk", "a"]),
    projected(
        f"{DETECTED}'all' at '{IN_INDEX}.projection.projectionType'{FAILS}satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]",
        ProjectionType="all",
    ),
    made(
        "TABLE-126",
        f"{DETECTED}null at '{IN_INDEX}.projection'{FAILS}not be null",
        {name: value for name, value in BY_A.items() if name != "Projection"},
    ),
    made("TABLE-126", f"{INVALID}Unknown ProjectionType: null", {**BY_A, "Projection": {}}),
    made(
        "TABLE-127",
        f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
    ),
    made(
        "TABLE-127",
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: [pk, a, c], keys used: [pk, a]",
        index(projection={"ProjectionType": "INCLUDE"}),
        attributes=("pk", "a", "c"),
    ),
    made(
        "TABLE-127",
        f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. Keys: [q], AttributeDefinitions: [pk, a]",
        index(schema=keys("q")),
    ),
    made("TABLE-127", "Attribute Name is duplicated: pk", attributes=("pk", "pk")),
    made(
        "TABLE-043",
        f"{INVALID}List of GlobalSecondaryIndexes is empty",
        GlobalSecondaryIndexes=[],
        attributes=("pk",),
    ),
    made(
        "TABLE-043",
        f"{INVALID}List of LocalSecondaryIndexes is empty",
        LocalSecondaryIndexes=[],
        attributes=("pk",),
    ),
    made("TABLE-043", OK, Tags=[], attributes=("pk",)),
    made(
        "TABLE-169",
        f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of 20",
        *(index(f"g-{number}") for number in range(21)),
    ),
    local(
        "TABLE-129",
        f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of 5",
        *(index(f"l-{number}", keys("pk", "-a")) for number in range(6)),
    ),
    local(
        "TABLE-129",
        f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        index("l-a", keys("pk", "-a")),
        KeySchema=keys("pk"),
        attributes=("pk", "a"),
    ),
    local(
        "TABLE-129",
        f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for index: l-a. "
        "index hash key: a, table hash key: pk",
        index("l-a", keys("a", "-sk")),
    ),
    local(
        "TABLE-129",
        f"{INVALID}Index KeySchema does not have a range key for index: l-a",
        index("l-a", keys("pk")),
        attributes=("pk", "sk"),
    ),
    local("TABLE-129", f"{DETECTED}'[…", index("l-a", keys("pk", "-a", "-sk"))),
    local(
        "TABLE-129",
        f"{INVALID}Duplicate index name: dup",
        index("dup", keys("pk", "-a")),
        GlobalSecondaryIndexes=[index("dup")],
    ),
    made("TABLE-129", f"{INVALID}Duplicate index name: dup", index("dup"), index("dup")),
    made(
        "TABLE-129",
        f"{DETECTED}'ab' at '{IN_INDEX}.indexName'{FAILS}have length greater than or equal to 3",
        index("ab"),
    ),
    made(
        "TABLE-129",
        f"{DETECTED}'a b c' at '{IN_INDEX}.indexName'{FAILS}satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        index("a b c"),
    ),
    local("TABLE-129", OK, index("l-sk", keys("pk", "-sk")), attributes=("pk", "sk")),
    made("TABLE-129", OK, index("new", keys("pk")), attributes=("pk",)),
    made("TABLE-128", INVALID + NO_UNITS, ProvisionedThroughput=units(1, 1), attributes=("pk",)),
    made(
        "TABLE-128",
        f"{INVALID}ProvisionedThroughput should not be specified for index: g-a when BillingMode is PAY_PER_REQUEST",
        index(ProvisionedThroughput=units(1, 1)),
    ),
    made(
        "TABLE-128",
        f"{DETECTED}'0' at '{IN_INDEX}.provisionedThroughput.readCapacityUnits'{FAILS}have value greater than or equal to 1",
        index(ProvisionedThroughput=units(0, 1)),
    ),
    made(
        "TABLE-128",
        f"{INVALID}ProvisionedThroughput is not specified for index: g-a",
        index(),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units(1, 1),
    ),
    made("TABLE-128", INVALID + BOTH_UNITS, BillingMode="PROVISIONED", attributes=("pk",)),
    made("TABLE-128", INVALID + BOTH_UNITS, BillingMode=None, attributes=("pk",)),
    made(
        "TABLE-128",
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput {NO_MAXIMA}",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units(1, 1),
        OnDemandThroughput=MAXIMA,
        attributes=("pk",),
    ),
    made(
        "TABLE-128",
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput for index: g-a {NO_MAXIMA}",
        index(ProvisionedThroughput=units(1, 1), OnDemandThroughput=MAXIMA),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units(1, 1),
    ),
    *(
        made(
            "TABLE-128",
            f"{INVALID}Requested MaxReadRequestUnits for OnDemandThroughput for index : g-a is outside of valid range",
            index(OnDemandThroughput={"MaxReadRequestUnits": value, "MaxWriteRequestUnits": value}),
        )
        for value in (0, -1)
    ),
    made(
        "TABLE-128",
        f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index g-a is lower than initial throughput for OnDemand…",
        index(WarmThroughput={"ReadUnitsPerSecond": 1, "WriteUnitsPerSecond": 1}),
    ),
    made("TABLE-128", OK, index(OnDemandThroughput={"MaxReadRequestUnits": 1})),
    made("TABLE-128", OK, index(WarmThroughput={"ReadUnitsPerSecond": 13_000})),
    made("TABLE-419", OK, index(OnDemandThroughput=MAXIMA)),
]


@each(MADE)
def test_indexes_of_a_new_table(service, operation, request_, recorded):
    check(service, operation, request_, recorded)


def changed(finding: str, recorded, name: str = "orders", /, **more: Any) -> Case:
    return finding, "UpdateTable", {"TableName": name, **more}, recorded


def updates(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"GlobalSecondaryIndexUpdates": list(actions)}


CREATE_B = {"Create": index("new", keys("b"))}
OF_B = {"AttributeDefinitions": defined("b")}
OF_UNITS = {"Create": index("new", keys("b"), ProvisionedThroughput=units(1, 1))}
DELETE_A = {"Delete": {"IndexName": "gsi1"}}
TWICE = f"{INVALID}Only one global secondary index update per index is allowed simultaneously. Index: gsi1"
ONE_INDEX = (
    "LimitExceededException",
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table",
)
EMPTY = f"{INVALID}List of GlobalSecondaryIndexUpdates is empty"
ONLY = " modification must be the only operation in the request"
UNITS_OF_A = {"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(6, 6)}}

CHANGED: list[Case] = [
    changed("TABLE-015", WANTED),
    changed("TABLE-046", WANTED),
    changed("TABLE-015", WANTED, **updates()),
    changed("TABLE-015", WANTED, GONE["TableName"]),
    changed("TABLE-359", EMPTY, DeletionProtectionEnabled=True, **updates()),
    changed("TABLE-359", EMPTY, BillingMode="PAY_PER_REQUEST", **updates()),
    changed("TABLE-359", EMPTY, OnDemandThroughput=MAXIMA, **updates()),
    changed("TABLE-359", WANTED, AttributeDefinitions=defined("pk"), **updates()),
    changed("TABLE-160", TWICE, **OF_B, **updates(DELETE_A, {"Create": index("gsi1", keys("b"))})),
    changed(
        "TABLE-160",
        TWICE,
        **updates(DELETE_A, {"Update": {"IndexName": "gsi1", "OnDemandThroughput": MAXIMA}}),
    ),
    changed(
        "TABLE-160",
        f"{INVALID}Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
        **updates({**DELETE_A, "Update": {"IndexName": "gsi1", "OnDemandThroughput": MAXIMA}}),
    ),
    changed(
        "TABLE-160",
        f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
        "GlobalSecondaryIndexUpdate.Delete must not be null",
        **updates({}),
    ),
    changed(
        "TABLE-162", f"{INVALID}AttributeDefinitions is not specified for index: new", **updates(CREATE_B)
    ),
    changed("TABLE-162", OK, **OF_B, **updates(CREATE_B)),
    changed("TABLE-162", OK, AttributeDefinitions=defined("b", "stale"), **updates(CREATE_B)),
    changed(
        "TABLE-162",
        OK,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "N"}, *defined("unused")],
        DeletionProtectionEnabled=True,
    ),
    changed("TABLE-162", OK, AttributeDefinitions=defined("unused"), **updates(DELETE_A)),
    changed("TABLE-357", WANTED, KeySchema=keys("b")),
    changed("TABLE-357", WANTED, KeySchema="no list"),
    changed("TABLE-357", WANTED, LocalSecondaryIndexes=[index("l-a", keys("pk", "-b"))]),
    changed("TABLE-357", WANTED, NoSuchMember=1),
    changed("TABLE-357", OK, DeletionProtectionEnabled=True, KeySchema=keys("b")),
    changed("TABLE-159", ONE_INDEX, **OF_B, **updates(CREATE_B, {"Create": index("second", keys("b"))})),
    changed("TABLE-159", ONE_INDEX, **OF_B, **updates(CREATE_B, DELETE_A)),
    changed("TABLE-413", ONE_INDEX, **OF_B, **updates(CREATE_B, DELETE_A)),
    changed(
        "TABLE-174",
        f"{INVALID}You cannot create or delete index while updating table IOPS",
        "provisioned",
        ProvisionedThroughput=units(6, 6),
        **OF_B,
        **updates(OF_UNITS),
    ),
    changed(
        "TABLE-174",
        f"{INVALID}You cannot create or delete index while changing stream status",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        **OF_B,
        **updates(CREATE_B),
    ),
    changed(
        "TABLE-174",
        f"{INVALID}DeletionProtection{ONLY}",
        DeletionProtectionEnabled=True,
        **OF_B,
        **updates(CREATE_B),
    ),
    changed(
        "TABLE-174",
        f"{INVALID}Server-Side Encryption{ONLY}",
        SSESpecification={"Enabled": True},
        **OF_B,
        **updates(CREATE_B),
    ),
    changed(
        "TABLE-174",
        f"{INVALID}TableClass{ONLY}",
        TableClass="STANDARD_INFREQUENT_ACCESS",
        **OF_B,
        **updates(CREATE_B),
    ),
    changed(
        "TABLE-174",
        f"{INVALID}Create global secondary index cannot be specified when updating WarmThroughput",
        WarmThroughput={"ReadUnitsPerSecond": 13_000},
        **OF_B,
        **updates(CREATE_B),
    ),
    changed("TABLE-174", OK, "provisioned", **OF_B, **updates(OF_UNITS, UNITS_OF_A)),
    changed("TABLE-174", OK, "provisioned", BillingMode="PAY_PER_REQUEST", **OF_B, **updates(CREATE_B)),
    changed(
        "TABLE-152",
        f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        BillingMode="PROVISIONED",
    ),
    changed(
        "TABLE-152",
        f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        BillingMode="PROVISIONED",
        **updates(UNITS_OF_A),
    ),
    changed(
        "TABLE-152",
        f"{INVALID}ProvisionedThroughput must be specified for index: gsi1",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units(50, 50),
    ),
    changed(
        "TABLE-152", OK, BillingMode="PROVISIONED", ProvisionedThroughput=units(50, 50), **updates(UNITS_OF_A)
    ),
    changed("TABLE-152", INVALID + NO_UNITS, ProvisionedThroughput=units(50, 50)),
    changed(
        "TABLE-152",
        f"{INVALID}The only Updates for index: gsi1 when TableThroughputMode is PAY_PER_REQUEST can be to "
        "OnDemandThroughput, WarmThroughput",
        **updates(UNITS_OF_A),
    ),
    changed(
        "TABLE-152",
        f"{INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: new",
        "provisioned",
        **OF_B,
        **updates(CREATE_B),
    ),
    changed(
        "TABLE-153",
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED",
        "provisioned",
        OnDemandThroughput=MAXIMA,
    ),
    changed(
        "TABLE-153",
        f"{INVALID}MaxReadRequestUnits for OnDemandThroughput for index : gsi1 cannot be specified when the table BillingMode "
        "is PROVISIONED",
        "provisioned",
        **updates({"Update": {"IndexName": "gsi1", "OnDemandThroughput": MAXIMA}}),
    ),
    changed(
        "TABLE-164",
        "The provisioned throughput for the index gsi1 will not change. The requested value equals the current value. "
        "Current ReadCapacityUnits provisioned for index gsi1: 5. Requested ReadCapacityUnits: 5. Current WriteCapacityUnits …",
        "provisioned",
        **updates({"Update": {"IndexName": "gsi1", "ProvisionedThroughput": units(5, 5)}}),
    ),
    changed(
        "TABLE-164",
        "The provisioned throughput for the table will not change. …",
        "provisioned",
        ProvisionedThroughput=units(5, 5),
    ),
    changed(
        "TABLE-164",
        f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        "provisioned",
        BillingMode="PROVISIONED",
    ),
    changed(
        "TABLE-164",
        "The provisioned throughput for the table will not change. …",
        "provisioned",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units(5, 5),
    ),
    changed("TABLE-164", OK, "provisioned", ProvisionedThroughput=units(5, 6)),
    changed(
        "TABLE-155",
        f"{INVALID}Requested ReadUnitsPerSecond for WarmThroughput for index gsi1 is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported",
        **updates(
            {
                "Update": {
                    "IndexName": "gsi1",
                    "WarmThroughput": {"ReadUnitsPerSecond": 100, "WriteUnitsPerSecond": 100},
                }
            }
        ),
    ),
    changed(
        "TABLE-155",
        OK,
        **updates(
            {
                "Update": {
                    "IndexName": "gsi1",
                    "WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000},
                }
            }
        ),
    ),
    changed(
        "TABLE-380",
        not_found("Index ghost for table provisioned"),
        "provisioned",
        ProvisionedThroughput=units(6, 6),
        **updates({"Update": {"IndexName": "ghost", "ProvisionedThroughput": units(6, 6)}}),
    ),
    changed(
        "TABLE-417",
        OK,
        AttributeDefinitions=defined(*(each.lstrip("-") for each in EIGHT)),
        **updates({"Create": index("new", keys(*EIGHT))}),
    ),
    changed(
        "TABLE-418", OK, **OF_B, **updates({"Create": index("new", keys("b"), OnDemandThroughput=MAXIMA)})
    ),
    changed("TABLE-430", OK, **updates({"Update": {"IndexName": "gsi1", "OnDemandThroughput": MAXIMA}})),
]


@each(CHANGED)
def test_changes_of_indexes(prepared, operation, request_, recorded):
    name = request_["TableName"]
    before = None if name == "missing" else prepared.described(name)
    check(prepared, operation, request_, recorded)
    if before is not None and recorded != OK:
        assert prepared.described(name) == before


def test_a_twenty_first_index_is_refused_table_169(service):
    service.table(
        AttributeDefinitions=defined("pk", "a"), GlobalSecondaryIndexes=[index(f"g-{n}") for n in range(20)]
    )
    text = "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20"
    check(service, "UpdateTable", {**ORDERS, **OF_B, **updates(CREATE_B)}, ("LimitExceededException", text))


@pytest.mark.parametrize("count", [3, 5])
def test_tables_with_indexes_are_made_beside_each_other_table_168_table_388(delayed, count):
    for number in range(count):
        request = made("", OK, index(), TableName=f"table{number}")[2]
        assert answer(delayed, "CreateTable", request) == ("", "")

"""Findings of table-global-tables.md: strong consistency, witnesses and version 2017.11.29."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.adapters.dynamodb.features.global_tables.test_replicas import EAST, SOUTH, WEST, Regions, changes
from tests.adapters.dynamodb.measured.recorded import CREATE, INVALID, not_found, units
from tests.support.clock import Clock

NAME = {"TableName": "orders"}
OF_STRONG = "global tables with MultiRegionConsistency set to STRONG"
STRONG, EVENTUAL = {"MultiRegionConsistency": "STRONG"}, {"MultiRegionConsistency": "EVENTUAL"}
NOTHING = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
COUNT = f"Unsupported replica count for {OF_STRONG}."
UNSUPPORTED = f"Unsupported Region(s) specified for {OF_STRONG}: [us-west-1]."
NEEDS_STRONG = (
    "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
)
ONLY_ONE = f"Deletion of only one table replica is not supported for {OF_STRONG}."
NOT_HERE = ("Replicas", "GlobalTableVersion", "MultiRegionConsistency", "GlobalTableWitnesses")
MODE = "GlobalTableSettingsReplicationMode"


def witness(*actions: tuple[str, str]) -> dict[str, Any]:
    return {"GlobalTableWitnessUpdates": [{action: {"RegionName": region}} for action, region in actions]}


def serving_regions(clock: Clock, **settings: Any) -> Iterator[Regions]:
    """`orders` in us-west-2, where the measurements began."""
    with DynamoDBService.opened(clock, namespaces="separate", **settings) as service:
        made = Regions(service)
        made.call(WEST, "CreateTable", {**CREATE, **NAME})
        clock.ms += 20_000
        yield made


@pytest.fixture
def regions(clock: Clock) -> Iterator[Regions]:
    yield from serving_regions(clock)


@pytest.fixture
def slow(clock: Clock) -> Iterator[Regions]:
    """A service with a delay of ten seconds in its control plane."""
    yield from serving_regions(clock, table_creation_delay=10.0)


def ok(regions: Regions, region: str, operation: str, given: Any = None) -> Any:
    answer = regions.call(region, operation, NAME if given is None else given)
    assert regions.service.last.status == 200, answer
    return answer


def updated(regions: Regions, *actions: tuple[str, str], **more: Any) -> dict[str, Any]:
    description: dict[str, Any] = ok(regions, WEST, "UpdateTable", changes(*actions, **more))[
        "TableDescription"
    ]
    return description


@pytest.fixture
def eventual(regions: Regions) -> Regions:
    """With a replica in us-east-1."""
    updated(regions, ("Create", EAST))
    return regions


@pytest.fixture
def strong(regions: Regions) -> Regions:
    """A strong group with a replica in us-east-1 and a witness in us-east-2."""
    updated(regions, ("Create", EAST), **STRONG, **witness(("Create", SOUTH)))
    return regions


@pytest.fixture
def three(regions: Regions) -> Regions:
    """A strong group of three replicas."""
    updated(regions, ("Create", EAST), ("Create", SOUTH), **STRONG)
    return regions


# Making a strong group


@pytest.mark.parametrize(
    ("actions", "more", "text"),
    [
        ([("Create", EAST)], STRONG, COUNT),
        ([], {**STRONG, **witness(("Create", SOUTH))}, NOTHING),
        ([("Create", EAST)], witness(("Create", SOUTH)), NEEDS_STRONG),
        ([("Create", EAST)], {**EVENTUAL, **witness(("Create", SOUTH))}, NEEDS_STRONG),
        ([("Create", EAST)], {**STRONG, **witness(("Create", EAST))}, "Cannot target multiple regions with the same action"),
        (
            [("Create", EAST)],
            {**STRONG, **witness(("Create", WEST))},
            (
                "Cannot add a witness in the same region as an existing replica when creating a global table with "
                "MultiRegionConsistency set to STRONG."
            ),
        ),
        ([("Create", "us-west-1")], {**STRONG, **witness(("Create", SOUTH))}, UNSUPPORTED),
        ([("Create", EAST)], {**STRONG, **witness(("Create", "us-west-1"))}, UNSUPPORTED),
        ([("Create", EAST), ("Create", "us-west-1")], STRONG, UNSUPPORTED),
        (
            [("Create", EAST)],
            {**STRONG, **witness(("Create", SOUTH)), "DeletionProtectionEnabled": True},
            "Requests that modify replicas or witnesses must not also modify other fields",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_strong_groups_that_cannot_be_made_table_257(regions, actions, more, text):
    found = regions.refused(WEST, *actions, **more)
    assert found == text if text != NOTHING else found.startswith(text)
    assert "Replicas" not in regions.described(WEST)


def test_a_request_changes_one_witness_table_257_table_414_table_428(regions):
    two = witness(("Create", SOUTH), ("Create", "eu-west-1"))
    text = regions.refused(WEST, ("Create", EAST), **STRONG, **two)
    head, _, rest = text.partition("' at '")
    assert head.startswith("1 validation error detected: Value '[GlobalTableWitnessGroupUpdate(")
    assert rest == (
        "globalTableWitnessUpdates' failed to satisfy constraint: Member must have length less than or equal to 1"
    )


@pytest.mark.parametrize(
    ("replicas", "witnesses"), [([EAST], [SOUTH]), ([EAST, SOUTH], []), (["eu-west-1"], [SOUTH])]
)
def test_strong_groups_that_can_be_made_table_257_table_258(regions, replicas, witnesses):
    more = witness(*(("Create", region) for region in witnesses)) if witnesses else {}
    answer = updated(regions, *(("Create", region) for region in replicas), **STRONG, **more)
    assert (answer["TableStatus"], answer["MultiRegionConsistency"]) == ("UPDATING", "STRONG")
    assert answer["GlobalTableVersion"] == "2019.11.21"
    shown = regions.described(WEST)
    assert {each["RegionName"]: each["ReplicaStatus"] for each in shown["Replicas"]} == dict.fromkeys(
        replicas, "ACTIVE"
    )


def test_two_replicas_at_a_time_are_of_strong_groups_table_258(regions):
    text = "Update table operation with more than one create or delete replica actions not allowed"
    assert regions.refused(WEST, ("Create", EAST), ("Create", SOUTH)) == text


def test_a_strong_group_describes_its_replicas_and_witness_table_259(strong):
    for region, other in ((WEST, EAST), (EAST, WEST)):
        shown = strong.described(region)
        assert (shown["MultiRegionConsistency"], shown["GlobalTableVersion"]) == ("STRONG", "2019.11.21")
        [replica] = shown["Replicas"]
        assert replica.keys() == {MODE, "RegionName", "ReplicaStatus", "WarmThroughput"}
        assert replica["RegionName"] == other
        assert shown["GlobalTableWitnesses"] == [{"RegionName": SOUTH, "WitnessStatus": "ACTIVE"}]


def test_a_witness_is_no_table_table_259_table_261(strong):
    assert strong.error(SOUTH, "DescribeTable", NAME) == not_found("Table: orders not found")
    assert ok(strong, SOUTH, "ListTables", {}) == {"TableNames": []}
    arn = f"arn:aws:dynamodb:{SOUTH}:000000000000:table/orders"
    assert strong.error(SOUTH, "ListTagsOfResource", {"ResourceArn": arn})[0] == "ResourceNotFoundException"
    ok(strong, SOUTH, "CreateTable", {**CREATE, **NAME})
    updated(strong, ("Delete", EAST), **witness(("Delete", SOUTH)))
    assert strong.described(SOUTH)["TableStatus"] == "ACTIVE"


# Changing one


@pytest.mark.parametrize(
    ("actions", "more", "text"),
    [
        ([("Create", "eu-west-1")], {}, "Cannot add replicas to a global table with strong MultiRegionConsistency"),
        ([("Create", "eu-west-1")], STRONG, COUNT),
        ([("Delete", EAST)], {}, "Update table delete operation does not include all witnesses."),
        ([], witness(("Delete", SOUTH)), NOTHING),
        ([], witness(("Create", SOUTH)), NOTHING),
        ([], {**STRONG, **witness(("Delete", SOUTH))}, NOTHING),
        ([], {**STRONG, **witness(("Create", SOUTH))}, NOTHING),
        ([("Create", "eu-west-1")], EVENTUAL, "MultiRegionConsistency parameter is unsupported on existing global table"),
        (
            [("Delete", EAST)],
            STRONG,
            "Only Replica Create actions are supported when MultiRegionConsistency parameter is provided.",
        ),
        (
            [("Delete", EAST)],
            witness(("Delete", "eu-west-1")),
            (
                "Update global table operation failed because one or more witnesses were not part of the global table. "
                "Please retry the request without these witnesses: [eu-west-1]."
            ),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_strong_group_cannot_be_changed_table_260(strong, actions, more, text):
    before = strong.described(WEST)
    found = strong.refused(WEST, *actions, **more)
    assert found == text if text != NOTHING else found.startswith(text)
    assert strong.described(WEST) == before


@pytest.mark.parametrize("group", ["strong", "three"])
def test_no_table_of_a_strong_group_is_deleted_alone_table_260(request, group):
    regions = request.getfixturevalue(group)
    for region in (WEST, EAST):
        assert regions.error(region, "DeleteTable", NAME) == ("ValidationException", ONLY_ONE)
    if group == "three":
        assert regions.refused(WEST, ("Delete", EAST)) == ONLY_ONE


def test_a_strong_group_is_dissolved_at_once_table_261_table_414(strong):
    answer = updated(strong, ("Delete", EAST), **witness(("Delete", SOUTH)))
    assert answer["TableStatus"] == "UPDATING"
    assert [each["ReplicaStatus"] for each in answer["Replicas"]] == ["ACTIVE"]
    assert answer["GlobalTableWitnesses"] == [{"RegionName": SOUTH, "WitnessStatus": "ACTIVE"}]
    shown = strong.described(WEST)
    assert shown["TableStatus"] == "ACTIVE"
    assert not set(NOT_HERE) & set(shown)
    assert shown["StreamSpecification"]["StreamEnabled"]
    assert strong.error(EAST, "DescribeTable", NAME) == not_found("Table: orders not found")
    updated(strong, ("Create", EAST))


def test_three_replicas_are_dissolved_at_once_table_261(three):
    updated(three, ("Delete", EAST), ("Delete", SOUTH))
    assert not set(NOT_HERE) & set(three.described(WEST))
    ok(three, WEST, "DeleteTable")


CHANGES_OF_ALL = [
    {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    {"SSESpecification": {"Enabled": True}},
]
OWN_KEY = {"SSESpecification": {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/mine"}}


@pytest.mark.parametrize("given", CHANGES_OF_ALL, ids=lambda given: next(iter(given)))
def test_a_change_of_all_tables_waits_for_each_of_them(slow, given):
    """Not measured: no table of a group is changed if another one cannot be."""
    updated(slow, ("Create", EAST))
    slow.service.clock.ms += 20_000
    first = OWN_KEY if "SSESpecification" in given else {"DeletionProtectionEnabled": True}
    ok(slow, EAST, "UpdateTable", changes(**first))
    before = slow.described(WEST)
    refused = "ResourceInUseException", "The resource which you are attempting to change is in use."
    assert slow.error(WEST, "UpdateTable", changes(**given)) == refused
    assert slow.described(WEST) == before
    slow.service.clock.ms += 20_000
    ok(slow, WEST, "UpdateTable", changes(**given))


def test_protection_is_of_one_table_of_a_strong_group_table_263(strong):
    updated(strong, DeletionProtectionEnabled=True)
    assert strong.described(WEST)["DeletionProtectionEnabled"]
    assert not strong.described(EAST)["DeletionProtectionEnabled"]


def test_protection_of_a_strong_group_takes_a_while_table_263(slow):
    updated(slow, ("Create", EAST), **STRONG, **witness(("Create", SOUTH)))
    slow.service.clock.ms += 20_000
    assert updated(slow, DeletionProtectionEnabled=True)["TableStatus"] == "UPDATING"
    shown = slow.described(WEST)
    assert shown["TableStatus"] == "UPDATING"
    assert [each["ReplicaStatus"] for each in shown["Replicas"]] == ["ACTIVE"]
    again = changes(DeletionProtectionEnabled=False)
    dissolved = changes(("Delete", EAST), **witness(("Delete", SOUTH)))
    for given in (again, dissolved):
        assert slow.error(WEST, "UpdateTable", given)[0] == "ResourceInUseException"
    slow.service.clock.ms += 20_000
    assert slow.described(WEST)["TableStatus"] == "ACTIVE"
    assert not slow.described(EAST)["DeletionProtectionEnabled"]


@pytest.mark.parametrize(
    ("actions", "more", "text"),
    [
        ([("Create", "us-west-1")], STRONG, COUNT),
        ([("Create", "us-west-1")], {**STRONG, **witness(("Create", "us-west-1"))}, UNSUPPORTED),
        ([], STRONG, NOTHING),
        ([], EVENTUAL, NOTHING),
        ([], witness(("Create", SOUTH)), NOTHING),
    ],
    ids=str,
)  # fmt: skip
def test_an_eventual_group_does_not_become_strong_table_202(eventual, actions, more, text):
    found = eventual.refused(WEST, *actions, **more)
    assert found == text if text != NOTHING else found.startswith(text)
    assert "MultiRegionConsistency" not in eventual.described(WEST)


# Description of a global table


def test_a_table_of_one_region_tells_of_no_other_table_220_table_201_table_320(regions):
    assert not {*NOT_HERE, MODE} & set(regions.described(WEST))


def test_an_eventual_group_tells_no_consistency_table_201(eventual):
    for region, other in ((WEST, EAST), (EAST, WEST)):
        shown = eventual.described(region)
        warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}
        assert shown["Replicas"] == [
            {
                MODE: "ENABLED_WITH_OVERRIDES",
                "RegionName": other,
                "ReplicaStatus": "ACTIVE",
                "WarmThroughput": warm,
            }
        ]
        assert shown["GlobalTableVersion"] == "2019.11.21"
        assert not {"MultiRegionConsistency", "GlobalTableWitnesses"} & set(shown)


def test_the_last_table_of_a_group_describes_no_group_table_231_table_201_table_320(eventual):
    name = "Global table with name: 'orders' does not exist."
    assert eventual.described(WEST)[MODE] == "ENABLED_WITH_OVERRIDES"
    ok(eventual, WEST, "DescribeTableReplicaAutoScaling")
    updated(eventual, ("Delete", EAST))
    shown = eventual.described(WEST)
    assert not {*NOT_HERE, MODE} & set(shown)
    missing = ("ResourceNotFoundException", name)
    assert eventual.error(WEST, "DescribeTableReplicaAutoScaling", NAME) == missing
    assert shown["StreamSpecification"]["StreamEnabled"]


def test_the_regions_of_a_group_tell_the_same_but_themselves_table_229(regions):
    regions.service.clock.ms += 5_000
    updated(regions, ("Create", EAST))
    here, there = regions.described(WEST), regions.described(EAST)
    assert here.keys() == there.keys()
    different = {name for name in here if here[name] != there[name]}
    # TableThroughputModeSummary is in no model, so it was not seen. It has the same time as BillingModeSummary.
    assert different - {"TableThroughputModeSummary"} == {
        *("TableId", "TableArn", "CreationDateTime", "LatestStreamArn", "Replicas", "BillingModeSummary")
    } | ({"LatestStreamLabel"} & different)
    assert here["ProvisionedThroughput"] == {**units(0, 0), "NumberOfDecreasesToday": 0}


def test_a_provisioned_group_has_no_summary_of_billing_table_320(eventual):
    provisioned = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(5, 5)}
    updated(eventual, **provisioned)
    for region in (WEST, EAST):
        shown = eventual.described(region)
        assert shown["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
        assert "BillingModeSummary" not in shown
    updated(eventual, ("Delete", EAST))
    assert eventual.described(WEST)["BillingModeSummary"]["BillingMode"] == "PROVISIONED"


@pytest.mark.parametrize("mode", ["ENABLED", "DISABLED"])
def test_the_mode_of_settings_without_a_replica_table_048(regions, mode):
    for _ in range(2):
        assert updated(regions, **{MODE: mode})["TableStatus"] == "ACTIVE"
        assert regions.described(WEST)[MODE] == mode
    text = regions.refused(WEST, **{MODE: "ENABLED_WITH_OVERRIDES"})
    assert text.startswith(
        f"Value 'ENABLED_WITH_OVERRIDES' at '{MODE}' failed to satisfy constraint: "
        "Only ENABLED and DISABLED settings replication a"
    )
    assert regions.described(WEST)[MODE] == mode


# Version 2017.11.29

LEGACY = {"GlobalTableName": "orders"}
GROUP = {**LEGACY, "ReplicationGroup": [{"RegionName": WEST}, {"RegionName": EAST}]}
OLD = (
    f"{INVALID}DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version "
    "2019.11.21, instead of version 2017.11.29 (Legacy)."
)


def nothing_there(regions: Regions, region: str, name: str) -> None:
    """No operation of version 2017.11.29 finds a global table."""
    text = f"Global table with name: '{name}' does not exist."
    missing = ("GlobalTableNotFoundException", text)
    named = {"GlobalTableName": name}
    described = ("GlobalTableNotFoundException", f"Global table not found: {text}")
    assert regions.error(region, "DescribeGlobalTable", named) == described
    assert regions.error(region, "DescribeGlobalTableSettings", named) == missing
    for change in (
        {"GlobalTableBillingMode": "PAY_PER_REQUEST"},
        {"ReplicaSettingsUpdate": [{"RegionName": EAST, "ReplicaProvisionedReadCapacityUnits": 5}]},
    ):
        assert regions.error(region, "UpdateGlobalTableSettings", {**named, **change}) == missing
    delete, create = (
        {**named, "ReplicaUpdates": [{action: {"RegionName": EAST}}]} for action in ("Delete", "Create")
    )
    assert regions.error(region, "UpdateGlobalTable", delete)[0] == "GlobalTableNotFoundException"
    assert regions.error(region, "UpdateGlobalTable", create) == ("ValidationException", OLD)
    empty = {**named, "ReplicaUpdates": []}
    assert regions.error(region, "UpdateGlobalTable", empty) == (
        "ValidationException",
        INVALID.removesuffix(": "),
    )
    # With a region that does not exist AWS fails with status 500, which this server never does.
    for given in ({}, {"RegionName": EAST}, {"Limit": 1}, {"RegionName": "us-fake-9"}):
        assert ok(regions, region, "ListGlobalTables", given) == {"GlobalTables": []}


@pytest.mark.parametrize("name", ["orders", "missing"])
def test_a_table_of_one_region_is_none_globaltable_004_globaltablesettings_001(regions, name):
    nothing_there(regions, WEST, name)


@pytest.mark.parametrize("group", ["eventual", "strong"])
def test_a_group_of_today_is_none_globaltable_001_globaltablesettings_001(request, group):
    regions = request.getfixturevalue(group)
    for region in (WEST, EAST):
        nothing_there(regions, region, "orders")


@pytest.mark.parametrize("region", [WEST, EAST, SOUTH, "eu-west-1"])
def test_global_tables_of_the_old_version_cannot_be_created_globaltable_002_globaltable_005(regions, region):
    ok(regions, EAST, "CreateTable", {**CREATE, **NAME})
    assert regions.error(region, "CreateGlobalTable", GROUP) == ("ValidationException", OLD)
    assert regions.error(region, "DescribeGlobalTable", LEGACY)[0] == "GlobalTableNotFoundException"
    assert "Replicas" not in regions.described(WEST)


def test_create_global_table_names_the_supported_regions_globaltable_002(regions):
    text = regions.error("ap-south-1", "CreateGlobalTable", GROUP)[1]
    assert text.endswith(
        "is not supported in this region 'ap-south-1', supported regions are : [eu-west-2, eu-west-1, ap-southeast-1, "
        "ap-southeast-2, ap-northeast-2, eu-central-1, ap-northeast-1, us-east-1, us-east-2, us-west-1, us-west-2]"
    )


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (LEGACY, "1 validation error detected: Value null at 'replicationGroup' failed"),
        (
            {**GROUP, "GlobalTableName": "or ders"},
            "1 validation error detected: Value 'or ders' at 'globalTableName' failed",
        ),
        ({**GROUP, "GlobalTableName": "missing"}, OLD),
    ],
    ids=str,
)
def test_shapes_then_the_version_then_the_table_globaltable_003(regions, given, text):
    code, found = regions.error(WEST, "CreateGlobalTable", given)
    assert (code, found.startswith(text)) == ("ValidationException", True), found

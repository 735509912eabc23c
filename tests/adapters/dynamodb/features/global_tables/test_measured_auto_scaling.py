"""Findings of table-policy-kinesis-autoscaling.md and table-replicas.md about auto scaling. The service passes on errors of
Application Auto Scaling with a suffix in brackets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.dynamodb.features.global_tables.test_replicas import EAST, SOUTH, WEST, Regions, changes
from tests.adapters.dynamodb.measured.conftest import with_index

NAMED = "Failed to update settings for global table with name: \u2018orders\u2019"
OFF = {"AutoScalingDisabled": True, "ScalingPolicies": []}
ROLE = (
    "arn:aws:iam::000000000000:role/aws-service-role/dynamodb.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_DynamoDBTable"
)
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
NOT_FOUND, INVALID = "ResourceNotFoundException", "ValidationException"
READ = "ReplicaProvisionedReadCapacityAutoScalingSettings"
WRITE = "ReplicaProvisionedWriteCapacityAutoScalingSettings"
TARGET: dict[str, Any] = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}}
FULL: dict[str, Any] = {"MinimumUnits": 1, "MaximumUnits": 10, "ScalingPolicyUpdate": TARGET}


@pytest.fixture
def regions(separate) -> Regions:
    return Regions(separate)


@pytest.fixture
def scaled(regions) -> Regions:
    """`orders` with provisioned throughput in two regions, and an index."""
    index = {**with_index()["GlobalSecondaryIndexes"][0], "IndexName": "gsi0"}
    regions.call(EAST, "DeleteTable", {"TableName": "orders"})
    regions.service.table(**{**with_index(), "GlobalSecondaryIndexes": [index]})
    regions.update(EAST, ("Create", WEST))
    of_index = {"Update": {"IndexName": "gsi0", "ProvisionedThroughput": UNITS}}
    given = {
        "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": UNITS,
        "GlobalSecondaryIndexUpdates": [of_index],
    }
    regions.call(EAST, "UpdateTable", {"TableName": "orders", **given})
    assert regions.service.last.status == 200, regions.service.last
    return regions


def read(settings: dict[str, Any], region: str = EAST) -> dict[str, Any]:
    """A request that sets how reads of a region are scaled."""
    update = {"RegionName": region, "ReplicaProvisionedReadCapacityAutoScalingUpdate": settings}
    return {"ReplicaUpdates": [update]}


def write(settings: dict[str, Any]) -> dict[str, Any]:
    return {"ProvisionedWriteCapacityAutoScalingUpdate": settings}


def index_write(settings: dict[str, Any], name: str = "gsi0") -> dict[str, Any]:
    update = {"IndexName": name, "ProvisionedWriteCapacityAutoScalingUpdate": settings}
    return {"GlobalSecondaryIndexUpdates": [update]}


def index_read(settings: dict[str, Any], name: str = "gsi0") -> dict[str, Any]:
    update = {"IndexName": name, "ProvisionedReadCapacityAutoScalingUpdate": settings}
    return {"ReplicaUpdates": [{"RegionName": EAST, "ReplicaGlobalSecondaryIndexUpdates": [update]}]}


def change(regions: Regions, given: dict[str, Any], region: str = EAST) -> dict[str, Any]:
    answer = regions.call(region, "UpdateTableReplicaAutoScaling", {"TableName": "orders", **given})
    assert regions.service.last.status == 200, answer
    return {each["RegionName"]: each for each in answer["TableAutoScalingDescription"]["Replicas"]}


def refused(regions: Regions, given: dict[str, Any]) -> tuple[str, str]:
    return regions.error(EAST, "UpdateTableReplicaAutoScaling", {"TableName": "orders", **given})


def described(regions: Regions, region: str = EAST) -> dict[str, Any]:
    answer = regions.call(region, "DescribeTableReplicaAutoScaling", {"TableName": "orders"})
    return {each["RegionName"]: each for each in answer["TableAutoScalingDescription"]["Replicas"]}


def test_tables_that_are_not_global(regions):
    """TABLE-187, TABLE-232, TABLE-254, TABLE-014, TABLE-446: a table of one region and a missing one get the same answer."""
    for name in ("orders", "nope"):
        text = f"Global table with name: '{name}' does not exist."
        for operation, more in (("Describe", {}), ("Update", write(FULL)), ("Update", read(FULL))):
            given = {"TableName": name, **more}
            assert regions.error(EAST, f"{operation}TableReplicaAutoScaling", given) == (NOT_FOUND, text)


def test_auto_scaling_that_was_never_set_reads_as_disabled(regions):
    """TABLE-189, TABLE-232, TABLE-254 (by ARN), TABLE-265 (order), TABLE-289"""
    regions.update(EAST, ("Create", WEST))
    [east, west] = described(regions).values()
    assert east == {
        "RegionName": EAST,
        "GlobalSecondaryIndexes": [],
        READ: OFF,
        WRITE: OFF,
        "ReplicaStatus": "ACTIVE",
    }
    assert west == {**east, "RegionName": WEST}
    assert described(regions, WEST) == described(regions)
    arn = regions.described(EAST)["TableArn"]
    answer = regions.call(EAST, "DescribeTableReplicaAutoScaling", {"TableName": arn})[
        "TableAutoScalingDescription"
    ]
    assert (set(answer), answer["TableStatus"]) == ({"TableName", "TableStatus", "Replicas"}, "ACTIVE")


def test_a_replica_that_is_left_alone_is_no_global_table(regions):
    """TABLE-187, TABLE-292"""
    regions.update(EAST, ("Create", WEST))
    regions.update(EAST, ("Delete", WEST))
    code, _ = regions.error(EAST, "DescribeTableReplicaAutoScaling", {"TableName": "orders"})
    assert code == NOT_FOUND


def test_settings_have_the_defaults_of_the_service(scaled):
    """TABLE-237, TABLE-238, TABLE-192 (the answer shows what was before), TABLE-193"""
    before = scaled.described(EAST)
    assert change(scaled, read(FULL))[EAST][READ] == OFF
    name = "DynamoDBReadCapacityUtilization:table/orders"
    assert described(scaled)[EAST][READ] == {
        "MinimumUnits": 1,
        "MaximumUnits": 10,
        "AutoScalingRoleArn": ROLE,
        "ScalingPolicies": [{"PolicyName": name, **TARGET}],
    }
    assert described(scaled)[WEST][READ] == OFF
    assert scaled.described(EAST) == before
    assert "caling" not in json.dumps(before)


def test_a_policy_is_one_of_its_place_by_name(scaled):
    """TABLE-240"""
    tracking = {"DisableScaleIn": True, "ScaleInCooldown": 120, "ScaleOutCooldown": 60, "TargetValue": 55.0}
    for name, target in (("p1", 70.0), ("p1", 50.0), ("p2", 40.0)):
        wanted = {"TargetTrackingScalingPolicyConfiguration": {**tracking, "TargetValue": target}}
        change(scaled, read({**FULL, "ScalingPolicyUpdate": {"PolicyName": name, **wanted}}))
        assert described(scaled)[EAST][READ]["ScalingPolicies"] == [{"PolicyName": name, **wanted}]


NEEDED = "are required unless auto scaling is being disabled."
PARTS = {
    "min and max": ({"MinimumUnits": 1, "MaximumUnits": 10}, f"'ScalingPolicyUpdate' {NEEDED}"),
    "policy": ({"ScalingPolicyUpdate": TARGET}, f"'MaximumUnits', 'MinimumUnits' {NEEDED}"),
    "named": (
        {"ScalingPolicyUpdate": {"PolicyName": "p1", **TARGET}},
        f"'MaximumUnits', 'MinimumUnits' {NEEDED}",
    ),
    "min": ({"MinimumUnits": 1, "ScalingPolicyUpdate": TARGET}, f"'MaximumUnits' {NEEDED}"),
    "max": ({"MaximumUnits": 1, "ScalingPolicyUpdate": TARGET}, f"'MinimumUnits' {NEEDED}"),
    "nothing": ({}, f"'MaximumUnits', 'ScalingPolicyUpdate', 'MinimumUnits' {NEEDED}"),
    "role": (
        {"AutoScalingRoleArn": ROLE},
        f"'MaximumUnits', 'ScalingPolicyUpdate', 'MinimumUnits' {NEEDED}",
    ),
    "not disabled": (
        {"AutoScalingDisabled": False},
        f"'MaximumUnits', 'ScalingPolicyUpdate', 'MinimumUnits' {NEEDED}",
    ),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("is_set", [False, True])
def test_settings_are_given_whole(scaled, part, is_set):
    """TABLE-241, TABLE-243, TABLE-253"""
    if is_set:
        change(scaled, read(FULL))
    given, text = PARTS[part]
    assert refused(scaled, read(given)) == (INVALID, f"{NAMED}: Parameters {text}")


def test_scaling_is_disabled_place_by_place(scaled):
    """TABLE-198, TABLE-242, TABLE-290"""
    change(scaled, {**write(FULL), **read(FULL)})
    change(scaled, index_write({**FULL, "MaximumUnits": 12}))
    before = change(scaled, write({"AutoScalingDisabled": True}))
    assert before[EAST][WRITE]["MaximumUnits"] == 10
    for replica in described(scaled).values():
        assert replica[WRITE] == OFF
        [index] = replica["GlobalSecondaryIndexes"]
        assert index["ProvisionedWriteCapacityAutoScalingSettings"]["MaximumUnits"] == 12
    assert described(scaled)[EAST][READ]["MaximumUnits"] == 10
    change(scaled, write({"AutoScalingDisabled": True}))
    blank = "must be left blank when disabling auto scaling."
    bare = NAMED.replace("name: ", "name ")
    for given, members in (
        ({"MinimumUnits": 1, "MaximumUnits": 10}, "'MaximumUnits', 'MinimumUnits'"),
        ({"ScalingPolicyUpdate": TARGET}, "'ScalingPolicyUpdate'"),
    ):
        found = refused(scaled, read({"AutoScalingDisabled": True, **given}))
        assert found == (INVALID, f"{bare}: Parameters {members} {blank}")
    change(scaled, write({**FULL, "AutoScalingDisabled": False}))
    assert described(scaled)[WEST][WRITE]["MinimumUnits"] == 1


def test_indexes_have_settings_of_their_own(scaled):
    """TABLE-289, TABLE-194 (writes are one for all regions, reads are not)"""
    change(scaled, index_read(FULL))
    change(scaled, index_write(FULL))
    for region, replica in described(scaled).items():
        [index] = replica["GlobalSecondaryIndexes"]
        assert (index["IndexName"], index["IndexStatus"]) == ("gsi0", "ACTIVE")
        written = index["ProvisionedWriteCapacityAutoScalingSettings"]["ScalingPolicies"][0]
        assert written["PolicyName"] == "DynamoDBWriteCapacityUtilization:table/orders/index/gsi0"
        of_reads = index["ProvisionedReadCapacityAutoScalingSettings"]
        assert (of_reads == OFF) is (region == WEST)


SUFFIX = (
    "(Service: AWSApplicationAutoScaling; Status Code: 400; Error Code: ValidationException; Request ID: "
)
BOUNDS = "For predefined metric type DynamoDBReadCapacityUtilization, target value must be between '10.0' and '90.0', but was"


def aimed(target: float) -> dict[str, Any]:
    return {
        **FULL,
        "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": target}},
    }


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({**FULL, "MinimumUnits": 11}, "Maximum capacity cannot be less than minimum capacity"),
        (aimed(90.1), f"{BOUNDS} '90.1'."),
        (aimed(100), f"{BOUNDS} '100.0'."),
        (
            aimed(0),
            "For target tracking scaling, target value must be between '8.51592E-109' and '1.174271E108', but was '0.0'.",
        ),
    ],
)
def test_errors_of_application_auto_scaling_are_passed_on(scaled, settings, text):
    """TABLE-253"""
    code, told = refused(scaled, read(settings))
    assert (code, told.startswith(f"{text} {SUFFIX}"), told.endswith("; Proxy: null)")) == (
        INVALID,
        True,
        True,
    )


@pytest.mark.parametrize(
    "settings", [{**FULL, "MinimumUnits": 10}, aimed(19.9), {**FULL, "MaximumUnits": 10**9}]
)
def test_settings_that_are_taken(scaled, settings):
    """TABLE-253"""
    change(scaled, read(settings))


def test_cooldowns_are_not_checked(scaled):
    """TABLE-253"""
    tracking = {"TargetValue": 70.0, "ScaleInCooldown": -1, "ScaleOutCooldown": 10**9}
    change(
        scaled, read({**FULL, "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": tracking}})
    )


def test_units_above_a_quota_are_taken(scaled):
    """TABLE-256"""
    change(scaled, read({**FULL, "MinimumUnits": 50_000, "MaximumUnits": 60_000}))
    assert described(scaled)[EAST][READ]["MinimumUnits"] == 50_000


def test_the_role_is_the_service_linked_one(scaled):
    """TABLE-239"""
    change(scaled, read({**FULL, "AutoScalingRoleArn": ROLE}))
    other = "arn:aws:iam::000000000000:role/Admin"
    code, text = refused(scaled, read({**FULL, "AutoScalingRoleArn": other}))
    assert code == INVALID
    assert (
        f"is not authorized to perform: iam:PassRole on resource: {other} because no identity-based policy"
        in text
    )


def test_places_that_are_not_there(scaled):
    """TABLE-253, TABLE-291 (index), TABLE-255"""
    for region in (SOUTH, "us-fake-1", "US-EAST-1"):
        assert refused(scaled, read(FULL, region))[0] == NOT_FOUND
    missing = f"{NAMED} because the global secondary indexes with names: \u2018[nope]\u2019 do not exist."
    assert refused(scaled, index_write(FULL, "nope")) == (NOT_FOUND, missing)
    twice = {"ReplicaUpdates": read(FULL)["ReplicaUpdates"] * 2}
    text = f"{NAMED} because the regions: \u2018[{EAST}]\u2019 were specified more than once."
    assert refused(scaled, twice) == (INVALID, text)
    least = f"{NAMED} because at least one update parameter must be specified"
    assert refused(scaled, {"ReplicaUpdates": [{"RegionName": EAST}]}) == (
        INVALID,
        f"{least} for region: \u2018{EAST}\u2019.",
    )
    assert refused(scaled, {}) == (INVALID, f"{least}.")
    change(
        scaled,
        {
            "ReplicaUpdates": [*read(FULL)["ReplicaUpdates"], *read(FULL, WEST)["ReplicaUpdates"]],
            **write(FULL),
        },
    )


def test_a_table_on_demand_is_not_scaled(scaled):
    """TABLE-190, TABLE-317: settings stay, disabled."""
    change(scaled, {**write(FULL), **read(FULL)})
    scaled.call(EAST, "UpdateTable", {"TableName": "orders", "BillingMode": "PAY_PER_REQUEST"})
    for place in (READ, WRITE):
        shown = described(scaled)[EAST][place]
        assert (shown["MinimumUnits"], shown["MaximumUnits"], shown["AutoScalingDisabled"]) == (1, 10, True)
        assert len(shown["ScalingPolicies"]) == 1
    for given, parameter in (
        (write(FULL), "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate"),
        (read(FULL), "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate"),
    ):
        text = (
            "Failed to update global table with name \u2018orders\u2018. Replicas 'US-EAST-1', 'US-WEST-2' BillingMode is "
            f"PayPerRequest. You must convert table's BillingMode to PROVISIONED to set parameters: '{parameter}'."
        )
        assert refused(scaled, given) == (INVALID, text)
    change(scaled, read({"AutoScalingDisabled": True}))
    assert described(scaled)[EAST][READ] == OFF


def added(name: str) -> dict[str, Any]:
    index = {**with_index()["GlobalSecondaryIndexes"][0], "IndexName": name, "ProvisionedThroughput": UNITS}
    return {
        "AttributeDefinitions": with_index()["AttributeDefinitions"],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def test_writes_of_an_index_that_is_added_are_scaled(scaled):
    """TABLE-322"""
    scaled.call(EAST, "UpdateTable", {"TableName": "orders", **added("gsi1")})
    assert scaled.service.last.status == 200
    scaled.settle()
    for replica in described(scaled).values():
        [found] = [each for each in replica["GlobalSecondaryIndexes"] if each["IndexName"] == "gsi1"]
        assert found["ProvisionedReadCapacityAutoScalingSettings"] == OFF
        name = "DynamoDBWriteCapacityUtilization:table/orders/index/gsi1"
        assert found["ProvisionedWriteCapacityAutoScalingSettings"] == {
            "MinimumUnits": 1,
            "MaximumUnits": 10,
            "AutoScalingRoleArn": ROLE,
            "ScalingPolicies": [{"PolicyName": name, **TARGET}],
        }


def test_no_index_is_added_while_writes_of_another_are_not_scaled(scaled):
    """TABLE-291"""
    change(scaled, index_write({"AutoScalingDisabled": True}))
    text = "GSI write capacity should either be Pay-Per-Request or AutoScaled."
    found = scaled.error(EAST, "UpdateTable", {"TableName": "orders", **added("gsi1")})
    assert found == (INVALID, text)
    change(scaled, index_write(FULL))
    scaled.call(EAST, "UpdateTable", {"TableName": "orders", **added("gsi1")})
    assert scaled.service.last.status == 200


def test_an_index_that_is_creating_is_not_known(scaled):
    """TABLE-323"""
    for number in range(3):
        item = {"pk": {"S": f"k{number}"}, "a": {"S": "a"}}
        scaled.call(EAST, "PutItem", {"TableName": "orders", "Item": item})
    scaled.call(EAST, "UpdateTable", {"TableName": "orders", **added("gsi1")})
    missing = f"{NAMED} because the global secondary indexes with names: \u2018[gsi1]\u2019 do not exist."
    assert refused(scaled, index_write(FULL, "gsi1")) == (NOT_FOUND, missing)
    where = f"with name: \u2018gsi1\u2019 does not exist in region: \u2018{EAST}\u2019."
    missing = f"{NAMED} because a global secondary index {where}"
    assert refused(scaled, index_read(FULL, "gsi1")) == (NOT_FOUND, missing)
    assert [each["IndexName"] for each in described(scaled)[EAST]["GlobalSecondaryIndexes"]] == ["gsi0"]
    scaled.settle()
    change(scaled, index_write(FULL, "gsi1"))
    change(scaled, index_read(FULL, "gsi1"))


def test_tags_do_not_show(scaled):
    """TABLE-197"""
    change(scaled, write(FULL))
    arn = scaled.described(EAST)["TableArn"]
    scaled.call(EAST, "TagResource", {"ResourceArn": arn, "Tags": [{"Key": "team", "Value": "a"}]})
    assert "team" not in json.dumps(described(scaled))


def test_a_provisioned_table_gets_no_replicas(regions):
    """TABLE-188, TABLE-249, TABLE-288: the service requires scaling that only Application Auto Scaling can
    configure.
    """
    regions.call(
        EAST,
        "UpdateTable",
        {"TableName": "orders", "BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS},
    )
    text = "Table write capacity should either be Pay-Per-Request or AutoScaled."
    assert regions.error(EAST, "UpdateTable", changes(("Create", WEST))) == (INVALID, text)

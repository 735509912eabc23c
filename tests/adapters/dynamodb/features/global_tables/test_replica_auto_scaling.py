"""Auto scaling of global tables: kept, not done. Texts: ack-api-quirks (live service, October 2026)."""

from __future__ import annotations

from tests.adapters.dynamodb.features.global_tables.test_replicas import EAST, WEST, regions  # noqa: F401

OFF = {"AutoScalingDisabled": True, "ScalingPolicies": []}
HEAD = "Failed to update settings for global table with name: \u2018orders\u2019"


def update(write=None, **read):
    given = {"TableName": "orders"}
    if write is not None:
        given["ProvisionedWriteCapacityAutoScalingUpdate"] = write
    if read:
        given["ReplicaUpdates"] = [
            {"RegionName": WEST, "ReplicaProvisionedReadCapacityAutoScalingUpdate": read["west"]}
        ]
    return given


def settings(low=1, high=10, target=70.0):
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": target}}
    return {"MinimumUnits": low, "MaximumUnits": high, "ScalingPolicyUpdate": policy}


def shown(regions, region=EAST):  # noqa: F811
    answer = regions.call(region, "DescribeTableReplicaAutoScaling", {"TableName": "orders"})
    return {each["RegionName"]: each for each in answer["TableAutoScalingDescription"]["Replicas"]}


def test_a_table_of_one_region_has_none(regions):  # noqa: F811
    missing = ("ResourceNotFoundException", "Global table with name: 'orders' does not exist.")
    for operation in ("Describe", "Update"):
        assert regions.error(EAST, f"{operation}TableReplicaAutoScaling", {"TableName": "orders"}) == missing


def test_only_global_tables_scale_replicas(service):
    operation = "DescribeTableReplicaAutoScaling"
    assert service.error(operation, {"TableName": "orders"})[0] == "ResourceNotFoundException"
    service.table()
    assert service.error(operation, {"TableName": "orders"}) == (
        "ResourceNotFoundException",
        "Global table with name: 'orders' does not exist.",
    )


def test_settings_are_read_back_in_every_region(regions):  # noqa: F811
    regions.update(EAST, ("Create", WEST))
    assert list(shown(regions)) == [EAST, WEST]
    assert shown(regions)[EAST]["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == OFF
    on_demand = regions.error(EAST, "UpdateTableReplicaAutoScaling", update(settings()))[1]
    assert "Replicas 'US-EAST-1', 'US-WEST-2' BillingMode is PayPerRequest." in on_demand
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    regions.call(EAST, "UpdateTable", {
        "TableName": "orders", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units,
    })  # fmt: skip
    answer = regions.call(WEST, "UpdateTableReplicaAutoScaling", update(settings(), west=settings(2, 20)))
    before = answer["TableAutoScalingDescription"]["Replicas"][0]
    assert before["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == OFF
    for region in (EAST, WEST):
        east, west = shown(regions, region).values()
        write = west["ReplicaProvisionedWriteCapacityAutoScalingSettings"]
        assert write == east["ReplicaProvisionedWriteCapacityAutoScalingSettings"]
        assert (write["MinimumUnits"], write["MaximumUnits"]) == (1, 10)
        assert "AutoScalingDisabled" not in write
        [policy] = write["ScalingPolicies"]
        assert policy["PolicyName"] == "DynamoDBWriteCapacityUtilization:table/orders"
        assert west["ReplicaProvisionedReadCapacityAutoScalingSettings"]["MaximumUnits"] == 20
        assert east["ReplicaProvisionedReadCapacityAutoScalingSettings"] == OFF
    regions.call(EAST, "UpdateTableReplicaAutoScaling", update({"AutoScalingDisabled": True}))
    assert shown(regions)[WEST]["ReplicaProvisionedWriteCapacityAutoScalingSettings"] == OFF


def test_invalid_auto_scaling_settings_are_refused(regions):  # noqa: F811
    regions.update(EAST, ("Create", WEST))

    def refused(given):
        return regions.error(EAST, "UpdateTableReplicaAutoScaling", given)[1]

    assert (
        refused({"TableName": "orders"}) == f"{HEAD} because at least one update parameter must be specified."
    )
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    regions.call(EAST, "UpdateTable", {
        "TableName": "orders", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units,
    })  # fmt: skip
    wanted = settings()
    del wanted["MaximumUnits"]
    assert refused(update(wanted)) == (
        f"{HEAD}: Parameters 'MaximumUnits' are required unless auto scaling is being disabled."
    )
    assert "Maximum capacity cannot be less than minimum capacity" in refused(update(settings(11, 10)))
    for target, is_fine in ((9.9, False), (10.0, True), (90.0, True), (90.1, False)):
        regions.call(EAST, "UpdateTableReplicaAutoScaling", update(settings(target=target)))
        assert (regions.service.last.status == 200) is is_fine
    twice = {"TableName": "orders", "ReplicaUpdates": [update(west=settings())["ReplicaUpdates"][0]] * 2}
    assert "were specified more than once" in refused(twice)
    index = {"IndexName": "nobody", "ProvisionedWriteCapacityAutoScalingUpdate": settings()}
    assert "do not exist" in refused({"TableName": "orders", "GlobalSecondaryIndexUpdates": [index]})

"""Findings of table-replicas.md, but for auto scaling (test_measured_auto_scaling.py), and TABLE-306.

A replica of a table without items is ACTIVE at once here, one of a table with items when background work has brought
them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.features.global_tables.test_replicas import (
    EAST,
    SOUTH,
    WEST,
    Regions,
    changes,
    put,
)
from tests.adapters.dynamodb.measured.conftest import with_index
from tests.adapters.dynamodb.measured.test_policies import policy

NAME = {"TableName": "orders"}
IN_USE = ("ResourceInUseException", "The resource which you are attempting to change is in use.")
INVALID = "One or more parameter values were invalid: "
THERE = (
    "Failed to create a the new replica of table with name: \u2018orders\u2019 because one or more replicas already existed "
    "as tables."
)
NOT_PART = (
    "Update global table operation failed because one or more replicas were not part of the global table. Please retry the "
    "request without these replicas: [{}]."
)
LOCAL = "Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or UpdateTable as required."
NO_ACTION = "There are no actions specified in the Replica Update Action of the request."
SOURCE = (
    "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to the table in the last "
    "24 hours."
)
TTL = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ttl"}}
RECOVERY = {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


@pytest.fixture
def regions(separate) -> Regions:
    return Regions(separate)


@pytest.fixture
def group(regions) -> Regions:
    """`orders` in EAST, and a replica in WEST."""
    regions.update(EAST, ("Create", WEST))
    return regions


def asked(regions: Regions, region: str, operation: str, given: dict[str, Any] | None = None) -> Any:
    answer = regions.call(region, operation, {**NAME, **(given or {})})
    assert regions.service.last.status == 200, answer
    return answer


def override(regions: Regions, **more: Any) -> dict[str, Any]:
    """Return the only replica as EAST shows it after an Update action."""
    asked(regions, EAST, "UpdateTable", {"ReplicaUpdates": [{"Update": {"RegionName": WEST, **more}}]})
    [shown] = regions.described(EAST)["Replicas"]
    return shown


def create(regions: Regions, region: str = WEST, **more: Any) -> dict[str, Any]:
    return {"ReplicaUpdates": [{"Create": {"RegionName": region, **more}}]}


def tagging(regions: Regions, region: str) -> tuple[str, dict[str, Any]]:
    arn = f"arn:aws:dynamodb:{region}:000000000000:table/orders"
    return "TagResource", {"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]}


def test_a_replica_is_added(regions):
    """TABLE-226, TABLE-221: the answer shows no replica yet, and a stream."""
    answer = regions.update(EAST, ("Create", WEST))["TableDescription"]
    assert (answer["TableStatus"], answer["GlobalTableVersion"], answer["Replicas"]) == (
        "UPDATING",
        "2019.11.21",
        [],
    )
    assert answer["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    east, west = regions.described(EAST), regions.described(WEST)
    [replica] = east["Replicas"]
    assert (replica["ReplicaStatus"], "ReplicaStatusPercentProgress" in replica) == ("ACTIVE", False)
    assert west["TableStatus"] == "ACTIVE"
    assert west["StreamSpecification"] == answer["StreamSpecification"]
    assert west["LatestStreamArn"] != east["LatestStreamArn"]
    regions.update(EAST, ("Delete", WEST))
    assert regions.described(EAST)["StreamSpecification"] == answer["StreamSpecification"]


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"])
def test_a_replica_has_the_kind_of_stream(regions, view):
    """TABLE-305"""
    stream = {"StreamEnabled": True, "StreamViewType": view}
    asked(regions, EAST, "UpdateTable", {"StreamSpecification": stream})
    regions.update(EAST, ("Create", WEST))
    for region in (EAST, WEST):
        assert regions.described(region)["StreamSpecification"] == stream


def test_a_stream_that_is_off_is_switched_on(regions):
    """TABLE-305"""
    asked(
        regions,
        EAST,
        "UpdateTable",
        {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}},
    )
    asked(regions, EAST, "UpdateTable", {"StreamSpecification": {"StreamEnabled": False}})
    old = regions.described(EAST)["LatestStreamLabel"]
    regions.service.clock.ms += 1_000
    answer = regions.update(EAST, ("Create", WEST))["TableDescription"]
    assert answer["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert answer["LatestStreamLabel"] != old


def test_the_stream_is_fixed_while_there_are_replicas(group):
    """TABLE-222"""
    off = {"StreamSpecification": {"StreamEnabled": False}}
    disabling = f"{INVALID}Disabling Stream is not allowed for a Global Table replica."
    enabled = "Table already has an enabled stream: TableName: orders"
    for region in (EAST, WEST):
        assert group.error(region, "UpdateTable", {**NAME, **off}) == ("ValidationException", disabling)
    for view in ("KEYS_ONLY", "NEW_AND_OLD_IMAGES"):
        given = {**NAME, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": view}}
        assert group.error(EAST, "UpdateTable", given) == ("ValidationException", enabled)
    group.update(EAST, ("Delete", WEST))
    asked(group, EAST, "UpdateTable", off)


def test_most_changes_are_refused_while_a_replica_is_creating(regions):
    """TABLE-227, TABLE-306: in the region that has the items"""
    put(regions, EAST, pk="a")
    regions.update(EAST, ("Create", WEST))
    assert regions.described(EAST)["Replicas"][0]["ReplicaStatus"] == "CREATING"
    for given in (
        changes(("Create", SOUTH)),
        changes(("Delete", WEST)),
        changes(ReplicaUpdates=[{"Update": {"RegionName": WEST, "TableClassOverride": "STANDARD"}}]),
        changes(DeletionProtectionEnabled=True),
        changes(TableClass="STANDARD_INFREQUENT_ACCESS"),
    ):
        assert regions.error(EAST, "UpdateTable", given) == IN_USE, given
    text = "Global table with name: orders already exists with replicas in regions: us-east-1, us-west-2."
    assert regions.error(EAST, "UpdateTable", changes(("Create", WEST))) == ("ResourceInUseException", text)
    disabling = f"{INVALID}Disabling Stream is not allowed for a Global Table replica."
    assert regions.refused(EAST, StreamSpecification={"StreamEnabled": False}) == disabling
    adding = (
        "Create/Update/Delete of replica is not allowed while the replica is being added to table with name: "
        f"\u2018orders\u2019 in region: \u2018{WEST}\u2019."
    )
    assert regions.error(EAST, "UpdateTimeToLive", {**NAME, **TTL}) == ("ValidationException", adding)
    arn = regions.described(EAST)["TableArn"]
    for operation, given in (
        tagging(regions, EAST),
        ("UpdateContinuousBackups", RECOVERY),
        ("PutResourcePolicy", {"ResourceArn": arn, "Policy": policy(Resource=arn)}),
        ("UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"}),
        ("CreateBackup", {"BackupName": "backup"}),
        ("DescribeTableReplicaAutoScaling", {}),
    ):
        regions.call(EAST, operation, given if "ResourceArn" in given else {**NAME, **given})
        assert regions.service.last.status == 200, operation
    put(regions, EAST, pk="b")
    assert {item["pk"]["S"] for item in regions.items(WEST)} == {"a", "b"}
    shown = regions.call(WEST, "ListTagsOfResource", {"ResourceArn": arn.replace(EAST, WEST)})
    assert shown["Tags"] == []


def test_a_replica_that_is_creating_is_only_described(regions):
    """TABLE-298: in its own region"""
    put(regions, EAST, pk="a")
    regions.update(EAST, ("Create", WEST))
    west = regions.described(WEST)
    assert (west["TableStatus"], west["GlobalTableVersion"]) == ("CREATING", "2019.11.21")
    assert [(each["RegionName"], each["ReplicaStatus"]) for each in west["Replicas"]] == [(EAST, "ACTIVE")]
    assert west["TableId"] != regions.described(EAST)["TableId"]
    missing = "ResourceNotFoundException"
    for operation, given in (
        ("DescribeTimeToLive", NAME),
        ("ListTagsOfResource", {"ResourceArn": west["TableArn"]}),
        ("UpdateTable", {**NAME, "DeletionProtectionEnabled": True}),
        tagging(regions, WEST),
        ("UpdateTimeToLive", {**NAME, **TTL}),
        ("PutItem", {**NAME, "Item": {"pk": {"S": "b"}}}),
        ("GetItem", {**NAME, "Key": {"pk": {"S": "a"}}}),
    ):
        assert regions.error(WEST, operation, given)[0] == missing, operation
    for operation, given in (
        ("DescribeContinuousBackups", NAME),
        ("UpdateContinuousBackups", {**NAME, **RECOVERY}),
    ):
        found = regions.error(WEST, operation, given)
        assert found == ("TableNotFoundException", "Table not found: orders")
    asked(regions, WEST, "DescribeTableReplicaAutoScaling")
    adding = (
        "Create/Update/Delete of replica is not allowed while the replica is being added to table with name:"
    )
    assert regions.refused(WEST, ("Create", SOUTH)).startswith(adding)
    assert regions.refused(WEST, ("Delete", EAST)) == SOURCE
    text = "Attempt to change a resource which is still in use: Table: orders is being used."
    assert regions.error(WEST, "DeleteTable", NAME) == ("ResourceInUseException", text)


def test_a_table_of_that_name_is_no_replica(regions):
    """TABLE-225, TABLE-203, TABLE-223: an independent table, and an existing replica"""
    regions.update(EAST, ("Create", WEST))
    assert regions.refused(EAST, ("Create", WEST)) == THERE
    regions.update(EAST, ("Delete", WEST))
    made = with_index()
    regions.call(WEST, "CreateTable", {
        **NAME, "BillingMode": "PAY_PER_REQUEST", "AttributeDefinitions": made["AttributeDefinitions"][:1],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    })  # fmt: skip
    assert regions.refused(EAST, ("Create", WEST)) == THERE


def test_actions_that_are_refused(group):
    """TABLE-203, TABLE-223, TABLE-294, TABLE-307"""
    for action in ("Create", "Delete"):
        assert group.refused(EAST, (action, EAST)) == LOCAL
        for region in ("us-fake-1", "EU-WEST-1"):
            text = group.refused(EAST, (action, region))
            head = f"Region {region} is not supported. The latest version of global tables are only supported in the following"
            assert text.startswith(f"{head} regions: [ap-south-2, ap-south-1, eu-south-1, eu-south-2, me-ce")
    code, text = group.error(EAST, "UpdateTable", changes(("Create", "")))
    assert code == "AccessDeniedException"
    resource = "arn:aws:dynamodb::000000000000:table/orders"
    assert f"is not authorized to perform: dynamodb:Scan on resource: {resource}" in text
    for updates in ([{}], [{"Update": {"RegionName": WEST}}]):
        assert group.refused(EAST, ReplicaUpdates=updates) == NO_ACTION
    both = {"Create": {"RegionName": SOUTH}, "Delete": {"RegionName": SOUTH}}
    text = "Update table operation with more than one type of replica actions not allowed."
    assert group.refused(EAST, ReplicaUpdates=[both]) == text
    for action, more in (("Delete", {}), ("Update", {"TableClassOverride": "STANDARD"})):
        updates = [{action: {"RegionName": "ca-central-1", **more}}]
        assert group.refused(EAST, ReplicaUpdates=updates) == NOT_PART.format("ca-central-1")


@pytest.mark.parametrize(
    "other",
    [
        {"StreamSpecification": {"StreamEnabled": False}},
        {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS},
        {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "gsi1"}}]},
        {"SSESpecification": {"Enabled": True}},
        {"TableClass": "STANDARD"},
        {"DeletionProtectionEnabled": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("actions", [[("Create", WEST)], [("Create", WEST), ("Create", SOUTH)]])
def test_replicas_are_changed_by_themselves(regions, other, actions):
    """TABLE-224, TABLE-199"""
    text = f"{INVALID}Replica modification must be the only operation in the request"
    assert regions.refused(EAST, *actions, **other) == text


def test_a_request_has_one_action_on_a_replica(regions):
    """TABLE-265, TABLE-200: from any region. Each region lists the others in the order of their creation"""
    text = "Update table operation with more than one create or delete replica actions not allowed"
    assert regions.refused(EAST, ("Create", WEST), ("Create", SOUTH)) == text
    regions.update(EAST, ("Create", WEST), ("Create", WEST))
    regions.update(WEST, ("Create", SOUTH))
    orders = {EAST: [WEST, SOUTH], WEST: [EAST, SOUTH], SOUTH: [EAST, WEST]}
    for region, order in orders.items():
        shown = regions.described(region)
        assert [each["RegionName"] for each in shown["Replicas"]] == order, region
        assert shown["GlobalTableVersion"] == "2019.11.21"
    assert regions.refused(EAST, ("Delete", WEST), ("Delete", SOUTH)) == text


def test_overrides_in_a_create_are_not_checked(regions):
    """TABLE-307, TABLE-223: an index that is not there, and throughput of a table on demand"""
    overridden = {"ReadCapacityUnits": 10}
    index = [{"IndexName": "nope", "ProvisionedThroughputOverride": overridden}]
    given = create(regions, GlobalSecondaryIndexes=index, ProvisionedThroughputOverride=overridden)
    asked(regions, EAST, "UpdateTable", given)
    [replica] = regions.described(EAST)["Replicas"]
    assert not {"ProvisionedThroughputOverride", "GlobalSecondaryIndexes"} & set(replica)
    update = [{"Update": {"RegionName": WEST, "ProvisionedThroughputOverride": overridden}}]
    text = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
    assert regions.refused(EAST, ReplicaUpdates=update) == text


def provision(regions: Regions, **more: Any) -> None:
    asked(
        regions, EAST, "UpdateTable", {"BillingMode": "PROVISIONED", "ProvisionedThroughput": UNITS, **more}
    )


def units_of(regions: Regions, region: str) -> tuple[int, int]:
    shown = regions.described(region)["ProvisionedThroughput"]
    return shown["ReadCapacityUnits"], shown["WriteCapacityUnits"]


def test_a_replica_inherits_the_throughput_of_the_table(group):
    """TABLE-250, TABLE-251: what is inherited is absent, and the table's own value is inherited"""
    provision(group)
    assert "ProvisionedThroughputOverride" not in group.described(EAST)["Replicas"][0]
    assert units_of(group, WEST) == (5, 5)
    refused = [{"Update": {"RegionName": WEST, "OnDemandThroughputOverride": {"MaxReadRequestUnits": 100}}}]
    text = "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
    assert group.refused(EAST, ReplicaUpdates=refused) == text
    for _ in range(2):
        shown = override(group, ProvisionedThroughputOverride={"ReadCapacityUnits": 10})
        assert shown["ProvisionedThroughputOverride"] == {"ReadCapacityUnits": 10}
        assert (units_of(group, EAST), units_of(group, WEST)) == ((5, 5), (10, 5))
    shown = override(group, ProvisionedThroughputOverride={"ReadCapacityUnits": 5})
    assert "ProvisionedThroughputOverride" not in shown
    assert units_of(group, WEST) == (5, 5)
    for region, wanted in ((EAST, (5, 10)), (WEST, (7, 10)), (WEST, (7, 20))):
        given = {"ProvisionedThroughput": {"ReadCapacityUnits": wanted[0], "WriteCapacityUnits": wanted[1]}}
        asked(group, region, "UpdateTable", given)
        assert units_of(group, EAST) == units_of(group, WEST) == wanted
        assert "ProvisionedThroughputOverride" not in group.described(EAST)["Replicas"][0]
    asked(group, EAST, "UpdateTable", {"BillingMode": "PAY_PER_REQUEST"})
    assert group.described(WEST)["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_throughput_of_indexes_of_a_replica(regions):
    """TABLE-252"""
    regions.call(EAST, "DeleteTable", NAME)
    made = with_index()
    names = ("gsi1", "gsi2")
    indexes = [{**made["GlobalSecondaryIndexes"][0], "IndexName": name} for name in names]
    regions.service.table(**{**made, "GlobalSecondaryIndexes": indexes})
    regions.update(EAST, ("Create", WEST))
    updates = [{"Update": {"IndexName": name, "ProvisionedThroughput": UNITS}} for name in names]
    provision(regions, GlobalSecondaryIndexUpdates=updates)

    def overridden(**units: int) -> dict[str, Any]:
        given = [
            {"IndexName": name, "ProvisionedThroughputOverride": {"ReadCapacityUnits": read}}
            for name, read in units.items()
        ]
        shown = override(regions, GlobalSecondaryIndexes=given)["GlobalSecondaryIndexes"]
        assert all("WarmThroughput" in each for each in shown)
        return {
            each["IndexName"]: each["ProvisionedThroughputOverride"]["ReadCapacityUnits"]
            for each in shown
            if "ProvisionedThroughputOverride" in each
        }

    assert overridden(gsi1=6, gsi2=7) == {"gsi1": 6, "gsi2": 7}
    west = {
        each["IndexName"]: each["ProvisionedThroughput"]
        for each in regions.described(WEST)["GlobalSecondaryIndexes"]
    }
    assert [(west[name]["ReadCapacityUnits"], west[name]["WriteCapacityUnits"]) for name in names] == [
        (6, 5),
        (7, 5),
    ]
    assert overridden(gsi1=8) == {"gsi1": 8, "gsi2": 7}
    assert overridden(gsi1=5) == {"gsi2": 7}
    update = [{"Update": {"RegionName": WEST, "GlobalSecondaryIndexes": [{"IndexName": "gsi1"}]}}]
    assert regions.refused(EAST, ReplicaUpdates=update) == NO_ACTION


def test_the_table_class_of_a_replica(group):
    """TABLE-294: the answer does not show it yet. An explicit value is shown even if it is STANDARD"""
    infrequent = "STANDARD_INFREQUENT_ACCESS"
    assert "ReplicaTableClassSummary" not in override(group, TableClassOverride="STANDARD")
    for _ in range(2):
        assert (
            override(group, TableClassOverride=infrequent)["ReplicaTableClassSummary"]["TableClass"]
            == infrequent
        )
    assert group.described(WEST)["TableClassSummary"]["TableClass"] == infrequent
    assert "TableClassSummary" not in group.described(EAST)
    assert "ReplicaTableClassSummary" not in group.described(WEST)["Replicas"][0]
    asked(group, WEST, "UpdateTable", {"TableClass": "STANDARD"})
    summary = group.described(EAST)["Replicas"][0]["ReplicaTableClassSummary"]
    assert (summary["TableClass"], "LastUpdateDateTime" in summary) == ("STANDARD", True)


def test_a_replica_on_demand_can_have_its_own_maximum(group):
    """TABLE-422"""
    maximum = {"MaxReadRequestUnits": 100}
    assert override(group, OnDemandThroughputOverride=maximum)["OnDemandThroughputOverride"] == maximum
    assert group.described(WEST)["OnDemandThroughput"]["MaxReadRequestUnits"] == 100
    assert "OnDemandThroughput" not in group.described(EAST)
    shown = override(group, OnDemandThroughputOverride={"MaxReadRequestUnits": -1})
    assert "OnDemandThroughputOverride" not in shown


CUSTOMERS = f"arn:aws:kms:{EAST}:000000000000:key/1111"


def encrypt(regions: Regions, region: str = EAST, **key: str) -> None:
    specification = {"Enabled": True, "SSEType": "KMS", **key}
    asked(regions, region, "UpdateTable", {"SSESpecification": specification})


def test_keys_of_replicas_of_a_table_with_a_customers_key(regions):
    """TABLE-309, TABLE-313: a bare id is one of the replica's region, and read back as an ARN"""
    encrypt(regions, KMSMasterKeyId=CUSTOMERS)
    missing = f"{INVALID}KMSMasterKeyId must be specified for each replica."
    assert regions.refused(EAST, ("Create", WEST)) == missing
    mixed = f"{INVALID}All replica keys must either be Customer Managed CMK or AWS Managed CMK."
    given = create(regions, KMSMasterKeyId="alias/aws/dynamodb")
    assert regions.refused(EAST, **given) == mixed
    text = regions.refused(EAST, **create(regions, KMSMasterKeyId=CUSTOMERS))
    head = f"KMS validation error for region {WEST}: com.amazonaws.services.kms.model.NotFoundException: Invalid arn {EAST}"
    assert text.startswith(head)
    answer = asked(regions, EAST, "UpdateTable", create(regions, KMSMasterKeyId="2222"))
    assert answer["TableDescription"]["Replicas"] == []
    west = f"arn:aws:kms:{WEST}:000000000000:key/2222"
    assert regions.described(EAST)["Replicas"][0]["KMSMasterKeyId"] == west
    assert regions.described(WEST)["SSEDescription"]["KMSMasterKeyArn"] == west
    assert regions.described(WEST)["Replicas"][0]["KMSMasterKeyId"] == CUSTOMERS
    for key in (west, "2222", "alias/aws/dynamodb"):
        update = [{"Update": {"RegionName": WEST, "KMSMasterKeyId": key}}]
        assert regions.refused(EAST, ReplicaUpdates=update) == missing


def test_keys_of_replicas_of_a_table_without_a_key(group):
    """TABLE-295, TABLE-309: the kind of encryption is the group's, its key the region's"""
    update = [{"Update": {"RegionName": WEST, "KMSMasterKeyId": "alias/aws/dynamodb"}}]
    missing = f"{INVALID}KMSMasterKeyId must be specified for each replica."
    assert group.refused(EAST, ReplicaUpdates=update) == missing
    encrypt(group)
    keys = {region: group.described(region)["SSEDescription"]["KMSMasterKeyArn"] for region in (EAST, WEST)}
    assert all(key.startswith(f"arn:aws:kms:{region}:") for region, key in keys.items())
    assert group.described(EAST)["Replicas"][0]["KMSMasterKeyId"] == keys[WEST]
    assert group.described(WEST)["Replicas"][0]["KMSMasterKeyId"] == keys[EAST]


def test_indexes_are_of_the_group(group):
    """TABLE-296: added and removed from any region, and listed in replicas by name"""
    put(group, EAST, pk="a", a="x")
    made = with_index()
    for region, name in ((EAST, "gsi1"), (WEST, "gsi2")):
        index = {**made["GlobalSecondaryIndexes"][0], "IndexName": name}
        given = {
            "AttributeDefinitions": made["AttributeDefinitions"],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        }
        asked(group, region, "UpdateTable", given)
        assert group.error(EAST, "UpdateTable", changes(("Create", SOUTH))) == IN_USE
        group.settle()
    for region in (EAST, WEST):
        shown = group.described(region)
        assert [each["IndexName"] for each in shown["GlobalSecondaryIndexes"]] == ["gsi1", "gsi2"]
        replica = shown["Replicas"][0]["GlobalSecondaryIndexes"]
        assert [set(each) for each in replica] == [{"IndexName", "WarmThroughput"}] * 2
    asked(group, EAST, "UpdateTable", {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "gsi1"}}]})
    for region in (EAST, WEST):
        assert [each["IndexName"] for each in group.described(region)["GlobalSecondaryIndexes"]] == ["gsi2"]


def test_settings_of_a_region_stay_there(group):
    """TABLE-230, TABLE-297: all but the time to live"""
    arn = group.described(EAST)["TableArn"]
    group.call(EAST, *tagging(group, EAST))
    asked(group, EAST, "UpdateContinuousBackups", RECOVERY)
    group.call(EAST, "PutResourcePolicy", {"ResourceArn": arn, "Policy": policy(Resource=arn)})
    asked(group, EAST, "UpdateContributorInsights", {"ContributorInsightsAction": "ENABLE"})
    asked(group, EAST, "UpdateTable", {"DeletionProtectionEnabled": True})
    asked(group, WEST, "UpdateTimeToLive", TTL)
    west = group.described(WEST)
    assert not west["DeletionProtectionEnabled"]
    assert group.call(WEST, "ListTagsOfResource", {"ResourceArn": west["TableArn"]})["Tags"] == []
    recovery = asked(group, WEST, "DescribeContinuousBackups")["ContinuousBackupsDescription"]
    assert recovery["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "DISABLED"
    code, _ = group.error(WEST, "GetResourcePolicy", {"ResourceArn": west["TableArn"]})
    assert code == "PolicyNotFoundException"
    assert asked(group, WEST, "DescribeContributorInsights")["ContributorInsightsStatus"] == "DISABLED"
    assert asked(group, EAST, "DescribeTimeToLive")["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    group.update(EAST, ("Create", SOUTH))
    assert asked(group, SOUTH, "DescribeTimeToLive")["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"


def test_a_replica_is_removed(group):
    """TABLE-204, TABLE-228, TABLE-308: the answer still shows it. It can be added again after its removal"""
    answer = group.update(EAST, ("Delete", WEST))["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    assert [(each["RegionName"], each["ReplicaStatus"]) for each in answer["Replicas"]] == [(WEST, "ACTIVE")]
    east = group.described(EAST)
    assert not {"Replicas", "GlobalTableVersion"} & set(east)
    assert east["StreamSpecification"]["StreamEnabled"]
    assert group.error(WEST, "DescribeTable", NAME)[0] == "ResourceNotFoundException"
    asked(group, EAST, "UpdateTable", create(group))


def test_a_source_stays_until_what_came_of_it_is_gone(group):
    """TABLE-266, TABLE-262, TABLE-267"""
    group.update(WEST, ("Create", SOUTH))
    for region in (EAST, WEST):
        assert group.error(region, "DeleteTable", NAME) == ("ValidationException", SOURCE)
    assert group.refused(EAST, ("Delete", WEST)) == SOURCE
    group.update(EAST, ("Delete", SOUTH))
    assert group.error(EAST, "DeleteTable", NAME) == ("ValidationException", SOURCE)
    group.update(EAST, ("Delete", WEST))
    asked(group, EAST, "DeleteTable")


def test_a_protected_replica_stays(group):
    """TABLE-297"""
    asked(group, WEST, "UpdateTable", {"DeletionProtectionEnabled": True})
    assert not group.described(EAST)["DeletionProtectionEnabled"]
    text = (
        "Cannot delete table orders in region us-west-2 because it has deletion protection enabled. Disable deletion "
        "protection first."
    )
    assert group.refused(EAST, ("Delete", WEST)) == text
    assert group.error(WEST, "DeleteTable", NAME) == ("ValidationException", text)
    asked(group, WEST, "UpdateTable", {"DeletionProtectionEnabled": False})
    answer = asked(group, WEST, "DeleteTable")["TableDescription"]
    assert answer["TableStatus"] == "DELETING"
    assert [(each["RegionName"], each["ReplicaStatus"]) for each in answer["Replicas"]] == [(EAST, "ACTIVE")]
    assert "Replicas" not in group.described(EAST)

"""Global tables of version 2019.11.21. Texts and what is shown when: ack-api-quirks (live service, October 2026)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.gateway.features.global_tables.replica_commands import AddReplicas, RemoveReplicas
from tablegate.gateway.model.commands.table_commands import AlterTable, AlterTables, FindTable
from tests.adapters.dynamodb.client import DynamoDBService, signed
from tests.adapters.dynamodb.tables.test_tables import with_index
from tests.support.clock import Clock

EAST, WEST, SOUTH = "us-east-1", "us-west-2", "us-east-2"


class Regions:
    """One service in several regions."""

    def __init__(self, service: DynamoDBService) -> None:
        self.service = service

    def call(self, region: str, operation: str, given: Any = None, **more: Any) -> Any:
        return self.service.call(operation, given, **signed(region=region), **more)

    def error(self, region: str, operation: str, given: Any) -> tuple[str, str]:
        return self.service.error(operation, given, **signed(region=region))

    def update(self, region: str, *actions: tuple[str, str], **more: Any) -> Any:
        return self.call(region, "UpdateTable", changes(*actions, **more))

    def refused(self, region: str, *actions: tuple[str, str], **more: Any) -> str:
        code, text = self.error(region, "UpdateTable", changes(*actions, **more))
        assert code == "ValidationException", (code, text)
        return text

    def described(self, region: str) -> dict[str, Any]:
        return self.call(region, "DescribeTable", {"TableName": "orders"})["Table"]

    def settle(self) -> None:
        while self.service.gateway.engine.background.next_batch():
            pass

    def items(self, region: str) -> list[Any]:
        self.settle()
        return self.call(region, "Scan", {"TableName": "orders"})["Items"]


def changes(*actions: tuple[str, str], **more: Any) -> dict[str, Any]:
    updates = [{action: {"RegionName": region}} for action, region in actions]
    return {"TableName": "orders", **({"ReplicaUpdates": updates} if updates else {}), **more}


@pytest.fixture
def regions(clock: Clock) -> Iterator[Regions]:
    with DynamoDBService.opened(clock, namespaces="separate") as service:
        made = Regions(service)
        service.table()
        yield made


def test_a_new_table_cannot_have_the_default_replication_mode(service):
    given = {
        "TableName": "orders",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalTableSettingsReplicationMode": "ENABLED_WITH_OVERRIDES",
    }
    code, text = service.error("CreateTable", given)
    assert code == "ValidationException"
    assert "Only ENABLED and DISABLED settings replication" in text
    assert service.error("DescribeTable", {"TableName": "orders"})[0] == "ResourceNotFoundException"


def put(regions: Regions, region: str, **item: str) -> None:
    wire = {name: {"S": value} for name, value in item.items()}
    regions.call(region, "PutItem", {"TableName": "orders", "Item": wire})
    assert regions.service.last.status == 200


def test_a_table_of_one_region_lists_no_replicas(regions):
    shown = regions.described(EAST)
    for name in (
        "Replicas",
        "GlobalTableVersion",
        "GlobalTableSettingsReplicationMode",
        "MultiRegionConsistency",
    ):
        assert name not in shown


def test_a_new_replica_receives_all_items(regions):
    put(regions, EAST, pk="before")
    answer = regions.update(EAST, ("Create", WEST))["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    assert not answer["Replicas"]
    assert answer["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    regions.settle()
    east, west = regions.described(EAST), regions.described(WEST)
    assert east["GlobalTableVersion"] == "2019.11.21"
    assert east["GlobalTableSettingsReplicationMode"] == "ENABLED_WITH_OVERRIDES"
    assert "MultiRegionConsistency" not in east
    assert east["Replicas"] == [
        {
            "RegionName": WEST,
            "ReplicaStatus": "ACTIVE",
            "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
            "GlobalTableSettingsReplicationMode": "ENABLED_WITH_OVERRIDES",
        }
    ]
    assert [each["RegionName"] for each in west["Replicas"]] == [EAST]
    assert west["TableStatus"] == "ACTIVE"
    assert west["TableArn"].split(":")[3] == WEST
    assert west["TableId"] != east["TableId"]
    put(regions, EAST, pk="east")
    put(regions, WEST, pk="west")
    for region in (EAST, WEST):
        assert {item["pk"]["S"] for item in regions.items(region)} == {"before", "east", "west"}
    regions.call(WEST, "DeleteItem", {"TableName": "orders", "Key": {"pk": {"S": "before"}}})
    assert {item["pk"]["S"] for item in regions.items(EAST)} == {"east", "west"}


def test_a_replica_with_rows_to_come_is_creating(regions):
    put(regions, EAST, pk="a")
    regions.update(EAST, ("Create", WEST))
    assert regions.described(WEST)["TableStatus"] == "CREATING"
    assert regions.described(EAST)["Replicas"][0]["ReplicaStatus"] == "CREATING"
    code, text = regions.error(EAST, "UpdateTable", changes(("Create", SOUTH)))
    assert (code, text) == (
        "ResourceInUseException",
        "The resource which you are attempting to change is in use.",
    )
    code, text = regions.error(EAST, "UpdateTable", changes(("Create", WEST)))
    assert (
        text
        == "Global table with name: orders already exists with replicas in regions: us-east-1, us-west-2."
    )
    regions.settle()
    assert regions.described(EAST)["Replicas"][0]["ReplicaStatus"] == "ACTIVE"


def test_each_region_has_a_stream_of_its_own(regions):
    regions.update(EAST, ("Create", WEST))
    put(regions, EAST, pk="a")
    regions.settle()
    prefix = "DynamoDBStreams_20120810"
    for region in (EAST, WEST):
        [stream] = regions.call(region, "ListStreams", {}, prefix=prefix)["Streams"]
        assert stream["StreamArn"].split(":")[3] == region
        described = regions.call(region, "DescribeStream", {"StreamArn": stream["StreamArn"]}, prefix=prefix)
        [shard] = described["StreamDescription"]["Shards"]
        place = {
            "StreamArn": stream["StreamArn"],
            "ShardId": shard["ShardId"],
            "ShardIteratorType": "TRIM_HORIZON",
        }
        iterator = regions.call(region, "GetShardIterator", place, prefix=prefix)["ShardIterator"]
        records = regions.call(region, "GetRecords", {"ShardIterator": iterator}, prefix=prefix)["Records"]
        assert [record["dynamodb"]["NewImage"] for record in records] == [{"pk": {"S": "a"}}]
        assert "userIdentity" not in records[0]


def test_the_time_to_live_is_of_the_whole_group(regions):
    regions.update(EAST, ("Create", WEST))
    spec = {"Enabled": True, "AttributeName": "until"}
    regions.call(EAST, "UpdateTimeToLive", {"TableName": "orders", "TimeToLiveSpecification": spec})
    described = regions.call(WEST, "DescribeTimeToLive", {"TableName": "orders"})
    assert described["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"


@pytest.mark.parametrize(
    ("actions", "more", "text"),
    [
        ([("Create", "us-mars-1")], {}, "Region us-mars-1 is not supported. The latest version"),
        ([("Create", EAST)], {}, "Cannot add or delete the local region through ReplicaUpdates."),
        ([("Delete", WEST)], {}, "retry the request without these replicas: [us-west-2]."),
        (
            [("Update", WEST)],
            {},
            "There are no actions specified in the Replica Update Action of the request.",
        ),
        (
            [("Create", WEST), ("Create", SOUTH)],
            {},
            "with more than one create or delete replica actions not allowed",
        ),
        (
            [("Create", WEST)],
            {"DeletionProtectionEnabled": True},
            "One or more parameter values were invalid: Replica modification must be the only operation in the request",
        ),
    ],
)
def test_invalid_changes_of_replicas_are_refused(regions, actions, more, text):
    assert text in regions.refused(EAST, *actions, **more)


def test_two_actions_in_one_entry(regions):
    updates = [{"Create": {"RegionName": WEST}, "Delete": {"RegionName": WEST}}]
    text = regions.refused(EAST, ReplicaUpdates=updates)
    assert text == "Update table operation with more than one type of replica actions not allowed."  # 223
    assert "no actions specified" in regions.refused(EAST, ReplicaUpdates=[{}])


def test_a_repeated_create_counts_once(regions):
    regions.update(EAST, ("Create", WEST), ("Create", WEST))
    assert len(regions.described(EAST)["Replicas"]) == 1


def test_an_existing_table_cannot_become_a_replica(regions):
    regions.service.call("CreateTable", {
        "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }, **signed(region=WEST))  # fmt: skip
    text = regions.refused(EAST, ("Create", WEST))
    assert text == (
        "Failed to create a the new replica of table with name: \u2018orders\u2019 because one or more replicas already existed "
        "as tables."
    )


def test_a_server_with_shared_namespaces_has_no_replicas(service):
    service.table()
    code, text = service.error("UpdateTable", changes(("Create", WEST)))
    assert code == "ValidationException"
    assert text.startswith(
        "Failed to access the region: \u2018us-west-2\u2019. User is missing the permissions since the region is"
    )  # ack-api-quirks 223
    assert "--namespaces" in text


def test_provisioned_tables_would_need_auto_scaling(regions):
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    regions.call(EAST, "UpdateTable", {
        "TableName": "orders", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units,
    })  # fmt: skip
    text = "Table write capacity should either be Pay-Per-Request or AutoScaled."
    assert regions.refused(EAST, ("Create", WEST)) == text


def test_a_replica_is_removed(regions):
    regions.update(EAST, ("Create", WEST))
    answer = regions.update(EAST, ("Delete", WEST))["TableDescription"]
    assert answer["TableStatus"] == "UPDATING"
    assert [each["ReplicaStatus"] for each in answer["Replicas"]] == ["ACTIVE"]
    shown = regions.described(EAST)
    assert "Replicas" not in shown and "GlobalTableVersion" not in shown
    assert shown["StreamSpecification"]["StreamEnabled"]
    assert regions.error(WEST, "DescribeTable", {"TableName": "orders"})[0] == "ResourceNotFoundException"
    regions.update(EAST, ("Create", WEST))
    assert [each["RegionName"] for each in regions.described(EAST)["Replicas"]] == [WEST]


def test_the_source_of_a_replica_stays_for_a_day(regions):
    regions.update(EAST, ("Create", WEST))
    sentence = "Replica cannot be deleted because it has acted as a source region for new replica(s)"
    assert sentence in regions.error(EAST, "DeleteTable", {"TableName": "orders"})[1]
    assert sentence in regions.refused(WEST, ("Delete", EAST))
    regions.service.clock.ms += 86_400_000
    regions.update(WEST, ("Delete", EAST))
    assert "Replicas" not in regions.described(WEST)


def test_a_replica_may_be_deleted_in_its_own_region(regions):
    regions.update(EAST, ("Create", WEST))
    regions.call(WEST, "DeleteTable", {"TableName": "orders"})
    assert regions.service.last.status == 200
    assert "Replicas" not in regions.described(EAST)


def test_a_protected_replica_stays(regions):
    regions.update(EAST, ("Create", WEST))
    regions.call(WEST, "UpdateTable", {"TableName": "orders", "DeletionProtectionEnabled": True})
    assert not regions.described(EAST)["DeletionProtectionEnabled"]
    assert regions.refused(EAST, ("Delete", WEST)) == (
        "Cannot delete table orders in region us-west-2 because it has deletion protection enabled. Disable deletion protection "
        "first."
    )


def test_the_stream_is_fixed_while_there_are_replicas(regions):
    regions.update(EAST, ("Create", WEST))
    off = {"TableName": "orders", "StreamSpecification": {"StreamEnabled": False}}
    assert regions.error(EAST, "UpdateTable", off)[1] == (
        "One or more parameter values were invalid: Disabling Stream is not allowed for a Global Table replica."
    )


def test_settings_of_the_group_are_the_same_everywhere(regions):
    regions.update(EAST, ("Create", WEST))
    regions.settle()
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "g")]
    [index] = with_index()["GlobalSecondaryIndexes"]
    given = {"TableName": "orders", "AttributeDefinitions": definitions}
    regions.call(WEST, "UpdateTable", {**given, "GlobalSecondaryIndexUpdates": [{"Create": index}]})
    regions.settle()
    for region in (EAST, WEST):
        assert [each["IndexName"] for each in regions.described(region)["GlobalSecondaryIndexes"]] == ["by-g"]
    regions.call(EAST, "TagResource", {
        "ResourceArn": regions.described(EAST)["TableArn"], "Tags": [{"Key": "a", "Value": "b"}],
    })  # fmt: skip
    west = regions.call(WEST, "ListTagsOfResource", {"ResourceArn": regions.described(WEST)["TableArn"]})
    assert west["Tags"] == []


WITH_INDEX = {
    "AttributeDefinitions": with_index()["AttributeDefinitions"],
    "GlobalSecondaryIndexUpdates": [{"Create": with_index()["GlobalSecondaryIndexes"][0]}],
}
EXPIRY = {"TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}}


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("UpdateTable", WITH_INDEX),
        ("UpdateTable", {"TableClass": "STANDARD_INFREQUENT_ACCESS"}),
        ("UpdateTable", {"SSESpecification": {"Enabled": True}}),
        ("UpdateTimeToLive", EXPIRY),
        ("UpdateTable", changes(("Create", SOUTH))),
        ("UpdateTable", changes(("Delete", WEST))),
    ],
)
def test_a_change_of_all_regions_is_made_at_once(regions, monkeypatch, operation, given, at):
    """If another change comes before its `at`-th transaction, the change begins again. No part of it is made twice."""
    regions.update(EAST, ("Create", WEST))
    regions.settle()
    credentials, engine = regions.service.gateway.credentials, regions.service.gateway.engine
    namespaces = [credentials.aws_namespace("anybody", "000000000000", region) for region in (EAST, WEST)]
    run, seen = engine.run, []

    def run_after_another_change(commands, *further, **options):
        if isinstance(commands[0], (AlterTable, AlterTables, AddReplicas, RemoveReplicas)):
            seen.append(commands)
            if len(seen) == at:
                for namespace in namespaces:
                    [table] = run([FindTable(namespace, "orders")])
                    run([AlterTable("test", table, properties={"test": {}}, instant=True)])
        return run(commands, *further, **options)

    monkeypatch.setattr(engine, "run", run_after_another_change)
    answer = regions.call(EAST, operation, {"TableName": "orders", **given})
    assert regions.service.last.status == 200, answer
    assert len(seen) == (2 if at == 1 else 1)


def test_overrides_of_a_replica(regions):
    regions.update(EAST, ("Create", WEST))

    def override(**more: Any) -> dict[str, Any]:
        entry = {"Update": {"RegionName": WEST, **more}}
        regions.call(EAST, "UpdateTable", {"TableName": "orders", "ReplicaUpdates": [entry]})
        assert regions.service.last.status == 200
        [shown] = regions.described(EAST)["Replicas"]
        return shown

    shown = override(OnDemandThroughputOverride={"MaxReadRequestUnits": 50})
    assert shown["OnDemandThroughputOverride"] == {"MaxReadRequestUnits": 50}
    shown = override(TableClassOverride="STANDARD_INFREQUENT_ACCESS")
    assert shown["ReplicaTableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert shown["OnDemandThroughputOverride"] == {"MaxReadRequestUnits": 50}
    shown = override(OnDemandThroughputOverride={"MaxReadRequestUnits": -1})
    assert "OnDemandThroughputOverride" not in shown
    units = {"ProvisionedThroughputOverride": {"ReadCapacityUnits": 5}}
    text = regions.refused(EAST, ReplicaUpdates=[{"Update": {"RegionName": WEST, **units}}])
    assert (
        text
        == "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
    )


def test_overrides_of_several_replicas_in_one_request(regions):
    for region in (WEST, SOUTH):
        regions.update(EAST, ("Create", region))
        regions.settle()
    wanted = {WEST: 50, SOUTH: 60}
    entries = [
        {"RegionName": region, "OnDemandThroughputOverride": {"MaxReadRequestUnits": units}}
        for region, units in wanted.items()
    ]
    entries.append({"RegionName": WEST, "TableClassOverride": "STANDARD_INFREQUENT_ACCESS"})
    regions.update(EAST, ReplicaUpdates=[{"Update": entry} for entry in entries])
    assert regions.service.last.status == 200
    shown = {replica["RegionName"]: replica for replica in regions.described(EAST)["Replicas"]}
    assert {
        region: shown[region]["OnDemandThroughputOverride"]["MaxReadRequestUnits"] for region in wanted
    } == wanted
    assert shown[WEST]["ReplicaTableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert "ReplicaTableClassSummary" not in shown[SOUTH]


def test_keys_of_customers_are_named_for_each_replica(regions):
    key = "arn:aws:kms:us-east-1:000000000000:key/1111"
    sse = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    regions.call(EAST, "UpdateTable", {"TableName": "orders", "SSESpecification": sse})
    head = "One or more parameter values were invalid: "
    assert (
        regions.refused(EAST, ("Create", WEST)) == head + "KMSMasterKeyId must be specified for each replica."
    )
    entry = {"Create": {"RegionName": WEST, "KMSMasterKeyId": key}}
    assert "KMS validation error for region us-west-2" in regions.refused(EAST, ReplicaUpdates=[entry])
    entry["Create"]["KMSMasterKeyId"] = "2222"
    regions.call(EAST, "UpdateTable", {"TableName": "orders", "ReplicaUpdates": [entry]})
    west = "arn:aws:kms:us-west-2:000000000000:key/2222"
    [shown] = regions.described(EAST)["Replicas"]
    assert shown["KMSMasterKeyId"] == west
    assert regions.described(WEST)["SSEDescription"]["KMSMasterKeyArn"] == west


def test_the_arn_of_a_replicas_key_may_have_no_region(regions):
    key = f"arn:aws:kms:{EAST}:000000000000:key/1111"
    sse = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": key}
    regions.call(EAST, "UpdateTable", {"TableName": "orders", "SSESpecification": sse})
    entry = {"Create": {"RegionName": WEST, "KMSMasterKeyId": "arn:x"}}
    text = regions.refused(EAST, ReplicaUpdates=[entry])
    assert text.startswith(f"KMS validation error for region {WEST}: ") and text.endswith("Invalid arn ")


def test_the_mode_of_settings_can_be_set(regions):
    regions.update(EAST, ("Create", WEST))
    regions.call(
        EAST, "UpdateTable", {"TableName": "orders", "GlobalTableSettingsReplicationMode": "ENABLED"}
    )
    for region in (EAST, WEST):
        assert regions.described(region)["GlobalTableSettingsReplicationMode"] == "ENABLED"
    text = regions.refused(EAST, GlobalTableSettingsReplicationMode="ENABLED_WITH_OVERRIDES")
    assert "Only ENABLED and DISABLED settings replication" in text


def test_a_disassociated_replica_keeps_its_items(regions):
    regions.update(EAST, ("Create", WEST))
    put(regions, EAST, pk="a")
    regions.settle()
    alone = {"Disassociate": {"RegionName": WEST, "DisassociationMode": "WAIT_FOR_REPLICATION"}}
    assert "DisassociationProtectionEnabled" in regions.refused(WEST, ReplicaUpdates=[alone])
    regions.call(WEST, "UpdateTable", {"TableName": "orders", "DisassociationProtectionEnabled": False})
    regions.call(WEST, "UpdateTable", {"TableName": "orders", "ReplicaUpdates": [alone]})
    for region in (EAST, WEST):
        assert "Replicas" not in regions.described(region)
        assert len(regions.items(region)) == 1


# Strong consistency

STRONG = {"MultiRegionConsistency": "STRONG"}


def test_strong_replicas_have_each_write_at_once(regions):
    answer = regions.update(EAST, ("Create", WEST), ("Create", SOUTH), **STRONG)["TableDescription"]
    assert answer["MultiRegionConsistency"] == "STRONG" and answer["GlobalTableVersion"] == "2019.11.21"
    put(regions, WEST, pk="a")
    for region in (EAST, WEST, SOUTH):
        key = {"TableName": "orders", "Key": {"pk": {"S": "a"}}, "ConsistentRead": True}
        assert regions.call(region, "GetItem", key)["Item"] == {"pk": {"S": "a"}}
        shown = regions.described(region)
        assert shown["MultiRegionConsistency"] == "STRONG"
        assert {each["RegionName"] for each in shown["Replicas"]} == {EAST, WEST, SOUTH} - {region}


def test_a_witness_stands_in_for_a_replica(regions):
    witness = {"GlobalTableWitnessUpdates": [{"Create": {"RegionName": SOUTH}}]}
    regions.update(EAST, ("Create", WEST), **STRONG, **witness)
    shown = regions.described(EAST)
    assert shown["GlobalTableWitnesses"] == [{"RegionName": SOUTH, "WitnessStatus": "ACTIVE"}]
    assert regions.error(SOUTH, "DescribeTable", {"TableName": "orders"})[0] == "ResourceNotFoundException"
    assert (
        regions.refused(EAST, ("Delete", WEST))
        == "Update table delete operation does not include all witnesses."
    )
    gone = {"GlobalTableWitnessUpdates": [{"Delete": {"RegionName": SOUTH}}]}
    regions.update(EAST, ("Delete", WEST), **gone)
    assert "GlobalTableWitnesses" not in regions.described(EAST)


def test_invalid_changes_of_strong_groups_are_refused(regions):
    only = "Unsupported replica count for global tables with MultiRegionConsistency set to STRONG."
    assert regions.refused(EAST, ("Create", WEST), **STRONG) == only
    text = regions.refused(EAST, ("Create", WEST), ("Create", "us-west-1"), **STRONG)
    assert text.endswith("with MultiRegionConsistency set to STRONG: [us-west-1].")
    witness = {"GlobalTableWitnessUpdates": [{"Create": {"RegionName": SOUTH}}]}
    assert "must be set as STRONG when" in regions.refused(EAST, ("Create", WEST), **witness)
    same = {"GlobalTableWitnessUpdates": [{"Create": {"RegionName": WEST}}]}
    text = regions.refused(EAST, ("Create", WEST), **STRONG, **same)
    assert text == "Cannot target multiple regions with the same action"
    assert "is required" in regions.refused(EAST, **STRONG)
    regions.update(EAST, ("Create", WEST), ("Create", SOUTH), **STRONG)
    text = regions.refused(EAST, ("Create", "us-west-1"))
    assert text == "Cannot add replicas to a global table with strong MultiRegionConsistency"
    one = "Deletion of only one table replica is not supported for global tables with MultiRegionConsistency set to STRONG."
    assert regions.refused(EAST, ("Delete", WEST)) == one
    assert regions.error(WEST, "DeleteTable", {"TableName": "orders"})[1] == one
    regions.update(EAST, ("Delete", WEST), ("Delete", SOUTH))
    assert "Replicas" not in regions.described(EAST)


def test_several_deletes_are_of_strong_groups_only(regions):
    regions.update(EAST, ("Create", WEST))
    regions.update(EAST, ("Create", SOUTH))
    text = regions.refused(EAST, ("Delete", WEST), ("Delete", SOUTH))
    assert text == "Update table operation with more than one create or delete replica actions not allowed"

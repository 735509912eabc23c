"""What the operations on global tables, Kinesis destinations and contributor insights take, as data.

Members and constraints: botocore 1.44.5 service-2.json.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME_PATTERN,
    TABLE_NAME,
    TEXT,
    Members,
    named,
    one_of,
    structure,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    Flag,
    Number,
    Request,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits

_NAME = Text(pattern=NAME_PATTERN, minimum=3, maximum=255)
_UNITS = Number("Long", 1)
_TABLE_CLASS = one_of("STANDARD", "STANDARD_INFREQUENT_ACCESS")
_KINESIS_ARN = Text(minimum=37, maximum=1024)


def replication_requests() -> dict[str, Request]:
    """What each of these operations takes."""
    shapes = {**_global_tables(), **_auto_scaling(), **_kinesis(), **_insights()}
    return {
        operation: Request(structure(f"{operation}Input", members, required))
        for operation, (members, required) in shapes.items()
    }


def _overrides(java: str, required: tuple[str, ...] = ("RegionName",)) -> Structure:
    index: Members = {"IndexName": _NAME, **_THROUGHPUT_OVERRIDES}
    members: Members = {
        "RegionName": TEXT,
        "KMSMasterKeyId": TEXT,
        **_THROUGHPUT_OVERRIDES,
        "GlobalSecondaryIndexes": Sequence(
            structure("ReplicaGlobalSecondaryIndex", index, ("IndexName",)), 1
        ),
        "TableClassOverride": _TABLE_CLASS,
    }
    return structure(java, members, required)


def _of_region(java: str, members: Members | None = None) -> Structure:
    members = {"RegionName": TEXT, **(members or {})}
    return structure(java, members, members)


_THROUGHPUT_OVERRIDES: Members = {
    "ProvisionedThroughputOverride": Structure(
        "ProvisionedThroughputOverride", {"ReadCapacityUnits": _UNITS}
    ),
    "OnDemandThroughputOverride": Structure(
        "OnDemandThroughputOverride", {"MaxReadRequestUnits": Number("Long")}
    ),
}
REPLICA_UPDATES = Sequence(
    Structure(
        "ReplicationGroupUpdate",
        {
            # Without a region it is refused in table_rules.py.
            "Create": _overrides("CreateReplicationGroupMemberAction", ()),
            "Update": _overrides("UpdateReplicationGroupMemberAction"),
            "Delete": _of_region("DeleteReplicationGroupMemberAction"),
            "Disassociate": _of_region(
                "DisassociateReplicationGroupMemberAction",
                {"DisassociationMode": one_of("WAIT_FOR_REPLICATION")},
            ),
        },
    ),
    1,
)
"""Of UpdateTable."""
WITNESS_UPDATES = Sequence(
    Structure(
        "GlobalTableWitnessGroupUpdate",
        {
            "Create": _of_region("CreateGlobalTableWitnessGroupMemberAction"),
            "Delete": _of_region("DeleteGlobalTableWitnessGroupMemberAction"),
        },
    ),
    1,
    1,
)
"""Of UpdateTable."""


_Shapes = dict[str, tuple[Members, tuple[str, ...]]]


def _global_tables() -> _Shapes:
    """Version 2017.11.29."""
    name: Members = {"GlobalTableName": named("TableName")}
    region: Members = {"RegionName": TEXT}
    update = structure(
        "ReplicaUpdate",
        {
            "Create": structure("CreateReplicaAction", region, ("RegionName",)),
            "Delete": structure("DeleteReplicaAction", region, ("RegionName",)),
        },
    )
    write: Members = {
        "ProvisionedWriteCapacityUnits": _UNITS,
        "ProvisionedWriteCapacityAutoScalingSettingsUpdate": _SCALING,
    }
    read: Members = {
        "ProvisionedReadCapacityUnits": _UNITS,
        "ProvisionedReadCapacityAutoScalingSettingsUpdate": _SCALING,
    }
    index = structure(
        "GlobalTableGlobalSecondaryIndexSettingsUpdate", {"IndexName": _NAME, **write}, ("IndexName",)
    )
    replica_index = structure(
        "ReplicaGlobalSecondaryIndexSettingsUpdate", {"IndexName": _NAME, **read}, ("IndexName",)
    )
    replica: Members = {
        **region,
        "ReplicaProvisionedReadCapacityUnits": _UNITS,
        "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": _SCALING,
        "ReplicaGlobalSecondaryIndexSettingsUpdate": Sequence(replica_index, 1, 20),
        "ReplicaTableClass": _TABLE_CLASS,
    }
    settings: Members = {
        **name,
        "GlobalTableBillingMode": one_of("PROVISIONED", "PAY_PER_REQUEST"),
        "GlobalTableProvisionedWriteCapacityUnits": _UNITS,
        "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate": _SCALING,
        "GlobalTableGlobalSecondaryIndexSettingsUpdate": Sequence(index, 1, 20),
        "ReplicaSettingsUpdate": Sequence(
            structure("ReplicaSettingsUpdate", replica, ("RegionName",)), 1, 50
        ),
    }
    listed: Members = {"ExclusiveStartGlobalTableName": _NAME, "Limit": Number("Integer", 1), **region}
    group = Sequence(structure("Replica", region))
    needed = ("GlobalTableName",)
    return {
        "ListGlobalTables": (listed, ()),
        "DescribeGlobalTable": (name, needed),
        "DescribeGlobalTableSettings": (name, needed),
        "CreateGlobalTable": ({**name, "ReplicationGroup": group}, (*needed, "ReplicationGroup")),
        "UpdateGlobalTable": ({**name, "ReplicaUpdates": Sequence(update)}, (*needed, "ReplicaUpdates")),
        "UpdateGlobalTableSettings": (settings, needed),
    }


_TRACKING = structure(
    "AutoScalingTargetTrackingScalingPolicyConfigurationUpdate",
    {
        "DisableScaleIn": Flag(),
        "ScaleInCooldown": Number(),
        "ScaleOutCooldown": Number(),
        "TargetValue": Number("Double"),
    },
    ("TargetValue",),
)
_SCALING = structure(
    "AutoScalingSettingsUpdate",
    {
        "MinimumUnits": _UNITS,
        "MaximumUnits": _UNITS,
        "AutoScalingDisabled": Flag(),
        "AutoScalingRoleArn": Text(minimum=1, maximum=1600),
        "ScalingPolicyUpdate": structure(
            "AutoScalingPolicyUpdate",
            {
                "PolicyName": Text(minimum=1, maximum=256),
                "TargetTrackingScalingPolicyConfiguration": _TRACKING,
            },
            ("TargetTrackingScalingPolicyConfiguration",),
        ),
    },
)


def _auto_scaling() -> _Shapes:
    index = structure(
        "GlobalSecondaryIndexAutoScalingUpdate",
        {"IndexName": _NAME, "ProvisionedWriteCapacityAutoScalingUpdate": _SCALING},
    )
    replica_index = structure(
        "ReplicaGlobalSecondaryIndexAutoScalingUpdate",
        {"IndexName": _NAME, "ProvisionedReadCapacityAutoScalingUpdate": _SCALING},
    )
    replica = structure(
        "ReplicaAutoScalingUpdate",
        {
            "RegionName": TEXT,
            "ReplicaGlobalSecondaryIndexUpdates": Sequence(replica_index),
            "ReplicaProvisionedReadCapacityAutoScalingUpdate": _SCALING,
        },
        ("RegionName",),
    )
    by_table: Members = {"TableName": TABLE_NAME}
    update: Members = {
        **by_table,
        "GlobalSecondaryIndexUpdates": Sequence(index, 1),
        "ProvisionedWriteCapacityAutoScalingUpdate": _SCALING,
        "ReplicaUpdates": Sequence(replica, 1),
    }
    return {
        "DescribeTableReplicaAutoScaling": (by_table, ("TableName",)),
        "UpdateTableReplicaAutoScaling": (update, ("TableName",)),
    }


def _kinesis() -> _Shapes:
    by_table: Members = {"TableName": TABLE_NAME}
    stream: Members = {**by_table, "StreamArn": _KINESIS_ARN}
    precision: Members = {"ApproximateCreationDateTimePrecision": one_of("MILLISECOND", "MICROSECOND")}
    enabling: Members = {
        "EnableKinesisStreamingConfiguration": Structure("EnableKinesisStreamingConfiguration", precision)
    }
    updating: Members = {
        "UpdateKinesisStreamingConfiguration": Structure("UpdateKinesisStreamingConfiguration", precision)
    }
    needed = ("TableName", "StreamArn")
    return {
        "DescribeKinesisStreamingDestination": (by_table, ("TableName",)),
        "EnableKinesisStreamingDestination": ({**stream, **enabling}, needed),
        # No minimum length: ack-api-quirks, TABLE-302.
        "DisableKinesisStreamingDestination": (
            {**stream, "StreamArn": Text(maximum=1024), **enabling},
            needed,
        ),
        "UpdateKinesisStreamingDestination": ({**stream, **updating}, needed),
    }


def _insights() -> _Shapes:
    by_table: Members = {"TableName": TABLE_NAME, "IndexName": named("IndexName")}
    update: Members = {
        **by_table,
        "ContributorInsightsAction": one_of("ENABLE", "DISABLE"),
        "ContributorInsightsMode": one_of("THROTTLED_KEYS", "ACCESSED_AND_THROTTLED_KEYS"),
    }
    listed: Members = {
        "TableName": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
        "NextToken": TEXT,
        "MaxResults": Number("Integer", None, limits.INSIGHTS_PAGE),
    }
    return {
        "DescribeContributorInsights": (by_table, ("TableName",)),
        "UpdateContributorInsights": (update, ("TableName", "ContributorInsightsAction")),
        "ListContributorInsights": (listed, ()),
    }

"""Inputs of the operations on global tables and the scaling of replicas, as data.

Members and constraints: botocore 1.44.5 service-2.json.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME,
    TABLE_NAME,
    TEXT,
    Members,
    Shapes,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    Boolean,
    Number,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.validation.schemas.table_parts import TABLE_CLASS

# Inputs


_UNITS = Number("Long", 1)

# Target tracking

_TRACKING = Structure(
    "AutoScalingTargetTrackingScalingPolicyConfigurationUpdate",
    {
        "DisableScaleIn": Boolean(),
        "ScaleInCooldown": Number(),
        "ScaleOutCooldown": Number(),
        "TargetValue": Number("Double"),
    },
    ("TargetValue",),
)
_SCALING = Structure(
    "AutoScalingSettingsUpdate",
    {
        "MinimumUnits": _UNITS,
        "MaximumUnits": _UNITS,
        "AutoScalingDisabled": Boolean(),
        "AutoScalingRoleArn": Text(minimum=1, maximum=1600),
        "ScalingPolicyUpdate": Structure(
            "AutoScalingPolicyUpdate",
            {
                "PolicyName": Text(minimum=1, maximum=256),
                "TargetTrackingScalingPolicyConfiguration": _TRACKING,
            },
            ("TargetTrackingScalingPolicyConfiguration",),
        ),
    },
)

# Global tables, version 2017.11.29

_GLOBAL_TABLE: Members = {"GlobalTableName": named("TableName")}
_REGION: Members = {"RegionName": TEXT}
_REPLICA_UPDATE = Structure(
    "ReplicaUpdate",
    {
        "Create": Structure("CreateReplicaAction", _REGION, ("RegionName",)),
        "Delete": Structure("DeleteReplicaAction", _REGION, ("RegionName",)),
    },
)
_WRITE_UNITS: Members = {
    "ProvisionedWriteCapacityUnits": _UNITS,
    "ProvisionedWriteCapacityAutoScalingSettingsUpdate": _SCALING,
}
_READ_UNITS: Members = {
    "ProvisionedReadCapacityUnits": _UNITS,
    "ProvisionedReadCapacityAutoScalingSettingsUpdate": _SCALING,
}
_INDEX_SETTINGS = Structure(
    "GlobalTableGlobalSecondaryIndexSettingsUpdate", {"IndexName": NAME, **_WRITE_UNITS}, ("IndexName",)
)
_REPLICA_INDEX_SETTINGS = Structure(
    "ReplicaGlobalSecondaryIndexSettingsUpdate", {"IndexName": NAME, **_READ_UNITS}, ("IndexName",)
)
_REPLICA_SETTINGS: Members = {
    **_REGION,
    "ReplicaProvisionedReadCapacityUnits": _UNITS,
    "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": _SCALING,
    "ReplicaGlobalSecondaryIndexSettingsUpdate": Sequence(_REPLICA_INDEX_SETTINGS, 1, 20),
    "ReplicaTableClass": TABLE_CLASS,
}
_GLOBAL_SETTINGS: Members = {
    **_GLOBAL_TABLE,
    "GlobalTableBillingMode": one_of("PROVISIONED", "PAY_PER_REQUEST"),
    "GlobalTableProvisionedWriteCapacityUnits": _UNITS,
    "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate": _SCALING,
    "GlobalTableGlobalSecondaryIndexSettingsUpdate": Sequence(_INDEX_SETTINGS, 1, 20),
    "ReplicaSettingsUpdate": Sequence(
        Structure("ReplicaSettingsUpdate", _REPLICA_SETTINGS, ("RegionName",)), 1, 50
    ),
}
_LISTED: Members = {"ExclusiveStartGlobalTableName": NAME, "Limit": Number("Integer", 1), **_REGION}
_GROUP = Sequence(Structure("Replica", _REGION))
_NEEDED = ("GlobalTableName",)
_GLOBAL_TABLES: Shapes = {
    "ListGlobalTables": (_LISTED, ()),
    "DescribeGlobalTable": (_GLOBAL_TABLE, _NEEDED),
    "DescribeGlobalTableSettings": (_GLOBAL_TABLE, _NEEDED),
    "CreateGlobalTable": ({**_GLOBAL_TABLE, "ReplicationGroup": _GROUP}, (*_NEEDED, "ReplicationGroup")),
    "UpdateGlobalTable": (
        {**_GLOBAL_TABLE, "ReplicaUpdates": Sequence(_REPLICA_UPDATE)},
        (*_NEEDED, "ReplicaUpdates"),
    ),
    "UpdateGlobalTableSettings": (_GLOBAL_SETTINGS, _NEEDED),
}


def _auto_scaling() -> Shapes:
    index = Structure(
        "GlobalSecondaryIndexAutoScalingUpdate",
        {"IndexName": NAME, "ProvisionedWriteCapacityAutoScalingUpdate": _SCALING},
    )
    replica_index = Structure(
        "ReplicaGlobalSecondaryIndexAutoScalingUpdate",
        {"IndexName": NAME, "ProvisionedReadCapacityAutoScalingUpdate": _SCALING},
    )
    replica = Structure(
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


REPLICATION_REQUESTS = requests_of({**_GLOBAL_TABLES, **_auto_scaling()})

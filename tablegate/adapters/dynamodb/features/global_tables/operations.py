"""The operations on global tables and the scaling of replicas, with their inputs as data (botocore 1.44.5 service-2.json).

The handlers of version 2017.11.29 are here, too. The service no longer creates such tables. Texts: ack-api-quirks (live
service, October 2026). Missing names, Regional tables and tables of version 2019.11.21 get the same error. Global tables of
version 2019.11.21 are created by UpdateTable (replicas.py).
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.features.global_tables import replica_auto_scaling, replica_rules, replicas
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation.shapes import (
    NAME,
    TABLE_NAME,
    TEXT,
    Boolean,
    Members,
    Number,
    Sequence,
    Shapes,
    Structure,
    Text,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.table_schemas import TABLE_CLASS, TABLE_REQUESTS
from tablegate.adapters.dynamodb.wire import error_texts
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Version 2017.11.29


# The regions that had global tables before version 2019.11.21.
_REGIONS = (
    "eu-west-2",
    "eu-west-1",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-northeast-2",
    "eu-central-1",
    "ap-northeast-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
)


async def list_global_tables(call: CallContext) -> Answer:
    """ListGlobalTables: always empty."""
    return {"GlobalTables": []}


async def describe_global_table(call: CallContext) -> Answer:
    """DescribeGlobalTable: always missing. Raises ServiceError."""
    raise _table_missing(call, "Global table not found: ")


async def refuse_settings(call: CallContext) -> Answer:
    """DescribeGlobalTableSettings and UpdateGlobalTableSettings: always missing. Raises ServiceError."""
    raise _table_missing(call)


async def create_global_table(call: CallContext) -> Answer:
    """CreateGlobalTable: no longer supported. Raises ServiceError."""
    raise _unsupported(call)


async def update_global_table(call: CallContext) -> Answer:
    """UpdateGlobalTable: always missing, or no longer supported if it adds a replica. Raises ServiceError."""
    updates = call.input["ReplicaUpdates"]
    if not all(updates) or not updates:
        raise validation(error_texts.INVALID.removesuffix(": "))
    raise _unsupported(call) if any("Create" in update for update in updates) else _table_missing(call)


def _table_missing(call: CallContext, head: str = "") -> ServiceError:
    name = call.input["GlobalTableName"]
    return ServiceError(
        "GlobalTableNotFoundException", f"{head}Global table with name: '{name}' does not exist."
    )


def _unsupported(call: CallContext) -> ServiceError:
    region = call.caller.region
    if region in _REGIONS:
        text = (
            "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global tables version "
            "2019.11.21, instead of version 2017.11.29 (Legacy)."
        )
    else:
        text = (
            "DynamoDB global tables version 2017.11.29 is not supported in this region "
            f"'{region}', supported regions are : [{', '.join(_REGIONS)}]"
        )
    return validation(f"{error_texts.INVALID}{text}")


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


# Operations


_P = Permission
OPERATIONS = by_name(
    Operation("ListGlobalTables", list_global_tables, REPLICATION_REQUESTS, Purpose((_P.LIST_FEATURES,))),
    Operation(
        "DescribeGlobalTable", describe_global_table, REPLICATION_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "DescribeGlobalTableSettings", refuse_settings, REPLICATION_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation("CreateGlobalTable", create_global_table, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,))),
    Operation("UpdateGlobalTable", update_global_table, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,))),
    Operation(
        "UpdateGlobalTableSettings", refuse_settings, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,)),
    ),
    Operation(
        "DescribeTableReplicaAutoScaling", replica_auto_scaling.describe_replica_auto_scaling, REPLICATION_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "UpdateTableReplicaAutoScaling", replica_auto_scaling.update_replica_auto_scaling, REPLICATION_REQUESTS,
        Purpose((_P.ALTER_FEATURES,)),
    ),
    # These replace the common operations.
    Operation("UpdateTable", replicas.update_table, TABLE_REQUESTS, Purpose((_P.ALTER,)), rule=replica_rules.update_table),
    Operation("DeleteTable", replicas.delete_table, TABLE_REQUESTS, Purpose((_P.DROP,))),
    Operation("UpdateTimeToLive", replicas.update_time_to_live, TABLE_REQUESTS, Purpose((_P.ALTER_EXPIRY,))),
)  # fmt: skip

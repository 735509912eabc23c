"""The operations on global tables and the scaling of replicas."""

from __future__ import annotations

from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables import global_tables, replica_auto_scaling, replica_rules, replicas
from tablegate.adapters.dynamodb.validation.schemas.replication_schemas import REPLICATION_REQUESTS
from tablegate.adapters.dynamodb.validation.schemas.table_schemas import TABLE_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


_P = Permission
OPERATIONS = by_name(
    Operation("ListGlobalTables", global_tables.list_global_tables, REPLICATION_REQUESTS, Purpose((_P.LIST_FEATURES,))),
    Operation(
        "DescribeGlobalTable", global_tables.describe_global_table, REPLICATION_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "DescribeGlobalTableSettings", global_tables.refuse_settings, REPLICATION_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation("CreateGlobalTable", global_tables.create_global_table, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,))),
    Operation("UpdateGlobalTable", global_tables.update_global_table, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,))),
    Operation(
        "UpdateGlobalTableSettings", global_tables.refuse_settings, REPLICATION_REQUESTS, Purpose((_P.ALTER_FEATURES,)),
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

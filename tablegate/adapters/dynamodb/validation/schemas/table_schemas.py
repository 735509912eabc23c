"""Inputs of the operations on tables, as data.

Members are in the service's order of checks. Sources: see operation.py.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas import table_parts
from tablegate.adapters.dynamodb.validation.schemas.resource_schemas import TAG
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME,
    NAME_OR_ARN,
    TEXT,
    Members,
    one_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    Boolean,
    Number,
    Request,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits

# Tables


_DEFINITIONS = Sequence(
    Structure(
        "AttributeDefinition",
        {"AttributeName": table_parts.KEY_NAME, "AttributeType": one_of("B", "N", "S")},
        ("AttributeName", "AttributeType"),
    )
)
_STREAM = Structure(
    "StreamSpecification",
    {
        "StreamEnabled": Boolean(),
        "StreamViewType": one_of("OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"),
    },
    ("StreamEnabled",),
)
_BILLING: Members = {"BillingMode": table_parts.BILLING, "TableThroughputMode": table_parts.BILLING}
"""TableThroughputMode is in no model. table_rules.py makes it a BillingMode."""
_SETTINGS: Members = {
    "StreamSpecification": _STREAM,
    "SSESpecification": table_parts.ENCRYPTION,
    "TableClass": table_parts.TABLE_CLASS,
    "DeletionProtectionEnabled": Boolean(),
    "OnDemandThroughput": table_parts.ON_DEMAND,
    "WarmThroughput": table_parts.WARM,
    "GlobalTableSettingsReplicationMode": one_of("ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES"),
}
_LISTED: Members = {
    "Limit": Number("Integer", 1, limits.LIST_TABLES_NAMES),
    "ExclusiveStartTableName": NAME,
}
_EXPIRY = Structure(
    "TimeToLiveSpecification",
    {"AttributeName": Text(minimum=1, maximum=limits.TTL_NAME_CHARACTERS), "Enabled": Boolean()},
    ("Enabled", "AttributeName"),
)


_CREATION: Members = {
    "AttributeDefinitions": _DEFINITIONS,
    "TableName": NAME_OR_ARN,
    **_BILLING,
    "ProvisionedThroughput": table_parts.UNITS,
    "KeySchema": table_parts.KEY_SCHEMA,
    "LocalSecondaryIndexes": table_parts.LOCAL_INDEXES,
    "GlobalSecondaryIndexes": table_parts.GLOBAL_INDEXES,
    **_SETTINGS,
    "Tags": Sequence(TAG),
    "ResourcePolicy": TEXT,
    "GlobalTableSourceArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
    "VectorIndexes": table_parts.VECTOR_INDEXES,
}
_NEEDED_TO_CREATE = ("AttributeDefinitions", "KeySchema")


def _index_updates() -> Sequence:
    update: Members = {"IndexName": NAME, **table_parts.THROUGHPUT}
    create: Members = {
        "Projection": table_parts.PROJECTION,
        "IndexName": NAME,
        **table_parts.THROUGHPUT,
        "KeySchema": table_parts.GLOBAL_KEY_SCHEMA,
    }
    required = ("Projection", "IndexName", "KeySchema")
    actions: Members = {
        "Update": Structure("UpdateGlobalSecondaryIndexAction", update, ("IndexName",)),
        "Create": Structure("CreateGlobalSecondaryIndexAction", create, required),
        "Delete": Structure("DeleteGlobalSecondaryIndexAction", {"IndexName": NAME}, ("IndexName",)),
    }
    return Sequence(Structure("GlobalSecondaryIndexUpdate", actions))


_UPDATE: Members = {
    "TableName": NAME_OR_ARN,
    "ProvisionedThroughput": table_parts.UNITS,
    **_BILLING,
    "GlobalSecondaryIndexUpdates": _index_updates(),
    "AttributeDefinitions": _DEFINITIONS,
    **_SETTINGS,
    "ReplicaUpdates": table_parts.REPLICA_UPDATES,
    "MultiRegionConsistency": one_of("EVENTUAL", "STRONG"),
    "GlobalTableWitnessUpdates": table_parts.WITNESS_UPDATES,
    "DisassociationProtectionEnabled": Boolean(),
    "VectorIndexUpdates": table_parts.VECTOR_INDEX_UPDATES,
}
_NAME: Members = {"TableName": NAME_OR_ARN}
_NEW_EXPIRY: Members = {**_NAME, "TimeToLiveSpecification": _EXPIRY}

TABLE_REQUESTS: dict[str, Request] = {
    "CreateTable": Request(
        Structure("CreateTableInput", _CREATION, _NEEDED_TO_CREATE), "TableName", "TableName"
    ),
    "UpdateTable": Request(Structure("UpdateTableInput", _UPDATE), "TableName"),
    "DeleteTable": Request(Structure("DeleteTableInput", _NAME), "TableName"),
    "DescribeTable": Request(Structure("DescribeTableInput", _NAME), "TableName"),
    "ListTables": Request(Structure("ListTablesInput", _LISTED)),
    "DescribeLimits": Request(Structure("DescribeLimitsInput", {})),
    "DescribeEndpoints": Request(Structure("DescribeEndpointsRequest", {})),
    "DescribeTimeToLive": Request(Structure("DescribeTimeToLiveInput", _NAME), "TableName"),
    "UpdateTimeToLive": Request(
        Structure("UpdateTimeToLiveInput", _NEW_EXPIRY, ("TimeToLiveSpecification",)), "TableName"
    ),
}

_OF_IMPORTED_TABLES = (
    "AttributeDefinitions",
    "TableName",
    "BillingMode",
    "ProvisionedThroughput",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "SSESpecification",
    "OnDemandThroughput",
    "VectorIndexes",
)
TABLE_CREATION_PARAMETERS = Structure(
    "TableCreationParameters",
    {name: NAME if name == "TableName" else _CREATION[name] for name in _OF_IMPORTED_TABLES},
    ("TableName", *_NEEDED_TO_CREATE),
)
"""The table parameters of ImportTable: some members of CreateTable."""

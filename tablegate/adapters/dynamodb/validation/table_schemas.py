"""Inputs of the operations on tables and on resources by their ARN, as data, and their parts that other operations share.

Members are in the service's order of checks. Sources: see operation.py.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.shapes import (
    NAME,
    NAME_OR_ARN,
    TEXT,
    Boolean,
    Members,
    Number,
    Request,
    Sequence,
    Shapes,
    Structure,
    Text,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import limits

# Resources


_RESOURCE_ARN = Text(minimum=1, maximum=1283)
_REVISION = Text(minimum=1, maximum=255)
TAG = Structure("Tag", {"Key": TEXT, "Value": TEXT})
"""tables/tags.py checks it, with its own error texts."""
_SHAPES: Shapes = {
    # resource_rules.py checks for missing ResourceArn, Tags and TagKeys, because the service checks the ARN
    # first.
    "TagResource": ({"ResourceArn": TEXT, "Tags": Sequence(TAG)}, ()),
    "UntagResource": ({"ResourceArn": TEXT, "TagKeys": Sequence(TEXT)}, ()),
    "ListTagsOfResource": ({"ResourceArn": TEXT, "NextToken": TEXT}, ()),
    "PutResourcePolicy": (
        {
            "ResourceArn": _RESOURCE_ARN,
            "Policy": TEXT,
            "ExpectedRevisionId": _REVISION,
            "ConfirmRemoveSelfResourceAccess": Boolean(),
        },
        ("ResourceArn", "Policy"),
    ),
    "DeleteResourcePolicy": (
        {"ResourceArn": _RESOURCE_ARN, "ExpectedRevisionId": _REVISION},
        ("ResourceArn",),
    ),
    "GetResourcePolicy": ({"ResourceArn": _RESOURCE_ARN}, ("ResourceArn",)),
}
RESOURCE_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""


# Parts of tables


_LONG = Number("Long")
_LONG_FROM_1 = Number("Long", 1)
_UNITS_MEMBERS: Members = {"WriteCapacityUnits": _LONG_FROM_1, "ReadCapacityUnits": _LONG_FROM_1}
UNITS = Structure("ProvisionedThroughput", _UNITS_MEMBERS, tuple(_UNITS_MEMBERS))
ON_DEMAND = Structure("OnDemandThroughput", {"MaxReadRequestUnits": _LONG, "MaxWriteRequestUnits": _LONG})
WARM = Structure("WarmThroughput", {"ReadUnitsPerSecond": _LONG, "WriteUnitsPerSecond": _LONG})
THROUGHPUT: Members = {
    "ProvisionedThroughput": UNITS,
    "OnDemandThroughput": ON_DEMAND,
    "WarmThroughput": WARM,
}
KEY_NAME = Text(minimum=1, maximum=limits.KEY_NAME_CHARACTERS)
ENCRYPTION = Structure(
    "SSESpecification",
    {"Enabled": Boolean(), "SSEType": one_of("AES256", "KMS"), "KMSMasterKeyId": Text(minimum=1)},
)
TABLE_CLASS = one_of("STANDARD", "STANDARD_INFREQUENT_ACCESS")
BILLING = one_of("PROVISIONED", "PAY_PER_REQUEST")
PROJECTION = Structure(
    "Projection",
    {
        "ProjectionType": one_of("ALL", "INCLUDE", "KEYS_ONLY"),
        "NonKeyAttributes": Sequence(
            Text(minimum=1, maximum=limits.PROJECTED_NAME_CHARACTERS), 1, limits.PROJECTED_NAMES
        ),
    },
)
_VECTOR_INDEX_MEMBERS: Members = {
    "IndexName": NAME,
    "VectorAttribute": Structure(
        "VectorAttributeDefinition", {"AttributeName": KEY_NAME}, ("AttributeName",)
    ),
    "SearchSchema": Sequence(
        Structure(
            "SearchSchemaElement",
            {"AttributeName": KEY_NAME, "SearchSchemaElementType": one_of("HASH", "INLINE_FILTER")},
            ("AttributeName", "SearchSchemaElementType"),
        ),
        1,
    ),
    "Projection": PROJECTION,
    "Dimensions": _LONG_FROM_1,
    "DistanceFunction": one_of("COSINE", "DOT_PRODUCT", "EUCLIDEAN"),
}
_VECTOR_INDEX_NEEDED = ("IndexName", "VectorAttribute", "Projection", "Dimensions", "DistanceFunction")
VECTOR_INDEXES = Sequence(Structure("VectorIndex", _VECTOR_INDEX_MEMBERS, _VECTOR_INDEX_NEEDED))
VECTOR_INDEX_UPDATES = Sequence(
    Structure(
        "VectorIndexUpdate",
        {
            "Create": Structure("CreateVectorIndexAction", _VECTOR_INDEX_MEMBERS, _VECTOR_INDEX_NEEDED),
            "Delete": Structure("DeleteVectorIndexAction", {"IndexName": NAME}, ("IndexName",)),
        },
    )
)


_KEY_ELEMENT = Structure(
    "KeySchemaElement",
    {"AttributeName": KEY_NAME, "KeyType": one_of("HASH", "RANGE")},
    ("AttributeName", "KeyType"),
)
KEY_SCHEMA = Sequence(_KEY_ELEMENT, 1, 2)
GLOBAL_KEY_SCHEMA = Sequence(_KEY_ELEMENT, 1, 2 * limits.INDEX_KEY_ATTRIBUTES_PER_ROLE)
"""The key schema of a global secondary index."""
_INDEX_NEEDED = ("IndexName", "KeySchema", "Projection")
LOCAL_INDEXES = Sequence(
    Structure(
        "LocalSecondaryIndex",
        {"IndexName": NAME, "KeySchema": KEY_SCHEMA, "Projection": PROJECTION},
        _INDEX_NEEDED,
    )
)
GLOBAL_INDEXES = Sequence(
    Structure(
        "GlobalSecondaryIndex",
        {"IndexName": NAME, "KeySchema": GLOBAL_KEY_SCHEMA, "Projection": PROJECTION, **THROUGHPUT},
        _INDEX_NEEDED,
    )
)


# Replicas, in UpdateTable


def _overrides(java: str, required: tuple[str, ...] = ("RegionName",)) -> Structure:
    index: Members = {"IndexName": NAME, **_THROUGHPUT_OVERRIDES}
    members: Members = {
        "RegionName": TEXT,
        "KMSMasterKeyId": TEXT,
        **_THROUGHPUT_OVERRIDES,
        "GlobalSecondaryIndexes": Sequence(
            Structure("ReplicaGlobalSecondaryIndex", index, ("IndexName",)), 1
        ),
        "TableClassOverride": TABLE_CLASS,
    }
    return Structure(java, members, required)


def _of_region(java: str, members: Members | None = None) -> Structure:
    members = {"RegionName": TEXT, **(members or {})}
    return Structure(java, members, tuple(members))


_THROUGHPUT_OVERRIDES: Members = {
    "ProvisionedThroughputOverride": Structure(
        "ProvisionedThroughputOverride", {"ReadCapacityUnits": _LONG_FROM_1}
    ),
    "OnDemandThroughputOverride": Structure(
        "OnDemandThroughputOverride", {"MaxReadRequestUnits": Number("Long")}
    ),
}
REPLICA_UPDATES = Sequence(
    Structure(
        "ReplicationGroupUpdate",
        {
            # table_rules.py rejects it without a region.
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


# Tables


_DEFINITIONS = Sequence(
    Structure(
        "AttributeDefinition",
        {"AttributeName": KEY_NAME, "AttributeType": one_of("B", "N", "S")},
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
_BILLING: Members = {"BillingMode": BILLING, "TableThroughputMode": BILLING}
"""TableThroughputMode is in no model. table_rules.py makes it a BillingMode."""
_SETTINGS: Members = {
    "StreamSpecification": _STREAM,
    "SSESpecification": ENCRYPTION,
    "TableClass": TABLE_CLASS,
    "DeletionProtectionEnabled": Boolean(),
    "OnDemandThroughput": ON_DEMAND,
    "WarmThroughput": WARM,
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
    "ProvisionedThroughput": UNITS,
    "KeySchema": KEY_SCHEMA,
    "LocalSecondaryIndexes": LOCAL_INDEXES,
    "GlobalSecondaryIndexes": GLOBAL_INDEXES,
    **_SETTINGS,
    "Tags": Sequence(TAG),
    "ResourcePolicy": TEXT,
    "GlobalTableSourceArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
    "VectorIndexes": VECTOR_INDEXES,
}
_NEEDED_TO_CREATE = ("AttributeDefinitions", "KeySchema")


def _index_updates() -> Sequence:
    update: Members = {"IndexName": NAME, **THROUGHPUT}
    create: Members = {
        "Projection": PROJECTION,
        "IndexName": NAME,
        **THROUGHPUT,
        "KeySchema": GLOBAL_KEY_SCHEMA,
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
    "ProvisionedThroughput": UNITS,
    **_BILLING,
    "GlobalSecondaryIndexUpdates": _index_updates(),
    "AttributeDefinitions": _DEFINITIONS,
    **_SETTINGS,
    "ReplicaUpdates": REPLICA_UPDATES,
    "MultiRegionConsistency": one_of("EVENTUAL", "STRONG"),
    "GlobalTableWitnessUpdates": WITNESS_UPDATES,
    "DisassociationProtectionEnabled": Boolean(),
    "VectorIndexUpdates": VECTOR_INDEX_UPDATES,
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

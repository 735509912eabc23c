"""Parts of requests that create, change or restore tables: key schemas, throughput, indexes, encryption."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import NAME, TEXT, Members, one_of
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    Boolean,
    Number,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits

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

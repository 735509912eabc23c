"""What the operations on tables, tags and streams take, as data.

The order of members is that in which the service looks at them. Sources: see operation_schemas.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablegate.adapters.dynamodb.validation.schemas.replication_schemas import (
    REPLICA_UPDATES,
    WITNESS_UPDATES,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME_OR_ARN,
    NAME_PATTERN,
    TABLE_ARN,
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
from tablegate.adapters.dynamodb.wire.errors import CLASSIC
from tablegate.gateway.model.tables.backups import RECOVERY_DAYS

_INTEGER_FROM_1 = Number("Integer", 1)
_LONG = Number("Long")
_LONG_FROM_1 = Number("Long", 1)
_INDEX_NAME = Text(pattern=NAME_PATTERN, minimum=3, maximum=255)
_UNITS_MEMBERS: Members = {"WriteCapacityUnits": _LONG_FROM_1, "ReadCapacityUnits": _LONG_FROM_1}
_UNITS = Structure("ProvisionedThroughput", _UNITS_MEMBERS, frozenset(_UNITS_MEMBERS))
_ON_DEMAND = Structure("OnDemandThroughput", {"MaxReadRequestUnits": _LONG, "MaxWriteRequestUnits": _LONG})
_WARM = Structure("WarmThroughput", {"ReadUnitsPerSecond": _LONG, "WriteUnitsPerSecond": _LONG})
_KEY_NAME = Text(minimum=1, maximum=limits.KEY_NAME_CHARACTERS)
_STREAM = Structure(
    "StreamSpecification",
    {
        "StreamEnabled": Flag(),
        "StreamViewType": one_of("OLD_IMAGE", "KEYS_ONLY", "NEW_AND_OLD_IMAGES", "NEW_IMAGE"),
    },
    frozenset({"StreamEnabled"}),
)
_ENCRYPTION = Structure(
    "SSESpecification",
    {"Enabled": Flag(), "SSEType": one_of("AES256", "KMS"), "KMSMasterKeyId": Text(minimum=1)},
)
_TAG = Structure("Tag", {"Key": TEXT, "Value": TEXT})  # looked at in tags.py, with texts of its own
_TABLE_CLASS = one_of("STANDARD", "STANDARD_INFREQUENT_ACCESS")
_BILLING = one_of("PROVISIONED", "PAY_PER_REQUEST")
_PROJECTION = Structure(
    "Projection",
    {
        "ProjectionType": one_of("ALL", "INCLUDE", "KEYS_ONLY"),
        "NonKeyAttributes": Sequence(
            Text(minimum=1, maximum=limits.PROJECTED_NAME_CHARACTERS), 1, limits.PROJECTED_NAMES
        ),
    },
)
_VECTOR_INDEX_MEMBERS: Members = {
    "IndexName": _INDEX_NAME,
    "VectorAttribute": structure(
        "VectorAttributeDefinition", {"AttributeName": _KEY_NAME}, ("AttributeName",)
    ),
    "SearchSchema": Sequence(
        structure(
            "SearchSchemaElement",
            {"AttributeName": _KEY_NAME, "SearchSchemaElementType": one_of("HASH", "INLINE_FILTER")},
            ("AttributeName", "SearchSchemaElementType"),
        ),
        1,
    ),
    "Projection": _PROJECTION,
    "Dimensions": _LONG_FROM_1,
    "DistanceFunction": one_of("COSINE", "DOT_PRODUCT", "EUCLIDEAN"),
}
_VECTOR_INDEX_NEEDED = ("IndexName", "VectorAttribute", "Projection", "Dimensions", "DistanceFunction")
_VECTOR_INDEXES = Sequence(structure("VectorIndex", _VECTOR_INDEX_MEMBERS, _VECTOR_INDEX_NEEDED))
_VECTOR_INDEX_UPDATES = Sequence(
    structure(
        "VectorIndexUpdate",
        {
            "Create": structure("CreateVectorIndexAction", _VECTOR_INDEX_MEMBERS, _VECTOR_INDEX_NEEDED),
            "Delete": structure("DeleteVectorIndexAction", {"IndexName": _INDEX_NAME}, ("IndexName",)),
        },
    )
)
_RESOURCE_ARN = Text(minimum=1, maximum=1283)
_REVISION = Text(minimum=1, maximum=255)
_STREAM_ARN = Text(minimum=37, maximum=1024)
_SHARD_ID = Text(minimum=28, maximum=65)


def _key_schema(longest: int, typed: bool) -> Sequence:
    """`typed`: whether KeyType is looked at here; the service leaves that of indexes to later checks (classic)."""
    key_type = one_of("HASH", "RANGE") if typed else TEXT
    element = Structure(
        "KeySchemaElement",
        {"AttributeName": _KEY_NAME, "KeyType": key_type},
        frozenset({"AttributeName", "KeyType"}),
    )
    return Sequence(element, 1, longest)


def table_requests(style: str) -> dict[str, Request]:
    """What each operation on tables, tags and streams takes, in a style."""
    return {
        **_table_operations(style),
        **_described(style),
        **_copies(),
        **_tag_operations(),
        **_streams(),
    }


def _table_operations(style: str) -> dict[str, Request]:
    classic = style == CLASSIC
    index_keys = _key_schema(2 * limits.INDEX_KEY_ATTRIBUTES_PER_ROLE, not classic)
    local: Members = {
        "IndexName": _INDEX_NAME,
        "KeySchema": _key_schema(2, not classic),
        "Projection": _PROJECTION,
    }
    units: Members = {
        "ProvisionedThroughput": _UNITS,
        "OnDemandThroughput": _ON_DEMAND,
        "WarmThroughput": _WARM,
    }
    index: Members = {"IndexName": _INDEX_NAME, "KeySchema": index_keys, "Projection": _PROJECTION, **units}
    definition = structure(
        "AttributeDefinition",
        {"AttributeName": _KEY_NAME, "AttributeType": one_of("B", "N", "S")},
        ("AttributeName", "AttributeType"),
    )
    settings: Members = {
        "StreamSpecification": _STREAM,
        "SSESpecification": _ENCRYPTION,
        "TableClass": _TABLE_CLASS,
        "DeletionProtectionEnabled": Flag(),
        "OnDemandThroughput": _ON_DEMAND,
        "WarmThroughput": _WARM,
        "GlobalTableSettingsReplicationMode": one_of("ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES"),
    }
    create: Members = {
        "AttributeDefinitions": Sequence(definition),
        "TableName": _control_name(is_checked=True),
        "BillingMode": _BILLING,
        "ProvisionedThroughput": _UNITS,
        "KeySchema": _key_schema(2, True),
        "LocalSecondaryIndexes": Sequence(
            structure("LocalSecondaryIndex", local, ("IndexName", "KeySchema", "Projection"))
        ),
        "GlobalSecondaryIndexes": Sequence(
            structure("GlobalSecondaryIndex", index, ("IndexName", "KeySchema", "Projection"))
        ),
        **settings,
        "Tags": Sequence(_TAG),
        "ResourcePolicy": TEXT,
        "GlobalTableSourceArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
        "VectorIndexes": _VECTOR_INDEXES,
    }
    once_needed = frozenset({"ProvisionedThroughput"})
    updates: Members = {
        "Update": Structure(
            "UpdateGlobalSecondaryIndexAction",
            {"IndexName": _INDEX_NAME, **units},
            frozenset({"IndexName"}),
            once_needed,
        ),
        "Create": Structure(
            "CreateGlobalSecondaryIndexAction",
            {
                "Projection": _PROJECTION,
                "IndexName": _INDEX_NAME,
                **units,
                "KeySchema": index_keys,
            },
            frozenset({"Projection", "IndexName", "KeySchema"}),
            once_needed,
        ),
        "Delete": structure("DeleteGlobalSecondaryIndexAction", {"IndexName": _INDEX_NAME}, ("IndexName",)),
    }
    update: Members = {
        "TableName": _control_name(is_checked=not classic),
        "ProvisionedThroughput": _UNITS,
        "BillingMode": _BILLING,
        "GlobalSecondaryIndexUpdates": Sequence(structure("GlobalSecondaryIndexUpdate", updates)),
        "AttributeDefinitions": Sequence(definition),
        **settings,
        "ReplicaUpdates": REPLICA_UPDATES,
        "MultiRegionConsistency": one_of("EVENTUAL", "STRONG"),
        "GlobalTableWitnessUpdates": WITNESS_UPDATES,
        "DisassociationProtectionEnabled": Flag(),
        "VectorIndexUpdates": _VECTOR_INDEX_UPDATES,
    }
    create_shape = structure("CreateTableInput", create, _NEEDED_TO_CREATE)
    return {
        "CreateTable": Request(create_shape, "TableName", classic, "TableName"),
        "UpdateTable": Request(structure("UpdateTableInput", update), "TableName", classic),
        "DeleteTable": _named_table(classic, "DeleteTableInput"),
        "DescribeTable": _named_table(classic, "DescribeTableInput"),
        "ListTables": Request(
            structure(
                "ListTablesInput",
                {
                    "Limit": Number("Integer", 1, limits.LIST_TABLES_NAMES),
                    "ExclusiveStartTableName": Text(pattern=NAME_PATTERN, minimum=3, maximum=255),
                },
            )
        ),
    }


_NEEDED_TO_CREATE = ("AttributeDefinitions", "KeySchema")
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


def table_creation_parameters(style: str) -> Structure:
    """What ImportTable may say of its table: some members of CreateTable."""
    known = _table_operations(style)["CreateTable"].shape.members
    members = {name: known[name] for name in _OF_IMPORTED_TABLES}
    members["TableName"] = Text(pattern=NAME_PATTERN, minimum=3, maximum=limits.TABLE_NAME_CHARACTERS)
    return structure("TableCreationParameters", members, ("TableName", *_NEEDED_TO_CREATE))


def _control_name(is_checked: bool) -> Text:
    """A table's name in the control plane. In the classic style its length has a sentence of its own, except in CreateTable
    (`Request.tells_length`). Today it is a constraint as any other (ack-api-quirks 448 and 457, two regions, October 2026)."""
    minimum, maximum = (3, limits.TABLE_NAME_CHARACTERS) if is_checked else (None, None)
    return Text(pattern=NAME_PATTERN, minimum=minimum, maximum=maximum, instead=TABLE_ARN)


def _named_table(
    classic: bool, java: str, members: Members | None = None, required: Iterable[str] = ()
) -> Request:
    members = {"TableName": _control_name(is_checked=not classic), **(members or {})}
    return Request(structure(java, members, required), "TableName", classic)


def _described(style: str) -> dict[str, Request]:
    classic = style == CLASSIC
    spec = structure(
        "TimeToLiveSpecification",
        {"AttributeName": Text(minimum=1, maximum=limits.TTL_NAME_CHARACTERS), "Enabled": Flag()},
        ("Enabled", "AttributeName"),
    )
    return {
        "DescribeLimits": Request(structure("DescribeLimitsInput", {})),
        "DescribeEndpoints": Request(structure("DescribeEndpointsRequest", {})),
        "DescribeTimeToLive": _named_table(classic, "DescribeTimeToLiveInput"),
        "UpdateTimeToLive": _named_table(
            classic, "UpdateTimeToLiveInput", {"TimeToLiveSpecification": spec}, ("TimeToLiveSpecification",)
        ),
        "PutResourcePolicy": Request(
            structure(
                "PutResourcePolicyInput",
                {
                    "ResourceArn": _RESOURCE_ARN,
                    "Policy": TEXT,
                    "ExpectedRevisionId": _REVISION,
                    "ConfirmRemoveSelfResourceAccess": Flag(),
                },
                ("ResourceArn", "Policy"),
            )
        ),
        "DeleteResourcePolicy": Request(
            structure(
                "DeleteResourcePolicyInput",
                {"ResourceArn": _RESOURCE_ARN, "ExpectedRevisionId": _REVISION},
                ("ResourceArn",),
            )
        ),
        "GetResourcePolicy": Request(
            structure("GetResourcePolicyInput", {"ResourceArn": _RESOURCE_ARN}, ("ResourceArn",))
        ),
    }


def _copies() -> dict[str, Request]:
    """Continuous backups, backups and restores."""
    table: Members = {"TableName": TABLE_NAME}
    # A short one is no ARN of a backup, and is told so (ack-api-quirks 457).
    backup: Members = {"BackupArn": Text(maximum=1024)}
    name = Text(pattern=NAME_PATTERN, minimum=3, maximum=255)
    recovery = structure(
        "PointInTimeRecoverySpecification",
        {
            "PointInTimeRecoveryEnabled": Flag(),
            "RecoveryPeriodInDays": Number("Integer", 1, RECOVERY_DAYS),
        },
        ("PointInTimeRecoveryEnabled",),
    )
    listed: Members = {
        **table,
        "Limit": Number("Integer", 1, 100),
        "TimeRangeLowerBound": Number("Double"),
        "TimeRangeUpperBound": Number("Double"),
        "ExclusiveStartBackupArn": Text(minimum=37, maximum=1024),
        "BackupType": one_of("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
    }
    local: Members = {"IndexName": _INDEX_NAME, "KeySchema": _key_schema(2, True), "Projection": _PROJECTION}
    index: Members = {
        **local,
        "KeySchema": _key_schema(2 * limits.INDEX_KEY_ATTRIBUTES_PER_ROLE, True),
        "ProvisionedThroughput": _UNITS,
        "OnDemandThroughput": _ON_DEMAND,
        "WarmThroughput": _WARM,
    }
    needed = ("IndexName", "KeySchema", "Projection")
    overrides: Members = {
        "TargetTableName": named("TableName"),
        "BillingModeOverride": _BILLING,
        "GlobalSecondaryIndexOverride": Sequence(structure("GlobalSecondaryIndex", index, needed)),
        "LocalSecondaryIndexOverride": Sequence(structure("LocalSecondaryIndex", local, needed)),
        "VectorIndexOverride": _VECTOR_INDEXES,
        "ProvisionedThroughputOverride": _UNITS,
        "OnDemandThroughputOverride": _ON_DEMAND,
        "SSESpecificationOverride": _ENCRYPTION,
    }
    moment: Members = {
        "SourceTableArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
        "SourceTableName": name,
        "UseLatestRestorableTime": Flag(),
        "RestoreDateTime": Number("Double"),
    }
    shapes = {
        "DescribeContinuousBackups": (table, ("TableName",)),
        "UpdateContinuousBackups": (
            {**table, "PointInTimeRecoverySpecification": recovery},
            ("TableName", "PointInTimeRecoverySpecification"),
        ),
        "CreateBackup": (
            {**table, "BackupName": name},
            ("TableName", "BackupName"),
        ),
        "DescribeBackup": (backup, ("BackupArn",)),
        "DeleteBackup": (backup, ("BackupArn",)),
        "ListBackups": (listed, ()),
        "RestoreTableFromBackup": ({**backup, **overrides}, ("BackupArn", "TargetTableName")),
        "RestoreTableToPointInTime": ({**moment, **overrides}, ("TargetTableName",)),
    }
    return {
        operation: Request(structure(f"{operation}Input", members, required))
        for operation, (members, required) in shapes.items()
    }


def _tag_operations() -> dict[str, Request]:
    """An absent ResourceArn, Tags or TagKeys is resource_rules.py's business: the service looks at the ARN first."""
    return {
        "TagResource": Request(structure("TagResourceInput", {"ResourceArn": TEXT, "Tags": Sequence(_TAG)})),
        "UntagResource": Request(
            structure("UntagResourceInput", {"ResourceArn": TEXT, "TagKeys": Sequence(TEXT)})
        ),
        "ListTagsOfResource": Request(
            structure("ListTagsOfResourceInput", {"ResourceArn": TEXT, "NextToken": TEXT})
        ),
    }


def _streams() -> dict[str, Request]:
    position = one_of("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP")
    return {
        "ListStreams": Request(
            structure(
                "ListStreamsInput",
                {
                    "TableName": NAME_OR_ARN,
                    "Limit": _INTEGER_FROM_1,
                    "ExclusiveStartStreamArn": _STREAM_ARN,
                },
            )
        ),
        "DescribeStream": Request(
            structure(
                "DescribeStreamInput",
                {
                    "StreamArn": _STREAM_ARN,
                    "Limit": _INTEGER_FROM_1,
                    "ExclusiveStartShardId": _SHARD_ID,
                    "ShardFilter": Structure(
                        "ShardFilter", {"Type": one_of("CHILD_SHARDS"), "ShardId": _SHARD_ID}
                    ),
                },
                ("StreamArn",),
            )
        ),
        "GetShardIterator": Request(
            structure(
                "GetShardIteratorInput",
                {
                    "StreamArn": _STREAM_ARN,
                    "ShardId": _SHARD_ID,
                    "ShardIteratorType": position,
                    "SequenceNumber": Text(minimum=21, maximum=40),
                    "Timestamp": Number("Double"),
                },
                ("StreamArn", "ShardId", "ShardIteratorType"),
            )
        ),
        "GetRecords": Request(
            structure(
                "GetRecordsInput",
                {"ShardIterator": Text(minimum=1, maximum=2048), "Limit": _INTEGER_FROM_1},
                ("ShardIterator",),
            )
        ),
    }

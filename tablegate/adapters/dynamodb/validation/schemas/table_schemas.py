"""Inputs of the operations on tables, as data.

Members are in the service's order of checks. Sources: see operation_schemas.py.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas import table_parts
from tablegate.adapters.dynamodb.validation.schemas.replication_schemas import (
    REPLICA_UPDATES,
    WITNESS_UPDATES,
)
from tablegate.adapters.dynamodb.validation.schemas.resource_schemas import TAG
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    NAME,
    NAME_PATTERN,
    TABLE_ARN,
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


def table_requests(is_classic: bool) -> dict[str, Request]:
    """Return the inputs of operations on tables, today's or the first decade's."""
    creation = Structure("CreateTableInput", _creation(is_classic), _NEEDED_TO_CREATE)
    return {
        "CreateTable": Request(creation, "TableName", is_classic, "TableName"),
        "UpdateTable": _named_table(is_classic, "UpdateTableInput", _update(is_classic)),
        "DeleteTable": _named_table(is_classic, "DeleteTableInput"),
        "DescribeTable": _named_table(is_classic, "DescribeTableInput"),
        "ListTables": Request(Structure("ListTablesInput", _LISTED)),
        "DescribeLimits": Request(Structure("DescribeLimitsInput", {})),
        "DescribeEndpoints": Request(Structure("DescribeEndpointsRequest", {})),
        "DescribeTimeToLive": _named_table(is_classic, "DescribeTimeToLiveInput"),
        "UpdateTimeToLive": _named_table(
            is_classic,
            "UpdateTimeToLiveInput",
            {"TimeToLiveSpecification": _EXPIRY},
            ("TimeToLiveSpecification",),
        ),
    }


def _creation(is_classic: bool) -> Members:
    is_typed = not is_classic
    return {
        "AttributeDefinitions": _DEFINITIONS,
        "TableName": _control_name(is_checked=True),
        **_BILLING,
        "ProvisionedThroughput": table_parts.UNITS,
        "KeySchema": table_parts.key_schema(),
        "LocalSecondaryIndexes": table_parts.local_indexes(is_typed),
        "GlobalSecondaryIndexes": table_parts.global_indexes(is_typed),
        **_SETTINGS,
        "Tags": Sequence(TAG),
        "ResourcePolicy": TEXT,
        "GlobalTableSourceArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
        "VectorIndexes": table_parts.VECTOR_INDEXES,
    }


def _update(is_classic: bool) -> Members:
    return {
        "ProvisionedThroughput": table_parts.UNITS,
        **_BILLING,
        "GlobalSecondaryIndexUpdates": _index_updates(is_typed=not is_classic),
        "AttributeDefinitions": _DEFINITIONS,
        **_SETTINGS,
        "ReplicaUpdates": REPLICA_UPDATES,
        "MultiRegionConsistency": one_of("EVENTUAL", "STRONG"),
        "GlobalTableWitnessUpdates": WITNESS_UPDATES,
        "DisassociationProtectionEnabled": Boolean(),
        "VectorIndexUpdates": table_parts.VECTOR_INDEX_UPDATES,
    }


def _index_updates(is_typed: bool) -> Sequence:
    once_needed = ("ProvisionedThroughput",)
    update: Members = {"IndexName": NAME, **table_parts.THROUGHPUT}
    create: Members = {
        "Projection": table_parts.PROJECTION,
        "IndexName": NAME,
        **table_parts.THROUGHPUT,
        "KeySchema": table_parts.global_key_schema(is_typed),
    }
    required = ("Projection", "IndexName", "KeySchema")
    actions: Members = {
        "Update": Structure("UpdateGlobalSecondaryIndexAction", update, ("IndexName",), once_needed),
        "Create": Structure("CreateGlobalSecondaryIndexAction", create, required, once_needed),
        "Delete": Structure("DeleteGlobalSecondaryIndexAction", {"IndexName": NAME}, ("IndexName",)),
    }
    return Sequence(Structure("GlobalSecondaryIndexUpdate", actions))


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


def table_creation_parameters(is_classic: bool) -> Structure:
    """Return the table parameters of ImportTable: some members of CreateTable."""
    all_members = _creation(is_classic)
    members = {name: all_members[name] for name in _OF_IMPORTED_TABLES}
    members["TableName"] = Text(pattern=NAME_PATTERN, minimum=3, maximum=limits.TABLE_NAME_CHARACTERS)
    return Structure("TableCreationParameters", members, ("TableName", *_NEEDED_TO_CREATE))


def _control_name(is_checked: bool) -> Text:
    """Return the shape of a table's name in the control plane.

    In the first decade a wrong length had its own error text, except in CreateTable (`Request.reports_length`).
    Today it is a constraint like any other (ack-api-quirks 448 and 457, two regions, October 2026).
    """
    minimum, maximum = (3, limits.TABLE_NAME_CHARACTERS) if is_checked else (None, None)
    return Text(pattern=NAME_PATTERN, minimum=minimum, maximum=maximum, instead=TABLE_ARN)


def _named_table(
    is_classic: bool, java: str, members: Members | None = None, required: tuple[str, ...] = ()
) -> Request:
    members = {"TableName": _control_name(is_checked=not is_classic), **(members or {})}
    return Request(Structure(java, members, required), "TableName", is_classic)

"""What each operation takes, as data, and the entry point of the checks: `check(operation, body, style)`.

Knows members, their constraints, and the order in which the service looks at them. How a shape is checked is in
checking.py and refusing.py; what members mean together is in rules.py and table_rules.py.

Sources: members and constraints from botocore 1.44.5 service-2.json; the order and the enum lists from dynalite (captured
from the service, which still looks at members in this order: paritysuite, September 2026).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from adapters.dynamodb.validation import full_validator, item_rules, table_rules
from adapters.dynamodb.validation.fast_validator import Checker, Rule, fast_check, leave_to_full_validator
from adapters.dynamodb.validation.rule_context import RuleContext
from adapters.dynamodb.validation.schema_types import (
    ITEM,
    AttributeValue,
    Flag,
    Mapping,
    Number,
    Request,
    Sequence,
    Shape,
    Structure,
    Text,
)
from adapters.dynamodb.wire import limits
from adapters.dynamodb.wire.messages import CLASSIC, LATEST
from gateway.model import fast_paths

Members = dict[str, Shape]


def check(operation: str, body: Any, style: str) -> dict[str, Any]:
    """The cleaned input of an operation: known members only, of the right JSON types, nulls dropped, attribute values in
    canonical form. `body` is decoded JSON and is changed in place. Items of puts become `values.Item`.

    Raises ServiceError: SerializationException for JSON types, then ValidationException for member constraints and for
    what needs no table, in the order of the style. `operation` must be one of OPERATIONS.
    """
    return checker(operation, style)(body, style)


def shorten(operation: str, body: Any, style: str) -> None:
    """Drop, in place, what is beyond what the operation may have: for large bodies, before `check`."""
    if operation in _requests(style):
        full_validator.shorten(_requests(style)[operation].shape, body)


@cache
def checker(operation: str, style: str) -> Checker:
    """What `check` calls: the checks of one operation, ready to be called with a body and the style."""
    request = _requests(style)[operation]
    contexts = RuleContext(operation, style, good=False), RuleContext(operation, style, good=True)
    fast = fast_paths.choose(fast_check(_strict(request)), leave_to_full_validator)
    unruled = item_rules.UNRULED.get(operation, frozenset())
    return Checker(operation, request, fast, _RULES.get(operation), contexts, unruled)


def _strict(request: Request) -> Structure:
    """The request's shape, with what is told alone (`Request.named`) among the constraints."""
    shape = request.shape
    if not request.named:
        return shape
    name = Text(pattern=_NAME_PATTERN, minimum=3, maximum=255, instead=_TABLE_ARN)
    return _structure(shape.java, {**shape.members, request.named: name}, {*shape.required, request.named})


# Parts

_NAME_PATTERN = "[a-zA-Z0-9_.-]+"
_TABLE_ARN = r"arn:[a-z-]+:dynamodb:[^:/]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255}"


def _one_of(*values: str) -> Text:
    return Text(enum=values)


_TEXT = Text()
_INTEGER_FROM_1 = Number("Integer", 1)
_LONG = Number("Long")
_LONG_FROM_1 = Number("Long", 1)
_INDEX_NAME = Text(pattern=_NAME_PATTERN, minimum=3, maximum=255)
_CAPACITY = _one_of("INDEXES", "TOTAL", "NONE")
_COLLECTION_METRICS = _one_of("SIZE", "NONE")
_RETURN_VALUES = _one_of("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
_ON_FAILURE = _one_of("ALL_OLD", "NONE")
_AND_OR = _one_of("OR", "AND")
_SELECT = _one_of("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_COMPARISON = _one_of(
    "IN",
    "NULL",
    "BETWEEN",
    "LT",
    "NOT_CONTAINS",
    "EQ",
    "GT",
    "NOT_NULL",
    "NE",
    "LE",
    "BEGINS_WITH",
    "GE",
    "CONTAINS",
)
_UPDATE_ACTION = _one_of("ADD", "PUT", "DELETE")
_NAMES = Mapping(_TEXT)
_ATTRIBUTES_TO_GET = Sequence(_TEXT, 1, 255)
_EXPECTED = Mapping(
    Structure(
        "ExpectedAttributeValue",
        {
            "AttributeValueList": Sequence(AttributeValue()),
            "ComparisonOperator": _COMPARISON,
            "Exists": Flag(),
            "Value": AttributeValue(),
        },
    )
)
_CONDITIONS = Mapping(
    Structure(
        "Condition",
        {"AttributeValueList": Sequence(AttributeValue()), "ComparisonOperator": _COMPARISON},
        frozenset({"ComparisonOperator"}),
    )
)
_PLACEHOLDERS: Members = {"ExpressionAttributeValues": ITEM, "ExpressionAttributeNames": _NAMES}
_UNITS_MEMBERS: Members = {"WriteCapacityUnits": _LONG_FROM_1, "ReadCapacityUnits": _LONG_FROM_1}
_UNITS = Structure("ProvisionedThroughput", _UNITS_MEMBERS, frozenset(_UNITS_MEMBERS))
_ON_DEMAND = Structure("OnDemandThroughput", {"MaxReadRequestUnits": _LONG, "MaxWriteRequestUnits": _LONG})
_WARM = Structure("WarmThroughput", {"ReadUnitsPerSecond": _LONG, "WriteUnitsPerSecond": _LONG})
_KEY_NAME = Text(minimum=1, maximum=limits.KEY_NAME_CHARACTERS)
_STREAM = Structure(
    "StreamSpecification",
    {
        "StreamEnabled": Flag(),
        "StreamViewType": _one_of("NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"),
    },
    frozenset({"StreamEnabled"}),
)
_ENCRYPTION = Structure(
    "SSESpecification", {"Enabled": Flag(), "SSEType": _one_of("AES256", "KMS"), "KMSMasterKeyId": _TEXT}
)
_TAG = Structure("Tag", {"Key": _TEXT, "Value": _TEXT})  # looked at in tags.py, with texts of its own
_TABLE_CLASS = _one_of("STANDARD", "STANDARD_INFREQUENT_ACCESS")
_BILLING = _one_of("PROVISIONED", "PAY_PER_REQUEST")
_PROJECTION = Structure(
    "Projection",
    {
        "ProjectionType": _one_of("ALL", "INCLUDE", "KEYS_ONLY"),
        "NonKeyAttributes": Sequence(Text(minimum=1, maximum=limits.PROJECTED_NAME_CHARACTERS), 1),
    },
)
_RESOURCE_ARN = Text(minimum=1, maximum=1283)
_STREAM_ARN = Text(minimum=37, maximum=1024)
_SHARD_ID = Text(minimum=28, maximum=65)


def _key_schema(longest: int, typed: bool) -> Sequence:
    """`typed`: whether KeyType is looked at here; the service leaves that of indexes to later checks (classic)."""
    key_type = _one_of("HASH", "RANGE") if typed else _TEXT
    element = Structure(
        "KeySchemaElement",
        {"AttributeName": _KEY_NAME, "KeyType": key_type},
        frozenset({"AttributeName", "KeyType"}),
    )
    return Sequence(element, 1, longest)


# A table's name where an item operation wants it. Since 2024 an ARN does as well, and the minimum that an empty name is told is
# the ARN's; two characters are refused as ever (test_item.py test_item_operations_improper_named_table).
_TABLE_NAME = Text(
    pattern=_NAME_PATTERN,
    minimum=3,
    maximum=255,
    accepts="[a-zA-Z0-9_.-]*",
    instead=_TABLE_ARN,
    empty_minimum=1,
)
# The same with what Query and Scan of the first decade said of an empty name (dynalite).
_OLD_TABLE_NAME = Text(pattern=_NAME_PATTERN, minimum=3, maximum=255, instead=_TABLE_ARN)


def _structure(java: str, members: Members, required: Iterable[str] = ()) -> Structure:
    return Structure(java, members, frozenset(required))


# Requests


@cache
def _requests(style: str) -> dict[str, Request]:
    return {
        **_item_operations(_TABLE_NAME),
        **_read_operations(_OLD_TABLE_NAME if style == CLASSIC else _TABLE_NAME),
        **_batch_operations(_TABLE_NAME, style),
        **_transactions(_TABLE_NAME),
        **_statements(),
        **_table_operations(style),
        **_described(_TABLE_NAME),
        **_tag_operations(),
        **_streams(),
    }


def _item_operations(table: Text) -> dict[str, Request]:
    conditional: Members = {
        "ConditionalOperator": _AND_OR,
        "Expected": _EXPECTED,
        "ConditionExpression": _TEXT,
        **_PLACEHOLDERS,
        "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
    }
    put: Members = {
        "ReturnConsumedCapacity": _CAPACITY,
        "TableName": table,
        "Item": ITEM,
        "ReturnValues": _RETURN_VALUES,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        **conditional,
    }
    update: Members = {
        "ReturnConsumedCapacity": _CAPACITY,
        "TableName": table,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "ReturnValues": _RETURN_VALUES,
        "ConditionalOperator": _AND_OR,  # told before the key (paritysuite updateItem.test.ts, 2026-10-09)
        "Key": ITEM,
        **conditional,
        "AttributeUpdates": Mapping(
            Structure("AttributeValueUpdate", {"Action": _UPDATE_ACTION, "Value": AttributeValue()})
        ),
        "UpdateExpression": _TEXT,
    }
    delete: Members = {
        "ReturnConsumedCapacity": _CAPACITY,
        "TableName": table,
        "ReturnValues": _RETURN_VALUES,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "Key": ITEM,
        **conditional,
    }
    get: Members = {
        "ReturnConsumedCapacity": _CAPACITY,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "TableName": table,
        "Key": ITEM,
        "ConsistentRead": Flag(),
        "ProjectionExpression": _TEXT,
        "ExpressionAttributeNames": _NAMES,
    }
    return {
        "PutItem": Request(_structure("PutItemInput", put, ("TableName", "Item"))),
        "UpdateItem": Request(_structure("UpdateItemInput", update, ("TableName", "Key"))),
        "DeleteItem": Request(_structure("DeleteItemInput", delete, ("TableName", "Key"))),
        "GetItem": Request(_structure("GetItemInput", get, ("TableName", "Key"))),
    }


def _read_operations(table: Text) -> dict[str, Request]:
    query: Members = {
        "Select": _SELECT,
        "IndexName": _INDEX_NAME,
        "ReturnConsumedCapacity": _CAPACITY,
        "QueryFilter": _CONDITIONS,
        "TableName": table,
        "ConditionalOperator": _AND_OR,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "Limit": _INTEGER_FROM_1,
        "KeyConditions": _CONDITIONS,
        "ExclusiveStartKey": ITEM,
        "ConsistentRead": Flag(),
        "ScanIndexForward": Flag(),
        "KeyConditionExpression": _TEXT,
        "FilterExpression": _TEXT,
        "ProjectionExpression": _TEXT,
        **_PLACEHOLDERS,
    }
    scan: Members = {
        "Select": _SELECT,
        "IndexName": _INDEX_NAME,
        "TotalSegments": Number("Integer", 1, limits.SCAN_SEGMENTS),
        "ReturnConsumedCapacity": _CAPACITY,
        "TableName": table,
        "ConditionalOperator": _AND_OR,
        "ScanFilter": _CONDITIONS,
        "Segment": Number("Integer", 0, limits.SCAN_SEGMENTS - 1),
        "Limit": _INTEGER_FROM_1,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "ExclusiveStartKey": ITEM,
        "ConsistentRead": Flag(),
        "FilterExpression": _TEXT,
        "ProjectionExpression": _TEXT,
        **_PLACEHOLDERS,
    }
    return {
        "Query": Request(_structure("QueryInput", query, ("TableName",))),
        "Scan": Request(_structure("ScanInput", scan, ("TableName",))),
    }


def _batch_operations(table: Text, style: str) -> dict[str, Request]:
    keys_and_attributes: Members = {
        "Keys": Sequence(ITEM, 1, limits.BATCH_GET_KEYS),
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "ConsistentRead": Flag(),
        "ProjectionExpression": _TEXT,
        "ExpressionAttributeNames": _NAMES,
    }
    write: Members = {
        "DeleteRequest": _structure("DeleteRequest", {"Key": ITEM}, ("Key",)),
        "PutRequest": Structure(
            "PutRequest", {"Item": ITEM}, frozenset({"Item"}), printed=("Item", "WorkloadProfileName")
        ),
    }
    request = Structure("WriteRequest", write, printed=("PutRequest", "DeleteRequest"))
    # Today an empty BatchWriteItem has a sentence of its own (rules.py).
    fewest = 1 if style == CLASSIC else None
    get_map = Mapping(_structure("KeysAndAttributes", keys_and_attributes, ("Keys",)), 1, None, table)
    write_map = Mapping(Sequence(request), fewest, None, table, (1, limits.BATCH_WRITE_REQUESTS))
    get: Members = {"ReturnConsumedCapacity": _CAPACITY, "RequestItems": get_map}
    if style != CLASSIC:  # paritysuite batchOperations.test.ts, two regions, 2026-10-09
        get = dict(reversed(get.items()))
    put: Members = {
        "ReturnConsumedCapacity": _CAPACITY,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "RequestItems": write_map,
    }
    return {
        "BatchGetItem": Request(_structure("BatchGetItemInput", get, ("RequestItems",))),
        "BatchWriteItem": Request(_structure("BatchWriteItemInput", put, ("RequestItems",))),
    }


def _transactions(table: Text) -> dict[str, Request]:
    target: Members = {"Key": ITEM, "TableName": table}
    condition: Members = {
        "ConditionExpression": _TEXT,
        **_PLACEHOLDERS,
        "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
    }
    actions: Members = {
        "ConditionCheck": _structure(
            "ConditionCheck", {**target, **condition}, ("Key", "TableName", "ConditionExpression")
        ),
        "Put": _structure("Put", {"Item": ITEM, "TableName": table, **condition}, ("Item", "TableName")),
        "Delete": _structure("Delete", {**target, **condition}, ("Key", "TableName")),
        "Update": _structure(
            "Update",
            {"Key": ITEM, "UpdateExpression": _TEXT, "TableName": table, **condition},
            ("Key", "UpdateExpression", "TableName"),
        ),
    }
    get = _structure(
        "Get",
        {**target, "ProjectionExpression": _TEXT, "ExpressionAttributeNames": _NAMES},
        ("Key", "TableName"),
    )
    gets = Sequence(_structure("TransactGetItem", {"Get": get}, ("Get",)), 1, limits.TRANSACTION_ACTIONS)
    writes = Sequence(_structure("TransactWriteItem", actions), 1, limits.TRANSACTION_ACTIONS)
    return {
        "TransactGetItems": Request(
            _structure(
                "TransactGetItemsInput",
                {"TransactItems": gets, "ReturnConsumedCapacity": _CAPACITY},
                ("TransactItems",),
            )
        ),
        "TransactWriteItems": Request(
            _structure(
                "TransactWriteItemsInput",
                {
                    # paritysuite transactions.test.ts, two regions, 2026-10-09: the token comes before the enums
                    "ClientRequestToken": Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS),
                    "TransactItems": writes,
                    "ReturnConsumedCapacity": _CAPACITY,
                    "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
                },
                ("TransactItems",),
            )
        ),
    }


def _statements() -> dict[str, Request]:
    statement: Members = {
        "Statement": Text(minimum=1, maximum=limits.STATEMENT_CHARACTERS),
        "Parameters": Sequence(AttributeValue(), 1),
        "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
    }
    capacity: Members = {"ReturnConsumedCapacity": _CAPACITY}
    one = {**statement, "ConsistentRead": Flag()}
    paging: Members = {
        "NextToken": Text(minimum=1, maximum=limits.NEXT_TOKEN_CHARACTERS),
        "Limit": _INTEGER_FROM_1,
    }
    batch = Sequence(_structure("BatchStatementRequest", one, ("Statement",)), 1, limits.BATCH_STATEMENTS)
    transaction = Sequence(
        _structure("ParameterizedStatement", statement, ("Statement",)), 1, limits.TRANSACTION_ACTIONS
    )
    token = Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS)
    return {
        "ExecuteStatement": Request(
            _structure("ExecuteStatementInput", {**one, **paging, **capacity}, ("Statement",))
        ),
        "BatchExecuteStatement": Request(
            _structure("BatchExecuteStatementInput", {"Statements": batch, **capacity}, ("Statements",))
        ),
        "ExecuteTransaction": Request(
            _structure(
                "ExecuteTransactionInput",
                {"TransactStatements": transaction, "ClientRequestToken": token, **capacity},
                ("TransactStatements",),
            )
        ),
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
    definition = _structure(
        "AttributeDefinition",
        {"AttributeName": _KEY_NAME, "AttributeType": _one_of("B", "N", "S")},
        ("AttributeName", "AttributeType"),
    )
    settings: Members = {
        "StreamSpecification": _STREAM,
        "SSESpecification": _ENCRYPTION,
        "TableClass": _TABLE_CLASS,
        "DeletionProtectionEnabled": Flag(),
        "OnDemandThroughput": _ON_DEMAND,
        "WarmThroughput": _WARM,
        "GlobalTableSettingsReplicationMode": _one_of("ENABLED", "DISABLED", "ENABLED_WITH_OVERRIDES"),
    }
    create: Members = {
        "AttributeDefinitions": Sequence(definition),
        "TableName": _control_name(3),
        "BillingMode": _BILLING,
        "ProvisionedThroughput": _UNITS,
        "KeySchema": _key_schema(2, True),
        "LocalSecondaryIndexes": Sequence(
            _structure("LocalSecondaryIndex", local, ("IndexName", "KeySchema", "Projection"))
        ),
        "GlobalSecondaryIndexes": Sequence(
            _structure("GlobalSecondaryIndex", index, ("IndexName", "KeySchema", "Projection"))
        ),
        **settings,
        "Tags": Sequence(_TAG),
        "ResourcePolicy": _TEXT,
        "GlobalTableSourceArn": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
        "VectorIndexes": Sequence(Structure("VectorIndex", {})),
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
        "Delete": _structure("DeleteGlobalSecondaryIndexAction", {"IndexName": _INDEX_NAME}, ("IndexName",)),
    }
    update: Members = {
        "TableName": _control_name(),
        "ProvisionedThroughput": _UNITS,
        "BillingMode": _BILLING,
        "GlobalSecondaryIndexUpdates": Sequence(_structure("GlobalSecondaryIndexUpdate", updates)),
        "AttributeDefinitions": Sequence(definition),
        **settings,
        "ReplicaUpdates": Sequence(Structure("ReplicationGroupUpdate", {}), 1),
        "MultiRegionConsistency": _one_of("EVENTUAL", "STRONG"),
        "GlobalTableWitnessUpdates": Sequence(Structure("GlobalTableWitnessGroupUpdate", {}), 1, 1),
        "DisassociationProtectionEnabled": Flag(),
        "VectorIndexUpdates": Sequence(Structure("VectorIndexUpdate", {})),
    }
    create_shape = _structure("CreateTableInput", create, ("AttributeDefinitions", "KeySchema"))
    return {
        "CreateTable": Request(create_shape, "TableName", classic, "TableName"),
        "UpdateTable": Request(_structure("UpdateTableInput", update), "TableName", True),
        "DeleteTable": _named_table("DeleteTableInput"),
        "DescribeTable": _named_table("DescribeTableInput"),
        "ListTables": Request(
            _structure(
                "ListTablesInput",
                {
                    "Limit": Number("Integer", 1, limits.LIST_TABLES_NAMES),
                    "ExclusiveStartTableName": Text(pattern=_NAME_PATTERN, minimum=3, maximum=255),
                },
            )
        ),
    }


def _control_name(minimum: int | None = None) -> Text:
    """A table's name in the control plane: its length has a sentence of its own (`Request.tells_length`), except in
    today's CreateTable."""
    maximum = None if minimum is None else limits.TABLE_NAME_CHARACTERS
    return Text(pattern=_NAME_PATTERN, minimum=minimum, maximum=maximum, instead=_TABLE_ARN)


def _named_table(java: str, members: Members | None = None, required: Iterable[str] = ()) -> Request:
    return Request(
        _structure(java, {"TableName": _control_name(), **(members or {})}, required), "TableName", True
    )


def _described(table: Text) -> dict[str, Request]:
    spec = _structure(
        "TimeToLiveSpecification",
        {"Enabled": Flag(), "AttributeName": Text(minimum=1, maximum=limits.TTL_NAME_CHARACTERS)},
        ("Enabled", "AttributeName"),
    )
    by_table: Members = {"TableName": table}
    backups: Members = {
        "TableName": table,
        "Limit": Number("Integer", 1, 100),
        "TimeRangeLowerBound": Number("Double"),
        "TimeRangeUpperBound": Number("Double"),
        "ExclusiveStartBackupArn": Text(minimum=37, maximum=1024),
        "BackupType": _one_of("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
    }
    return {
        "DescribeLimits": Request(_structure("DescribeLimitsInput", {})),
        "DescribeEndpoints": Request(_structure("DescribeEndpointsRequest", {})),
        "DescribeTimeToLive": _named_table("DescribeTimeToLiveInput"),
        "UpdateTimeToLive": _named_table(
            "UpdateTimeToLiveInput", {"TimeToLiveSpecification": spec}, ("TimeToLiveSpecification",)
        ),
        "DescribeContinuousBackups": Request(
            _structure("DescribeContinuousBackupsInput", by_table, ("TableName",))
        ),
        "DescribeContributorInsights": Request(
            _structure(
                "DescribeContributorInsightsInput", {**by_table, "IndexName": _INDEX_NAME}, ("TableName",)
            )
        ),
        "DescribeKinesisStreamingDestination": Request(
            _structure("DescribeKinesisStreamingDestinationInput", by_table, ("TableName",))
        ),
        "DescribeTableReplicaAutoScaling": Request(
            _structure("DescribeTableReplicaAutoScalingInput", by_table, ("TableName",))
        ),
        "ListBackups": Request(_structure("ListBackupsInput", backups)),
        **_never_there(),
        "GetResourcePolicy": Request(
            _structure("GetResourcePolicyInput", {"ResourceArn": _RESOURCE_ARN}, ("ResourceArn",))
        ),
    }


def _never_there() -> dict[str, Request]:
    """What is asked about backups, exports, imports and global tables, of which features.py says that there are none."""
    arn = Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS)
    listed: Members = {"TableArn": arn, "NextToken": _TEXT}
    insights: Members = {"TableName": arn, "NextToken": _TEXT, "MaxResults": Number("Integer", None, 100)}
    global_tables: Members = {
        "ExclusiveStartGlobalTableName": _INDEX_NAME,
        "Limit": _INTEGER_FROM_1,
        "RegionName": _TEXT,
    }
    backup: Members = {"BackupArn": Text(minimum=37, maximum=1024)}
    exports: Members = {**listed, "MaxResults": Number("Integer", 1, 25)}
    imports: Members = {**listed, "PageSize": Number("Integer", 1, 25)}
    return {
        "ListExports": Request(_structure("ListExportsInput", exports)),
        "ListImports": Request(_structure("ListImportsInput", imports)),
        "ListContributorInsights": Request(_structure("ListContributorInsightsInput", insights)),
        "ListGlobalTables": Request(_structure("ListGlobalTablesInput", global_tables)),
        "DescribeBackup": Request(_structure("DescribeBackupInput", backup, ("BackupArn",))),
        "DescribeGlobalTable": Request(
            _structure("DescribeGlobalTableInput", {"GlobalTableName": _INDEX_NAME}, ("GlobalTableName",))
        ),
    }


def _tag_operations() -> dict[str, Request]:
    """An absent ResourceArn, Tags or TagKeys is table_rules.py's business: the service looks at the ARN first."""
    return {
        "TagResource": Request(
            _structure("TagResourceInput", {"ResourceArn": _TEXT, "Tags": Sequence(_TAG)})
        ),
        "UntagResource": Request(
            _structure("UntagResourceInput", {"ResourceArn": _TEXT, "TagKeys": Sequence(_TEXT)})
        ),
        "ListTagsOfResource": Request(
            _structure("ListTagsOfResourceInput", {"ResourceArn": _TEXT, "NextToken": _TEXT})
        ),
    }


def _streams() -> dict[str, Request]:
    position = _one_of(
        "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP"
    )
    return {
        "ListStreams": Request(
            _structure(
                "ListStreamsInput",
                {
                    "TableName": Text(pattern=_NAME_PATTERN, minimum=3, maximum=255, instead=_TABLE_ARN),
                    "Limit": _INTEGER_FROM_1,
                    "ExclusiveStartStreamArn": _STREAM_ARN,
                },
            )
        ),
        "DescribeStream": Request(
            _structure(
                "DescribeStreamInput",
                {
                    "StreamArn": _STREAM_ARN,
                    "Limit": _INTEGER_FROM_1,
                    "ExclusiveStartShardId": _SHARD_ID,
                    "ShardFilter": Structure(
                        "ShardFilter", {"Type": _one_of("CHILD_SHARDS"), "ShardId": _SHARD_ID}
                    ),
                },
                ("StreamArn",),
            )
        ),
        "GetShardIterator": Request(
            _structure(
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
            _structure(
                "GetRecordsInput",
                {"ShardIterator": Text(minimum=1, maximum=2048), "Limit": _INTEGER_FROM_1},
                ("ShardIterator",),
            )
        ),
    }


_RULES: dict[str, Rule] = {
    "PutItem": item_rules.put_item,
    "UpdateItem": item_rules.update_item,
    "DeleteItem": item_rules.delete_item,
    "GetItem": item_rules.get_item,
    "Query": item_rules.query,
    "Scan": item_rules.scan,
    "BatchGetItem": item_rules.batch_get,
    "BatchWriteItem": item_rules.batch_write,
    "TransactGetItems": item_rules.transact_get,
    "TransactWriteItems": item_rules.transact_write,
    "CreateTable": table_rules.create_table,
    "UpdateTable": table_rules.update_table,
    "TagResource": table_rules.tag_resource,
    "UntagResource": table_rules.untag_resource,
    "ListTagsOfResource": table_rules.list_tags,
    "GetShardIterator": table_rules.get_shard_iterator,
}

OPERATIONS: frozenset[str] = frozenset(_requests(LATEST))
"""Every operation that `check` knows."""

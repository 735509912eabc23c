"""Inputs of the operations on items, of batches and of transactions, as data.

Members are in the service's order of checks. Sources: see operation.py.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.shapes import (
    CAPACITY,
    COLLECTION_METRICS,
    INTEGER_FROM_1,
    ITEM,
    NAME,
    NAMES,
    ON_FAILURE,
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    AttributeValue,
    Boolean,
    Mapping,
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

# Items


_RETURN_VALUES = one_of("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
_AND_OR = one_of("OR", "AND")
_SELECT = one_of("SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES")
_COMPARISON = one_of(
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
_UPDATE_ACTION = one_of("ADD", "PUT", "DELETE")
_ATTRIBUTES_TO_GET = Sequence(TEXT, 1, 255)
_EXPECTED = Mapping(
    Structure(
        "ExpectedAttributeValue",
        {
            "AttributeValueList": Sequence(AttributeValue()),
            "ComparisonOperator": _COMPARISON,
            "Exists": Boolean(),
            "Value": AttributeValue(),
        },
    )
)
_CONDITIONS = Mapping(
    Structure(
        "Condition",
        {"AttributeValueList": Sequence(AttributeValue()), "ComparisonOperator": _COMPARISON},
        ("ComparisonOperator",),
    )
)


# Single items

_CONDITIONAL: Members = {
    "ConditionalOperator": _AND_OR,
    "Expected": _EXPECTED,
    "ConditionExpression": TEXT,
    **PLACEHOLDERS,
    "ReturnValuesOnConditionCheckFailure": ON_FAILURE,
}
_PUT: Members = {
    "ReturnConsumedCapacity": CAPACITY,
    "TableName": TABLE_NAME,
    "Item": ITEM,
    "ReturnValues": _RETURN_VALUES,
    "ReturnItemCollectionMetrics": COLLECTION_METRICS,
    **_CONDITIONAL,
}
_UPDATE: Members = {
    "ReturnConsumedCapacity": CAPACITY,
    "TableName": TABLE_NAME,
    "ReturnItemCollectionMetrics": COLLECTION_METRICS,
    "ReturnValues": _RETURN_VALUES,
    "ConditionalOperator": _AND_OR,  # reported before the key (paritysuite updateItem.test.ts, 2026-10-09)
    "Key": ITEM,
    **_CONDITIONAL,
    "AttributeUpdates": Mapping(
        Structure("AttributeValueUpdate", {"Action": _UPDATE_ACTION, "Value": AttributeValue()})
    ),
    "UpdateExpression": TEXT,
}
_DELETE: Members = {
    "ReturnConsumedCapacity": CAPACITY,
    "TableName": TABLE_NAME,
    "ReturnValues": _RETURN_VALUES,
    "ReturnItemCollectionMetrics": COLLECTION_METRICS,
    "Key": ITEM,
    **_CONDITIONAL,
}
_GET: Members = {
    "ReturnConsumedCapacity": CAPACITY,
    "AttributesToGet": _ATTRIBUTES_TO_GET,
    "TableName": TABLE_NAME,
    "Key": ITEM,
    "ConsistentRead": Boolean(),
    "ProjectionExpression": TEXT,
    "ExpressionAttributeNames": NAMES,
}

# Reads

_QUERY: Members = {
    "Select": _SELECT,
    "IndexName": NAME,
    "ReturnConsumedCapacity": CAPACITY,
    "QueryFilter": _CONDITIONS,
    "TableName": TABLE_NAME,
    "ConditionalOperator": _AND_OR,
    "AttributesToGet": _ATTRIBUTES_TO_GET,
    "Limit": INTEGER_FROM_1,
    "KeyConditions": _CONDITIONS,
    "ExclusiveStartKey": ITEM,
    "ConsistentRead": Boolean(),
    "ScanIndexForward": Boolean(),
    "KeyConditionExpression": TEXT,
    "FilterExpression": TEXT,
    "ProjectionExpression": TEXT,
    **PLACEHOLDERS,
}
_SCAN: Members = {
    "Select": _SELECT,
    "IndexName": NAME,
    "TotalSegments": Number("Integer", 1, limits.SCAN_SEGMENTS),
    "ReturnConsumedCapacity": CAPACITY,
    "TableName": TABLE_NAME,
    "ConditionalOperator": _AND_OR,
    "ScanFilter": _CONDITIONS,
    "Segment": Number("Integer", 0, limits.SCAN_SEGMENTS - 1),
    "Limit": INTEGER_FROM_1,
    "AttributesToGet": _ATTRIBUTES_TO_GET,
    "ExclusiveStartKey": ITEM,
    "ConsistentRead": Boolean(),
    "FilterExpression": TEXT,
    "ProjectionExpression": TEXT,
    **PLACEHOLDERS,
}

_SHAPES: Shapes = {
    "PutItem": (_PUT, ("TableName", "Item")),
    "UpdateItem": (_UPDATE, ("TableName", "Key")),
    "DeleteItem": (_DELETE, ("TableName", "Key")),
    "GetItem": (_GET, ("TableName", "Key")),
    "Query": (_QUERY, ("TableName",)),
    "Scan": (_SCAN, ("TableName",)),
}


def _batches() -> dict[str, Request]:
    keys_and_attributes: Members = {
        "Keys": Sequence(ITEM, 1, limits.BATCH_GET_KEYS),
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "ConsistentRead": Boolean(),
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": NAMES,
    }
    write: Members = {
        "DeleteRequest": Structure("DeleteRequest", {"Key": ITEM}, ("Key",)),
        "PutRequest": Structure(
            "PutRequest", {"Item": ITEM}, ("Item",), printed=("Item", "WorkloadProfileName")
        ),
    }
    request = Structure("WriteRequest", write, printed=("PutRequest", "DeleteRequest"))
    # An empty BatchWriteItem has its own error text (item_rules.py).
    get_map = Mapping(Structure("KeysAndAttributes", keys_and_attributes, ("Keys",)), 1, None, TABLE_NAME)
    write_map = Mapping(Sequence(request), None, None, TABLE_NAME, (1, limits.BATCH_WRITE_REQUESTS))
    # The order is that of paritysuite batchOperations.test.ts, two regions, 2026-10-09.
    get: Members = {"RequestItems": get_map, "ReturnConsumedCapacity": CAPACITY}
    put: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "ReturnItemCollectionMetrics": COLLECTION_METRICS,
        "RequestItems": write_map,
    }
    return {
        "BatchGetItem": Request(Structure("BatchGetItemInput", get, ("RequestItems",))),
        "BatchWriteItem": Request(Structure("BatchWriteItemInput", put, ("RequestItems",))),
    }


ITEM_REQUESTS = {**requests_of(_SHAPES), **_batches()}


# Transactions


_TARGET: Members = {"Key": ITEM, "TableName": TABLE_NAME}
_CONDITION: Members = {
    "ConditionExpression": TEXT,
    **PLACEHOLDERS,
    "ReturnValuesOnConditionCheckFailure": ON_FAILURE,
}
_ACTIONS: Members = {
    "ConditionCheck": Structure(
        "ConditionCheck", {**_TARGET, **_CONDITION}, ("Key", "TableName", "ConditionExpression")
    ),
    "Put": Structure("Put", {"Item": ITEM, "TableName": TABLE_NAME, **_CONDITION}, ("Item", "TableName")),
    "Delete": Structure("Delete", {**_TARGET, **_CONDITION}, ("Key", "TableName")),
    "Update": Structure(
        "Update",
        {"Key": ITEM, "UpdateExpression": TEXT, "TableName": TABLE_NAME, **_CONDITION},
        ("Key", "UpdateExpression", "TableName"),
    ),
}
_GET_ACTION = Structure(
    "Get",
    {**_TARGET, "ProjectionExpression": TEXT, "ExpressionAttributeNames": NAMES},
    ("Key", "TableName"),
)
_GETS = Sequence(Structure("TransactGetItem", {"Get": _GET_ACTION}, ("Get",)), 1, limits.TRANSACTION_ACTIONS)
_WRITES = Sequence(Structure("TransactWriteItem", _ACTIONS), 1, limits.TRANSACTION_ACTIONS)
_TRANSACTIONS: Shapes = {
    "TransactGetItems": ({"TransactItems": _GETS, "ReturnConsumedCapacity": CAPACITY}, ("TransactItems",)),
    "TransactWriteItems": (
        {
            # paritysuite transactions.test.ts, two regions, 2026-10-09: the token comes before the enums
            "ClientRequestToken": Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS),
            "TransactItems": _WRITES,
            "ReturnConsumedCapacity": CAPACITY,
            "ReturnItemCollectionMetrics": COLLECTION_METRICS,
        },
        ("TransactItems",),
    ),
}
TRANSACTION_REQUESTS = requests_of(_TRANSACTIONS)
"""The inputs of these operations."""

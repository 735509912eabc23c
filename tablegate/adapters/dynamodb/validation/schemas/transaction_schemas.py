"""Inputs of transactions, as data. Members are in the service's order of checks."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    CAPACITY,
    COLLECTION_METRICS,
    NAMES,
    ON_FAILURE,
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    Members,
    Shapes,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import ITEM, Sequence, Structure, Text
from tablegate.adapters.dynamodb.wire import limits

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
_SHAPES: Shapes = {
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
TRANSACTION_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""

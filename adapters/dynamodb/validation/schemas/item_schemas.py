"""What the operations on items take, as data: single items, reads, batches, transactions, statements.

The order of members is that in which the service looks at them. Sources: see operation_schemas.py.
"""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    CAPACITY,
    NAME_OR_ARN,
    NAME_PATTERN,
    NAMES,
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    Members,
    one_of,
    structure,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    ITEM,
    AttributeValue,
    Flag,
    Mapping,
    Number,
    Request,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import CLASSIC

_INTEGER_FROM_1 = Number("Integer", 1)
_INDEX_NAME = Text(pattern=NAME_PATTERN, minimum=3, maximum=255)
_COLLECTION_METRICS = one_of("SIZE", "NONE")
_RETURN_VALUES = one_of("ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW")
_ON_FAILURE = one_of("ALL_OLD", "NONE")
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


def item_requests(style: str) -> dict[str, Request]:
    """What each operation on items takes, in a style."""
    return {
        **_item_operations(TABLE_NAME),
        # In the first decade Query and Scan told the minimum of a name for an empty one, too (dynalite).
        **_read_operations(NAME_OR_ARN if style == CLASSIC else TABLE_NAME),
        **_batch_operations(TABLE_NAME, style),
        **_transactions(TABLE_NAME),
        **_statements(),
    }


def _item_operations(table: Text) -> dict[str, Request]:
    conditional: Members = {
        "ConditionalOperator": _AND_OR,
        "Expected": _EXPECTED,
        "ConditionExpression": TEXT,
        **PLACEHOLDERS,
        "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
    }
    put: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": table,
        "Item": ITEM,
        "ReturnValues": _RETURN_VALUES,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        **conditional,
    }
    update: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": table,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "ReturnValues": _RETURN_VALUES,
        "ConditionalOperator": _AND_OR,  # told before the key (paritysuite updateItem.test.ts, 2026-10-09)
        "Key": ITEM,
        **conditional,
        "AttributeUpdates": Mapping(
            Structure("AttributeValueUpdate", {"Action": _UPDATE_ACTION, "Value": AttributeValue()})
        ),
        "UpdateExpression": TEXT,
    }
    delete: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": table,
        "ReturnValues": _RETURN_VALUES,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "Key": ITEM,
        **conditional,
    }
    get: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "TableName": table,
        "Key": ITEM,
        "ConsistentRead": Flag(),
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": NAMES,
    }
    return {
        "PutItem": Request(structure("PutItemInput", put, ("TableName", "Item"))),
        "UpdateItem": Request(structure("UpdateItemInput", update, ("TableName", "Key"))),
        "DeleteItem": Request(structure("DeleteItemInput", delete, ("TableName", "Key"))),
        "GetItem": Request(structure("GetItemInput", get, ("TableName", "Key"))),
    }


def _read_operations(table: Text) -> dict[str, Request]:
    query: Members = {
        "Select": _SELECT,
        "IndexName": _INDEX_NAME,
        "ReturnConsumedCapacity": CAPACITY,
        "QueryFilter": _CONDITIONS,
        "TableName": table,
        "ConditionalOperator": _AND_OR,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "Limit": _INTEGER_FROM_1,
        "KeyConditions": _CONDITIONS,
        "ExclusiveStartKey": ITEM,
        "ConsistentRead": Flag(),
        "ScanIndexForward": Flag(),
        "KeyConditionExpression": TEXT,
        "FilterExpression": TEXT,
        "ProjectionExpression": TEXT,
        **PLACEHOLDERS,
    }
    scan: Members = {
        "Select": _SELECT,
        "IndexName": _INDEX_NAME,
        "TotalSegments": Number("Integer", 1, limits.SCAN_SEGMENTS),
        "ReturnConsumedCapacity": CAPACITY,
        "TableName": table,
        "ConditionalOperator": _AND_OR,
        "ScanFilter": _CONDITIONS,
        "Segment": Number("Integer", 0, limits.SCAN_SEGMENTS - 1),
        "Limit": _INTEGER_FROM_1,
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "ExclusiveStartKey": ITEM,
        "ConsistentRead": Flag(),
        "FilterExpression": TEXT,
        "ProjectionExpression": TEXT,
        **PLACEHOLDERS,
    }
    search: Members = {
        "TableName": table,
        "IndexName": _INDEX_NAME,
        "ReturnConsumedCapacity": CAPACITY,
        "SearchVector": Sequence(AttributeValue(), 1, limits.VECTOR_DIMENSIONS),
        "TopK": _INTEGER_FROM_1,
        "SearchConditionExpression": TEXT,
        "ProjectionExpression": TEXT,
        **PLACEHOLDERS,
    }
    needed = ("TableName", "IndexName", "SearchVector", "TopK")
    return {
        "SearchVectors": Request(structure("SearchVectorsInput", search, needed)),
        "Query": Request(structure("QueryInput", query, ("TableName",))),
        "Scan": Request(structure("ScanInput", scan, ("TableName",))),
    }


def _batch_operations(table: Text, style: str) -> dict[str, Request]:
    keys_and_attributes: Members = {
        "Keys": Sequence(ITEM, 1, limits.BATCH_GET_KEYS),
        "AttributesToGet": _ATTRIBUTES_TO_GET,
        "ConsistentRead": Flag(),
        "ProjectionExpression": TEXT,
        "ExpressionAttributeNames": NAMES,
    }
    write: Members = {
        "DeleteRequest": structure("DeleteRequest", {"Key": ITEM}, ("Key",)),
        "PutRequest": Structure(
            "PutRequest", {"Item": ITEM}, frozenset({"Item"}), printed=("Item", "WorkloadProfileName")
        ),
    }
    request = Structure("WriteRequest", write, printed=("PutRequest", "DeleteRequest"))
    # Today an empty BatchWriteItem has a sentence of its own (item_rules.py).
    fewest = 1 if style == CLASSIC else None
    get_map = Mapping(structure("KeysAndAttributes", keys_and_attributes, ("Keys",)), 1, None, table)
    write_map = Mapping(Sequence(request), fewest, None, table, (1, limits.BATCH_WRITE_REQUESTS))
    get: Members = {"ReturnConsumedCapacity": CAPACITY, "RequestItems": get_map}
    if style != CLASSIC:  # paritysuite batchOperations.test.ts, two regions, 2026-10-09
        get = dict(reversed(get.items()))
    put: Members = {
        "ReturnConsumedCapacity": CAPACITY,
        "ReturnItemCollectionMetrics": _COLLECTION_METRICS,
        "RequestItems": write_map,
    }
    return {
        "BatchGetItem": Request(structure("BatchGetItemInput", get, ("RequestItems",))),
        "BatchWriteItem": Request(structure("BatchWriteItemInput", put, ("RequestItems",))),
    }


def _transactions(table: Text) -> dict[str, Request]:
    target: Members = {"Key": ITEM, "TableName": table}
    condition: Members = {
        "ConditionExpression": TEXT,
        **PLACEHOLDERS,
        "ReturnValuesOnConditionCheckFailure": _ON_FAILURE,
    }
    actions: Members = {
        "ConditionCheck": structure(
            "ConditionCheck", {**target, **condition}, ("Key", "TableName", "ConditionExpression")
        ),
        "Put": structure("Put", {"Item": ITEM, "TableName": table, **condition}, ("Item", "TableName")),
        "Delete": structure("Delete", {**target, **condition}, ("Key", "TableName")),
        "Update": structure(
            "Update",
            {"Key": ITEM, "UpdateExpression": TEXT, "TableName": table, **condition},
            ("Key", "UpdateExpression", "TableName"),
        ),
    }
    get = structure(
        "Get",
        {**target, "ProjectionExpression": TEXT, "ExpressionAttributeNames": NAMES},
        ("Key", "TableName"),
    )
    gets = Sequence(structure("TransactGetItem", {"Get": get}, ("Get",)), 1, limits.TRANSACTION_ACTIONS)
    writes = Sequence(structure("TransactWriteItem", actions), 1, limits.TRANSACTION_ACTIONS)
    return {
        "TransactGetItems": Request(
            structure(
                "TransactGetItemsInput",
                {"TransactItems": gets, "ReturnConsumedCapacity": CAPACITY},
                ("TransactItems",),
            )
        ),
        "TransactWriteItems": Request(
            structure(
                "TransactWriteItemsInput",
                {
                    # paritysuite transactions.test.ts, two regions, 2026-10-09: the token comes before the enums
                    "ClientRequestToken": Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS),
                    "TransactItems": writes,
                    "ReturnConsumedCapacity": CAPACITY,
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
    capacity: Members = {"ReturnConsumedCapacity": CAPACITY}
    one = {**statement, "ConsistentRead": Flag()}
    paging: Members = {
        "NextToken": Text(minimum=1, maximum=limits.NEXT_TOKEN_CHARACTERS),
        "Limit": _INTEGER_FROM_1,
    }
    batch = Sequence(structure("BatchStatementRequest", one, ("Statement",)), 1, limits.BATCH_STATEMENTS)
    transaction = Sequence(
        structure("ParameterizedStatement", statement, ("Statement",)), 1, limits.TRANSACTION_ACTIONS
    )
    token = Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS)
    return {
        "ExecuteStatement": Request(
            structure("ExecuteStatementInput", {**one, **paging, **capacity}, ("Statement",))
        ),
        "BatchExecuteStatement": Request(
            structure("BatchExecuteStatementInput", {"Statements": batch, **capacity}, ("Statements",))
        ),
        "ExecuteTransaction": Request(
            structure(
                "ExecuteTransactionInput",
                {"TransactStatements": transaction, "ClientRequestToken": token, **capacity},
                ("TransactStatements",),
            )
        ),
    }

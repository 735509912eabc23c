"""Inputs of the operations on PartiQL statements, as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    CAPACITY,
    INTEGER_FROM_1,
    ON_FAILURE,
    Members,
    Shapes,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    AttributeValue,
    Boolean,
    Sequence,
    Structure,
    Text,
)
from tablegate.adapters.dynamodb.wire import limits

# Inputs


_STATEMENT: Members = {
    "Statement": Text(minimum=1, maximum=limits.STATEMENT_CHARACTERS),
    "Parameters": Sequence(AttributeValue(), 1),
    "ReturnValuesOnConditionCheckFailure": ON_FAILURE,
}
_CAPACITY: Members = {"ReturnConsumedCapacity": CAPACITY}
_ONE = {**_STATEMENT, "ConsistentRead": Boolean()}
_PAGING: Members = {
    "NextToken": Text(minimum=1, maximum=limits.NEXT_TOKEN_CHARACTERS),
    "Limit": INTEGER_FROM_1,
}
_BATCH = Sequence(Structure("BatchStatementRequest", _ONE, ("Statement",)), 1, limits.BATCH_STATEMENTS)
_TRANSACTION = Sequence(
    Structure("ParameterizedStatement", _STATEMENT, ("Statement",)), 1, limits.TRANSACTION_ACTIONS
)
_TOKEN = Text(minimum=1, maximum=limits.TRANSACTION_TOKEN_CHARACTERS)
_SHAPES: Shapes = {
    "ExecuteStatement": ({**_ONE, **_PAGING, **_CAPACITY}, ("Statement",)),
    "BatchExecuteStatement": ({"Statements": _BATCH, **_CAPACITY}, ("Statements",)),
    "ExecuteTransaction": (
        {"TransactStatements": _TRANSACTION, "ClientRequestToken": _TOKEN, **_CAPACITY},
        ("TransactStatements",),
    ),
}
STATEMENT_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""

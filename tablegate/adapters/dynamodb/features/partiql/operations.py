"""The operations on PartiQL statements, with their inputs as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.features.partiql import statements
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation.shapes import (
    CAPACITY,
    INTEGER_FROM_1,
    ON_FAILURE,
    AttributeValue,
    Boolean,
    Members,
    Sequence,
    Shapes,
    Structure,
    Text,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

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


# Operations


_P = Permission
_PERMISSIONS = (_P.QUERY, _P.SCAN, _P.READ, _P.PUT, _P.UPDATE, _P.DELETE, _P.CHECK)
# Statements take up to 30 us for each byte.
_LONG, _LONG_TRANSACTION = 4 << 10, 16 << 10
OPERATIONS = by_name(
    Operation(
        "ExecuteStatement", statements.execute_statement, STATEMENT_REQUESTS, Purpose(_PERMISSIONS, Channel.STATEMENT),
        long_from_bytes=_LONG, billed_bytes=None,
    ),
    Operation(
        "BatchExecuteStatement", statements.batch_execute_statement, STATEMENT_REQUESTS,
        Purpose(_PERMISSIONS, Channel.STATEMENT), long_from_bytes=_LONG, billed_bytes=None,
    ),
    Operation(
        "ExecuteTransaction", statements.execute_transaction, STATEMENT_REQUESTS,
        Purpose(_PERMISSIONS, Channel.STATEMENT_TRANSACTION), long_from_bytes=_LONG_TRANSACTION, billed_bytes=None,
    ),
)  # fmt: skip

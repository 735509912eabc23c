"""The operations on PartiQL statements, with their inputs as data, and pages of a SELECT for the console.

The console's pages are evaluated and authorized as ExecuteStatement.
"""

from __future__ import annotations

import orjson

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.features.partiql import parsing, statements
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Select
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
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.commands.row_search import StatementPage
from tablegate.gateway.model.errors import BadKey, IndexMissing, InvalidInput
from tablegate.gateway.model.values.bodies import untagged_all

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


_PAGE_OPERATION = "ExecuteStatement"
_PAGE_LIMIT = 200


async def run_statement(
    gateway: Gateway, namespace: str, authorization: Authorization | None, statement: str, token: str
) -> StatementPage:
    """Return a page of a SELECT. Raises ValueError for a statement that is refused."""
    if authorization is not None:
        authorization.purpose = OPERATIONS[_PAGE_OPERATION].purpose
    given = {"Statement": statement, "Limit": _PAGE_LIMIT, **({"NextToken": token} if token else {})}
    call = CallContext(
        _PAGE_OPERATION, given, Caller("", "", "", namespace), gateway, authorization=authorization
    )
    try:
        if not 0 < len(statement) <= limits.STATEMENT_CHARACTERS:
            raise ValueError(f"a statement has 1 to {limits.STATEMENT_CHARACTERS:,} characters")
        select = parsing.parsed(statement).statement
        if not isinstance(select, Select):
            raise ValueError("only SELECT statements run here")
        answer = await statements.execute_statement(call)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    except (BadKey, InvalidInput, IndexMissing) as error:
        raise ValueError(service_error_of(error, _PAGE_OPERATION).message) from None
    assert isinstance(answer, bytes)
    found = orjson.loads(answer)
    items = [untagged_all(item) for item in found["Items"]]
    return StatementPage(select.source[0], items, found.get("NextToken", ""))

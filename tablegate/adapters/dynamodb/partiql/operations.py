"""The operations on PartiQL statements."""

from __future__ import annotations

from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.partiql import statement_transactions, statements
from tablegate.adapters.dynamodb.validation.schemas.statement_schemas import STATEMENT_REQUESTS
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

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
        "ExecuteTransaction", statement_transactions.execute_transaction, STATEMENT_REQUESTS,
        Purpose(_PERMISSIONS, Channel.STATEMENT_TRANSACTION), long_from_bytes=_LONG_TRANSACTION, billed_bytes=None,
    ),
)  # fmt: skip

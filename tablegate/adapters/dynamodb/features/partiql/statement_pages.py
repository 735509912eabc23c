"""Pages of a PartiQL SELECT for the console, evaluated and authorized as ExecuteStatement."""

from __future__ import annotations

import orjson

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.features.partiql import parsing, statements
from tablegate.adapters.dynamodb.features.partiql.operations import OPERATIONS
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Select
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.commands.row_search import StatementPage
from tablegate.gateway.model.errors import BadKey, IndexMissing, InvalidInput
from tablegate.gateway.model.values.bodies import untagged_all

_OPERATION = "ExecuteStatement"
_LIMIT = 200
_LONGEST = 8192  # characters (docs/protocols/dynamodb.md: the length of a statement)


async def run_statement(
    gateway: Gateway, namespace: str, authorization: Authorization | None, statement: str, token: str
) -> StatementPage:
    """Return a page of a SELECT. Raises ValueError for a statement that is refused."""
    if authorization is not None:
        authorization.purpose = OPERATIONS[_OPERATION].purpose
    given = {"Statement": statement, "Limit": _LIMIT, **({"NextToken": token} if token else {})}
    call = CallContext(_OPERATION, given, Caller("", "", "", namespace), gateway, authorization=authorization)
    try:
        if not 0 < len(statement) <= _LONGEST:
            raise ValueError(f"a statement has 1 to {_LONGEST:,} characters")
        select = parsing.parsed(statement).statement
        if not isinstance(select, Select):
            raise ValueError("only SELECT statements run here")
        answer = await statements.execute_statement(call)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    except (BadKey, InvalidInput, IndexMissing) as error:
        raise ValueError(service_error_of(error, _OPERATION).message) from None
    assert isinstance(answer, bytes)
    found = orjson.loads(answer)
    items = [untagged_all(item) for item in found["Items"]]
    return StatementPage(select.source[0], items, found.get("NextToken", ""))

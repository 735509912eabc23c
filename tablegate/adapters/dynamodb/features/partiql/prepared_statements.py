"""Statements that are prepared to run: their tables, arguments, positions, writes and errors.

Tables are authorized before they are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.call import CallContext, find_table
from tablegate.adapters.dynamodb.expressions.request_clauses import shown_of
from tablegate.adapters.dynamodb.features.partiql import statement_keys
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Statement,
    Update,
)
from tablegate.adapters.dynamodb.features.partiql.statement_values import Arguments
from tablegate.adapters.dynamodb.features.partiql.writing import write_of
from tablegate.adapters.dynamodb.operations.items import failed_condition
from tablegate.adapters.dynamodb.values import composites, keys
from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.errors import ServiceError, Wording, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import ConditionFailed, GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position

# Tables


_P = Permission
_NEEDED: Mapping[type, tuple[Permission, ...]] = {
    Select: (_P.QUERY, _P.SCAN, _P.READ),
    Insert: (_P.PUT,),
    Update: (_P.UPDATE,),
    Delete: (_P.DELETE,),
    Exists: (_P.CHECK,),
}
"""The alternative permissions for a statement: one of them is needed. Its commands determine which."""


async def find_source(call: CallContext, statement: Statement) -> Table:
    """Return the descriptor of a statement's table. Raises NotPermitted, TableMissing, ServiceError."""
    table, *index = statement.source
    if call.authorization is not None:
        path = "/index/".join([bare_name(table), *index])
        resource = NamedResource(_NEEDED[type(statement)], call.caller.namespace, path)
        call.authorization.require_named([resource])
    return await find_table(call, table)


# Members


Input = Mapping[str, Any]

# In characters. Other requests run before each longer one is parsed: 8,192 characters take some hundredths of a
# second.
LONG_STATEMENT = 1024


class PreparedStatement(NamedTuple):
    """A member of a batch or transaction with its parsed statement and its table."""

    given: Input
    statement: Statement
    arguments: Arguments
    table: Table


def with_arguments(parsed: Parsed, members: Input, wording: Wording) -> tuple[Statement, Arguments]:
    """Return a statement with its arguments. Raises ServiceError."""
    return parsed.statement, Arguments(parsed.parameters, members.get("Parameters", []), wording)


def refuse_mixture(statements: Sequence[Statement], text: str) -> None:
    """Raise ServiceError if some statements read and others write."""
    if len({isinstance(statement, Select) for statement in statements}) > 1:
        raise validation(text)


def read_position(member: PreparedStatement, operation: str) -> Position:
    """Return the position of the one item that a SELECT in a batch or transaction reads.

    Raises ServiceError, BadKey.
    """
    statement, table, arguments = member.statement, member.table, member.arguments
    assert isinstance(statement, Select)
    schema = composites.shown_schema(table.key_schema)
    arguments.predicate(statement.where)
    key = None
    if len(statement.source) == 1 and statement.where is not None:
        key_branches = statement_keys.branches(statement.where, schema, arguments)
        if key_branches is not None:
            statement_keys.ranges(key_branches, schema, table, is_index=False)
        key = statement_keys.read_item(statement.where, schema, arguments)
    if key is None:
        raise validation(
            f"Select statements within {operation} must specify the primary key in the where clause."
        )
    return keys.key_of(table, {name: arguments.wire(node) for name, node in key.items()}).position


def member_error(member: PreparedStatement, error: GatewayError, operation: str) -> ServiceError:
    """Return the error of a write, with the old item if the member requests it."""
    if not isinstance(error, ConditionFailed):
        return service_error_of(error, operation)
    return failed_condition(member.given, member.table, error)


def member_write(member: PreparedStatement) -> Write:
    """Return the write of a member. Raises ServiceError."""
    assert not isinstance(member.statement, Select)
    write = write_of(member.statement, member.table, member.arguments)
    return with_shown(write, member.statement, member.given)


def with_shown(write: Write, statement: Insert | Update | Delete | Exists, members: Input) -> Write:
    """Return a write with the attributes to return: by RETURNING, and by the member's option for failed conditions."""
    returning = statement.returning if isinstance(statement, (Update, Delete)) else ""
    return write._replace(returned_rows=shown_of({**members, "ReturnValues": returning or "NONE"}))

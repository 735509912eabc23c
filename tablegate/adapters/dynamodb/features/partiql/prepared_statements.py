"""Statements that are prepared to run: their tables, arguments, positions, writes and errors.

INSERT, UPDATE and DELETE become the writes of PutItem, UpdateItem and DeleteItem. An INSERT puts an item that must not
exist. An UPDATE changes an existing item. A DELETE of a missing item does nothing, whatever its other conditions are. The
parts of WHERE that are not about the key are the condition.

Tables are authorized before they are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from tablegate.adapters.dynamodb.call import CallContext, find_table
from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses, shown_of
from tablegate.adapters.dynamodb.expressions.syntax import ConditionNode, ValueNode
from tablegate.adapters.dynamodb.expressions.updates import actions_of
from tablegate.adapters.dynamodb.features.partiql import statement_keys
from tablegate.adapters.dynamodb.features.partiql.statement_keys import KeyConditionError, Named, named_item
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    TOO_DEEP,
    Arguments,
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Statement,
    Update,
)
from tablegate.adapters.dynamodb.operations.items import (
    check_write,
    delete_write,
    failed_condition,
    put_write,
    update_write,
)
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.values.values import ParsedItem, is_too_large, item_of
from tablegate.adapters.dynamodb.wire.arns import bare_name
from tablegate.adapters.dynamodb.wire.error_texts import bare
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import ConditionFailed, GatewayError, RowRuleViolated
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Not, Or, Predicate, RowExists
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.values import size_bytes

_BAD_EXISTS = "EXISTS() must contain a single item read with additional condition"


def write_of(statement: Insert | Update | Delete | Exists, table: Table, arguments: Arguments) -> Write:
    """Return the write of a statement.

    Raises ServiceError, BadKey, KeyTooLong, or KeyConditionError if WHERE names no item.
    """
    match statement:
        case Insert():
            return _insert(statement, table, arguments)
        case Update():
            return _update(statement, table, arguments)
        case Delete():
            return _delete(statement, table, arguments)
        case Exists():
            return _check(statement, table, arguments)
    assert_never(statement)


def _insert(statement: Insert, table: Table, arguments: Arguments) -> Write:
    item = _item(statement, arguments)
    write = put_write(table, item, WriteClauses.of((), Not(RowExists())))
    if is_too_large(item.size_bytes):
        raise validation(bare("item-size"))
    return write


def _item(statement: Insert, arguments: Arguments) -> ParsedItem:
    return item_of({name: arguments.wire(node) for name, node in statement.item})


def _update(statement: Update, table: Table, arguments: Arguments) -> Write:
    actions = actions_of(statement.sections, arguments)
    schema = keys.shown_schema(table.key_schema)
    key, rest = named_item(statement.where, schema, arguments)
    condition = And((RowExists(), *_predicates(rest, arguments)))
    return update_write(table, _wire(key, arguments), WriteClauses.of(actions, condition))


def _delete(statement: Delete, table: Table, arguments: Arguments) -> Write:
    schema = keys.shown_schema(table.key_schema)
    key, rest = named_item(statement.where, schema, arguments)
    condition: Predicate = ALWAYS
    if rest:
        condition = Or((Not(RowExists()), And(_predicates(rest, arguments))))
    return delete_write(table, _wire(key, arguments), WriteClauses.of((), condition))


def _check(statement: Exists, table: Table, arguments: Arguments) -> Write:
    schema = keys.shown_schema(table.key_schema)
    if len(statement.source) > 1:
        raise validation("Operations on indices are not supported in transactions")
    try:
        key, rest = named_item(statement.select.where, schema, arguments, use_first_key=True)
    except KeyConditionError:
        raise validation(_BAD_EXISTS) from None
    if not rest:
        raise validation(_BAD_EXISTS)
    condition = And(_predicates(rest, arguments))
    return check_write(table, _wire(key, arguments), WriteClauses.of((), condition))


def payload_bytes(statement: Insert | Update | Delete | Exists, table: Table, arguments: Arguments) -> int:
    """Return a statement's share of its transaction's payload, measured like an action of TransactWriteItems.

    It is the item of an INSERT, else the names and values of the key and the other values.
    """
    if isinstance(statement, Insert):
        return _item(statement, arguments).size_bytes
    names = keys.shown_schema(table.key_schema).names
    size = sum([len(name.encode()) for name in names])
    stack: list[Any] = [statement]
    while stack:
        node = stack.pop()
        if isinstance(node, ValueNode):
            size += size_bytes(arguments.value(node.name))
        elif isinstance(node, tuple):
            stack += node
    return size


def _predicates(conditions: tuple[ConditionNode, ...], arguments: Arguments) -> tuple[Predicate, ...]:
    return tuple([arguments.predicate(condition) for condition in conditions])


def _wire(key: Named, arguments: Arguments) -> dict[str, Any]:
    return {name: arguments.wire(node) for name, node in key.items()}


def refusal_of(
    statement: Insert | Update | Delete | Exists, error: Exception, item_error: ServiceError
) -> ServiceError:
    """Return the error of a failed write for a statement. `item_error`: the error of the item operation.

    A failed INSERT is a DuplicateItemException instead of a failed condition.
    """
    if isinstance(statement, Insert) and item_error.code == "ConditionalCheckFailedException":
        return ServiceError("DuplicateItemException", "Duplicate primary key exists in table")
    if (
        isinstance(error, RowRuleViolated) and error.rule == "nesting"
    ):  # only this text is shorter for statements (floci's capture)
        return validation(TOO_DEEP)
    return item_error


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


def with_arguments(parsed: Parsed, members: Input, error_texts: ErrorTexts) -> tuple[Statement, Arguments]:
    """Return a statement with its arguments. Raises ServiceError."""
    return parsed.statement, Arguments(parsed.parameters, members.get("Parameters", []), error_texts)


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
    schema = keys.shown_schema(table.key_schema)
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

"""INSERT, UPDATE and DELETE to the writes of PutItem, UpdateItem and DeleteItem.

An INSERT puts an item that must not exist. An UPDATE changes an existing item. A DELETE of a missing item does
nothing, whatever its other conditions are. The parts of WHERE that are not about the key are the condition.
"""

from __future__ import annotations

from typing import Any, assert_never

from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.expressions.syntax import ConditionNode, ValueNode
from tablegate.adapters.dynamodb.expressions.updates import actions_of
from tablegate.adapters.dynamodb.features.partiql.statement_keys import KeyConditionError, Named, named_item
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import Delete, Exists, Insert, Update
from tablegate.adapters.dynamodb.features.partiql.statement_values import TOO_DEEP, Arguments
from tablegate.adapters.dynamodb.operations.items import check_write, delete_write, put_write, update_write
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.values.values import ParsedItem, is_too_large, item_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.messages import bare
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Not, Or, Predicate, RowExists
from tablegate.gateway.model.tables.tables import Table
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
    schema = composites.shown_schema(table.key_schema)
    key, rest = named_item(statement.where, schema, arguments)
    condition = And((RowExists(), *_predicates(rest, arguments)))
    return update_write(table, _wire(key, arguments), WriteClauses.of(actions, condition))


def _delete(statement: Delete, table: Table, arguments: Arguments) -> Write:
    schema = composites.shown_schema(table.key_schema)
    key, rest = named_item(statement.where, schema, arguments)
    condition: Predicate = ALWAYS
    if rest:
        condition = Or((Not(RowExists()), And(_predicates(rest, arguments))))
    return delete_write(table, _wire(key, arguments), WriteClauses.of((), condition))


def _check(statement: Exists, table: Table, arguments: Arguments) -> Write:
    schema = composites.shown_schema(table.key_schema)
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
    names = composites.shown_schema(table.key_schema).names
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

"""Single items: GetItem, PutItem, UpdateItem, DeleteItem.

Each handler is parse, one command, render. Input errors that need no table come first, as with the service: expressions
are parsed before the table is looked up, keys are checked against its schema after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from adapters.dynamodb.capacity import consumed_capacity
from adapters.dynamodb.expressions import legacy
from adapters.dynamodb.expressions.projections import touched
from adapters.dynamodb.expressions.request_clauses import ReadClauses, WriteClauses
from adapters.dynamodb.values import composites, keys
from adapters.dynamodb.values.values import Item, is_too_large, keep_kinds, render_values, view
from adapters.dynamodb.wire import limits, messages
from adapters.dynamodb.wire.calls import Answer, Call, find_table
from adapters.dynamodb.wire.errors import condition_failed, validation
from gateway.engine.engine import one, write_rows
from gateway.model.commands import Exchange, Get, Outcome
from gateway.model.errors import BadOperand, ConditionFailed, RowRefused
from gateway.model.predicates import ALWAYS, Attributes
from gateway.model.rows import Contents, Row
from gateway.model.tables import Table
from gateway.model.updates import Action, SetTo, names_of
from gateway.model.values import Kind, Value
from gateway.model.writes import Edit, Keep, Remove, Replace, RowRule, Write


def get_item(call: Call) -> Exchange[Answer]:
    """GetItem: the item under a key, or what a projection shows of it; no Item where there is none. Raises ServiceError,
    TableMissing, BadKey."""
    clauses = ReadClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    key = keys.key_of(table, call.input["Key"])
    clauses.check_projection(table)
    row = yield from one(Get(table, key.position))
    blocks = consumed_capacity.item_read(call, row)
    if row is None:
        return blocks
    item = clauses.cut(table, row)
    return {"Item": orjson.Fragment(item), **blocks} if blocks else b'{"Item":' + item + b"}"


def put_item(call: Call) -> Exchange[Answer]:
    """PutItem: put an item over what is there, if the condition is true. The answer has what ReturnValues asks for. Raises
    ServiceError, TableMissing, BadKey, KeyTooLong."""
    item: Item = call.input["Item"]
    clauses = WriteClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    write = put_write(table, item, clauses, wants_old=answer_wants_old(call, table))
    return (yield from written(call, write))


def delete_item(call: Call) -> Exchange[Answer]:
    """DeleteItem: delete the item under a key, if there is one and the condition is true. The answer has what ReturnValues
    asks for. Raises ServiceError, TableMissing, BadKey."""
    clauses = WriteClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    write = delete_write(table, call.input["Key"], clauses, wants_old=answer_wants_old(call, table))
    return (yield from written(call, write))


def update_item(call: Call) -> Exchange[Answer]:
    """UpdateItem: change the item under a key, or make one, if the condition is true. The answer has what ReturnValues asks
    for. Raises ServiceError, TableMissing, BadKey, and what `edit` of the model raises."""
    clauses = WriteClauses(call, call.input)
    table = yield from find_table(call, call.input["TableName"])
    write = update_write(table, call.input["Key"], clauses)
    if "UpdateExpression" in call.input and is_too_large(clauses.statement_bytes):
        # Transactions, PartiQL and AttributeUpdates are measured by the finished item alone (paritysuite, October 2026).
        raise validation(messages.bare("update-size"))
    return (yield from written(call, write))


# Writes, also as parts of batches and transactions


def put_write(table: Table, item: Item, clauses: WriteClauses | None, wants_old: bool = True) -> Write:
    """The write that puts an item whose size has been checked. `clauses`: its condition, if it has one; `wants_old`: whether
    the answer needs the old item. Raises ServiceError, BadKey, KeyTooLong."""
    key = keys.item_key(table, item)
    condition = ALWAYS if clauses is None else clauses.condition(table)
    contents = composites.stored_contents(table, key, item.contents)
    return Write(table, key, Replace(contents), condition, view, _keep_kinds, wants_old=wants_old)


def delete_write(
    table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses | None, wants_old: bool = True
) -> Write:
    """The write that deletes the item under a wire key. `clauses`: its condition, if it has one; `wants_old`: whether the
    answer needs the old item. Raises ServiceError, BadKey."""
    key = keys.key_of(table, wire_key)
    condition = ALWAYS if clauses is None else clauses.condition(table)
    return Write(table, key, Remove(), condition, view, wants_old=wants_old)


def update_write(table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses) -> Write:
    """The write that updates the item under a wire key by the actions and the condition of `clauses`. Raises ServiceError,
    BadKey."""
    key = keys.key_of(table, wire_key)
    change = Edit(clauses.actions(table), clauses.may_create)
    return Write(table, key, change, clauses.condition(table), view, _update_rule(table, change.actions))


def check_write(table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses) -> Write:
    """The write that changes nothing and only checks a condition: the ConditionCheck of a transaction. Raises ServiceError,
    BadKey."""
    return Write(table, keys.key_of(table, wire_key), Keep(), clauses.condition(table), view)


def _keep_kinds(old: Row | None, new: Contents) -> Contents:
    return new if old is None or old.contents.is_native else keep_kinds(old, new)


def _update_rule(table: Table, actions: tuple[Action, ...]) -> RowRule:
    """What an updated item must obey: its size, its depth, its index keys. Raises RowRefused, BadKey."""

    def rule(old: Row | None, new: Contents) -> Contents:
        if is_too_large(new.size_bytes):
            raise RowRefused("update-size")
        if any(isinstance(action, SetTo) or len(action.path) > 1 for action in actions):  # type: ignore[union-attr]
            for name in names_of(actions):  # what no action names was within the limits before
                value = new.value(name)
                if value is not None and value.kind in _DOCUMENTS and _depth(value) > limits.NESTING_LEVELS:
                    raise RowRefused("nesting")
        if table.indexes:
            before: Attributes = {} if old is None else old.contents
            keys.check_updated_index_keys(table, before, new)
        return new

    return rule


_DOCUMENTS = frozenset({Kind.MAP, Kind.LIST})


def _depth(value: Value) -> int:
    """Levels of a value: 1 for a scalar, one more for each document around it. Stops counting just past the limit."""
    level, values = 0, [value]
    while values and level <= limits.NESTING_LEVELS:
        level += 1
        values = [
            member
            for holder in values
            if holder.kind in (Kind.MAP, Kind.LIST)
            for member in (holder.data.values() if holder.kind is Kind.MAP else holder.data)
        ]
    return level


# Answers


def answer_wants_old(call: Call, table: Table) -> bool:
    """Whether something in the answer to a put or delete depends on the old item."""
    given = call.input
    return (
        given.get("ReturnValues", "NONE") != "NONE"
        or given.get("ReturnConsumedCapacity", "NONE") != "NONE"
        or given.get("ReturnItemCollectionMetrics", "NONE") != "NONE"
        or bool(table.indexes)
    )


def written(call: Call, write: Write) -> Exchange[dict[str, Any]]:
    """Carry out the write of one item; the members of the answer, consumed capacity included. Raises ServiceError if the
    condition is false, else what the write met."""
    try:
        [outcome] = yield from write_rows(write)
    except ConditionFailed as failure:
        consumed_capacity.failed_write(write.table, failure.row)
        wanted = (
            call.input.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and failure.row is not None
        )
        raise condition_failed(
            composites.render(write.table.key_schema, failure.row) if wanted else None
        ) from None
    except BadOperand:
        if "AttributeUpdates" in call.input:
            raise legacy.update_mismatch() from None
        raise
    return {**returned(call, write, outcome), **consumed_capacity.item_write(call, write, outcome)}


def returned(call: Call, write: Write, outcome: Outcome) -> dict[str, Any]:
    """The members of the answer to a write that ReturnValues asks for."""
    mode = call.input.get("ReturnValues", "NONE")
    if mode == "NONE":
        return {}
    row = outcome.new if mode.endswith("_NEW") else outcome.old
    if row is None:
        return {}
    if mode.startswith("ALL"):
        return {"Attributes": orjson.Fragment(composites.render(write.table.key_schema, row))}
    assert isinstance(write.change, Edit)
    attributes = touched(write.change.actions, row.contents)
    return {"Attributes": render_values(attributes)} if attributes else {}

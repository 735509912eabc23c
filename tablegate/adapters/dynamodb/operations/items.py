"""Items, one at a time and in batches: GetItem, PutItem, UpdateItem, DeleteItem, BatchGetItem, BatchWriteItem.

The limits of updates are here: the size of an update expression, and the size and depth of the updated item. The members
of a batch are independent of each other.

As in the service, input errors that need no table come first: expressions are parsed before the table is looked up, and
keys are checked against its schema afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import orjson

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.call import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.capacity import READ, WRITE
from tablegate.adapters.dynamodb.expressions import request_clauses
from tablegate.adapters.dynamodb.expressions.projections import updated_parts
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses, WriteClauses
from tablegate.adapters.dynamodb.expressions.updates import UpdateFacts, statement_bytes
from tablegate.adapters.dynamodb.tables.properties import INSIGHTS
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS, KEY_COUNTERS
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.values.values import (
    ParsedItem,
    is_too_large,
    keep_kinds,
    render_values,
    view,
)
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import bare_name, table_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, condition_failed, validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.http import request_context
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import RETURNS_NOTHING, CheckOnly, Edit, Remove, Replace, Write
from tablegate.gateway.model.errors import (
    BadOperand,
    Busy,
    ConditionFailed,
    GatewayError,
    RowRuleViolated,
    Throttled,
)
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.expressions.updates import Action
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

# Limits of updates


def check_statement_size(facts: UpdateFacts, actions: tuple[Action, ...]) -> None:
    """Check that an UpdateExpression writes no more than an item may hold. Raises ServiceError."""
    if is_too_large(statement_bytes(facts, actions)):
        raise validation(error_texts.bare("update-size"))


def check_updated(table: Table, may_nest: tuple[str, ...], _old: Row | None, new: Contents) -> Contents:
    """Check the updated item: its size, the depth of the attributes `may_nest`, its index keys, and the rules of
    capabilities.

    Indexes check the whole item, because attributes that are not updated may be older than an index. Raises
    RowRuleViolated, BadKey.
    """
    if is_too_large(new.size_bytes):
        raise RowRuleViolated("update-size")
    for name in may_nest:
        value = new.value(name)
        if value is not None and value.kind in _DOCUMENTS and _depth(value) > limits.NESTING_LEVELS:
            raise RowRuleViolated("nesting")
    if table.indexes:
        keys.check_updated_index_keys(table, new)
    if table.other_indexes:
        for extension in EXTENSIONS:
            extension.check_item(table, new, True)
    return new


_DOCUMENTS = frozenset({Kind.MAP, Kind.LIST})


def _depth(value: Value) -> int:
    """Return the number of levels of a value: 1 for a scalar, one more for each document around it.

    Counting stops just past the limit.
    """
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


# Operations


async def get_item(call: CallContext) -> Answer:
    """GetItem: read an item. Raises ServiceError, TableMissing, BadKey."""
    clauses = ReadClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    key = keys.key_of(table, call.input["Key"])
    if clauses.projection is not None:
        clauses.check_projection(table)
    may_be_old = not call.input.get("ConsistentRead")
    get = Get(table, key.position, may_be_old=may_be_old, visible_attributes=clauses.projection)
    row = await get
    blocks = capacity.item_read(call, row)
    if table.properties.get(INSIGHTS):
        for counter in KEY_COUNTERS:
            counter.count_read(get)
    if row is None:
        return blocks
    item = clauses.cut(table, row)
    return {"Item": orjson.Fragment(item), **blocks} if blocks else b'{"Item":' + item + b"}"


async def put_item(call: CallContext) -> Answer:
    """PutItem: put an item in place of one with its key. Raises ServiceError, TableMissing, BadKey."""
    clauses = WriteClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    return await run_write(call, put_write(table, call.input["Item"], clauses))


async def delete_item(call: CallContext) -> Answer:
    """DeleteItem: delete an item. Raises ServiceError, TableMissing, BadKey."""
    clauses = WriteClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    return await run_write(call, delete_write(table, call.input["Key"], clauses))


async def update_item(call: CallContext) -> Answer:
    """UpdateItem: update an item, or create one. Raises ServiceError, TableMissing, BadKey."""
    clauses = WriteClauses(call, call.input)
    table = await find_table(call, call.input["TableName"])
    write = update_write(table, call.input["Key"], clauses)
    assert isinstance(write.change, Edit)
    if "UpdateExpression" in call.input:
        # In transactions, PartiQL and AttributeUpdates only the size of the updated item counts (paritysuite, October
        # 2026).
        check_statement_size(clauses.facts, write.change.actions)
    return await run_write(call, write)


# Writes, also as parts of batches and transactions


def put_write(table: Table, item: ParsedItem, clauses: WriteClauses | None) -> Write:
    """Return the write that puts an item of a checked size. Raises ServiceError, BadKey, KeyTooLong."""
    key = keys.item_key(table, item)
    if table.other_indexes:
        for extension in EXTENSIONS:
            extension.check_item(table, item.contents, False)
    condition = clauses.condition(table) if clauses is not None and clauses.has_condition else ALWAYS
    returned_rows = RETURNS_NOTHING if clauses is None else clauses.returned_rows
    contents = item.contents
    if not table.key_schema.is_text_pair:
        contents = keys.stored_contents(table, key, contents)
    return Write(table, key, Replace(contents), condition, view, keep_kinds, returned_rows=returned_rows)


def delete_write(table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses | None) -> Write:
    """Return the write that deletes the item with a wire key. Raises ServiceError, BadKey."""
    key = keys.key_of(table, wire_key)
    condition = clauses.condition(table) if clauses is not None and clauses.has_condition else ALWAYS
    returned_rows = RETURNS_NOTHING if clauses is None else clauses.returned_rows
    return Write(table, key, Remove(), condition, view, returned_rows=returned_rows)


def update_write(table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses) -> Write:
    """Return the write that updates the item with a wire key. Raises ServiceError, BadKey."""
    key = keys.key_of(table, wire_key)
    facts = clauses.facts
    change = Edit(clauses.actions(table), facts.may_create, limits.ITEM_BYTES)
    rule = partial(check_updated, table, facts.may_nest)
    condition = clauses.condition(table) if clauses.has_condition else ALWAYS
    return Write(table, key, change, condition, view, rule, returned_rows=clauses.returned_rows)


def check_write(table: Table, wire_key: Mapping[str, Any], clauses: WriteClauses) -> Write:
    """Return the write of a ConditionCheck, which changes nothing. Raises ServiceError, BadKey."""
    key = keys.key_of(table, wire_key)
    condition = clauses.condition(table) if clauses.has_condition else ALWAYS
    return Write(table, key, CheckOnly(), condition, view, returned_rows=clauses.returned_rows)


# Answers


async def run_write(call: CallContext, write: Write) -> dict[str, Any]:
    """Run the write of one item, and return the members of the answer, with consumed capacity.

    Raises ServiceError if the condition fails, else the error of the write.
    """
    try:
        [outcome] = await WriteGroup((write,))
    except ConditionFailed as error:
        raise failed_condition(call.input, write.table, error) from None
    except BadOperand:
        if "AttributeUpdates" in call.input:
            raise request_clauses.update_mismatch() from None
        raise
    blocks = capacity.item_write(call, write, outcome)
    if write.table.properties.get(INSIGHTS):
        for counter in KEY_COUNTERS:
            counter.count_write(write, outcome)
    return {**returned(call, write, outcome), **blocks} if "ReturnValues" in call.input else blocks


def failed_condition(arguments: Mapping[str, Any], table: Table, error: ConditionFailed) -> ServiceError:
    """Return the error of a write, with the old item if ReturnValuesOnConditionCheckFailure asks for it.

    `arguments`: the request, or the member of a batch or transaction.
    """
    capacity.failed_write(table, error.row)
    if arguments.get("ReturnValuesOnConditionCheckFailure") != "ALL_OLD" or error.row is None:
        return condition_failed()
    return condition_failed(keys.render_shown(table.key_schema, error.row))


def returned(call: CallContext, write: Write, outcome: WriteOutcome) -> dict[str, Any]:
    """Return the members of the answer that ReturnValues selects."""
    mode = call.input.get("ReturnValues", "NONE")
    if mode == "NONE":
        return {}
    row = outcome.new if mode.endswith("_NEW") else outcome.old
    if row is None:
        return {}
    if mode.startswith("ALL"):
        return {"Attributes": orjson.Fragment(keys.render_shown(write.table.key_schema, row))}
    assert isinstance(write.change, Edit)
    attributes = updated_parts(write.change.actions, row.contents)
    return {"Attributes": render_values(attributes)} if attributes else {}


# Batches


async def batch_get_item(call: CallContext) -> Answer:
    """BatchGetItem: items of several tables by their keys.

    Keys past 16 MB of items are returned as UnprocessedKeys, with the options of their table. Raises ServiceError,
    TableMissing, BadKey.
    """
    requests: dict[str, dict[str, Any]] = call.input["RequestItems"]
    clauses = {name: ReadClauses(call, request) for name, request in requests.items()}
    gets: list[Get] = []
    owners: list[tuple[str, int]] = []
    for name, request in requests.items():
        table_gets = await _gets_of_table(call, name, request, clauses[name])
        gets += table_gets
        owners += [(name, at) for at in range(len(table_gets))]
    rows = (
        await all_of(gets)
        if request_context.is_left_out is None
        else await _leave_out_some(call, owners, gets, READ)
    )
    responses: dict[str, list[Any]] = {name: [] for name in requests}
    unprocessed: dict[str, dict[str, Any]] = {}
    read: list[tuple[str, Row | None, bool]] = []
    bytes_left = limits.RESPONSE_BYTES
    for (name, at), get, row in zip(owners, gets, rows, strict=True):
        if _is_temporary(row) or (isinstance(row, Row) and row.size_bytes > bytes_left):
            _return_key(unprocessed, name, requests[name], at)
            continue
        if isinstance(row, GatewayError):
            raise row
        read.append((name, row, bool(requests[name].get("ConsistentRead"))))
        if get.table.properties.get(INSIGHTS):
            for counter in KEY_COUNTERS:
                counter.count_read(get)
        if row is not None:
            bytes_left -= row.size_bytes
            responses[name].append(orjson.Fragment(clauses[name].cut(get.table, row)))
    refusals = [row for row in rows if isinstance(row, GatewayError) and _is_temporary(row)]
    if refusals and not read:
        raise refusals[0]
    return {
        "Responses": responses,
        "UnprocessedKeys": unprocessed,
        **capacity.batch_read(call, read),
    }


async def _gets_of_table(
    call: CallContext, name: str, request: dict[str, Any], clauses: ReadClauses
) -> list[Get]:
    """Return the reads of one table of a BatchGetItem. Raises ServiceError, TableMissing, BadKey."""
    table = await find_table(call, name)
    positions = [keys.key_of(table, key).position for key in request["Keys"]]
    clauses.check_projection(table)
    if len(set(positions)) < len(positions):
        raise validation(error_texts.bare("duplicate-keys"))
    may_be_old = not request.get("ConsistentRead")
    projection = clauses.projection
    return [
        Get(table, position, may_be_old=may_be_old, visible_attributes=projection) for position in positions
    ]


def _return_key(unprocessed: dict[str, dict[str, Any]], name: str, request: dict[str, Any], at: int) -> None:
    options = {option: value for option, value in request.items() if option != "Keys"}
    unprocessed.setdefault(name, {**options, "Keys": []})["Keys"].append(request["Keys"][at])


async def batch_write_item(call: CallContext) -> Answer:
    """BatchWriteItem: puts and deletes, each a write group of its own.

    Members rejected for a temporary reason are returned as UnprocessedItems. Raises ServiceError, TableMissing, BadKey.
    """
    requests: dict[str, list[dict[str, Any]]] = call.input["RequestItems"]
    writes: list[Write] = []
    owners: list[tuple[str, dict[str, Any]]] = []
    for name, members in requests.items():
        table = await find_table(call, name)
        table_writes = list(_writes(table, members))
        if len({write.key.position for write in table_writes}) < len(table_writes):
            raise validation(error_texts.bare("duplicate-keys"))
        writes += table_writes
        owners += [(name, member) for member in members]
    groups = [WriteGroup((write,)) for write in writes]
    answers = (
        await all_of(groups)
        if request_context.is_left_out is None
        else await _leave_out_some(call, owners, groups, WRITE)
    )
    unprocessed: dict[str, list[dict[str, Any]]] = {}
    outcomes: list[tuple[str, Write, WriteOutcome]] = []
    for (name, member), write, answer in zip(owners, writes, answers, strict=True):
        if isinstance(answer, list):
            outcomes.append((name, write, answer[0]))
            if write.table.properties.get(INSIGHTS):
                for counter in KEY_COUNTERS:
                    counter.count_write(write, answer[0])
        elif _is_temporary(answer):
            unprocessed.setdefault(name, []).append(member)
        elif isinstance(answer, GatewayError):
            raise answer
    if not outcomes:
        raise next(answer for answer in answers if isinstance(answer, GatewayError))
    return {"UnprocessedItems": unprocessed, **capacity.batch_write(call, outcomes)}


def _writes(table: Table, members: list[dict[str, Any]]) -> Iterator[Write]:
    for member in members:
        if "PutRequest" in member:
            yield put_write(table, member["PutRequest"]["Item"], None)
        else:
            yield delete_write(table, member["DeleteRequest"]["Key"], None)


async def _leave_out_some(
    call: CallContext, owners: Sequence[tuple[str, Any]], commands: Sequence[Command[R]], kind: str
) -> list[R | GatewayError]:
    """Return the outcome of every command, in order.

    It is Throttled for members that a test fault leaves out (gateway/http/request_context.py). `owners`: for each command a
    tuple that begins with its table's name.
    """
    is_left_out = request_context.is_left_out or bool
    left_out = [is_left_out() for _ in commands]
    outcomes = iter(
        await all_of([command for command, is_out in zip(commands, left_out, strict=True) if not is_out])
    )
    return [
        Throttled(table_arn(call.caller, bare_name(name)), kind) if is_out else next(outcomes)
        for (name, _), is_out in zip(owners, left_out, strict=True)
    ]


def _is_temporary(answer: Any) -> bool:
    """Return True if a member was rejected for a temporary reason, so that a retry may succeed."""
    return isinstance(answer, (Busy, Throttled))

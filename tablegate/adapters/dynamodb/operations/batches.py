"""Batches: BatchGetItem and BatchWriteItem. The members of a call are independent of each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from tablegate.adapters.dynamodb.call import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.capacity import capacity
from tablegate.adapters.dynamodb.capacity.capacity import READ, WRITE
from tablegate.adapters.dynamodb.capacity.key_counters import KEY_COUNTERS
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses
from tablegate.adapters.dynamodb.operations.items import delete_write, put_write
from tablegate.adapters.dynamodb.tables.properties import INSIGHTS
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.arns import bare_name, table_arn
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.http import request_context
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import Busy, GatewayError, Throttled
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row


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
        raise validation(messages.bare("duplicate-keys"))
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
            raise validation(messages.bare("duplicate-keys"))
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

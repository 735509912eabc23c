"""Transactions: TransactWriteItems and TransactGetItems. Each is one write group, or one read of a snapshot.

docs/protocols/dynamodb.md rules 34 to 36 define which errors reject the request and which become a cancellation reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.call import Answer, CallContext, find_table
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses, WriteClauses
from tablegate.adapters.dynamodb.operations.items import (
    check_write,
    delete_write,
    failed_condition,
    put_write,
    update_write,
)
from tablegate.adapters.dynamodb.tables.properties import INSIGHTS
from tablegate.adapters.dynamodb.tables.table_extensions import KEY_COUNTERS
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, cancelled, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.model.commands import row_commands
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import (
    BadKey,
    ConditionFailed,
    GatewayError,
    GroupRefused,
    RowRuleViolated,
    TokenReused,
)
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row

_EMPTY = b"{}"
_TWICE = "Transaction request cannot include multiple operations on one item"
REASON_RULES = frozenset({"schema", "missing", "kind", "index-kind"})
"""Rules of BadKey that cancel the transaction. All others reject the request (rule 36)."""


async def transact_write_items(call: CallContext) -> Answer:
    """TransactWriteItems: all actions or none. A request with a known token is answered without effect.

    Raises ServiceError. It is TransactionCanceled, with a reason for each action, if an action was rejected.
    """
    actions = [next(iter(member.items())) for member in call.input["TransactItems"]]
    parsed = [WriteClauses(call, action) for _, action in actions]
    tables = []
    for _, action in actions:
        table = await find_table(call, action["TableName"])
        tables.append(table)
    writes: list[Write] = []
    reasons: list[ServiceError | None] = []
    for (name, action), clauses, table in zip(actions, parsed, tables, strict=True):
        try:
            writes.append(_write(name, table, action, clauses))
            reasons.append(None)
        except (BadKey, RowRuleViolated) as error:
            if isinstance(error, BadKey) and error.rule not in REASON_RULES:
                raise
            reasons.append(service_error_of(error, call.operation))
    if any(reasons):
        raise cancelled(_only_first_invalid(reasons))
    outcomes = await write_together(
        call, "TransactItems", writes, lambda errors: _cancellation_error(actions, writes, errors)
    )
    names = [action["TableName"] for _, action in actions]
    if not isinstance(outcomes, row_commands.ReplayedOutcome):
        for write, outcome in zip(writes, outcomes, strict=True):
            if write.table.properties.get(INSIGHTS):
                for counter in KEY_COUNTERS:
                    counter.count_write(write, outcome)
    if isinstance(outcomes, row_commands.ReplayedOutcome):
        return capacity.transaction_replay(call, names, outcomes)
    return capacity.transaction_write(call, list(zip(names, writes, outcomes, strict=True)))


async def transact_get_items(call: CallContext) -> Answer:
    """TransactGetItems: items of one snapshot.

    Raises ServiceError. It is TransactionCanceled, with a reason for each action, if an action was rejected.
    """
    members = [member["Get"] for member in call.input["TransactItems"]]
    clauses = [ReadClauses(call, member) for member in members]
    gets: list[row_commands.Get] = []
    reasons: list[ServiceError | None] = []
    for member, clause in zip(members, clauses, strict=True):
        table = await find_table(call, member["TableName"])
        clause.check_projection(table)
        try:
            gets.append(
                row_commands.Get(
                    table, keys.key_of(table, member["Key"]).position, visible_attributes=clause.projection
                )
            )
            reasons.append(None)
        except BadKey as error:
            if error.rule not in REASON_RULES:
                raise
            reasons.append(service_error_of(error, call.operation))
    if any(reasons):
        raise cancelled(_only_first_invalid(reasons))
    rows = await read_together(gets)
    for get in gets:
        if get.table.properties.get(INSIGHTS):
            for counter in KEY_COUNTERS:
                counter.count_read(get)
    responses = [_response(get, row, clause) for get, row, clause in zip(gets, rows, clauses, strict=True)]
    names = [member["TableName"] for member in members]
    return {"Responses": responses, **capacity.transaction_read(call, names, rows)}


def _response(get: row_commands.Get, row: Row | None, clause: ReadClauses) -> Answer:
    item = _EMPTY if row is None else clause.cut(get.table, row)
    return {} if item == _EMPTY else {"Item": orjson.Fragment(item)}


def _write(name: str, table: Table, action: dict[str, Any], clauses: WriteClauses) -> Write:
    match name:
        case "Put":
            return put_write(table, action["Item"], clauses)
        case "Delete":
            return delete_write(table, action["Key"], clauses)
        case "Update":
            return update_write(table, action["Key"], clauses)
    return check_write(table, action["Key"], clauses)


async def read_together(gets: list[row_commands.Get]) -> list[Row | None]:
    """Return the rows of a transaction's reads. Raises LimitExceeded, and ServiceError if two reads are of one item."""
    if len({(get.table.id, get.position) for get in gets}) < len(gets):
        raise validation(_TWICE)
    return await row_commands.ReadAll(tuple(gets), limits.TRANSACTION_BYTES)


async def write_together(
    call: CallContext,
    member: str,
    writes: list[Write],
    cancelled_by: Callable[[Sequence[GatewayError | None]], ServiceError],
) -> list[row_commands.WriteOutcome] | row_commands.ReplayedOutcome:
    """Return the outcomes of a transaction's writes, or ReplayedOutcome for a known token.

    `member`: the member of the request with the actions. Raises ServiceError if two writes are of one item. If writes
    are rejected, raises the result of `cancelled_by`, called with the error of each write.
    """
    if len({(write.table.id, write.key.position) for write in writes}) < len(writes):
        raise validation(_TWICE)
    try:
        return await row_commands.WriteGroup(tuple(writes), _token_of(call, member))
    except TokenReused:
        raise
    except GroupRefused as refused:
        raise cancelled_by(refused.reasons) from None
    except GatewayError as error:
        if len(writes) > 1 or not _is_reason(error):
            raise
        raise cancelled_by([error]) from None


def _token_of(call: CallContext, member: str) -> row_commands.IdempotencyToken | None:
    """Return the idempotency token of a call. `member`: the member of the request with the actions."""
    name = call.input.get("ClientRequestToken")
    if name is None:
        return None
    body = orjson.dumps(call.input[member], option=orjson.OPT_SORT_KEYS)
    scope = f"dynamodb/{call.caller.account}/{call.caller.region}"
    return row_commands.IdempotencyToken(
        scope, name, hashlib.sha256(body).digest(), limits.TRANSACTION_TOKEN_LIFETIME_MS
    )


def _is_reason(error: GatewayError) -> bool:
    """Return True if the error of a single action is about the action, not about the whole request."""
    service_error = service_error_of(error, "TransactWriteItems")
    return isinstance(error, ConditionFailed) or service_error.code == "ValidationException"


def _cancellation_error(
    actions: list[tuple[str, dict[str, Any]]], writes: list[Write], reasons: Sequence[GatewayError | None]
) -> ServiceError:
    service_errors: list[ServiceError | None] = []
    for (_, action), write, reason in zip(actions, writes, reasons, strict=True):
        if isinstance(reason, ConditionFailed):
            service_errors.append(failed_condition(action, write.table, reason))
        else:
            service_errors.append(None if reason is None else service_error_of(reason, "UpdateItem"))
    return cancelled(_only_first_invalid(service_errors))


def _only_first_invalid(reasons: list[ServiceError | None]) -> list[ServiceError | None]:
    """Keep only the first invalid action, if any: conditions are not evaluated in that case (rule 35)."""
    for at, reason in enumerate(reasons):
        if reason is not None and reason.code == "ValidationException":
            return [reason if place == at else None for place in range(len(reasons))]
    return reasons

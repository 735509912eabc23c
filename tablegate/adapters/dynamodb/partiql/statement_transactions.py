"""ExecuteTransaction: all statements or none, with a reason for each statement that cancels it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import orjson

from tablegate.adapters.dynamodb.capacity import consumed_capacity
from tablegate.adapters.dynamodb.operations.transactions import REASON_RULES, read_together, write_together
from tablegate.adapters.dynamodb.partiql import parsed_statements
from tablegate.adapters.dynamodb.partiql.arguments import Arguments, check_parameters
from tablegate.adapters.dynamodb.partiql.keyed import KeyConditionError
from tablegate.adapters.dynamodb.partiql.nodes import Delete, Parsed, Select, Statement, Update
from tablegate.adapters.dynamodb.partiql.shown_attributes import cut, shown_by
from tablegate.adapters.dynamodb.partiql.sources import find_source
from tablegate.adapters.dynamodb.partiql.statement_members import (
    LONG_STATEMENT,
    PreparedStatement,
    member_error,
    member_write,
    read_position,
    refuse_mixture,
    with_arguments,
)
from tablegate.adapters.dynamodb.partiql.writing import payload_bytes, refusal_of
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, cancelled, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.coroutines import next_tick
from tablegate.gateway.model.commands.row_commands import Get, ReplayedOutcome
from tablegate.gateway.model.errors import BadKey, GatewayError, TableMissing

# ExecuteTransaction


Prepared = TypeVar("Prepared")

_SCHEMA = "The provided key element does not match the schema"
# As captured by dynoxide (eu-west-2) and in DynamoDB Local. Precedes errors in a member's arguments or key.
_MIXED_TRANSACTION = (
    "ExecuteTransaction API does not support both read and write operations in the same request."
)


async def execute_transaction(call: CallContext) -> Answer:
    """ExecuteTransaction: run all statements or none. A repeated token gets the answer without effect.

    Raises ServiceError: TransactionCanceled if a statement fails.
    """
    members: list[PreparedStatement | None] = []
    parsed: list[Parsed] = []
    read: list[tuple[Statement, Arguments]] = []
    for request in call.input["TransactStatements"]:
        check_parameters(request.get("Parameters", []))
    for place, request in enumerate(call.input["TransactStatements"]):
        try:
            if len(request["Statement"]) > LONG_STATEMENT:
                await next_tick()
            parsed.append(parsed_statements.parsed(request["Statement"]))
        except ServiceError as error:
            raise _in_member(place, error) from None
    refuse_mixture([parsed_statement.statement for parsed_statement in parsed], _MIXED_TRANSACTION)
    for place, request in enumerate(call.input["TransactStatements"]):
        try:
            read.append(with_arguments(parsed[place], request, call.wording))
        except ServiceError as error:
            raise _in_member(place, error) from None
    for place, (statement, arguments) in enumerate(read):
        try:
            table = await find_source(call, statement)
        except TableMissing:
            members.append(None)
            continue
        member = PreparedStatement(call.input["TransactStatements"][place], statement, arguments, table)
        _check_in_transaction(place, statement)
        members.append(member)
    if isinstance(read[0][0], Select):
        return await _transact_reads(call, members)
    return await _transact_writes(call, members)


def _in_member(place: int, error: ServiceError) -> ServiceError:
    head = f"Validation failed in TransactStatements[{place}]: "
    return validation(head + (error.message or ""))


def _check_in_transaction(place: int, statement: Statement) -> None:
    text = ""
    if isinstance(statement, (Update, Delete)) and statement.returning != "NONE":
        text = "RETURNING clause is not supported in ExecuteTransaction."
    if isinstance(statement, Select) and len(statement.source) > 1:
        text = "Reads on indices are not supported within transactions."
    if text:
        raise _in_member(place, validation(text))


async def _transact_reads(call: CallContext, members: list[PreparedStatement | None]) -> Answer:
    prepared, gets = _prepare_all(members, lambda member: _get_of(member, call.operation))
    rows = await read_together(gets)
    responses = []
    for member, row in zip(prepared, rows, strict=True):
        assert isinstance(member.statement, Select)
        item = None if row is None else orjson.Fragment(cut(member.table, member.statement.paths, row))
        responses.append({} if item is None else {"Item": item})
    names = [member.table.name for member in prepared]
    return {"Responses": responses, **consumed_capacity.transaction_read(call, names, rows)}


async def _transact_writes(call: CallContext, members: list[PreparedStatement | None]) -> Answer:
    prepared, writes = _prepare_all(members, member_write)
    if sum(map(_payload_of, prepared)) > limits.TRANSACTION_BYTES:
        raise validation(messages.bare("payload-size"))
    outcomes = await write_together(
        call, "TransactStatements", writes, lambda errors: _cancellation_error(call, prepared, errors)
    )
    names = [member.table.name for member in prepared]
    if isinstance(outcomes, ReplayedOutcome):
        return {"Responses": [], **consumed_capacity.transaction_replay(call, names, outcomes)}
    results = list(zip(names, writes, outcomes, strict=True))
    return {"Responses": [], **consumed_capacity.transaction_write(call, results)}


def _get_of(member: PreparedStatement, operation: str) -> Get:
    assert isinstance(member.statement, Select)
    position = read_position(member, operation)
    return Get(member.table, position, visible_attributes=shown_by(member.statement))


def _payload_of(member: PreparedStatement) -> int:
    assert not isinstance(member.statement, Select)
    return payload_bytes(member.statement, member.table, member.arguments)


def _prepare_all(
    members: list[PreparedStatement | None], make: Callable[[PreparedStatement], Prepared]
) -> tuple[list[PreparedStatement], list[Prepared]]:
    """Return the members and the engine's request for each.

    Raises ServiceError: cancelled, if one has no table (None) or fails for a reason that cancels.
    """
    prepared: list[Prepared] = []
    reasons: list[ServiceError | None] = []
    for place, member in enumerate(members):
        reason = None
        if member is None:
            reason = _table_missing()
        else:
            try:
                prepared.append(make(member))
            except (ServiceError, GatewayError) as error:
                reason = _reason(place, error)
        reasons.append(reason)
    if any(reasons):
        raise cancelled(reasons)
    return [member for member in members if member is not None], prepared


def _table_missing() -> ServiceError:
    return ServiceError("ResourceNotFoundException", "Requested resource not found")


def _reason(place: int, error: ServiceError | GatewayError) -> ServiceError:
    """Return the reason for which a member cancels the transaction.

    Raises the error if it rejects the whole request.
    """
    if isinstance(error, KeyConditionError):
        return validation(_SCHEMA)
    if isinstance(error, BadKey) and error.rule in REASON_RULES:
        return service_error_of(error, "ExecuteTransaction")
    failure = service_error_of(error, "ExecuteTransaction")
    raise _in_member(place, failure) if failure.code == "ValidationException" else failure


def _cancellation_error(
    call: CallContext, members: list[PreparedStatement], errors: Sequence[GatewayError | None]
) -> ServiceError:
    service_errors: list[ServiceError | None] = []
    for member, error in zip(members, errors, strict=True):
        if error is None:
            service_errors.append(None)
            continue
        assert not isinstance(member.statement, Select)
        service_errors.append(
            refusal_of(member.statement, error, member_error(member, error, call.operation))
        )
    return cancelled(service_errors)

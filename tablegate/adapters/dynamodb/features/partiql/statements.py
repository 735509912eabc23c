"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction.

A batch has one answer or error for each member. A transaction runs all statements or none, with a reason for each
statement that cancels it. reading.py and prepared_statements.py convert the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import orjson

from tablegate.adapters.dynamodb import capacity
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.features.partiql import parsing, prepared_statements
from tablegate.adapters.dynamodb.features.partiql.prepared_statements import (
    LONG_STATEMENT,
    PreparedStatement,
    find_source,
    member_error,
    member_write,
    payload_bytes,
    read_position,
    refusal_of,
    refuse_mixture,
    with_arguments,
    write_of,
)
from tablegate.adapters.dynamodb.features.partiql.reading import render_selected, select, shown_by
from tablegate.adapters.dynamodb.features.partiql.statement_keys import KeyConditionError
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    Arguments,
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Statement,
    Update,
    check_parameters,
)
from tablegate.adapters.dynamodb.operations.items import returned, run_write
from tablegate.adapters.dynamodb.operations.transactions import REASON_RULES, read_together, write_together
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import (
    ErrorTexts,
    ServiceError,
    cancelled,
    short_code,
    validation,
)
from tablegate.adapters.dynamodb.wire.gateway_errors import error_for_caller, service_error_of
from tablegate.gateway.dialects.coroutines import all_of, next_tick
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, GroupOutcome, ReplayedOutcome, WriteGroup
from tablegate.gateway.model.errors import BadKey, GatewayError, TableMissing
from tablegate.gateway.model.values.rows import Row

# ExecuteStatement and BatchExecuteStatement


# As captured by dynoxide (eu-west-2) and in DynamoDB Local. Precedes errors in a member's arguments or key.
_MIXED_BATCH = "Read and write requests together in the same batch is not supported."
_EXISTS_ELSEWHERE = "EXISTS can only be used in ExecuteTransaction write requests."


MemberOutcome = Row | GroupOutcome | None
"""The outcome of a member of a batch: a read's row, or a write's outcome."""


def _read(members: prepared_statements.Input, error_texts: ErrorTexts) -> tuple[Statement, Arguments]:
    check_parameters(members.get("Parameters", []))
    return prepared_statements.with_arguments(parsing.parsed(members["Statement"]), members, error_texts)


# ExecuteStatement


async def execute_statement(call: CallContext) -> Answer:
    """ExecuteStatement: run one statement. Raises ServiceError, and the errors of the read or write.

    A SELECT returns a page, with a NextToken if there is more. A write returns the attributes in its RETURNING.
    """
    statement, arguments = _read(call.input, call.error_texts)
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    if isinstance(statement, Select):
        return await select(call, statement, arguments)
    table = await find_source(call, statement)
    write = prepared_statements.with_shown(write_of(statement, table, arguments), statement, call.input)
    try:
        answer = await run_write(_as_item_call(call, statement, call.input), write)
    except (ServiceError, errors.RowRuleViolated) as error:
        raise refusal_of(statement, error, service_error_of(error, call.operation)) from None
    attributes = answer.pop("Attributes", None)
    return {"Items": [attributes] if attributes else [], **answer}


def _as_item_call(
    call: CallContext, statement: Insert | Update | Delete, members: prepared_statements.Input
) -> CallContext:
    """Return the call of the item operation for a writing statement, with the options that affect its answer."""
    options = {
        name: members[name]
        for name in ("ReturnConsumedCapacity", "ReturnValuesOnConditionCheckFailure")
        if name in members
    }
    returning = "NONE" if isinstance(statement, Insert) else statement.returning
    return call._replace(input={"TableName": statement.source[0], "ReturnValues": returning, **options})


# BatchExecuteStatement


async def batch_execute_statement(call: CallContext) -> Answer:
    """BatchExecuteStatement: run each statement separately. Raises ServiceError if the batch as a whole is invalid.

    A statement that fails or is forbidden has an error at its place in the answer.
    """
    members = call.input["Statements"]
    answers: list[dict[str, Any]] = [{} for _ in members]
    parsed = await _parsed_members(members, answers)
    statements = [each.statement for each in parsed.values() if not isinstance(each.statement, Exists)]
    prepared_statements.refuse_mixture(statements, _MIXED_BATCH)
    jobs: list[tuple[int, prepared_statements.PreparedStatement, Get | WriteGroup]] = []
    for place, parsed_statement in parsed.items():
        try:
            statement, arguments = prepared_statements.with_arguments(
                parsed_statement, members[place], call.error_texts
            )
            table = await find_source(call, statement)
        except (ServiceError, errors.TableMissing, errors.NotPermitted) as error:
            answers[place] = _error_answer(error_for_caller(error, call.operation, call.authorization))
            continue
        member = prepared_statements.PreparedStatement(members[place], statement, arguments, table)
        answers[place] = {"TableName": statement.source[0]}
        try:
            jobs.append((place, member, _permitted(call, _batch_command(member))))
        except errors.NotPermitted as refusal:
            answers[place] = _error_answer(error_for_caller(refusal, call.operation, call.authorization))
        except (ServiceError, errors.GatewayError) as error:
            answers[place] |= _error_answer(service_error_of(error, call.operation))
    places = [
        (member.table.id, command.position if isinstance(command, Get) else command.writes[0].key.position)
        for _, member, command in jobs
    ]
    if len(set(places)) < len(places):
        raise validation(error_texts.bare("duplicate-keys"))
    commands: list[Command[MemberOutcome]] = [command for _, _, command in jobs]
    outcomes = await all_of(commands)
    results = []
    for (place, member, command), outcome in zip(jobs, outcomes, strict=True):
        answers[place] |= _batch_answer(call, member, command, outcome)
        results.append((member, command, outcome))
    return {"Responses": answers, **_batch_charges(call, results)}


async def _parsed_members(members: list[dict[str, Any]], answers: list[dict[str, Any]]) -> dict[int, Parsed]:
    """Return the parsed statements of a batch, by position. Errors of the others are put into `answers`."""
    parsed: dict[int, Parsed] = {}
    for place, member in enumerate(members):
        try:
            if len(member["Statement"]) > prepared_statements.LONG_STATEMENT:
                await next_tick()
            check_parameters(member.get("Parameters", []))
            parsed[place] = parsing.parsed(member["Statement"])
        except ServiceError as error:
            answers[place] = _error_answer(error)
    return parsed


def _permitted(call: CallContext, command: Get | WriteGroup) -> Get | WriteGroup:
    """Authorize the command of one statement, so that the others of its batch can run. Raises NotPermitted."""
    refusal = None if call.authorization is None else call.authorization.refusal_of_command(command)
    if refusal is not None:
        raise refusal
    return command


def _batch_command(member: prepared_statements.PreparedStatement) -> Get | WriteGroup:
    statement = member.statement
    if isinstance(statement, Select):
        position = prepared_statements.read_position(member, "BatchExecuteStatement")
        may_be_old = not member.given.get("ConsistentRead")
        return Get(member.table, position, may_be_old=may_be_old, visible_attributes=shown_by(statement))
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    return WriteGroup((prepared_statements.member_write(member),))


def _batch_answer(
    call: CallContext,
    member: prepared_statements.PreparedStatement,
    command: Get | WriteGroup,
    outcome: MemberOutcome,
) -> dict[str, Any]:
    statement = member.statement
    if isinstance(statement, Select):
        if isinstance(outcome, errors.GatewayError):
            return _error_answer(service_error_of(outcome, call.operation))
        if outcome is None:
            return {}
        assert isinstance(outcome, Row)
        return {"Item": orjson.Fragment(render_selected(member.table, statement.paths, outcome))}
    assert not isinstance(statement, Exists)
    if isinstance(outcome, errors.GatewayError):
        return _error_answer(
            refusal_of(statement, outcome, prepared_statements.member_error(member, outcome, call.operation))
        )
    assert isinstance(command, WriteGroup)
    assert isinstance(outcome, list)
    answer = returned(_as_item_call(call, statement, member.given), command.writes[0], outcome[0])
    return {"Item": answer["Attributes"]} if answer.get("Attributes") else {}


def _batch_charges(
    call: CallContext,
    results: list[tuple[prepared_statements.PreparedStatement, Get | WriteGroup, MemberOutcome]],
) -> dict[str, Any]:
    """Return the consumed capacity of a batch of reads or of writes."""
    row_writes = [
        (member.table.name, command.writes[0], outcome[0])
        for member, command, outcome in results
        if isinstance(command, WriteGroup) and isinstance(outcome, list)
    ]
    if row_writes:
        return capacity.batch_write(call, row_writes)
    read = [
        (member.table.name, outcome, bool(member.given.get("ConsistentRead")))
        for member, _, outcome in results
        if outcome is None or isinstance(outcome, Row)
    ]
    return capacity.batch_read(call, read)


def _error_answer(error: ServiceError) -> dict[str, Any]:
    return {"Error": {"Code": short_code(error), "Message": error.message, **error.extra}}


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
            parsed.append(parsing.parsed(request["Statement"]))
        except ServiceError as error:
            raise _in_member(place, error) from None
    refuse_mixture([parsed_statement.statement for parsed_statement in parsed], _MIXED_TRANSACTION)
    for place, request in enumerate(call.input["TransactStatements"]):
        try:
            read.append(with_arguments(parsed[place], request, call.error_texts))
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
        item = (
            None
            if row is None
            else orjson.Fragment(render_selected(member.table, member.statement.paths, row))
        )
        responses.append({} if item is None else {"Item": item})
    names = [member.table.name for member in prepared]
    return {"Responses": responses, **capacity.transaction_read(call, names, rows)}


async def _transact_writes(call: CallContext, members: list[PreparedStatement | None]) -> Answer:
    prepared, writes = _prepare_all(members, member_write)
    if sum(map(_payload_of, prepared)) > limits.TRANSACTION_BYTES:
        raise validation(error_texts.bare("payload-size"))
    outcomes = await write_together(
        call, "TransactStatements", writes, lambda errors: _cancellation_error(call, prepared, errors)
    )
    names = [member.table.name for member in prepared]
    if isinstance(outcomes, ReplayedOutcome):
        return {"Responses": [], **capacity.transaction_replay(call, names, outcomes)}
    results = list(zip(names, writes, outcomes, strict=True))
    return {"Responses": [], **capacity.transaction_write(call, results)}


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

"""ExecuteStatement and BatchExecuteStatement: one answer or error, or one for each member.

reading.py and writing.py convert the statements.
"""

from __future__ import annotations

from typing import Any

import orjson

from tablegate.adapters.dynamodb.capacity import consumed_capacity
from tablegate.adapters.dynamodb.operations.items import returned, run_write
from tablegate.adapters.dynamodb.partiql import parsed_statements, statement_members
from tablegate.adapters.dynamodb.partiql.arguments import Arguments, check_parameters
from tablegate.adapters.dynamodb.partiql.nodes import (
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Statement,
    Update,
)
from tablegate.adapters.dynamodb.partiql.reading import select
from tablegate.adapters.dynamodb.partiql.shown_attributes import cut, shown_by
from tablegate.adapters.dynamodb.partiql.sources import find_source
from tablegate.adapters.dynamodb.partiql.writing import refusal_of, write_of
from tablegate.adapters.dynamodb.wire import messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, Wording, short_code, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import error_for_caller, service_error_of
from tablegate.gateway.coroutines import all_of, next_tick
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, GroupOutcome, WriteGroup
from tablegate.gateway.model.values.rows import Row

# ExecuteStatement and BatchExecuteStatement


# As captured by dynoxide (eu-west-2) and in DynamoDB Local. Precedes errors in a member's arguments or key.
_MIXED_BATCH = "Read and write requests together in the same batch is not supported."
_EXISTS_ELSEWHERE = "EXISTS can only be used in ExecuteTransaction write requests."


MemberOutcome = Row | GroupOutcome | None
"""The outcome of a member of a batch: a read's row, or a write's outcome."""


def _read(members: statement_members.Input, wording: Wording) -> tuple[Statement, Arguments]:
    check_parameters(members.get("Parameters", []))
    return statement_members.with_arguments(parsed_statements.parsed(members["Statement"]), members, wording)


# ExecuteStatement


async def execute_statement(call: CallContext) -> Answer:
    """ExecuteStatement: run one statement. Raises ServiceError, and the errors of the read or write.

    A SELECT returns a page, with a NextToken if there is more. A write returns the attributes in its RETURNING.
    """
    statement, arguments = _read(call.input, call.wording)
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    if isinstance(statement, Select):
        return await select(call, statement, arguments)
    table = await find_source(call, statement)
    write = statement_members.with_shown(write_of(statement, table, arguments), statement, call.input)
    try:
        answer = await run_write(_as_item_call(call, statement, call.input), write)
    except (ServiceError, errors.RowRuleViolated) as error:
        raise refusal_of(statement, error, service_error_of(error, call.operation)) from None
    attributes = answer.pop("Attributes", None)
    return {"Items": [attributes] if attributes else [], **answer}


def _as_item_call(
    call: CallContext, statement: Insert | Update | Delete, members: statement_members.Input
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
    statement_members.refuse_mixture(statements, _MIXED_BATCH)
    jobs: list[tuple[int, statement_members.PreparedStatement, Get | WriteGroup]] = []
    for place, parsed_statement in parsed.items():
        try:
            statement, arguments = statement_members.with_arguments(
                parsed_statement, members[place], call.wording
            )
            table = await find_source(call, statement)
        except (ServiceError, errors.TableMissing, errors.NotPermitted) as error:
            answers[place] = _error_answer(error_for_caller(error, call.operation, call.authorization))
            continue
        member = statement_members.PreparedStatement(members[place], statement, arguments, table)
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
        raise validation(messages.bare("duplicate-keys"))
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
            if len(member["Statement"]) > statement_members.LONG_STATEMENT:
                await next_tick()
            check_parameters(member.get("Parameters", []))
            parsed[place] = parsed_statements.parsed(member["Statement"])
        except ServiceError as error:
            answers[place] = _error_answer(error)
    return parsed


def _permitted(call: CallContext, command: Get | WriteGroup) -> Get | WriteGroup:
    """Authorize the command of one statement, so that the others of its batch can run. Raises NotPermitted."""
    refusal = None if call.authorization is None else call.authorization.refusal_of_command(command)
    if refusal is not None:
        raise refusal
    return command


def _batch_command(member: statement_members.PreparedStatement) -> Get | WriteGroup:
    statement = member.statement
    if isinstance(statement, Select):
        position = statement_members.read_position(member, "BatchExecuteStatement")
        may_be_old = not member.given.get("ConsistentRead")
        return Get(member.table, position, may_be_old=may_be_old, visible_attributes=shown_by(statement))
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    return WriteGroup((statement_members.member_write(member),))


def _batch_answer(
    call: CallContext,
    member: statement_members.PreparedStatement,
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
        return {"Item": orjson.Fragment(cut(member.table, statement.paths, outcome))}
    assert not isinstance(statement, Exists)
    if isinstance(outcome, errors.GatewayError):
        return _error_answer(
            refusal_of(statement, outcome, statement_members.member_error(member, outcome, call.operation))
        )
    assert isinstance(command, WriteGroup)
    assert isinstance(outcome, list)
    answer = returned(_as_item_call(call, statement, member.given), command.writes[0], outcome[0])
    return {"Item": answer["Attributes"]} if answer.get("Attributes") else {}


def _batch_charges(
    call: CallContext,
    results: list[tuple[statement_members.PreparedStatement, Get | WriteGroup, MemberOutcome]],
) -> dict[str, Any]:
    """Return the consumed capacity of a batch of reads or of writes."""
    row_writes = [
        (member.table.name, command.writes[0], outcome[0])
        for member, command, outcome in results
        if isinstance(command, WriteGroup) and isinstance(outcome, list)
    ]
    if row_writes:
        return consumed_capacity.batch_write(call, row_writes)
    read = [
        (member.table.name, outcome, bool(member.given.get("ConsistentRead")))
        for member, _, outcome in results
        if outcome is None or isinstance(outcome, Row)
    ]
    return consumed_capacity.batch_read(call, read)


def _error_answer(error: ServiceError) -> dict[str, Any]:
    return {"Error": {"Code": short_code(error), "Message": error.message, **error.extra}}

"""The operations of PartiQL: ExecuteStatement, BatchExecuteStatement, ExecuteTransaction.

Knows what a statement may be in each, and how each tells what came of it: as one answer or error, member by member, or all
or nothing with a reason for each. What statements mean is reading.py's and writing.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from tablegate.adapters.dynamodb.capacity import consumed_capacity
from tablegate.adapters.dynamodb.expressions.request_clauses import shown_of
from tablegate.adapters.dynamodb.operations.items import returned, written
from tablegate.adapters.dynamodb.operations.transactions import REASON_RULES, read_together, write_together
from tablegate.adapters.dynamodb.partiql import keyed, parsed_statements
from tablegate.adapters.dynamodb.partiql.arguments import Arguments, check_parameters
from tablegate.adapters.dynamodb.partiql.keyed import KeyRefused
from tablegate.adapters.dynamodb.partiql.nodes import (
    Delete,
    Exists,
    Insert,
    Parsed,
    Select,
    Statement,
    Update,
)
from tablegate.adapters.dynamodb.partiql.reading import cut, select, shown_by
from tablegate.adapters.dynamodb.partiql.sources import find_source
from tablegate.adapters.dynamodb.partiql.writing import payload_bytes, refusal_of, write_of
from tablegate.adapters.dynamodb.values import composites, keys
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, Call
from tablegate.adapters.dynamodb.wire.errors import (
    ServiceError,
    cancelled,
    condition_failed,
    short_code,
    validation,
)
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.refusals import not_permitted
from tablegate.adapters.dynamodb.wire.styles import edited
from tablegate.adapters.dynamodb.wire.wording import Wording
from tablegate.gateway.exchanges import each
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Get, GroupOutcome, Replayed, WriteGroup
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import (
    BadKey,
    ConditionFailed,
    GatewayError,
    NotPermitted,
    RowRefused,
    TableMissing,
)
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

Input = Mapping[str, Any]
Made = TypeVar("Made")

_SCHEMA = "The provided key element does not match the schema"
# Both as dynoxide captured them (eu-west-2), and DynamoDB Local says; before what is wrong with a member's arguments or key.
_MIXED_BATCH = "Read and write requests together in the same batch is not supported."
_MIXED_TRANSACTION = (
    "ExecuteTransaction API does not support both read and write operations in the same request."
)
_EXISTS_ELSEWHERE = "EXISTS can only be used in ExecuteTransaction write requests."


# In characters. Before each longer one is parsed others have a turn: 8,192 take some hundredths of a second.
_LONG_STATEMENT = 1024


MemberOutcome = Row | GroupOutcome | None
"""What came of a member of a batch: a read's row, or what its write came to."""


class Prepared(NamedTuple):
    """A member of a batch or transaction whose statement and table are known."""

    given: Input
    statement: Statement
    arguments: Arguments
    table: Table


def _read(given: Input, wording: Wording) -> tuple[Statement, Arguments]:
    """A request's statement with its arguments. Raises ServiceError."""
    check_parameters(given.get("Parameters", []))
    return _with_arguments(parsed_statements.parsed(given["Statement"]), given, wording)


def _with_arguments(parsed: Parsed, given: Input, wording: Wording) -> tuple[Statement, Arguments]:
    return parsed.statement, Arguments(parsed.parameters, given.get("Parameters", []), wording)


# ExecuteStatement


def execute_statement(call: Call) -> Exchange[Answer]:
    """ExecuteStatement: run one statement. A SELECT is answered with a page and a NextToken if there is more, a write with
    what its RETURNING asks for. Raises ServiceError, and what the read or write met."""
    statement, arguments = _read(call.input, call.wording)
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    if isinstance(statement, Select):
        return (yield from select(call, statement, arguments))
    table = yield from find_source(call, statement)
    write = _with_shown(write_of(statement, table, arguments), statement, call.input)
    try:
        answer = yield from written(_as_item_call(call, statement), write)
    except (ServiceError, RowRefused) as error:
        raise refusal_of(statement, error, service_error_of(error, call.operation)) from None
    attributes = answer.pop("Attributes", None)
    return {"Items": [attributes] if attributes else [], **answer}


def _as_item_call(call: Call, statement: Insert | Update | Delete, given: Input | None = None) -> Call:
    """The call of the item operation that a writing statement stands for, as far as its answer depends on it."""
    asked = call.input if given is None else given
    options = {
        name: asked[name]
        for name in ("ReturnConsumedCapacity", "ReturnValuesOnConditionCheckFailure")
        if name in asked
    }
    returning = "NONE" if isinstance(statement, Insert) else statement.returning
    return call._replace(input={"TableName": statement.source[0], "ReturnValues": returning, **options})


# BatchExecuteStatement


def batch_execute_statement(call: Call) -> Exchange[Answer]:
    """BatchExecuteStatement: run statements each by itself. One that fails or is forbidden has an error in its place in the
    answer. Raises ServiceError for what is wrong with the batch as a whole."""
    members = call.input["Statements"]
    answers: list[dict[str, Any]] = [{} for _ in members]
    parsed = yield from _parsed_members(members, answers)
    _refuse_mixture(
        [found.statement for found in parsed.values() if not isinstance(found.statement, Exists)],
        _MIXED_BATCH,
    )
    jobs: list[tuple[int, Prepared, Get | WriteGroup]] = []
    for place, found in parsed.items():
        try:
            statement, arguments = _with_arguments(found, members[place], call.wording)
            table = yield from find_source(call, statement)
        except (ServiceError, TableMissing, NotPermitted) as error:
            answers[place] = _failed(_told_of_member(call, error))
            continue
        member = Prepared(members[place], statement, arguments, table)
        answers[place] = {"TableName": statement.source[0]}
        try:
            jobs.append((place, member, _permitted(call, _batch_command(member))))
        except NotPermitted as refusal:
            answers[place] = _failed(_told_of_member(call, refusal))
        except (ServiceError, GatewayError) as error:
            answers[place] |= _failed(service_error_of(error, call.operation))
    places = [
        (member.table.id, command.position if isinstance(command, Get) else command.writes[0].key.position)
        for _, member, command in jobs
    ]
    if len(set(places)) < len(places):
        raise validation(messages.bare("duplicate-keys"))
    commands: list[Command[MemberOutcome]] = [command for _, _, command in jobs]
    outcomes = yield from each(commands)
    done = []
    for (place, member, command), outcome in zip(jobs, outcomes, strict=True):
        answers[place] |= _batch_answer(call, member, command, outcome)
        done.append((member, command, outcome))
    return {"Responses": answers, **_batch_charges(call, done)}


def _parsed_members(
    members: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> Exchange[dict[int, Parsed]]:
    """The statements of a batch that can be parsed, by their places. Of the others the error is put into `answers`."""
    parsed: dict[int, Parsed] = {}
    for place, given in enumerate(members):
        try:
            if len(given["Statement"]) > _LONG_STATEMENT:
                yield []
            check_parameters(given.get("Parameters", []))
            parsed[place] = parsed_statements.parsed(given["Statement"])
        except ServiceError as error:
            answers[place] = _failed(error)
    return parsed


def _refuse_mixture(statements: Sequence[Statement], text: str) -> None:
    """Raise ServiceError if some statements read and others write."""
    if len({isinstance(statement, Select) for statement in statements}) > 1:
        raise validation(text)


def _permitted(call: Call, command: Get | WriteGroup) -> Get | WriteGroup:
    """The command of a statement, which is judged by itself: the others of its batch run. Raises NotPermitted."""
    refusal = None if call.authorization is None else call.authorization.refusal_of_command(command)
    if refusal is not None:
        raise refusal
    return command


def _told_of_member(call: Call, error: ServiceError | GatewayError) -> ServiceError:
    if isinstance(error, NotPermitted) and call.authorization is not None:
        return not_permitted(error, call.operation, call.authorization)
    return service_error_of(error, call.operation)


def _batch_command(member: Prepared) -> Get | WriteGroup:
    statement = member.statement
    if isinstance(statement, Select):
        position = _read_position(member, "BatchExecuteStatement")
        may_be_old = not member.given.get("ConsistentRead")
        return Get(member.table, position, may_be_old=may_be_old, shown=shown_by(statement))
    if isinstance(statement, Exists):
        raise validation(_EXISTS_ELSEWHERE)
    return WriteGroup((_write_of(member),))


def _read_position(member: Prepared, operation: str) -> Position:
    """The place of the one item that a SELECT in a batch or transaction reads. Raises ServiceError, BadKey."""
    statement, table, arguments = member.statement, member.table, member.arguments
    assert isinstance(statement, Select)
    schema = composites.shown_schema(table.key_schema)
    arguments.predicate(statement.where)
    named = None
    if len(statement.source) == 1 and statement.where is not None:
        found = keyed.branches(statement.where, schema, arguments)
        if found is not None:
            keyed.ranges(found, schema, table, is_index=False)
        named = keyed.read_item(statement.where, schema, arguments)
    if named is None:
        raise validation(
            f"Select statements within {operation} must specify the primary key in the where clause."
        )
    return keys.key_of(table, {name: arguments.wire(node) for name, node in named.items()}).position


def _batch_answer(
    call: Call, member: Prepared, command: Get | WriteGroup, outcome: MemberOutcome
) -> dict[str, Any]:
    statement = member.statement
    if isinstance(statement, Select):
        if isinstance(outcome, GatewayError):
            return _failed(service_error_of(outcome, call.operation))
        if outcome is None:
            return {}
        assert isinstance(outcome, Row)
        return {"Item": orjson.Fragment(cut(member.table, statement.paths, outcome))}
    assert not isinstance(statement, Exists)
    if isinstance(outcome, GatewayError):
        return _failed(refusal_of(statement, outcome, _told(member, outcome, call.operation)))
    assert isinstance(command, WriteGroup)
    assert isinstance(outcome, list)
    answer = returned(_as_item_call(call, statement, member.given), command.writes[0], outcome[0])
    return {"Item": answer["Attributes"]} if answer.get("Attributes") else {}


def _batch_charges(
    call: Call, done: list[tuple[Prepared, Get | WriteGroup, MemberOutcome]]
) -> dict[str, Any]:
    """What a batch cost, which reads or writes."""
    written = [
        (member.table.name, command.writes[0], outcome[0])
        for member, command, outcome in done
        if isinstance(command, WriteGroup) and isinstance(outcome, list)
    ]
    if written:
        return consumed_capacity.batch_write(call, written)
    read = [
        (member.table.name, outcome, bool(member.given.get("ConsistentRead")))
        for member, _, outcome in done
        if outcome is None or isinstance(outcome, Row)
    ]
    return consumed_capacity.batch_read(call, read)


def _failed(error: ServiceError) -> dict[str, Any]:
    return {"Error": {"Code": short_code(error), "Message": error.message, **error.extra}}


def _told(member: Prepared, error: GatewayError, operation: str) -> ServiceError:
    """The error of a write, with the item as it stood where the member asks for it."""
    if not isinstance(error, ConditionFailed):
        return service_error_of(error, operation)
    consumed_capacity.failed_write(member.table, error.row)
    wanted = member.given.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and error.row is not None
    return condition_failed(composites.render(member.table.key_schema, error.row) if wanted else None)


# ExecuteTransaction


def execute_transaction(call: Call) -> Exchange[Answer]:
    """ExecuteTransaction: all statements happen, or none. A token that was seen before is answered without effect. Raises
    ServiceError, which is TransactionCanceled where a statement was refused."""
    members: list[Prepared | None] = []
    parsed: list[Parsed] = []
    read: list[tuple[Statement, Arguments]] = []
    for given in call.input["TransactStatements"]:
        check_parameters(given.get("Parameters", []))
    for place, given in enumerate(call.input["TransactStatements"]):
        try:
            if len(given["Statement"]) > _LONG_STATEMENT:
                yield []
            parsed.append(parsed_statements.parsed(given["Statement"]))
        except ServiceError as error:
            raise _in_member(place, error) from None
    _refuse_mixture([found.statement for found in parsed], _MIXED_TRANSACTION)
    for place, given in enumerate(call.input["TransactStatements"]):
        try:
            read.append(_with_arguments(parsed[place], given, call.wording))
        except ServiceError as error:
            raise _in_member(place, error) from None
    for place, (statement, arguments) in enumerate(read):
        try:
            table = yield from find_source(call, statement)
        except TableMissing:
            members.append(None)
            continue
        member = Prepared(call.input["TransactStatements"][place], statement, arguments, table)
        _check_in_transaction(place, statement)
        members.append(member)
    if isinstance(read[0][0], Select):
        return (yield from _transact_reads(call, members))
    return (yield from _transact_writes(call, members))


def _in_member(place: int, error: ServiceError) -> ServiceError:
    head = f"Validation failed in TransactStatements[{place}]: "
    return validation(edited(error.message or "", lambda text: head + text))


def _check_in_transaction(place: int, statement: Statement) -> None:
    text = ""
    if isinstance(statement, (Update, Delete)) and statement.returning != "NONE":
        text = "RETURNING clause is not supported in ExecuteTransaction."
    if isinstance(statement, Select) and len(statement.source) > 1:
        text = "Reads on indices are not supported within transactions."
    if text:
        raise _in_member(place, validation(text))


def _transact_reads(call: Call, members: list[Prepared | None]) -> Exchange[Answer]:
    known, gets = _made_of(members, lambda member: _get_of(member, call.operation))
    rows = yield from read_together(gets)
    responses = []
    for member, row in zip(known, rows, strict=True):
        assert isinstance(member.statement, Select)
        shown = None if row is None else orjson.Fragment(cut(member.table, member.statement.paths, row))
        responses.append({} if shown is None else {"Item": shown})
    names = [member.table.name for member in known]
    return {"Responses": responses, **consumed_capacity.transaction_read(call, names, rows)}


def _transact_writes(call: Call, members: list[Prepared | None]) -> Exchange[Answer]:
    known, writes = _made_of(members, _write_of)
    if sum(map(_payload_of, known)) > limits.TRANSACTION_BYTES:
        raise validation(messages.bare("payload-size"))
    outcomes = yield from write_together(
        call, "TransactStatements", writes, lambda errors: _cancelled(call, known, errors)
    )
    names = [member.table.name for member in known]
    if isinstance(outcomes, Replayed):
        return {"Responses": [], **consumed_capacity.transaction_replay(call, names, outcomes)}
    done = list(zip(names, writes, outcomes, strict=True))
    return {"Responses": [], **consumed_capacity.transaction_write(call, done)}


def _get_of(member: Prepared, operation: str) -> Get:
    assert isinstance(member.statement, Select)
    position = _read_position(member, operation)
    return Get(member.table, position, shown=shown_by(member.statement))


def _write_of(member: Prepared) -> Write:
    assert not isinstance(member.statement, Select)
    write = write_of(member.statement, member.table, member.arguments)
    return _with_shown(write, member.statement, member.given)


def _with_shown(write: Write, statement: Insert | Update | Delete | Exists, given: Input) -> Write:
    """A write with what its answer shows: by RETURNING, and by the member of the request about failed conditions."""
    returning = statement.returning if isinstance(statement, (Update, Delete)) else ""
    return write._replace(shown=shown_of({**given, "ReturnValues": returning or "NONE"}))


def _payload_of(member: Prepared) -> int:
    assert not isinstance(member.statement, Select)
    return payload_bytes(member.statement, member.table, member.arguments)


def _made_of(
    members: list[Prepared | None], make: Callable[[Prepared], Made]
) -> tuple[list[Prepared], list[Made]]:
    """The members, and what each asks of the engine. Raises ServiceError: cancelled, if one has no table (None) or cannot be
    made for a reason that cancels."""
    made: list[Made] = []
    reasons: list[ServiceError | None] = []
    for place, member in enumerate(members):
        reason = None
        if member is None:
            reason = _table_missing()
        else:
            try:
                made.append(make(member))
            except (ServiceError, GatewayError) as error:
                reason = _reason(place, error)
        reasons.append(reason)
    if any(reasons):
        raise cancelled(reasons)
    return [member for member in members if member is not None], made


def _table_missing() -> ServiceError:
    return ServiceError("ResourceNotFoundException", "Requested resource not found")


def _reason(place: int, error: ServiceError | GatewayError) -> ServiceError:
    """Why a member cancels the transaction; raised if it refuses the request instead."""
    if isinstance(error, KeyRefused):
        return validation(_SCHEMA)
    if isinstance(error, BadKey) and error.rule in REASON_RULES:
        return service_error_of(error, "ExecuteTransaction")
    told = service_error_of(error, "ExecuteTransaction")
    raise _in_member(place, told) if told.code == "ValidationException" else told


def _cancelled(call: Call, members: list[Prepared], errors: Sequence[GatewayError | None]) -> ServiceError:
    listed: list[ServiceError | None] = []
    for member, error in zip(members, errors, strict=True):
        if error is None:
            listed.append(None)
            continue
        assert not isinstance(member.statement, Select)
        listed.append(refusal_of(member.statement, error, _told(member, error, call.operation)))
    return cancelled(listed)

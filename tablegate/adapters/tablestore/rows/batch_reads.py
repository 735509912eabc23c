"""BatchGetRow: many reads of single rows in one request.

Errors of the request as a whole fail it. An error of one row is the result of that row. Results keep the order of the
request. Source: docs/protocols/table-store.md section 4.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import consumed_capacity
from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows.checks import check_counts
from tablegate.adapters.tablestore.rows.rows import command_to_read, found_row, shown_row
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire import errors, limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex, find_target
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway import request_context
from tablegate.gateway.coroutines import all_of, next_tick
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import patterns_of
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.values.rows import Row

_NO_VERSION = "No version condition is specified while querying row."


_ReadRow = Command[Row | Page | None]


class _TablePart(NamedTuple):
    """The reads of one table: for each requested row the command, or the error of the row."""

    target: TableOrIndex
    selection: selections.RowSelection
    reads: list[_ReadRow | errors.ServiceError]


async def batch_get_row(call: CallContext) -> Message:
    """BatchGetRow: read rows of several tables by their keys.

    The reply has the errors of single rows. Raises ServiceError, TableMissing for errors of the request as a whole.
    """
    tables = call.message.tables
    check_counts(
        "No row specified in the request of BatchGetRow.",
        limits.BATCH_GET_ROWS_MAX,
        [(table.table_name, len(table.primary_key)) for table in tables],
    )
    parts: list[_TablePart] = []
    for table in tables:
        selection = selections.parse(table, _NO_VERSION)
        target = await find_target(call, table.table_name)
        reads = [_command_or_error(call, target, selection, data) for data in table.primary_key]
        parts.append(_TablePart(target, selection, reads))
    commands = [read for part in parts for read in part.reads if not isinstance(read, errors.ServiceError)]
    outcomes = iter(await all_of(commands))
    answer = messages.BatchGetRowResponse()
    for table, part in zip(tables, parts, strict=True):
        results = [
            read if isinstance(read, errors.ServiceError) else _result(next(outcomes)) for read in part.reads
        ]
        found_rows = [result for result in results if isinstance(result, Row)]
        encoded_rows = map(part.selection.encoder(part.target), found_rows)
        replies = answer.tables.add(table_name=table.table_name).rows
        is_slow = any(patterns_of(part.selection.predicate))
        for result in results:
            if is_slow:
                await next_tick()  # let other requests run between rows with slow filters
            _add_reply(replies, part, next(encoded_rows) if isinstance(result, Row) else result)
    return answer


def _command_or_error(
    call: CallContext, target: TableOrIndex, selection: selections.RowSelection, data: bytes
) -> _ReadRow | errors.ServiceError:
    """Return the command that reads a row, or the error of this row. Raises ServiceError for an error of the request."""
    is_left_out = request_context.is_left_out
    if is_left_out is not None and is_left_out():
        return errors.UNPROCESSED
    try:
        return command_to_read(call, target, keys.decode(data), selection)
    except errors.ServiceError as error:
        if not errors.is_of_row(error):
            raise
        return error


def _result(outcome: Row | Page | GatewayError | None) -> Row | GatewayError | None:
    return outcome if isinstance(outcome, GatewayError) else found_row(outcome)


def _add_reply(
    replies: Any, part: _TablePart, result: Row | GatewayError | errors.ServiceError | None
) -> None:
    """Add the reply for a row. `result`: the encoded row, its error, or None."""
    if isinstance(result, GatewayError | errors.ServiceError):
        replies.add(is_ok=False, error=errors.service_error_of(result).as_message())
        return
    data, consumed = shown_row(part.target, part.selection, result)
    consumed_capacity.count_read(part.target, consumed)
    replies.add(is_ok=True, consumed=consumed, row=data or None)

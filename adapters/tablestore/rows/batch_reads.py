"""BatchGetRow: many reads of single rows in one request.

Errors of the request as a whole fail it. An error of one row is the result of that row. Results keep the order of the
request. Source: docs/protocols/table-store.md section 4.5.
"""

from __future__ import annotations

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import consumed_capacity
from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows.checks import (
    check_counts,
)
from tablegate.adapters.tablestore.rows.rows import command_to_read, shown_row
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire import errors, limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex, find_target
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway import request_context
from tablegate.gateway.exchanges import each
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import patterns_of
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.values.rows import Row

_NO_VERSION = "No version condition is specified while querying row."


def batch_get_row(call: CallContext) -> Exchange[Message]:
    """BatchGetRow: read rows of several tables by their keys.

    The reply has the errors of single rows. Raises ServiceError, TableMissing for errors of the request as a whole.
    """
    tables = call.message.tables
    check_counts(
        "No row specified in the request of BatchGetRow.",
        limits.BATCH_GET_ROWS_MAX,
        [(table.table_name, len(table.primary_key)) for table in tables],
    )
    is_left_out = request_context.is_left_out
    commands: list[Command[Row | Page | None]] = []
    rows: list[tuple[TableOrIndex, selections.RowSelection, int | errors.ServiceError]] = []
    for table in tables:
        selection = selections.parse(table, _NO_VERSION)
        target = yield from find_target(call, table.table_name)
        for data in table.primary_key:
            if is_left_out is not None and is_left_out():
                rows.append((target, selection, errors.UNPROCESSED))
                continue
            try:
                commands.append(command_to_read(call, target, keys.decode(data), selection))
            except errors.ServiceError as error:
                if not errors.is_of_row(error):
                    raise
                rows.append((target, selection, error))
            else:
                rows.append((target, selection, len(commands) - 1))
    outcomes = yield from each(commands)
    answer = messages.BatchGetRowResponse()
    results = iter(rows)
    for table in tables:
        part = answer.tables.add(table_name=table.table_name)
        for _ in table.primary_key:
            target, selection, number = next(results)
            if any(patterns_of(selection.predicate)):
                yield []  # let other requests run between rows with slow filters
            part.rows.append(
                _row_reply(
                    target, selection, number if isinstance(number, errors.ServiceError) else outcomes[number]
                )
            )
    return answer


def _row_reply(
    target: TableOrIndex,
    selection: selections.RowSelection,
    outcome: Row | Page | GatewayError | errors.ServiceError | None,
) -> messages.RowInBatchGetRowResponse:
    if isinstance(outcome, GatewayError | errors.ServiceError):
        return messages.RowInBatchGetRowResponse(
            is_ok=False, error=errors.service_error_of(outcome).as_message()
        )
    if isinstance(outcome, Page):
        outcome = outcome.rows[0] if outcome.rows else None
    data, consumed = shown_row(target, selection, outcome)
    consumed_capacity.count_read(target, consumed)
    result = messages.RowInBatchGetRowResponse(is_ok=True, consumed=consumed)
    if data:
        result.row = data
    return result

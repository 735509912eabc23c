"""BatchGetRow, BatchWriteRow, BulkImport: many single rows in one request, each with its own result.

Errors of a request as a whole (its size, its names, a missing table) fail it. Errors of one row (the form of its key,
its condition) are the result of that row. Results keep the order of the request. Source: docs/protocols/table-store.md
section 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity, values
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_target, find_written
from tablegate.adapters.tablestore.capacity import of_bulk, request_size
from tablegate.adapters.tablestore.rows import selections, writes
from tablegate.adapters.tablestore.rows.fast_rows import PlainPut
from tablegate.adapters.tablestore.rows.rows import command_to_read, found_row, shown_row, write_groups
from tablegate.adapters.tablestore.rows.writes import (
    RowWrite,
    WriteTarget,
    check_counts,
    parse_delete,
    parse_put,
    parse_update,
)
from tablegate.adapters.tablestore.values import key_value_shown
from tablegate.adapters.tablestore.wire import errors, limits
from tablegate.adapters.tablestore.wire.names import check_table_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.coroutines import all_of, next_tick
from tablegate.gateway.http import request_context
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import GroupOutcome, WriteGroup
from tablegate.gateway.model.errors import GatewayError, GroupRefused, TableMissing
from tablegate.gateway.model.expressions.predicates import ALWAYS, patterns_of, reach_bytes, with_reach
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
        return command_to_read(call, target, values.decode_key(data), selection)
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
    capacity.count_read(part.target, consumed)
    replies.add(is_ok=True, consumed=consumed, row=data or None)


_KINDS: dict[int, tuple[Callable[..., Any], Callable[[CallContext, WriteTarget, Any, Any], RowWrite]]] = {
    messages.PUT: (writes.checked_put, parse_put),
    messages.UPDATE: (writes.checked_update, parse_update),
    messages.DELETE: (writes.checked_delete, parse_delete),
}


async def batch_write_row(call: CallContext) -> Message:
    """BatchWriteRow: write each row separately or, with is_atomic, all rows of a table together.

    The reply has the errors of single rows. Raises ServiceError, TableMissing for errors of the request as a whole.
    """
    message = call.message
    writes.check_counts(
        "No row is specified in BatchWriteRow.",
        limits.BATCH_WRITE_ROWS_MAX,
        [(table.table_name, len(table.rows)) for table in message.tables],
    )
    for part in message.tables:
        # Writes only: for a table without rows, BatchGetRow returns no rows (aliyun-tablestore-python-sdk,
        # tests/row_op_test.py, test_no_item_in_batch_ops).
        if not part.rows:
            check_table_name(part.table_name)
            raise errors.invalid(f"No operation is specified for table: '{part.table_name}'.")
    if message.is_atomic and message.transaction_id:
        raise errors.invalid("Atomic batch write can not be used in a transaction.")
    checked = []
    for part in message.tables:
        checked += await _validate_rows(call, part.table_name, part.rows)
    _check_size(checked)
    wires = iter(checked)
    row_writes: list[RowWrite | errors.ServiceError] = []
    for table_part in message.tables:
        table = await find_written(call, table_part.table_name)
        target = WriteTarget.of(call, table)
        parsed = [_parse_row(call, target, next(wires), row) for row in table_part.rows]
        row_writes += _validate_atomic(parsed) if message.is_atomic else parsed
    row_writes = _limit_patterns(row_writes)
    if message.is_atomic:
        results = await _write_together([len(part.rows) for part in message.tables], row_writes)
    else:
        results = await _write_each(row_writes, message.transaction_id)
    answer = messages.BatchWriteRowResponse()
    pairs = iter(zip(row_writes, results, strict=True))
    for table_part in message.tables:
        results_part = answer.tables.add(table_name=table_part.table_name)
        for _ in table_part.rows:
            row_write, result = next(pairs)
            _count(row_write, result)
            results_part.rows.append(_row_reply(call, row_write, result))
    return answer


async def bulk_import(call: CallContext) -> Message:
    """BulkImport: write rows of one table separately, without conditions.

    The reply has the errors of single rows. Raises ServiceError, TableMissing for errors of the request as a whole.
    """
    message = call.message
    writes.check_counts(
        f"No operation is specified for table: '{message.table_name}'.",
        limits.BATCH_WRITE_ROWS_MAX,
        [(message.table_name, len(message.rows))] if message.rows else [],
    )
    checked = await _validate_rows(call, message.table_name, message.rows)
    _check_size(checked)
    try:
        table = await find_written(call, message.table_name)
    except TableMissing as error:
        # An error of each row, unlike in BatchWriteRow (aliyun-tablestore-java-sdk, TestBulkImportFunction).
        failed = messages.RowInBulkImportResponse(
            is_ok=False, error=errors.service_error_of(error).as_message()
        )
        return messages.BulkImportResponse(table_name=message.table_name, rows=[failed] * len(checked))
    unconditional = messages.RowInBatchWriteRowRequest(
        type=messages.PUT, row_change=b"", condition=messages.Condition(row_existence=messages.IGNORE)
    )
    row_writes: list[RowWrite | errors.ServiceError] = []
    target = WriteTarget.of(call, table)
    for row, wire in zip(message.rows, checked, strict=True):
        unconditional.type = row.type
        row_writes.append(_parse_row(call, target, wire, unconditional))
    results = await _write_each(row_writes, "")
    answer = messages.BulkImportResponse(table_name=message.table_name)
    for row_write, result in zip(row_writes, results, strict=True):
        row_reply = _row_reply(call, row_write, result)
        part = answer.rows.add(is_ok=row_reply.is_ok)
        if row_reply.is_ok:
            assert isinstance(row_write, RowWrite)
            part.consumed.CopyFrom(of_bulk(0, row_write.size))
        else:
            part.error.CopyFrom(row_reply.error)
    return answer


async def _validate_rows(call: CallContext, table_name: str, rows: Sequence[Any]) -> list[WireRow | PlainPut]:
    """Validate the rows of one table. Raises ServiceError."""
    wires: list[WireRow | PlainPut] = []
    for row in rows:
        check, _ = _KINDS[row.type]
        wires.append(await writes.check_with_known_names(call, table_name, check, row.row_change))
    return wires


def _check_size(wires: Sequence[WireRow | PlainPut]) -> None:
    sizes = (wire.size if isinstance(wire, PlainPut) else request_size(wire) for wire in wires)
    writes.check_request(sum(sizes), "BatchWriteRow")


def _parse_row(
    call: CallContext, target: WriteTarget, wire: WireRow | PlainPut, row: Any
) -> RowWrite | errors.ServiceError:
    _, parse = _KINDS[row.type]
    is_left_out = request_context.is_left_out
    try:
        if is_left_out is not None and is_left_out():
            return errors.UNPROCESSED
        return parse(call, target, wire, row)
    except errors.ServiceError as error:
        if errors.is_of_row(error):
            return error
        raise


def _validate_atomic(parsed: list[RowWrite | errors.ServiceError]) -> list[RowWrite | errors.ServiceError]:
    """Replace all rows of an atomic batch by an error if they are in several partitions."""
    writes = [row_write for row_write in parsed if isinstance(row_write, RowWrite)]
    for row_write in writes:
        if row_write.write.key.position.partition != writes[0].write.key.position.partition:
            first, other = (
                key_value_shown(row_write.write.key.values[0]).data for row_write in (writes[0], row_write)
            )
            text = f"Data out of scope of atomic. Atomic PartKey:{first}. Data PartKey:{other}"
            return [errors.ServiceError("OTSDataOutOfRange", text)] * len(parsed)
    return parsed


# A batch is written in one transaction: its searches together may take this many times those of one row.
_SEARCHES_OF_A_BATCH = 4

Result = GroupOutcome | errors.ServiceError
"""The result of a row: the outcome of a group with this write only, or an error."""


def _limit_patterns(row_writes: list[RowWrite | errors.ServiceError]) -> list[RowWrite | errors.ServiceError]:
    """Limit the searched text of all conditions together, which bounds their time."""
    conditions = [
        row_write.write.condition
        for row_write in row_writes
        if isinstance(row_write, RowWrite) and row_write.write.condition is not ALWAYS
    ]
    steps = sum(pattern.steps for condition in conditions for pattern in patterns_of(condition))
    if not steps:
        return row_writes
    reach = reach_bytes(steps // _SEARCHES_OF_A_BATCH)
    return [
        row_write._replace(
            write=row_write.write._replace(condition=with_reach(row_write.write.condition, reach))
        )
        if isinstance(row_write, RowWrite)
        else row_write
        for row_write in row_writes
    ]


async def _write_each(row_writes: Sequence[RowWrite | errors.ServiceError], transaction: str) -> list[Result]:
    groups = [WriteGroup((row_write.write,)) for row_write in row_writes if isinstance(row_write, RowWrite)]
    answers = iter(await write_groups(groups, transaction))
    return [
        row_write if isinstance(row_write, errors.ServiceError) else next(answers) for row_write in row_writes
    ]


async def _write_together(
    counts: Sequence[int], written: Sequence[RowWrite | errors.ServiceError]
) -> list[Result]:
    """Write groups of as many rows as `counts` says. If a write fails, its whole group fails with the error."""
    groups: list[WriteGroup] = []
    results: list[Result] = [[]] * len(written)
    begins: list[int] = []
    start = 0
    for count in counts:
        rows = written[start : start + count]
        failed = next((each for each in rows if isinstance(each, errors.ServiceError)), None)
        if failed is not None:
            results[start : start + count] = [failed] * count
        else:
            begins.append(start)
            groups.append(WriteGroup(tuple(each.write for each in rows if isinstance(each, RowWrite))))
        start += count
    answers = await all_of(groups)
    for start, group, answer in zip(begins, groups, answers, strict=True):
        if isinstance(answer, GroupRefused):
            for write, reason in zip(group.writes, answer.reasons, strict=True):
                capacity.count_failed_write(write, reason)
        for number in range(len(group.writes)):
            results[start + number] = [answer[number]] if isinstance(answer, list) else answer
    return results


def _count(row_write: RowWrite | errors.ServiceError, result: Result) -> None:
    """Count the capacity of a row of a BatchWriteRow. Failed groups are counted in _write_together."""
    if isinstance(row_write, errors.ServiceError):
        return
    if isinstance(result, GatewayError):
        capacity.count_failed_write(row_write.write, result)
    else:
        capacity.count_write(row_write.write, row_write.consumed)


def _row_reply(
    call: CallContext, row_write: RowWrite | errors.ServiceError, result: Result
) -> messages.RowInBatchWriteRowResponse:
    if isinstance(result, GroupRefused):
        result = next(reason for reason in result.reasons if reason is not None)
    if isinstance(row_write, errors.ServiceError):
        result = row_write
    if isinstance(result, GatewayError | errors.ServiceError):
        service_error = errors.service_error_of(result)
        return messages.RowInBatchWriteRowResponse(is_ok=False, error=service_error.as_message())
    assert isinstance(row_write, RowWrite)
    assert isinstance(result, list)
    return messages.RowInBatchWriteRowResponse(
        is_ok=True, consumed=row_write.consumed, row=row_write.returned(result[0])
    )

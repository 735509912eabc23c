"""GetRange and BulkExport: pages of a table or an index, in ascending or descending order of its key.

A page ends after `limit` returned rows, 5,000 or 4 MB of scanned rows, or a maximum time. The next page begins at the
first row that was not evaluated. Source: docs/protocols/table-store.md section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import capacity, consumed_capacity
from tablegate.adapters.tablestore.rows import matrix, selections
from tablegate.adapters.tablestore.rows.filters import parse_filter
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.rows.transactions import engine_id, in_transaction
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.values.keys import bound_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, TableOrIndex, find_target
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Row

NO_MATRIX_COLUMN = "DBT_SIMPLE_ROW_MATRIX need at least one column to get."


async def get_range(call: CallContext) -> Message:
    """GetRange: a page of a range of keys of a table or an index, and the start of the next page.

    Raises ServiceError, TableMissing.
    """
    message = call.message
    if message.time_range.HasField("specific_time") and message.HasField("max_versions"):
        raise invalid("The max versions and the specific time can not be set at the same time.")
    selection = selections.parse(message, selections.NO_VERSION)
    if message.HasField("limit") and message.limit <= 0:
        raise invalid("The limit must be greater than 0.")
    is_matrix = message.data_block_type_hint == messages.DBT_SIMPLE_ROW_MATRIX
    if is_matrix and not message.columns_to_get:
        raise invalid(NO_MATRIX_COLUMN)
    reverse = message.direction == messages.BACKWARD
    target = await find_target(call, message.table_name)
    whole_keys = message.return_entire_primary_keys
    command = _page_of(target, selection, message, reverse, encodes=whole_keys and not is_matrix)
    read = command._replace(may_be_old=call.may_be_old)
    page = await in_transaction(read, engine_id(call.caller.namespace, message.transaction_id))
    consumed = capacity.of_read(page.scanned_bytes)
    consumed_capacity.count_read(target, consumed)
    answer = messages.GetRangeResponse(
        consumed=consumed,
        rows=_as_matrix(target, selection, whole_keys, page.rows)
        if is_matrix
        else _as_rows(target, selection, whole_keys, page.rows),
        data_block_type=messages.DBT_SIMPLE_ROW_MATRIX if is_matrix else messages.DBT_PLAIN_BUFFER,
        compress_type=messages.CPT_NONE,
    )
    if page.next is not None:
        answer.next_start_primary_key = _key_data(target, page.next)
    return answer


async def bulk_export(call: CallContext) -> Message:
    """BulkExport: a page of the newest versions of a range in ascending order, and the start of the next page.

    It is a matrix unless the request selects PlainBuffer. Raises ServiceError, TableMissing.
    """
    message = call.message
    names = selections.columns_of(message.columns_to_get)
    is_matrix = message.data_block_type_hint == messages.DBT_SIMPLE_ROW_MATRIX
    if is_matrix and not names:
        raise invalid(NO_MATRIX_COLUMN)
    selection = selections.everything(names, parse_filter(message.filter).predicate)
    target = await find_target(call, message.table_name)
    command = _page_of(target, selection, message, False, encodes=not is_matrix)
    page = await command._replace(may_be_old=call.may_be_old)
    # A matrix has the requested key columns, PlainBuffer all of them (aliyun-tablestore-java-sdk,
    # functiontest/TestBulkExportFunciton).
    answer = messages.BulkExportResponse(
        consumed=capacity.of_bulk(page.scanned_bytes, 0),
        rows=_as_matrix(target, selection, False, page.rows)
        if is_matrix
        else _as_rows(target, selection, True, page.rows),
        data_block_type=message.data_block_type_hint,
    )
    if page.next is not None:
        answer.next_start_primary_key = _key_data(target, page.next)
    return answer


def _page_of(
    target: TableOrIndex, selection: RowSelection, message: Any, reverse: bool, encodes: bool
) -> Read:
    """Return the command for a page. `encodes`: its rows are returned whole. Raises ServiceError if the bounds are not
    in order."""
    start = bound_of(target, message.inclusive_start_primary_key)
    end = bound_of(target, message.exclusive_end_primary_key)
    if reverse:
        if start <= end:
            raise invalid("Begin key must more than end key in BACKWARD")
        key_range = KeyRange(end.after, start.after)
    else:
        if start >= end:
            raise invalid("Begin key must less than end key in FORWARD")
        key_range = KeyRange(start, end)
    limit = message.limit if hasattr(message, "limit") and message.HasField("limit") else None
    page_limits = PageLimits(
        limits.RANGE_ROWS_MAX, limit, limits.RANGE_MAX_BYTES, limits.RANGE_SECONDS, peek=True
    )
    return Read(
        target.table,
        key_range,
        page_limits,
        target.index,
        reverse,
        selection.row_predicate(target),
        whole_rows=True,
        visible_attributes=selection if selection.columns else None,
        cut=selection.encoder(target) if encodes else selection.cutter(target),
    )


def _as_rows(target: TableOrIndex, selection: RowSelection, whole_keys: bool, rows: Sequence[Row]) -> bytes:
    """Return rows under one header, or empty bytes for no rows.

    `whole_keys`: all key columns are shown, even if they were not requested.
    """
    key_names = None if whole_keys else selection.columns
    encoded = b"".join([selection.row_bytes(target, row, key_names) for row in rows])
    return HEADER + encoded if encoded else b""


def _as_matrix(target: TableOrIndex, selection: RowSelection, whole_keys: bool, rows: Sequence[Row]) -> bytes:
    """Return rows as a matrix: key columns in their order, then attributes by name. Clients send them as a set."""
    names = selection.columns
    key = target.key_names if whole_keys else tuple(name for name in target.key_names if name in names)
    values = []
    for row in rows:
        row_values = dict(row.latest)
        row_values.update((name, versions[0].value) for name, versions in selection.page(row).items())
        values.append(row_values)
    attributes = tuple(sorted(names.difference(target.key_names)))
    return matrix.encode(key, attributes, values, key == target.key_names)


def _key_data(target: TableOrIndex, row: Row) -> bytes:
    return encode_row(WireRow(keys.key_cells(target, row)))

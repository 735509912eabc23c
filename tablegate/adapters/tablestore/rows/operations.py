"""GetRange and BulkExport, and the list of all operations on rows and local transactions.

A page of a table or an index is in ascending or descending order of its key. It ends after `limit` returned rows, 5,000 or
4 MB of scanned rows, or a maximum time. The next page begins at the first row that was not evaluated. Source:
docs/protocols/table-store.md section 4.4.

SimpleRowMatrix is a page as a table of values, without names and stamps in each. BulkExport returns it, and GetRange by
hint:

    file    = magic  data_offset  option_offset  key_count  attribute_count  (each int32)  name*  options  row*  01 crc
    name    = length:int16 bytes
    row     = 02 value*          a value for each name, `06` if the row has none
    options = 0A has_whole_keys:byte  03 row_count:int32
    crc     = over everything before it

Only the newest version of a cell is shown. The options precede the rows, because Java parses everything between
data_offset and the closing 01 as rows. Source: docs/protocols/table-store.md section 3.6, and
aliyun-tablestore-java-sdk, SimpleRowMatrixBlockParser.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity, values
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_target
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.rows import batches, rows, selections
from tablegate.adapters.tablestore.rows.filters import parse_filter
from tablegate.adapters.tablestore.rows.rows import engine_id, in_transaction
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.values import bound_of
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, WireRow, crc8, encode_row, encode_value
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value

MAGIC = 0x304D5253
_HEAD = struct.Struct("<iiiii")
_MISSING = b"\x06"


def encode_matrix(
    key_names: Sequence[str],
    names: Sequence[str],
    rows: Sequence[Mapping[str, Value]],
    has_whole_keys: bool = True,
) -> bytes:
    """Return rows as a matrix with these columns. A row is its values by name.

    `has_whole_keys`: the columns include the whole key.
    """
    columns = [*key_names, *names]
    head = b"".join(struct.pack("<h", len(name.encode())) + name.encode() for name in columns)
    options = b"\x0a" + bytes((has_whole_keys,)) + b"\x03" + struct.pack("<i", len(rows))
    option_offset = _HEAD.size + len(head)
    data_offset = option_offset + len(options)
    data = b"".join(_matrix_row(columns, row) for row in rows)
    counts = _HEAD.pack(MAGIC, data_offset, option_offset, len(key_names), len(names))
    body = b"".join((counts, head, options, data, b"\x01"))
    return body + bytes((crc8(body),))


def _matrix_row(columns: Sequence[str], row: Mapping[str, Value]) -> bytes:
    parts = [b"\x02"]
    for name in columns:
        value = row.get(name)
        parts.append(_MISSING if value is None else encode_value(value))
    return b"".join(parts)


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
    capacity.count_read(target, consumed)
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
    return encode_matrix(key, attributes, values, key == target.key_names)


def _key_data(target: TableOrIndex, row: Row) -> bytes:
    return encode_row(WireRow(values.key_cells(target, row)))


_P = Permission
_WRITES = (_P.PUT, _P.UPDATE, _P.DELETE)
OPERATIONS: Mapping[str, Operation] = {
    "StartLocalTransaction": Operation(
        messages.StartLocalTransactionRequest, rows.start_local_transaction, Purpose((_P.BEGIN,)),
    ),
    "CommitTransaction": Operation(
        messages.CommitTransactionRequest, rows.commit_transaction, Purpose((_P.COMMIT,)),
    ),
    "AbortTransaction": Operation(messages.AbortTransactionRequest, rows.abort_transaction, Purpose((_P.ABORT,))),
    "GetRow": Operation(messages.GetRowRequest, rows.get_row, Purpose((_P.READ,))),
    "PutRow": Operation(messages.PutRowRequest, rows.put_row, Purpose((_P.PUT,))),
    "UpdateRow": Operation(messages.UpdateRowRequest, rows.update_row, Purpose((_P.UPDATE,))),
    "DeleteRow": Operation(messages.DeleteRowRequest, rows.delete_row, Purpose((_P.DELETE,))),
    "BatchGetRow": Operation(messages.BatchGetRowRequest, batches.batch_get_row, Purpose((_P.READ,), Channel.BATCH)),
    "BatchWriteRow": Operation(
        messages.BatchWriteRowRequest, batches.batch_write_row, Purpose(_WRITES, Channel.BATCH),
    ),
    "GetRange": Operation(messages.GetRangeRequest, get_range, Purpose((_P.QUERY, _P.SCAN))),
    "BulkImport": Operation(messages.BulkImportRequest, batches.bulk_import, Purpose(_WRITES, Channel.BATCH)),
    "BulkExport": Operation(messages.BulkExportRequest, bulk_export, Purpose((_P.QUERY, _P.SCAN), Channel.BATCH)),
}  # fmt: skip

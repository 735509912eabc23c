"""Validation of written rows before their table is looked up: keys, and names, lengths and stamps of cells.

The service reports these errors before it looks up the table (aliyun-tablestore-java-sdk,
functiontest/RestrictedItemTest, testCase12). writes.py validates rows against their table.

Column names of other dialects that Table Store forbids are accepted in a row that has them already, and in a table that
another dialect created. So a row can be written back as it was read. The look-up happens only if a request has such a
name.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import CallContext, find_written
from tablegate.adapters.tablestore.rows import fast_rows
from tablegate.adapters.tablestore.rows.fast_rows import PlainPut
from tablegate.adapters.tablestore.tables.options import was_created_by_table_store
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.values.values import check_attribute
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import ColumnNameInvalid, check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.values.values import Value

Made = TypeVar("Made")
RowCheck = Callable[..., Made]
"""`check(data)`, `check(data, known)`: a function that decodes and validates a row, but accepts the known names."""


async def check_with_known_names(
    call: CallContext, table_name: str, check: RowCheck[Made], data: bytes
) -> Made:
    """Return the result of `check` for a row to be written. Raises ServiceError."""
    try:
        return check(data)
    except ColumnNameInvalid:
        permitted_names = await _permitted_names(call, table_name, keys.decode(data))
        return check(data, permitted_names)


async def _permitted_names(call: CallContext, table_name: str, wire: WireRow) -> Container[str]:
    """Return the forbidden names that the row may have. Empty if the table or the key is invalid, so that names are
    reported first."""
    permitted_names: Container[str] = ()
    try:
        table = await find_written(call, table_name)
        key = keys.key_of(table, wire.key)
    except (TableMissing, ServiceError):
        return permitted_names
    if not was_created_by_table_store(table):
        return {cell.name for cell in wire.cells}
    row = await Get(table, key.position)
    return permitted_names if row is None else row.latest


def checked_put(data: bytes, permitted_names: Container[str] = ()) -> WireRow | PlainPut:
    """Validate the row of a put. `permitted_names`: additional permitted names of columns. Raises ServiceError."""
    return _fast_put_of(data) or checked_put_cells(data, permitted_names)


def _no_fast_put(data: bytes) -> PlainPut | None:
    return None


_fast_put_of = fast_paths.choose(fast_rows.put_of, _no_fast_put)


def checked_put_cells(data: bytes, permitted_names: Container[str] = ()) -> WireRow:
    """Validate a put of any form: the general path of `fast_rows.put_of`. Raises ServiceError."""
    wire = _validate(data, "PutRow", permitted_names)
    for cell in wire.cells:
        if cell.operation is not None or not isinstance(cell.value, Value):
            raise invalid(f"The value of column '{cell.name}' is missing.")
    return wire


def checked_update(data: bytes, permitted_names: Container[str] = ()) -> WireRow:
    """Validate the cells of an update. Raises ServiceError."""
    wire = _validate(data, "UpdateRow", permitted_names)
    if not wire.cells:
        raise invalid("Attribute column is missing.")
    return wire


def checked_delete(data: bytes) -> WireRow:
    """Validate the key of a delete. Raises ServiceError."""
    wire = keys.decode(data)
    keys.check_values(wire.key, allows_auto_increment=False)
    return wire._replace(cells=())


def _validate(data: bytes, operation: str, permitted_names: Container[str]) -> WireRow:
    wire = keys.decode(data)
    keys.check_values(wire.key, allows_auto_increment=True)
    _check_columns(wire.cells, permitted_names)
    if len(data) > limits.WRITE_MAX_BYTES:
        check_request(capacity.request_size(wire), operation)
    return wire


def _check_columns(cells: Sequence[WireCell], permitted_names: Container[str]) -> None:
    """Validate the number of cells, and their names, lengths and stamps."""
    if len(cells) > limits.COLUMNS_MAX:
        raise invalid(
            "The number of attribute columns exceeds the limit,"
            f" limit count: {limits.COLUMNS_MAX}, column count: {len(cells)}."
        )
    for name, value, stamp_ms, _ in cells:
        check_column_name(name, permitted_names)
        if isinstance(value, Value):
            check_attribute(name, value)
        elif value is not None:
            raise invalid(f"The type of column '{name}' is invalid.")
        if stamp_ms is not None and not 0 <= stamp_ms < limits.STAMP_END_MS:
            raise invalid("Timestamp must be in range [0, INT64_MAX/1000).")


def check_counts(text_if_empty: str, rows_max: int, tables: Sequence[tuple[str, int]]) -> None:
    """Refuse a batch of too many rows, and one without rows with the text `text_if_empty`. `tables`: names and numbers of
    rows."""
    if not tables:
        raise invalid(text_if_empty)
    count = sum(count for _, count in tables)
    if count > rows_max or len(tables) > rows_max:
        raise invalid(f"Rows count exceeds the upper limit: {rows_max}.")


def check_request(size: int, operation: str) -> None:
    """Refuse a request if its names and values together are too long. Raises ServiceError."""
    if size > limits.WRITE_MAX_BYTES:
        raise invalid(
            f"The total data size of {operation} request exceeds the limit, limit size: {limits.WRITE_MAX_BYTES},"
            f" data size: {size}."
        )

"""Validation of written rows as far as it does not depend on the table: keys, and names, lengths and stamps of cells.

The service reports these errors before it looks up the table (aliyun-tablestore-java-sdk,
functiontest/RestrictedItemTest, testCase12). writes.py validates rows against their table.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from tablegate.adapters.tablestore.capacity import capacity
from tablegate.adapters.tablestore.rows import fast_rows
from tablegate.adapters.tablestore.rows.fast_rows import PlainPut
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.values.values import check_attribute
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.names import check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values.values import Value


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

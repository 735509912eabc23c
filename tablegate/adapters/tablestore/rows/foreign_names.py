"""Column names of other dialects that Table Store forbids.

They are accepted in a row that has them already, and in a table that another dialect created. So a row can be written
back as it was read. The look-up happens only if a request has such a name.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

from tablegate.adapters.tablestore.tables.options import was_created_by_table_store
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_written
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.names import ColumnNameInvalid
from tablegate.adapters.tablestore.wire.plainbuffer import WireRow
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.errors import TableMissing

Made = TypeVar("Made")
Check = Callable[..., Made]
"""`check(data)`, `check(data, known)`: a function that decodes and validates a row, but accepts the known names."""


async def checked(call: CallContext, table_name: str, check: Check[Made], data: bytes) -> Made:
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

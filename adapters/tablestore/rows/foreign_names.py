"""Names that no client of Table Store can give a column, where another dialect gave them: a row can be put back as it was read.

Such a name is legal in a row that has it, and in a table that another dialect made. Looked for only when a request has one.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

from tablegate.adapters.tablestore.rows.transactions import get
from tablegate.adapters.tablestore.tables.options import was_made_here
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_written
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.names import ColumnNameInvalid
from tablegate.adapters.tablestore.wire.plainbuffer import WireRow
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.errors import TableMissing

Made = TypeVar("Made")
Check = Callable[..., Made]
"""`check(data)`, `check(data, known)`: a row that has been read and checked, but for names that are known."""


def checked(call: CallContext, table_name: str, check: Check[Made], data: bytes) -> Exchange[Made]:
    """What `check` makes of a row to be written. Raises ServiceError."""
    try:
        return check(data)
    except ColumnNameInvalid:
        known = yield from _known_names(call, table_name, keys.decode(data))
        return check(data, known)


def _known_names(call: CallContext, table_name: str, wire: WireRow) -> Exchange[Container[str]]:
    """The names that such a row may have whatever they are. Where table or key are wrong, names are told first."""
    known: Container[str] = ()
    try:
        table = yield from find_written(call, table_name)
        key = keys.key_of(table, wire.key)
    except (TableMissing, ServiceError):
        return known
    if not was_made_here(table):
        return {cell.name for cell in wire.cells}
    row = yield from one(get(table, key.position, ""))
    return known if row is None else row.latest

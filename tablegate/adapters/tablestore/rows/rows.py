"""GetRow, PutRow, UpdateRow, DeleteRow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_target, find_written
from tablegate.adapters.tablestore.rows import selections, writes
from tablegate.adapters.tablestore.rows.checks import (
    check_with_known_names,
    checked_delete,
    checked_put,
    checked_update,
)
from tablegate.adapters.tablestore.rows.transactions import engine_id, in_transaction, write_groups
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.values.rows import Row


async def get_row(call: CallContext) -> Message:
    """GetRow: the requested columns and versions of a row, or zero bytes without a row. Raises ServiceError,
    TableMissing."""
    message = call.message
    selection = selections.parse(message, selections.NO_VERSION)
    wire = keys.decode(message.primary_key)
    target = await find_target(call, message.table_name)
    row = found_row(await command_to_read(call, target, wire, selection, message.transaction_id))
    visible = None if row is None else selection.encoder(target)(row)
    row_data, consumed = shown_row(target, selection, visible)
    capacity.count_read(target, consumed)
    return messages.GetRowResponse(consumed=consumed, row=row_data)


def command_to_read(
    call: CallContext,
    target: TableOrIndex,
    wire: WireRow,
    selection: selections.RowSelection,
    transaction: str = "",
) -> Command[Row | None] | Command[Page]:
    """Return the command that reads a row of a table or of an index by its key. Raises ServiceError."""
    shown = selection if selection.columns else None
    if target.index is not None:
        return keys.index_get(target, wire.key)._replace(may_be_old=call.may_be_old, visible_attributes=shown)
    keys.check_values(wire.key, allows_auto_increment=False)
    key = keys.key_of(target.table, wire.key)
    read = Get(target.table, key.position, call.may_be_old, shown)
    return in_transaction(read, engine_id(target.table.namespace, transaction))


def found_row(outcome: Row | Page | None) -> Row | None:
    """Return the row that `command_to_read` found in a table, or in an index as a page. None if there is none."""
    if isinstance(outcome, Page):
        return outcome.rows[0] if outcome.rows else None
    return outcome


def shown_row(
    target: TableOrIndex, selection: selections.RowSelection, visible: Row | None
) -> tuple[bytes, messages.ConsumedCapacity]:
    """Return a row for a reply and the consumed capacity. The row is zero bytes if it is missing or filtered out.

    `visible`: the row that the selection's encoder returned, or None.
    """
    if visible is None:
        return b"", capacity.of_read(0)
    consumed = capacity.of_read(visible.size_bytes)
    if not selection.shows(target, visible):
        return b"", consumed
    return HEADER + selection.row_bytes(target, visible), consumed


@dataclass(frozen=True, slots=True)
class _Writing:
    """An operation that writes a row.

    `field`: the member of the message with the row. `check`: validation that does not depend on the table. `parse`:
    validation against the table. `answer`: the message of the reply.
    """

    field: str
    check: Callable[..., Any]
    parse: Callable[..., writes.RowWrite]
    answer: Callable[..., Message]

    async def __call__(self, call: CallContext) -> Message:
        """Run the operation as a handler. Raises ServiceError, TableMissing, ConditionFailed."""
        message = call.message
        wire = await check_with_known_names(
            call, message.table_name, self.check, getattr(message, self.field)
        )
        table = await find_written(call, message.table_name)
        row_write = self.parse(call, writes.WriteTarget.of(call, table), wire, message)
        try:
            [outcomes] = await write_groups([WriteGroup((row_write.write,))], message.transaction_id)
            if isinstance(outcomes, GatewayError):
                raise outcomes
        except GatewayError as error:
            capacity.count_failed_write(row_write.write, error)
            raise
        assert isinstance(outcomes, list)
        capacity.count_write(row_write.write, row_write.consumed)
        return self.answer(consumed=row_write.consumed, row=row_write.returned(outcomes[0]))


put_row = _Writing("row", checked_put, writes.parse_put, messages.PutRowResponse)
"""PutRow: replace a row if its condition is true. Raises ServiceError, TableMissing, ConditionFailed."""

update_row = _Writing("row_change", checked_update, writes.parse_update, messages.UpdateRowResponse)
"""UpdateRow: put, delete and increment cells in the given order, if the condition is true.

Raises ServiceError, TableMissing, ConditionFailed.
"""

delete_row = _Writing("primary_key", checked_delete, writes.parse_delete, messages.DeleteRowResponse)
"""DeleteRow: delete a row with all its versions, if the condition is true.

Deleting a missing row succeeds unless the condition expects a row. Raises ServiceError, TableMissing, ConditionFailed.
"""

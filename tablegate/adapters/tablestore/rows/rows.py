"""GetRow, PutRow, UpdateRow and DeleteRow, and the local transactions in which rows are read and written.

The id of a local transaction is a random text. Invalid ids are refused without a look-up. The engine's id includes the
namespace, so that other tenants cannot use it. Source: docs/protocols/table-store.md section 4.6.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity, values
from tablegate.adapters.tablestore.call import CallContext, TableOrIndex, find_target, find_written
from tablegate.adapters.tablestore.rows import selections, writes
from tablegate.adapters.tablestore.rows.writes import (
    check_with_known_names,
    checked_delete,
    checked_put,
    checked_update,
)
from tablegate.adapters.tablestore.table_properties import allows_transactions
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.plainbuffer import HEADER, WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.local_transactions import local_transaction_commands
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.row_commands import Get, GroupOutcome, WriteGroup
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.model.values.rows import Row

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def start_local_transaction(call: CallContext) -> Message:
    """StartLocalTransaction: begin a transaction that locks a partition, given by a key of one column. Returns its id.

    Raises ServiceError, TableMissing, PartitionLocked.
    """
    message = call.message
    wire = values.decode_key(message.key)
    table = await find_written(call, message.table_name)
    partition = values.partition_of(table, wire.key)
    if not allows_transactions(table):
        raise invalid("Try to call method using explicit transaction on explicit-transaction-disabled table.")
    # The id ends in the slot of the partition, as BeginTransaction requires.
    transaction = f"{str(uuid.uuid4())[:-4]}{slot_of(partition):04x}"
    transaction_id = engine_id(call.caller.namespace, transaction)
    await local_transaction_commands.BeginTransaction(table, partition, transaction_id, limits.TRANSACTION_MS)
    return messages.StartLocalTransactionResponse(
        transaction_id=transaction, consumed=capacity.consumed(0, 1)
    )


async def commit_transaction(call: CallContext) -> Message:
    """CommitTransaction: apply all writes of the transaction atomically. Raises ServiceError, TransactionMissing."""
    transaction = _ended_id(call)
    partition = await local_transaction_commands.FindTransaction(transaction)
    await local_transaction_commands.CommitTransaction(transaction, partition)
    return messages.CommitTransactionResponse(consumed=capacity.consumed(0, 1))


async def abort_transaction(call: CallContext) -> Message:
    """AbortTransaction: discard all writes of the transaction. Raises ServiceError, TransactionMissing."""
    transaction = _ended_id(call)
    partition = await local_transaction_commands.FindTransaction(transaction)
    await local_transaction_commands.AbortTransaction(transaction, partition)
    return messages.AbortTransactionResponse(consumed=capacity.consumed(0, 1))


def _ended_id(call: CallContext) -> str:
    transaction: str = call.message.transaction_id
    if not transaction:
        raise invalid("TransactionID is invalid.")
    return engine_id(call.caller.namespace, transaction)


def in_transaction(read: Command[R], transaction_id: str) -> Command[R]:
    """Return a read within a local transaction. The read itself if the id is empty."""
    return local_transaction_commands.ReadInTransaction(transaction_id, read) if transaction_id else read


def engine_id(namespace: str, transaction: str) -> str:
    """Return the engine's id of a transaction, "" for none. Raises ServiceError if the text is no id."""
    if not transaction:
        return ""
    if not _ID.fullmatch(transaction):
        raise invalid("TransactionID is invalid.")
    return f"{namespace}/{transaction}"


async def write_groups(groups: Sequence[WriteGroup], transaction: str) -> Sequence[GroupOutcome]:
    """Return the outcome or error of each group of writes, in a transaction if there is an id. Raises
    TransactionMissing."""
    transaction_id = engine_id(groups[0].writes[0].table.namespace, transaction) if groups else ""
    if not transaction_id:
        return await all_of(groups)
    limit = limits.TRANSACTION_MAX_BYTES
    return await local_transaction_commands.StageWrites(transaction_id, tuple(groups), limit)


async def get_row(call: CallContext) -> Message:
    """GetRow: the requested columns and versions of a row, or zero bytes without a row. Raises ServiceError,
    TableMissing."""
    message = call.message
    selection = selections.parse(message, selections.NO_VERSION)
    wire = values.decode_key(message.primary_key)
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
        return values.index_get(target, wire.key)._replace(
            may_be_old=call.may_be_old, visible_attributes=shown
        )
    values.check_key_values(wire.key, allows_auto_increment=False)
    key = values.key_of(target.table, wire.key)
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

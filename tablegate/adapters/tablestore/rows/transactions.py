"""StartLocalTransaction, CommitTransaction, AbortTransaction, and commands inside local transactions.

An id is a random text. Invalid ids are refused without a look-up. The engine's id includes the namespace, so that other
tenants cannot use it. Source: docs/protocols/table-store.md section 4.6.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from google.protobuf.message import Message

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import CallContext, find_written
from tablegate.adapters.tablestore.tables.options import allows_transactions
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.local_transactions import local_transaction_commands
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.commands.row_commands import GroupOutcome, WriteGroup
from tablegate.gateway.model.values.keys import slot_of

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def start_local_transaction(call: CallContext) -> Message:
    """StartLocalTransaction: begin a transaction that locks a partition, given by a key of one column. Returns its id.

    Raises ServiceError, TableMissing, PartitionLocked.
    """
    message = call.message
    wire = keys.decode(message.key)
    table = await find_written(call, message.table_name)
    partition = keys.partition_of(table, wire.key)
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

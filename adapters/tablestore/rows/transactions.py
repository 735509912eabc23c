"""Local transactions: StartLocalTransaction, CommitTransaction, AbortTransaction; and other operations run inside one.

An id is a random text; what could not be one is refused before it is looked for. The engine knows a transaction by its
namespace and its id, so that an id which another tenant has come to know names nothing of his.
Source: docs/protocols/table-store.md section 4.6.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

from google.protobuf.message import Message

from tablegate.adapters.tablestore.capacity import capacity
from tablegate.adapters.tablestore.tables.options import allows_transactions
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_written
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.exchanges import each, one
from tablegate.gateway.model.commands import transaction_commands
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.row_commands import Get, GroupOutcome, VisibleAttributes, WriteGroup
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position, slot_of

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def start_local_transaction(call: CallContext) -> Exchange[Message]:
    """StartLocalTransaction: begin a transaction that locks the partition of a key of one column. Answers its id. Raises
    ServiceError, TableMissing, PartitionLocked."""
    message = call.message
    wire = keys.decode(message.key)
    table = yield from find_written(call, message.table_name)
    partition = keys.partition_of(table, wire.key)
    if not allows_transactions(table):
        raise invalid("Try to call method using explicit transaction on explicit-transaction-disabled table.")
    # The engine wants to see from the id where the transaction stands (BeginTransaction).
    transaction = f"{str(uuid.uuid4())[:-2]}{slot_of(partition):02x}"
    known_as = engine_id(call.caller.namespace, transaction)
    yield from one(transaction_commands.BeginTransaction(table, partition, known_as, limits.TRANSACTION_MS))
    return messages.StartLocalTransactionResponse(
        transaction_id=transaction, consumed=capacity.consumed(0, 1)
    )


def commit_transaction(call: CallContext) -> Exchange[Message]:
    """CommitTransaction: all writes of the transaction happen at once. Raises ServiceError, TransactionMissing."""
    transaction = _ended_id(call)
    held = yield from one(transaction_commands.FindTransaction(transaction))
    yield from one(transaction_commands.CommitTransaction(transaction, held))
    return messages.CommitTransactionResponse(consumed=capacity.consumed(0, 1))


def abort_transaction(call: CallContext) -> Exchange[Message]:
    """AbortTransaction: no write of the transaction happens. Raises ServiceError, TransactionMissing."""
    transaction = _ended_id(call)
    held = yield from one(transaction_commands.FindTransaction(transaction))
    yield from one(transaction_commands.AbortTransaction(transaction, held))
    return messages.AbortTransactionResponse(consumed=capacity.consumed(0, 1))


def _ended_id(call: CallContext) -> str:
    transaction: str = call.message.transaction_id
    if not transaction:
        raise invalid("TransactionID is invalid.")
    return engine_id(call.caller.namespace, transaction)


def engine_id(namespace: str, transaction: str) -> str:
    """What the engine calls a transaction of a namespace, "" for none. Raises ServiceError for a text that is no id."""
    if not transaction:
        return ""
    if not _ID.fullmatch(transaction):
        raise invalid("TransactionID is invalid.")
    return f"{namespace}/{transaction}"


def get(
    table: Table,
    position: Position,
    transaction: str,
    may_be_old: bool = False,
    shown: VisibleAttributes | None = None,
) -> Get:
    """The command that reads a row, inside a transaction, which is never old, if one is named. Raises ServiceError."""
    if not transaction:
        return Get(table, position, "", may_be_old, shown)
    return Get(table, position, engine_id(table.namespace, transaction), shown=shown)


def write_groups(groups: Sequence[WriteGroup], transaction: str) -> Exchange[list[GroupOutcome]]:
    """The outcome of each group of writes, or its error, inside a transaction if one is named. Raises TransactionMissing."""
    known_as = engine_id(groups[0].writes[0].table.namespace, transaction) if groups else ""
    return (
        one(transaction_commands.StageWrites(known_as, tuple(groups), limits.TRANSACTION_MAX_BYTES))
        if known_as
        else each(groups)
    )

"""Local transactions: begin, stage, read, commit and abort.

A transaction locks one partition until it ends or expires. Its writes are evaluated at once, against staged and stored
rows, and staged. The commit applies them as one group of the write path. Conditions are not evaluated again, because no
other writer could change the partition.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any

from tablegate.gateway.engine.attempts import Attempt, Runner
from tablegate.gateway.engine.rows import point_reads, reading
from tablegate.gateway.engine.rows.reading import Reader
from tablegate.gateway.engine.rows.writing import WriteHook
from tablegate.gateway.features.local_transactions import local_transaction_commands, local_transaction_store
from tablegate.gateway.features.local_transactions.local_transaction_store import OpenTransaction, StagedWrite
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import (
    Get,
    Read,
    RowKey,
    WriteGroup,
    WriteOutcome,
    apply_group,
)
from tablegate.gateway.model.commands.writes import Remove, Replace, StreamRecording, Write
from tablegate.gateway.model.tables.changes import kind_of, resolved_actions
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, slot_of
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import RetryableFailure, Session
from tablegate.gateway.store.store import Store

# Beginning and staging


def _begin(attempt: Attempt, command: local_transaction_commands.BeginTransaction) -> None:
    """Lock a partition. The first transaction of a table makes its writers check for partition locks from then on.

    Raises PartitionLocked, StaleTable.
    """
    store, now_ms = attempt.store, attempt.now_ms
    with store.write(near=command.partition) as session:
        table = _exclude_writers(store, session, command)
        if table is None or table.version != command.table.version:
            store.catalog.cache.forget(command.table.id)
            raise errors.StaleTable()
        if local_transaction_store.partition_locks(session, [(table.id, command.partition)], now_ms):
            raise errors.PartitionLocked()
        open_transaction = OpenTransaction(
            command.transaction,
            slot_of(command.partition),
            table.id,
            local_transaction_store.locked_partition(command.partition),
            now_ms + command.lifetime_ms,
            size_bytes=0,
            writes=0,
        )
        assert open_transaction.slot == local_transaction_store.slot_of_transaction(open_transaction.id)
        local_transaction_store.add(session, open_transaction)
        if not table.rules.has_local_transactions:
            rules = dataclasses.replace(table.rules, has_local_transactions=True)
            store.catalog.update(session, dataclasses.replace(table, rules=rules))
            store.catalog.cache.forget(table.id)


def _exclude_writers(
    store: Store, session: Session, command: local_transaction_commands.BeginTransaction
) -> Table | None:
    """Return the current table once no writer uses the partition. None if the table was dropped.

    Later writers see the changes of this database transaction.
    """
    guards = session.statements.guards_partitions
    if guards and command.table.rules.has_local_transactions:
        table: Table | None = command.table
        if store.catalog.check(session, [command.table], lock=True, near=command.partition)():
            return None
    else:
        # Writers do not use guards yet. They will when they see the table's new version.
        table = store.catalog.lock(session, command.table.id)
    if guards and table is not None:
        local_transaction_store.guard_exclusively(session, table.id, command.partition)
    return table


def _stage(
    attempt: Attempt, command: local_transaction_commands.StageWrites
) -> list[list[WriteOutcome] | errors.GatewayError]:
    """Evaluate and stage groups of writes. Return the outcomes or the error of each.

    Raises TransactionMissing, StaleTable.
    """
    store, now, now_ms = attempt.store, attempt.now, attempt.now_ms
    tables = [write.table for group in command.groups for write in group.writes]
    near = next((write.key.position.partition for group in command.groups for write in group.writes), b"")
    with store.write(near=near) as session:
        if store.catalog.check(session, tables, lock=True, near=near)():
            raise errors.StaleTable()
        open_transaction = local_transaction_store.find(session, command.transaction, now_ms, lock=True)
        if open_transaction is None:
            raise errors.TransactionMissing()
        view = staged_view(session, open_transaction)
        _fetch(session, open_transaction, command.groups, view)
        answers: list[list[WriteOutcome] | errors.GatewayError] = []
        staged_writes: list[StagedWrite] = []  # staged by this command
        size = open_transaction.size_bytes
        for group in command.groups:
            group_view = ChainMap[RowKey, Row | None]({}, view)
            answer = apply_group(group.writes, group_view, now, partial(_refusal, open_transaction))
            group_bytes = sum(added_bytes(write) for write in group.writes)
            if isinstance(answer, list) and size + group_bytes > command.limit_bytes:
                answer = errors.LimitExceeded("transaction-bytes", command.limit_bytes, size + group_bytes)
            answers.append(answer)
            if isinstance(answer, errors.GatewayError):
                continue
            view.update(group_view.maps[0])
            size += group_bytes
            for write, outcome in zip(group.writes, answer, strict=True):
                recording = _stream_record(write, outcome.new, now)
                if recording is not None:
                    staged_writes.append(StagedWrite(write.key.position, outcome.new, recording))
        if staged_writes:
            local_transaction_store.stage(session, open_transaction, staged_writes, size)
        return answers


def _fetch(
    session: Session,
    open_transaction: OpenTransaction,
    groups: Sequence[WriteGroup],
    view: dict[RowKey, Row | None],
) -> None:
    """Add to the view the stored rows that the groups use and that are not staged."""
    keys = {
        (write.table.id, write.key.position)
        for group in groups
        for write in group.writes
        if _refusal(open_transaction, write) is None and (write.table.id, write.key.position) not in view
    }
    view.update(rows.fetch_many(session, sorted(keys)))


def _refusal(open_transaction: OpenTransaction, write: Write) -> errors.GatewayError | None:
    """Return the error of a write that the transaction cannot contain. None if it can."""
    partition = local_transaction_store.locked_partition(write.key.position.partition)
    if write.table.id != open_transaction.table_id or partition != open_transaction.partition:
        return errors.InvalidInput("other-partition")
    if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
        return errors.InvalidInput("auto-increment")
    return None


def _stream_record(write: Write, new: Row | None, now: int) -> StreamRecording | None:
    kind = kind_of(write)
    return None if kind is None else StreamRecording(kind, resolved_actions(write, new, now // 10_000))


def added_bytes(write: Write) -> int:
    """Return the bytes that a write adds to its transaction: the billed size of new contents."""
    return write.change.contents.size_bytes if isinstance(write.change, Replace) else 0


def staged_view(session: Session, open_transaction: OpenTransaction) -> dict[RowKey, Row | None]:
    """Return the rows that a transaction has staged (None for deleted ones)."""
    staged_writes = local_transaction_store.writes_of(session, open_transaction.id)
    return {(open_transaction.table_id, write.position): write.new for write in staged_writes}


# Reading


def _read(
    store: Store,
    session: Session,
    command: local_transaction_commands.ReadInTransaction[point_reads.Outcome],
    now_ms: int,
) -> Generator[None, None, point_reads.Outcome]:
    """Run a read in slices. It sees the rows that its transaction has staged in place of the stored ones."""
    read, transaction = command.read, command.transaction
    refusal = point_reads.refusal_of(read, set(), now_ms)
    if refusal is not None:
        return refusal
    open_transaction = local_transaction_store.find(session, transaction, now_ms)
    if open_transaction is None:
        return errors.TransactionMissing()
    staged = staged_view(session, open_transaction)
    if isinstance(read, Read):
        of_table = {
            position: row for (table_id, position), row in staged.items() if table_id == read.table.id
        }
        return (yield from reading.page(session, read, now_ms, {}, of_table))
    assert isinstance(read, Get)
    key = read.table.id, read.position
    row = staged[key] if key in staged else rows.fetch_many(session, [key]).get(key)
    return read.table.visible(row, now_ms)


# Writing


class PartitionLocks(WriteHook):
    """The partitions of a batch that local transactions have locked, and the transactions that it commits."""

    features = frozenset({"has_local_transactions", "transaction"})

    def lock(self, session: Session) -> None:
        """Refuse writes to partitions that a transaction has locked, and commits of transactions that have ended."""
        batch = self.batch
        partitions = {
            (write.table.id, write.key.position.partition)
            for group in batch.groups
            for write in group.writes
            if write.table.rules.has_local_transactions
        }
        if partitions and session.statements.guards_partitions:
            local_transaction_store.guard(session, partitions)
        locks = local_transaction_store.partition_locks(session, sorted(partitions), batch.now_ms)
        for at, group in enumerate(batch.groups):
            if group.transaction:
                self._lock_transaction(session, at, group)
            for write in group.writes if locks else ():
                partition = write.table.id, write.key.position.partition
                if locks.get(partition, group.transaction) != group.transaction:
                    batch.answer(at, errors.PartitionLocked())

    def _lock_transaction(self, session: Session, at: int, group: WriteGroup) -> None:
        open_transaction = local_transaction_store.find(
            session, group.transaction, self.batch.now_ms, lock=True
        )
        if open_transaction is None:
            self.batch.answer(at, errors.TransactionMissing())
        elif open_transaction.writes != len(group.writes):
            raise RetryableFailure("a write was staged during the commit of a local transaction")

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        if group.transaction:
            local_transaction_store.remove(session, group.transaction)


# Ending


def _commit(
    attempt: Attempt, command: local_transaction_commands.CommitTransaction
) -> errors.GatewayError | None:
    """Apply the staged writes. Raises RetryableFailure, TransactionMissing.

    Each attempt reads the staged writes again, as more may have been added.
    """
    store, transaction = attempt.store, command.transaction
    with store.read() as session:
        _, table = _find(store, session, transaction, attempt.now_ms)
        writes = local_transaction_store.writes_of(session, transaction)
    group = WriteGroup(tuple(_write_of(table, write) for write in writes), transaction=transaction)
    [answer] = attempt.transactions.write_once([group])
    if isinstance(answer, errors.StaleTable):
        raise RetryableFailure("the table changed during the commit of a local transaction")
    return answer if isinstance(answer, errors.GatewayError) else None


def _find(store: Store, session: Session, transaction: str, now_ms: int) -> tuple[OpenTransaction, Table]:
    open_transaction = local_transaction_store.find(session, transaction, now_ms)
    table = None if open_transaction is None else store.catalog.by_id(session, open_transaction.table_id)
    if open_transaction is None or table is None:
        raise errors.TransactionMissing()
    return open_transaction, table


def _write_of(table: Table, write: StagedWrite) -> Write:
    key = table.key_schema.decode(write.position)
    change = Remove() if write.new is None else Replace(write.new.contents)
    return Write(table, key, change, recording=write.recording)


def _find_partition(
    attempt: Attempt, command: local_transaction_commands.FindTransaction
) -> local_transaction_commands.LockedPartition:
    """Return the table and partition that a transaction has locked. Raises TransactionMissing."""
    store, now_ms = attempt.store, attempt.now_ms
    with store.read() as session:
        open_transaction, table = _find(store, session, command.transaction, now_ms)
        return local_transaction_commands.LockedPartition(table, open_transaction.whole_partition)


def _abort(attempt: Attempt, command: local_transaction_commands.AbortTransaction) -> None:
    """Unlock the partition, and discard the staged writes. Raises TransactionMissing."""
    with attempt.store.write() as session:
        if local_transaction_store.find(session, command.transaction, attempt.now_ms, lock=True) is None:
            raise errors.TransactionMissing()
        local_transaction_store.remove(session, command.transaction)


def sweep(store: Store, now_ms: int, limit: int) -> int | None:
    """Remove at most `limit` expired transactions. Return their number, or None if there is none."""
    with store.read() as session:
        expired_ids = local_transaction_store.expired(session, now_ms, limit)
    if not expired_ids:
        return None
    with store.write() as session:
        for transaction in expired_ids:
            local_transaction_store.remove(session, transaction)
    return len(expired_ids)


COMMANDS: Mapping[type[Command[Any]], Runner | Reader] = {
    local_transaction_commands.ReadInTransaction: _read,
    local_transaction_commands.BeginTransaction: _begin,
    local_transaction_commands.StageWrites: _stage,
    local_transaction_commands.FindTransaction: _find_partition,
    local_transaction_commands.CommitTransaction: _commit,
    local_transaction_commands.AbortTransaction: _abort,
}

"""Local transactions: begin, stage, read through, commit, abort.

A transaction locks one partition, for itself alone, until it ends or its time is up. Its writes are decided at once, on staged
rows over stored ones, and kept; commit carries them out as one group of the ordinary write path, conditions no longer looked
at: nobody else could write to the partition meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Sequence
from functools import partial

from tablegate.gateway.model import errors
from tablegate.gateway.model.commands import transaction_commands
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.write_groups import RowKey, apply_group
from tablegate.gateway.model.commands.writes import Remove, Replace, StreamRecording, Write
from tablegate.gateway.model.tables.changes import kind_of, resolved_actions
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, slot_of
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.transactions import local_transactions
from tablegate.gateway.store.transactions.local_transactions import OpenTransaction, StagedWrite


def begin(store: Store, command: transaction_commands.BeginTransaction, now_ms: int) -> None:
    """Lock a partition. The first transaction of a table tells its writers to look for partition locks from then on.

    Raises PartitionLocked, StaleTable.
    """
    with store.write(near=command.partition) as session:
        table = _kept_from_writers(store, session, command)
        if table is None or table.version != command.table.version:
            store.catalog.cache.forget(command.table.id)
            raise errors.StaleTable()
        if local_transactions.partition_locks(session, [(table.id, command.partition)], now_ms):
            raise errors.PartitionLocked()
        opened = OpenTransaction(
            command.transaction,
            slot_of(command.partition),
            table.id,
            local_transactions.locked_partition(command.partition),
            now_ms + command.lifetime_ms,
            size_bytes=0,
            writes=0,
        )
        assert opened.slot == local_transactions.slot_of_transaction(opened.id)
        local_transactions.add(session, opened)
        if not table.rules.has_local_transactions:
            rules = dataclasses.replace(table.rules, has_local_transactions=True)
            store.catalog.update(session, dataclasses.replace(table, rules=rules))
            store.catalog.cache.forget(table.id)


def _kept_from_writers(
    store: Store, session: Session, command: transaction_commands.BeginTransaction
) -> Table | None:
    """The table as it is now, when nobody is writing to the partition any more; None: it is gone. Writers who come later see
    what this transaction of the database has done."""
    guards = session.statements.guards_partitions
    if guards and command.table.rules.has_local_transactions:
        table: Table | None = command.table
        if store.catalog.check(session, [command.table], lock=True, near=command.partition)():
            return None
    else:
        # Writers do not yet look for guards, if there are any; when they see the table's new version they do.
        table = store.catalog.lock(session, command.table.id)
    if guards and table is not None:
        local_transactions.guard_alone(session, table.id, command.partition)
    return table


def stage(
    store: Store, command: transaction_commands.StageWrites, now: int
) -> list[list[WriteOutcome] | errors.GatewayError]:
    """Decide groups of writes and keep them: for each its outcomes or its error. `now`: ticks of 100 ns since 1970.

    Raises TransactionMissing, StaleTable.
    """
    now_ms = now // 10_000
    tables = [write.table for group in command.groups for write in group.writes]
    near = next((write.key.position.partition for group in command.groups for write in group.writes), b"")
    with store.write(near=near) as session:
        if store.catalog.check(session, tables, lock=True, near=near)():
            raise errors.StaleTable()
        opened = local_transactions.find(session, command.transaction, now_ms, lock=True)
        if opened is None:
            raise errors.TransactionMissing()
        view = staged_view(session, opened)
        _fetch(session, opened, command.groups, view)
        answers: list[list[WriteOutcome] | errors.GatewayError] = []
        kept: list[StagedWrite] = []  # what is staged by this command
        size = opened.size_bytes
        for group in command.groups:
            applied = ChainMap[RowKey, Row | None]({}, view)
            answer = apply_group(group.writes, applied, now, partial(_refusal, opened))
            added = sum(added_bytes(write) for write in group.writes)
            if isinstance(answer, list) and size + added > command.limit_bytes:
                answer = errors.LimitExceeded("transaction-bytes", command.limit_bytes, size + added)
            answers.append(answer)
            if isinstance(answer, errors.GatewayError):
                continue
            view.update(applied.maps[0])
            size += added
            for write, outcome in zip(group.writes, answer, strict=True):
                recorded = _recorded(write, outcome.new, now)
                if recorded is not None:
                    kept.append(StagedWrite(write.key.position, outcome.new, recorded))
        if kept:
            local_transactions.stage(session, opened, kept, size)
        return answers


def _fetch(
    session: Session, opened: OpenTransaction, groups: Sequence[WriteGroup], view: dict[RowKey, Row | None]
) -> None:
    """Add to the view the real rows that the groups are about and that have not been staged."""
    wanted = {
        (write.table.id, write.key.position)
        for group in groups
        for write in group.writes
        if _refusal(opened, write) is None and (write.table.id, write.key.position) not in view
    }
    view.update(rows.fetch_many(session, sorted(wanted)))


def _refusal(opened: OpenTransaction, write: Write) -> errors.GatewayError | None:
    """What keeps a write out of a transaction; None: nothing."""
    partition = local_transactions.locked_partition(write.key.position.partition)
    if write.table.id != opened.table_id or partition != opened.partition:
        return errors.InvalidInput("other-partition")
    if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
        return errors.InvalidInput("auto-increment")
    return None


def _recorded(write: Write, new: Row | None, now: int) -> StreamRecording | None:
    """What streams will be told of a write when it is committed; None: nothing."""
    kind = kind_of(write)
    return None if kind is None else StreamRecording(kind, resolved_actions(write, new, now // 10_000))


def added_bytes(write: Write) -> int:
    """The bytes that a write adds to the size of its transaction: the billed size of the contents that it brings."""
    return write.change.contents.size_bytes if isinstance(write.change, Replace) else 0


def staged_view(session: Session, opened: OpenTransaction) -> dict[RowKey, Row | None]:
    """The rows that a transaction has written so far (None: deleted)."""
    staged = local_transactions.writes_of(session, opened.id)
    return {(opened.table_id, write.position): write.new for write in staged}


def commit_group(store: Store, transaction: str, now_ms: int) -> WriteGroup:
    """The group of writes that commits a transaction. Raises TransactionMissing."""
    with store.read() as session:
        opened = local_transactions.find(session, transaction, now_ms)
        table = None if opened is None else store.catalog.by_id(session, opened.table_id)
        if opened is None or table is None:
            raise errors.TransactionMissing()
        writes = local_transactions.writes_of(session, transaction)
    return WriteGroup(tuple(_carried_out(table, write) for write in writes), transaction=transaction)


def _carried_out(table: Table, write: StagedWrite) -> Write:
    key = table.key_schema.decode(write.position)
    change = Remove() if write.new is None else Replace(write.new.contents)
    return Write(table, key, change, recorded=write.recorded)


def held_by(store: Store, transaction: str, now_ms: int) -> transaction_commands.LockedPartition:
    """What a transaction holds. Raises TransactionMissing."""
    with store.read() as session:
        opened = local_transactions.find(session, transaction, now_ms)
        table = None if opened is None else store.catalog.by_id(session, opened.table_id)
        if opened is None or table is None:
            raise errors.TransactionMissing()
        return transaction_commands.LockedPartition(table, opened.whole_partition)


def end(store: Store, command: transaction_commands.AbortTransaction, now_ms: int) -> None:
    """Unlock the partition, and forget what was staged. Raises TransactionMissing."""
    with store.write() as session:
        if local_transactions.find(session, command.transaction, now_ms, lock=True) is None:
            raise errors.TransactionMissing()
        local_transactions.remove(session, command.transaction)


def sweep(store: Store, now_ms: int, limit: int) -> int | None:
    """Forget some transactions that are past their time, `limit` at most. How many; None: there are none."""
    with store.read() as session:
        gone = local_transactions.expired(session, now_ms, limit)
    if not gone:
        return None
    with store.write() as session:
        for transaction in gone:
            local_transactions.remove(session, transaction)
    return len(gone)

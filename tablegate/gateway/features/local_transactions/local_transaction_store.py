"""SQL for open local transactions: the partition that each has locked, and its staged writes.

A row of `partition_locks` is an open transaction and locks one partition of one table. A writer to a table with local
transactions holds a share lock on the row in `tables`. The start of a transaction holds an exclusive lock on that row.
So a writer either sees the partition lock or has finished before. With several nodes, guards replace that row (see
below).

All data of a transaction has the slot of its partition, so that a distributed database keeps it on the partition's
node. The end of the transaction's id encodes that slot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tablegate.gateway.model.commands.writes import ChangeKind, StreamRecording
from tablegate.gateway.model.expressions.updates import Action
from tablegate.gateway.model.values.keys import LOWEST, SLOTS, Position, slot_of
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.positions import COLUMN_BYTES, position_of, stored_position
from tablegate.gateway.store.streams.changes import actions_json, actions_of

_OPEN_TRANSACTION = "id, slot, table_id, partition, expires_at_ms, size_bytes, writes"
_STAGED = "partition, sort, full_key, kind, modified_at, size_bytes, kinds, body, actions"


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open local transaction. `partition`: as `stored_position` stores it. `writes`: number of staged writes."""

    id: str
    slot: int
    table_id: int
    partition: bytes
    expires_at_ms: int
    size_bytes: int
    writes: int

    @property
    def whole_partition(self) -> bytes | None:
        """The bytes of the partition, if they were not clipped."""
        return self.partition if len(self.partition) < COLUMN_BYTES else None


@dataclass(frozen=True, slots=True)
class StagedWrite:
    """A decided write: the resulting row (or None), and its record for change streams."""

    position: Position
    new: Row | None
    recording: StreamRecording


def locked_partition(partition: bytes) -> bytes:
    """Return a partition as partition locks and OpenTransaction store it, clipped like its column."""
    return stored_position(Position(partition, LOWEST)).partition


def slot_of_transaction(transaction: str) -> int:
    """Return the slot of a transaction, the last four hexadecimal digits of its id (BeginTransaction).

    A client can send any digits. Return the first slot if they are no slot, since it has no such transaction.
    """
    slot = int(transaction[-4:], 16)
    return slot if slot in SLOTS else SLOTS[0]


Partition = tuple[int, bytes]
"""(table id, bytes of the partition columns)."""


def partition_locks(session: Session, partitions: Iterable[Partition], now_ms: int) -> dict[Partition, str]:
    """Return the transaction ids that lock these partitions. `now_ms`: milliseconds since 1970."""
    answers = [
        (
            (table_id, partition),
            session.ask(
                "SELECT id FROM partition_locks"
                " WHERE table_id = ? AND partition = ? AND slot = ? AND expires_at_ms > ?",
                (table_id, locked_partition(partition), slot_of(partition), now_ms),
            ),
        )
        for table_id, partition in partitions
    ]
    return {partition: rows[0][0] for partition, answer in answers if (rows := answer())}


# Guards. If the row of a table is on many nodes (Statements.guards_partitions), a row at the partition's slot is locked
# in its place: shared by writers, exclusively by the start of a transaction. The first user inserts it, which also
# locks it.


def guard(session: Session, partitions: Iterable[Partition]) -> None:
    """Block transactions from starting in these partitions until the database transaction ends. Writers share this
    lock.

    Must be called before `partition_locks`.
    """
    guards = sorted(
        {(slot_of(partition), counters.partition_guards(table)) for table, partition in partitions}
    )
    while guards:
        answers = [(key, session.ask(_SHARE_GUARD, key)) for key in guards]
        guards = [key for key, answer in answers if not answer()]
        for slot, name in guards:
            session.send(_MAKE_GUARD, (name, slot))


def guard_exclusively(session: Session, table_id: int, partition: bytes) -> None:
    """Block writes and new transactions in a partition until the database transaction ends."""
    session.send(_LOCK_GUARD, (counters.partition_guards(table_id), slot_of(partition)))


_SHARE_GUARD = "SELECT 1 FROM counters WHERE slot = ? AND name = ? FOR SHARE"
_MAKE_GUARD = "INSERT INTO counters (name, slot, value) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
_LOCK_GUARD = (
    "INSERT INTO counters (name, slot, value) VALUES (?, ?, 0)"
    " ON CONFLICT (name, slot) DO UPDATE SET value = excluded.value"
)


def find(session: Session, transaction: str, now_ms: int, lock: bool = False) -> OpenTransaction | None:
    """Return an open transaction, or None if it does not exist, has ended or has expired.

    With `lock`, no other session can stage, commit or abort it until the database transaction ends.
    """
    suffix = session.statements.for_update if lock else ""
    rows = session.query(
        f"SELECT {_OPEN_TRANSACTION} FROM partition_locks WHERE id = ? AND slot = ?{suffix}",
        _key(transaction),
    )
    if not rows:
        return None
    open_transaction = OpenTransaction(*rows[0])
    return open_transaction if open_transaction.expires_at_ms > now_ms else None


def add(session: Session, open_transaction: OpenTransaction) -> None:
    """Insert a transaction. An expired one that still locks the partition is deleted."""
    old = session.query(
        "SELECT id FROM partition_locks WHERE table_id = ? AND partition = ? AND slot = ?",
        (open_transaction.table_id, open_transaction.partition, open_transaction.slot),
    )
    for (transaction,) in old:
        remove(session, transaction)
    session.execute(
        f"INSERT INTO partition_locks ({_OPEN_TRANSACTION}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            open_transaction.id,
            open_transaction.slot,
            open_transaction.table_id,
            open_transaction.partition,
            open_transaction.expires_at_ms,
            open_transaction.size_bytes,
            open_transaction.writes,
        ),
    )


def remove(session: Session, transaction: str) -> None:
    """Delete a transaction and its staged writes."""
    session.execute("DELETE FROM staged_writes WHERE transaction_id = ? AND slot = ?", _key(transaction))
    session.execute("DELETE FROM partition_locks WHERE id = ? AND slot = ?", _key(transaction))


def _key(transaction: str) -> tuple[str, int]:
    return transaction, slot_of_transaction(transaction)


def expired(session: Session, now_ms: int, limit: int) -> list[str]:
    """Return the ids of up to `limit` expired transactions."""
    rows = session.query("SELECT id FROM partition_locks WHERE expires_at_ms <= ? LIMIT ?", (now_ms, limit))
    return [transaction for (transaction,) in rows]


def stage(
    session: Session, open_transaction: OpenTransaction, writes: Iterable[StagedWrite], size_bytes: int
) -> None:
    """Add writes to a transaction that this session has locked (`find`). `size_bytes`: total of all its writes."""
    values = [
        (open_transaction.id, open_transaction.slot, ordinal, *_columns(write))
        for ordinal, write in enumerate(writes, open_transaction.writes)
    ]
    session.execute_many(
        f"INSERT INTO staged_writes (transaction_id, slot, ordinal, {_STAGED})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    session.execute(
        "UPDATE partition_locks SET writes = ?, size_bytes = ? WHERE id = ? AND slot = ?",
        (open_transaction.writes + len(values), size_bytes, open_transaction.id, open_transaction.slot),
    )


def writes_of(session: Session, transaction: str) -> list[StagedWrite]:
    """Return the staged writes of a transaction, in order."""
    rows = session.query(
        f"SELECT {_STAGED} FROM staged_writes WHERE transaction_id = ? AND slot = ? ORDER BY ordinal",
        _key(transaction),
    )
    return [_staged_write(columns) for columns in rows]


def _columns(write: StagedWrite) -> tuple[Any, ...]:
    stored = stored_position(write.position)
    new, recording = write.new, write.recording
    assert recording.kind is not None  # clients' writes are always recorded
    return (
        stored.partition,
        stored.sort,
        stored.full_key,
        recording.kind.value,
        None if new is None else new.modified_at,
        None if new is None else new.size_bytes,
        None if new is None else new.contents.kinds,
        None if new is None else new.body,
        actions_json(recording.actions) if recording.actions else None,
    )


def _staged_write(columns: tuple[Any, ...]) -> StagedWrite:
    partition, sort, full_key, kind, modified_at, size, kinds, body, actions = columns
    position = position_of(partition, sort, full_key)
    new = None
    if modified_at is not None and size is not None:
        new = Row(position, Contents(body, kinds, size), modified_at)
    cell_actions: tuple[Action, ...] = actions_of(actions) if actions else ()
    return StagedWrite(position, new, StreamRecording(ChangeKind(kind), cell_actions))

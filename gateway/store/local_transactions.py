"""Open local transactions as SQL: which partition each holds, and the writes staged in it.

A hold belongs to one partition of one table. Whoever writes to a table that has local transactions has its row of `tables`
locked for share; whoever begins one has it locked for itself: so a writer either sees the hold or was done before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gateway.model.keys import LOWEST, Position
from gateway.model.rows import Contents, Row
from gateway.model.updates import Action
from gateway.model.writes import ChangeKind, Recorded
from gateway.store.changes import actions_json, actions_of
from gateway.store.databases import Session
from gateway.store.positions import place_of, position_of

_HOLD = "id, table_id, partition, expires_at_ms, size_bytes, writes"
_STAGED = "partition, sort, full_key, kind, modified_at, size_bytes, kinds, body, actions"


@dataclass(frozen=True, slots=True)
class Hold:
    """An open local transaction. `partition` as `place_of` stores it; `writes`: how many have been staged."""

    id: str
    table_id: int
    partition: bytes
    expires_at_ms: int
    size_bytes: int
    writes: int


@dataclass(frozen=True, slots=True)
class Staged:
    """A write as it was decided when it was staged: the row that it leaves (None: none), and what streams are told."""

    position: Position
    new: Row | None
    recorded: Recorded


def held_partition(partition: bytes) -> bytes:
    """A partition as holds name it."""
    return place_of(Position(partition, LOWEST)).partition


def live_holds(session: Session, table_id: int, now_ms: int) -> dict[bytes, str]:
    """Who holds which partitions of a table: id by partition."""
    found = session.query(
        "SELECT partition, id FROM holds WHERE table_id = ? AND expires_at_ms > ?", (table_id, now_ms)
    )
    return {bytes(partition): transaction for partition, transaction in found}


def find(session: Session, transaction: str, now_ms: int, lock: bool = False) -> Hold | None:
    """An open transaction; None if it never was, was ended, or is past its time. With `lock`, nobody else can stage, commit
    or abort it until this transaction of the database ends."""
    suffix = " FOR UPDATE" if lock and session.is_postgresql else ""
    found = session.query(f"SELECT {_HOLD} FROM holds WHERE id = ?{suffix}", (transaction,))
    if not found:
        return None
    hold = Hold(*found[0])
    return hold if hold.expires_at_ms > now_ms else None


def add(session: Session, hold: Hold) -> None:
    """Open a transaction. What is left of one that held the partition and is past its time goes."""
    old = session.query(
        "SELECT id FROM holds WHERE table_id = ? AND partition = ?", (hold.table_id, hold.partition)
    )
    for (transaction,) in old:
        remove(session, transaction)
    session.execute(
        f"INSERT INTO holds ({_HOLD}) VALUES (?, ?, ?, ?, ?, ?)",
        (hold.id, hold.table_id, hold.partition, hold.expires_at_ms, hold.size_bytes, hold.writes),
    )


def remove(session: Session, transaction: str) -> None:
    """End a transaction, and forget what was staged in it."""
    session.execute("DELETE FROM staged WHERE transaction_id = ?", (transaction,))
    session.execute("DELETE FROM holds WHERE id = ?", (transaction,))


def expired(session: Session, now_ms: int, limit: int) -> list[str]:
    """Some transactions that are past their time."""
    found = session.query("SELECT id FROM holds WHERE expires_at_ms <= ? LIMIT ?", (now_ms, limit))
    return [transaction for (transaction,) in found]


def stage(session: Session, hold: Hold, writes: Iterable[Staged], size_bytes: int) -> None:
    """Add writes to a transaction that is locked."""
    values = [(hold.id, ordinal, *_columns(write)) for ordinal, write in enumerate(writes, hold.writes)]
    session.execute_many(
        f"INSERT INTO staged (transaction_id, ordinal, {_STAGED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    session.execute(
        "UPDATE holds SET writes = ?, size_bytes = ? WHERE id = ?",
        (hold.writes + len(values), size_bytes, hold.id),
    )


def writes_of(session: Session, transaction: str) -> list[Staged]:
    """What has been staged, in order."""
    found = session.query(
        f"SELECT {_STAGED} FROM staged WHERE transaction_id = ? ORDER BY ordinal", (transaction,)
    )
    return [_staged(*columns) for columns in found]


def _columns(write: Staged) -> tuple[Any, ...]:
    place = place_of(write.position)
    new, recorded = write.new, write.recorded
    return (
        place.partition,
        place.sort,
        place.full_key,
        recorded.kind.value,
        None if new is None else new.modified_at,
        None if new is None else new.size_bytes,
        None if new is None else new.contents.kinds,
        None if new is None else new.body,
        actions_json(recorded.actions) if recorded.actions else None,
    )


def _staged(
    partition: bytes,
    sort: bytes,
    full_key: bytes | None,
    kind: str,
    modified_at: int | None,
    size: int | None,
    kinds: bytes | None,
    body: bytes | None,
    actions: bytes | None,
) -> Staged:
    position = position_of(partition, sort, full_key)
    new = None
    if modified_at is not None and size is not None:
        new = Row(position, Contents(body, kinds, size), modified_at)
    done: tuple[Action, ...] = actions_of(actions) if actions else ()
    return Staged(position, new, Recorded(ChangeKind(kind), done))

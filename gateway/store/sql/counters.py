"""Counters as SQL: numbers that are never given twice. A counter's row stays locked until the transaction ends.

A counter stands at the slot that its name hashes to, so that a distributed database spreads them over its nodes.
"""

from __future__ import annotations

import hashlib

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.sql.databases import Session


def advance(session: Session, name: str, step: int, floor: int = 0) -> int:
    """Advance a counter by `step`, from `floor` at least. The number that it stands at then."""
    greatest = session.statements.greatest
    [(value,)] = session.query(
        "INSERT INTO counters (name, slot, value) VALUES (?, ?, ?)"
        f" ON CONFLICT (name, slot) DO UPDATE SET value = {greatest}(counters.value, ?) + ? RETURNING value",
        (name, slot_of_counter(name), floor + step, floor, step),
    )
    return int(value)


def value_of(session: Session, name: str) -> int:
    """The number that a counter stands at; 0 if it was never advanced."""
    found = session.query(
        "SELECT value FROM counters WHERE name = ? AND slot = ?", (name, slot_of_counter(name))
    )
    return int(found[0][0]) if found else 0


def forget(session: Session, name: str) -> None:
    """Delete a counter that nothing will be numbered by again."""
    session.execute("DELETE FROM counters WHERE name = ? AND slot = ?", (name, slot_of_counter(name)))


def slot_of_counter(name: str) -> int:
    """The slot at which a counter stands. Never changed: counters are stored by it."""
    return slot_of(name.encode())


def partition_counter(table_id: int, partition: bytes) -> str:
    """The name of the counter from which an auto-increment column of a partition is drawn."""
    return f"drawn/{table_id}/{hashlib.sha256(partition).hexdigest()[:40]}"


def partition_guards(table_id: int) -> str:
    """The name of what guards the partitions of a table, a row at each slot: it is locked, and never advanced
    (local_transactions.py)."""
    return f"guard/{table_id}/"


def shard_counter(stream_id: int, number: int) -> str:
    """The name of the counter by which the changes of a stream's shard are numbered."""
    return f"shard/{stream_id}/{number}"


def forget_table(session: Session, table_id: int, limit: int) -> int:
    """Delete at most `limit` counters of a table that is gone. How many went."""
    gone = _forget(session, f"drawn/{table_id}/", limit)
    return gone + _forget(session, partition_guards(table_id), limit - gone)


def forget_stream(session: Session, stream_id: int) -> None:
    """Delete the counters of a stream that is gone: one for each of its shards."""
    _forget(session, f"shard/{stream_id}/", 1 << 30)


def _forget(session: Session, head: str, limit: int) -> int:
    # By a range: LIKE, which is of no case, has SQLite look at every counter.
    names = "SELECT name, slot FROM counters WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
    above = head[:-1] + chr(ord(head[-1]) + 1)
    return session.execute(f"DELETE FROM counters WHERE (name, slot) IN ({names})", (head, above, limit))

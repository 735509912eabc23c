"""SQL for counters. Their numbers are never used twice. A counter's row stays locked until the transaction ends.

The slot of a counter is a hash of its name, so that a distributed database spreads counters over its nodes.
"""

from __future__ import annotations

import hashlib

from tablegate.gateway.model.values.keys import slot_of
from tablegate.gateway.store.sql.databases import Session


def advance(session: Session, name: str, step: int, floor: int = 0) -> int:
    """Advance a counter by `step`, from at least `floor`. Return its new value."""
    greatest = session.statements.greatest
    [(value,)] = session.query(
        "INSERT INTO counters (name, slot, value) VALUES (?, ?, ?)"
        f" ON CONFLICT (name, slot) DO UPDATE SET value = {greatest}(counters.value, ?) + ? RETURNING value",
        (name, slot_of_counter(name), floor + step, floor, step),
    )
    return int(value)


def value_of(session: Session, name: str) -> int:
    """Return the value of a counter, or 0 if it was never advanced."""
    rows = session.query(
        "SELECT value FROM counters WHERE name = ? AND slot = ?", (name, slot_of_counter(name))
    )
    return int(rows[0][0]) if rows else 0


def forget(session: Session, name: str) -> None:
    """Delete a counter that is no longer needed."""
    session.execute("DELETE FROM counters WHERE name = ? AND slot = ?", (name, slot_of_counter(name)))


def slot_of_counter(name: str) -> int:
    """Return the slot of a counter. The rule must not change, because counters are stored by it."""
    return slot_of(name.encode())


def partition_counter(table_id: int, partition: bytes) -> str:
    """Return the name of the counter for an auto-increment column of a partition."""
    return f"drawn/{table_id}/{hashlib.sha256(partition).hexdigest()[:40]}"


def partition_guards(table_id: int) -> str:
    """Return the name of the guards of a table's partitions, one row at each slot.

    Guards are locked and never advanced (local_transactions.py).
    """
    return f"guard/{table_id}/"


def shard_counter(stream_id: int, number: int) -> str:
    """Return the name of the counter that numbers the changes of a stream's shard."""
    return f"shard/{stream_id}/{number}"


def forget_table(session: Session, table_id: int, limit: int) -> int:
    """Delete up to `limit` counters of a dropped table. Return their number."""
    deleted = forget_all(session, f"drawn/{table_id}/", limit)
    return deleted + forget_all(session, partition_guards(table_id), limit - deleted)


def forget_stream(session: Session, stream_id: int) -> None:
    """Delete the counters of a dropped stream, one for each of its shards."""
    forget_all(session, f"shard/{stream_id}/")


def forget_all(session: Session, head: str, limit: int = 1 << 30) -> int:
    """Delete up to `limit` counters with names that begin with `head`. Return their number."""
    # By a range, because LIKE is not case-sensitive in SQLite and would scan all counters.
    names = "SELECT name, slot FROM counters WHERE name >= ? AND name < ? ORDER BY name LIMIT ?"
    above = head[:-1] + chr(ord(head[-1]) + 1)
    return session.execute(f"DELETE FROM counters WHERE (name, slot) IN ({names})", (head, above, limit))

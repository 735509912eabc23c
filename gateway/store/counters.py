"""Counters as SQL: numbers that are never given twice. A counter's row stays locked until the transaction ends."""

from __future__ import annotations

import hashlib

from gateway.store.databases import Session


def advance(session: Session, name: str, step: int, floor: int = 0) -> int:
    """Advance a counter by `step`, from `floor` at least. The number that it stands at then."""
    greatest = "GREATEST" if session.is_postgresql else "max"
    [(value,)] = session.query(
        "INSERT INTO counters (name, value) VALUES (?, ?)"
        f" ON CONFLICT (name) DO UPDATE SET value = {greatest}(counters.value, ?) + ? RETURNING value",
        (name, floor + step, floor, step),
    )
    return int(value)


def partition_counter(table_id: int, partition: bytes) -> str:
    """The name of the counter from which an auto-increment column of a partition is drawn."""
    return f"drawn/{table_id}/{hashlib.sha256(partition).hexdigest()[:40]}"


def forget_table(session: Session, table_id: int) -> None:
    """Delete the counters of a table that is gone."""
    session.execute("DELETE FROM counters WHERE name LIKE ?", (f"drawn/{table_id}/%",))

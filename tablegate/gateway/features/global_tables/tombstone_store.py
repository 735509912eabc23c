"""SQL for the times at which rows of replicated tables were deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablegate.gateway.model.commands.row_commands import RowKey
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.sql.positions import stored_position


def of_keys(session: Session, keys: Sequence[RowKey]) -> Pending[dict[RowKey, int]]:
    """Return the times of deletion by key, in ticks, where a tombstone exists."""
    statement = (
        "SELECT deleted_at FROM tombstones WHERE table_id = ? AND partition = ? AND sort = ? AND slot = ?"
    )
    answers = [
        session.ask(statement, (table_id, *stored_position(position)[:3])) for table_id, position in keys
    ]
    return lambda: {key: rows[0][0] for key, answer in zip(keys, answers, strict=True) if (rows := answer())}


def keep(session: Session, deletion_times: Mapping[RowKey, int]) -> None:
    """Store times of deletion. The later of two times is kept."""
    greatest = session.statements.greatest
    session.execute_many(
        "INSERT INTO tombstones (table_id, partition, sort, slot, full_key, deleted_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET"
        f" deleted_at = {greatest}(tombstones.deleted_at, excluded.deleted_at)",
        [
            (table_id, *stored_position(position), deletion_times[table_id, position])
            for table_id, position in sorted(deletion_times)
        ],
    )


def copy(session: Session, table_id: int, to: int) -> None:
    """Copy the tombstones of a table to another one that has none."""
    session.execute(
        "INSERT INTO tombstones (table_id, partition, sort, slot, full_key, deleted_at)"
        f" SELECT {session.statements.big_number}, partition, sort, slot, full_key, deleted_at FROM tombstones"
        " WHERE table_id = ?",
        (to, table_id),
    )


def trim(session: Session, table_id: int, before: int, limit: int) -> int:
    """Delete about `limit` of the oldest tombstones of a table from before a time. Return their number."""
    oldest = session.query(
        "SELECT deleted_at FROM tombstones WHERE table_id = ? AND deleted_at < ? ORDER BY deleted_at LIMIT ?",
        (table_id, before, limit),
    )
    if not oldest:
        return 0
    return session.execute(
        "DELETE FROM tombstones WHERE table_id = ? AND deleted_at <= ?", (table_id, oldest[-1][0])
    )


def owners(session: Session) -> list[int]:
    """Return the tables that have tombstones. Skips from table to table, so the number of tombstones does not matter."""
    table_ids: list[int] = []
    while rows := session.query(
        "SELECT table_id FROM tombstones WHERE table_id > ? ORDER BY table_id LIMIT 1",
        (table_ids[-1] if table_ids else 0,),
    ):
        table_ids.append(rows[0][0])
    return table_ids


def forget(session: Session, table_id: int) -> None:
    """Delete all tombstones of a table that was dropped or has no replicas left."""
    session.send("DELETE FROM tombstones WHERE table_id = ?", (table_id,))

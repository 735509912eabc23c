"""SQL for the followers of tables and their progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.store.sql.databases import Session

_COLUMNS = "id, table_id, kind, target, stream_id, positions, copying, mark, ending"


class FollowerEnd(NamedTuple):
    """The end of a follower: a stream of the table, and the first excluded sequence of each shard.

    `at_ms` is the time of the request to end, when the table had `definition` (descriptors.definition).
    """

    stream_id: int
    positions: Mapping[int, int]
    at_ms: int
    definition: str


class Follower(NamedTuple):
    """A subscription that delivers the changes of a table to a target.

    `kind` defines the meaning of `target`. `stream_id` and `positions` are the progress: a stream of the table, and the
    next sequence of each started shard. `copying`: the existing rows from `mark` on are still to be delivered.
    `ending`: its end, or None if it is active.
    """

    id: int
    table_id: int
    kind: str
    target: str
    stream_id: int
    positions: Mapping[int, int]
    copying: bool = False
    mark: bytes | None = None
    ending: FollowerEnd | None = None

    def end_of(self, shard: int) -> int | None:
        """Return the first excluded sequence of a shard of the current stream, or None if the follower does not end
        there."""
        if self.ending is None or self.ending.stream_id > self.stream_id:
            return None
        return self.ending.positions.get(shard, 0) if self.ending.stream_id == self.stream_id else 0


def add(session: Session, follower: Follower) -> None:
    """Insert a new follower."""
    session.execute(
        f"INSERT INTO followers ({_COLUMNS}, owner, owned_until_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0)",
        _columns(follower),
    )


def of_kind(session: Session, kind: str, after: int = 0) -> Follower | None:
    """Return the next follower of a kind, by id."""
    return next(iter(_select(session, "kind = ? AND id > ? ORDER BY id LIMIT 1", (kind, after))), None)


def by_id(session: Session, follower_id: int) -> Follower | None:
    """Return the follower with this id, or None."""
    return next(iter(_select(session, "id = ?", (follower_id,))), None)


def of_table(session: Session, table_id: int, kind: str | None = None) -> list[Follower]:
    """Return the followers of a table."""
    if kind is None:
        return _select(session, "table_id = ? ORDER BY id", (table_id,))
    return _select(session, "table_id = ? AND kind = ? ORDER BY id", (table_id, kind))


def of_target(session: Session, kind: str, target: str) -> list[Follower]:
    """Return the followers with this target."""
    return _select(session, "kind = ? AND target = ? ORDER BY id", (kind, target))


def of_dropped_tables(session: Session) -> list[Follower]:
    """Return the ending followers of dropped tables."""
    return _select(session, "ending IS NOT NULL AND table_id NOT IN (SELECT id FROM tables) ORDER BY id", ())


def advance(session: Session, old: Follower, new: Follower) -> bool:
    """Update the progress of a follower. Return False, and change nothing, if it is no longer `old`."""
    marked, marks = ("mark IS NULL", ()) if old.mark is None else ("mark = ?", (old.mark,))
    return (
        session.execute(
            "UPDATE followers SET stream_id = ?, positions = ?, copying = ?, mark = ?"
            f" WHERE id = ? AND stream_id = ? AND positions = ? AND copying = ? AND {marked}",
            (
                *_columns(new)[4:8],
                old.id,
                old.stream_id,
                _positions_json(old.positions),
                int(old.copying),
                *marks,
            ),
        )
        == 1
    )


def copy_again(session: Session, kind: str, target: str) -> None:
    """Deliver all existing rows again to the followers with this target, before further changes."""
    session.execute(
        "UPDATE followers SET copying = 1, mark = NULL WHERE kind = ? AND target = ?", (kind, target)
    )


def end(session: Session, follower_id: int, ending: FollowerEnd) -> None:
    """Set the end of a follower."""
    session.execute("UPDATE followers SET ending = ? WHERE id = ?", (_ending_json(ending), follower_id))


def acquire(session: Session, follower: Follower, owner: str, now_ms: int, until_ms: int) -> bool:
    """Acquire or renew the exclusive lease on a follower. Return False if another server holds it."""
    return (
        session.execute(
            "UPDATE followers SET owner = ?, owned_until_ms = ? WHERE id = ? AND (owner = ? OR owned_until_ms <= ?)",
            (owner, until_ms, follower.id, owner, now_ms),
        )
        == 1
    )


def first_needed(session: Session, table_id: int, stream_id: int) -> Mapping[int, int] | None:
    """Return the changes of a stream that must not be trimmed: by shard, the first sequence that a follower still
    needs.

    Shards that are not named must not be trimmed at all. None if no follower needs the stream.
    """
    behind = [follower for follower in of_table(session, table_id) if follower.stream_id <= stream_id]
    if not behind:
        return None
    if any(follower.stream_id < stream_id for follower in behind):
        return {}
    shards = {number for follower in behind for number in follower.positions}
    return {
        number: min(follower.positions[number] for follower in behind)
        for number in shards
        if all(number in follower.positions for follower in behind)
    }


def remove(session: Session, follower_id: int) -> None:
    """Delete a follower."""
    session.execute("DELETE FROM followers WHERE id = ?", (follower_id,))


def _select(session: Session, where: str, parameters: Sequence[Any]) -> list[Follower]:
    return [
        Follower(
            follower_id,
            table_id,
            kind,
            target,
            stream_id,
            _positions(positions),
            bool(copying),
            mark,
            _ending(ending),
        )
        for follower_id, table_id, kind, target, stream_id, positions, copying, mark, ending in session.query(
            f"SELECT {_COLUMNS} FROM followers WHERE {where}", parameters
        )
    ]


def _columns(follower: Follower) -> tuple[Any, ...]:
    return (
        *follower[:5],
        _positions_json(follower.positions),
        int(follower.copying),
        follower.mark,
        None if follower.ending is None else _ending_json(follower.ending),
    )


def _ending(text: str | None) -> FollowerEnd | None:
    if text is None:
        return None
    stream_id, positions, at_ms, definition = orjson.loads(text)
    return FollowerEnd(stream_id, dict(positions), at_ms, definition)


def _ending_json(ending: FollowerEnd) -> str:
    return orjson.dumps(
        [ending.stream_id, [*ending.positions.items()], ending.at_ms, ending.definition]
    ).decode()


def _positions(text: str) -> dict[int, int]:
    return {int(shard): sequence for shard, sequence in orjson.loads(text).items()}


def _positions_json(positions: Mapping[int, int]) -> str:
    return orjson.dumps({str(shard): positions[shard] for shard in sorted(positions)}).decode()

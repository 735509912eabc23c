"""Followers: whoever is told each change of a table, in the order of its changes, and how far each has come.

One mechanism for all that goes out of a table by itself: changes for its replicas (replicating.py), records for a Kinesis
stream (an adapter delivers them). A follower reads the streams of the table, one after the other: that of its clients, or the
log that is kept while they have none (Rules.recorder). In a stream it reads shards after their parents, so that it is told the
changes of a row in their order. Where it has come to is noted after its changes have been delivered, so that each is delivered
at least once, whatever is killed. Nothing is trimmed that a follower has still to be told.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gateway.engine.defining import Definer
from gateway.engine.dependents import altered, current, released
from gateway.model.changes import Change, Shard
from gateway.model.commands import Follow, Unfollow
from gateway.model.tables import Table
from gateway.store import changes, followers
from gateway.store.databases import Session
from gateway.store.followers import Follower
from gateway.store.store import Store

_BYTES = 4_000_000
# Looked at together.
_PAGE = 100
# How long nobody else delivers to a follower after a delivery has begun; it is as long until another server goes on after one
# that was killed. What takes longer may be delivered twice.
_OWNED_MS = 5_000


class NotDelivered(Exception):
    """Changes did not arrive at a follower, or it is not known whether they did."""

    def __init__(self, follower_id: int, reason: str) -> None:
        super().__init__(reason)
        self.follower_id = follower_id


Deliver = Callable[[Table, str, Sequence[Change]], None]
"""Gives changes of a table to the target of a follower, and returns when they have arrived there. Called again with the same
changes if it raises, or is killed."""


# Beginning and ending


def follow(store: Store, definer: Definer, command: Follow, now_ms: int) -> Table:
    """Have somebody told what changes in a table from now on. Raises StaleTable."""
    with store.write() as session:
        table = current(store, session, command.table)
        table = dataclasses.replace(table, properties={**table.properties, **command.properties})
        table = followed(definer, session, table, now_ms)
        known = followers.of_target(session, command.kind, command.target)
        if all(follower.table_id != table.id for follower in known):
            add(store, session, table, command.kind, command.target)
        return altered(store, session, table)


def unfollow(store: Store, command: Unfollow, now_ms: int) -> Table:
    """Have somebody told no longer what changes in a table. Raises StaleTable."""
    with store.write() as session:
        table = current(store, session, command.table)
        table = dataclasses.replace(table, properties={**table.properties, **command.properties})
        for follower in followers.of_table(session, table.id, command.kind):
            if follower.target == command.target:
                followers.remove(session, follower.id)
        return altered(store, session, released(session, table, now_ms))


def followed(definer: Definer, session: Session, table: Table, now_ms: int) -> Table:
    """A locked table whose changes are recorded for those who follow it."""
    rules = dataclasses.replace(table.rules, followed=True)
    return definer.with_log(session, dataclasses.replace(table, rules=rules), now_ms)


def add(
    store: Store,
    session: Session,
    table: Table,
    kind: str,
    target: str,
    like: Follower | None = None,
    copies: bool = False,
) -> None:
    """Keep a new follower of a locked table, which begins with the next change; or where another has come to (`like`). `copies`:
    it is told the rows that are there, too."""
    rule = table.rules.recorder
    assert rule is not None
    stream_id = rule.id
    positions: Mapping[int, int] = {
        shard.number: changes.last_sequence(session, (rule.id, shard.number)) + 1
        for shard in changes.shards_of(session, rule.id)
    }
    if like is not None:
        stream_id, positions = like.stream_id, like.positions
    follower_id = store.catalog.next_id(session)
    followers.add(session, Follower(follower_id, table.id, kind, target, stream_id, positions, copies))


# Reading


class Pending(NamedTuple):
    """What a follower is to be told next, and where it has come to with that."""

    changes: list[Change]
    after: Follower


def pending(session: Session, follower: Follower, until_ms: int, limit: int) -> Pending | None:
    """The next changes for a follower, of those that were made until a time, `limit` at most and of a bounded size. None: there
    are none. Where one of its streams is through, there may be no changes and yet a step to the next."""
    found: list[Change] = []
    positions = dict(follower.positions)
    shards = changes.shards_of(session, follower.stream_id)
    room = _BYTES
    for shard in shards:
        if not _is_open_for(shard, shards, positions):
            continue
        place = follower.stream_id, shard.number
        page = _page(session, place, _position(shard, positions), until_ms, limit - len(found))
        while page and room > 0:
            found += page
            room -= sum(len(row.body) for each in page for row in (each.old, each.new) if row is not None)
            positions[shard.number] = page[-1].sequence + 1
            page = _page(session, place, positions[shard.number], until_ms, limit - len(found))
        if len(found) >= limit or room <= 0:
            break
    if found:
        return Pending(found, follower._replace(positions=positions))
    return _next_stream(session, follower, shards)


def _page(
    session: Session, shard: changes.Numbered, sequence: int, until_ms: int, limit: int
) -> list[Change]:
    """Some changes of a shard from a sequence on, up to the first that was made after a time."""
    page = changes.page(session, shard, sequence, min(_PAGE, limit)) if limit > 0 else []
    return list(itertools.takewhile(lambda change: change.at_ms <= until_ms, page))


def _next_stream(session: Session, follower: Follower, shards: Sequence[Shard]) -> Pending | None:
    """A step to the table's next stream, if this one is over and has been read to its end."""
    stream = changes.stream_by_id(session, follower.stream_id)
    is_over = stream is None or stream.ended_at_ms is not None
    if not is_over or any(not _is_drained(shard, follower.positions) for shard in shards):
        return None
    following = changes.next_stream(session, follower.table_id, follower.stream_id)
    return None if following is None else Pending([], follower._replace(stream_id=following.id, positions={}))


def _position(shard: Shard, positions: Mapping[int, int]) -> int:
    return positions.get(shard.number, shard.trimmed + 1)


def _is_drained(shard: Shard, positions: Mapping[int, int]) -> bool:
    """Whether a shard is closed, and has been read to its end."""
    return shard.last_sequence is not None and _position(shard, positions) > shard.last_sequence


def _is_open_for(shard: Shard, shards: Sequence[Shard], positions: Mapping[int, int]) -> bool:
    """Whether a shard is to be read now: its parents have been read to their ends, and it not to its."""
    parents = [parent for parent in shards if parent.number in shard.parents]
    return not _is_drained(shard, positions) and all(_is_drained(parent, positions) for parent in parents)


def oldest_pending_ms(session: Session, follower: Follower) -> int | None:
    """When the oldest change was made that a follower has not been told; None: it has been told all."""
    oldest: list[int] = []
    stream_id: int | None = follower.stream_id
    positions = follower.positions
    while stream_id is not None:
        for shard in changes.shards_of(session, stream_id):
            oldest += [
                each.at_ms
                for each in changes.page(session, (stream_id, shard.number), _position(shard, positions), 1)
            ]
        if oldest:
            return min(oldest)
        following = changes.next_stream(session, follower.table_id, stream_id)
        stream_id, positions = (None if following is None else following.id), {}
    return None


def oldest_of_kind(session: Session, kind: str) -> int | None:
    """When the oldest change was made that some follower of a kind has not been told; None: they have been told all."""
    oldest: list[int] = []
    follower = followers.of_kind(session, kind)
    while follower is not None:
        at_ms = oldest_pending_ms(session, follower)
        if at_ms is not None:
            oldest.append(at_ms)
        follower = followers.of_kind(session, kind, follower.id)
    return min(oldest, default=None)


# Delivering


def deliver_next(
    store: Store, kind: str, deliver: Deliver, owner: str, now_ms: int, limit: int, after: int = 0
) -> tuple[int, int]:
    """Deliver some changes to the next follower of a kind behind an id. (How many changes; the id, 0: there was none.) Raises
    NotDelivered, and nothing counts as delivered then."""
    with store.read() as session:
        follower = followers.of_kind(session, kind, after)
        found = None if follower is None else pending(session, follower, now_ms, limit)
    if follower is None:
        return 0, 0
    if found is None:
        return 0, follower.id
    if store.shared:
        with store.write() as session:
            if not followers.own(session, follower, owner, now_ms, now_ms + _OWNED_MS):
                return 0, follower.id
            if followers.by_id(session, follower.id) != follower:
                return 0, follower.id
    with store.read() as session:
        table = store.catalog.by_id(session, follower.table_id)
    if table is not None and found.changes:
        try:
            deliver(table, follower.target, found.changes)
        except Exception as error:
            raise NotDelivered(follower.id, str(error)) from error
    with store.write() as session:
        followers.advance(session, follower, found.after)
    return max(1, len(found.changes)), follower.id

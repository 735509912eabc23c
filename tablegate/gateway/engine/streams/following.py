"""Followers: each receives every change of a table, in order. Its position is the progress of the delivery.

Replicas (replication.py) and Kinesis streams (delivered by an adapter) both use this mechanism. A follower reads the
streams of the table one after the other. Each is the client stream, or the log that is kept while there is none
(Rules.recorder). It reads a shard after its parents, so the changes of a row arrive in their order. The position is
saved after a delivery, so each change is delivered at least once. Changes are not trimmed before all followers have
received them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.scheduler import Scheduler, TargetFailed, Work
from tablegate.gateway.engine.streams import streaming
from tablegate.gateway.engine.streams.follower_reads import (
    end,
    lock_current,
    oldest_of_kind,
    oldest_pending_ms,
    pending,
    save_table,
    without_unused_log,
)
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower

# A server that begins a delivery owns the follower for this long. After that, another server may deliver, so a longer
# delivery may be repeated.
_OWNED_MS = 5_000
_DELIVERED_TOGETHER = 500
# Time for which a failing target is retried after its follower has ended. It equals the time for which clients may read
# an ended stream.
_TRIED_AFTER_END_MS = 86_400_000


Deliver = Callable[[Table, str, Sequence[Change]], None]
"""Delivers changes of a table to the target of a follower, and returns on their arrival. After a failure or a kill it
is called again with the same changes."""


# Beginning and ending


def _follow(attempt: Attempt, command: stream_commands.Follow) -> Table:
    """Add a follower of a table, which receives all changes from now on. Raises StaleTable."""
    store = attempt.store
    with store.write() as session:
        table = lock_current(store, session, command.table)
        table = dataclasses.replace(table, properties={**table.properties, **command.properties})
        table = with_recording(attempt.definer, session, table, attempt.now_ms)
        same_target = followers.of_target(session, command.kind, command.target)
        if all(follower.table_id != table.id for follower in same_target):
            add(store, session, table, command.kind, command.target)
        return save_table(store, session, table)


def _unfollow(attempt: Attempt, command: stream_commands.Unfollow) -> Table:
    """End a follower after the changes written so far. Raises StaleTable."""
    store, now_ms = attempt.store, attempt.now_ms
    with store.write() as session:
        table = lock_current(store, session, command.table)
        table = dataclasses.replace(table, properties={**table.properties, **command.properties})
        for follower in followers.of_table(session, table.id, command.kind):
            if follower.target == command.target:
                end(session, table, follower, now_ms)
        return save_table(store, session, without_unused_log(session, table, now_ms))


def _targets(attempt: Attempt, command: stream_commands.ListFollowers) -> list[str]:
    """Return the targets of a table's followers of a kind, including those that are ending."""
    with attempt.store.read() as session:
        return [follower.target for follower in followers.of_table(session, command.table.id, command.kind)]


def with_recording(definer: TableDefiner, session: Session, table: Table, now_ms: int) -> Table:
    """Return a locked table that records its changes for followers."""
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
    """Add a follower of a locked table, starting at the next change or at the position of another follower (`like`).

    `copies`: it also receives the existing rows.
    """
    stream_id: int
    positions: Mapping[int, int]
    if like is None:
        rule = table.rules.recorder
        assert rule is not None
        stream_id, positions = rule.id, changes.next_sequences(session, rule.id)
    else:
        stream_id, positions = like.stream_id, like.positions
    follower_id = store.catalog.next_id(session)
    followers.add(session, Follower(follower_id, table.id, kind, target, stream_id, positions, copies))


# Delivering


def add_delivery(background: Scheduler, kind: str, deliver: Deliver) -> None:
    """Register the delivery of changes to the followers of a kind. Their targets are outside of the database."""
    store, owner = background.store, uuid4().hex

    def next_batch(now_ms: int, limit: int) -> int | None:
        """Deliver changes to each follower. Raises TargetFailed after all of them if one failed."""
        number, last_id, failure = 0, 0, None
        while True:
            with store.read() as session:
                follower = followers.of_kind(session, kind, last_id)
            if follower is None:
                break
            last_id = follower.id
            try:
                number += _deliver(store, follower, deliver, owner, now_ms, min(limit, _DELIVERED_TOGETHER))
            except TargetFailed as error:
                failure = error
        if failure is not None:
            raise failure
        return number or None

    background.add(Work(kind, next_batch, own_thread=True, oldest_ms=partial(oldest_of_kind, kind=kind)))


def _deliver(store: Store, follower: Follower, deliver: Deliver, owner: str, now_ms: int, limit: int) -> int:
    """Deliver the next changes to a follower. Return their number. Raises TargetFailed if nothing counts as
    delivered."""
    with store.read() as session:
        delivery = pending(session, follower, now_ms, limit)
    if delivery is None:
        return int(follower.ending is not None and _remove_if_done(store, follower, now_ms))
    if store.database.shared:
        with store.write() as session:
            if not followers.acquire(session, follower, owner, now_ms, now_ms + _OWNED_MS):
                return 0
            if followers.by_id(session, follower.id) != follower:
                return 0
    table = _table_of(store, follower)
    if table is None:  # dropped since the follower was read, so that it has an ending now
        return 0
    if delivery.changes:
        try:
            deliver(table, follower.target, delivery.changes)
        except Exception as error:
            if _is_given_up(follower, now_ms):
                return int(_remove_if_done(store, follower, now_ms))
            raise TargetFailed(str(error)) from error
    with store.write() as session:
        followers.advance(session, follower, delivery.after)
    return max(1, len(delivery.changes))


def _table_of(store: Store, follower: Follower) -> Table | None:
    """Return the table of a follower, as of the follower's end if it has ended."""
    if follower.ending is not None:
        return store.catalog.defined(follower.ending.definition)
    with store.read() as session:
        return store.catalog.by_id(session, follower.table_id)


def _is_given_up(follower: Follower, now_ms: int) -> bool:
    """Return True if a follower ended so long ago that undelivered changes are dropped."""
    return follower.ending is not None and now_ms > follower.ending.at_ms + _TRIED_AFTER_END_MS


def _remove_if_done(store: Store, follower: Follower, now_ms: int) -> bool:
    """Remove an ended follower if it has received all changes or is given up. Return True if it was removed."""
    with store.write() as session:
        table = store.catalog.lock(session, follower.table_id)
        if not _is_given_up(follower, now_ms) and oldest_pending_ms(session, follower) is not None:
            return False
        followers.remove(session, follower.id)
        if table is not None:
            save_table(store, session, without_unused_log(session, table, now_ms))
    return True


def _reading(read: Callable[[Session, Any], Any]) -> Callable[[Attempt, Any], Any]:
    def run(attempt: Attempt, command: Any) -> Any:
        with attempt.store.read() as session:
            return read(session, command)

    return run


COMMANDS: Runners = {
    stream_commands.ListStreams: _reading(streaming.list_streams),
    stream_commands.FindStream: _reading(streaming.find_stream),
    stream_commands.ListShards: _reading(streaming.list_shards),
    stream_commands.FindPosition: _reading(streaming.find_position),
    stream_commands.ReadChanges: _reading(streaming.read_changes),
    stream_commands.Reshard: lambda attempt, command: streaming.reshard(
        attempt.store, command, attempt.now_ms
    ),
    stream_commands.Follow: _follow,
    stream_commands.Unfollow: _unfollow,
    stream_commands.ListFollowers: _targets,
}

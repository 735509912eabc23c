"""The followers of tables: their pending changes, read from the streams, their turns, and their removal with a table."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tablegate.gateway.engine.scheduler import Batch
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.model.tables.changes import Change, Shard
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower, FollowerEnd
from tablegate.gateway.store.tables import descriptors

_MAX_BYTES = 4_000_000
# Changes in a page.
_PAGE_CHANGES = 100


class PendingDelivery(NamedTuple):
    """The next changes for a follower, and the follower with its position after them."""

    changes: list[Change]
    after: Follower


def pending(session: Session, follower: Follower, until_ms: int, limit: int) -> PendingDelivery | None:
    """Return the next changes for a follower, up to a time, a number and a size. None if there are none.

    At the end of a stream the result may have no changes and move to the next stream.
    """
    pending_changes: list[Change] = []
    positions = dict(follower.positions)
    shards = changes.shards_of(session, follower.stream_id)
    bytes_left = _MAX_BYTES
    for shard in shards:
        if not _is_readable(shard, shards, positions):
            continue
        part = _ShardRange((follower.stream_id, shard.number), follower.end_of(shard.number), until_ms)
        page = _page(session, part, _position(shard, positions), limit - len(pending_changes))
        while page and bytes_left > 0:
            pending_changes += page
            bytes_left -= sum(
                len(row.body) for change in page for row in (change.old, change.new) if row is not None
            )
            positions[shard.number] = page[-1].sequence + 1
            page = _page(session, part, positions[shard.number], limit - len(pending_changes))
        if len(pending_changes) >= limit or bytes_left <= 0:
            break
    if pending_changes:
        return PendingDelivery(pending_changes, follower._replace(positions=positions))
    return _next_stream(session, follower, shards)


def in_turns(store: Store, kind: str, advance: Callable[[Follower, int, int], int | None]) -> Batch:
    """Return a batch of background work that advances the next follower of a kind.

    `advance` gets the time and a limit. It returns the number of rows, or None if the follower lacks nothing.
    """
    after = 0

    def next_batch(now_ms: int, limit: int) -> int | None:
        nonlocal after
        passes = 0 if after else 1
        while passes < 2:
            with store.read() as session:
                follower = followers.of_kind(session, kind, after)
            if follower is None:  # the end of the list: start again from the first
                after = 0
                passes += 1
                continue
            after = follower.id
            number = advance(follower, now_ms, limit)
            if number is not None:
                return number
        return None

    return next_batch


class _ShardRange(NamedTuple):
    """The part of a shard that a follower receives: up to a time and, if `end` is given, before that sequence."""

    shard: changes.ShardKey
    end: int | None
    until_ms: int

    def has(self, change: Change) -> bool:
        return change.at_ms <= self.until_ms and (self.end is None or change.sequence < self.end)


def _page(session: Session, part: _ShardRange, sequence: int, limit: int) -> list[Change]:
    page = changes.page(session, part.shard, sequence, min(_PAGE_CHANGES, limit)) if limit > 0 else []
    return list(itertools.takewhile(part.has, page))


def _next_stream(session: Session, follower: Follower, shards: Sequence[Shard]) -> PendingDelivery | None:
    """Return a move to the table's next stream, if this one has ended and is drained."""
    stream = changes.stream_by_id(session, follower.stream_id)
    is_over = stream is None or stream.ended_at_ms is not None
    if not is_over or any(not _is_drained(shard, follower.positions) for shard in shards):
        return None
    next_stream = changes.next_stream(session, follower.table_id, follower.stream_id)
    return (
        None
        if next_stream is None
        else PendingDelivery([], follower._replace(stream_id=next_stream.id, positions={}))
    )


def _position(shard: Shard, positions: Mapping[int, int]) -> int:
    return positions.get(shard.number, shard.trimmed_sequence + 1)


def _is_drained(shard: Shard, positions: Mapping[int, int]) -> bool:
    return shard.last_sequence is not None and _position(shard, positions) > shard.last_sequence


def _is_readable(shard: Shard, shards: Sequence[Shard], positions: Mapping[int, int]) -> bool:
    parents = [parent for parent in shards if parent.number in shard.parents]
    return not _is_drained(shard, positions) and all(_is_drained(parent, positions) for parent in parents)


def oldest_pending_ms(session: Session, follower: Follower) -> int | None:
    """Return the time of the oldest change that a follower has not received. None if it has received all."""
    oldest: list[int] = []
    while True:
        for shard in changes.shards_of(session, follower.stream_id):
            end = follower.end_of(shard.number)
            shard_key = follower.stream_id, shard.number
            oldest += [
                change.at_ms
                for change in changes.page(session, shard_key, _position(shard, follower.positions), 1)
                if end is None or change.sequence < end
            ]
        if oldest:
            return min(oldest)
        next_stream = changes.next_stream(session, follower.table_id, follower.stream_id)
        if next_stream is None:
            return None
        follower = follower._replace(stream_id=next_stream.id, positions={})


def oldest_of_kind(session: Session, kind: str) -> int | None:
    """Return the time of the oldest change that a follower of a kind has not received. None if all have received
    all."""
    oldest: list[int] = []
    follower = followers.of_kind(session, kind)
    while follower is not None:
        at_ms = oldest_pending_ms(session, follower)
        if at_ms is not None:
            oldest.append(at_ms)
        follower = followers.of_kind(session, kind, follower.id)
    return min(oldest, default=None)


def lock_current(store: Store, session: Session, known: Table) -> Table:
    """Lock a table and return its descriptor. Raises StaleTable if the version differs from the caller's."""
    table = store.catalog.lock(session, known.id)
    if table is None or table.version != known.version:
        store.catalog.cache.forget(known.id)
        raise StaleTable()
    return table


def save_table(store: Store, session: Session, table: Table) -> Table:
    """Store a changed table and return the stored descriptor."""
    store.catalog.update(session, table)
    store.catalog.cache.forget(table.id)
    stored_table = store.catalog.by_id(session, table.id)
    assert stored_table is not None
    return stored_table


def without_unused_log(session: Session, table: Table, now_ms: int) -> Table:
    """Return a locked table without a change log if no follower is left."""
    rules = dataclasses.replace(table.rules, followed=bool(followers.of_table(session, table.id)))
    if rules.log is not None and not rules.followed:
        changes.end_stream(session, rules.log.id, now_ms)
        rules = dataclasses.replace(rules, log=None)
    return dataclasses.replace(table, rules=rules)


def end(session: Session, table: Table, follower: Follower, now_ms: int) -> None:
    """End a follower of a locked table after the changes written so far. Remove it at once if none is pending."""
    rule = table.rules.recorder
    if follower.ending is not None:
        return
    assert rule is not None
    positions = changes.next_sequences(session, rule.id)
    ending = FollowerEnd(rule.id, positions, now_ms, descriptors.definition(table))
    if oldest_pending_ms(session, follower._replace(ending=ending)) is None:
        followers.remove(session, follower.id)
    else:
        followers.end(session, follower.id, ending)


def forget_ended(store: Store, session: Session, namespace: str | None) -> None:
    """Remove the followers of dropped tables of a namespace (None for all), even with changes pending."""
    for follower in followers.of_dropped_tables(session):
        assert follower.ending is not None
        table = store.catalog.defined(follower.ending.definition)
        if namespace is None or table.namespace == namespace:
            followers.remove(session, follower.id)


def detach(store: Store, session: Session, table: Table, now_ms: int, delivers: bool) -> Table:
    """Return a locked table without followers and replicas, as it is about to be removed.

    `delivers`: followers still receive the changes written so far. Otherwise they are removed at once.
    """
    for hook in store.catalog.hooks:
        hook.detach(session, table, now_ms)
    rules = table.rules
    if rules.followed:
        for follower in followers.of_table(session, table.id):
            if delivers:
                end(session, table, follower, now_ms)
            else:
                followers.remove(session, follower.id)
    for rule in (rules.stream, rules.log):
        if rule is not None and rule.enabled:
            changes.end_stream(session, rule.id, now_ms)
    return dataclasses.replace(table, rules=dataclasses.replace(rules.independent(), history=rules.history))

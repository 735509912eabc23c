"""Change streams: enable, disable, record, read, split, merge and trim.

A change is recorded in the transaction of its write. Reading takes a snapshot and never waits for a writer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from tablegate.gateway.engine.rows.writing import RowChange, WriteHook
from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, Scheduler, Work
from tablegate.gateway.model.commands import stream_commands
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import PositionExpired, StaleTable, StreamMissing
from tablegate.gateway.model.tables.changes import (
    SHARD_HASHES,
    AtTime,
    Change,
    ChangePage,
    Latest,
    Oldest,
    Shard,
    Stream,
    is_noop,
    kind_of,
    resolved_actions,
    shard_hash,
)
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers

# Streams checked in one batch of background work.
_STREAMS = 32
_CHUNK_ROWS = 100


# Recording


def is_recorded(table: Table) -> bool:
    """Return True if the writes of a table are recorded in a stream."""
    rules = table.rules
    return rules.log is not None or (rules.stream is not None and rules.stream.enabled)


class StreamRecorder(WriteHook):
    """Records the completed writes of a batch in the streams of their tables, in their order."""

    features = frozenset({"stream", "log"})

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        for write, (old, new) in zip(writes, outcomes, strict=True):
            if write.stamp is not None and new is old:
                continue  # the row has a later write, which the stream has recorded
            if is_recorded(write.table):
                self.batch.changes.append(RowChange(write, old, new))

    def save(self, session: Session) -> None:
        """Record the writes. Shards are locked in the order of their numbers, so that writers cannot deadlock."""
        now_ms = self.batch.now_ms
        by_shard: dict[tuple[int, int], list[Change]] = {}
        for write, old, new in self.batch.changes:
            rule = write.table.rules.recorder
            assert rule is not None
            kind = write.recording.kind if write.recording is not None else kind_of(write)
            if kind is None:
                continue
            actions = (
                write.recording.actions
                if write.recording is not None
                else resolved_actions(write, new, now_ms)
            )
            number = rule.shard_of(shard_hash(write.key.position.partition))
            key_values = dict(zip(write.table.key_schema.names, write.key.values, strict=True))
            change = Change(
                number, 0, kind, key_values, old, new, actions, write.actor, now_ms, is_noop(old, new)
            )
            by_shard.setdefault((rule.id, number), []).append(change)
        for shard in sorted(by_shard):
            changes.append(session, shard, by_shard[shard])


# Enabling and disabling


def begin(session: Session, stream: Stream, shard_count: int, now_ms: int) -> StreamRule:
    """Open a stream of a table and return its rule with its shards."""
    stream_id = stream.id
    firsts = [number * SHARD_HASHES // shard_count for number in range(shard_count)]
    rule = dataclasses.replace(stream.rule, id=stream_id, shards=tuple(enumerate(firsts)))
    changes.add_stream(session, dataclasses.replace(stream, rule=rule))
    for number, first in rule.shards:
        last = firsts[number + 1] - 1 if number + 1 < shard_count else SHARD_HASHES - 1
        changes.add_shard(session, stream_id, Shard(number, (first, last), (), now_ms, None, None, 0))
    return rule


def is_new(old: Rules | None, new: Rules) -> bool:
    """Return True if a table's new rules begin a stream."""
    if new.stream is None or not new.stream.enabled:
        return False
    return old is None or old.stream is None or not old.stream.enabled or old.stream.label != new.stream.label


def is_over(old: Rules, new: Rules | None) -> bool:
    """Return True if a table's old stream ends with its new rules (None if the table is dropped)."""
    if old.stream is None or not old.stream.enabled:
        return False
    return new is None or new.stream is None or not new.stream.enabled or old.stream.label != new.stream.label


# Reading


def list_streams(session: Session, command: stream_commands.ListStreams) -> list[Stream]:
    """Return the streams of a namespace or of one table, by name and age."""
    return changes.find_streams(session, command.namespace, command.table_name)


def find_stream(session: Session, command: stream_commands.FindStream) -> Stream:
    """Return the newest stream of a table with a label. Raises StreamMissing."""
    streams = changes.find_streams(session, command.namespace, command.table_name, command.label)
    if not streams:
        raise StreamMissing(command.table_name, command.label)
    return streams[-1]


def list_shards(session: Session, command: stream_commands.ListShards) -> list[Shard]:
    """Return the shards of a stream, parents before children."""
    return changes.shards_of(session, command.stream.id)


def find_position(session: Session, command: stream_commands.FindPosition) -> int:
    """Return the first sequence to read of a shard. Raises StreamMissing."""
    return position(session, (command.stream.id, command.shard), command.at)


def _shard(session: Session, shard_key: tuple[int, int]) -> Shard:
    shard = changes.find_shard(session, shard_key)
    if shard is None:
        raise StreamMissing("", str(shard_key[1]))
    return shard


def position(session: Session, shard_key: tuple[int, int], at: Oldest | Latest | AtTime) -> int:
    """Return the first sequence to read of a shard. Raises StreamMissing."""
    shard = _shard(session, shard_key)
    match at:
        case Oldest():
            return shard.trimmed_sequence + 1
        case AtTime(at_ms):
            sequence = changes.first_since(session, shard_key, at_ms)
            if sequence is not None:
                return sequence
    return changes.last_sequence(session, shard_key) + 1


def read_changes(session: Session, command: stream_commands.ReadChanges) -> ChangePage:
    """Return a page of the changes of a shard. Raises StreamMissing, PositionExpired."""
    shard_key = command.stream.id, command.shard
    shard = _shard(session, shard_key)
    if command.sequence <= shard.trimmed_sequence:
        raise PositionExpired()
    page: list[Change] = []
    size, sequence, is_full = 0, command.sequence, False
    while not is_full and len(page) < command.limit:
        number = min(_CHUNK_ROWS, command.limit - len(page))
        chunk = changes.page(session, shard_key, sequence, number)
        for change in chunk:
            row_bytes = sum(len(row.body) for row in (change.old, change.new) if row is not None)
            is_full = bool(page) and size + row_bytes > command.size_bytes
            if is_full:
                break
            page.append(change)
            size += row_bytes
            sequence = change.sequence + 1
        if len(chunk) < number:
            break
    is_drained = shard.last_sequence is not None and sequence > shard.last_sequence
    return ChangePage(page, None if is_drained else sequence)


# Splitting and merging


def reshard(store: Store, command: stream_commands.Reshard, now_ms: int) -> Table:
    """Change the number of shards of a table's stream. Split or merged shards are closed and become parents of the new
    ones.

    Raises StaleTable, StreamMissing.
    """
    with store.write() as session:
        table = store.catalog.lock(session, command.table.id)
        if table is None or table.version != command.table.version:
            store.catalog.cache.forget(command.table.id)
            raise StaleTable()
        rule = table.rules.stream
        if rule is None or not rule.enabled:
            raise StreamMissing(table.name, "")
        shards = changes.shards_of(session, rule.id)
        plan = _ReshardPlan(shards, now_ms)
        plan.reach(max(1, min(command.shards, SHARD_HASHES)))
        new_table = _carry_out(session, store, table, plan, now_ms)
    store.catalog.cache.keep(new_table)
    return new_table


def _roll(store: Store, stream: Stream, maintenance: StreamMaintenance) -> None:
    """Close the open shards of a stream that have reached the maximum age, and open a child with the same hashes for
    each."""
    before_ms = maintenance.now_ms - maintenance.roll_ms
    with store.read() as session:
        if not _are_due(changes.shards_of(session, stream.id), before_ms):
            return
    with store.write() as session:
        # Check again under the lock: the stream may have ended, or another server may have rolled it.
        table = store.catalog.lock(session, stream.table_id)
        rule = None if table is None else table.rules.stream
        if table is None or rule is None or not rule.enabled or rule.id != stream.id:
            return
        shards = changes.shards_of(session, stream.id)
        if not _are_due(shards, before_ms):
            return
        plan = _ReshardPlan(shards, maintenance.now_ms)
        plan.roll(before_ms)
        new_table = _carry_out(session, store, table, plan, maintenance.now_ms)
    store.catalog.cache.keep(new_table)


def _are_due(shards: list[Shard], before_ms: int) -> bool:
    return any(shard.closed_at_ms is None and shard.opened_at_ms <= before_ms for shard in shards)


def _carry_out(session: Session, store: Store, table: Table, plan: _ReshardPlan, now_ms: int) -> Table:
    """Close and open shards of a locked table, and return the table."""
    rule = table.rules.stream
    assert rule is not None
    ends: dict[int, int] = {}
    for number in plan.closed:
        ends[number] = changes.close_shard(session, (rule.id, number), now_ms)
    for shard in plan.opened:
        # A child continues after the last sequence of its parents, so that the numbers of a key's changes always grow.
        ends[shard.number] = parent_end = max(ends[parent] for parent in shard.parents)
        last = None if shard.closed_at_ms is None else parent_end
        changes.add_shard(
            session, rule.id, dataclasses.replace(shard, trimmed_sequence=parent_end, last_sequence=last)
        )
    rule = dataclasses.replace(rule, shards=tuple((shard.number, shard.hashes[0]) for shard in plan.live))
    changes.update_rule(session, rule)
    table = dataclasses.replace(table, rules=dataclasses.replace(table.rules, stream=rule))
    store.catalog.update(session, table)
    new_table = store.catalog.by_id(session, table.id)
    assert new_table is not None
    return new_table


class _ReshardPlan:
    """The shards to close and to open.

    A shard that is merged on the way is opened and closed at once, and stays empty. So no shard has more than two
    parents, as the services report at most two.
    """

    def __init__(self, shards: list[Shard], now_ms: int) -> None:
        self.live = sorted(
            (shard for shard in shards if shard.closed_at_ms is None), key=lambda shard: shard.hashes[0]
        )
        self.closed: list[int] = []
        self.opened: list[Shard] = []
        self._next = max(shard.number for shard in shards) + 1
        self._now_ms = now_ms

    def reach(self, count: int) -> None:
        """Split the widest shards, or merge the narrowest neighbours, until this number is open."""
        while len(self.live) < count:
            self._split(max(range(len(self.live)), key=lambda at: _width(self.live[at])))
        while len(self.live) > count:
            self._merge(
                min(
                    range(len(self.live) - 1),
                    key=lambda at: _width(self.live[at]) + _width(self.live[at + 1]),
                )
            )

    def roll(self, before_ms: int) -> None:
        """Open a child for each shard that was opened before a time."""
        for at, shard in enumerate(self.live):
            if shard.opened_at_ms <= before_ms:
                self.closed.append(shard.number)
                self.live[at] = self._open(shard.hashes, (shard.number,))

    def _split(self, at: int) -> None:
        shard = self.live[at]
        first, last = shard.hashes
        middle = (first + last + 1) // 2
        # A shard opened by this plan is replaced by its halves, which become children of its parents.
        parents = shard.parents if self._retract(shard) else (shard.number,)
        self.live[at : at + 1] = [
            self._open((first, middle - 1), parents),
            self._open((middle, last), parents),
        ]

    def _merge(self, at: int) -> None:
        left, right = self.live[at : at + 2]
        for shard in (left, right):
            if shard in self.opened:
                closed_shard = dataclasses.replace(shard, closed_at_ms=self._now_ms)
                self.opened[self.opened.index(shard)] = closed_shard
            else:
                self.closed.append(shard.number)
        self.live[at : at + 2] = [self._open((left.hashes[0], right.hashes[1]), (left.number, right.number))]

    def _retract(self, shard: Shard) -> bool:
        if shard in self.opened:
            self.opened.remove(shard)
            return True
        self.closed.append(shard.number)
        return False

    def _open(self, hashes: tuple[int, int], parents: tuple[int, ...]) -> Shard:
        shard = Shard(self._next, hashes, parents, self._now_ms, None, None, 0)
        self._next += 1
        self.opened.append(shard)
        return shard


def _width(shard: Shard) -> int:
    return shard.hashes[1] - shard.hashes[0] + 1


# Tending


def add_works(background: Scheduler, roll_ms: int) -> None:
    """Register the works of this module."""
    up_to = 0

    def next_batch(now_ms: int, limit: int) -> int | None:
        nonlocal up_to
        number, after = maintain(background.store, StreamMaintenance(now_ms, roll_ms, limit), up_to)
        up_to = after or 0
        return None if after is None else number

    def count(session: Session, now_ms: int) -> int:
        return count_expired(session, now_ms, up_to, progress.COUNTED_ROWS)

    background.add(Work("stream_trim", next_batch, period_s=MAINTENANCE_PERIOD_S, count=count))


class StreamMaintenance(NamedTuple):
    """One batch of stream maintenance: shards older than `roll_ms` are closed and get children (0 to keep them). At
    most `limit` expired changes are deleted."""

    now_ms: int
    roll_ms: int
    limit: int


def maintain(store: Store, maintenance: StreamMaintenance, after: int) -> tuple[int, int | None]:
    """Roll and trim streams whose id is above `after`. Return (number of deleted changes, id to continue after or None
    at the end)."""
    with store.read() as session:
        streams = changes.streams_after(session, after, _STREAMS)
    for stream in streams:
        if maintenance.roll_ms and stream.ended_at_ms is None:
            _roll(store, stream, maintenance)
        count = _trim(store, stream, maintenance)
        if count:
            return count, stream.id - 1  # the same stream again, until nothing is left to delete
    return 0, streams[-1].id if len(streams) == _STREAMS else None


def count_expired(session: Session, now_ms: int, after: int, at_most: int) -> int:
    """Return the number of expired changes in the next streams with an id above `after`. Stops counting at a number."""
    number = 0
    for stream in changes.streams_after(session, after, _STREAMS):
        before_ms = now_ms - stream.rule.retention_ms
        needed_sequences = followers.first_needed(session, stream.table_id, stream.id)
        for shard in changes.shards_of(session, stream.id):
            below = None if needed_sequences is None else needed_sequences.get(shard.number, 0)
            number += changes.count_older(
                session, (stream.id, shard.number), before_ms, at_most - number, below
            )
    return number


def _trim(store: Store, stream: Stream, maintenance: StreamMaintenance) -> int:
    """Delete expired changes of a stream, expired closed shards and the stream if it ended long enough ago. Return the
    number of deleted changes."""
    before_ms = maintenance.now_ms - stream.rule.retention_ms
    with store.read() as session:
        needed_sequences = followers.first_needed(session, stream.table_id, stream.id)
        shards = changes.shards_of(session, stream.id)
        old_shards = [
            shard for shard in shards if changes.has_older(session, (stream.id, shard.number), before_ms)
        ]
        empty_shards = [shard for shard in shards if _is_expired(shard, before_ms)]
    count = 0
    for shard in old_shards:
        if count < maintenance.limit:
            with store.write() as session:
                below = None if needed_sequences is None else needed_sequences.get(shard.number, 0)
                shard_key = stream.id, shard.number
                count += changes.trim(session, shard_key, before_ms, maintenance.limit - count, below)
    if needed_sequences is not None:
        return count
    for shard in empty_shards:
        with store.write() as session:
            changes.remove_shard(session, (stream.id, shard.number))
    if not count and stream.ended_at_ms is not None and stream.ended_at_ms < before_ms:
        with store.write() as session:
            changes.remove_stream(session, stream.id)
    return count


def _is_expired(shard: Shard, before_ms: int) -> bool:
    if shard.closed_at_ms is None or shard.last_sequence is None:
        return False
    return shard.closed_at_ms < before_ms and shard.trimmed_sequence >= shard.last_sequence

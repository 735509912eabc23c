"""Replicas: tables that hold the same rows, and that all accept writes.

Each replica follows every other one (following.py). A write in one becomes a write in the others with the original time
(Write.stamp). The write path ignores it if the row has a later write, so the last write wins in every order of arrival.
A delete leaves a tombstone with its time, so that no older write restores the row. Tombstones are kept until no older
write can arrive.

Each replica passes on only its own writes. A new replica first receives the existing rows, as if they were written
again.

Strong replicas need no followers: the write path writes to all of them at once (writing.py).

A write to a table also changes its strong replicas, in the same transaction and under locks on both rows. For other
replicas, the times of deletes are kept as tombstones. By these, a write from another replica is recognized as older,
and a client's write gets a later time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from tablegate.gateway.engine import batch_walk
from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.rows.writing import Answer, RowChange, WriteBatch, WriteHook
from tablegate.gateway.engine.streams import follower_reads, following
from tablegate.gateway.engine.streams.follower_reads import lock_current, save_table, without_unused_log
from tablegate.gateway.engine.streams.streaming import is_recorded
from tablegate.gateway.features.global_tables import tombstone_store
from tablegate.gateway.features.global_tables.replica_commands import AddReplicas, RemoveReplicas
from tablegate.gateway.model.commands.row_commands import RowKey, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Remove, Replace, StreamRecording, Write, deleted_at
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Replica, ReplicationRule, State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Contents, Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Pending, Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import followers
from tablegate.gateway.store.streams.followers import Follower
from tablegate.gateway.store.tables.catalog import TableHook

REPLICATED = "replica"
"""The actor of writes that came from another replica."""


class Mirrors(WriteHook):
    """The strong replicas of the tables of a batch, which receive the same writes."""

    features = frozenset({"replication"})

    def __init__(self, batch: WriteBatch) -> None:
        super().__init__(batch)
        self._peers: dict[int, list[Table]] = {}
        """The strong replicas of each table. Cached descriptors are checked like any other."""
        for table in [*batch.tables.values()]:
            rule = table.rules.replication
            if rule is not None and rule.strong:
                peers = [_descriptor(batch, replica.table_id) for replica in rule.peers]
                self._peers[table.id] = [peer for peer in peers if peer is not None]
        for peers_of_table in self._peers.values():
            for peer in peers_of_table:
                batch.add_table(peer)

    def lock(self, session: Session) -> None:
        for writes in self.batch.unanswered.values():
            for write in writes:
                for peer in self._peers.get(write.table.id, ()):
                    self.batch.other_keys.add((peer.id, write.key.position))

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        for write, outcome in zip(writes, outcomes, strict=True):
            if outcome.new is not outcome.old:
                for peer in self._peers.get(write.table.id, ()):
                    self._mirror(write, outcome.new, peer)

    def _mirror(self, write: Write, new: Row | None, peer: Table) -> None:
        """Give the row of a replica the contents that a write has given to the row of the table."""
        key = peer.id, write.key.position
        old = self.batch.after.get(key)
        if new is not None:
            new = Row(new.position, new.contents, new.modified_at)
            new.expires_at_ms = peer.expires_at_ms(new)
        self.batch.after[key] = new
        if is_recorded(peer):
            self.batch.changes.append(RowChange(write._replace(table=peer, actor=REPLICATED), old, new))


def _descriptor(batch: WriteBatch, table_id: int) -> Table | None:
    store = batch.store
    table = batch.tables.get(table_id) or store.catalog.cache.by_id(table_id)
    if table is None:
        with store.read() as session:
            table = store.catalog.by_id(session, table_id)
        if table is not None and table.state is not State.DELETING:
            store.catalog.cache.keep(table)
    return table


class DeletionTimes(WriteHook):
    """The known deletion times of the rows in a batch, and the deletes of the batch."""

    features = frozenset({"replication"})

    def __init__(self, batch: WriteBatch) -> None:
        super().__init__(batch)
        self._replicated = {
            table.id
            for table in batch.tables.values()
            if (rule := table.rules.replication) is not None and not rule.strong
        }
        self._known: dict[RowKey, int] = {}
        self._new: dict[RowKey, int] = {}

    def read(self, session: Session, keys: Sequence[RowKey]) -> None:
        self._tombstones: Pending[dict[RowKey, int]] = tombstone_store.of_keys(
            session, [key for key in keys if key[0] in self._replicated]
        )

    def begin(self) -> None:
        """Make new writes later than all known deletes of these rows."""
        self._known = self._tombstones()
        self.batch.now = max(self.batch.now, max(self._known.values(), default=0) + 1)

    def answer(self, group: WriteGroup, writes: Sequence[Write]) -> Answer | None:
        """Ignore a replicated write that is older than the delete of its row."""
        if len(writes) != 1 or writes[0].stamp is None or isinstance(writes[0].change, Remove):
            return None
        key = writes[0].table.id, writes[0].key.position
        is_superseded = self.batch.after.get(key) is None and self._known.get(key, 0) >= writes[0].stamp
        return [WriteOutcome(None, None)] if is_superseded else None

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        for write, (old, new) in zip(writes, outcomes, strict=True):
            if new is not None or write.table.id not in self._replicated:
                continue
            at = write.stamp
            if at is None and old is not None:
                at = deleted_at(self.batch.now_ms, old)
            if at is not None:
                key = write.table.id, write.key.position
                self._new[key] = self._known[key] = max(at, self._known.get(key, 0))

    def save(self, session: Session) -> None:
        if self._new:
            tombstone_store.keep(session, self._new)


REPLICA = "replica"
"""The kind of followers that are replicas of the table. The target is the id of the replica's table."""

_UNRECORDED = StreamRecording(None, ())
_FOREVER_MS = 1 << 62
# Upper bound of the clock difference between servers of one database, and of the duration of a transaction.
_MARGIN_MS = 600_000
_BATCH_BYTES = 4_000_000


# Members of a group


def _members(store: Store, session: Session, table: Table) -> list[Table]:
    """Return the replicas of a group including this table, locked in the order of their ids. Empty if the table has
    none."""
    rule = table.rules.replication
    if rule is None:
        return []
    ids = sorted([table.id, *(peer.table_id for peer in rule.peers)])
    locked_tables = [store.catalog.lock(session, table_id) for table_id in ids]
    return [member for member in locked_tables if member is not None]


def _leave(store: Store, session: Session, table: Table, removed_ids: Collection[int], now_ms: int) -> None:
    """Remove tables from the replication group of a table. A member without peers is no longer a replica."""
    group = _members(store, session, table)
    for member in group:
        for follower in followers.of_table(session, member.id, REPLICA):
            if member.id in removed_ids or int(follower.target) in removed_ids:
                followers.remove(session, follower.id)
    for member in group:
        rule = member.rules.replication
        if rule is None:  # its last peer was removed in the same transaction
            continue
        peers = tuple(peer for peer in rule.peers if peer.table_id not in removed_ids)
        is_member = member.id not in removed_ids and peers
        new_rule = dataclasses.replace(rule, peers=peers) if is_member else None
        if not is_member:
            tombstone_store.forget(session, member.id)
        member = dataclasses.replace(member, rules=dataclasses.replace(member.rules, replication=new_rule))
        if member.state is State.CREATING and member.id in removed_ids:  # no member fills it any more
            member = dataclasses.replace(member, state=State.ACTIVE, busy_until_ms=0)
        save_table(store, session, without_unused_log(session, member, now_ms))


class ReplicaHook(TableHook):
    """Takes a dropped table out of its replication group."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def detach(self, session: Session, table: Table, now_ms: int) -> None:
        """Remove a table from its replication group. Locks the other members."""
        _leave(self._store, session, table, {table.id}, now_ms)


def _add(attempt: Attempt, command: AddReplicas) -> Table:
    """Make replicas of a table. Raises StaleTable, TableExists, TableBusy."""
    store, definer, now_ms = attempt.store, attempt.definer, attempt.now_ms
    with store.write() as session:
        table = _lock_and_alter(attempt, session, command)
        old_members = _members(store, session, table)
        is_empty = not rows.positions_after(session, table.id, None, 1, 0)
        until_ms = 0 if command.strong or is_empty else _FOREVER_MS
        new_members = [definer.make(session, new.definition, until_ms, now_ms) for new in command.replicas]
        names = [
            rule.name for rule in (member.rules.replication for member in old_members) if rule is not None
        ]
        names += [command.name] * (not names) + [new.name for new in command.replicas]
        ready = [True] * max(1, len(old_members)) + [not until_ms] * len(new_members)
        group_of_all = [*(old_members or [table]), *new_members]
        group = [
            Replica(*fields)
            for fields in zip(names, (member.id for member in group_of_all), ready, strict=True)
        ]
        group_members = [_join(member, group, command) for member in group_of_all]
        if not command.strong:
            group_members = [
                following.with_recording(definer, session, member, now_ms) for member in group_members
            ]
            for new in group_members[-len(new_members) :]:
                _begin_following(store, session, group_members, new, table, copies=until_ms > 0)
        stored_members = [save_table(store, session, member) for member in group_members]
    return next(member for member in stored_members if member.id == table.id)


def _lock_and_alter(attempt: Attempt, session: Session, command: AddReplicas | RemoveReplicas) -> Table:
    """Lock the table of a command, make its alterations and return the table. Raises StaleTable, TableBusy."""
    table = lock_current(attempt.store, session, command.table)
    altered_tables = attempt.definer.alter(session, command.alterations, attempt.now_ms)
    return next((altered for altered in altered_tables if altered.id == table.id), table)


def _join(table: Table, group: Sequence[Replica], command: AddReplicas) -> Table:
    [own_replica] = [replica for replica in group if replica.table_id == table.id]
    peers = tuple(replica for replica in group if replica is not own_replica)
    rule = ReplicationRule(own_replica.name, peers, command.strong, command.witness)
    return dataclasses.replace(table, rules=dataclasses.replace(table.rules, replication=rule))


def _begin_following(
    store: Store, session: Session, group: Sequence[Table], new: Table, source: Table, copies: bool
) -> None:
    """Make a new replica and all others follow each other.

    If `copies` is set, the new replica receives the existing rows from `source`. It starts with the others at the
    position that `source` has reached.
    """
    for member in group:
        if member.id == new.id:
            continue
        existing_link = _link(session, member.id, source.id)
        if _link(session, new.id, member.id) is None:
            following.add(store, session, new, REPLICA, str(member.id))
        if _link(session, member.id, new.id) is None:
            is_source = copies and member.id == source.id
            following.add(store, session, member, REPLICA, str(new.id), existing_link, copies=is_source)
    tombstone_store.copy(session, source.id, new.id)


def _link(session: Session, of_table: int, to_table: int) -> Follower | None:
    candidates = followers.of_target(session, REPLICA, str(to_table))
    return next((follower for follower in candidates if follower.table_id == of_table), None)


def _remove(attempt: Attempt, command: RemoveReplicas) -> Table:
    """Drop replicas of a table, or detach them as independent tables. Raises StaleTable, TableBusy."""
    store, definer, now_ms = attempt.store, attempt.definer, attempt.now_ms
    with store.write() as session:
        table = _lock_and_alter(attempt, session, command)
        rule = table.rules.replication
        removed_ids = {peer.table_id for peer in rule.peers if peer.name in command.names} if rule else set()
        if rule is not None and rule.name in command.names:
            removed_ids.add(table.id)
        _leave(store, session, table, removed_ids, now_ms)
        remaining_table = store.catalog.lock(session, table.id)
        assert remaining_table is not None
        for table_id in sorted(removed_ids - {table.id}):
            member = store.catalog.lock(session, table_id)
            if member is not None and not command.keeps:
                definer.drop(session, member, 0, now_ms)
    return remaining_table


# Batches for a replica


class ReplicationBatch(NamedTuple):
    """Writes that apply the changes of one replica to another, and its follower with the position before and after
    them."""

    groups: list[WriteGroup]
    follower: Follower
    after: Follower
    length: int


def replication_batch(
    store: Store, session: Session, follower: Follower, until_ms: int, limit: int
) -> ReplicationBatch | None:
    """Return the next batch for a follower, of the changes up to a time."""
    target = store.catalog.by_id(session, int(follower.target))
    if target is None:
        return None
    if follower.copying:
        return _row_copy_batch(session, follower, target, limit)
    if target.busy_until_ms == _FOREVER_MS:  # the copy of existing rows comes before changes
        return None
    delivery = follower_reads.pending(session, follower, until_ms, limit)
    if delivery is None:
        return None
    groups = [
        WriteGroup((_write_of(target, change),))
        for change in delivery.changes
        if change.actor != REPLICATED and not (change.old is None and change.new is None)
    ]
    return ReplicationBatch(groups, follower, delivery.after, len(delivery.changes))


def _row_copy_batch(session: Session, follower: Follower, target: Table, limit: int) -> ReplicationBatch:
    """Return a batch of the rows that are older than the replica."""
    place = batch_walk.position_of(follower.mark)
    positions = rows.positions_after(session, follower.table_id, place, limit, _BATCH_BYTES)
    if not positions:
        return ReplicationBatch([], follower, follower._replace(copying=False, mark=None), 0)
    keys = sorted((follower.table_id, position) for position in positions)
    groups = []
    for (_, position), row in rows.fetch_many(session, keys).items():
        key = target.key_schema.decode(position)
        write = Write(
            target, key, Replace(row.contents), actor=REPLICATED, recording=_UNRECORDED, stamp=row.modified_at
        )
        groups.append(WriteGroup((write,)))
    next_follower = follower._replace(mark=batch_walk.mark_of(positions[-1]))
    return ReplicationBatch(groups, follower, next_follower, len(positions))


def _write_of(target: Table, change: Change) -> Write:
    """Return a change of one replica as a write to another."""
    key = target.key_schema.key(change.key_values)
    recording = StreamRecording(change.kind, change.actions)
    if change.new is not None:
        contents = Contents.of_stored(change.new.body, change.new.kinds)
        stamp = change.new.modified_at
        return Write(target, key, Replace(contents), actor=REPLICATED, recording=recording, stamp=stamp)
    assert change.old is not None
    stamp = deleted_at(change.at_ms, change.old)
    return Write(target, key, Remove(), actor=REPLICATED, recording=recording, stamp=stamp)


def apply(store: Store, write: Callable[[list[WriteGroup]], list[Any]], batch: ReplicationBatch) -> bool:
    """Apply a batch to a replica, which becomes ready with the last of the existing rows. False if it cannot be applied
    now."""
    if batch.groups and any(isinstance(answer, GatewayError) for answer in write(batch.groups)):
        return False
    with store.write() as session:
        is_advanced = followers.advance(session, batch.follower, batch.after)
        if is_advanced and batch.follower.copying and not batch.after.copying:
            _set_ready(store, session, int(batch.follower.target))
    return True


def _set_ready(store: Store, session: Session, table_id: int) -> None:
    table = store.catalog.by_id(session, table_id)
    for member in [] if table is None else _members(store, session, table):
        rule = member.rules.replication
        assert rule is not None
        peers = tuple(
            dataclasses.replace(peer, ready=True) if peer.table_id == table_id else peer
            for peer in rule.peers
        )
        rules = dataclasses.replace(member.rules, replication=dataclasses.replace(rule, peers=peers))
        member = dataclasses.replace(member, rules=rules)
        if member.id == table_id:
            for index in member.indexes:
                store.catalog.update_index(session, dataclasses.replace(index, busy_until_ms=0))
            member = dataclasses.replace(member, state=State.ACTIVE, busy_until_ms=0)
        save_table(store, session, member)


# Tombstones


def trim_tombstones(store: Store, now_ms: int, limit: int) -> int | None:
    """Delete at most `limit` tombstones that no pending write of a replica can predate. Return their number, or None."""
    count = 0
    with store.read() as session:
        ends = {
            table_id: min(
                [now_ms, *(at for follower in followers.of_target(session, REPLICA, str(table_id))
                           if (at := follower_reads.oldest_pending_ms(session, follower)) is not None)]
            )
            for table_id in tombstone_store.owners(session)
        }  # fmt: skip
    for table_id, end_ms in ends.items():
        with store.write() as session:
            count += tombstone_store.trim(session, table_id, (end_ms - _MARGIN_MS) * TICKS_PER_MS, limit)
    return count or None


COMMANDS: Runners = {AddReplicas: _add, RemoveReplicas: _remove}

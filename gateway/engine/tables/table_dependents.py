"""What depends on a table besides its rows: those who follow its changes, and its replicas; what becomes of them when it goes.

Knows no more of either than that; how they are told is in following.py and replication.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from tablegate.gateway.engine.streams.follower_reads import oldest_pending_ms
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.model.tables.restored_tables import alone
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.store.rows import tombstones
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower, FollowerEnd
from tablegate.gateway.store.tables import descriptors

REPLICA = "replica"
"""The kind of followers that are replicas of the table; the target is the id of the replica's table."""


def current(store: Store, session: Session, known: Table) -> Table:
    """A table as it is now, locked. Raises StaleTable if it is not what the caller has seen."""
    table = store.catalog.lock(session, known.id)
    if table is None or table.version != known.version:
        store.catalog.cache.forget(known.id)
        raise StaleTable()
    return table


def altered(store: Store, session: Session, table: Table) -> Table:
    """Store a table that was changed; as it is then."""
    store.catalog.update(session, table)
    store.catalog.cache.forget(table.id)
    kept = store.catalog.by_id(session, table.id)
    assert kept is not None
    return kept


def released(session: Session, table: Table, now_ms: int) -> Table:
    """A locked table whose changes are recorded for nobody if nobody is left who follows it."""
    rules = dataclasses.replace(table.rules, followed=bool(followers.of_table(session, table.id)))
    if rules.log is not None and not rules.followed:
        changes.end_stream(session, rules.log.id, now_ms)
        rules = dataclasses.replace(rules, log=None)
    return dataclasses.replace(table, rules=rules)


def members(store: Store, session: Session, table: Table) -> list[Table]:
    """The replicas of a group, the table that is asked about among them, locked in the order of their ids; none if it has
    none."""
    rule = table.rules.replication
    if rule is None:
        return []
    ids = sorted([table.id, *(peer.table_id for peer in rule.peers)])
    found = [store.catalog.lock(session, table_id) for table_id in ids]
    return [member for member in found if member is not None]


def leave(store: Store, session: Session, table: Table, gone: Collection[int], now_ms: int) -> None:
    """Take some tables out of the group of a table; a member that is left alone is no replica any more."""
    group = members(store, session, table)
    for member in group:
        for follower in followers.of_table(session, member.id, REPLICA):
            if member.id in gone or int(follower.target) in gone:
                followers.remove(session, follower.id)
    for member in group:
        rule = member.rules.replication
        if rule is None:  # it was left alone by one that went in the same transaction
            continue
        peers = tuple(peer for peer in rule.peers if peer.table_id not in gone)
        stays = member.id not in gone and peers
        kept = dataclasses.replace(rule, peers=peers) if stays else None
        if not stays:
            tombstones.forget(session, member.id)
        member = dataclasses.replace(member, rules=dataclasses.replace(member.rules, replication=kept))
        if member.state is State.CREATING and member.id in gone:  # nobody brings it more rows
            member = dataclasses.replace(member, state=State.ACTIVE, busy_until_ms=0)
        altered(store, session, released(session, member, now_ms))


def end(session: Session, table: Table, follower: Follower, now_ms: int) -> None:
    """Have a follower of a locked table told what has been written until now, and no more. One that has been told all that is
    gone at once."""
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
    """Remove the followers of dropped tables of a namespace (None: all), whatever they have still to be told."""
    for follower in followers.of_dropped_tables(session):
        assert follower.ending is not None
        table = store.catalog.defined(follower.ending.definition)
        if namespace is None or table.namespace == namespace:
            followers.remove(session, follower.id)


def part_with(store: Store, session: Session, table: Table, now_ms: int, delivers: bool) -> Table:
    """A locked table that is about to go, alone: it has no followers and no replicas any more. `delivers`: its followers are told
    what has been written until now; else nothing more."""
    leave(store, session, table, {table.id}, now_ms)
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
    return dataclasses.replace(table, rules=dataclasses.replace(alone(rules), history=rules.history))

"""What depends on a table besides its rows: those who follow its changes, and its replicas; what becomes of them when it goes.

Knows no more of either than that; how they are told is in following.py and replicating.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from gateway.model.errors import StaleTable
from gateway.model.restored_tables import alone
from gateway.model.tables import State, Table
from gateway.store import changes, followers, tombstones
from gateway.store.databases import Session
from gateway.store.store import Store

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


def part_with(store: Store, session: Session, table: Table, now_ms: int) -> Table:
    """A locked table that is about to go, alone: it has no changes to tell, no followers and no replicas any more."""
    leave(store, session, table, {table.id}, now_ms)
    for follower in followers.of_table(session, table.id):
        followers.remove(session, follower.id)
    rules = table.rules
    for rule in (rules.stream, rules.log):
        if rule is not None and rule.enabled:
            changes.end_stream(session, rule.id, now_ms)
    return dataclasses.replace(table, rules=dataclasses.replace(alone(rules), history=rules.history))

"""The followers of a table, and their removal with the table. Delivery of changes is in following.py."""

from __future__ import annotations

import dataclasses

from tablegate.gateway.engine.streams.follower_reads import oldest_pending_ms
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower, FollowerEnd
from tablegate.gateway.store.tables import descriptors


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

"""Additional writes for tables with replicas.

A write to a table also changes its strong replicas, in the same transaction and under locks on both rows. For other
replicas, the times of deletes are kept as tombstones. By these, a write from another replica is recognized as older,
and a client's write gets a later time.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from tablegate.gateway.engine.streams.streaming import RowChange, is_recorded
from tablegate.gateway.model.commands.row_commands import WriteOutcome
from tablegate.gateway.model.commands.write_groups import RowKey
from tablegate.gateway.model.commands.writes import Remove, Write, deleted_at
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import tombstones
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

REPLICATED = "replica"
"""The actor of writes that came from another replica."""


# Strong replicas


def mirrors(store: Store, tables: Mapping[int, Table]) -> dict[int, list[Table]]:
    """Return the strong replicas of each table. Cached descriptors are checked like any other."""
    replicas_by_table: dict[int, list[Table]] = {}
    for table in tables.values():
        rule = table.rules.replication
        if rule is not None and rule.strong:
            replicas_by_table[table.id] = [
                peer
                for replica in rule.peers
                if (peer := _descriptor(store, replica.table_id, tables)) is not None
            ]
    return replicas_by_table


def _descriptor(store: Store, table_id: int, tables: Mapping[int, Table]) -> Table | None:
    table = tables.get(table_id) or store.catalog.cache.by_id(table_id)
    if table is None:
        with store.read() as session:
            table = store.catalog.by_id(session, table_id)
        if table is not None and table.state is not State.DELETING:
            store.catalog.cache.keep(table)
    return table


def mirror(
    write: Write, outcome: WriteOutcome, peer: Table, view: MutableMapping[RowKey, Row | None]
) -> list[RowChange]:
    """Apply a write's outcome to the same row of a strong replica. Return the changes for the replica's stream."""
    key = peer.id, write.key.position
    old, new = view.get(key), outcome.new
    if new is outcome.old:
        return []
    if new is not None:
        new = Row(new.position, new.contents, new.modified_at)
        new.expires_at_ms = peer.expires_at_ms(new)
    view[key] = new
    return [RowChange(write._replace(table=peer, actor=REPLICATED), old, new)] if is_recorded(peer) else []


# Deletes


class DeletionTimes:
    """The known deletion times of the rows in a batch of writes, and the deletes of the batch."""

    def __init__(self, session: Session, tables: Mapping[int, Table], keys: Sequence[RowKey]) -> None:
        replicated_ids = {
            table.id for table in tables.values() if (rule := table.rules.replication) and not rule.strong
        }
        self._replicated = replicated_ids
        self._known = tombstones.of_keys(session, [key for key in keys if key[0] in replicated_ids])
        self._new: dict[RowKey, int] = {}

    @property
    def latest(self) -> int:
        """Latest known deletion time, in ticks. New writes must be later."""
        return max(self._known.values(), default=0)

    def is_superseded(self, writes: Sequence[Write], view: Mapping[RowKey, Row | None]) -> bool:
        """Return True if a replicated write is older than the delete of its row."""
        [write, *other_writes] = writes
        if write.stamp is None or other_writes or isinstance(write.change, Remove):
            return False
        key = write.table.id, write.key.position
        return view.get(key) is None and self._known.get(key, 0) >= write.stamp

    def note(self, writes: Sequence[Write], outcomes: Sequence[WriteOutcome], now_ms: int) -> None:
        """Note the rows that a group has deleted, and the times."""
        for write, (old, new) in zip(writes, outcomes, strict=True):
            if new is not None or write.table.id not in self._replicated:
                continue
            at = write.stamp
            if at is None and old is not None:
                at = deleted_at(now_ms, old)
            if at is not None:
                key = write.table.id, write.key.position
                self._new[key] = self._known[key] = max(at, self._known.get(key, 0))

    def keep(self, session: Session) -> None:
        if self._new:
            tombstones.keep(session, self._new)

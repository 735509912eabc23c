"""Additional writes for tables with replicas.

A write to a table also changes its strong replicas, in the same transaction and under locks on both rows. For other
replicas, the times of deletes are kept as tombstones. By these, a write from another replica is recognized as older,
and a client's write gets a later time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablegate.gateway.engine.rows.writing import Answer, RowChange, WriteBatch, WriteHook
from tablegate.gateway.engine.streams.streaming import is_recorded
from tablegate.gateway.features.global_tables import tombstone_store
from tablegate.gateway.model.commands.row_commands import RowKey, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Remove, Write, deleted_at
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.sql.databases import Pending, Session

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

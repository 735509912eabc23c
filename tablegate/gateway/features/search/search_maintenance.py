"""Maintenance of search indexes: batches of existing rows, then of changes, become documents.

A batch is one transaction with the position that it reaches, so a kill loses nothing and repeats nothing. The changes
since the creation of the index are applied in their order after the existing rows. So the last change of each row
decides, and a document may be older for a moment than the copied one.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.gateway.engine.background import batch_walk
from tablegate.gateway.engine.streams import follower_reads
from tablegate.gateway.engine.tables.table_dependents import save_table, without_unused_log
from tablegate.gateway.features.search import document_store, search_index_store
from tablegate.gateway.features.search.document_store import NewDocument
from tablegate.gateway.features.search.documents import WRITTEN_AT, document_of
from tablegate.gateway.features.search.schema import SearchIndex
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import followers
from tablegate.gateway.store.streams.followers import Follower

_BATCH_BYTES = 4_000_000


class SearchMaintenance:
    """The maintenance of all search indexes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def advance(self, follower: Follower, now_ms: int, limit: int) -> int | None:
        """Bring an index further up to date. Return the number of rows, or None if it lacks nothing."""
        store = self._store
        with store.read() as session:
            index = search_index_store.by_id(session, int(follower.target))
            table = store.catalog.by_id(session, follower.table_id)
        if index is None or table is None or follower.ending is not None:
            self._end(follower, now_ms)
            return 1
        expired = self._remove_expired(follower, index, now_ms, limit)
        if expired is not None:
            return expired
        if follower.copying:
            return self._copy(follower, index, table, limit)
        with store.read() as session:
            delivery = follower_reads.pending(session, follower, now_ms, limit)
        if delivery is None:
            return None
        new_documents = [
            each
            for change in delivery.changes
            if (each := self._document_of_change(index, table, change)) is not None
        ]
        self._save(index, new_documents, follower, delivery.after)
        return max(1, len(delivery.changes))

    def _remove_expired(self, follower: Follower, index: SearchIndex, now_ms: int, limit: int) -> int | None:
        """Remove the next expired documents. Return their number, None if there is none."""
        if index.lifetime_ms is None:
            return None
        with self._store.read() as session:
            positions = document_store.written_before(session, index, now_ms - index.lifetime_ms, limit)
        if not positions:
            return None
        # The position must not have moved: another server may have replaced a document since.
        self._save(index, [NewDocument(position, None) for position in positions], follower, follower)
        return len(positions)

    def _copy(self, follower: Follower, index: SearchIndex, table: Table, limit: int) -> int:
        """Add the next existing rows, as they are now."""
        with self._store.read() as session:
            place = batch_walk.position_of(follower.mark)
            positions = rows.positions_after(session, table.id, place, limit, _BATCH_BYTES)
            found = rows.fetch_many(session, sorted((table.id, position) for position in positions))
        new_documents = [
            NewDocument(row.position, self._document(index, table, row, row.latest)) for row in found.values()
        ]
        if positions:
            after = follower._replace(mark=batch_walk.mark_of(positions[-1]))
        else:
            after = follower._replace(copying=False, mark=None)
        self._save(index, new_documents, follower, after)
        return max(1, len(positions))

    def _save(
        self, index: SearchIndex, new_documents: list[NewDocument], follower: Follower, after: Follower
    ) -> None:
        """Save documents and the new position, unless another server has advanced the index or it was dropped.

        If it was altered, the documents lack something, so it is filled from the beginning.
        """
        with self._store.write() as session:
            if not followers.advance(session, follower, after):
                return
            current = search_index_store.by_id(session, index.id)
            is_altered = current is None or current.schema != index.schema
            if is_altered or (current is not None and current.lifetime_ms != index.lifetime_ms):
                followers.advance(session, after, follower._replace(copying=True, mark=None))
            else:
                document_store.save(session, index, new_documents)

    def _document_of_change(self, index: SearchIndex, table: Table, change: Change) -> NewDocument | None:
        position = table.key_schema.key(change.key_values).position
        if change.new is not None:
            values = {**change.new.latest, **change.key_values}
            return NewDocument(position, self._document(index, table, change.new, values))
        return None if change.old is None else NewDocument(position, None)

    def _document(
        self, index: SearchIndex, table: Table, row: Row, values: Mapping[str, Value]
    ) -> Mapping[str, list[object]]:
        view = self._store.catalog.views.get(index.dialect)
        shown = {}
        for name in index.schema.columns:
            value = values.get(name)
            if value is not None and view is not None:
                value = view(value, False)
            if value is not None:
                shown[name] = value
        document = document_of(index.schema, shown)
        if index.lifetime_ms is not None:
            document[WRITTEN_AT] = [table.written_at_ms(row)]
        return document

    def _end(self, follower: Follower, now_ms: int) -> None:
        """Remove the follower of a dropped index or table."""
        with self._store.write() as session:
            table = self._store.catalog.lock(session, follower.table_id)
            followers.remove(session, follower.id)
            if table is not None:
                save_table(self._store, session, without_unused_log(session, table, now_ms))

"""Creation, removal and description of search indexes, and their maintenance by batches of rows and of changes.

Each search index is a follower of its table (engine/streams/following.py): it first gets the existing rows, then all
changes.

A batch is one transaction with the position that it reaches, so a kill loses nothing and repeats nothing. The changes
since the creation of the index are applied in their order after the existing rows. So the last change of each row
decides, and a document may be older for a moment than the copied one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tablegate.gateway.engine import batch_walk
from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.streams import follower_reads, following
from tablegate.gateway.engine.streams.follower_reads import lock_current, save_table, without_unused_log
from tablegate.gateway.features.search import document_store, search_commands, search_index_store, searching
from tablegate.gateway.features.search.document_store import NewDocument
from tablegate.gateway.features.search.documents import WRITTEN_AT, document_of
from tablegate.gateway.features.search.schema import SearchIndex, SearchIndexState
from tablegate.gateway.model.errors import IndexExists, IndexMissing, LimitExceeded
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import followers
from tablegate.gateway.store.streams.followers import Follower
from tablegate.gateway.store.tables.catalog import TableHook

SEARCH = "search"
"""The kind of followers that are search indexes. The target is the id of the index."""


def _create(attempt: Attempt, command: search_commands.CreateSearchIndex) -> Table:
    """Create a search index. Raises StaleTable, IndexExists, LimitExceeded."""
    store = attempt.store
    with store.write() as session:
        table = lock_current(store, session, command.table)
        number = len(search_index_store.of_table(session, table.id))
        if number >= command.most:
            raise LimitExceeded("search-indexes", command.most, number + 1)
        index = SearchIndex(
            store.catalog.next_id(session),
            table.id,
            command.name,
            command.dialect,
            command.schema,
            command.properties,
            attempt.now_ms,
            command.lifetime_ms,
        )
        if not search_index_store.add(session, index):
            raise IndexExists(table.name, command.name)
        table = following.with_recording(attempt.definer, session, table, attempt.now_ms)
        following.add(store, session, table, SEARCH, str(index.id), copies=True)
        return save_table(store, session, table)


def _alter(attempt: Attempt, command: search_commands.AlterSearchIndex) -> Table:
    """Replace properties, time to live and schema of a search index. Raises StaleTable, IndexMissing."""
    store = attempt.store
    with store.write() as session:
        table = lock_current(store, session, command.table)
        index = _found(session, table, command.name)
        schema = command.schema or index.schema
        altered = dataclasses.replace(
            index, schema=schema, properties=command.properties, lifetime_ms=command.lifetime_ms
        )
        search_index_store.update(session, altered)
        gets_lifetime = index.lifetime_ms is None and altered.lifetime_ms is not None
        if gets_lifetime or schema != index.schema:
            followers.copy_again(session, SEARCH, str(index.id))
        return save_table(store, session, table)


def _swap(attempt: Attempt, command: search_commands.SwapSearchIndexes) -> Table:
    """Exchange the names of two search indexes. Raises StaleTable, IndexMissing."""
    store = attempt.store
    with store.write() as session:
        table = lock_current(store, session, command.table)
        index, other = (_found(session, table, name) for name in (command.name, command.other))
        # The names of a table are unique at any moment. No index has an empty name.
        for renamed, name in ((index, ""), (other, index.name), (index, other.name)):
            search_index_store.update(session, dataclasses.replace(renamed, name=name))
        return save_table(store, session, table)


def _found(session: Session, table: Table, name: str) -> SearchIndex:
    """Return a search index. Raises IndexMissing."""
    index = search_index_store.find(session, table.id, name)
    if index is None:
        raise IndexMissing(table.name, name)
    return index


def _drop(attempt: Attempt, command: search_commands.DropSearchIndex) -> Table:
    """Drop a search index. Raises StaleTable, IndexMissing."""
    store, now_ms = attempt.store, attempt.now_ms
    with store.write() as session:
        table = lock_current(store, session, command.table)
        index = _found(session, table, command.name)
        for follower in followers.of_target(session, SEARCH, str(index.id)):
            followers.remove(session, follower.id)
        search_index_store.remove(session, index.id)
        return save_table(store, session, without_unused_log(session, table, now_ms))


def _list(attempt: Attempt, command: search_commands.ListSearchIndexes) -> list[tuple[str, SearchIndex]]:
    with attempt.store.read() as session:
        found = search_index_store.of_namespace(session, command.namespace, command.table_name)
        return [each for each in found if not (command.only_filled and _is_filling(session, each[1]))]


def _is_filling(session: Session, index: SearchIndex) -> bool:
    return any(follower.copying for follower in followers.of_target(session, SEARCH, str(index.id)))


def oldest_unindexed_ms(session: Session) -> int | None:
    """Return the time of the oldest change that an index lacks. None if all are complete.

    An index that is being filled can lack any row from before its creation.
    """
    times_ms = (
        follower_reads.oldest_of_kind(session, SEARCH),
        search_index_store.filling_since_ms(session, SEARCH),
    )
    return min((at_ms for at_ms in times_ms if at_ms is not None), default=None)


def _describe(attempt: Attempt, command: search_commands.DescribeSearchIndex) -> SearchIndexState:
    """Return the progress of a search index. Raises IndexMissing."""
    table, now_ms = command.table, attempt.now_ms
    with attempt.store.read() as session:
        index = _found(session, table, command.name)
        number, size_bytes = document_store.size(session, index.id)
        is_filling = False
        synced_to_ms = now_ms
        for follower in followers.of_target(session, SEARCH, str(index.id)):
            is_filling = follower.copying
            oldest_ms = follower_reads.oldest_pending_ms(session, follower)
            synced_to_ms = now_ms if oldest_ms is None else oldest_ms
    synced_to_ms = 0 if is_filling else synced_to_ms
    return SearchIndexState(index, table.name, is_filling, synced_to_ms, number, size_bytes)


class SearchIndexHook(TableHook):
    """Removes the search indexes of a table that is removed or retained."""

    def remove_indexes(self, session: Session, table: Table) -> None:
        search_index_store.remove_all(session, table.id)


COMMANDS: Runners = {
    search_commands.CreateSearchIndex: _create,
    search_commands.AlterSearchIndex: _alter,
    search_commands.SwapSearchIndexes: _swap,
    search_commands.DropSearchIndex: _drop,
    search_commands.ListSearchIndexes: _list,
    search_commands.DescribeSearchIndex: _describe,
    search_commands.SearchRows: lambda attempt, command: searching.search(
        attempt.store, command, attempt.now_ms
    ),
}


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

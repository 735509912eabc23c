"""Creation, removal and description of search indexes.

Each search index is a follower of its table (engine/streams/following.py): it first gets the existing rows, then all
changes.
"""

from __future__ import annotations

import dataclasses

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.streams import follower_reads, following
from tablegate.gateway.engine.tables.table_dependents import lock_current, save_table, without_unused_log
from tablegate.gateway.features.search import document_store, search_commands, search_index_store, searching
from tablegate.gateway.features.search.schema import SearchIndex, SearchIndexState
from tablegate.gateway.model.errors import IndexExists, IndexMissing, LimitExceeded
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.streams import followers
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

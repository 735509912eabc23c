"""Searches of search indexes.

If the query is an exact condition for the database and the order is that of the primary key, the database finds the
page. Otherwise all candidates are evaluated, and the first ones in order are kept.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from tablegate.gateway.model.commands.search_commands import SearchPage, SearchPosition, SearchRows
from tablegate.gateway.model.errors import IndexMissing
from tablegate.gateway.model.search.ordering import KeySort, is_by_key, order_key
from tablegate.gateway.model.search.queries import matches
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.search import documents, search_indexes
from tablegate.gateway.store.search.candidates import Candidates, candidates_of
from tablegate.gateway.store.search.documents import FoundDocument
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store


class _Hit(NamedTuple):
    """A result in its order."""

    order_key: bytes
    key: tuple[bytes, bytes]
    position: Position


def search(store: Store, command: SearchRows, now_ms: int) -> SearchPage:
    """Return a page of the rows that match. Raises IndexMissing."""
    with store.read() as session:
        if search_indexes.by_id(session, command.index.id) is None:
            raise IndexMissing(command.table.name, command.index.name)
        candidates = candidates_of(command.index, command.query)
        find = _by_database if candidates.is_exact and is_by_key(command.sorters) else _by_evaluation
        hits, total = find(session, command, candidates)
        page = hits[: command.limit]
        table = command.table
        found = rows.fetch_many(session, sorted((table.id, hit.position) for hit in page))
    visible_rows = [table.visible(found.get((table.id, hit.position)), now_ms) for hit in page]
    last = SearchPosition(page[-1].order_key, *page[-1].key) if page and len(hits) > len(page) else None
    return SearchPage([row for row in visible_rows if row is not None], total, last)


def _by_database(
    session: Session, command: SearchRows, candidates: Candidates
) -> tuple[list[_Hit], int | None]:
    """Return the hits of the page and one more, and their number if counted."""
    total = documents.count(session, candidates) if command.counts else None
    first = command.sorters[0] if command.sorters else KeySort()
    after = None if command.after is None else (command.after.partition, command.after.sort)
    found = documents.in_key_order(
        session, candidates, first.descending, after, command.offset, command.limit + 1
    )
    return [
        _Hit(order_key(command.sorters, {}, b"".join(each.key)), each.key, each.position) for each in found
    ], total


def _by_evaluation(
    session: Session, command: SearchRows, candidates: Candidates
) -> tuple[list[_Hit], int | None]:
    """Return the hits of the page and one more, and their number if counted."""
    total = 0

    def hits() -> Iterator[_Hit]:
        nonlocal total
        for each in _matching(session, command, candidates):
            total += 1
            assert each.document is not None
            hit = _Hit(order_key(command.sorters, each.document, b"".join(each.key)), each.key, each.position)
            if command.after is None or hit.order_key > command.after.order_key:
                yield hit

    found = heapq.nsmallest(command.offset + command.limit + 1, hits())
    return found[command.offset :], total if command.counts else None


def _matching(session: Session, command: SearchRows, candidates: Candidates) -> Iterator[FoundDocument]:
    for each in documents.each(session, candidates):
        if candidates.is_exact or (each.document is not None and matches(command.query, each.document)):
            yield each

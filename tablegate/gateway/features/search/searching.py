"""Searches of search indexes.

If the query is an exact condition for the database and the order is that of the primary key, the database finds the
page. If the order begins with the values of a field, it finds the candidates with the first values. Otherwise all
candidates are evaluated, and the first ones in order are kept.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from time import monotonic
from typing import Any, NamedTuple

from tablegate.gateway.features.search import document_store, search_index_store
from tablegate.gateway.features.search.aggregations import NOTHING, Aggregations, Group
from tablegate.gateway.features.search.candidates import Candidates, candidates_of
from tablegate.gateway.features.search.collecting import MOST_KEPT_BYTES, Collector, Hit
from tablegate.gateway.features.search.document_store import FoundDocument
from tablegate.gateway.features.search.hits import Details, DetailsReader
from tablegate.gateway.features.search.queries import (
    CheckTime,
    Nearest,
    fields_of,
    matches,
    min_score_of,
    without_limit,
)
from tablegate.gateway.features.search.ranking import (
    FieldSort,
    KeySort,
    first_term_of,
    has_order_of_terms,
    is_by_key,
    order_key,
    score,
)
from tablegate.gateway.features.search.schema import FieldType
from tablegate.gateway.features.search.search_commands import SearchPage, SearchPosition, SearchRows
from tablegate.gateway.features.search.search_index_store import StoredStatistics
from tablegate.gateway.model.commands.row_commands import RowKey
from tablegate.gateway.model.errors import IndexMissing, LimitExceeded, NotInstalled
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import hash_key
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

_BLOCK_NUMBERS = 250_000
"""Numbers of the vectors that are in memory as Python values at a time."""


def nearest(
    query: Nearest, found: Iterable[FoundDocument], check_time: CheckTime
) -> list[tuple[FoundDocument, float]]:
    """Return the documents with the most similar vectors, and their scores. Raises NotInstalled."""
    try:
        from tablegate.gateway.features.vectors import exact_search
        from tablegate.gateway.features.vectors.vectors import Metric, pack
    except ModuleNotFoundError:
        raise NotInstalled("vectors") from None
    metric = query.field.metric
    target = exact_search.search_near(Metric(metric), pack(query.vector), query.limit, ())
    best = exact_search.NearestSoFar(target)
    kept: dict[int, FoundDocument] = {}
    remaining = iter(found)
    while block := list(itertools.islice(remaining, max(1, _BLOCK_NUMBERS // query.field.dimensions))):
        entries = []
        for each in block:
            document = dict(each.document or {})
            try:
                vector = pack(document.pop(query.field.name)[0])
            except OverflowError:  # a number beyond 32 bits
                continue
            entries.append((each.number, None, b"", vector))
            document[query.field.name] = [()]  # filters of groups may ask if it exists
            kept[each.number] = each._replace(document=document)
        if entries:
            vectors = exact_search.VectorBlock.of(entries)
            best.scan(exact_search.BlockPart(vectors, vectors.length))
            kept = {number: kept[number] for number, _ in best.results()}
    scored = ((kept[number], _score(metric, distance)) for number, distance in best.results())
    return [
        (each, query.weight * points)
        for each, points in scored
        if (query.min_score is None or points >= query.min_score)
        and (query.post_filter is None or matches(query.post_filter, each.document or {}, check_time))
    ]


def _score(metric: str, distance: float) -> float:
    """Return the score of the service for the distance, or dot product, of an exact search."""
    match metric:
        case "euclidean":
            return 1 / (1 + distance * distance)
        case "cosine":
            return 1 - distance / 2
    return distance


MOST_EVALUATED = 1_000_000
"""Maximum number of documents that a search evaluates."""
MOST_ROWS_BYTES = 64 << 20
"""Maximum size of the rows that a search returns."""
# Rows read by one call. Their size is added up after each, before more are read.
_FETCHED_ROWS = 20


class _Result(NamedTuple):
    """A result in its order."""

    order_key: bytes
    key: tuple[bytes, bytes]
    position: Position
    score: float = 0.0
    collapsed: Any = None
    """The value of the field that collapses results."""
    details: Details = Details()


class _Work:
    """The work of a search so far, and the time at which it ends without a result."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._at = monotonic() + timeout_ms / 1000
        self.evaluated_bytes = 0
        """The bytes of the documents that the search has evaluated so far."""

    def check(self) -> None:
        """Raises LimitExceeded after the deadline."""
        if monotonic() > self._at:
            raise LimitExceeded("search-time", self._timeout_ms, self._timeout_ms)


class _Evaluated(NamedTuple):
    """The numbers of the documents that a search evaluates. `is_exact`: all of them match."""

    numbers: Sequence[int]
    is_exact: bool


class _Found(NamedTuple):
    """The results of a page and one more, their number if counted, and the aggregations of all."""

    results: list[_Result]
    total: int | None
    aggregations: Aggregations = Aggregations([], [])


def search(store: Store, command: SearchRows, now_ms: int) -> SearchPage:
    """Return a page of the rows that match. Raises IndexMissing, LimitExceeded, NotInstalled."""
    table = command.table
    work = _Work(command.timeout_ms)
    with store.read() as session:
        if search_index_store.by_id(session, command.index.id) is None:
            raise IndexMissing(table.name, command.index.name)
        session.statements.plan_by_values(session)
        candidates = _candidates(session, command)
        is_found_by_database = candidates.is_exact and is_by_key(command.sorters) and not command.needs_scores
        if is_found_by_database and command.aggregated == NOTHING and command.collapse is None:
            found = _by_database(session, command, candidates)
        else:
            by_terms = _by_terms(session, command, candidates, work)
            found = by_terms or _by_evaluation(session, command, _all(session, candidates), work)
        page = list(_completed(session, command, found.results[: command.limit], work))
        tops = set(_positions(found.aggregations))
        positions = tops.union(result.position for result in page)
        stored = _stored_rows(session, table, positions)
    visible = {
        position: row
        for (_, position), each in stored.items()
        if (row := table.visible(each, now_ms)) is not None
    }
    last = page[-1] if page else None
    return SearchPage(
        [visible[result.position] for result in page if result.position in visible],
        found.total,
        None if last is None else SearchPosition(last.order_key, *last.key),
        len(found.results) > len(page),
        found.aggregations,
        scores=[result.score for result in page if result.position in visible],
        details=[result.details for result in page if result.position in visible],
        top_rows={position: visible[position] for position in tops if position in visible},
        evaluated_bytes=work.evaluated_bytes,
    )


def _candidates(session: Session, command: SearchRows) -> Candidates:
    """Return the condition for the documents that match, with the parts that have few terms first.

    With conditions on texts no part is left out, because an evaluation would find the tokens of each text again.
    """
    has_texts = any(field.type is FieldType.TEXT for field in fields_of(command.query))
    found = candidates_of(command.index, command.query)
    return document_store.with_rare_terms_first(session, command.index, found, may_evaluate=not has_texts)


def _stored_rows(session: Session, table: Table, positions: set[Position]) -> dict[RowKey, Row]:
    """Return the rows at positions. Raises LimitExceeded if they are too large for an answer."""
    keys = sorted((table.id, position) for position in positions)
    found: dict[RowKey, Row] = {}
    size_bytes = 0
    for start in range(0, len(keys), _FETCHED_ROWS):
        fetched = rows.fetch_many(session, keys[start : start + _FETCHED_ROWS])
        size_bytes += sum(row.size_bytes for row in fetched.values())
        if size_bytes > MOST_ROWS_BYTES:
            raise LimitExceeded("search-memory", MOST_ROWS_BYTES, size_bytes)
        found.update(fetched)
    return found


def _completed(
    session: Session, command: SearchRows, page: Sequence[_Result], work: _Work
) -> Iterator[_Result]:
    """Yield results with what neither their order nor their number depends on: scores and details."""
    adds_scores = command.returns_scores and not command.needs_scores
    if not adds_scores and not command.returns_details:
        yield from page
        return
    statistics = StoredStatistics(session, command.index)
    reader = DetailsReader(command.query, command.highlight, statistics, work.check)
    found = document_store.fetch(session, command.index, [result.position for result in page])
    for result, document in zip(page, found, strict=True):
        work.check()
        points = result.score
        if adds_scores:
            points = score(command.query, document, statistics, work.check)
        yield result._replace(score=points, details=reader.of(document))


def _positions(found: Aggregations | Group) -> Iterator[Position]:
    """Yield the positions of all top rows."""
    for outcome in found.aggregations:
        if isinstance(outcome, list):
            yield from (each for each in outcome if isinstance(each, Position))
    for groups in found.groups:
        for group in groups:
            yield from _positions(group)


def _by_database(session: Session, command: SearchRows, candidates: Candidates) -> _Found:
    first = command.sorters[0] if command.sorters else KeySort()
    after = None if command.after is None else (command.after.partition, command.after.sort)
    few, total = document_store.few(session, candidates, command.counts)
    if few is None:
        page = document_store.in_key_order(
            session, candidates, first.descending, after, command.offset, command.limit + 1
        )
    else:
        found = document_store.keys(session, command.index, few)
        ordered = sorted(found, key=lambda each: each.key, reverse=first.descending)
        if after is not None:
            ordered = [
                each for each in ordered if (each.key < after if first.descending else each.key > after)
            ]
        page = ordered[command.offset : command.offset + command.limit + 1]
    return _Found([_result(command, each) for each in page], total)


def _by_terms(session: Session, command: SearchRows, candidates: Candidates, work: _Work) -> _Found | None:
    """Evaluate few candidates, or those with the first terms of the field that is sorted by. None if not possible."""
    first = command.sorters[0] if command.sorters else None
    selects = candidates.is_exact and not command.needs_scores and command.collapse is None
    if not (
        selects
        and command.aggregated == NOTHING
        and isinstance(first, FieldSort)
        and has_order_of_terms(first)
    ):
        return None
    after = None
    if command.after is not None:
        after = first_term_of(first, command.after.order_key)
        if after is None:
            return None
    few, total = document_store.few(session, candidates, command.counts)
    if few is not None:
        return _by_evaluation(session, command, _Evaluated(few, is_exact=True), work)
    field = command.index.id, command.index.schema.numbers[first.field.name]
    number = command.offset + command.limit + 1
    chosen = document_store.with_first_terms(
        session, candidates, field, first.descending, after, number, MOST_EVALUATED + 1
    )
    if chosen is None:
        return None
    first_ones = _Evaluated(chosen, is_exact=True)
    found = _by_evaluation(session, dataclasses.replace(command, counts=False), first_ones, work)
    return found._replace(total=total)


def _all(session: Session, candidates: Candidates) -> _Evaluated:
    """Return as many candidates as a search evaluates, and one more."""
    return _Evaluated(document_store.numbers(session, candidates, MOST_EVALUATED + 1), candidates.is_exact)


def _by_evaluation(session: Session, command: SearchRows, evaluated: _Evaluated, work: _Work) -> _Found:
    total = longest = 0
    collector = Collector(command.aggregated, check_time=work.check)
    number = command.offset + command.limit + 1

    def results() -> Iterator[_Result]:
        nonlocal total, longest
        for each, points in _scored(session, command, evaluated, work):
            total += 1
            collector.add(Hit(each.document or {}, b"".join(each.key), each.position))
            result = _result(command, each, points, work.check)
            if command.after is None or result.order_key > command.after.order_key:
                longest = max(longest, len(result.order_key))
                if longest * min(total, number) > MOST_KEPT_BYTES:
                    raise LimitExceeded("search-memory", MOST_KEPT_BYTES, longest * number)
                yield result

    found = heapq.nsmallest(number, results() if command.collapse is None else _collapsed(results(), number))
    return _Found(found[command.offset :], total if command.counts else None, collector.result())


def _collapsed(results: Iterable[_Result], number: int) -> Iterable[_Result]:
    """Return the first result of each value. Results that are not among the first `number` are dropped."""
    first: dict[Hashable, _Result] = {}
    for each in results:
        key = hash_key(each.collapsed)
        known = first.get(key)
        if known is None or each.order_key < known.order_key:
            first[key] = each
        if len(first) > 2 * number + 1000:
            first = {hash_key(kept.collapsed): kept for kept in heapq.nsmallest(number, first.values())}
    return first.values()


def _scored(
    session: Session, command: SearchRows, evaluated: _Evaluated, work: _Work
) -> Iterable[tuple[FoundDocument, float]]:
    """Return the documents that match with their scores, which are 0 if nothing depends on them."""
    query = command.query
    found = _matching(session, command, evaluated, work)
    if not command.needs_scores:
        return ((each, 0.0) for each in found)
    scored: Iterable[tuple[FoundDocument, float]]
    if isinstance(query, Nearest):
        scored = nearest(query, found, work.check)
    else:
        statistics = StoredStatistics(session, command.index)
        scored = ((each, score(query, each.document or {}, statistics, work.check)) for each in found)
    least = min_score_of(query)
    return scored if least is None else (pair for pair in scored if pair[1] >= least)


def _result(
    command: SearchRows, found: FoundDocument, points: float = 0.0, check_time: CheckTime = without_limit
) -> _Result:
    document = found.document or {}
    key = order_key(command.sorters, document, b"".join(found.key), points, check_time)
    values = () if command.collapse is None else document.get(command.collapse.name, ())
    return _Result(key, found.key, found.position, points, values[0] if values else None)


def _matching(
    session: Session, command: SearchRows, evaluated: _Evaluated, work: _Work
) -> Iterator[FoundDocument]:
    """Yield the documents that match. Raises LimitExceeded."""
    if len(evaluated.numbers) > MOST_EVALUATED:
        raise LimitExceeded("search-documents", MOST_EVALUATED, len(evaluated.numbers))
    for each in document_store.each(session, command.index, evaluated.numbers):
        work.evaluated_bytes += each.size_bytes
        if evaluated.is_exact:
            work.check()
            yield each
        elif each.document is not None and matches(command.query, each.document, work.check):
            yield each

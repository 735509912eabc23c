"""What a search returns of a row besides its columns: fragments of texts, and the objects of NESTED fields that match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tablegate.gateway.model.errors import LimitExceeded
from tablegate.gateway.model.search import queries
from tablegate.gateway.model.search.documents import Document
from tablegate.gateway.model.search.highlighting import NO_HIGHLIGHT, Highlight
from tablegate.gateway.model.search.ordering import fields_of_sorters, order_key
from tablegate.gateway.model.search.queries import (
    CheckTime,
    Nested,
    Query,
    matches,
    parts_of,
    without_limit,
)
from tablegate.gateway.model.search.schema import SearchField
from tablegate.gateway.model.search.scoring import Statistics, score

MOST_INNER_HITS = 100_000
"""Maximum number of objects that a search returns, in all levels together."""


class Details(NamedTuple):
    """The fragments of fields, and the objects of the NESTED fields of queries with inner hits."""

    fragments: Mapping[str, Sequence[str]] = {}
    inner: Sequence[tuple[str, Sequence[InnerHit]]] = ()


class InnerHit(NamedTuple):
    """An object that matches: its place in its field, its score and its details."""

    place: int
    score: float
    details: Details


def has_inner_hits(query: Query) -> bool:
    """Return True if a search returns objects of NESTED fields."""
    return any(isinstance(part, Nested) and part.inner_hits is not None for part in parts_of(query))


def fields_of_hits(query: Query) -> Iterator[SearchField]:
    """Yield the fields by which objects of NESTED fields are sorted."""
    for part in parts_of(query):
        if isinstance(part, Nested) and part.inner_hits is not None:
            yield from fields_of_sorters(part.inner_hits.sorters)


class DetailsReader:
    """Reads the details of the results of one search."""

    def __init__(
        self,
        query: Query,
        highlight: Highlight,
        statistics: Statistics,
        check_time: CheckTime = without_limit,
    ) -> None:
        self._query = query
        self._highlight = highlight
        self._statistics = statistics
        self._check_time = check_time
        self._number = 0

    def of(self, document: Document) -> Details:
        """Return the details of a document. Raises LimitExceeded."""
        return self._details(self._query, self._highlight, document)

    def _details(self, query: Query, highlight: Highlight, document: Document) -> Details:
        parts = list(_positive_parts(query))
        inner = [
            (part.field.name, self._inner(part, part.inner_hits, document))
            for part in parts
            if isinstance(part, Nested) and part.inner_hits is not None
        ]
        return Details(highlight.fragments_of(parts, document, self._check_time), inner)

    def _inner(self, part: Nested, wanted: queries.InnerHits, document: Document) -> list[InnerHit]:
        found = []
        for place, each in enumerate(document.get(part.field.name, ())):
            if matches(part.query, each, self._check_time):
                points = score(part.query, each, self._statistics, self._check_time)
                key = order_key(wanted.sorters, each, place.to_bytes(4, "big"), points, self._check_time)
                found.append((key, place, points, each))
        page = sorted(found, key=lambda item: item[0])[wanted.offset : wanted.offset + wanted.limit]
        self._number += len(page)
        if self._number > MOST_INNER_HITS:
            raise LimitExceeded("search-inner-hits", MOST_INNER_HITS, self._number)
        return [
            InnerHit(place, points, self._details(part.query, wanted.highlight or NO_HIGHLIGHT, each))
            for _, place, points, each in page
        ]


def _positive_parts(query: Query) -> Iterator[Query]:
    """Yield the parts of a query by which a document can match, except those inside NESTED fields."""
    yield query
    inner: Sequence[Query] = ()
    match query:
        case queries.Bool():
            inner = (*query.must, *query.filters, *query.should)
        case queries.DisjunctionMax(alternatives):
            inner = alternatives
        case queries.ConstScore(part) | queries.FunctionsScore(part):
            inner = (part,)
        case queries.FieldFactor(part, _) | queries.Weighted(part, _):
            inner = (part,)
        case queries.Nearest(filter=part) if part is not None:
            inner = (part,)
    for each in inner:
        yield from _positive_parts(each)

"""Results of a search besides columns: fragments of texts with marked tokens, and objects of NESTED fields that match."""

from __future__ import annotations

import heapq
import html
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.analysis import Token, phrase_starts, tokens_of
from tablegate.gateway.features.search.documents import Document
from tablegate.gateway.features.search.queries import (
    CheckTime,
    Match,
    Nested,
    Phrase,
    Query,
    has_phrase,
    matches,
    parts_of,
    value_test,
    without_limit,
)
from tablegate.gateway.features.search.ranking import Statistics, fields_of_sorters, order_key, score
from tablegate.gateway.features.search.schema import SearchField
from tablegate.gateway.model.errors import LimitExceeded

MOST_CHARACTERS = 100_000
"""Characters of a text in which tokens are marked. Others are in no fragment."""

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class HighlightedField:
    """The fragments of a TEXT.

    - `before`, `after`: the tags around a token.
    - `number`, `size`: the number of fragments, and the characters of each. The fragments with most tokens are chosen.
    - `by_score`: fragments with more tokens come first. Otherwise they have the order of the text.
    """

    field: SearchField
    before: str = "<em>"
    after: str = "</em>"
    number: int = 1
    size: int = 100
    by_score: bool = False


@dataclass(frozen=True, slots=True)
class Highlight:
    """The fields whose fragments a search returns. `is_html`: the characters of the text are escaped."""

    fields: tuple[HighlightedField, ...] = ()
    is_html: bool = False

    def fragments_of(
        self, conditions: Sequence[Query], document: Document, check_time: CheckTime
    ) -> dict[str, list[str]]:
        """Return the fragments of each field that has any, given the conditions that the document may fulfil."""
        found = {}
        for wanted in self.fields:
            name = wanted.field.name
            used = [each for each in conditions if getattr(each, "field", None) == wanted.field]
            texts = document.get(name, ()) if used else ()
            marked = [(text, _marks(wanted.field, used, text, check_time)) for text in texts]
            fragments = self._fragments(wanted, marked)
            if fragments:
                found[name] = fragments
        return found

    def _fragments(
        self, wanted: HighlightedField, marked: Sequence[tuple[str, Sequence[_Span]]]
    ) -> list[str]:
        """Return the fragments of texts with their marks."""
        fragments = [
            fragment for text, marks in marked for fragment in _fragments_of(text, marks, wanted.size)
        ]
        best = heapq.nsmallest(
            wanted.number, enumerate(fragments), key=lambda item: (-len(item[1].marks), item[0])
        )
        ordered = best if wanted.by_score else sorted(best, key=lambda item: item[0])
        return [self._text(wanted, fragment) for _, fragment in ordered]

    def _text(self, wanted: HighlightedField, fragment: _Fragment) -> str:
        parts = []
        end = fragment.start
        for start, next_end in fragment.marks:
            parts += [
                self._encoded(fragment.text[end:start]),
                wanted.before,
                self._encoded(fragment.text[start:next_end]),
                wanted.after,
            ]
            end = next_end
        return "".join([*parts, self._encoded(fragment.text[end : fragment.end])])

    def _encoded(self, text: str) -> str:
        return html.escape(text).replace("/", "&#x2F;") if self.is_html else text


NO_HIGHLIGHT = Highlight()


class _Fragment(NamedTuple):
    """A part of a text, and the marks in it."""

    text: str
    start: int
    end: int
    marks: list[_Span]


def _fragments_of(text: str, marks: Sequence[_Span], size: int) -> Iterator[_Fragment]:
    """Yield the parts of a text that have marks. Parts have a size. One ends earlier if that would split a mark."""
    start = place = 0
    while place < len(marks):
        start += (marks[place][0] - start) // size * size
        end = start + size
        first = place
        while place < len(marks) and marks[place][1] <= end:
            place += 1
        if place < len(marks) and marks[place][0] < end:
            if place == first and marks[place][0] == start:  # longer than a part
                place += 1
                end = marks[first][1]
            else:
                end = marks[place][0]
        if place > first:
            yield _Fragment(text, start, end, list(marks[first:place]))
        start = end


def _marks(field: SearchField, conditions: Sequence[Query], text: str, check_time: CheckTime) -> list[_Span]:
    """Return the places of the tokens that fulfil a condition. Overlapping ones are joined."""
    assert field.analyzer is not None
    text = text[:MOST_CHARACTERS]
    tokens = list(tokens_of(field.analyzer, text))
    spans: set[_Span] = set()
    for condition in conditions:
        check_time()
        spans.update((token.start, token.end) for token in _found(condition, tokens, text))
    joined: list[_Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _found(condition: Query, tokens: Sequence[Token], text: str) -> Iterator[Token]:
    """Yield the tokens that fulfil a condition."""
    match condition:
        case Match():
            yield from (token for token in tokens if token.text in condition.tokens)
        case Phrase(slop=0):
            by_place = {(token.text, token.position): token for token in tokens}
            for start in phrase_starts(condition.tokens, 0, tokens):
                yield from (by_place[place] for place in zip(condition.tokens, itertools.count(start)))
        case Phrase():
            if has_phrase(condition, text):
                yield from (token for token in tokens if token.text in condition.tokens)
        case _:
            test = value_test(condition)
            if test is not None:
                yield from (token for token in tokens if test(token.text))


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
    """Yield the fields that sort objects of NESTED fields."""
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
    """Yield the parts of a query that can make a document match, except those inside NESTED fields."""
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

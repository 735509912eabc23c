"""Queries of search indexes, as a tree, and their evaluation on a document.

`matches` is the meaning of a query. gateway/features/search/candidates.py finds documents by SQL, and a document that it
is not sure of is evaluated here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.analysis import phrase_starts, tokens_of
from tablegate.gateway.features.search.documents import Document, values_in
from tablegate.gateway.features.search.field_values import Point
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.features.search.score_functions import Combination, Function, RandomValue
from tablegate.gateway.model.values.values import hash_key


@dataclass(frozen=True, slots=True)
class MatchAll:
    """Every document."""


@dataclass(frozen=True, slots=True)
class Terms:
    """A value of the field is one of these."""

    field: SearchField
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A value of the field is between two bounds. None leaves an end open."""

    field: SearchField
    lower: Any = None
    upper: Any = None
    includes_lower: bool = False
    includes_upper: bool = False


@dataclass(frozen=True, slots=True)
class Prefix:
    """A value of the field begins with a text."""

    field: SearchField
    text: str


@dataclass(frozen=True, slots=True)
class Suffix:
    """A value of the field ends in a text."""

    field: SearchField
    text: str


@dataclass(frozen=True)
class Pattern:
    """A value of the field has the form of a pattern, in which `*` is any text and `?` any character."""

    field: SearchField
    text: str

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The pattern as a regular expression.

        Each part after a `*` is at its first place, which is never a worse choice. Atomic groups keep it there, so that
        the time does not grow with the number of ways to place the parts.
        """
        first, *others = (
            "".join("." if character == "?" else re.escape(character) for character in part)
            for part in re.split(r"\*+", self.text)
        )
        between = "".join(f"(?>.*?{part})" for part in others[:-1])
        return re.compile(first + between + "".join(f".*{part}" for part in others[-1:]), re.DOTALL)

    @property
    def prefix(self) -> str:
        """The text before the first `*` or `?`."""
        return re.split(r"[*?]", self.text, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Match:
    """The field, a TEXT, has at least `minimum` of these tokens."""

    field: SearchField
    tokens: tuple[str, ...]
    minimum: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """The field, a TEXT, has these tokens in this order. `slop`: the largest sum of their displacements."""

    field: SearchField
    tokens: tuple[str, ...]
    slop: int = 0


@dataclass(frozen=True, slots=True)
class Exists:
    """The field has a value. A TEXT must have a token."""

    field: SearchField


@dataclass(frozen=True, slots=True)
class GeoBox:
    """A point of the field is in a rectangle."""

    field: SearchField
    top_left: Point
    bottom_right: Point

    def has(self, point: Point) -> bool:
        """Return True if a point is in the rectangle. One that begins east of its end crosses the 180th meridian.

        The service compares cells of a grid, so most points on the southern and western sides are outside.
        """
        latitude, longitude = field_values.cell_of(point)
        north, east = field_values.cell_of((self.top_left[0], self.bottom_right[1]))
        south, west = field_values.cell_of((self.bottom_right[0], self.top_left[1]), is_lower_bound=True)
        is_between = west <= longitude <= east
        if self.top_left[1] > self.bottom_right[1]:
            is_between = longitude >= west or longitude <= east
        return south <= latitude <= north and is_between


@dataclass(frozen=True, slots=True)
class GeoDistance:
    """A point of the field is within a distance of a center."""

    field: SearchField
    center: Point
    meters: float


@dataclass(frozen=True, slots=True)
class GeoPolygon:
    """A point of the field is inside a polygon."""

    field: SearchField
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Bool:
    """All of `must` and `filters`, none of `must_not`, and at least `minimum` of `should`."""

    must: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    filters: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class ConstScore:
    """The documents of a query, with equal scores."""

    query: Query


@dataclass(frozen=True, slots=True)
class FieldFactor:
    """The documents of a query, with scores multiplied by the value of a field."""

    query: Query
    field: SearchField


@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """A function with its weight, for the documents of a filter. Without a function, the weight alone."""

    function: Function | None
    weight: float = 1.0
    filter: Query | None = None


@dataclass(frozen=True, slots=True)
class FunctionsScore:
    """The documents of a query, with scores that functions change.

    - `score_mode`: combines the results of all functions that apply to a document.
    - `combine_mode`: combines the score and that number.
    - `min_score`: the lowest score of a result. Only the outermost query may have one.
    - `max_result`: the highest result of all functions.
    """

    query: Query
    functions: tuple[ScoreFunction, ...]
    score_mode: Combination = Combination.AVG
    combine_mode: Combination = Combination.MULTIPLY
    min_score: float | None = None
    max_result: float | None = None


@dataclass(frozen=True, slots=True)
class DisjunctionMax:
    """Any of some queries. The score is the highest one, and `tie_breaker` times the others."""

    queries: tuple[Query, ...]
    tie_breaker: float = 0.0


@dataclass(frozen=True, slots=True)
class Weighted:
    """The documents of a query, with scores multiplied by a weight."""

    query: Query
    weight: float


@dataclass(frozen=True, slots=True)
class InnerHits:
    """The matching objects that a search returns: `limit` objects after the first `offset`.

    `sorters`, `highlight`: of ranking.py and hits.py. The paths of their fields begin at the objects.
    """

    sorters: tuple[Any, ...]
    offset: int = 0
    limit: int = 3
    highlight: Any = None


@dataclass(frozen=True, slots=True)
class Nested:
    """An object of the NESTED field matches a query. `mode` combines the scores of such objects. With None, the score is 0."""

    field: SearchField
    query: Query
    mode: Combination | None = Combination.AVG
    inner_hits: InnerHits | None = None


@dataclass(frozen=True, slots=True)
class Nearest:
    """The `limit` documents with the most similar vectors. Only the outermost query.

    - `filter`: a query that the documents must match.
    - `min_score`: the lowest score of a result before the weight.
    - `post_filter`: a query that results must match, so there can be less than `limit`.
    - `weight`: a factor of the scores.
    """

    field: SearchField
    vector: tuple[float, ...]
    limit: int
    filter: Query | None = None
    min_score: float | None = None
    post_filter: Query | None = None
    weight: float = 1.0


Query = (
    MatchAll
    | Terms
    | Range
    | Prefix
    | Suffix
    | Pattern
    | Match
    | Phrase
    | Exists
    | GeoBox
    | GeoDistance
    | GeoPolygon
    | Bool
    | ConstScore
    | FieldFactor
    | FunctionsScore
    | DisjunctionMax
    | Weighted
    | Nested
    | Nearest
)


def parts_of(query: Query) -> Iterator[Query]:
    """Yield a query and all queries inside it."""
    yield query
    match query:
        case Bool():
            for part in (*query.must, *query.must_not, *query.filters, *query.should):
                yield from parts_of(part)
        case Nearest():
            for inner in (query.filter, query.post_filter):
                if inner is not None:
                    yield from parts_of(inner)
        case DisjunctionMax(inner_queries):
            for part in inner_queries:
                yield from parts_of(part)
        case FunctionsScore(inner, functions):
            yield from parts_of(inner)
            for each in functions:
                if each.filter is not None:
                    yield from parts_of(each.filter)
        case ConstScore(inner) | Nested(_, inner) | FieldFactor(inner, _) | Weighted(inner, _):
            yield from parts_of(inner)


def fields_of(query: Query) -> Iterator[SearchField]:
    """Yield the fields that a query uses."""
    for part in parts_of(query):
        field = getattr(part, "field", None)
        if field is not None:
            yield field
        for each in part.functions if isinstance(part, FunctionsScore) else ():
            if each.function is not None and not isinstance(each.function, RandomValue):
                yield each.function.field


def within_objects(field: SearchField, query: Query) -> Query:
    """Return a query on the object that has a field, as a query on the document: an object must match it.

    The queries on the NESTED fields around the field use their names only.
    """
    for depth in reversed(range(len(field.ancestors))):
        name, outer = field.ancestors[depth], field.ancestors[:depth]
        query = Nested(SearchField(name, FieldType.NESTED, name, ancestors=outer), query)
    return query


def with_post_filter(query: Query, post_filter: Query) -> Query:
    """Return a query for those of its results that match a filter, with the same scores.

    Source: "Post-query filter": it is applied after the query, and before aggregations and the total count.
    """
    match query:
        case Nearest():
            return dataclasses.replace(query, post_filter=post_filter)
        case FunctionsScore(inner):
            return dataclasses.replace(query, query=with_post_filter(inner, post_filter))
    return Bool(must=(query,), filters=(post_filter,))


def min_score_of(query: Query) -> float | None:
    """Return the lowest score of the results of a search, None if all are returned."""
    return query.min_score if isinstance(query, FunctionsScore) else None


CheckTime = Callable[[], None]
"""Called for each part of a query, object and group, since one document can take minutes. Raises LimitExceeded."""


def without_limit() -> None:
    """The CheckTime of an evaluation that may take any time."""


def matches(query: Query, document: Document, check_time: CheckTime = without_limit) -> bool:
    """Return True if a document matches a query."""
    check_time()
    match query:
        case MatchAll():
            return True
        case Bool():
            return _matches_bool(query, document, check_time)
        case ConstScore(inner) | FieldFactor(inner, _) | FunctionsScore(inner) | Weighted(inner, _):
            return matches(inner, document, check_time)
        case DisjunctionMax(parts):
            return any(matches(part, document, check_time) for part in parts)
        case Nested(field, inner):
            return any(matches(inner, each, check_time) for each in document.get(field.name, ()))
        case Nearest(field, filter=inner):
            has_vector = bool(document.get(field.name))
            return has_vector and (inner is None or matches(inner, document, check_time))
        case Exists(field):
            return bool(values_in(field, document))
        case Match(field, tokens, minimum):
            return len(set(tokens).intersection(values_in(field, document))) >= minimum
        case Phrase():
            return any(has_phrase(query, text) for text in document.get(query.field.name, ()))
    return any(map(_TESTS[type(query)](query), values_in(query.field, document)))


def _matches_bool(query: Bool, document: Document, check_time: CheckTime) -> bool:
    if not all(matches(part, document, check_time) for part in (*query.must, *query.filters)):
        return False
    if any(matches(part, document, check_time) for part in query.must_not):
        return False
    if query.minimum <= 0:
        return True
    return sum(matches(part, document, check_time) for part in query.should) >= query.minimum


def has_phrase(query: Phrase, text: str) -> bool:
    """Return True if some choice of different positions for the tokens is within the slop of the phrase."""
    assert query.field.analyzer is not None
    tokens = tokens_of(query.field.analyzer, text)
    return next(phrase_starts(query.tokens, query.slop, tokens), None) is not None


def value_test(query: Query) -> Callable[[Any], bool] | None:
    """Return the test of single values that a query consists of, None if it is no such test."""
    test = _TESTS.get(type(query))
    return None if test is None else test(query)


def _terms_test(query: Terms) -> Callable[[Any], bool]:
    keys = frozenset(map(hash_key, query.values))
    return lambda value: hash_key(value) in keys


def _range_test(query: Range) -> Callable[[Any], bool]:
    def test(value: Any) -> bool:
        if query.lower is not None and not (
            value >= query.lower if query.includes_lower else value > query.lower
        ):
            return False
        return query.upper is None or (value <= query.upper if query.includes_upper else value < query.upper)

    return test


def _pattern_test(query: Pattern) -> Callable[[Any], bool]:
    regex = query.regex
    return lambda value: regex.fullmatch(value) is not None


_TESTS: Mapping[type, Callable[[Any], Callable[[Any], bool]]] = {
    Terms: _terms_test,
    Range: _range_test,
    Prefix: lambda query: lambda value: value.startswith(query.text),
    Suffix: lambda query: lambda value: value.endswith(query.text),
    Pattern: _pattern_test,
    GeoBox: lambda query: query.has,
    GeoDistance: lambda query: lambda value: field_values.distance_m(query.center, value) <= query.meters,
    GeoPolygon: lambda query: lambda value: field_values.is_in_polygon(value, query.points),
}

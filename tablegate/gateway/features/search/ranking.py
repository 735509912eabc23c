"""Scores of documents, and the order of the results of a search.

Source: the scores in aliyun-tablestore-python-sdk, tests/full_text_search_test.py, have k1 = 1.2, b = 0.75 and the factor
k1 + 1.

Each result has an order key: bytes of all its sort values and, at the end, of its primary key. Keys are unique, and their
order is the order of results. So the key of the last result is where the next page begins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from tablegate.gateway.features.search import field_values, queries
from tablegate.gateway.features.search.documents import Document, term_bytes, values_in
from tablegate.gateway.features.search.field_values import Point
from tablegate.gateway.features.search.queries import CheckTime, Query, matches, without_limit
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.features.search.score_functions import Combination
from tablegate.gateway.model.values.keys import decode_column, encode_column
from tablegate.gateway.model.values.values import Kind, Value

_K1, _B = 1.2, 0.75


class FieldStatistics(NamedTuple):
    """The number of texts of a field in an index, and of their tokens."""

    texts: int
    tokens: int


class Statistics(Protocol):
    """The statistics of an index."""

    def of_field(self, field: SearchField) -> FieldStatistics: ...

    def frequency(self, field: SearchField, token: str) -> int:
        """Return the number of documents with a token in a field."""
        ...


def score(
    query: Query, document: Document, statistics: Statistics, check_time: CheckTime = without_limit
) -> float:
    """Return the score of a document, 0 if it does not match."""
    if not matches(query, document, check_time):
        return 0.0

    def of_part(part: Query) -> float:
        return score(part, document, statistics, check_time)

    match query:
        case queries.Bool():
            return sum(of_part(part) for part in (*query.must, *query.should))
        case queries.Match(field, tokens, _):
            return _bm25(field, tokens, document, statistics)
        case queries.Phrase(field, tokens, _):
            return _bm25(field, tokens, document, statistics)
        case queries.Terms(field, values) if field.type is FieldType.TEXT:
            return _bm25(field, values, document, statistics)
        case queries.Nested():
            return _nested(query, document, statistics, check_time)
        case queries.FieldFactor(inner, field):
            factors = document.get(field.name)
            return of_part(inner) * float(factors[0]) if factors else 0.0
        case queries.FunctionsScore():
            return _with_functions(query, document, of_part(query.query), check_time)
        case queries.DisjunctionMax(parts):
            scores = [of_part(part) for part in parts if matches(part, document, check_time)]
            best = max(scores)
            return best + query.tie_breaker * (sum(scores) - best)
        case queries.Weighted(inner, weight):
            return weight * of_part(inner)
    return 1.0


def _with_functions(
    query: queries.FunctionsScore, document: Document, points: float, check_time: CheckTime
) -> float:
    """Return the score that functions make of the score of a query. An average is weighted."""
    results, weights = [], []
    for each in query.functions:
        if each.filter is None or matches(each.filter, document, check_time):
            value = 1.0 if each.function is None else each.function.of(document)
            if value is not None:
                results.append(value * each.weight)
                weights.append(each.weight)
    if not results:
        return points
    result = query.score_mode.of(results)
    if query.score_mode is Combination.AVG and sum(weights) > 0:
        result = sum(results) / sum(weights)
    if query.max_result is not None:
        result = min(result, query.max_result)
    return query.combine_mode.of([points, result])


def _bm25(field: SearchField, tokens: tuple[str, ...], document: Document, statistics: Statistics) -> float:
    found = values_in(field, document)
    counts = Counter(found)
    texts, all_tokens = statistics.of_field(field)
    relative_length = len(found) * texts / all_tokens if all_tokens > 0 else 1.0
    total = 0.0
    for token in dict.fromkeys(tokens):
        count = counts[token]
        if count:
            frequency = min(statistics.frequency(field, token), texts)
            inverse_frequency = math.log(1 + (texts - frequency + 0.5) / (frequency + 0.5))
            total += inverse_frequency * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative_length))
    return total


def _nested(
    query: queries.Nested, document: Document, statistics: Statistics, check_time: CheckTime
) -> float:
    scores = [
        score(query.query, each, statistics, check_time)
        for each in document.get(query.field.name, ())
        if matches(query.query, each, check_time)
    ]
    return 0.0 if query.mode is None else query.mode.of(scores)


_COMPLEMENT = bytes(255 - each for each in range(256))
# The complement of a present value begins with 0xFE, so a missing one is first or last in both directions.
_ABSENT, _PRESENT = b"\x00", b"\x01"
_MISSING_FIRST, _MISSING_LAST = b"\x00", b"\xff"


@dataclass(frozen=True, slots=True)
class NestedFilter:
    """The objects of a NESTED field that count in a sort."""

    field: SearchField
    query: Query


@dataclass(frozen=True, slots=True)
class FieldSort:
    """Sort by the values of a field. Documents without one have that of `other`, or the `missing` value, or are last.

    `is_missing_first`: they are first instead of last.
    """

    field: SearchField
    descending: bool = False
    mode: Combination = Combination.MIN
    missing: Any = None
    nested: NestedFilter | None = None
    other: SearchField | None = None
    is_missing_first: bool = False


@dataclass(frozen=True, slots=True)
class GeoDistanceSort:
    """Sort by the distance of the points of a field from given points."""

    field: SearchField
    points: tuple[Point, ...]
    descending: bool = False
    mode: Combination = Combination.MIN
    is_plane: bool = False
    nested: NestedFilter | None = None


@dataclass(frozen=True, slots=True)
class KeySort:
    """Sort by the primary key."""

    descending: bool = False


@dataclass(frozen=True, slots=True)
class ScoreSort:
    """Sort by the score."""

    descending: bool = True


Sorter = FieldSort | GeoDistanceSort | KeySort | ScoreSort
BY_KEY = (KeySort(),)
UNSORTED = frozenset({FieldType.TEXT, FieldType.NESTED, FieldType.GEO_POINT, FieldType.VECTOR})
"""Types of fields by whose values results cannot be sorted."""


def fields_of_sorters(sorters: Sequence[Sorter]) -> Iterator[SearchField]:
    """Yield the fields that determine an order."""
    for sorter in sorters:
        if not isinstance(sorter, KeySort | ScoreSort):
            yield sorter.field
            if isinstance(sorter, FieldSort) and sorter.other is not None:
                yield sorter.other
            if sorter.nested is not None:
                yield from queries.fields_of(sorter.nested.query)


def is_by_key(sorters: Sequence[Sorter]) -> bool:
    """Return True if the primary key alone determines the order."""
    return not sorters or isinstance(sorters[0], KeySort)


def needs_scores(sorters: Sequence[Sorter]) -> bool:
    """Return True if an order depends on scores."""
    return any(isinstance(sorter, ScoreSort) for sorter in sorters)


def order_key(
    sorters: Sequence[Sorter],
    document: Document,
    key: bytes,
    score: float = 0.0,
    check_time: CheckTime = without_limit,
) -> bytes:
    """Return the order key of a document. `key`: the bytes of its primary key."""
    parts = []
    for sorter in sorters:
        is_key = isinstance(sorter, KeySort)
        if isinstance(sorter, KeySort):
            part = key
        elif isinstance(sorter, ScoreSort):
            part = _number_bytes(score)
        else:
            part = _sort_bytes(sorter, document, check_time)
        is_missing = part in (_MISSING_FIRST, _MISSING_LAST)
        parts.append(part.translate(_COMPLEMENT) if sorter.descending and not is_missing else part)
        if is_key:
            return b"".join(parts)
    return b"".join([*parts, key])


def has_order_of_terms(sorter: FieldSort) -> bool:
    """Return True if documents have the order of their terms of a field, and each has at most one term."""
    return (
        sorter.field.type in _ORDERED_BY_TERMS
        and sorter.field.is_indexed
        and not (sorter.field.is_array or sorter.field.ancestors)
        and sorter.missing is None
        and sorter.other is None
        and not sorter.is_missing_first
    )


_ORDERED_BY_TERMS = frozenset({FieldType.KEYWORD, FieldType.LONG, FieldType.DOUBLE, FieldType.DATE})


def first_term_of(sorter: FieldSort, order_key: bytes) -> bytes | None:
    """Return the term in an order key that begins with a sorter. None if it has none, or is invalid."""
    data = order_key.translate(_COMPLEMENT) if sorter.descending else order_key
    if data[:1] != _PRESENT or order_key[:1] == _MISSING_LAST:
        return None
    if sorter.field.type is not FieldType.KEYWORD:
        return data[1:9]
    try:
        return term_bytes(sorter.field, decode_column(data, 1, Kind.TEXT)[0].data)
    except ValueError:
        return None


def _sort_bytes(sorter: FieldSort | GeoDistanceSort, document: Document, check_time: CheckTime) -> bytes:
    """Return the bytes of a sort value. No value's bytes begin with those of another one."""
    values = values_at(sorter.field, document, sorter.nested, check_time)
    if not values and isinstance(sorter, FieldSort) and sorter.other is not None:
        values = values_at(sorter.other, document, sorter.nested, check_time)
    if isinstance(sorter, GeoDistanceSort):
        values = [_distance_of(sorter, value, check_time) for value in values]
    if not values:
        if isinstance(sorter, GeoDistanceSort) or sorter.missing is None:
            is_first = isinstance(sorter, FieldSort) and sorter.is_missing_first
            return _MISSING_FIRST if is_first else _MISSING_LAST
        values = [sorter.missing]
    return _PRESENT + _value_bytes(_chosen(values, sorter.mode))


def _distance_of(sorter: GeoDistanceSort, place: Point, check_time: CheckTime) -> float:
    """Return the distance of a place from the points of a sorter."""
    check_time()
    distance = field_values.plane_distance_m if sorter.is_plane else field_values.distance_m
    found: float = _chosen([distance(point, place) for point in sorter.points], sorter.mode)
    return found


def key_bytes(key: Any, descending: bool) -> bytes:
    """Return the bytes of a part of a composite key. None is before all other keys, or after them if descending."""
    part = _ABSENT if key is None else _PRESENT + _value_bytes(key)
    return part.translate(_COMPLEMENT) if descending else part


def _value_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return encode_column(Value(Kind.TEXT, value))
    if isinstance(value, bool):
        return b"\x01" if value else b"\x00"
    return _number_bytes(value)


def _number_bytes(value: int | float) -> bytes:
    if isinstance(value, int):
        return term_bytes(_LONG, value)
    return term_bytes(_DOUBLE, value)


_LONG = SearchField("", FieldType.LONG, "")
_DOUBLE = SearchField("", FieldType.DOUBLE, "")


def values_at(
    field: SearchField,
    document: Document,
    nested: NestedFilter | None = None,
    check_time: CheckTime = without_limit,
) -> list[Any]:
    """Return the values of a field in a document, in all objects of the NESTED fields around it."""
    documents: list[Document] = [document]
    for name in field.ancestors:
        documents = [inner for outer in documents for inner in outer.get(name, ())]
        if nested is not None and nested.field.name == name:
            documents = [each for each in documents if queries.matches(nested.query, each, check_time)]
    return [value for each in documents for value in each.get(field.name, ())]


def _chosen(values: list[Any], mode: Combination) -> Any:
    has_no_average = mode is Combination.AVG and isinstance(values[0], str)
    return min(values) if has_no_average else mode.of(values)

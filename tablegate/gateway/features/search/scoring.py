"""Scores of documents: BM25 for texts, 1 for all other conditions. features/search/searching.py has those of vectors.

Source: the scores in aliyun-tablestore-python-sdk, tests/full_text_search_test.py, have k1 = 1.2, b = 0.75 and the factor
k1 + 1.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple, Protocol

from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.documents import Document, values_in
from tablegate.gateway.features.search.queries import CheckTime, Query, matches, without_limit
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.features.search.score_functions import Combination

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

"""Queries of search requests: each is a type and the serialized message of that type.

Sources: search.proto of the Java and Python SDKs, the pages of the single queries, and for the functions of a
FunctionsScoreQuery the classes of the Java SDK.
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.features.search import request_values
from tablegate.adapters.tablestore.features.search.request_values import (
    field_of,
    milliseconds_of,
    point_of,
    query_value,
    terms_of,
    typed_field,
)
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.analysis import query_tokens
from tablegate.gateway.features.search.field_values import NS_PER_MS
from tablegate.gateway.features.search.queries import FunctionsScore, Query, ScoreFunction
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.features.search.score_functions import (
    Combination,
    Decay,
    FieldValue,
    Function,
    Modifier,
    RandomValue,
    Shape,
)

_NUMBERS = (FieldType.LONG, FieldType.DOUBLE)
_PARAMETERS = {
    messages.DF_DATE_PARAM: (messages.DecayFuncDateParam, (FieldType.DATE,)),
    messages.DF_NUMERIC_PARAM: (messages.DecayFuncNumericParam, _NUMBERS),
    messages.DF_GEO_PARAM: (messages.DecayFuncGeoParam, (FieldType.GEO_POINT,)),
}
_SCORES = {
    messages.FSM_AVG: Combination.AVG,
    messages.FSM_MAX: Combination.MAX,
    messages.FSM_SUM: Combination.SUM,
    messages.FSM_MIN: Combination.MIN,
    messages.FSM_MULTIPLY: Combination.MULTIPLY,
    messages.FSM_FIRST: Combination.FIRST,
}
_COMBINATIONS = {
    messages.FCM_MULTIPLY: Combination.MULTIPLY,
    messages.FCM_AVG: Combination.AVG,
    messages.FCM_MAX: Combination.MAX,
    messages.FCM_SUM: Combination.SUM,
    messages.FCM_MIN: Combination.MIN,
    messages.FCM_REPLACE: Combination.LAST,
}


def functions_score_of(
    message: messages.FunctionsScoreQuery, schema: SearchSchema, query_of: Callable[[messages.Query], Query]
) -> FunctionsScore:
    """Return the query of a message. `query_of` parses the queries in it. Raises ServiceError."""
    if not 1 <= len(message.functions) <= limits.SCORE_FUNCTIONS_MAX:
        raise invalid(f"The number of functions must be in range: [1, {limits.SCORE_FUNCTIONS_MAX}].")
    return FunctionsScore(
        query_of(message.query),
        tuple(_function_of(each, schema, query_of) for each in message.functions),
        _SCORES[message.score_mode],
        _COMBINATIONS[message.combine_mode],
        _number(message.min_score, "min_score") if message.HasField("min_score") else None,
        _number(message.max_score, "max_score") if message.HasField("max_score") else None,
    )


def _function_of(
    message: messages.Function, schema: SearchSchema, query_of: Callable[[messages.Query], Query]
) -> ScoreFunction:
    kinds = [name for name in ("field_value_factor", "random", "decay") if message.HasField(name)]
    if len(kinds) > 1:
        raise invalid("A score function must have only one of field_value_factor, random and decay.")
    function: Function | None = None
    if kinds == ["field_value_factor"]:
        function = _field_value(message.field_value_factor, schema)
    elif kinds == ["decay"]:
        function = _decay(message.decay, schema)
    elif kinds == ["random"]:
        function = RandomValue(random.random)
    weight = _number(message.weight, "weight") if message.HasField("weight") else 1.0
    if weight < 0:
        raise invalid("The weight of a score function must not be negative.")
    return ScoreFunction(function, weight, query_of(message.filter) if message.HasField("filter") else None)


def _field_value(message: messages.FieldValueFactorFunction, schema: SearchSchema) -> FieldValue:
    return FieldValue(
        typed_field(schema, message.field_name, _NUMBERS, "function"),
        _number(message.factor, "factor") if message.HasField("factor") else 1.0,
        Modifier(messages.FunctionModifier.Name(message.modifier).removeprefix("FM_").lower()),
        _number(message.missing, "missing") if message.HasField("missing") else None,
    )


def _decay(message: messages.DecayFunction, schema: SearchSchema) -> Decay:
    kind, types = _PARAMETERS[message.param_type]
    field = typed_field(schema, message.field_name, types, "function")
    parameters: Any = parse(kind, message.param, "the parameters of the decay")
    origin, scale, offset = _place(field, parameters)
    if not (scale > 0 and offset >= 0):
        raise invalid("The scale of a decay must be greater than 0, and its offset must not be negative.")
    decay = message.decay if message.HasField("decay") else 0.5
    if not 0 < decay < 1:
        raise invalid("The decay of a decay function must be between 0 and 1.")
    return Decay(
        field,
        Shape(messages.DecayMathFunction.Name(message.math_function).lower()),
        origin,
        scale,
        offset,
        decay,
        Combination(messages.MultiValueMode.Name(message.multi_value_mode).removeprefix("MVM_").lower()),
    )


def _place(field: SearchField, parameters: Any) -> tuple[Any, float, float]:
    """Return origin, scale and offset."""
    if field.type is FieldType.DATE:
        text = parameters.origin_string if parameters.HasField("origin_string") else parameters.origin_long
        offset_ms = milliseconds_of(parameters.offset) if parameters.HasField("offset") else 0
        scale_ms = milliseconds_of(parameters.scale)
        return query_value(field, text), scale_ms * NS_PER_MS, offset_ms * NS_PER_MS
    scale, offset = _number(parameters.scale, "scale"), _number(parameters.offset, "offset")
    if field.type is FieldType.GEO_POINT:
        return point_of(parameters.origin), scale, offset
    return _number(parameters.origin, "origin"), scale, offset


def _number(number: float, name: str) -> float:
    if not math.isfinite(number):
        raise invalid(f"The {name} of a score function must be a number.")
    return number


_NESTED_SCORES = {
    messages.SCORE_MODE_NONE: None,
    messages.SCORE_MODE_AVG: Combination.AVG,
    messages.SCORE_MODE_MAX: Combination.MAX,
    messages.SCORE_MODE_TOTAL: Combination.SUM,
    messages.SCORE_MODE_MIN: Combination.MIN,
}
TEXTS = frozenset({FieldType.KEYWORD, FieldType.TEXT})
"""Types of fields with texts."""
_COMPARED = frozenset(FieldType) - {FieldType.NESTED, FieldType.GEO_POINT, FieldType.VECTOR}
_FILTERS = (queries.Terms, queries.Range, queries.Exists, queries.Bool, queries.Weighted)
_FILTERED = frozenset({FieldType.KEYWORD, FieldType.LONG, FieldType.DOUBLE})
_POLYGON_POINTS_MIN = 3
_MINIMUM = re.compile(r"(\d{1,9})(%?)", re.ASCII)


InnerHitsOf = Callable[[messages.InnerHits, SearchField], queries.InnerHits]


def query_of(query: messages.Query, schema: SearchSchema, inner_hits_of: InnerHitsOf | None = None) -> Query:
    """Return the query of a request. Raises ServiceError. `inner_hits_of` parses inner hits. None ignores them."""
    return _Parser(schema, inner_hits_of).query(query, 0)


def filter_of(query: messages.Query, schema: SearchSchema) -> Query:
    """Return a query that only selects documents, as one inside another query does. Raises ServiceError."""
    return _Parser(schema, None).query(query, 1)


def post_filter_of(query: messages.Query, schema: SearchSchema) -> Query:
    """Return the query of a SearchFilter. Raises ServiceError. Source: the limits of "Post-query filter"."""
    found = query_of(query, schema)
    for part in queries.parts_of(found):
        if not isinstance(part, _FILTERS) or (isinstance(part, queries.Bool) and part.filters):
            raise invalid(
                "A filter supports TermQuery, TermsQuery, RangeQuery, ExistsQuery and BoolQuery without filter queries."
            )
    for field in queries.fields_of(found):
        if field.type not in _FILTERED:
            raise invalid(f"The type of field '{field.name}' does not support a filter: {field.type.name}.")
    return found


class _Parser:
    """Parses the query of one request, and counts its parts."""

    def __init__(self, schema: SearchSchema, inner_hits_of: InnerHitsOf | None) -> None:
        self._schema = schema
        self._inner_hits_of = inner_hits_of
        self._number = 0

    def query(self, query: messages.Query, depth: int) -> Query:
        """Return a query at a depth. Raises ServiceError."""
        self._number += 1
        if self._number > limits.QUERIES_MAX:
            raise invalid(f"The number of queries exceeds the limit: {limits.QUERIES_MAX}.")
        if depth > limits.QUERY_DEPTH_MAX:
            raise invalid(f"The depth of queries exceeds the limit: {limits.QUERY_DEPTH_MAX}.")
        kind, parse_query = _PARSERS.get(query.type, (None, None))
        if not query.HasField("type") or kind is None or parse_query is None:
            name = messages.QueryType.Name(query.type) if query.HasField("type") else "none"
            raise invalid(f"The type of query is not supported: {name}.")
        message = parse(kind, query.query, "the query")
        return _weighted(parse_query(self, message, depth), message)

    def _field(self, name: str, types: Container[FieldType]) -> SearchField:
        return typed_field(self._schema, name, types, "query")

    def all(self, message: Any, depth: int) -> Query:
        return queries.MatchAll()

    def term(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, _COMPARED)
        return terms_of(field, [request_values.decode_variant(message.term)])

    def terms(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, _COMPARED)
        if not 1 <= len(message.terms) <= limits.TERMS_MAX:
            raise invalid(f"The number of terms must be in range: [1, {limits.TERMS_MAX}].")
        return terms_of(field, [request_values.decode_variant(term) for term in message.terms])

    def range(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, _COMPARED - {FieldType.BOOLEAN})
        lower, upper = (
            query_value(field, request_values.decode_variant(bound)) if bound else None
            for bound in (message.range_from, message.range_to)
        )
        return queries.Range(field, lower, upper, message.include_lower, message.include_upper)

    def prefix(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, TEXTS)
        return queries.Prefix(field, _checked_prefix(message.prefix))

    def suffix(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, TEXTS)
        return queries.Suffix(field, _checked_prefix(message.suffix))

    def wildcard(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, TEXTS)
        if len(message.value) > limits.WILDCARD_MAX_CHARACTERS:
            raise invalid(f"The length of a wildcard exceeds the limit: {limits.WILDCARD_MAX_CHARACTERS}.")
        return queries.Pattern(field, message.value)

    def exists(self, message: Any, depth: int) -> Query:
        return queries.Exists(field_of(self._schema, message.field_name))

    def match(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_name, TEXTS)
        is_all = message.operator == messages.AND
        return match_of(field, message.text, None if is_all else partial(_minimum_of, message))

    def phrase(self, message: Any, depth: int) -> Query:
        return phrase_of(self._field(message.field_name, TEXTS), message.text, message.slop)

    def bool(self, message: Any, depth: int) -> Query:
        must, must_not, filters, should = (
            self._all(parts, depth + 1)
            for parts in (
                message.must_queries,
                message.must_not_queries,
                message.filter_queries,
                message.should_queries,
            )
        )
        if message.HasField("minimum_should_match") or message.new_minimum_should_match:
            minimum = _minimum_of(message, len(should))
        else:
            minimum = 1 if should and not must and not filters else 0
        if minimum < 0:
            raise invalid("minimum_should_match must not be negative.")
        return queries.Bool(must, must_not, filters, should, minimum)

    def _all(self, parts: Sequence[messages.Query], depth: int) -> tuple[Query, ...]:
        return tuple(self.query(part, depth) for part in parts)

    def const_score(self, message: Any, depth: int) -> Query:
        return queries.ConstScore(self.query(message.filter, depth + 1))

    def function_score(self, message: Any, depth: int) -> Query:
        field = self._field(message.field_value_factor.field_name, (FieldType.LONG, FieldType.DOUBLE))
        return queries.FieldFactor(self.query(message.query, depth + 1), field)

    def functions_score(self, message: Any, depth: int) -> Query:
        if depth and message.HasField("min_score"):
            raise invalid("Only the outermost query can have a min_score.")
        return functions_score_of(message, self._schema, lambda query: self.query(query, depth + 1))

    def disjunction(self, message: Any, depth: int) -> Query:
        if not message.queries:
            raise invalid("The queries of a dis max query must not be empty.")
        if not 0 <= message.tie_breaker <= 1:
            raise invalid("The tie_breaker of a dis max query must be in range: [0, 1].")
        return queries.DisjunctionMax(self._all(message.queries, depth + 1), message.tie_breaker)

    def nested(self, message: Any, depth: int) -> Query:
        field = field_of(self._schema, message.path, FieldType.NESTED)
        inner_hits = None
        if message.HasField("inner_hits") and self._inner_hits_of is not None:
            inner_hits = self._inner_hits_of(message.inner_hits, field)
        inner = self.query(message.query, depth + 1)
        return queries.Nested(field, inner, _NESTED_SCORES[message.score_mode], inner_hits)

    def nearest(self, message: Any, depth: int) -> Query:
        if depth:
            raise invalid("A KNN vector query must be the outermost query.")
        field = field_of(self._schema, message.field_name, FieldType.VECTOR)
        if not 1 <= message.top_k <= limits.NEAREST_MAX:
            raise invalid(f"top_k must be in range: [1, {limits.NEAREST_MAX}].")
        vector = tuple(message.float32_query_vector)
        if len(vector) != field.dimensions or not all(map(math.isfinite, vector)):
            raise invalid(f"The query vector must have {field.dimensions} numbers.")
        filtered = self.query(message.filter, depth + 1) if message.HasField("filter") else None
        least = message.min_score if message.HasField("min_score") else None
        return queries.Nearest(field, vector, message.top_k, filtered, least)

    def geo_box(self, message: Any, depth: int) -> Query:
        field = field_of(self._schema, message.field_name, FieldType.GEO_POINT)
        return queries.GeoBox(field, point_of(message.top_left), point_of(message.bottom_right))

    def geo_distance(self, message: Any, depth: int) -> Query:
        field = field_of(self._schema, message.field_name, FieldType.GEO_POINT)
        if not (message.distance >= 0 and math.isfinite(message.distance)):
            raise invalid("The distance of a geo distance query must not be negative.")
        return queries.GeoDistance(field, point_of(message.center_point), message.distance)

    def geo_polygon(self, message: Any, depth: int) -> Query:
        field = field_of(self._schema, message.field_name, FieldType.GEO_POINT)
        if not _POLYGON_POINTS_MIN <= len(message.points) <= limits.POLYGON_POINTS_MAX:
            raise invalid(
                f"The points of a polygon must be in range: [{_POLYGON_POINTS_MIN}, {limits.POLYGON_POINTS_MAX}]."
            )
        return queries.GeoPolygon(field, tuple(point_of(point) for point in message.points))


_PARSERS: Mapping[int, tuple[type[Message], Callable[[_Parser, Any, int], Query]]] = {
    messages.MATCH_ALL_QUERY: (messages.MatchAllQuery, _Parser.all),
    messages.TERM_QUERY: (messages.TermQuery, _Parser.term),
    messages.TERMS_QUERY: (messages.TermsQuery, _Parser.terms),
    messages.RANGE_QUERY: (messages.RangeQuery, _Parser.range),
    messages.PREFIX_QUERY: (messages.PrefixQuery, _Parser.prefix),
    messages.SUFFIX_QUERY: (messages.SuffixQuery, _Parser.suffix),
    messages.WILDCARD_QUERY: (messages.WildcardQuery, _Parser.wildcard),
    messages.EXISTS_QUERY: (messages.ExistsQuery, _Parser.exists),
    messages.MATCH_QUERY: (messages.MatchQuery, _Parser.match),
    messages.MATCH_PHRASE_QUERY: (messages.MatchPhraseQuery, _Parser.phrase),
    messages.BOOL_QUERY: (messages.BoolQuery, _Parser.bool),
    messages.CONST_SCORE_QUERY: (messages.ConstScoreQuery, _Parser.const_score),
    messages.FUNCTION_SCORE_QUERY: (messages.FunctionScoreQuery, _Parser.function_score),
    messages.FUNCTIONS_SCORE_QUERY: (messages.FunctionsScoreQuery, _Parser.functions_score),
    messages.DIS_MAX_QUERY: (messages.DisMaxQuery, _Parser.disjunction),
    messages.NESTED_QUERY: (messages.NestedQuery, _Parser.nested),
    messages.KNN_VECTOR_QUERY: (messages.KnnVectorQuery, _Parser.nearest),
    messages.GEO_BOUNDING_BOX_QUERY: (messages.GeoBoundingBoxQuery, _Parser.geo_box),
    messages.GEO_DISTANCE_QUERY: (messages.GeoDistanceQuery, _Parser.geo_distance),
    messages.GEO_POLYGON_QUERY: (messages.GeoPolygonQuery, _Parser.geo_polygon),
}


def match_of(field: SearchField, text: str, minimum_of: Callable[[int], int] | None) -> Query:
    """Return the query for tokens of a text. Raises ServiceError.

    `minimum_of`: returns how many of a number of tokens must match. With None, all must.
    """
    _check_text(text)
    if field.type is FieldType.KEYWORD:
        return queries.Terms(field, (text,))
    tokens = tuple(dict.fromkeys(_tokens(field, text)))
    minimum = len(tokens) if minimum_of is None else minimum_of(len(tokens))
    return queries.Match(field, tokens, max(1, minimum))


def phrase_of(field: SearchField, text: str, slop: int = 0) -> Query:
    """Return the query for the tokens of a text in their order. Raises ServiceError."""
    _check_text(text)
    if field.type is FieldType.KEYWORD:
        return queries.Terms(field, (text,))
    if slop < 0:
        raise invalid("The slop of a match phrase query must not be negative.")
    return queries.Phrase(field, tuple(_tokens(field, text)), slop)


def _tokens(field: SearchField, text: str) -> list[str]:
    assert field.analyzer is not None
    return query_tokens(field.analyzer, text)


def _weighted(query: Query, message: Any) -> Query:
    """Return a query with the weight of its message, if that type of query has one. Raises ServiceError."""
    if "weight" not in message.DESCRIPTOR.fields_by_name or not message.HasField("weight"):
        return query
    weight: float = message.weight
    if not (weight >= 0 and math.isfinite(weight)):
        raise invalid("The weight of a query must not be negative.")
    if isinstance(query, queries.Nearest):
        return dataclasses.replace(query, weight=weight)
    return queries.Weighted(query, weight)


def _minimum_of(message: messages.MatchQuery | messages.BoolQuery, number: int) -> int:
    """Return how many of a number of parts must match. Raises ServiceError.

    The Python SDK (6.4.8) sends a text in `new_minimum_should_match`: a number, or a percentage, which is rounded down.
    """
    text = message.new_minimum_should_match
    if not text:
        return message.minimum_should_match
    match = _MINIMUM.fullmatch(text)
    if match is None:
        raise invalid(f"Invalid minimum_should_match: '{text[:64]}'. It must be a number or a percentage.")
    least = int(match[1])
    return number * least // 100 if match[2] else least


def _checked_prefix(text: str) -> str:
    if len(text.encode()) > limits.PREFIX_MAX_BYTES:
        raise invalid(f"The length of a prefix exceeds the limit: {limits.PREFIX_MAX_BYTES}.")
    return text


def _check_text(text: str) -> None:
    if len(text.encode()) > limits.QUERY_TEXT_MAX_BYTES:
        raise invalid(f"The length of a text exceeds the limit: {limits.QUERY_TEXT_MAX_BYTES}.")

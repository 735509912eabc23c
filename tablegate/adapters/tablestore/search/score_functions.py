"""Functions of a FunctionsScoreQuery. Source: the classes of the Java SDK, FunctionsScoreQuery and its functions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from tablegate.adapters.tablestore.search.date_times import milliseconds_of
from tablegate.adapters.tablestore.search.fields import point_of, query_value, typed_field
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
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

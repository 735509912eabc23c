"""VECTOR_QUERY_FLOAT32 and SCORE(): the rows of a search index with the most similar vectors.

Source: "KNN vector query of search indexes" of Tablestore's SQL. A vector query decides on all rows together, not on each
row. So it replaces the query of the search index, and the other conditions of the WHERE are evaluated on what it finds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.search.queries import query_of
from tablegate.adapters.tablestore.search.sql.conditions import candidates_of, column_with_field
from tablegate.adapters.tablestore.sql.scopes import Scope
from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.sql.trees import function_name, literal_value, own_nodes
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.queries import Nearest
from tablegate.gateway.features.search.schema import SearchSchema

NAME = "VECTOR_QUERY_FLOAT32"


class VectorQuery(NamedTuple):
    """A vector query, and the other conditions of its WHERE."""

    query: Nearest
    rest: Sequence[Any]


def has_vector_query(tree: Any) -> bool:
    """Return True if a SELECT has a vector query."""
    return any(function_name(node) == NAME for node in own_nodes(tree))


def vector_query_of(conditions: Sequence[Any], scope: Scope, limit: int | None) -> VectorQuery | None:
    """Return the vector query among the conditions that must all be true, None if there is none. Raises ServiceError.

    It finds at least as many rows as the LIMIT of the SELECT.
    """
    calls = [each for each in conditions if function_name(each) == NAME]
    if not calls:
        return None
    if len(calls) > 1:
        raise sql_error(f"A SELECT can have one {NAME}.")
    [call] = calls
    if not 3 <= len(call.expressions) <= 4:
        raise sql_error(f"Incorrect parameter count in the call to function '{NAME}'.")
    column, vector, number, *filters = call.expressions
    _, field = column_with_field(column, scope, NAME)
    top = literal_value(number)
    if type(top) is not int or not 1 <= top <= limits.NEAREST_MAX:
        raise sql_error(f"The topK of {NAME} must be a whole number from 1 to {limits.NEAREST_MAX}.")
    top = min(max(top, limit or 0), limits.NEAREST_MAX)
    message = messages.KnnVectorQuery(
        field_name=field.name, top_k=top, float32_query_vector=_numbers(literal_value(vector))
    )
    query = messages.Query(type=messages.KNN_VECTOR_QUERY, query=message.SerializeToString())
    nearest = query_of(query, SearchSchema((field,)))
    assert isinstance(nearest, Nearest)
    if filters:
        candidates = candidates_of(filters, scope, range(len(scope.columns)))
        if not candidates.is_exact:
            raise sql_error(f"The filter of {NAME} must be a condition that the search index evaluates.")
        nearest = Nearest(nearest.field, nearest.vector, nearest.limit, candidates.query)
    return VectorQuery(nearest, [each for each in conditions if each is not call])


def _numbers(text: Any) -> list[float]:
    """Return the numbers of a vector, which is the text of a JSON array. Raises ServiceError."""
    try:
        return [float(number) for number in json.loads(text)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise sql_error(f"The vector of {NAME} must be a text of numbers such as '[1.5, -2]'.") from None

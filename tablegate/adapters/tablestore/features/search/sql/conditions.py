"""Conditions and vector queries that a search index evaluates.

The row decides. A search index finds candidates, which can be too many (`candidates_of`). Every condition is then
evaluated on the row, also those that only search indexes have: `compiled` gives them the meaning of gateway/model/search.
Source: "Search index operations" of Tablestore's SQL.

VECTOR_QUERY_FLOAT32 and SCORE() find the rows with the most similar vectors. A vector query decides on all rows together,
not on each row. So it replaces the query of the search index, and the other conditions of the WHERE are evaluated on what
it finds. Source: "KNN vector query of search indexes" of Tablestore's SQL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.search.queries import TEXTS, match_of, phrase_of, query_of
from tablegate.adapters.tablestore.features.search.request_values import query_value, typed_field
from tablegate.adapters.tablestore.features.sql.scopes import (
    LiteralComparison,
    Scope,
    comparison_of,
    conjuncts,
    flat,
    function_name,
    literal_value,
    own_nodes,
)
from tablegate.adapters.tablestore.features.sql.sql_values import SqlColumn, SqlType, sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.documents import document_of
from tablegate.gateway.features.search.queries import Nearest, Query
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.model.values.values import Kind, Value

_EXACT_TYPES = {
    FieldType.LONG: SqlType.LONG,
    FieldType.DOUBLE: SqlType.DOUBLE,
    FieldType.BOOLEAN: SqlType.BOOL,
    FieldType.KEYWORD: SqlType.STRING,
}
"""Fields whose comparisons mean the same in SQL, for columns of these types."""
_NO_ELEMENTS = frozenset({FieldType.TEXT, FieldType.NESTED, FieldType.GEO_POINT, FieldType.VECTOR})


class SearchCondition(NamedTuple):
    """A condition on a column, at a place of the rows, that the field of the column evaluates."""

    place: int
    field: SearchField
    query: Query


def compiled(condition: SearchCondition, check_time: Callable[[], None]) -> Callable[[Sequence[Any]], int]:
    """Return the function that evaluates a condition on a row. `check_time`: as in queries.matches."""
    schema = SearchSchema((condition.field,))

    def value(row: Sequence[Any]) -> int:
        data = row[condition.place]
        values = {condition.field.source: Value(Kind.TEXT, data)} if isinstance(data, str) else {}
        return int(queries.matches(condition.query, document_of(schema, values), check_time))

    return value


def condition_of(tree: Any, scope: Scope) -> SearchCondition | None:
    """Return the condition that an expression is, None if it is one of plain SQL. Raises ServiceError."""
    function = _FUNCTIONS.get(function_name(tree))
    if function is not None:
        return function(tree.expressions, scope)
    condition = _element_condition(tree, scope)
    if condition is None:
        return None
    element, query = condition
    return SearchCondition(element.place, element.top, queries.within_objects(element.field, query))


def field_of(column: SqlColumn) -> SearchField | None:
    """Return the field of the search index that has the values of a column, None if there is none."""
    field = column.field
    assert field is None or isinstance(field, SearchField)
    return field


# Full-text functions


def column_with_field(tree: Any, scope: Scope, function: str) -> tuple[int, SearchField]:
    """Return the place and the field of the column that is an argument of a function. Raises ServiceError."""
    if tree.key != "column":
        raise sql_error(f"The first argument of {function} must be a column.")
    place = scope.place(tree.name, tree.table)
    field = field_of(scope.columns[place][1])
    if field is None:
        raise sql_error(f"{function} needs a column of a search index: '{tree.name[:255]}'.")
    return place, field


def _text_match(arguments: Sequence[Any], scope: Scope) -> SearchCondition:
    """TEXT_MATCH(column, text [, operator [, minimum_should_match]])."""
    texts = [literal_value(each) for each in arguments[1:]]
    if not 1 <= len(texts) <= 3 or not all(isinstance(each, (str, int)) for each in texts):
        raise sql_error("The arguments of TEXT_MATCH must be a column, a text, an operator and a number.")
    place, field = column_with_field(arguments[0], scope, "TEXT_MATCH")
    text, operator, minimum = (*map(str, texts), *("or", "1")[len(texts) - 1 :])
    if operator.lower() not in ("or", "and"):
        raise sql_error("The operator of TEXT_MATCH must be 'or' or 'and'.")
    if not (minimum.isascii() and minimum.isdigit() and len(minimum) < 9):
        raise sql_error("The minimum_should_match of TEXT_MATCH must be a whole number.")
    _check_text_field(field)
    minimum_of = None if operator.lower() == "and" else lambda number: int(minimum)
    return SearchCondition(place, field, match_of(field, text, minimum_of))


def _text_match_phrase(arguments: Sequence[Any], scope: Scope) -> SearchCondition:
    """TEXT_MATCH_PHRASE(column, text)."""
    text = literal_value(arguments[1]) if len(arguments) == 2 else None
    if not isinstance(text, str):
        raise sql_error("The arguments of TEXT_MATCH_PHRASE must be a column and a text.")
    place, field = column_with_field(arguments[0], scope, "TEXT_MATCH_PHRASE")
    _check_text_field(field)
    return SearchCondition(place, field, phrase_of(field, text))


def _check_text_field(field: SearchField) -> None:
    typed_field(SearchSchema((field,)), field.name, TEXTS, "query")


# Elements of arrays and of nested objects


class _Element(NamedTuple):
    """The field of a condition on the elements of an array or of nested objects. `top`: the field of the column."""

    place: int
    top: SearchField
    field: SearchField


def _element_of(tree: Any, scope: Scope) -> _Element | None:
    """Return the elements that ARRAY_EXTRACT(column) or `column.field` names."""
    if function_name(tree) == "ARRAY_EXTRACT" and len(tree.expressions) == 1:
        place, field = column_with_field(tree.expressions[0], scope, "ARRAY_EXTRACT")
        if not field.is_array or field.type in _NO_ELEMENTS:
            raise sql_error(f"ARRAY_EXTRACT needs an array of a search index: '{field.name}'.")
        return _Element(place, field, field)
    if tree.key != "column" or "." not in tree.name:
        return None
    for place, (owner, column) in enumerate(scope.columns):
        top = field_of(column)
        if top is None or tree.table.lower() not in ("", owner.lower()):
            continue
        inner = SearchSchema((top,)).by_name.get(tree.name)
        if inner is not None and inner.ancestors and inner.type not in _NO_ELEMENTS:
            return _Element(place, top, inner)
    return None


def _element_condition(tree: Any, scope: Scope) -> tuple[_Element, Query] | None:
    """Return a comparison of elements with literals: one element must fulfil it."""
    is_null_test = tree.key == "is"
    found = LiteralComparison("is", tree.this, []) if is_null_test else comparison_of(tree)
    element = None if found is None else _element_of(found.expression, scope)
    if found is None or element is None:
        return None
    if is_null_test and tree.expression.key == "null":
        return element, queries.Bool(must_not=(queries.Exists(element.field),))
    literals = found.literals
    if None in literals or not 1 <= len(literals) <= limits.TERMS_MAX or not element.field.is_indexed:
        raise sql_error("Elements are compared with literals only.")
    values = [query_value(element.field, each) for each in literals]
    return element, _comparison(found.operator, element.field, values)


def _comparison(kind: str, field: SearchField, values: list[Any]) -> Query:
    if kind in ("eq", "in"):
        return queries.Terms(field, tuple(values))
    if kind == "between":
        return queries.Range(field, values[0], values[1], True, True)
    if kind in ("gt", "gte"):
        return queries.Range(field, values[0], includes_lower=kind == "gte")
    return queries.Range(field, upper=values[0], includes_upper=kind == "lte")


def _nested_query(arguments: Sequence[Any], scope: Scope) -> SearchCondition:
    """NESTED_QUERY(condition): one object must fulfil the condition on its fields."""
    elements: list[_Element] = []

    def query(tree: Any, depth: int) -> Query:
        if depth > limits.QUERY_DEPTH_MAX or len(elements) >= limits.QUERIES_MAX:
            raise sql_error("NESTED_QUERY has too many conditions.")
        if tree.key == "paren":
            return query(tree.this, depth)
        if tree.key == "and":
            return queries.Bool(must=tuple(query(part, depth + 1) for part in flat(tree)))
        if tree.key == "or":
            return queries.Bool(should=tuple(query(part, depth + 1) for part in flat(tree)), minimum=1)
        if tree.key == "not":
            return queries.Bool(must_not=(query(tree.this, depth + 1),))
        found = _element_condition(tree, scope)
        if found is None:
            raise sql_error(
                "The conditions of NESTED_QUERY must compare fields of a nested column with literals."
            )
        elements.append(found[0])
        return found[1]

    if len(arguments) != 1:
        raise sql_error("NESTED_QUERY must have one condition.")
    inner = query(arguments[0], 0)
    first = elements[0]
    paths = {(element.place, element.field.ancestors) for element in elements}
    if len(paths) > 1 or not first.field.ancestors:
        raise sql_error("The conditions of NESTED_QUERY must compare fields of the same nested column.")
    return SearchCondition(first.place, first.top, queries.within_objects(first.field, inner))


def _misplaced_vector_query(arguments: Sequence[Any], scope: Scope) -> SearchCondition:
    """VECTOR_QUERY_FLOAT32, where `vector_query_of` does not expect it."""
    raise sql_error(
        "VECTOR_QUERY_FLOAT32 must be a condition that the WHERE requires, of a SELECT from one search index."
    )


_FUNCTIONS: Mapping[str, Callable[[Sequence[Any], Any], SearchCondition]] = {
    "TEXT_MATCH": _text_match,
    "TEXT_MATCH_PHRASE": _text_match_phrase,
    "NESTED_QUERY": _nested_query,
    "VECTOR_QUERY_FLOAT32": _misplaced_vector_query,
}


# Candidates


class Candidates(NamedTuple):
    """A query that finds every row that can fulfil a condition. `is_exact`: it finds no other row."""

    query: Query
    is_exact: bool


def candidates_of(conditions: Sequence[Any], scope: Scope, places: range) -> Candidates:
    """Return the candidates for conditions that must all be true, in the search index of one table.

    `places`: the positions of its columns in a row of the statement.
    """
    if not conditions:
        return Candidates(queries.MatchAll(), True)
    parts = [
        _Parser(scope, places).query(part, 0) for condition in conditions for part in conjuncts(condition)
    ]
    found = tuple(part.query for part in parts if part is not None)
    number = sum(1 for query in found for _ in queries.parts_of(query))
    if not found or number >= limits.QUERIES_MAX:
        return Candidates(queries.MatchAll(), False)
    is_exact = len(found) == len(parts) and all(part.is_exact for part in parts if part is not None)
    return Candidates(queries.Bool(filters=found), is_exact)


class _Parser:
    """Parses a condition to a query, as far as the search index can evaluate it."""

    def __init__(self, scope: Scope, places: range) -> None:
        self._scope = scope
        self._places = places

    def query(self, tree: Any, depth: int) -> Candidates | None:
        """Return the candidates for a condition, or None if any row can fulfil it."""
        if depth > limits.QUERY_DEPTH_MAX // 2:
            return None
        if tree.key == "paren":
            return self.query(tree.this, depth + 1)
        if tree.key == "or":
            return self._any(flat(tree), depth + 1)
        if tree.key == "and":
            return self._all(flat(tree), depth + 1)
        condition = condition_of(tree, self._scope)
        if condition is not None:
            is_own = condition.place in self._places
            return Candidates(condition.query, True) if is_own else None
        return self._plain(tree)

    def _any(self, parts: list[Any], depth: int) -> Candidates | None:
        found = [self.query(part, depth) for part in parts[: limits.TERMS_MAX]]
        known = [each for each in found if each is not None]
        if len(known) < len(parts):
            return None
        query = queries.Bool(should=tuple(each.query for each in known), minimum=1)
        return Candidates(query, all(each.is_exact for each in known))

    def _all(self, parts: list[Any], depth: int) -> Candidates | None:
        found = [self.query(part, depth) for part in parts[: limits.TERMS_MAX]]
        known = [each for each in found if each is not None]
        if not known:
            return None
        query = queries.Bool(filters=tuple(each.query for each in known))
        is_exact = len(parts) == len(known)
        return Candidates(query, is_exact and all(each.is_exact for each in known))

    def _plain(self, tree: Any) -> Candidates | None:
        """Return the candidates for a comparison of a column with literals."""
        this = tree.this
        if tree.key == "not" and this.key == "is" and this.expression.key == "null":
            field = self._field(this.this)
            return None if field is None else Candidates(queries.Exists(field), True)
        if tree.key == "like" and not tree.args.get("negate"):
            field = self._field(this)
            return None if field is None else _prefix(field, literal_value(tree.expression))
        found = comparison_of(tree)
        field = None if found is None else self._field(found.expression)
        if found is None or field is None:
            return None
        values = [_value_of(field, each) for each in found.literals]
        if None in values or not 1 <= len(values) <= limits.TERMS_MAX:
            return None
        if field.type is FieldType.BOOLEAN and found.operator not in ("eq", "in"):
            return None
        return Candidates(_comparison(found.operator, field, values), True)

    def _field(self, tree: Any) -> SearchField | None:
        """Return the field of a column that is compared as in SQL."""
        if getattr(tree, "key", "") != "column" or tree.this.key == "star":
            return None
        place = self._scope.place(tree.name, tree.table)
        column = self._scope.columns[place][1]
        return exact_field(column) if place in self._places else None


def exact_field(column: SqlColumn) -> SearchField | None:
    """Return the field of a column if it has the order and equality of SQL."""
    field = field_of(column)
    if field is None or field.is_array or not field.is_indexed:
        return None
    return field if _EXACT_TYPES.get(field.type) is column.type else None


def _value_of(field: SearchField, data: Any) -> Any:
    """Return a literal as a value of a field. None if SQL converts it or the value of the column."""
    match field.type:
        case FieldType.LONG:
            return data if type(data) is int and abs(data) < 2**63 else None
        case FieldType.DOUBLE:
            is_number = type(data) in (int, float) and abs(data) < 2**53
            return float(data) if is_number else None
        case FieldType.BOOLEAN:
            return data if type(data) is bool else None
    return data if type(data) is str else None


def _prefix(field: SearchField, pattern: Any) -> Candidates | None:
    if field.type is not FieldType.KEYWORD or not isinstance(pattern, str):
        return None
    prefix = ""
    for character in pattern:
        if character in "%_\\":
            break
        prefix += character
    if not prefix or len(prefix.encode()) > limits.PREFIX_MAX_BYTES:
        return None
    return Candidates(queries.Prefix(field, prefix), pattern == prefix + "%")


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

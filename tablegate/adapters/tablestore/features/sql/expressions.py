"""Compilation of expressions to functions of a row (scopes.py), with MySQL's three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tablegate.adapters.tablestore.features.sql import searches
from tablegate.adapters.tablestore.features.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.features.sql.operators import (
    ARITHMETIC,
    COMPARISONS,
    UNARY,
    WHOLE_RESULTS,
    conversion_to,
    is_match,
    like_pattern,
    search_pattern,
)
from tablegate.adapters.tablestore.features.sql.scopes import (
    PARTS,
    SCORE,
    USUAL_PARTS,
    Compiled,
    PreparedSelect,
    Row,
    Scope,
    bytes_constant,
    compiled_literal,
    constant,
    flat,
    function_name,
)
from tablegate.adapters.tablestore.features.sql.sql_values import (
    SqlType,
    checked,
    common_type,
    compare,
    converted,
    sql_error,
    to_number,
    to_text,
    truth,
)
from tablegate.adapters.tablestore.features.sql.time_functions import (
    MOVES,
    MovedTime,
    add_interval,
    interval_of_days,
    text_of_moved,
    type_of_moved,
)
from tablegate.adapters.tablestore.wire import limits
from tablegate.gateway.model.values.values import hash_key

T = SqlType


class Compiler:
    """Compiles trees of sqlglot. Subclasses give meaning to aggregates."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._methods: dict[str, Callable[[Any], Compiled]] = {
            "column": self._column,
            "literal": compiled_literal,
            "concat": lambda tree: constant(T.STRING, "".join(part.this for part in tree.expressions)),
            "hexstring": lambda tree: bytes_constant(tree.this, 16),
            "bitstring": lambda tree: bytes_constant(tree.this, 2),
            "boolean": lambda tree: constant(T.LONG, int(tree.this)),
            "null": lambda tree: constant(T.NULL, None),
            "paren": lambda tree: self.compile(tree.this),
            "and": self._and,
            "or": self._or,
            "xor": self._xor,
            "not": self._not,
            "nullsafeeq": self._nullsafeeq,
            "is": self._is,
            "between": self._between,
            "in": self._in,
            "like": self._like,
            "escape": self._escape,
            "regexplike": self._regexplike,
            "neg": self._unary,
            "bitwisenot": self._unary,
            "case": self._case,
            "cast": self._cast,
            "anonymous": self._anonymous,
            "subquery": self._subquery,
            "exists": self._exists,
        }

    def compile(self, tree: Any) -> Compiled:
        """Return the function of an expression. Raises ServiceError for one that is not supported."""
        unknown = {name for name, value in tree.args.items() if value not in (None, [], False)}
        if not unknown <= PARTS.get(tree.key, USUAL_PARTS):
            raise sql_error(f"Unsupported form of an SQL expression: {tree.key}.")
        condition = searches.installed.condition(tree, self.scope)
        if condition is not None:
            return self._timed(Compiled(T.LONG, condition))
        compiled = self._plain(tree)
        return self._timed(compiled) if tree.key in _SLOW else compiled

    def _timed(self, compiled: Compiled) -> Compiled:
        """Return an expression that checks the time of the statement, since a row can have many and each may take long."""
        check_time, own = self.scope.check_time, compiled.value

        def value(row: Row) -> Any:
            check_time()
            return own(row)

        return Compiled(compiled.type, value)

    def _plain(self, tree: Any) -> Compiled:
        method = self._methods.get(tree.key)
        if method is not None:
            return method(tree)
        if tree.key in COMPARISONS:
            return self._comparison(tree, COMPARISONS[tree.key])
        if tree.key in ARITHMETIC:
            return self._arithmetic(tree, ARITHMETIC[tree.key])
        raise sql_error(f"Unsupported SQL expression: {tree.key}.")

    # Leaves

    def _column(self, tree: Any) -> Compiled:
        place = self.scope.place(tree.name, tree.table)
        return Compiled(self.scope.columns[place][1].type, operator.itemgetter(place))

    # Logic

    def _and(self, tree: Any) -> Compiled:
        parts = [self.compile(part).value for part in flat(tree)]

        def value(row: Row) -> int | None:
            is_known = True
            for part in parts:
                is_true = truth(part(row))
                if is_true is False:
                    return 0
                is_known = is_known and is_true is not None
            return 1 if is_known else None

        return Compiled(T.LONG, value)

    def _or(self, tree: Any) -> Compiled:
        parts = [self.compile(part).value for part in flat(tree)]

        def value(row: Row) -> int | None:
            is_known = True
            for part in parts:
                is_true = truth(part(row))
                if is_true:
                    return 1
                is_known = is_known and is_true is not None
            return 0 if is_known else None

        return Compiled(T.LONG, value)

    def _xor(self, tree: Any) -> Compiled:
        left, right = self._operands(tree)

        def value(row: Row) -> int | None:
            first, second = truth(left(row)), truth(right(row))
            return None if first is None or second is None else int(first is not second)

        return Compiled(T.LONG, value)

    def _not(self, tree: Any) -> Compiled:
        part = self.compile(tree.this).value

        def value(row: Row) -> int | None:
            is_true = truth(part(row))
            return None if is_true is None else int(not is_true)

        return Compiled(T.LONG, value)

    # Predicates

    def _comparison(self, tree: Any, decide: Callable[[int], bool]) -> Compiled:
        left, right = self._operands(tree)

        def value(row: Row) -> int | None:
            order = compare(left(row), right(row))
            return None if order is None else int(decide(order))

        return Compiled(T.LONG, value)

    def _nullsafeeq(self, tree: Any) -> Compiled:
        left, right = self._operands(tree)

        def value(row: Row) -> int:
            first, second = left(row), right(row)
            return int(compare(first, second) == 0 or (first is None and second is None))

        return Compiled(T.LONG, value)

    def _is(self, tree: Any) -> Compiled:
        part, wanted = self.compile(tree.this).value, tree.expression
        if wanted.key == "null":
            return Compiled(T.LONG, lambda row: int(part(row) is None))
        if wanted.key == "boolean":
            return Compiled(T.LONG, lambda row: int(truth(part(row)) is bool(wanted.this)))
        raise sql_error("IS must be followed by NULL, TRUE or FALSE.")

    def _between(self, tree: Any) -> Compiled:
        part = self.compile(tree.this).value
        low, high = self.compile(tree.args["low"]).value, self.compile(tree.args["high"]).value

        def value(row: Row) -> int | None:
            own = part(row)
            above, below = compare(own, low(row)), compare(own, high(row))
            if (above is not None and above < 0) or (below is not None and below > 0):
                return 0
            return None if above is None or below is None else 1

        return Compiled(T.LONG, value)

    def _in(self, tree: Any) -> Compiled:
        if tree.args.get("query") is not None:
            return self._in_subquery(tree)
        part = self.compile(tree.this).value
        choices = [self.compile(each).value for each in tree.expressions]
        if not choices:
            raise sql_error("IN must be followed by a list of values.")

        def value(row: Row) -> int | None:
            own = part(row)
            orders = [compare(own, choice(row)) for choice in choices]
            return 1 if 0 in orders else None if None in orders else 0

        return Compiled(T.LONG, value)

    def _in_subquery(self, tree: Any) -> Compiled:
        part, subquery = self.compile(tree.this), _one_column(self.scope, tree.args["query"])
        is_equality = part.type is subquery.columns[0].type and part.type in (T.LONG, T.DOUBLE, T.STRING)
        constant = None if subquery.outer_places else _by_key(subquery.rows_for(()))

        def value(row: Row) -> int | None:
            own = part.value(row)
            values = _by_key(subquery.rows_for(row)) if constant is None else constant
            if own is None:
                return None if values else 0
            if is_equality:
                is_found = hash_key(own) in values
            else:
                is_found = any(compare(own, each) == 0 for each in values.values())
            return 1 if is_found else None if None in values else 0

        return Compiled(T.LONG, value)

    def _exists(self, tree: Any) -> Compiled:
        subquery = self.scope.subqueries[id(tree)]
        return Compiled(T.LONG, lambda row: int(bool(subquery.rows_for(row))))

    def _subquery(self, tree: Any) -> Compiled:
        subquery = _one_column(self.scope, tree)

        def value(row: Row) -> Any:
            rows = subquery.rows_for(row)
            if len(rows) > 1:
                raise sql_error("Subquery returns more than 1 row.")
            return rows[0][0] if rows else None

        return Compiled(subquery.columns[0].type, value)

    def _escape(self, tree: Any) -> Compiled:
        """Compile LIKE with another character than the backslash before a literal % or _."""
        like, character = tree.this, tree.expression
        is_text = character.key == "literal" and character.is_string
        if like.key != "like" or not is_text or len(character.this) > 1:
            raise sql_error("ESCAPE must be a text of at most one character after LIKE.")
        return self._like(like, character.this)

    def _like(self, tree: Any, escape: str = "\\") -> Compiled:
        matching = self._matching(tree, lambda pattern: like_pattern(pattern, escape))
        if not tree.args.get("negate"):
            return matching

        def value(row: Row) -> int | None:
            is_match = matching.value(row)
            return None if is_match is None else 1 - is_match

        return Compiled(T.LONG, value)

    def _regexplike(self, tree: Any) -> Compiled:
        return self._matching(tree, search_pattern)

    def _matching(self, tree: Any, pattern_of: Callable[[str], Any]) -> Compiled:
        left, right = self._operands(tree)

        def value(row: Row) -> int | None:
            text, pattern = to_text(left(row)), to_text(right(row))
            if text is None or pattern is None:
                return None
            return int(is_match(pattern_of(pattern), text))

        return Compiled(T.LONG, value)

    # Arithmetic

    def _arithmetic(self, tree: Any, apply: Callable[[Any, Any], Any]) -> Compiled:
        if "interval" in (tree.this.key, tree.expression.key):
            return self._moved(tree)
        left, right = self.compile(tree.this), self.compile(tree.expression)
        is_whole = all(each.type in (T.LONG, T.BOOL) for each in (left, right)) and tree.key != "div"
        first, second = left.value, right.value
        kind = T.LONG if is_whole or tree.key in WHOLE_RESULTS else T.DOUBLE

        def value(row: Row) -> Any:
            one, other = to_number(first(row)), to_number(second(row))
            if one is None or other is None:
                return None
            try:
                result = apply(one, other)
            except OverflowError:
                result = float("inf")
            return None if result is None else converted(checked(result), kind)

        return Compiled(kind, value)

    def _moved(self, tree: Any) -> Compiled:
        """Compile a moment plus or minus an interval."""
        moment, interval = tree.this, tree.expression
        if moment.key == "interval":
            moment, interval = interval, moment
        if tree.key not in ("add", "sub") or interval.key != "interval" or interval.args.get("unit") is None:
            raise sql_error("Unsupported use of INTERVAL.")
        sign = 1 if tree.key == "add" else -1
        part, number, unit = (
            self.compile(moment),
            self.compile(interval.this).value,
            interval.unit.name.upper(),
        )
        kind = type_of_moved(part.type, unit)

        def value(row: Row) -> Any:
            count = converted(to_number(number(row)), T.DOUBLE if unit == "SECOND" else T.LONG)
            if count is None:
                return None
            own = part.value(row)
            moved = add_interval(own, sign * count, unit)
            return text_of_moved(own, moved, unit) if kind is T.STRING else converted(moved, kind)

        return Compiled(kind, value)

    def _unary(self, tree: Any) -> Compiled:
        operand = tree.this
        if tree.key == "neg" and operand.key == "literal" and operand.this == _LOWEST_DIGITS:
            return constant(T.LONG, -int(_LOWEST_DIGITS))
        part = self.compile(tree.this)
        kind = T.LONG if part.type in (T.LONG, T.BOOL) or tree.key in WHOLE_RESULTS else T.DOUBLE
        apply = UNARY[tree.key]

        def value(row: Row) -> Any:
            number = to_number(part.value(row))
            return None if number is None else checked(apply(number))

        return Compiled(kind, value)

    # Choices and functions

    def _case(self, tree: Any) -> Compiled:
        subject = None if tree.this is None else self.compile(tree.this).value
        whens = [
            (self.compile(each.this).value, self.compile(each.args["true"])) for each in tree.args["ifs"]
        ]
        default = tree.args.get("default")
        other = constant(T.NULL, None) if default is None else self.compile(default)
        kind = common_type([*(then.type for _, then in whens), other.type])

        def value(row: Row) -> Any:
            own = None if subject is None else subject(row)
            for when, then in whens:
                is_met = truth(when(row)) if subject is None else compare(own, when(row)) == 0
                if is_met:
                    return converted(then.value(row), kind)
            return converted(other.value(row), kind)

        return Compiled(kind, value)

    def _cast(self, tree: Any) -> Compiled:
        part = self.compile(tree.this).value
        kind, conversion = conversion_to(tree.to)
        return Compiled(kind, lambda row: conversion(part(row)))

    def _anonymous(self, tree: Any) -> Compiled:
        name = str(tree.this).upper()
        if name in MOVES and len(tree.expressions) == 2:
            moment, interval = tree.expressions
            if interval.key != "interval" and name in ("ADDDATE", "SUBDATE"):
                interval = interval_of_days(interval)
            return self._moved(MovedTime(MOVES[name], moment, interval))
        if name == "JSON_EXTRACT" and function_name(tree.parent) != "JSON_UNQUOTE":
            raise sql_error("JSON_EXTRACT must be the argument of JSON_UNQUOTE.")
        if name == "SCORE" and not tree.expressions:
            return self._score()
        function = FUNCTIONS.get(name)
        if function is None:
            raise sql_error(f"Unsupported SQL function: {name[:64]}.")
        fewest, most = function.arguments
        if not fewest <= len(tree.expressions) <= most:
            raise sql_error(f"Incorrect parameter count in the call to function '{name}'.")
        parts = [self.compile(each) for each in tree.expressions]
        kind = function.type_of([part.type for part in parts])
        values, call, takes_null = [part.value for part in parts], function.call, function.takes_null

        def value(row: Row) -> Any:
            given = []
            length = 0
            for part in values:
                given.append(argument := part(row))
                length += len(argument) if isinstance(argument, (str, bytes)) else 0
                if length > limits.SQL_TEXT_MAX * 2:
                    raise sql_error(f"The arguments of the function '{name}' are too long.")
            if not takes_null and None in given:
                return None
            return converted(call(*given), kind)

        return Compiled(kind, value)

    def _score(self) -> Compiled:
        places = [place for place in self.scope.own if self.scope.columns[place][1] == SCORE]
        if not places:
            raise sql_error("SCORE() needs a SELECT with VECTOR_QUERY_FLOAT32.")
        return Compiled(T.DOUBLE, operator.itemgetter(places[0]))

    def _operands(self, tree: Any) -> tuple[Callable[[Row], Any], Callable[[Row], Any]]:
        return self.compile(tree.this).value, self.compile(tree.expression).value


def _by_key(rows: Sequence[Row]) -> dict[Hashable, Any]:
    """Return the different values of the first column by their keys."""
    return {hash_key(row[0]): row[0] for row in rows}


def _one_column(scope: Scope, tree: Any) -> PreparedSelect:
    subquery = scope.subqueries[id(tree)]
    if len(subquery.columns) != 1:
        raise sql_error("A subquery must have 1 column here.")
    return subquery


# The digits of the lowest BIGINT, which are above the highest one.
_LOWEST_DIGITS = "9223372036854775808"
_SLOW = frozenset({"anonymous", "escape", "like", "regexplike"})

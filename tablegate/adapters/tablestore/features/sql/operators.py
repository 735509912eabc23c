"""The operators of numbers, comparisons, CAST, LIKE and REGEXP.

Operators and comparisons have the keys of sqlglot's trees. Patterns run in RE2, in linear time. Source of the types that
CAST converts to: "Cast Functions and Operators" (MySQL 8 reference manual).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from tablegate.adapters.tablestore.features.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.features.sql.sql_values import (
    SqlType,
    checked,
    converted,
    sql_error,
    to_integer,
)
from tablegate.adapters.tablestore.wire import limits


def _whole_quotient(left: Any, right: Any) -> int | None:
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left >= 0) == (right > 0) else -quotient
    return int(checked(left / right))


def _bitwise(apply: Callable[..., int]) -> Callable[..., int]:
    """Return a function of numbers that applies one of BIGINTs to the nearest integers."""

    def function(*numbers: int | float) -> int:
        for number in numbers:
            checked(math.trunc(number))
        return apply(*map(to_integer, numbers))

    return function


COMPARISONS: dict[str, Callable[[int], bool]] = {
    "eq": lambda order: order == 0,
    "neq": lambda order: order != 0,
    "lt": lambda order: order < 0,
    "lte": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "gte": lambda order: order >= 0,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda left, right: None if right == 0 else left / right,
    "intdiv": _whole_quotient,
    "mod": FUNCTIONS["MOD"].call,
    "bitwiseand": _bitwise(operator.and_),
    "bitwiseor": _bitwise(operator.or_),
    "bitwisexor": _bitwise(operator.xor),
}
UNARY: dict[str, Callable[[Any], Any]] = {"neg": operator.neg, "bitwisenot": _bitwise(operator.invert)}
WHOLE_RESULTS = frozenset({"intdiv", "bitwisenot", "bitwiseand", "bitwiseor", "bitwisexor"})
"""Operators with an integer result for operands of every type."""


T = SqlType
_TYPES = {
    "BIGINT": T.LONG, "UBIGINT": T.LONG, "INT": T.LONG, "DOUBLE": T.DOUBLE, "FLOAT": T.DOUBLE, "DECIMAL": T.DOUBLE,
    "CHAR": T.STRING, "VARCHAR": T.STRING, "TEXT": T.STRING, "BINARY": T.BINARY, "VARBINARY": T.BINARY,
    "DATETIME": T.DATETIME, "TIMESTAMP": T.DATETIME, "TIMESTAMPTZ": T.DATETIME, "DATE": T.DATE, "TIME": T.TIME,
}  # fmt: skip
_DIGITS_DEFAULT, _DIGITS_MAX, _FRACTION_MAX = 10, 65, 30
"""Digits of a DECIMAL in all, and after the point."""
_LENGTH_MAX = 2**32 - 1


def conversion_to(wanted: Any) -> tuple[SqlType, Callable[[Any], Any]]:
    """Return the SQL type of a type of sqlglot, and the function that converts a value to it. Raises ServiceError."""
    name = wanted.this.name
    kind = _TYPES.get(name)
    if kind is None:
        raise sql_error(f"Unsupported type of a CAST: {name}.")
    sizes = [_size_of(each) for each in wanted.expressions]
    if name == "DECIMAL":
        return kind, _to_decimal(*sizes)
    if sizes and kind is T.STRING:
        return kind, lambda value: None if value is None else converted(value, kind)[: sizes[0]]
    if sizes and name == "BINARY":
        return kind, _to_binary(sizes[0])
    return kind, lambda value: converted(value, kind)


def _size_of(tree: Any) -> int:
    text = tree.name
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= _LENGTH_MAX):
        raise sql_error("The length of a type must be a whole number.")
    return int(text)


def _to_decimal(digits: int = _DIGITS_DEFAULT, fraction: int = 0) -> Callable[[Any], float | None]:
    """Return the conversion to a DECIMAL, which is rounded. A value with too many digits becomes the highest one."""
    if digits > _DIGITS_MAX or fraction > min(digits, _FRACTION_MAX):
        raise sql_error("The precision of a DECIMAL is out of range.")
    most = 10.0 ** (digits - fraction) - 10.0**-fraction

    def conversion(value: Any) -> float | None:
        number = converted(value, T.DOUBLE)
        return None if number is None else max(-most, min(most, FUNCTIONS["ROUND"].call(number, fraction)))

    return conversion


def _to_binary(length: int) -> Callable[[Any], bytes | None]:
    """Return the conversion to bytes of a length, which ends in zeros if the value is shorter."""
    if length > 255:  # of a BINARY in MySQL
        raise sql_error("The length of a BINARY is out of range.")
    return lambda value: None if value is None else converted(value, T.BINARY)[:length].ljust(length, b"\0")


_KEPT_PATTERNS = 32  # of each kind. Each may have a megabyte, for its program and the caches of the engine.


def is_match(pattern: Any, text: str) -> bool:
    """Return True if a compiled pattern is found in a text. Raises ServiceError."""
    if pattern.programsize * len(text) > limits.SQL_PATTERN_STEPS_MAX:
        raise sql_error("A pattern is too complex for a text of this length.")
    return pattern.search(text) is not None


@lru_cache(maxsize=_KEPT_PATTERNS)
def like_pattern(pattern: str, escape: str) -> Any:
    """Return a compiled pattern of LIKE: % is any text, _ any character, and `escape` quotes one. Raises ServiceError."""
    import re2

    _check_length(pattern)
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re2.escape(next(characters, escape)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re2.escape(character))
    return _compiled(r"(?s)\A(?:" + "".join(parts) + r")\z")


@lru_cache(maxsize=_KEPT_PATTERNS)
def search_pattern(pattern: str) -> Any:
    """Return a compiled regular expression. Raises ServiceError."""
    _check_length(pattern)
    return _compiled(pattern)


def _check_length(pattern: str) -> None:
    if len(pattern) > limits.SQL_PATTERN_MAX:
        raise sql_error(f"The length of a pattern exceeds the limit: {limits.SQL_PATTERN_MAX}.")


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 1 << 20
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise sql_error("Invalid pattern.") from None

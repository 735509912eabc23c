"""The types that CAST converts to, with their lengths. Source: "Cast Functions and Operators" (MySQL 8 reference manual)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tablegate.adapters.tablestore.sql.functions import FUNCTIONS
from tablegate.adapters.tablestore.sql.sql_types import SqlType, sql_error
from tablegate.adapters.tablestore.sql.sql_values import converted

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

"""Compiled expressions, and those of literals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.sql.scopes import Row
from tablegate.adapters.tablestore.sql.sql_types import SqlType, sql_error
from tablegate.adapters.tablestore.sql.sql_values import INTEGER_MAX, BytesLiteral, checked


class Compiled(NamedTuple):
    """An expression: its type, and the function that returns its value for a row."""

    type: SqlType
    value: Callable[[Row], Any]


def constant(kind: SqlType, value: Any) -> Compiled:
    """Compile a value."""
    return Compiled(kind, lambda row: value)


def compiled_literal(tree: Any) -> Compiled:
    """Compile a text or a number. One beyond BIGINT is a decimal number, and so a DOUBLE."""
    text = tree.this
    if tree.is_string:
        return constant(SqlType.STRING, text)
    if len(text) > 400:
        raise sql_error("A number is too long.")
    if text.isascii() and text.isdigit() and int(text) <= INTEGER_MAX:
        return constant(SqlType.LONG, int(text))
    return constant(SqlType.DOUBLE, checked(float(text)))


def bytes_constant(digits: str, base: int) -> Compiled:
    """Compile a literal of hexadecimal or binary digits."""
    try:
        length = -(-len(digits) * (base.bit_length() - 1) // 8)
        return constant(SqlType.BINARY, BytesLiteral(int(digits or "0", base).to_bytes(length, "big")))
    except ValueError:
        raise sql_error("Invalid digits in a literal.") from None

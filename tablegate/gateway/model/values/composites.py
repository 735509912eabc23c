"""Composite keys as one text: the keys of Table Store with three or four columns in dialects with two.

All dialects use the same form, so that a key copied from one works in another. Each column is its canonical text: text
unchanged, plain digits of a number, lower-case hexadecimal of bytes. Columns are joined by "|", with "%" and "|" inside
a column encoded as %25 and %7C. A single column is its canonical text. Different keys have different texts, and any
other text belongs to no row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.values import Kind, Value, decimal_fits, decimal_text

_CANONICAL_NUMBER = re.compile(r"-?(0|[1-9]\d{0,200})(\.\d{0,200}[1-9])?", re.ASCII)
_INT64 = range(-(2**63), 2**63)


def name_of(columns: Sequence[KeyColumn]) -> str:
    """Return the name of the composite column: "c2/c3/c4". No column of a Table Store table has "/" in its name."""
    return "/".join([column.name for column in columns])


def text_of(value: Value) -> str:
    """Return the canonical text of one key value."""
    kind, data = value
    if kind is Kind.TEXT:
        return str(data)
    if kind is Kind.BYTES:
        return bytes(data).hex()
    return decimal_text(data)


def composite_text(values: Sequence[Value]) -> str:
    """Return the values of some columns as one text, "" if there are none."""
    if len(values) == 1:
        return text_of(values[0])
    return "|".join([text_of(value).replace("%", "%25").replace("|", "%7C") for value in values])


def split(columns: Sequence[KeyColumn], text: str) -> list[Value] | None:
    """Return the values with this composite text, or None if it is no such text."""
    if len(columns) == 1:
        value = value_of(columns[0].kind, text)
        return None if value is None else [value]
    if not columns:
        return [] if text == "" else None
    parts = text.split("|")
    if len(parts) != len(columns):
        return None
    values = [
        value_of(column.kind, part.replace("%7C", "|").replace("%25", "%"))
        for column, part in zip(columns, parts, strict=True)
    ]
    known_values = [value for value in values if value is not None]
    if len(known_values) != len(columns) or composite_text(known_values) != text:
        return None
    return known_values


def value_of(kind: Kind, text: str) -> Value | None:
    """Return the key value of a kind with this canonical text, or None."""
    if kind is Kind.TEXT:
        return Value(kind, text)
    if kind is Kind.BYTES:
        try:
            data = bytes.fromhex(text)
        except ValueError:
            return None
        return Value(kind, data) if data.hex() == text else None
    if not _CANONICAL_NUMBER.fullmatch(text) or text == "-0":
        return None
    number = Decimal(text)
    if kind is Kind.INT64:
        return Value(kind, int(number)) if "." not in text and int(number) in _INT64 else None
    return Value(kind, number) if decimal_fits(number) else None

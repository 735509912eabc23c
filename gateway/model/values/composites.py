"""Several key columns as one text, and back: how dialects with two keys see the three or four of a Table Store table.

Knows the one spelling that all dialects share, so that a key copied from one is good in another: each column as its
canonical text (text as it is; plain digits of a number; lower-case hexadecimal of bytes), joined by "|", with "%" and "|"
inside a column written %25 and %7C. One column by itself is its canonical text. No two keys have the same spelling, and a
text that is not what some key would be shown as belongs to no row. Knows nothing of what dialects call these texts.
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
    """What the one text is called where it needs a name: "c2/c3/c4". No column of a Table Store table has "/" in its name."""
    return "/".join([column.name for column in columns])


def text_of(value: Value) -> str:
    """The canonical text of one key value."""
    kind, data = value
    if kind is Kind.TEXT:
        return str(data)
    if kind is Kind.BYTES:
        return bytes(data).hex()
    return decimal_text(data)


def composite_text(values: Sequence[Value]) -> str:
    """The values of some columns as one text, "" if there are none."""
    if len(values) == 1:
        return text_of(values[0])
    return "|".join([text_of(value).replace("%", "%25").replace("|", "%7C") for value in values])


def split(columns: Sequence[KeyColumn], text: str) -> list[Value] | None:
    """The values that are shown as this text, or None: no values of these columns are."""
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
    found = [value for value in values if value is not None]
    if len(found) != len(columns) or composite_text(found) != text:
        return None
    return found


def value_of(kind: Kind, text: str) -> Value | None:
    """The key value of a kind whose canonical text this is, or None."""
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

"""Values as texts in forms and tables, and back.

Documents and sets are JSON. In lists and maps each member has its type, as in stored bodies (model/values/bodies.py). A text is
read as one kind, so a value keeps its kind.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from tablegate.gateway.model.values.bodies import tagged
from tablegate.gateway.model.values.values import (
    FALSE,
    NULL,
    SETS,
    TRUE,
    Kind,
    Value,
    decimal_fits,
    decimal_text,
)

_TICKS_PER_SECOND = 10_000_000
_YEAR_1 = datetime(1, 1, 1, tzinfo=UTC)
_DATETIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,7}))?Z?", re.ASCII)
_NAMED_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_DOCUMENTS = {Kind.LIST: "L", Kind.MAP: "M"}
CUT = 40
"""Length from which a value in a table is cut and can be opened, in characters."""
EXPECTED = {kind.value: f"This must be {text}." for kind, text in {
    Kind.TEXT: "a text", Kind.DECIMAL: "a number of at most 38 digits", Kind.INT32: "a whole number of 32 bits",
    Kind.INT64: "a whole number of 64 bits", Kind.DOUBLE: "a number", Kind.BOOL: "true or false",
    Kind.BYTES: "bytes in base64", Kind.DATETIME: "a time such as 2026-01-31T08:00:00Z", Kind.GUID: "a GUID",
    Kind.NULL: "empty", Kind.LIST: 'a JSON list such as [{"S": "a"}, {"N": "1"}]',
    Kind.MAP: 'a JSON object such as {"a": {"S": "b"}}', Kind.TEXT_SET: 'a JSON list such as ["a", "b"]',
    Kind.DECIMAL_SET: "a JSON list such as [1, 2.5]", Kind.BYTES_SET: "a JSON list of texts in base64",
}.items()}  # fmt: skip
"""Kind -> what a text of it must be."""


class BadValue(ValueError):
    """A text is no value of its kind. The text says what is expected."""


def text_of(value: Value) -> str:
    """Return a value as text. `value_of` reads it."""
    kind, data = value
    match kind:
        case Kind.TEXT:
            return str(data)
        case Kind.NULL:
            return ""
        case Kind.BOOL:
            return "true" if data else "false"
        case Kind.BYTES:
            return base64.b64encode(data).decode()
        case Kind.DECIMAL | Kind.INT32 | Kind.INT64:
            return decimal_text(data)
        case Kind.DOUBLE:
            return (
                repr(data)
                if math.isfinite(data)
                else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(data)]
            )
        case Kind.DATETIME:
            return _datetime_text(data)
        case Kind.GUID:
            return str(data)
        case Kind.DECIMAL_SET:
            return f"[{', '.join(sorted(data, key=Decimal))}]"
    ((_, members),) = tagged(value).items()
    return orjson.dumps(members, option=orjson.OPT_INDENT_2 if kind in _DOCUMENTS else 0).decode()


def value_of(kind: Kind, text: str) -> Value:
    """Return the value of a kind with this text. Raises BadValue."""
    try:
        return _READERS[kind](text)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        raise BadValue(EXPECTED[kind.value]) from None


def _number(text: str) -> Decimal:
    """Return a number in the range of DynamoDB, which applies to all stored numbers. Raises ValueError."""
    try:
        found = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(text) from None
    if not found.is_finite() or not decimal_fits(found):
        raise ValueError(text)
    return found


def _whole_number(kind: Kind, bits: int) -> Callable[[str], Value]:
    def read(text: str) -> Value:
        if len(text) > 40:
            raise ValueError(text)
        number = int(text)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(text)
        return Value(kind, number)

    return read


def _double(text: str) -> Value:
    stripped = text.strip()
    number = _NAMED_DOUBLES[stripped] if stripped in _NAMED_DOUBLES else float(stripped)
    if not math.isfinite(number) and stripped not in _NAMED_DOUBLES:
        raise ValueError(text)
    return Value(Kind.DOUBLE, number)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise ValueError(text) from None


def _datetime(text: str) -> Value:
    found = _DATETIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    whole = datetime.fromisoformat(found[1]).replace(tzinfo=UTC) - _YEAR_1
    ticks = (whole.days * 86_400 + whole.seconds) * _TICKS_PER_SECOND
    return Value(Kind.DATETIME, ticks + int((found[2] or "").ljust(7, "0")))


def _datetime_text(ticks: int) -> str:
    seconds, fraction = divmod(ticks, _TICKS_PER_SECOND)
    whole = (_YEAR_1 + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    return f"{whole}.{fraction:07}".rstrip("0").rstrip(".") + "Z"


def _set_of(kind: Kind, read: Callable[[Any], Any]) -> Callable[[str], Value]:
    def reader(text: str) -> Value:
        members = json.loads(text, parse_float=str, parse_int=str)
        if not isinstance(members, list) or not members or not all(isinstance(each, str) for each in members):
            raise ValueError(text)
        return Value(kind, frozenset(map(read, members)))

    return reader


def _document(kind: Kind) -> Callable[[str], Value]:
    return lambda text: _member({_DOCUMENTS[kind]: orjson.loads(text)})


def _member(document: Any) -> Value:
    """Return the value of a JSON object with a type and a value. Raises ValueError, KeyError, AttributeError."""
    ((tag, data),) = document.items()
    kind = _MEMBERS[tag]
    match data:
        case str() if kind in (Kind.TEXT, Kind.DECIMAL, Kind.BYTES):
            return _READERS[kind](data)
        case bool() if kind is Kind.BOOL:
            return TRUE if data else FALSE
        case True if kind is Kind.NULL:
            return NULL
        case list() if kind is Kind.LIST:
            return Value(kind, tuple(map(_member, data)))
        case list() if kind in SETS:
            return _READERS[kind](orjson.dumps(data).decode())
        case dict() if kind is Kind.MAP:
            return Value(kind, {name: _member(each) for name, each in data.items()})
    raise ValueError(tag)


_MEMBERS = {
    "S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES, "BOOL": Kind.BOOL, "NULL": Kind.NULL, "L": Kind.LIST,
    "M": Kind.MAP, "SS": Kind.TEXT_SET, "NS": Kind.DECIMAL_SET, "BS": Kind.BYTES_SET,
}  # fmt: skip


_READERS: Mapping[Kind, Callable[[str], Value]] = {
    Kind.TEXT: lambda text: Value(Kind.TEXT, text),
    Kind.NULL: lambda text: {"": NULL}[text.strip()],
    Kind.BOOL: lambda text: {"true": TRUE, "false": FALSE}[text.strip().lower()],
    Kind.BYTES: lambda text: Value(Kind.BYTES, _bytes(text)),
    Kind.DECIMAL: lambda text: Value(Kind.DECIMAL, _number(text)),
    Kind.INT32: _whole_number(Kind.INT32, 32),
    Kind.INT64: _whole_number(Kind.INT64, 64),
    Kind.DOUBLE: _double,
    Kind.DATETIME: _datetime,
    Kind.GUID: lambda text: Value(Kind.GUID, UUID(text.strip())),
    Kind.TEXT_SET: _set_of(Kind.TEXT_SET, str),
    Kind.DECIMAL_SET: _set_of(Kind.DECIMAL_SET, lambda text: decimal_text(_number(text))),
    Kind.BYTES_SET: _set_of(Kind.BYTES_SET, _bytes),
    Kind.LIST: _document(Kind.LIST),
    Kind.MAP: _document(Kind.MAP),
}


def plain(value: Value) -> Any:
    """Return a value as JSON without types, for orjson. Numbers keep all digits, bytes become base64."""
    kind, data = value
    match kind:
        case Kind.NULL:
            return None
        case Kind.BOOL:
            return data
        case Kind.DECIMAL | Kind.INT32 | Kind.INT64:
            return orjson.Fragment(decimal_text(data))
        case Kind.DOUBLE:
            return data if math.isfinite(data) else text_of(value)
        case Kind.LIST:
            return [plain(each) for each in data]
        case Kind.MAP:
            return {name: plain(member) for name, member in data.items()}
        case Kind.DECIMAL_SET:
            return [orjson.Fragment(each) for each in sorted(data, key=Decimal)]
    if kind in SETS:
        return orjson.loads(text_of(value))
    return text_of(value)


class Cell(NamedTuple):
    """A value in a table: its type, its text, and the cut text if the text is too long (else "")."""

    type: str
    text: str
    short: str


def cell_of(value: Value, type_name: str, longest: int = CUT) -> Cell:
    """Return a value as a cell of a table. A text of more characters than `longest` is cut."""
    if value.kind is Kind.LIST or value.kind is Kind.MAP or value.kind in SETS:
        text = orjson.dumps(plain(value)).decode()
    else:
        text = text_of(value)
    return Cell(type_name, text, text[:longest] if len(text) > longest else "")

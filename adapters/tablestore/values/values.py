"""The gateway's values as Table Store sees them, and key columns both ways.

Table Store has five kinds of attributes (INTEGER, DOUBLE, BOOLEAN, STRING, BINARY) and three of keys. What another dialect
wrote is shown exactly or as text, never rounded; NULL is shown as no column at all. Total in both directions.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation

import orjson

from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.model import bodies
from gateway.model.keys import KeyColumn
from gateway.model.rows import Contents, Row
from gateway.model.values import Kind, Value, decimal_fits, decimal_text

WIRE_KINDS = frozenset({Kind.INT64, Kind.DOUBLE, Kind.BOOL, Kind.TEXT, Kind.BYTES})
"""Kinds that travel as they are."""

WIRE_TAGS = frozenset({"I64", "D", "BOOL", "S", "B"})
"""The tags of those kinds in bodies (gateway/model/bodies.py)."""

SHOWN_KINDS = frozenset(Kind) - {Kind.NULL}
"""Kinds that Table Store shows as a column."""

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_ZERO_TICKS = datetime(1, 1, 1)

TYPE_NAMES = {
    Kind.INT64: "INTEGER",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOL: "BOOLEAN",
    Kind.TEXT: "STRING",
    Kind.BYTES: "BLOB",
}
"""What error texts call a type, after `VT_`."""


def view(value: Value) -> Value:
    """How Table Store sees a stored value; NULL stays NULL, and whoever renders leaves it out."""
    kind, data = value
    if kind in WIRE_KINDS or kind is Kind.NULL:
        return value
    if kind is Kind.DECIMAL:
        return _view_decimal(data)
    if kind is Kind.INT32:
        return Value(Kind.INT64, data)
    if kind is Kind.DATETIME:
        return Value(Kind.TEXT, datetime_text(data))
    if kind is Kind.GUID:
        return Value(Kind.TEXT, str(data))
    return Value(Kind.TEXT, orjson.dumps(bodies.tagged(value)).decode())


def index_view(value: Value, is_partition: bool) -> Value | None:
    """How an index that Table Store made reads a key column."""
    return None if value.kind is Kind.NULL else view(value)


def _view_decimal(number: Decimal) -> Value:
    if number == number.to_integral_value() and INT64_MIN <= number <= INT64_MAX:
        return Value(Kind.INT64, int(number))
    approximate = float(number)
    if math.isfinite(approximate) and Decimal(repr(approximate)) == number:
        return Value(Kind.DOUBLE, approximate)
    return Value(Kind.TEXT, decimal_text(number))


def datetime_text(ticks: int) -> str:
    """ISO 8601 with the seven digits that ticks of 100 ns since the year 1 need."""
    seconds, rest = divmod(ticks, 10_000_000)
    return f"{(_ZERO_TICKS + timedelta(seconds=seconds)).isoformat()}.{rest:07d}Z"


def restored(old: Row | None, contents: Contents, key_names: tuple[str, ...]) -> Contents:
    """What was written back exactly as it had been shown keeps the kind it is stored with."""
    if old is None or all(WIRE_TAGS.issuperset(member) for member in old.contents.members.values()):
        return contents
    before = old.latest
    kept = {
        name: before[name]
        for name, value in contents.latest.items()
        if name in before and before[name].kind not in WIRE_KINDS and view(before[name]) == value
    }
    return contents.replacing(kept, key_names) if kept else contents


DEFINED_KINDS: dict[int, Kind] = {
    messages.DCT_INTEGER: Kind.INT64,
    messages.DCT_DOUBLE: Kind.DOUBLE,
    messages.DCT_BOOLEAN: Kind.BOOL,
    messages.DCT_STRING: Kind.TEXT,
    messages.DCT_BLOB: Kind.BYTES,
}


# Keys

_KEY_TYPES = {
    Kind.INT64: messages.INTEGER,
    Kind.TEXT: messages.STRING,
    Kind.BYTES: messages.BINARY,
    Kind.DECIMAL: messages.STRING,
}
KEY_KINDS = {messages.INTEGER: Kind.INT64, messages.STRING: Kind.TEXT, messages.BINARY: Kind.BYTES}


def key_type(column: KeyColumn) -> messages.PrimaryKeyType:
    """The type under which Table Store knows a key column. A DECIMAL one (DynamoDB's N) is shown as its text."""
    return _KEY_TYPES[column.kind]


def key_kind_shown(column: KeyColumn) -> Kind:
    """The kind that values of a key column have on the wire."""
    return Kind.TEXT if column.kind is Kind.DECIMAL else column.kind


def key_value_shown(value: Value) -> Value:
    """A key value as it travels."""
    return Value(Kind.TEXT, decimal_text(value.data)) if value.kind is Kind.DECIMAL else value


def key_value_stored(column: KeyColumn, value: Value) -> Value | None:
    """A key value that has travelled (of the kind shown) as it is stored; None if it is no value of the column."""
    if column.kind is not Kind.DECIMAL:
        return value
    try:
        number = Decimal(value.data)
    except InvalidOperation:
        return None
    if not number.is_finite() or not decimal_fits(number):
        return None
    return Value(Kind.DECIMAL, number)

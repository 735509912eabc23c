"""The view of Table Store on stored values: exact, or as text, never rounded.

Separate from values.py because indexes need it before the rest of the dialect is loaded.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import orjson

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value, decimal_text, double_of

WIRE_KINDS = frozenset({Kind.INT64, Kind.DOUBLE, Kind.BOOL, Kind.TEXT, Kind.BYTES})
"""Kinds that the wire format has."""

_ZERO_TICKS = datetime(1, 1, 1)


def view(value: Value) -> Value:
    """Return a stored value as Table Store shows it. NULL stays NULL, and renderers omit it."""
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
    """Return the value of a key column for an index of Table Store."""
    return None if value.kind is Kind.NULL else view(value)


def _view_decimal(number: Decimal) -> Value:
    if number == number.to_integral_value() and INT64_MIN <= number <= INT64_MAX:
        return Value(Kind.INT64, int(number))
    double = double_of(number)
    return Value(Kind.TEXT, decimal_text(number)) if double is None else Value(Kind.DOUBLE, double)


def datetime_text(ticks: int) -> str:
    """Return ISO 8601 with seven fractional digits, for ticks of 100 ns since the year 1."""
    seconds, rest = divmod(ticks, 10_000_000)
    return f"{(_ZERO_TICKS + timedelta(seconds=seconds)).isoformat()}.{rest:07d}Z"

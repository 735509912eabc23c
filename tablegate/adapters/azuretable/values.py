"""Conversion of values: JSON with OData types <-> Value, total in both directions.

`read` parses input with every tolerance of the service. `view` converts values of the other dialects to their form in
Azure: exactly, or as text, never rounded. `SPELLINGS` renders a converted value.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson

from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal_text, double_of

TICKS_PER_SECOND = 10_000_000
TICKS_PER_DAY = 86_400 * TICKS_PER_SECOND
UNIX_EPOCH_TICKS = (date(1970, 1, 1).toordinal() - 1) * TICKS_PER_DAY

_MIN_TICKS = (date(limits.DATETIME_MIN_YEAR, 1, 1).toordinal() - 1) * TICKS_PER_DAY
_MAX_TICKS = date.max.toordinal() * TICKS_PER_DAY - 1
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,7})\d*)?)?)?(?:([Zz])|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?\d{1,30}", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NAMED_DOUBLES = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}


# From the wire


Read = Callable[[Any, Any], Value | None]
"""Return the value of a JSON member with its `@odata.type`. None for null. Raises ServiceError."""


def read(wire: Any, edm: Any) -> Value | None:
    """Return the value of a member for Storage (Read). Raises ServiceError InvalidInput, PropertyValueTooLarge."""
    value = read_of_any_size(wire, edm)
    if value is not None:
        kind, data = value
        if kind is Kind.TEXT:
            is_long = len(data) > limits.STRING_MAX_UNITS // 2 and utf16_units(data) > limits.STRING_MAX_UNITS
        else:
            is_long = kind is Kind.BYTES and len(data) > limits.BINARY_MAX_BYTES
        if is_long:
            raise ServiceError("PropertyValueTooLarge")
    return value


def read_of_any_size(wire: Any, edm: Any) -> Value | None:
    """Return the value of a member, which may have any size (Read). Raises ServiceError InvalidInput."""
    if wire is None:
        return None
    if edm is not None:
        reader = _READERS.get(edm) if isinstance(edm, str) else None
        if reader is None:
            raise ServiceError("InvalidInput")
        return reader(wire)
    if isinstance(wire, str):
        return _read_string(wire)
    if isinstance(wire, bool):
        return TRUE if wire else FALSE
    if isinstance(wire, int):
        return _read_int32(wire)
    if isinstance(wire, float):
        return _read_double(wire)
    raise ServiceError("InvalidInput")  # arrays and objects


def _read_string(wire: Any) -> Value:
    if not isinstance(wire, str):
        raise ServiceError("InvalidInput")
    return Value(Kind.TEXT, wire)


def _read_int32(wire: Any) -> Value:
    return Value(Kind.INT32, _integer(wire, _INT32))


def _read_int64(wire: Any) -> Value:
    return Value(Kind.INT64, _integer(wire, _INT64))


def _integer(wire: Any, valid_range: range) -> int:
    if isinstance(wire, str) and _INTEGER.fullmatch(wire):
        wire = int(wire)
    if not isinstance(wire, int) or isinstance(wire, bool) or wire not in valid_range:
        raise ServiceError("InvalidInput")
    return wire


def _read_double(wire: Any) -> Value:
    if isinstance(wire, str):
        if wire in _NAMED_DOUBLES:
            return Value(Kind.DOUBLE, _NAMED_DOUBLES[wire])
        if not _DOUBLE.fullmatch(wire):
            raise ServiceError("InvalidInput")
    elif not isinstance(wire, int | float) or isinstance(wire, bool):
        raise ServiceError("InvalidInput")
    try:
        number = float(wire)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ServiceError("InvalidInput")
    return Value(Kind.DOUBLE, number)


def _read_boolean(wire: Any) -> Value:
    if isinstance(wire, str) and wire.lower() in ("true", "false"):
        wire = wire.lower() == "true"
    if not isinstance(wire, bool):
        raise ServiceError("InvalidInput")
    return TRUE if wire else FALSE


def _read_datetime(wire: Any) -> Value:
    ticks = parse_datetime(wire) if isinstance(wire, str) else None
    if ticks is None:
        raise ServiceError("InvalidInput")
    return Value(Kind.DATETIME, ticks)


def _read_guid(wire: Any) -> Value:
    if not isinstance(wire, str) or not _GUID.fullmatch(wire):
        raise ServiceError("InvalidInput")
    return Value(Kind.GUID, UUID(wire))


def _read_binary(wire: Any) -> Value:
    if not isinstance(wire, str):
        raise ServiceError("InvalidInput")
    try:
        data = base64.b64decode(wire, validate=True)
    except (binascii.Error, ValueError):
        raise ServiceError("InvalidInput") from None
    return Value(Kind.BYTES, data)


_READERS: dict[str, Callable[[Any], Value]] = {
    "Edm.String": _read_string,
    "Edm.Int32": _read_int32,
    "Edm.Int64": _read_int64,
    "Edm.Double": _read_double,
    "Edm.Boolean": _read_boolean,
    "Edm.DateTime": _read_datetime,
    "Edm.Guid": _read_guid,
    "Edm.Binary": _read_binary,
}


def utf16_units(text: str) -> int:
    """Return the length in UTF-16 code units, in which the service measures text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse_datetime(text: str) -> int | None:
    """Return an ISO 8601 time in ticks of 100 ns since 0001-01-01.

    None if invalid or outside of 1601-01-01 .. 9999-12-31.

    A time without an offset is in UTC.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, offset_hours, offset_minutes = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - 1
    except ValueError:
        return None
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    ticks = days * TICKS_PER_DAY + (hours * 3600 + minutes * 60 + seconds) * TICKS_PER_SECOND
    if fraction:
        ticks += int(fraction.ljust(7, "0"))
    if sign:
        offset = (int(offset_hours) * 60 + int(offset_minutes)) * 60 * TICKS_PER_SECOND
        ticks += -offset if sign == "+" else offset
    return ticks if _MIN_TICKS <= ticks <= _MAX_TICKS else None


# To the wire


def datetime_text(ticks: int) -> str:
    """Return a DateTime in .NET's form: up to seven digits of a second, without trailing zeros."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second_text(seconds)}.{fraction:07}".rstrip("0").rstrip(".") + "Z"


def timestamp_text(ticks: int) -> str:
    """Return a time with all seven digits, for `Timestamp` and ETags."""
    seconds, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second_text(seconds)}.{fraction:07}Z"


@lru_cache(maxsize=4096)
def _second_text(seconds: int) -> str:
    days, of_day = divmod(seconds, 86_400)
    minutes, second = divmod(of_day, 60)
    hour, minute = divmod(minutes, 60)
    return f"{date.fromordinal(days + 1).isoformat()}T{hour:02}:{minute:02}:{second:02}"


def _double_json(number: float) -> float | str:
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def view(value: Value) -> Value:
    """Return the form of a stored value in Azure.

    Numbers get the narrowest type that holds them exactly, documents become typed JSON text. NULL stays NULL, which
    Azure shows as an absent property.
    """
    kind = value.kind
    if kind in _OWN:
        return value
    if kind is Kind.DECIMAL:
        return _view_decimal(value.data)
    if kind is Kind.NULL:
        return NULL
    return Value(Kind.TEXT, orjson.dumps(bodies.tagged(value)).decode())


def _view_decimal(number: Decimal) -> Value:
    if -20 < number.adjusted() < 20 and number == number.to_integral_value():
        integer = int(number)
        if integer in _INT32:
            return Value(Kind.INT32, integer)
        if integer in _INT64:
            return Value(Kind.INT64, integer)
    double = double_of(number)
    return Value(Kind.TEXT, decimal_text(number)) if double is None else Value(Kind.DOUBLE, double)


_OWN = frozenset(
    {
        Kind.TEXT,
        Kind.BYTES,
        Kind.BOOL,
        Kind.INT32,
        Kind.INT64,
        Kind.DOUBLE,
        Kind.DATETIME,
        Kind.GUID,
    }
)


def _identity(data: Any) -> Any:
    return data


SPELLINGS: dict[Kind, tuple[str | None, Callable[[Any], Any]]] = {
    Kind.TEXT: (None, _identity),
    Kind.BOOL: (None, _identity),
    Kind.INT32: (None, _identity),
    Kind.DOUBLE: ("Edm.Double", _double_json),  # annotated only if the JSON is a string
    Kind.INT64: ("Edm.Int64", str),
    Kind.DATETIME: ("Edm.DateTime", datetime_text),
    Kind.GUID: ("Edm.Guid", str),
    Kind.BYTES: ("Edm.Binary", lambda data: base64.b64encode(data).decode()),
}
"""Kind -> (`@odata.type` if JSON does not show the type, function from data to JSON)."""


def spell(value: Value) -> tuple[Any, str | None]:
    """Return the JSON of a value in Azure, and its `@odata.type` if needed. (None, None) for a hidden value."""
    kind, data = view(value)
    if kind is Kind.NULL:
        return None, None
    edm, write = SPELLINGS[kind]
    wire = write(data)
    return wire, edm if isinstance(wire, str) else None


def spell_tagged(tag: str, data: Any) -> tuple[Any, str | None]:
    """Return the result of `spell` for a member of a row's body (gateway/model/values/bodies.py).

    Most members need no decoding.
    """
    writer = _TAGGED.get(tag)
    return writer(data) if writer is not None else spell(bodies.untagged({tag: data}))


_TAGGED: dict[str, Callable[[Any], tuple[Any, str | None]]] = {
    "S": lambda data: (data, None),
    "BOOL": lambda data: (data, None),
    "I32": lambda data: (int(data), None),
    "I64": lambda data: (data, "Edm.Int64"),
    "DT": lambda data: (datetime_text(int(data)), "Edm.DateTime"),
    "G": lambda data: (data, "Edm.Guid"),
    "B": lambda data: (data, "Edm.Binary"),
}


def size_bytes(value: Value) -> int:
    """Return the bytes that a value counts towards the 1 MiB of an entity.

    Source: "How to calculate the size of an entity", Windows Azure Storage Team Blog; docs/protocols/azure-table.md
    rule 6.7.
    """
    kind, data = value
    match kind:
        case Kind.TEXT:
            return 2 * utf16_units(data) + 4
        case Kind.BYTES:
            return len(data) + 4
        case Kind.INT32:
            return 4
        case Kind.GUID:
            return 16
        case Kind.BOOL:
            return 1
        case Kind.INT64 | Kind.DOUBLE | Kind.DATETIME:
            return 8
        case _:
            return size_bytes(view(value)) if kind is not Kind.NULL else 0

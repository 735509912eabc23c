"""Values in search requests: fields, variants, lengths of time, and tokens.

A variant is a scalar: a tag byte, then the value, in little-endian order. 0: INTEGER of 64 bits. 1: DOUBLE. 2: BOOLEAN of
one byte. 3: STRING in UTF-8 after its length of 32 bits. A token is a text with parts of any kind, which are checked
when they come back.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Container, Sequence
from typing import Any

import orjson

from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.aggregations import DateIntervals
from tablegate.gateway.features.search.documents import query_value_of
from tablegate.gateway.features.search.field_values import Point
from tablegate.gateway.features.search.queries import Bool, Query, Range, Terms
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.features.search.search_commands import SearchPosition


def field_of(schema: SearchSchema, name: str, expected: FieldType | None = None) -> SearchField:
    """Return the field with a name, of the expected type if one is given. Raises ServiceError."""
    field = schema.by_name.get(name)
    if field is None:
        raise invalid(f"field: {name} does not exist")
    if not field.is_indexed:
        raise invalid(f"field: {name} is not indexed")
    if expected is not None and field.type is not expected:
        raise invalid(f"The type of field '{name}' must be {expected.name}.")
    return field


def typed_field(schema: SearchSchema, name: str, types: Container[FieldType], user: str) -> SearchField:
    """Return a field of one of the types that a query or a function supports. `user`: either, for the error text."""
    field = field_of(schema, name)
    if field.type not in types:
        raise invalid(f"The type of field '{name}' does not support the {user}: {field.type.name}.")
    return field


def query_value(field: SearchField, data: Any) -> Any:
    """Return a value for a field. Raises ServiceError if it does not fit."""
    value = query_value_of(field, data)
    if value is None:
        raise invalid(f"The value does not match the type of field '{field.name}': {field.type.name}.")
    return value


def terms_of(field: SearchField, terms: Sequence[Any]) -> Query:
    """Return the query for values of a field. Raises ServiceError.

    A term of an IP field may be a block of addresses. Source: "IP data type".
    """
    values: list[Any] = []
    parts: list[Query] = []
    for term in terms:
        is_address = field.type is FieldType.IP and isinstance(term, str)
        block = field_values.address_block(term) if is_address else None
        if block is None:
            values.append(query_value(field, term))
        else:
            parts.append(Range(field, *block, includes_lower=True, includes_upper=True))
    if values:
        parts.append(Terms(field, tuple(values)))
    return parts[0] if len(parts) == 1 else Bool(should=tuple(parts), minimum=1)


def point_of(text: str) -> Point:
    """Return the point of "latitude,longitude". Raises ServiceError."""
    point = field_values.point_of(text)
    if point is None:
        raise invalid(f"Invalid geo point: '{text[:64]}'.")
    return point


_INTEGER, _DOUBLE, _BOOLEAN, _STRING = 0, 1, 2, 3


def encode_variant(value: int | float | bool | str) -> bytes:
    """Return the variant of a value."""
    if isinstance(value, bool):
        return bytes((_BOOLEAN, value))
    if isinstance(value, int):
        return bytes((_INTEGER,)) + struct.pack("<q", value)
    if isinstance(value, float):
        return bytes((_DOUBLE,)) + struct.pack("<d", value)
    data = value.encode()
    return bytes((_STRING,)) + struct.pack("<I", len(data)) + data


def decode_variant(data: bytes) -> Any:
    """Return the int, float, bool or str of a variant. Raises ServiceError."""
    tag, body = data[:1], data[1:]
    try:
        if tag == bytes((_INTEGER,)):
            return struct.unpack("<q", body)[0]
        if tag == bytes((_DOUBLE,)):
            return struct.unpack("<d", body)[0]
        if tag == bytes((_BOOLEAN,)) and len(body) == 1:
            return body != b"\x00"
        if tag == bytes((_STRING,)):
            [length] = struct.unpack("<I", body[:4])
            if length == len(body) - 4:
                return body[4:].decode()
    except (struct.error, UnicodeDecodeError):
        pass
    raise invalid("Invalid variant value in the query.")


_DAY_MS = 86_400_000
_MILLISECONDS = {
    messages.WEEK: 7 * _DAY_MS,
    messages.DAY: _DAY_MS,
    messages.HOUR: 3_600_000,
    messages.MINUTE: 60_000,
    messages.SECOND: 1000,
    messages.MILLISECOND: 1,
}
_MONTHS = {messages.YEAR: 12, messages.QUARTER_YEAR: 3, messages.MONTH: 1}
_ZONE = re.compile(r"([+-])([01]\d):([0-5]\d)", re.ASCII)


def milliseconds_of(value: messages.DateTimeValue) -> int:
    """Return the milliseconds of a number of weeks or smaller units. Raises ServiceError."""
    if not value.HasField("unit") or value.unit not in _MILLISECONDS:
        raise invalid("The unit of the time must be WEEK, DAY, HOUR, MINUTE, SECOND or MILLISECOND.")
    return value.value * _MILLISECONDS[value.unit]


def date_intervals(body: messages.GroupByDateHistogram) -> DateIntervals:
    """Return the intervals of a request. Raises ServiceError."""
    value = body.interval
    if not value.HasField("unit") or value.value <= 0:
        raise invalid("[group_by_date_histogram] interval must be greater than 0.")
    shift_ms = _zone_ms(body.time_zone) - (milliseconds_of(body.offset) if body.HasField("offset") else 0)
    if value.unit in _MONTHS:
        return DateIntervals(value.value * _MONTHS[value.unit], 0, shift_ms)
    if value.unit == messages.WEEK:
        return DateIntervals.of_weeks(value.value, shift_ms)
    return DateIntervals(0, milliseconds_of(value), shift_ms)


def _zone_ms(zone: str) -> int:
    if not zone:
        return 0
    match: Any = _ZONE.fullmatch(zone)
    if match is None:
        raise invalid("[group_by_date_histogram] time_zone must have the form +hh:mm or -hh:mm.")
    sign, hours, minutes = match.groups()
    return (int(hours) * 60 + int(minutes)) * (-60_000 if sign == "-" else 60_000)


def encode_token(*parts: Any) -> bytes:
    """Return a token of numbers, texts and bytes."""
    members = [part.hex() if isinstance(part, bytes) else part for part in parts]
    return base64.urlsafe_b64encode(orjson.dumps(members))


def decode_token(token: bytes) -> list[Any]:
    """Return the parts of a token, bytes as hexadecimal text. Raises ValueError."""
    parts = orjson.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    if not isinstance(parts, list):
        raise ValueError(parts)
    return parts


def index_id_of(token: bytes) -> int | None:
    """Return the id of the index of a token, its first part. None for another text."""
    try:
        first = decode_token(token)[0]
    except (ValueError, IndexError):
        return None
    return first if isinstance(first, int) else None


def position_of(parts: list[Any]) -> SearchPosition:
    """Return the position in the last parts of a token. Raises ValueError."""
    if len(parts) != len(SearchPosition._fields) or not all(isinstance(part, str) for part in parts):
        raise ValueError(parts)
    return SearchPosition(*map(bytes.fromhex, parts))

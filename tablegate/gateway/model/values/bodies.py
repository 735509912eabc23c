"""Encoding of row contents as body bytes: canonical typed JSON, with DynamoDB's tags for the kinds that DynamoDB has.

    {"id": {"S": "a"}, "n": {"N": "1.5"}, "tags": {"SS": ["x", "y"]}, "seen": {"DT": "638000000000000000"}}

Tags of the other dialects' kinds: I32, I64, D (double, shortest round-trip text), DT (ticks of 100 ns), G (GUID).
Numbers are in plain digits, set members are sorted, and attributes keep their order. A body with DynamoDB's own kinds
equals DynamoDB's answer byte for byte, and is copied into replies without decoding.

The module is in the model and not in the store, because adapters can build bodies themselves.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal_text, number_set

_SLICE_BYTES = 256 << 10
"""Bytes that are searched at a time. One search of a large text would keep the other threads waiting for 10 ms."""


def count(text: bytes, mark: bytes) -> int:
    """Return how often a short mark that does not overlap itself occurs in a text."""
    beyond = _SLICE_BYTES + len(mark) - 1
    return sum(text.count(mark, at, at + beyond) for at in range(0, len(text), _SLICE_BYTES))


def contains(text: bytes, mark: bytes) -> bool:
    """Return True if a short mark occurs in a text."""
    beyond = _SLICE_BYTES + len(mark) - 1
    return any(text.find(mark, at, at + beyond) >= 0 for at in range(0, len(text), _SLICE_BYTES))


def has_at_most(max_nodes: int, text: bytes) -> bool:
    """Return True if JSON has at most `max_nodes` objects, arrays and members, by a count of `{`, `[` and `,` outside strings.

    It takes a few nanoseconds for each byte and creates no objects, so it can be called before a text is parsed.
    """
    if len(text) <= max_nodes or _nodes(text) <= max_nodes:
        return True
    if b"\\" in text:  # no remaining backslash precedes a quotation mark
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if count(text, b'"') > 4 * (max_nodes + 1):  # a member has at most two strings: its name and its value
        return False
    return _nodes(b"".join(text.split(b'"')[::2])) <= max_nodes


def _nodes(text: bytes) -> int:
    return count(text, b"{") + count(text, b"[") + count(text, b",")


FOREIGN = frozenset({Kind.INT32, Kind.INT64, Kind.DOUBLE, Kind.DATETIME, Kind.GUID})


def encode(values: Mapping[str, Value]) -> bytes:
    """Return the body of a row with these attributes."""
    return orjson.dumps({name: tagged(value) for name, value in values.items()})


def decode(body: bytes) -> dict[str, Value]:
    """Return the attributes of a body."""
    return untagged_all(orjson.loads(body))


def untagged_all(members: Mapping[str, Mapping[str, Any]]) -> dict[str, Value]:
    """Return the values of tagged objects by name."""
    values: dict[str, Value] = {}
    for name, member in members.items():
        for tag, data in member.items():
            # The two most frequent kinds without a call: pages of Table Store are decoded row by row.
            if tag == "S":
                values[name] = _new(Value, (Kind.TEXT, data))
            elif tag == "I64":
                values[name] = _new(Value, (Kind.INT64, int(data)))
            else:
                values[name] = _READERS[tag](data)
    return values


_new = tuple.__new__  # creates a named tuple in half the time of its own constructor


def is_native(values: Mapping[str, Value]) -> bool:
    """Return True if every attribute is of a kind that DynamoDB has. Nested values always are."""
    return not any(value.kind in FOREIGN for value in values.values())


def is_foreign(value: Value) -> bool:
    """Return True if an attribute is of a kind that DynamoDB lacks."""
    return value.kind in FOREIGN


def tagged(value: Value) -> dict[str, Any]:
    """Return a value as a tagged object with one member."""
    kind, data = value
    match kind:
        case Kind.TEXT:
            return {"S": data}
        case Kind.DECIMAL:
            return {"N": decimal_text(data)}
        case Kind.BYTES:
            return {"B": base64.b64encode(data).decode()}
        case Kind.BOOL:
            return {"BOOL": data}
        case Kind.NULL:
            return {"NULL": True}
        case Kind.MAP:
            return {"M": {name: tagged(member) for name, member in data.items()}}
        case Kind.LIST:
            return {"L": [tagged(member) for member in data]}
        case Kind.TEXT_SET:
            return {"SS": sorted(data)}
        case Kind.DECIMAL_SET:
            return {"NS": sorted(data, key=Decimal)}
        case Kind.BYTES_SET:
            return {"BS": [base64.b64encode(member).decode() for member in sorted(data)]}
        case Kind.INT32:
            return {"I32": str(data)}
        case Kind.INT64:
            return {"I64": str(data)}
        case Kind.DOUBLE:
            return {"D": repr(data)}
        case Kind.DATETIME:
            return {"DT": str(data)}
        case Kind.GUID:
            return {"G": str(data)}


def untagged(member: Mapping[str, Any]) -> Value:
    """Return the value of a tagged object that this module or an adapter created."""
    ((tag, data),) = member.items()
    return _new(Value, (Kind.TEXT, data)) if tag == "S" else _READERS[tag](data)


_READERS = {
    "S": lambda data: Value(Kind.TEXT, data),
    "N": lambda data: Value(Kind.DECIMAL, Decimal(data)),
    "B": lambda data: Value(Kind.BYTES, base64.b64decode(data)),
    "BOOL": lambda data: TRUE if data else FALSE,
    "NULL": lambda data: NULL,
    "M": lambda data: Value(Kind.MAP, {name: untagged(member) for name, member in data.items()}),
    "L": lambda data: Value(Kind.LIST, tuple(untagged(member) for member in data)),
    "SS": lambda data: Value(Kind.TEXT_SET, frozenset(data)),
    "NS": lambda data: number_set(data),
    "BS": lambda data: Value(Kind.BYTES_SET, frozenset(base64.b64decode(member) for member in data)),
    "I32": lambda data: Value(Kind.INT32, int(data)),
    "I64": lambda data: Value(Kind.INT64, int(data)),
    "D": lambda data: Value(Kind.DOUBLE, float(data)),
    "DT": lambda data: Value(Kind.DATETIME, int(data)),
    "G": lambda data: Value(Kind.GUID, UUID(data)),
}

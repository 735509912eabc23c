"""Variants: scalars of search requests. A tag byte, then the value, in little-endian order.

0: INTEGER of 64 bits. 1: DOUBLE. 2: BOOLEAN of one byte. 3: STRING in UTF-8 after its length of 32 bits.
"""

from __future__ import annotations

import struct
from typing import Any

from tablegate.adapters.tablestore.wire.errors import invalid

_INTEGER, _DOUBLE, _BOOLEAN, _STRING = 0, 1, 2, 3


def encode(value: int | float | bool | str) -> bytes:
    """Return the variant of a value."""
    if isinstance(value, bool):
        return bytes((_BOOLEAN, value))
    if isinstance(value, int):
        return bytes((_INTEGER,)) + struct.pack("<q", value)
    if isinstance(value, float):
        return bytes((_DOUBLE,)) + struct.pack("<d", value)
    data = value.encode()
    return bytes((_STRING,)) + struct.pack("<I", len(data)) + data


def decode(data: bytes) -> Any:
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

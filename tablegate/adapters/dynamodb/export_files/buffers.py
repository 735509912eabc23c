"""Binary values as Node writes them to JSON: a Buffer, or a Uint8Array as an object with an index for each byte.

    {"B":{"type":"Buffer","data":[0,1]}}      {"B":{"0":0,"1":1}}

Source: JSON.stringify of items of the SDKs for JavaScript, version 2 and 3 (Buffer.toJSON in the documentation of Node).
"""

from __future__ import annotations

import base64
from typing import Any

# Binary values of Node


def has_buffers(wire: Any) -> bool:
    """Return True if a typed value, or one in it, is a binary of Node. Recursion ends at other values."""
    if isinstance(wire, list):
        return any(map(has_buffers, wire))
    if not isinstance(wire, dict):
        return False
    return any(
        _bytes_of(data) is not None
        if tag == "B"
        else tag == "BS" and isinstance(data, list) and any(_bytes_of(each) is not None for each in data)
        for tag, data in wire.items()
    ) or any(map(has_buffers, wire.values()))


def without_buffers(wire: Any) -> Any:
    """Return a copy with base64 in place of binaries of Node."""
    if isinstance(wire, list):
        return [without_buffers(element) for element in wire]
    if not isinstance(wire, dict):
        return wire
    copy = {}
    for tag, data in wire.items():
        if tag == "B":
            copy[tag] = _text(data)
        elif tag == "BS" and isinstance(data, list):
            copy[tag] = [_text(element) for element in data]
        else:
            copy[tag] = without_buffers(data)
    return copy


def _text(data: Any) -> Any:
    """Return base64 for a binary of Node. Other data may be an attribute with the name of a type."""
    found = _bytes_of(data)
    return without_buffers(data) if found is None else base64.b64encode(found).decode()


def _bytes_of(data: Any) -> bytes | None:
    if not isinstance(data, dict):
        return None
    if data.keys() == {"type", "data"} and data["type"] == "Buffer":
        elements = data["data"]
    elif list(data) == [str(index) for index in range(len(data))]:
        elements = list(data.values())
    else:
        return None
    if not isinstance(elements, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in elements):
        return None
    return bytes(elements)

"""Decoding of request bodies within bounds: content codings and JSON.

The dialects, the console and the control API decode all bodies with this module. Decoding costs memory and time. So with auth
`strict`, callers authenticate a request before they decode its body.

There are three errors:

    Undecodable     the body is invalid: the coding is unknown or does not decode, or the text is not JSON
    LimitExceeded   the body is invalid: it is longer than allowed
    Busy            the server has not enough memory to decode the body now
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson

from tablegate.gateway.model.errors import Busy, LimitExceeded
from tablegate.gateway.model.values.json_texts import has_at_most as has_at_most

_GZIP_WINDOW, _ZLIB_WINDOW = 31, 15
WINDOWS = {"gzip": _GZIP_WINDOW, "deflate": _ZLIB_WINDOW}
"""The content codings that can be decoded, by name -> zlib's window bits."""
_CHUNK_BYTES = 256 << 10
_OUT_OF_MEMORY = ("Not enough memory", "Error -4 ", "out of memory")  # orjson's, zlib's, expat's


class Undecodable(Exception):
    """The content coding is unknown or does not decode, or the text is not JSON."""


def inflate(data: bytes, coding: str, max_bytes: int, max_members: int = 1) -> bytes:
    """Decode a content coding. Stops as soon as there are more than `max_bytes`.

    A gzip file may have several members (RFC 1952, 2.2). Raises Undecodable if there are more than `max_members`,
    LimitExceeded, Busy.
    """
    if coding not in WINDOWS:
        raise Undecodable(f"unknown content coding: {coding}")
    try:
        return b"".join(_inflate_members(data, WINDOWS[coding], max_bytes, max_members))
    except (zlib.error, MemoryError) as error:
        raise failure_of(error) from None


def _inflate_members(data: bytes, window: int, max_bytes: int, max_members: int) -> list[bytes]:
    """Inflate the data in pieces, because zlib copies all remaining input at the end of each member."""
    inflater = zlib.decompressobj(window)
    members = 1
    pieces: list[bytes] = []
    size = at = 0
    remaining = b""
    while remaining or at < len(data):
        if not remaining:
            remaining = data[at : at + _CHUNK_BYTES]
            at += _CHUNK_BYTES
        if inflater.eof:
            members += 1
            if members > max_members:
                raise Undecodable("there is something behind the compressed data")
            inflater = zlib.decompressobj(window)
        piece = inflater.decompress(remaining, max_bytes + 1 - size)
        size += len(piece)
        if size > max_bytes:
            raise LimitExceeded("body", max_bytes, size)
        pieces.append(piece)
        remaining = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise Undecodable("the compressed data has no end")
    return pieces


def parse_json(text: bytes) -> Any:
    """Decode JSON (RFC 8259) without NaN and lone surrogates, nested up to 1,024 levels. Raises Undecodable, Busy."""
    try:
        return orjson.loads(text)
    except (ValueError, MemoryError, SystemError) as error:
        raise failure_of(error) from None


def failure_of(error: Exception) -> Undecodable | Busy:
    """Return the error for an exception of a decoder.

    Without enough memory, orjson raises the exception of invalid JSON, or a SystemError because of a pending MemoryError.
    zlib and expat raise exceptions of their own.
    """
    if isinstance(error, (MemoryError, SystemError)) or str(error).startswith(_OUT_OF_MEMORY):
        return Busy("not enough memory to decode a request")
    return Undecodable(str(error))

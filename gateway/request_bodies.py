"""Request bodies as their senders wrote them: content codings and JSON, decoded within bounds.

Every request that is decoded is decoded here: those of the dialects, of the console and of the control API. What is decoded costs
memory and time, so callers prove who the sender is first where credentials are checked (auth `strict`).

A failure is one of three, and callers tell them apart:

    Undecodable     the sender's mistake: the coding is unknown or does not decode, or the text is no JSON
    LimitExceeded   the sender's mistake: more bytes than allowed
    Busy            the server's: there is not enough memory to decode it now
"""

from __future__ import annotations

import zlib
from typing import Any

import orjson

from tablegate.gateway.model.errors import Busy, LimitExceeded

_GZIP_WINDOW, _ZLIB_WINDOW = 31, 15
WINDOWS = {"gzip": _GZIP_WINDOW, "deflate": _ZLIB_WINDOW}
"""The content codings that can be decoded, by name -> zlib's window bits."""
_CHUNK_BYTES = 256 << 10
_OUT_OF_MEMORY = ("Not enough memory", "Error -4 ", "out of memory")  # orjson's, zlib's, expat's


class Undecodable(Exception):
    """The content coding is unknown or does not decode, or the text is no JSON."""


def inflate(data: bytes, coding: str, max_bytes: int, max_members: int = 1) -> bytes:
    """Decode a content coding. Stops as soon as there are more than `max_bytes`.

    The gzip format lets members follow one another (RFC 1952, 2.2), of which at most `max_members` are decoded. Raises
    Undecodable, LimitExceeded, Busy.
    """
    if coding not in WINDOWS:
        raise Undecodable(f"unknown content coding: {coding}")
    try:
        return b"".join(_inflated(data, WINDOWS[coding], max_bytes, max_members))
    except (zlib.error, MemoryError) as error:
        raise failure_of(error) from None


def _inflated(data: bytes, window: int, max_bytes: int, max_members: int) -> list[bytes]:
    """Fed in pieces, because zlib copies what is left behind the end of each member."""
    inflater = zlib.decompressobj(window)
    members = 1
    pieces: list[bytes] = []
    size = at = 0
    pending = b""
    while pending or at < len(data):
        if not pending:
            pending = data[at : at + _CHUNK_BYTES]
            at += _CHUNK_BYTES
        if inflater.eof:
            members += 1
            if members > max_members:
                raise Undecodable("there is something behind the compressed data")
            inflater = zlib.decompressobj(window)
        piece = inflater.decompress(pending, max_bytes + 1 - size)
        size += len(piece)
        if size > max_bytes:
            raise LimitExceeded("body", max_bytes, size)
        pieces.append(piece)
        pending = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise Undecodable("the compressed data has no end")
    return pieces


def parse_json(text: bytes) -> Any:
    """Decode JSON (RFC 8259; no NaN, no lone surrogates, no nesting beyond 1,024 levels). Raises Undecodable, Busy."""
    try:
        return orjson.loads(text)
    except (ValueError, MemoryError, SystemError) as error:
        raise failure_of(error) from None


def has_at_most(max_nodes: int, text: bytes) -> bool:
    """True if JSON has no more objects, arrays and members than that, by a count of `{`, `[` and `,` outside strings.

    Takes a few nanoseconds a byte and builds nothing, so that it can be asked before a text is parsed.
    """
    if len(text) <= max_nodes or _nodes(text) <= max_nodes:
        return True
    if b"\\" in text:  # what is left of the backslashes stands in front of no quotation mark
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if text.count(b'"') > 4 * (max_nodes + 1):  # a member has a name and a value at most that are strings
        return False
    return _nodes(b"".join(text.split(b'"')[::2])) <= max_nodes


def _nodes(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[") + text.count(b",")


def failure_of(error: Exception) -> Undecodable | Busy:
    """The meaning of an exception that a decoder raised.

    Where memory is short, orjson raises the same exception as for broken JSON, or leaves a MemoryError behind, which becomes a
    SystemError; zlib and expat raise their own.
    """
    if isinstance(error, (MemoryError, SystemError)) or str(error).startswith(_OUT_OF_MEMORY):
        return Busy("not enough memory to decode a request")
    return Undecodable(str(error))

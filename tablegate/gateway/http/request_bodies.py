"""Bodies of requests within bounds: decoding of content codings and JSON, and the memory budget of a server process.

The dialects, the console and the control API decode all bodies with this module. Decoding costs memory and time. So with auth
`strict`, callers authenticate a request before they decode its body.

There are three errors:

    Undecodable     the body is invalid: the coding is unknown or does not decode, or the text is not JSON
    LimitExceeded   the body is invalid: it is longer than allowed
    Busy            the server has not enough memory to decode the body now

The budget bounds the bytes that requests in flight hold, from their first byte to their reply. A request holds its body as it
was received, the inflated body, and the parsed objects. The size of the objects is estimated before the body is parsed: at most
36 bytes for each byte of JSON, measured with orjson 3.13 on Python 3.11. A request that does not fit is refused as Busy.
Dialects answer it with 503, and clients retry. Requests of up to 4 KB are always received, so that a large request that is
being decoded stops no others.
"""

from __future__ import annotations

import threading
import zlib
from typing import Any

import orjson

from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.errors import Busy, LimitExceeded
from tablegate.gateway.model.values.bodies import count
from tablegate.gateway.model.values.bodies import has_at_most as has_at_most

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


HEAD_FIRST_BYTES = 64 << 10
"""The heads of requests with longer bodies are checked before the body is received."""
MIN_PARSED_BYTES = 4096
"""Texts up to this length are parsed without being counted. 1,000 connections need at most 144 MB for them."""
_INFLATED_MAX_BYTES_PER_BYTE = 1032  # "How much can deflate compress" (zlib.net, zlib technical details)
_JSON_MAX_BYTES_PER_BYTE = 36
_OBJECT_BYTES, _ARRAY_BYTES, _MEMBER_BYTES = 240, 88, 92


class RequestMemory:
    """The budget.

    - `received_bytes`: bodies as they were received. In the gateway's own server only the event loop's thread changes it.
      Under another server, threads change it with `receive` and `discard`.
    - `receivable_bytes`: the maximum of `received_bytes`: the limit without the bytes of decoded requests.
    """

    __slots__ = ("_limit_bytes", "_lock", "receivable_bytes", "received_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = self.receivable_bytes = limit_bytes
        self.received_bytes = 0
        self._lock = threading.Lock()

    def receive(self, size_bytes: int) -> None:
        """Count a body that is about to be received. Raises Busy."""
        with self._lock:
            if self.received_bytes + size_bytes > self.receivable_bytes:
                raise Busy("too many request bodies in memory")
            self.received_bytes += size_bytes

    def discard(self, size_bytes: int) -> None:
        """Remove a received body from the count."""
        with self._lock:
            self.received_bytes -= size_bytes

    def hold(self, request: Request, size_bytes: int) -> None:
        """Count bytes for a decoded request, in place of its former count. Raises Busy.

        A request larger than the whole budget is admitted if no other request holds memory. So the budget limits the number of
        requests at a time, and refuses none for ever.
        """
        if not self._try_to_hold(request, size_bytes):
            raise Busy("too many requests are being decoded")

    def hold_inflated(self, request: Request, max_bytes: int) -> None:
        """Count the maximum size of a request's inflated body, as pieces and joined. Raises Busy."""
        self.hold(request, 2 * min(max_bytes, _INFLATED_MAX_BYTES_PER_BYTE * len(request.body)))

    def hold_json(self, request: Request, text: bytes) -> None:
        """Count the estimated size of a request's parsed JSON. Raises Busy."""
        size_bytes = _JSON_MAX_BYTES_PER_BYTE * len(text)
        if not self._try_to_hold(request, size_bytes, may_be_alone=False):
            self.hold(request, min(size_bytes, _parsed_size(text)))

    def release(self, request: Request) -> None:
        """Remove the decoded request from the count."""
        with self._lock:
            self.receivable_bytes += request.held_bytes
            request.held_bytes = 0

    def _try_to_hold(self, request: Request, size_bytes: int, may_be_alone: bool = True) -> bool:
        with self._lock:
            left_bytes = self.receivable_bytes + request.held_bytes
            fits = self.received_bytes + size_bytes <= left_bytes
            if not fits and not (may_be_alone and left_bytes == self._limit_bytes):
                return False
            self.receivable_bytes = left_bytes - size_bytes
            request.held_bytes = size_bytes
            return True


def _parsed_size(text: bytes) -> int:
    """Return an upper estimate of the size of parsed JSON, in bytes, by its numbers of objects, arrays and members."""
    return (
        2 * len(text)
        + _OBJECT_BYTES * count(text, b"{")
        + _ARRAY_BYTES * count(text, b"[")
        + _MEMBER_BYTES * count(text, b",")
    )

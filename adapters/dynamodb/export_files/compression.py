"""Compressed bytes as a stream and back, in the compressions that imports know; and what makes a file unreadable.

Reads in bounded memory, several members (gzip) or frames (Zstandard) behind each other, and never takes a file that was cut off
for a whole one: zstandard's own reader does.
"""

from __future__ import annotations

import gzip
import io
import zlib
from enum import Enum
from typing import Any, BinaryIO, cast

import zstandard

from gateway.model.row_lines import Unreadable as Unreadable


class Compression(Enum):
    """As ImportTable's InputCompressionType calls them."""

    NONE = "NONE"
    GZIP = "GZIP"
    ZSTD = "ZSTD"


_GZIP_WINDOW = 31  # zlib: the widest window, with gzip's head and checksum
_ZSTD_WINDOW_BYTES = 1 << 27
_LEVEL = {Compression.GZIP: 6, Compression.ZSTD: 3}
# So little is given to a decompressor at a time, since it may become a thousand (zlib) or 32,000 (Zstandard) times as much.
_STEP_BYTES = {Compression.GZIP: 4_096, Compression.ZSTD: 256}


def compression_of(head: bytes) -> Compression:
    """The compression of a file that begins with these bytes."""
    if head.startswith(b"\x1f\x8b"):
        return Compression.GZIP
    return Compression.ZSTD if head.startswith(b"\x28\xb5\x2f\xfd") else Compression.NONE


def reading(stream: BinaryIO, compression: Compression) -> BinaryIO:
    """What a stream holds, inflated while it is read. Reading raises Unreadable."""
    if compression is Compression.NONE:
        return stream
    return cast(BinaryIO, io.BufferedReader(_Inflating(stream, compression), 1 << 16))


def compressed(data: bytes, compression: Compression) -> bytes:
    """Data as a member of its own, that others may stand before and behind."""
    if compression is Compression.NONE:
        return data
    if compression is Compression.GZIP:
        return gzip.compress(data, _LEVEL[compression], mtime=0)
    return zstandard.ZstdCompressor(level=_LEVEL[compression], write_checksum=True).compress(data)


def _decompressor(compression: Compression) -> Any:
    if compression is Compression.GZIP:
        return zlib.decompressobj(_GZIP_WINDOW)
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES).decompressobj()


class _Inflating(io.RawIOBase):
    """The members of a compressed stream, one behind the other."""

    def __init__(self, source: BinaryIO, compression: Compression) -> None:
        self._source = source
        self._compression = compression
        self._inflater: Any = None
        self._fed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            if not self._fed:
                self._fed = self._source.read(_STEP_BYTES[self._compression])
            if not self._fed:
                if self._inflater is not None:
                    raise Unreadable("the compressed data end too early: the file was cut off")
                return 0
            self._ready = memoryview(self._inflate())
        taken = min(len(target), len(self._ready))
        target[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _inflate(self) -> bytes:
        if self._inflater is None:
            if self._compression is Compression.GZIP:
                self._fed = self._fed.lstrip(
                    b"\x00"
                )  # padding between members (RFC 1952 leaves it to readers)
            if not self._fed:
                return b""
            self._inflater = _decompressor(self._compression)
        try:
            inflated: bytes = self._inflater.decompress(self._fed)
        except (zlib.error, zstandard.ZstdError) as error:
            raise Unreadable(f"the compressed data are damaged: {error}") from None
        self._fed = b""
        if self._inflater.eof:
            self._fed = self._inflater.unused_data
            self._inflater = None
        return inflated

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()

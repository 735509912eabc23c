"""Compressed bytes as a stream and back, in the compressions of imports, with the errors of unreadable files.

Reading takes bounded memory and accepts several members (gzip) or frames (Zstandard) in a row. A truncated file is
always an error, unlike in zstandard's own reader.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from enum import Enum
from typing import Any, BinaryIO, cast

import zstandard

from tablegate.gateway.model.values.row_lines import UnreadableFile as UnreadableFile


class Compression(Enum):
    """The values of ImportTable's InputCompressionType."""

    NONE = "NONE"
    GZIP = "GZIP"
    ZSTD = "ZSTD"


BLOCK_BYTES = 1 << 16
_GZIP_WINDOW = 31  # zlib: the widest window, with gzip's header and checksum
_ZSTD_WINDOW_BYTES = 1 << 27
_LEVEL = {Compression.GZIP: 6, Compression.ZSTD: 3}
# Bytes passed to a decompressor at a time. They may grow by a factor of a thousand (zlib) or 32,000 (Zstandard).
_STEP_BYTES = {Compression.GZIP: 4_096, Compression.ZSTD: 256}


def compression_of(head: bytes) -> Compression:
    """Return the compression of a file that begins with these bytes."""
    if head.startswith(b"\x1f\x8b"):
        return Compression.GZIP
    return Compression.ZSTD if head.startswith(b"\x28\xb5\x2f\xfd") else Compression.NONE


def blocks(
    stream: BinaryIO, compression: Compression, window_bytes: int = _ZSTD_WINDOW_BYTES
) -> Iterator[bytes]:
    """Yield the decompressed contents of a stream in blocks of at most BLOCK_BYTES. Raises UnreadableFile.

    `window_bytes`: the largest accepted window of Zstandard. The work for one block is bounded. A block is empty if the
    compressed bytes read for it yield no data.
    """
    if compression is Compression.NONE:
        while block := stream.read(BLOCK_BYTES):
            yield block
        return
    inflater: Any = None
    fed = b""
    while fed or (fed := stream.read(_STEP_BYTES[compression])):
        if inflater is None:
            if compression is Compression.GZIP:
                fed = fed.lstrip(b"\x00")  # padding between members (RFC 1952 leaves it to readers)
            inflater = _decompressor(compression, window_bytes) if fed else None
        inflated = b""
        if inflater is not None:
            try:
                inflated = inflater.decompress(fed)
            except (zlib.error, zstandard.ZstdError) as error:
                raise UnreadableFile(f"the compressed data are damaged: {error}") from None
            fed = b""
            if inflater.eof:
                fed = inflater.unused_data
                inflater = None
        for at in range(0, max(1, len(inflated)), BLOCK_BYTES):
            yield inflated[at : at + BLOCK_BYTES]
    if inflater is not None:
        raise UnreadableFile("the compressed data end too early: the file was cut off")


def reading(stream: BinaryIO, compression: Compression) -> BinaryIO:
    """Return a file of the decompressed contents of a stream. Reading it raises UnreadableFile."""
    if compression is Compression.NONE:
        return stream
    return file_of(stream, blocks(stream, compression))


def file_of(stream: BinaryIO, made: Iterator[bytes]) -> BinaryIO:
    """Return a file of blocks that are made of a stream. Closing it closes the stream."""
    return cast(BinaryIO, io.BufferedReader(_BlockStream(stream, made), BLOCK_BYTES))


def compressed(data: bytes, compression: Compression) -> bytes:
    """Return data as a complete member or frame, which can be concatenated with others."""
    if compression is Compression.NONE:
        return data
    if compression is Compression.GZIP:
        return gzip.compress(data, _LEVEL[compression], mtime=0)
    return zstandard.ZstdCompressor(level=_LEVEL[compression], write_checksum=True).compress(data)


def _decompressor(compression: Compression, window_bytes: int) -> Any:
    if compression is Compression.GZIP:
        return zlib.decompressobj(_GZIP_WINDOW)
    return zstandard.ZstdDecompressor(max_window_size=window_bytes).decompressobj()


class _BlockStream(io.RawIOBase):
    """Blocks that are made of a stream, as a file. Closing it closes the stream."""

    def __init__(self, source: BinaryIO, made: Iterator[bytes]) -> None:
        self._source = source
        self._blocks = made
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while not self._ready:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._ready = memoryview(block)
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()

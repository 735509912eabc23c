"""A data file of an export while it is written: lines in, compressed bytes out; when it is full, and what manifests say of it."""

from __future__ import annotations

import gzip
import hashlib
from typing import BinaryIO, Protocol, cast

FILE_ITEMS = 100_000
FILE_BYTES = 64 << 20
"""A data file that we write ends after so many items, or so many bytes of lines."""


class ByteSink(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> object:
        """Write them all."""
        ...

    def flush(self) -> None:
        """Give them on."""
        ...


class DataFileWriter:
    """A data file that is written to a target: gzip, the same bytes for the same lines."""

    def __init__(self, target: ByteSink) -> None:
        self._hashing = _Hashing(target)
        self._packed = gzip.GzipFile("", "wb", 6, cast(BinaryIO, self._hashing), mtime=0)
        self._bytes = 0
        self.items = 0

    @property
    def is_full(self) -> bool:
        """Whether the next line belongs into another file."""
        return self.items >= FILE_ITEMS or self._bytes >= FILE_BYTES

    def add(self, line: bytes) -> None:
        """Write a line."""
        self._packed.write(line)
        self._bytes += len(line)
        self.items += 1

    def finish(self) -> bytes:
        """Write the end; the MD5 of the whole. The target stays open."""
        self._packed.close()
        return self._hashing.md5.digest()


class _Hashing:
    """A target that knows the MD5 of what was written to it."""

    def __init__(self, target: ByteSink) -> None:
        self._target = target
        self.md5 = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> object:
        """Write through."""
        self.md5.update(data)
        return self._target.write(data)

    def flush(self) -> None:
        """Flush what is below."""
        self._target.flush()

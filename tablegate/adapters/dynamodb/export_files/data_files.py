"""A data file of an export being written: lines in, compressed bytes out, with the values for its manifest entry."""

from __future__ import annotations

import gzip
import hashlib
from typing import BinaryIO, Protocol, cast

# Data files


FILE_ITEMS = 100_000
FILE_BYTES = 64 << 20
"""A data file ends after this many items or bytes of lines, whichever comes first."""


class ByteSink(Protocol):
    """A target of written bytes."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


class DataFileWriter:
    """A writer of gzip data files. The same lines give the same bytes."""

    def __init__(self, target: ByteSink) -> None:
        self._hashing = _Hashing(target)
        self._packed = gzip.GzipFile("", "wb", 6, cast(BinaryIO, self._hashing), mtime=0)
        self._bytes = 0
        self.items = 0

    @property
    def is_full(self) -> bool:
        """True if the next line belongs into another file."""
        return self.items >= FILE_ITEMS or self._bytes >= FILE_BYTES

    def add(self, line: bytes) -> None:
        self._packed.write(line)
        self._bytes += len(line)
        self.items += 1

    def finish(self) -> bytes:
        """Write the end of the file, and return the MD5 of the whole. The target stays open."""
        self._packed.close()
        return self._hashing.md5.digest()


class _Hashing:
    """A target that computes the MD5 of the bytes written to it."""

    def __init__(self, target: ByteSink) -> None:
        self._target = target
        self.md5 = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> object:
        self.md5.update(data)
        return self._target.write(data)

    def flush(self) -> None:
        self._target.flush()

"""Lines that are appended durably to a file that has no name yet, so that a copy can go on after any kill.

Knows two files beside the one that is to be made: NAME.partial has what is written, a compressed member for each block;
NAME.partial.blocks has a line for each block that is durable: how many bytes of the file it ends at, how many rows and which
checksum there are up to it. After a kill, what lies behind the last such block is cut off: nobody was told that it is written.

A copy that goes on writes the last pages again that its job had not yet noted as written. Rows that stand among the last
REPLAYED_ROWS of the file are therefore left out once it is opened again.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson
from fastcrc import crc64

from tablegate.adapters.dynamodb.export_files.compression import (
    Compression,
    UnreadableFile,
    compressed,
    reading,
)
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.row_lines import end_line, row_line
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition
from tablegate.transfer.endpoints.files.row_lines import header_line, read_header, read_row
from tablegate.transfer.errors import BadFile, TransferError

REPLAYED_ROWS = 200_000
"""How many rows a job may have in flight and not noted, at most."""
_BLOCK_BYTES = 4 << 20


class DurableBlock(NamedTuple):
    """How far a file is durable: bytes, and rows and checksum of what they hold."""

    bytes: int
    rows: int
    crc64: int


def partial_path(path: Path) -> Path:
    """Where a file lies while it is written."""
    return path.with_name(path.name + ".partial")


def _blocks_path(path: Path) -> Path:
    return path.with_name(path.name + ".partial.blocks")


class Staging:
    """Rows on their way into a file. `append` may be called by several threads."""

    def __init__(self, path: Path, compression: Compression, definition: Definition | None) -> None:
        """Begin a file for a table of this definition; None: go on with one. Raises TransferError."""
        self._path = path
        self._compression = compression
        self._lock = threading.Lock()
        self._replayed: set[bytes] = set()
        if definition is not None:
            _make_room(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL if definition is not None else os.O_RDWR
        self._data = open(os.open(partial_path(path), flags, 0o666), "r+b", buffering=0)  # noqa: SIM115
        _claim(self._data, path)
        self._blocks = open(_blocks_path(path), "wb" if definition is not None else "r+b", buffering=0)  # noqa: SIM115
        if definition is not None:
            self.definition = definition
            self._last = DurableBlock(0, 0, 0)
            self._add(header_line(definition), 0)
            sync_folder(path.parent)
        else:
            self._go_on()

    @property
    def rows(self) -> int:
        """How many rows are there."""
        return self._last.rows

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, durably."""
        with self._lock:
            if self._replayed:
                rows = [row for row in rows if _digest(row.position) not in self._replayed]
            lines: list[bytes] = []
            size = 0
            for row in rows:
                lines.append(row_line(row))
                size += len(lines[-1])
                if size >= _BLOCK_BYTES:
                    self._add(b"".join(lines), len(lines))
                    lines, size = [], 0
            if lines:
                self._add(b"".join(lines), len(lines))

    def read(self) -> Iterator[Row]:
        """All rows, in the order in which they were written."""
        return _rows_from(self._path, self._compression, 0, self.definition.key_schema)

    def end(self) -> Path:
        """Write the end's line. The file at the path that is given is whole then, and waits for its name."""
        with self._lock:
            line = end_line(self._last.rows, self._last.crc64)
            self._data.seek(self._last.bytes)
            _write_all(self._data, compressed(line, self._compression))
            self._data.truncate()
            os.fsync(self._data.fileno())
        return partial_path(self._path)

    def discard(self) -> None:
        """Remove what is left of the staging, when the file has its name."""
        self.close()
        partial_path(self._path).unlink(missing_ok=True)
        _blocks_path(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files; they can be gone on with."""
        self._data.close()
        self._blocks.close()

    def _add(self, lines: bytes, rows: int) -> None:
        data = compressed(lines, self._compression)
        crc = crc64.xz(lines, self._last.crc64)
        self._data.seek(self._last.bytes)
        _write_all(self._data, data)
        os.fdatasync(self._data.fileno())
        block = DurableBlock(self._last.bytes + len(data), self._last.rows + rows, crc)
        _write_all(self._blocks, orjson.dumps([*block]) + b"\n")
        os.fdatasync(self._blocks.fileno())
        self._last = block

    def _go_on(self) -> None:
        size = os.fstat(self._data.fileno()).st_size
        blocks: list[DurableBlock] = []
        end = 0
        for block, ends_at in _read_blocks(self._blocks):
            if block.bytes <= size:
                blocks.append(block)
                end = ends_at
        if not blocks:
            raise TransferError(
                f"{partial_path(self._path)} was cut off at its beginning: remove it, and begin anew"
            )
        self._last = blocks[-1]
        self._data.truncate(self._last.bytes)
        self._blocks.truncate(end)
        self._blocks.seek(end)
        with open(partial_path(self._path), "rb") as data:
            self.definition = read_header(reading(data, self._compression).readline())
        since = next(block for block in blocks if block.rows >= self._last.rows - REPLAYED_ROWS)
        schema = self.definition.key_schema
        for row in _rows_from(self._path, self._compression, since.bytes, schema):
            self._replayed.add(_digest(row.position))


def _make_room(path: Path) -> None:
    """Remove what a process left that was killed before its first row. Raises TransferError if there are rows."""
    if not partial_path(path).exists():
        return
    with open(partial_path(path), "rb") as data:
        _claim(data, path)
        try:
            with open(_blocks_path(path), "rb") as blocks:
                has_rows = any(block.rows for block, _ in _read_blocks(blocks))
        except FileNotFoundError:
            has_rows = False
        if has_rows:
            raise TransferError(
                f"{partial_path(path)} is there: a copy to this file was begun and not finished."
                " Go on with its job (--resume), or remove the file"
            )
        partial_path(path).unlink()


def _claim(data: BinaryIO, path: Path) -> None:
    """Lock a file for this process. Raises TransferError."""
    try:
        fcntl.flock(data, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        data.close()
        raise TransferError(f"{partial_path(path)}: another process is writing this file") from None


def _rows_from(path: Path, compression: Compression, offset: int, schema: KeySchema) -> Iterator[Row]:
    """The rows of a staged file from the block that begins at an offset."""
    with open(partial_path(path), "rb") as data:
        data.seek(offset)
        lines = iter(reading(data, compression))
        if offset == 0:
            next(lines)
        try:
            for line in lines:
                yield read_row(line, schema)
        except UnreadableFile as error:
            raise BadFile(f"{partial_path(path)} is damaged: {error}") from None


def _digest(position: Position) -> bytes:
    head = len(position.partition).to_bytes(4, "big")
    return blake2b(head + position.partition + position.sort, digest_size=16).digest()


def _read_blocks(file: BinaryIO) -> Iterator[tuple[DurableBlock, int]]:
    """The blocks, and where in the file of blocks each one's line ends."""
    end = 0
    for line in file.read().split(b"\n")[:-1]:  # what has no end of a line was not written whole
        end += len(line) + 1
        try:
            yield DurableBlock(*orjson.loads(line)), end
        except (orjson.JSONDecodeError, TypeError):
            return


def _write_all(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

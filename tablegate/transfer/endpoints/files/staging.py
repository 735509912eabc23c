"""Durable staging of rows, so that a copy to a file can be resumed after a kill.

There are two files beside the final one. NAME.partial has the data, with a compressed member for each block.
NAME.partial.blocks has a line for each durable block: the offset of its end, the number of rows and the checksum up
to it. After a kill, data behind the last such block is truncated. It was never reported as written.

A resumed copy writes the last pages again that its job had not recorded. So rows that are among the last
REPLAYED_ROWS of the file are skipped after it is opened again.
"""

from __future__ import annotations

import contextlib
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
    compressed,
    reading,
)
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.row_lines import UnreadableFile, end_line, row_line
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition
from tablegate.transfer.endpoints.files.row_lines import header_line, read_header, read_row
from tablegate.transfer.errors import BadFile, CannotResume, TransferError

REPLAYED_ROWS = 200_000
"""Maximum number of rows that a job has in flight and not recorded."""
_BLOCK_BYTES = 4 << 20


class DurableBlock(NamedTuple):
    """The durable part of a file: bytes, rows and checksum."""

    bytes: int
    rows: int
    crc64: int


def partial_path(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _blocks_path(path: Path) -> Path:
    return path.with_name(path.name + ".partial.blocks")


class Staging:
    """Rows that are staged for a file. `append` may be called from several threads."""

    def __init__(self, path: Path, compression: Compression, definition: Definition | None) -> None:
        """Start a file with this definition, or resume one if `definition` is None. Raises TransferError."""
        self._path = path
        self._compression = compression
        self._lock = threading.Lock()
        self._replayed: set[bytes] = set()
        if definition is not None:
            _remove_empty_staging(path)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL if definition is not None else os.O_RDWR
        self._data = open(os.open(partial_path(path), flags, 0o666), "r+b", buffering=0)  # noqa: SIM115
        _lock_file(self._data, path)
        self._blocks = open(_blocks_path(path), "wb" if definition is not None else "r+b", buffering=0)  # noqa: SIM115
        if definition is not None:
            self.definition = definition
            self._last = DurableBlock(0, 0, 0)
            self._add(header_line(definition), 0)
            sync_folder(path.parent)
        else:
            self._resume()

    @property
    def rows(self) -> int:
        return self._last.rows

    def append(self, rows: Sequence[Row]) -> None:
        """Append rows durably."""
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
        """Yield all rows in the order of writing."""
        return _rows_from(self._path, self._compression, 0, self.definition.key_schema)

    def end(self) -> Path:
        """Write the last line and return the path of the complete file, which has no final name yet."""
        with self._lock:
            line = end_line(self._last.rows, self._last.crc64)
            self._data.seek(self._last.bytes)
            _write_all(self._data, compressed(line, self._compression))
            self._data.truncate()
            os.fsync(self._data.fileno())
        return partial_path(self._path)

    def discard(self) -> None:
        """Remove the staging files after the final file has its name."""
        self.close()
        partial_path(self._path).unlink(missing_ok=True)
        _blocks_path(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the files, which can be resumed."""
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

    def _resume(self) -> None:
        size = os.fstat(self._data.fileno()).st_size
        blocks: list[DurableBlock] = []
        end = 0
        for block, ends_at in _read_blocks(self._blocks):
            if block.bytes <= size:
                blocks.append(block)
                end = ends_at
        if not blocks:
            raise CannotResume(
                f"{partial_path(self._path)} is truncated at its beginning. Remove it and start a new copy"
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


def discard_staging(path: Path) -> None:
    """Remove the staging files of a copy that was not finished. Raises TransferError if a process is writing them."""
    with contextlib.suppress(FileNotFoundError):
        with open(partial_path(path), "rb") as data:
            _lock_file(data, path)
            partial_path(path).unlink()
        _blocks_path(path).unlink()


def _remove_empty_staging(path: Path) -> None:
    """Remove files of a process that was killed before its first row. Raises TransferError if there are rows."""
    if not partial_path(path).exists():
        return
    with open(partial_path(path), "rb") as data:
        _lock_file(data, path)
        try:
            with open(_blocks_path(path), "rb") as blocks:
                has_rows = any(block.rows for block, _ in _read_blocks(blocks))
        except FileNotFoundError:
            has_rows = False
        if has_rows:
            raise TransferError(
                f"{partial_path(path)} exists: a copy to this file was started and not finished."
                " Continue its job (--resume), remove the file, or use --if-exists replace"
            )
        partial_path(path).unlink()


def _lock_file(data: BinaryIO, path: Path) -> None:
    """Lock a file for this process. Raises TransferError."""
    try:
        fcntl.flock(data, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        data.close()
        raise TransferError(f"{partial_path(path)}: another process is writing this file") from None


def _rows_from(path: Path, compression: Compression, offset: int, schema: KeySchema) -> Iterator[Row]:
    """Yield the rows of a staged file from the block at an offset."""
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
    """Yield the blocks, each with the end of its line in the file of blocks."""
    end = 0
    for line in file.read().split(b"\n")[:-1]:  # a line without its end is incomplete
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
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Backups as files of a directory, written durably and read sequentially.

A file has JSON Lines of our own format (gateway/model/values/row_lines.py), compressed with Zstandard. A header
identifies the backup and has the definition of its table. The rows follow as they were stored, then an end with their
number and checksum. A file gets its name once it is complete and on disk. The name begins with `Backup.file_stem`,
followed by the attempt that wrote it, so that no attempt overwrites the file of another.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import zstandard
from fastcrc import crc64

from tablegate.gateway.model.errors import BackupUnreadable
from tablegate.gateway.model.tables.backups import Backup, BackupFile
from tablegate.gateway.model.values import row_lines
from tablegate.gateway.model.values.rows import Row

_UNFINISHED = ".unfinished"
_LEVEL = 3
_WINDOW_BYTES = 1 << 27
_BLOCK_BYTES = 1 << 16
_NAME_CHARACTERS = 100
_ATTEMPT = re.compile(r"\.([0-9]+)-([0-9]+)\.")
# Files up to this size are checked as a whole before a restore begins, which takes some milliseconds.
_CHECKED_BYTES = 8 << 20


class WriteAttempt(NamedTuple):
    """An attempt to write a file: the job and its claim. Later attempts compare as greater."""

    job_id: int
    claim: int


class BackupDirectory:
    """The files of a directory. Failures of the operating system are raised as OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, backup: Backup, attempt: WriteAttempt, table: Mapping[str, Any]) -> BackupWriter:
        """Start the file of a backup, and remove the files of earlier attempts. `table`: the definition for a restore."""
        self._remove(backup.file_stem, older_than=attempt)
        table_name = re.sub(r"[^A-Za-z0-9_-]", "_", backup.table_name)[:_NAME_CHARACTERS]
        name = f"{backup.file_stem}.{attempt.job_id}-{attempt.claim}.{table_name}.jsonl.zst"
        return BackupWriter(self._path / name, row_lines.header_line(backup=_header(backup, table)))

    def open(self, file: BackupFile, stem: str) -> BackupReader:
        """Open the file of a backup at its first row. Raises BackupUnreadable."""
        return BackupReader(self._path / file.name, file, stem)

    def check(self, file: BackupFile, stem: str) -> None:
        """Raise BackupUnreadable if a file is missing or found to be damaged in a check of bounded time."""
        try:
            self.open(file, stem).close()
            if file.size_bytes <= _CHECKED_BYTES:
                data = (self._path / file.name).read_bytes()
                if f"{crc64.xz(data):016x}" != file.crc64:
                    raise BackupUnreadable(f"the file {file.name} is damaged: its checksum is wrong")
        except OSError as error:
            raise BackupUnreadable(f"the file {file.name}: {error.strerror}") from None

    def remove(self, stem: str) -> None:
        """Remove all files of a deleted backup."""
        self._remove(stem)

    def _remove(self, stem: str, older_than: WriteAttempt | None = None) -> None:
        for name in os.listdir(self._path):
            if name.startswith(f"{stem}.") and (
                older_than is None or _attempt_of(name, len(stem)) < older_than
            ):
                (self._path / name).unlink(missing_ok=True)
        _sync(self._path)


def _attempt_of(name: str, at: int) -> WriteAttempt:
    match = _ATTEMPT.match(name, at)
    return WriteAttempt(0, 0) if match is None else WriteAttempt(int(match[1]), int(match[2]))


def _header(backup: Backup, table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "stem": backup.file_stem,
        "kind": backup.kind.value,
        "name": backup.name,
        "namespace": backup.namespace,
        "created_at_ms": backup.created_at_ms,
        "rows": backup.rows,
        "size_bytes": backup.size_bytes,
        "table": table,
    }


class BackupWriter:
    """A file that is being written."""

    def __init__(self, path: Path, header: bytes) -> None:
        self._path = path
        self._unfinished = path.with_name(path.name + _UNFINISHED)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._file = _ChecksummedFile(os.fdopen(os.open(self._unfinished, flags, 0o600), "wb"))
        compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        self._packed = compressor.stream_writer(cast(Any, self._file), closefd=False)
        self._crc64 = self._rows = 0
        self._write(header)

    def add(self, rows: Iterable[Row]) -> None:
        lines = [row_lines.row_line(row) for row in rows]
        self._rows += len(lines)
        self._write(b"".join(lines))

    def _write(self, data: bytes) -> None:
        self._crc64 = crc64.xz(data, self._crc64)
        self._packed.write(data)

    def finish(self) -> BackupFile:
        """Write the end, then flush and rename the file durably."""
        self._packed.write(row_lines.end_line(self._rows, self._crc64))
        self._packed.flush(zstandard.FLUSH_FRAME)
        self._file.sync()
        self._file.close()
        self._unfinished.replace(self._path)
        _sync(self._path.parent)
        return BackupFile(self._path.name, self._file.size_bytes, f"{self._file.crc64:016x}")

    def close(self) -> None:
        """Close the file, and remove it if it is unfinished."""
        self._file.close()
        self._unfinished.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the finished file."""
        self._path.unlink(missing_ok=True)


class _ChecksummedFile:
    """A file that tracks its size and its CRC-64/XZ."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size_bytes = self.crc64 = 0

    def write(self, data: bytes) -> int:
        self.crc64 = crc64.xz(bytes(data), self.crc64)
        self.size_bytes += len(data)
        return self._file.write(data)

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class BackupReader:
    """The rows of a file, read from its beginning. `rows` counts those read, `is_over` is True after the last one."""

    def __init__(self, path: Path, file: BackupFile, stem: str) -> None:
        self._name = path.name
        self._crc64 = self.rows = 0
        self.is_over = False
        compressed_file = path.open("rb")
        try:
            if os.fstat(compressed_file.fileno()).st_size != file.size_bytes:
                raise row_lines.UnreadableFile(f"its size is not {file.size_bytes} bytes, as written")
            reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(compressed_file)
            self._lines = io.BufferedReader(cast(io.RawIOBase, reader), _BLOCK_BYTES)
            header = row_lines.read_header(self._line()).get("backup")
            if not isinstance(header, dict) or header.get("stem") != stem:
                raise row_lines.UnreadableFile("it is the file of another backup")
        except row_lines.UnreadableFile as error:
            compressed_file.close()
            raise BackupUnreadable(f"the file {path.name}: {error}") from None
        except BaseException:
            compressed_file.close()
            raise

    def take(self, limit: int, limit_bytes: int) -> list[bytes]:
        """Return the lines of the next rows. Raises BackupUnreadable.

        At most `limit`. Ends after the row that reaches `limit_bytes`.
        """
        lines: list[bytes] = []
        size = 0
        try:
            while len(lines) < limit and size < limit_bytes:
                crc_before = self._crc64
                line = self._line()
                if line.startswith(row_lines.END_START):
                    row_lines.check_end(line, self.rows + len(lines), crc_before)
                    if self._lines.read(1):
                        raise row_lines.UnreadableFile("it has data after its end")
                    self.is_over = True
                    break
                lines.append(line)
                size += len(line)
        except (row_lines.UnreadableFile, zstandard.ZstdError) as error:
            raise BackupUnreadable(f"the file {self._name}: {error}") from None
        self.rows += len(lines)
        return lines

    def _line(self) -> bytes:
        try:
            line = self._lines.readline(row_lines.LINE_BYTES)
        except zstandard.ZstdError as error:
            raise row_lines.UnreadableFile(f"it is damaged: {error}") from None
        if not line.endswith(b"\n"):
            raise row_lines.UnreadableFile("it is truncated")
        self._crc64 = crc64.xz(line, self._crc64)
        return line

    def close(self) -> None:
        with contextlib.suppress(zstandard.ZstdError):
            self._lines.close()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

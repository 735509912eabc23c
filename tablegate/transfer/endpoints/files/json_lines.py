"""JSON Lines of tablegate as endpoints: typed and lossless, plain, gzipped, Zstandard or piped.

A line is a row (gateway/model/values/row_lines.py).
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from fastcrc import crc64

from tablegate.adapters.dynamodb.export_files import compression
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import END_START, check_end, end_line, row_line
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, Reject, ScanPage
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, paged
from tablegate.transfer.endpoints.files.row_lines import header_line, read_header, read_row
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import TransferError

_COMPRESSIONS = {".gz": compression.Compression.GZIP, ".zst": compression.Compression.ZSTD}

_PARSED_ROWS = 1000
"""Number of rows that are parsed after writing."""


class JsonLines(FileEndpoint):
    """A file of tablegate's JSON Lines. The suffixes `.gz` and `.zst` select the compression for writing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.staged_as = _COMPRESSIONS.get(path.suffix, compression.Compression.NONE)

    def read_definition(self) -> Definition:
        lines = _SummedLines(self.path)
        try:
            return _definition(lines)
        finally:
            lines.close()

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        self.find()
        self.require_unchanged(segment)
        lines = _SummedLines(self.path)
        try:
            schema = _definition(lines).key_schema
            yield from paged(_rows(lines, schema, resume))
        finally:
            lines.close()

    def render(self, staging: Staging, target: Path) -> Path:
        return staging.end()

    def read_back(self, rendered: Path, staging: Staging) -> None:
        """Check the number of rows and the checksum of all lines, and parse the last rows."""
        lines = _SummedLines(rendered)
        try:
            schema = _definition(lines).key_schema
            for _ in _rows(lines, schema, max(0, staging.rows - _PARSED_ROWS)):
                pass
        finally:
            lines.close()

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> JsonLines:
        return JsonLines(rendered)


class _SummedLines(LineReader):
    """A reader of lines with a checksum of the lines before the end."""

    crc64 = 0


def _definition(lines: _SummedLines) -> Definition:
    try:
        header = next(lines)
        lines.crc64 = crc64.xz(header)
        return read_header(header)
    except StopIteration:
        raise lines.bad("the file is empty") from None
    except compression.UnreadableFile as error:
        raise lines.bad(error) from None


def _rows(lines: _SummedLines, schema: KeySchema, resume: JSON) -> Iterator[tuple[Row, JSON]]:
    """Yield (row, number of rows so far) after the first rows. Raises BadFile if the last line is missing or does not
    match."""
    skipped = 0 if resume is None else int(resume)
    for rows, line in enumerate(lines):
        if line.startswith(END_START):
            try:
                check_end(line, rows, lines.crc64)
            except compression.UnreadableFile as error:
                raise lines.bad(error) from None
            if next(lines, None) is not None:
                raise lines.bad("the file continues after its last line")
            return
        lines.crc64 = crc64.xz(line, lines.crc64)
        if rows >= skipped:
            try:
                row = read_row(line, schema)
            except compression.UnreadableFile as error:
                raise lines.bad(error) from None
            yield row, rows + 1
    raise lines.bad("the file ends without its last line: it is truncated or was never finished")


class PipedLines(JsonLines):
    """Standard input or output (`-`) as JSON Lines. A copy from or to it cannot be resumed."""

    def __init__(self, source: BinaryIO | None = None, target: BinaryIO | None = None) -> None:
        """Set up a pipe. The streams default to standard input and output."""
        super().__init__(Path("-"))
        self.shown = "-"
        self._source = source
        self._target = target
        self._lines: _SummedLines | None = None
        self._definition: Definition | None = None
        self._writing = threading.Lock()
        self._rows = 0
        self._crc64: int | None = None

    def find(self) -> None:
        pass

    def count_existing(self, limit: int) -> int | None:
        """Return None: standard output has no existing table."""
        return None

    def read_definition(self) -> Definition:
        if self._definition is None:
            source = self._source or _bytes_of(sys.stdin, "input")
            self._lines = _SummedLines(Path("standard input"), inflated_pipe(source))
            self._definition = _definition(self._lines)
        return self._definition

    def segments(self, count: int) -> list[JSON]:
        return ["-"]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        schema = self.read_definition().key_schema
        lines, self._lines = self._lines, None
        if resume is not None or lines is None:
            raise TransferError("standard input can be read only once from its beginning. Start a new copy")
        yield from paged(_rows(lines, schema, None))

    def create(self, definition: Definition) -> list[str]:
        with self._writing:
            self._crc64 = 0
            self._put(header_line(definition))
        return []

    def reopen(self) -> None:
        raise TransferError("a copy to standard output cannot be resumed. Start a new copy")

    def write(self, rows: Sequence[Row]) -> list[Reject]:
        with self._writing:
            if self._crc64 is None:
                self.reopen()
            self._put(b"".join(map(row_line, rows)))
            self._rows += len(rows)
        return []

    def finish(self) -> None:
        with self._writing:
            if self._crc64 is not None:
                self._put(end_line(self._rows, self._crc64))

    def _put(self, data: bytes) -> None:
        target = self._target or _bytes_of(sys.stdout, "output")
        assert self._crc64 is not None
        self._crc64 = crc64.xz(data, self._crc64)
        with self.converted_errors():
            target.write(data)
            target.flush()

    def close(self) -> None:
        """Keep standard input and output open."""


def _bytes_of(stream: TextIO | None, name: str) -> BinaryIO:
    if stream is None:
        raise TransferError(f"standard {name} is closed")
    return stream.buffer


def inflated_pipe(stream: BinaryIO) -> BinaryIO:
    """Return a pipe's bytes, inflated if its first bytes show a compression."""
    buffered = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, stream)))
    head = cast(io.BufferedReader, buffered).peek(4)
    return compression.reading(buffered, compression.compression_of(head))

"""The common part of file endpoints. Files are written once and read sequentially. They have no lookups and no
changes.

Rows are staged durably as lines first (staging.py). Formats that cannot be appended to are rendered from them at the
end. So copies to any format can be resumed after a kill. The renderer also knows all columns and kinds before the
first row.

Text files in UTF-16, as PowerShell writes the output of a command, are read as UTF-8. The byte order mark shows the
encoding. The option `?keys=pk:S,sk:N` is for formats that do not contain the table's key.
"""

from __future__ import annotations

import codecs
import io
import os
import shutil
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, ClassVar, NoReturn, cast
from urllib.parse import unquote

import xxhash

from tablegate.adapters.dynamodb.export_files.compression import (
    BLOCK_BYTES,
    Compression,
    UnreadableFile,
    compression_of,
    file_of,
    reading,
)
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.row_lines import LINE_BYTES
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer import errors
from tablegate.transfer.endpoints import endpoint
from tablegate.transfer.endpoints.files.staging import (
    Staging,
    discard_staging,
    partial_path,
    sync_folder,
)
from tablegate.transfer.errors import BadAddress

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_REMEDY = "Convert it to UTF-8: iconv -t UTF-8 -f"


def in_utf8(stream: BinaryIO) -> BinaryIO:
    """Return the stream, or one that converts it from UTF-16. Raises UnreadableFile for UTF-32 and UTF-16 without a mark."""
    head = cast(io.BufferedReader, stream).peek(4)[:4]
    if head.startswith(_UTF32):
        raise UnreadableFile(f"the file is UTF-32. {_REMEDY} UTF-32 FILE > NEW")
    if head.startswith(_UTF16):
        return file_of(stream, _utf8_blocks(stream))
    if b"\0" in head and head.strip(b"\0") and head.isascii():
        encoding = "UTF-16BE" if head.startswith(b"\0") else "UTF-16LE"
        raise UnreadableFile(
            f"the file has no text in UTF-8. {_REMEDY} {encoding} FILE > NEW, if it is UTF-16"
        )
    return stream


def _utf8_blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the text of a stream in UTF-16 with a byte order mark, as UTF-8 without one. Raises UnreadableFile."""
    decoder = codecs.getincrementaldecoder("utf-16")()
    is_end = False
    while not is_end:
        block = stream.read(BLOCK_BYTES)
        is_end = not block
        try:
            yield decoder.decode(block, final=is_end).encode()
        except UnicodeDecodeError as error:
            raise UnreadableFile(f"not UTF-16, or truncated: {error.reason}") from None


KINDS = {"S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES, "I": Kind.INT64}
"""DynamoDB's letters, and I for the 64-bit integer keys of Table Store."""


def keys_of(options: Mapping[str, str], shown: str) -> KeySchema | None:
    """Parse the key schema in the options, None if there is none. The first column is the partition key. Raises
    BadAddress."""
    option = options.get("keys")
    if option is None:
        return None
    columns = []
    for part in option.split(","):
        name, colon, letter = part.rpartition(":")
        if not colon or not name or letter not in KINDS:
            raise BadAddress(
                f"{shown}: keys={option}: each column must have the form NAME:S, NAME:N, NAME:B or NAME:I"
            )
        columns.append(KeyColumn(unquote(name), KINDS[letter]))
    if len(columns) > 4 or len({column.name for column in columns}) < len(columns):
        raise BadAddress(f"{shown}: keys={option}: a key must have one to four columns with different names")
    return KeySchema((columns[0],), tuple(columns[1:]))


def keys_missing(shown: str) -> BadAddress:
    """Return the error for a missing `keys` option."""
    return BadAddress(
        f"{shown}: the format does not contain the table's key. Add ?keys=NAME:S or ?keys=NAME:S,NAME:N"
    )


PAGE_ROWS = 500
FINISHING = ".finishing"
UNFINISHED = (FINISHING, ".partial", ".partial.blocks")
"""Suffixes of incomplete files."""
PAGE_BYTES = 1 << 20
_COMPRESSED = (".gz", ".zst")


class FileEndpoint(endpoint.Endpoint):
    """A file or a folder that holds one table."""

    service = endpoint.Service.TABLEGATE
    looks_up = False
    repeats_keys = True
    follows: ClassVar[bool] = False
    unseen_changes: ClassVar[str] = "a file has no change stream"
    takes_changes: ClassVar[bool] = False
    write_rows: ClassVar[int] = 1000

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shown = f"file:{path}"
        self.staged_as = Compression.ZSTD
        self._staging: Staging | None = None
        self._replaces = False
        self._opening = threading.Lock()

    @abstractmethod
    def read_definition(self) -> endpoint.Definition:
        """Return the definition of the table in an existing file."""

    @abstractmethod
    def render(self, staging: Staging, target: Path) -> Path:
        """Write the complete file from the staged rows durably. Return its name, which is `target` or a name beside
        it."""

    def read_back(self, rendered: Path, staging: Staging) -> None:
        """Raise TransferError unless the rendered file holds the staged rows."""
        key_schema = staging.definition.key_schema
        reader = self.reader_of(rendered, key_schema)
        try:
            own_schema = reader.describe().key_schema
            pages = (page for segment in reader.segments(1) for page in reader.scan(segment))
            found = _sum_of(self.content_of(row, own_schema) for page in pages for row in page.rows)
        finally:
            reader.close()
        expected = _sum_of(self.content_of(row, key_schema) for row in staging.read())
        if found != expected:
            raise errors.TransferError(
                f"{self.path} was not finished: {expected[0]:,} rows were written to {rendered}, but {found[0]:,} rows were"
                f" read back, with another checksum. This is a defect of tablegate. The rows are in {partial_path(self.path)}"
            )

    @abstractmethod
    def reader_of(self, rendered: Path, key_schema: KeySchema) -> FileEndpoint:
        """Return an endpoint that reads a rendered file of a table with this key."""

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        """Return bytes that are equal for two rows with the same values, as far as the format keeps them."""
        return bodies.encode(dict(sorted(row.latest.items())))

    def describe(self) -> endpoint.Definition:
        self.find()
        return self.read_definition()

    def find(self) -> None:
        """Raise TableAbsent unless the file exists and is complete."""
        if self.path.exists():
            return
        if partial_path(self.path).exists():
            raise errors.TableAbsent(f"{self.path} is incomplete: a copy to it was started and not finished")
        raise errors.TableAbsent(f"{self.path} does not exist")

    def existing(self) -> endpoint.Definition | None:
        """Return None: a copy never writes into an existing file."""
        return None

    def count_existing(self, limit: int) -> int | None:
        if not self.path.exists():
            return None
        if self.path.is_dir():
            raise errors.TransferError(f"{self.path} exists already. Remove the folder or name another one")
        try:
            return self._count_rows(limit)
        except errors.TransferError as error:
            raise errors.TransferError(
                f"{self.path} exists already. Remove it or name another file. It cannot be replaced, because it cannot be"
                f" read as a table: {error}"
            ) from error

    def clear(self, before_delete: Callable[[Sequence[Row]], None]) -> None:
        """Let the next copy replace the file when it is complete. Remove an incomplete one."""
        with self.converted_errors():
            discard_staging(self.path)
        self._replaces = True

    # Reading

    def segments(self, count: int) -> list[endpoint.JSON]:
        """Return one part, the whole file, as the file's size and time (see `require_unchanged`)."""
        self.find()
        return [self._size_and_time()]

    def require_unchanged(self, segment: endpoint.JSON) -> None:
        """Raise TransferError if the file has changed since `segments`. A position in it is a number of rows."""
        self._require_equal(segment, self._size_and_time())

    def _require_equal(self, before: endpoint.JSON, now: endpoint.JSON) -> None:
        if before != now:
            raise errors.CannotResume(
                f"{self.path} has changed since reading began. Start again, with a new job if this is a copy"
            )

    def _size_and_time(self) -> endpoint.JSON:
        with self.converted_errors():
            status = self.path.stat()
        return [status.st_size, status.st_mtime_ns]

    # Writing

    def create(self, definition: endpoint.Definition) -> list[str]:
        if self.path.exists() and not self._replaces:
            self._keep(definition)
            return []
        with self._opening, self.converted_errors():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._staging = Staging(self.path, self.staged_as, definition)
        return []

    def _keep(self, definition: endpoint.Definition) -> None:
        """Keep an existing file unchanged. Raises TransferError if it is not a file of such a table."""
        try:
            existing = self.describe()
        except errors.BadAddress:  # the format does not contain the key
            raise errors.TransferError(
                f"{self.path} exists already. Remove it or name another file"
            ) from None
        if existing.key_schema != definition.key_schema:
            raise errors.SchemaChanged(
                f"{self.path} exists already with another key. Remove it or name another file"
            )

    def reopen(self) -> None:
        with self._opening:
            self._reopen()

    def _reopen(self) -> Staging | None:
        if self._staging is None and partial_path(self.path).exists():
            with self.converted_errors():
                self._staging = Staging(self.path, self.staged_as, None)
        return self._staging

    def write(self, rows: Sequence[Row]) -> list[endpoint.Reject]:
        with self._opening:
            staging = self._reopen()
        if staging is None:
            if self.path.exists():
                raise errors.CannotResume(f"{self.path} exists already. Remove it or name another file")
            raise errors.CannotResume(
                f"{partial_path(self.path)} was removed with the copied rows. Start a new copy"
            )
        with self.converted_errors():
            staging.append(rows)
        return []

    def finish(self) -> None:
        with self._opening:
            staging = self._reopen()
            if staging is None:
                self.find()
                return
            with self.converted_errors():
                rendered = self.render(staging, self.path.with_name(self.path.name + FINISHING))
                self.read_back(rendered, staging)
                os.replace(rendered, self.path)
                sync_folder(self.path.parent)
                staging.discard()
                self._staging = None

    def close(self) -> None:
        with self._opening:
            if self._staging is not None:
                self._staging.close()
                self._staging = None

    def converted_errors(self) -> _FileErrors:
        """Return a context manager that converts file errors to a TransferError."""
        return _FileErrors(self.path)

    # Operations that files do not support

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        raise errors.TransferError(f"{self.shown}: rows of a file cannot be looked up by key")

    def delete(self, keys: Sequence[Key]) -> None:
        raise errors.TransferError(
            f"{self.shown}: rows of a file cannot be deleted, so a copy to a file cannot follow changes"
        )

    def capture(self) -> endpoint.JSON:
        self._refuse_to_follow()

    def changes(self, position: endpoint.JSON) -> endpoint.ChangedKeys:
        self._refuse_to_follow()

    def _refuse_to_follow(self) -> NoReturn:
        raise errors.TransferError(f"{self.shown}: {self.unseen_changes}, so it cannot be followed")


class _FileErrors:
    """A context manager that converts file errors to those of a transfer."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        match error:
            case FileNotFoundError():
                raise errors.TableAbsent(f"{error.filename or self._path} does not exist") from None
            case PermissionError():
                raise errors.AccessRefused(f"{error.filename or self._path}: permission denied") from None
            case OSError():
                raise errors.TransferError(
                    f"{error.filename or self._path}: {error.strerror or error}"
                ) from None
            case UnreadableFile():
                raise errors.BadFile(f"{self._path}: {error}") from None


class LineReader:
    """The numbered lines of a file, plain or compressed."""

    def __init__(self, path: Path, stream: BinaryIO | None = None) -> None:
        self.path = path
        self.number = 0
        self._stream = inflated(path) if stream is None else stream

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            line = self._stream.readline(LINE_BYTES)
        except UnreadableFile as error:
            raise errors.BadFile(f"{self.path}, after line {self.number}: {error}") from None
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) == LINE_BYTES:
            raise self.bad(f"the line exceeds {LINE_BYTES >> 20} MiB")
        return line.removeprefix(codecs.BOM_UTF8) if self.number == 1 else line

    def bad(self, reason: object, line: int | None = None) -> errors.BadFile:
        """Return an error about a line, by default the last one that was read."""
        return errors.BadFile(f"{self.path}, line {self.number if line is None else line}: {reason}")

    def close(self) -> None:
        self._stream.close()


def inflated(path: Path) -> BinaryIO:
    """Open a file for reading, inflated if its first bytes show a compression, and in UTF-8 if they show UTF-16.

    Raises TransferError.
    """
    with _FileErrors(path):
        stream = open(path, "rb")  # noqa: SIM115
        head = stream.read(4)
        stream.seek(0)
        if not head and path.suffix in _COMPRESSED:
            stream.close()
            raise UnreadableFile("the file is empty, but a compressed file has some bytes: it is truncated")
        return in_utf8(reading(stream, compression_of(head)))


def paged(rows: Iterable[tuple[Row, endpoint.JSON]]) -> Iterator[endpoint.ScanPage]:
    """Yield pages of rows. Each row comes with the position after it."""
    page: list[Row] = []
    size = 0
    after: endpoint.JSON = None
    for row, position in rows:
        if page and (len(page) >= PAGE_ROWS or size >= PAGE_BYTES):
            yield endpoint.ScanPage(page, after)
            page, size = [], 0
        page.append(row)
        size += row.size_bytes
        after = position
    yield endpoint.ScanPage(page, None)


def _sum_of(contents: Iterable[bytes]) -> tuple[int, int]:
    """Return (number of rows, sum of their hashes), which are equal for equal rows in any order."""
    rows = total = 0
    for content in contents:
        rows += 1
        total += xxhash.xxh3_128_intdigest(content)
    return rows, total


@contextmanager
def written_anew(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, in place of one that a killed process left. It is durable on exit."""
    with open(path, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def replace_folder(folder: Path) -> None:
    """Remove an incomplete folder that a killed process left."""
    if folder.exists():
        shutil.rmtree(folder)

"""Snapshot files: a gzip-compressed tar archive of a manifest and the rows of each table.

    snapshot.json    {"tablegate": "snapshot", "version": 1, ..., "tables": [{"file", "namespace", "definition", "rows", ...}]}
    0.jsonl          a row per line, as it was stored (gateway/model/values/row_lines.py)

A file is independent of the kind of database. A file of a newer version, or a damaged one, is refused and changes nothing.
Reading is bounded: a file of 200 KB can claim 200 MB, so neither the manifest nor the header of a member is held in memory as
a whole. The manifest is read one value at a time.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import hashlib
import json
import re
import secrets
import tarfile
import tempfile
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import orjson

from tablegate.gateway.control.documents import BadRequest, OperationRejected, only, run
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history import backup_commands
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.errors import InvalidInput, TableExists
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import SNAPSHOTS, Table, is_reserved_namespace
from tablegate.gateway.model.values.bodies import has_at_most
from tablegate.gateway.model.values.row_lines import LINE_NODES, UnreadableFile, lines_of, read_row, row_line

MANIFEST = "snapshot.json"
_TABLES = "tables"
MOST_TABLES = 100_000
MOST_MANIFEST_BYTES = 256 << 20
VALUE_CHARACTERS = 2 << 20
"""Maximum length of a value of the manifest: the description of one table, or the list of all namespaces."""
_MOST_MEMBERS = 100
_PIECE = 1 << 16
_BETWEEN_BYTES = 1 << 16  # headers of a member, and what tarfile reads in advance
_REST_BYTES = 1 << 20  # padding after the last member
_SPACE = re.compile(r"[ \t\r\n]*")
_CUT_CHARACTERS = 2  # the end of a number, as in 1e+5, that is no number alone
_JSON = json.JSONDecoder()
OpenFile = Callable[[], BinaryIO]
"""A function that opens the snapshot file at its beginning."""


class _LimitedFile:
    """A file that refuses to be read beyond `left_bytes` more."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left_bytes = _BETWEEN_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.left_bytes -= len(data)
        if self.left_bytes < 0:
            raise UnreadableFile("the header of a file, or the data after the last file, are too long")
        return data


class Members:
    """The files of a snapshot file in order: first the manifest, then the rows of each table."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = _LimitedFile(file)
        # It has no resources of its own: the file is closed by `opened`.
        self._archive = tarfile.open(  # noqa: SIM115
            fileobj=cast(IO[bytes], self._file), mode="r|"
        )
        self.manifest = self.next(MANIFEST)

    def next(self, name: str) -> IO[bytes]:
        """Return the next file, after the previous one was read to its end. Raises UnreadableFile for another name."""
        member = self._next()
        if member is None or member.name != name:
            raise UnreadableFile(f"{name} is missing")
        if name == MANIFEST and member.size > MOST_MANIFEST_BYTES:
            raise UnreadableFile(f"{name} is too long: it has more than {MOST_MANIFEST_BYTES:,} bytes")
        found = self._archive.extractfile(member)
        if found is None:
            raise UnreadableFile(f"{name} is not a file")
        self._file.left_bytes += member.size
        return found

    def skip_manifest(self) -> None:
        """Read the manifest to its end, as `next` requires."""
        while self.manifest.read(_PIECE):
            pass

    def end(self) -> None:
        """Read to the end, where gzip verifies its checksum. Raises UnreadableFile if there are more files."""
        member = self._next()
        if member is not None:
            raise UnreadableFile(f"{member.name[:255]} is not in {MANIFEST}")
        self._file.left_bytes = _REST_BYTES
        while self._file.read(_PIECE):
            pass

    def _next(self) -> tarfile.TarInfo | None:
        self._file.left_bytes = _BETWEEN_BYTES
        return self._archive.next()


@contextlib.contextmanager
def opened_members(open_file: OpenFile) -> Iterator[Members]:
    """Open a snapshot file at its manifest. Raises UnreadableFile, and the errors of gzip and tarfile."""
    with open_file() as file, gzip.open(file) as inflated:
        yield Members(cast(IO[bytes], inflated))


def facts_of_file(open_file: OpenFile) -> dict[str, Any]:
    """Return the members of a manifest, with the number of its tables as `tables`. Raises UnreadableFile."""
    with opened_members(open_file) as members:
        return {
            name: sum(1 for _ in value) if name == _TABLES else value
            for name, value in _values_of(members.manifest)
        }


def tables_of_file(open_file: OpenFile) -> Generator[Any, None, None]:
    """Yield the descriptions of the tables of a manifest. Raises UnreadableFile."""
    with opened_members(open_file) as members:
        for name, value in _values_of(members.manifest):
            if name == _TABLES:
                yield from value


def _values_of(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a manifest. Its tables are an iterator, which must be read to its end."""
    text = _JsonText(file)
    names: set[str] = set()
    text.expect("{")
    while True:
        name = text.value()
        if not isinstance(name, str) or name in names or len(names) == _MOST_MEMBERS:
            raise UnreadableFile(f"{MANIFEST} has a repeated member, or more than {_MOST_MEMBERS}")
        names.add(name)
        text.expect(":")
        yield name, (text.elements() if name == _TABLES else text.value())
        if not text.takes(","):
            break
    text.expect("}")
    text.expect("")


class _JsonText:
    """A JSON text that is parsed one value at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text, self._at = "", 0

    def takes(self, mark: str) -> bool:
        """Return True if the next character is this one, which is read then. "" is the end."""
        while True:
            blank = _SPACE.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text) or not self._read_more():
                break
        found = self._text[self._at : self._at + 1] == mark
        self._at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.takes(mark):
            found = self._text[self._at : self._at + 20]
            raise UnreadableFile(f"{MANIFEST} is damaged: it has {found!r} in place of {mark or 'its end'!r}")

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a list."""
        self.expect("[")
        count = 0
        while not self.takes("]"):
            if count:
                self.expect(",")
            count += 1
            if count > MOST_TABLES:
                raise UnreadableFile(f"{MANIFEST} has more than {MOST_TABLES:,} tables")
            yield self.value()

    def value(self) -> Any:
        """Parse the next value, and read as much of the text as that needs."""
        self.takes("\0")  # never found: it skips the space before the value
        while True:
            try:
                _, end = _JSON.raw_decode(self._text, self._at)
            except RecursionError:
                raise UnreadableFile(f"{MANIFEST} is nested too deep") from None
            except ValueError:
                end = len(self._text)
            if end + _CUT_CHARACTERS < len(self._text):
                break
            if len(self._text) - self._at >= VALUE_CHARACTERS:
                raise UnreadableFile(
                    f"a value of {MANIFEST} is too long: it has more than {VALUE_CHARACTERS:,} characters"
                )
            if not self._read_more():
                break
        start, self._at = self._at, end
        return orjson.loads(self._text[start:end])

    def _read_more(self) -> bool:
        left = len(self._text) - self._at
        data = self._file.read(max(_PIECE, min(left, VALUE_CHARACTERS - left)))
        more = self._decode(data, not data)
        if data:
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(data)


FORMAT, VERSION = "snapshot", 1
_PAGE = PageLimits(scanned=1000, size_bytes=4 << 20)
_ROWS_AT_ONCE = 500
_BYTES_AT_ONCE = 8 << 20
ROW_BYTES = 16 << 20
"""Maximum length of a row. Rows of DynamoDB and Azure Table take at most 6 MiB. Reading a row takes ten times its length."""
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, UnreadableFile, orjson.JSONDecodeError, KeyError, TypeError,
           ValueError, AttributeError)  # fmt: skip


def write(engine: Engine, place: str, known: dict[str, Any], file: BinaryIO) -> None:
    """Write a snapshot: its facts `known`, and the tables of namespaces that begin with `place`.

    Raises OperationRejected if the file could not be read back.
    """
    with tempfile.TemporaryDirectory(prefix="tablegate-") as folder:
        manifest = Path(folder, MANIFEST)
        with manifest.open("wb") as head:
            names = _write_tables(engine, place, known, head, Path(folder))
            if head.tell() > MOST_MANIFEST_BYTES:
                raise _too_large(f"its {MANIFEST} has more than {MOST_MANIFEST_BYTES:,} bytes")
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
            for name in (MANIFEST, *names):
                archive.add(Path(folder, name), name, filter=_anonymous)


def _write_tables(
    engine: Engine, place: str, known: dict[str, Any], manifest: BinaryIO, folder: Path
) -> list[str]:
    """Write the manifest and the files of the tables, which it describes. Returns their names."""
    names: list[str] = []
    facts = {name: value for name, value in known.items() if name != "tables"}
    manifest.write(orjson.dumps({"tablegate": FORMAT, "version": VERSION, **facts})[:-1] + b',"tables":[')
    for namespace in known["namespaces"]:
        for table, definition in run(engine, backup_commands.DescribeTables(place + namespace)):
            name = f"{len(names)}.jsonl"
            rows, digest = _write_rows(engine, table, folder / name)
            described = {"file": name, "namespace": namespace, "definition": definition}
            entry = orjson.dumps({**described, "rows": rows, "sha256": digest})
            if len(names) == MOST_TABLES:
                raise _too_large(f"it has more than {MOST_TABLES:,} tables")
            if len(entry) > VALUE_CHARACTERS:
                raise _too_large(f"the definition of {table.name} has {len(entry):,} bytes")
            manifest.write(b"," + entry if names else entry)
            names.append(name)
    manifest.write(b"]}")
    return names


def _too_large(reason: str) -> OperationRejected:
    return OperationRejected(
        409, f"the snapshot does not fit in a file: {reason}. Copy the tables with `tablegate copy`."
    )


def _write_rows(engine: Engine, table: Table, path: Path) -> tuple[int, str]:
    """Write the rows of a table that does not change. Returns their number and digest."""
    count, digest, after = 0, hashlib.sha256(), None
    with path.open("wb") as file:
        while True:
            page = run(engine, Read(table, EVERYTHING if after is None else EVERYTHING.after(after), _PAGE))
            for row in page.rows:
                line = row_line(row)
                if len(line) > ROW_BYTES or not has_at_most(LINE_NODES, line):
                    raise _too_large(f"a row of {table.name} has {len(line):,} bytes")
                file.write(line)
                digest.update(line)
            count += len(page.rows)
            if page.last is None:
                return count, digest.hexdigest()
            after = page.last.position


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without owner and time."""
    anonymous = tarfile.TarInfo(member.name)
    anonymous.size = member.size
    return anonymous


def begun_at_ms(name: str) -> int | None:
    """Return the start time in the temporary name of a snapshot file that is being read. None for other names."""
    begun, _, token = name.removeprefix(".").partition("-")
    return int(begun) if name.startswith(".") and token and begun.isdecimal() else None


def read(engine: Engine, open_file: OpenFile) -> tuple[dict[str, Any], str]:
    """Create the tables of a file in temporary namespaces. Returns the facts of the file and the prefix of these namespaces.

    Raises BadRequest, GatewayError. The tables are removed then.
    """
    making = f"{SNAPSHOTS}.{time.time_ns() // 1_000_000}-{secrets.token_hex(8)}/"
    try:
        with _damage_as_bad_request():
            known = _checked(facts_of_file(open_file))
            _read_tables(engine, open_file, making, known["namespaces"])
            return known, making
    except BaseException:
        run(engine, backup_commands.CopyTables((), making))
        raise


@contextlib.contextmanager
def _damage_as_bad_request() -> Iterator[None]:
    """Convert the errors of a damaged file to BadRequest."""
    try:
        yield
    except BadRequest:
        raise
    except (InvalidInput, TableExists) as error:
        raise BadRequest(f"the snapshot is damaged: {error!r}") from None
    except _BROKEN as error:
        raise BadRequest(f"the snapshot cannot be read: {error or type(error).__name__}") from None


def _checked(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a snapshot. Raises BadRequest, KeyError, TypeError."""
    if manifest.get("tablegate") != FORMAT:
        raise BadRequest(f"the file is not a snapshot: {MANIFEST} has another format")
    if manifest["version"] > VERSION:
        raise BadRequest(
            f"the snapshot has version {manifest['version']}, but this release reads up to version {VERSION}"
        )
    known = {name: manifest[name] for name in ("saved_at_ms", "namespaces", "whole", "tables")}
    only(known, saved_at_ms=int, namespaces=list, whole=bool, tables=int)
    del known["tables"]
    if not all(
        isinstance(each, str) and each and not is_reserved_namespace(each) for each in known["namespaces"]
    ):
        raise BadRequest("the snapshot is damaged: a namespace is reserved")
    return known


def _read_tables(engine: Engine, open_file: OpenFile, making: str, namespaces: list[str]) -> None:
    """Create the tables of a file. The file is read twice at a time: its manifest, and the rows of the table described."""
    known = frozenset(namespaces)
    with contextlib.closing(tables_of_file(open_file)) as tables, opened_members(open_file) as members:
        members.skip_manifest()
        for described in tables:
            if described["namespace"] not in known:
                raise BadRequest(
                    f"the snapshot is damaged: {described['namespace']} is not one of its namespaces"
                )
            _restore(engine, making, described, members.next(described["file"]))
        members.end()


def _restore(engine: Engine, making: str, described: dict[str, Any], file: IO[bytes]) -> None:
    table = run(
        engine, backup_commands.ImportDefinition(making + described["namespace"], described["definition"])
    )
    count, digest = 0, hashlib.sha256()
    for lines in _batches(file):
        for line in lines:
            digest.update(line)
        run(engine, backup_commands.ImportRows(table, [read_row(line, table.key_schema) for line in lines]))
        count += len(lines)
    if (count, digest.hexdigest()) != (described["rows"], described["sha256"]):
        raise BadRequest(f"{described['file']} is not what was written: its checksum is wrong")


def _batches(file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a file in lists of bounded size."""
    lines: list[bytes] = []
    size = 0
    for line in lines_of(file, ROW_BYTES):
        lines.append(line)
        size += len(line)
        if len(lines) >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines

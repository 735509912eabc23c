"""Snapshot files: a gzip-compressed tar archive of a manifest and the rows of each table.

    snapshot.json    {"tablegate": "snapshot", "version": 1, ..., "tables": [{"file", "namespace", "definition", "rows", ...}]}
    0.jsonl          a row per line, as it was stored (gateway/model/values/row_lines.py)

A file is independent of the kind of database. A file of a newer version, or a damaged one, is refused and changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

import orjson

from tablegate.gateway.control import archive_reading
from tablegate.gateway.control.answers import BadRequest, OperationRejected, only, run
from tablegate.gateway.control.archive_reading import MANIFEST, OpenFile, opened
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history import backup_commands
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.errors import InvalidInput, TableExists
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import SNAPSHOTS, Table, is_reserved_namespace
from tablegate.gateway.model.values.json_texts import has_at_most
from tablegate.gateway.model.values.row_lines import LINE_NODES, UnreadableFile, lines_of, read_row, row_line

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
            if head.tell() > archive_reading.MOST_MANIFEST_BYTES:
                raise _too_large(
                    f"its {MANIFEST} has more than {archive_reading.MOST_MANIFEST_BYTES:,} bytes"
                )
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
            if len(names) == archive_reading.MOST_TABLES:
                raise _too_large(f"it has more than {archive_reading.MOST_TABLES:,} tables")
            if len(entry) > archive_reading.VALUE_CHARACTERS:
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
            known = _checked(archive_reading.facts_of(open_file))
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
    with contextlib.closing(archive_reading.tables_of(open_file)) as tables, opened(open_file) as members:
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
    """Yield the lines of a file in lists, each of which ends at a bound."""
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

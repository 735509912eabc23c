"""Snapshot files: a gzip-compressed tar archive of a manifest and the rows of each table.

    snapshot.json    {"tablegate": "snapshot", "version": 1, ..., "tables": [{"file", "namespace", "definition", "rows", ...}]}
    0.jsonl          a row per line, as it was stored (gateway/model/values/row_lines.py)

A file is independent of the kind of database. A file of a newer version, or a damaged one, is refused and changes nothing.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import secrets
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import orjson

from tablegate.gateway.control.answers import BadRequest, run
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands import snapshot_commands
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.errors import InvalidInput, TableExists
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.namespaces import SNAPSHOTS, is_reserved
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.row_lines import UnreadableFile, read_row, row_line

FORMAT, VERSION = "snapshot", 1
MANIFEST = "snapshot.json"
_PAGE = PageLimits(scanned=1000, size_bytes=4 << 20)
_ROWS_AT_ONCE = 500
_REST_BYTES = 1 << 16
_MOST_MANIFEST_BYTES = 256 << 20
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, UnreadableFile, orjson.JSONDecodeError, KeyError, TypeError,
           ValueError, AttributeError)  # fmt: skip


def write(engine: Engine, place: str, known: dict[str, Any], file: BinaryIO) -> None:
    """Write a snapshot: its facts `known`, and the tables of namespaces that begin with `place`."""
    with tempfile.TemporaryDirectory(prefix="tablegate-") as folder:
        tables: list[dict[str, Any]] = []
        for namespace in known["namespaces"]:
            for table, definition in run(engine, snapshot_commands.DescribeTables(place + namespace)):
                name = f"{len(tables)}.jsonl"
                rows, digest = _write_rows(engine, table, Path(folder, name))
                tables.append(
                    {
                        "file": name,
                        "namespace": namespace,
                        "definition": definition,
                        "rows": rows,
                        "sha256": digest,
                    }
                )
        manifest = orjson.dumps({"tablegate": FORMAT, "version": VERSION, **known, "tables": tables})
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as archive:
            head = tarfile.TarInfo(MANIFEST)
            head.size = len(manifest)
            archive.addfile(head, io.BytesIO(manifest))
            for described in tables:
                archive.add(Path(folder, described["file"]), described["file"], filter=_anonymous)


def _write_rows(engine: Engine, table: Table, path: Path) -> tuple[int, str]:
    """Write the rows of a table that does not change. Returns their number and digest."""
    count, digest, after = 0, hashlib.sha256(), None
    with path.open("wb") as file:
        while True:
            page = run(engine, Read(table, EVERYTHING if after is None else EVERYTHING.after(after), _PAGE))
            for row in page.rows:
                line = row_line(row)
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


def read(engine: Engine, file: BinaryIO) -> tuple[dict[str, Any], str]:
    """Create the tables of a file in temporary namespaces. Returns the facts of the file and the prefix of these namespaces.

    Raises BadRequest, GatewayError. The tables are removed then.
    """
    making = f"{SNAPSHOTS}.{time.time_ns() // 1_000_000}-{secrets.token_hex(8)}/"
    try:
        with _damage_as_bad_request():
            return _read(engine, file, making), making
    except BaseException:
        run(engine, snapshot_commands.CopyTables((), making))
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


def _read(engine: Engine, file: BinaryIO, making: str) -> dict[str, Any]:
    with gzip.open(file) as inflated:
        known = _read_tar(engine, cast(IO[bytes], inflated), making)
        # Read to the end, where gzip verifies its checksum.
        while inflated.read(_REST_BYTES):
            pass
    return known


def _read_tar(engine: Engine, file: IO[bytes], making: str) -> dict[str, Any]:
    with tarfile.open(fileobj=file, mode="r|") as archive:
        first = archive.next()
        if first is None or first.name != MANIFEST or first.size > _MOST_MANIFEST_BYTES:
            raise BadRequest(f"the file is not a snapshot: it does not begin with {MANIFEST}")
        manifest = orjson.loads(_member(archive, first).read())
        if manifest.get("tablegate") != FORMAT:
            raise BadRequest(f"the file is not a snapshot: {MANIFEST} has another format")
        if manifest["version"] > VERSION:
            raise BadRequest(
                f"the snapshot has version {manifest['version']}, but this release reads up to version {VERSION}"
            )
        known = {name: manifest[name] for name in ("saved_at_ms", "namespaces", "whole")}
        if not all(isinstance(each, str) and each and not is_reserved(each) for each in known["namespaces"]):
            raise BadRequest("the snapshot is damaged: a namespace is reserved")
        for described in manifest["tables"]:
            if described["namespace"] not in known["namespaces"]:
                raise BadRequest(
                    f"the snapshot is damaged: {described['namespace']} is not one of its namespaces"
                )
            member = archive.next()
            if member is None or member.name != described["file"]:
                raise BadRequest(f"the snapshot is damaged: {described['file']} is missing")
            _restore(engine, making, described, _member(archive, member))
    return known


def _restore(engine: Engine, making: str, described: dict[str, Any], lines: IO[bytes]) -> None:
    table = run(
        engine, snapshot_commands.ImportDefinition(making + described["namespace"], described["definition"])
    )
    count, digest = 0, hashlib.sha256()
    while batch := list(islice(lines, _ROWS_AT_ONCE)):
        for line in batch:
            digest.update(line)
        run(engine, snapshot_commands.ImportRows(table, [read_row(line, table.key_schema) for line in batch]))
        count += len(batch)
    if (count, digest.hexdigest()) != (described["rows"], described["sha256"]):
        raise BadRequest(f"{described['file']} is not what was written: its checksum is wrong")


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(member)
    if found is None:
        raise BadRequest(f"the snapshot is damaged: {member.name} is not a file")
    return found

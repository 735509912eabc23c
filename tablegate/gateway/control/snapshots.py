"""Snapshots of all tables, or of one namespace, at one time. They are kept in the database, and can be loaded and forked.

A snapshot keeps the tables of each namespace in `snapshot/NAME/NAMESPACE`, which belongs to no caller. Its facts are in an index
document, so that empty snapshots exist, too.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from tablegate.gateway.control import archives
from tablegate.gateway.control.archives import OpenFile
from tablegate.gateway.control.documents import BadRequest, OperationRejected, members_of, namespace_of, run
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import CopyTables, DocumentChange, ListNamespaces
from tablegate.gateway.http.messages import Reply
from tablegate.gateway.model.commands.table_commands import GetProperties, PutProperties
from tablegate.gateway.model.tables.tables import SNAPSHOTS, is_reserved_namespace

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_START = ".start"  # not a valid name for callers
_DAY_MS = 86_400_000
_INDEX = (SNAPSHOTS, "index")
"""The index document of snapshots: name -> facts."""
_STARTED = (SNAPSHOTS, "started")
"""The document with the file from which the database was initialised."""


def listed(engine: Engine) -> dict[str, Any]:
    """Return all snapshots by name, with their times and namespaces."""
    return {"snapshots": _index(engine)}


def save(engine: Engine, given: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Save all tables, or those of one `namespace`, as the snapshot `name`. Replaces a snapshot of that name.

    Raises BadRequest, GatewayError.
    """
    members = members_of(given, name=str, namespace=str)
    name = members.get("name", "")
    _check_name(name)
    namespace = namespace_of(members)
    present = [found for found in run(engine, ListNamespaces()) if not is_reserved_namespace(found)]
    namespaces = present if namespace is None else [namespace]
    copies = tuple((each, _place(name, each)) for each in namespaces)
    known = {"saved_at_ms": now_ms, "namespaces": namespaces, "whole": namespace is None}
    tables = run(engine, CopyTables(copies, _place(name, ""), _recorded(name, known)))
    return {"name": name, **known, "tables": tables}


def load(engine: Engine, name: str) -> dict[str, Any]:
    """Replace the tables by those of a snapshot. A snapshot of all tables also removes tables created since.

    Raises OperationRejected, GatewayError.
    """
    known = _known(engine, name)
    namespaces = set(known["namespaces"])
    if known["whole"]:
        namespaces |= {each for each in run(engine, ListNamespaces()) if not is_reserved_namespace(each)}
    copies = tuple((_place(name, each), each) for each in sorted(namespaces))
    return {"name": name, "tables": run(engine, CopyTables(copies))}


def fork(engine: Engine, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Replace the tables of a `namespace` by those of a namespace in a snapshot: `of`, or its only one.

    Raises BadRequest, OperationRejected, GatewayError.
    """
    members = members_of(given, namespace=str, of=str)
    known = _known(engine, name)
    target = namespace_of(members)
    if target is None:
        raise BadRequest("namespace is required: the namespace that gets the tables")
    source: str = members.get("of", "")
    if not source and len(known["namespaces"]) == 1:
        [source] = known["namespaces"]
    if source not in known["namespaces"]:
        raise BadRequest(
            f"of must be one of {', '.join(known['namespaces']) or 'none: the snapshot is empty'}"
        )
    return {"name": name, "tables": run(engine, CopyTables(((_place(name, source), target),)))}


def remove(engine: Engine, name: str) -> dict[str, Any]:
    """Remove a snapshot. Raises OperationRejected, GatewayError."""
    _known(engine, name)
    run(engine, CopyTables((), _place(name, ""), DocumentChange(*_INDEX, partial(_without, name))))
    return {"name": name}


def export(engine: Engine, name: str) -> Reply:
    """Return a snapshot as one file. Raises OperationRejected, GatewayError."""
    known = _known(engine, name)
    with tempfile.TemporaryFile() as file:
        archives.write(engine, _place(name, ""), known, file)
        file.seek(0)
        headers = (("Content-Type", "application/gzip"), ("Cache-Control", "no-store"))
        return Reply(200, headers, file.read())


def put(engine: Engine, content: bytes, name: str) -> dict[str, Any]:
    """Create a snapshot from the content of a file. Raises BadRequest, GatewayError."""
    _check_name(name)
    return _put(engine, name, partial(io.BytesIO, content))


def start_from(engine: Engine, path: Path) -> None:
    """Initialise an empty database with the tables of a file, once. An interrupted start is repeated.

    Raises BadRequest, OperationRejected, GatewayError, OSError.
    """
    if run(engine, GetProperties(*_STARTED)) is None:
        if _START not in _index(engine):
            if any(not each.startswith(f"{SNAPSHOTS}.") for each in run(engine, ListNamespaces())):
                raise OperationRejected(
                    409, "the database is not empty: remove --from or use another database"
                )
            _put(engine, _START, lambda: path.open("rb"))
        load(engine, _START)
        run(engine, PutProperties(*_STARTED, {"from": str(path)}))
    if _START in _index(engine):
        remove(engine, _START)


def remove_unfinished(engine: Engine, is_shared: bool, now_ms: int) -> None:
    """Remove the tables of snapshots that are not in the index.

    Killed servers leave them: tables of a file that was being read. If the database is shared, another server can be
    reading a file now, so its tables are removed after a day.
    """
    index = _index(engine)
    found = {
        each.removeprefix(SNAPSHOTS).partition("/")[0] for each in run(engine, ListNamespaces(SNAPSHOTS))
    }
    for name in sorted(found - index.keys()):
        begun = archives.begun_at_ms(name)
        if not is_shared or begun is None or now_ms - begun > _DAY_MS:
            with contextlib.suppress(_AlreadyRecorded):
                unchanged = DocumentChange(*_INDEX, partial(_still_without, name))
                run(engine, CopyTables((), _place(name, ""), unchanged))


def _put(engine: Engine, name: str, open_file: OpenFile) -> dict[str, Any]:
    known, making = archives.read(engine, open_file)
    try:
        copies = tuple((making + each, _place(name, each)) for each in known["namespaces"])
        tables = run(engine, CopyTables(copies, _place(name, ""), _recorded(name, known)))
    finally:
        run(engine, CopyTables((), making))
    return {"name": name, **known, "tables": tables}


def _recorded(name: str, known: dict[str, Any]) -> DocumentChange:
    """Return the change of the index that adds a snapshot."""
    return DocumentChange(*_INDEX, lambda index, tables: {**index, name: {**known, "tables": tables}})


def _without(name: str, index: dict[str, Any], _: int) -> dict[str, Any]:
    return {each: known for each, known in index.items() if each != name}


class _AlreadyRecorded(Exception):
    """A snapshot was added to the index meanwhile."""


def _still_without(name: str, index: dict[str, Any], _: int) -> dict[str, Any]:
    if name in index:
        raise _AlreadyRecorded
    return index


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadRequest(
            "name must be 1 to 64 letters, digits, '.', '_' and '-', and begin with a letter or digit"
        )


def _place(name: str, namespace: str) -> str:
    return f"{SNAPSHOTS}{name}/{namespace}"


def _index(engine: Engine) -> dict[str, Any]:
    return run(engine, GetProperties(*_INDEX)) or {}


def _known(engine: Engine, name: str) -> dict[str, Any]:
    known: dict[str, Any] | None = _index(engine).get(name)
    if known is None:
        raise OperationRejected(404, f"there is no snapshot {name[:64]}")
    return known

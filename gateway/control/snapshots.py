"""Snapshots: all tables, or those of one namespace, as they were at one moment; kept in the database, loaded and forked.

What a snapshot has of a namespace is a namespace of its own, `snapshot/NAME/NAMESPACE`, which belongs to no caller. What it
was made of stands in a document beside it, so that an empty one is known too.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from gateway.control import archives
from gateway.control.answers import BadRequest, Refused, namespace_of, only, run
from gateway.engine.engine import Engine
from gateway.http import Reply
from gateway.model.commands import CopyTables, GetProperties, ListNamespaces, PutProperties, ResetTables
from gateway.model.namespaces import SNAPSHOTS, is_reserved

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_START = "start"
_INDEX = (SNAPSHOTS, "index")
"""The document that says which snapshots there are: name -> what is known of it."""


def listed(engine: Engine) -> dict[str, Any]:
    """All snapshots by name: when each was saved, and of which namespaces."""
    return {"snapshots": _index(engine)}


def save(engine: Engine, given: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """Save everything, or one `namespace`, under a `name`, in place of what had that name. Raises BadRequest, GatewayError."""
    members = only(given, name=str, namespace=str)
    name = members.get("name", "")
    _check_name(name)
    namespace = namespace_of(members)
    present = [found for found in run(engine, ListNamespaces()) if not is_reserved(found)]
    namespaces = present if namespace is None else [namespace]
    former = run(engine, ListNamespaces(_place(name, "")))
    stale = [found for found in former if found not in {_place(name, each) for each in namespaces}]
    copies = tuple((each, _place(name, each)) for each in namespaces)
    tables = run(engine, CopyTables(copies))
    for found in stale:
        run(engine, ResetTables(found))
    known = {
        "saved_at_ms": now_ms,
        "namespaces": namespaces,
        "whole": namespace is None,
        "tables": tables,
    }
    _write_index(engine, {**_index(engine), name: known})
    return {"name": name, **known}


def load(engine: Engine, name: str) -> dict[str, Any]:
    """Make the tables those of a snapshot; of a whole one all tables, so that what was made since is gone. Raises Refused,
    GatewayError."""
    known = _known(engine, name)
    namespaces = set(known["namespaces"])
    if known["whole"]:
        namespaces |= {each for each in run(engine, ListNamespaces()) if not is_reserved(each)}
    copies = tuple((_place(name, each), each) for each in sorted(namespaces))
    return {"name": name, "tables": run(engine, CopyTables(copies))}


def fork(engine: Engine, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Make the tables of a `namespace` those that a snapshot has of its only namespace, or of the one that `of` names. Raises
    BadRequest, Refused, GatewayError."""
    members = only(given, namespace=str, of=str)
    known = _known(engine, name)
    target = namespace_of(members)
    if target is None:
        raise BadRequest("namespace says whose tables they become")
    source: str = members.get("of", "")
    if not source and len(known["namespaces"]) == 1:
        [source] = known["namespaces"]
    if source not in known["namespaces"]:
        raise BadRequest(
            f"of must be one of {', '.join(known['namespaces']) or 'none: the snapshot is empty'}"
        )
    return {"name": name, "tables": run(engine, CopyTables(((_place(name, source), target),)))}


def remove(engine: Engine, name: str) -> dict[str, Any]:
    """Forget a snapshot. Raises Refused, GatewayError."""
    _known(engine, name)
    _write_index(engine, {each: known for each, known in _index(engine).items() if each != name})
    for namespace in run(engine, ListNamespaces(_place(name, ""))):
        run(engine, ResetTables(namespace))
    return {"name": name}


def export(engine: Engine, name: str) -> Reply:
    """A snapshot as one file. Raises Refused, GatewayError."""
    known = _known(engine, name)
    with tempfile.TemporaryFile() as file:
        archives.write(engine, _place(name, ""), known, file)
        file.seek(0)
        headers = (("Content-Type", "application/gzip"), ("Cache-Control", "no-store"))
        return Reply(200, headers, file.read())


def put(engine: Engine, content: bytes, name: str) -> dict[str, Any]:
    """Make a snapshot of a file's content. Raises BadRequest, GatewayError."""
    return _put(engine, name, io.BytesIO(content))


def start_from(engine: Engine, path: Path) -> None:
    """Make the tables of an empty database those of a file. Raises BadRequest, Refused, GatewayError, OSError."""
    if run(engine, ListNamespaces()):
        raise Refused(409, "the database is not empty")
    with path.open("rb") as file:
        _put(engine, _START, file)
    load(engine, _START)
    remove(engine, _START)


def _put(engine: Engine, name: str, file: BinaryIO) -> dict[str, Any]:
    _check_name(name)
    known = archives.read(engine, file, name)
    _write_index(engine, {**_index(engine), name: known})
    return {"name": name, **known}


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise BadRequest(
            "name must be 1 to 64 letters, digits, '.', '_' and '-', and begin with a letter or digit"
        )


def _place(name: str, namespace: str) -> str:
    return f"{SNAPSHOTS}{name}/{namespace}"


def _index(engine: Engine) -> dict[str, Any]:
    return run(engine, GetProperties(*_INDEX)) or {}


def _write_index(engine: Engine, index: dict[str, Any]) -> None:
    run(engine, PutProperties(*_INDEX, index))


def _known(engine: Engine, name: str) -> dict[str, Any]:
    known: dict[str, Any] | None = _index(engine).get(name)
    if known is None:
        raise Refused(404, f"there is no snapshot {name[:64]}")
    return known

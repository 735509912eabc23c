"""Initial tables and rows of a server or a test (seeds), and the reset of all tables, of a namespace or of some tables.

Seeds come from the files of a folder or of a request. The dialects read the files (Dialect.load_seed).
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tablegate.gateway.control.documents import (
    BadRequest,
    OperationRejected,
    members_of,
    names_of,
    namespace_of,
    only,
    run,
)
from tablegate.gateway.dialects.dialect import BadSeed, Dialect, Seed
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.model.errors import TableMissing


def from_folder(dialects: Sequence[Dialect], folder: Path) -> dict[str, int]:
    """Load all files of a folder and its subfolders. Returns table -> number of rows. Raises BadSeed."""
    if not folder.is_dir():
        raise BadSeed(f"{folder} is not a folder")
    files: dict[str, Callable[[], Any]] = {}
    for path in folder.rglob("*"):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            files[path.relative_to(folder).as_posix()] = partial(io.FileIO, path)
    return _load(dialects, Seed(files))


def from_request(dialects: Sequence[Dialect], given: dict[str, Any]) -> dict[str, Any]:
    """Load `files`, each with `name` and `text` or `base64`, into the tables of an `account` and `region`.

    Raises BadRequest.
    """
    members = only(given, files=list, account=str, region=str)
    if ("account" in members) != ("region" in members):
        raise BadRequest("account and region must be given together")
    files: dict[str, Callable[[], BinaryIO]] = {}
    for file in members.get("files", []):
        if not isinstance(file, dict):
            raise BadRequest("files must be a list of objects")
        known = only(file, name=str, text=str, base64=str)
        name = known.get("name", "")
        if not name or PurePosixPath(name).is_absolute() or ("text" in known) == ("base64" in known):
            raise BadRequest("each file must have a relative name, and either text or base64")
        files[name] = partial(io.BytesIO, _content(known))
    place = (members["account"], members["region"]) if "account" in members else None
    try:
        return {"tables": _load(dialects, Seed(files, place))}
    except BadSeed as error:
        raise BadRequest(str(error)) from None


def _content(known: dict[str, str]) -> bytes:
    try:
        if "text" in known:
            return known["text"].encode()
        return base64.b64decode(known["base64"], validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise BadRequest(f"{known['name']}: {error}") from None


def _load(dialects: Sequence[Dialect], seed: Seed) -> dict[str, int]:
    rows: dict[str, int] = {}
    for dialect in dialects:
        rows |= dialect.load_seed(seed)
    return rows


RESET_MODES = ("tables", "rows")


def reset(engine: Engine, given: dict[str, Any]) -> dict[str, Any]:
    """Drop tables (`mode` "tables", the default) or delete their rows ("rows"). Returns the number of tables.

    `namespace` and `tables` limit the reset. Raises BadRequest, OperationRejected, GatewayError.
    """
    members = members_of(given, namespace=str, tables=list, mode=str)
    mode = members.get("mode", "tables")
    if mode not in RESET_MODES:
        raise BadRequest(f"mode must be one of {', '.join(RESET_MODES)}")
    names = names_of(members.get("tables"), "tables")
    command = ResetTables(namespace_of(members), names, keeps_definitions=mode == "rows")
    try:
        return {"tables": run(engine, command)}
    except TableMissing as error:
        raise OperationRejected(404, f"there is no table {error.name[:255]}") from None

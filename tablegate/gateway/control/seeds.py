"""Seeds: initial tables and rows of a server or a test, from the files of a folder or of a request.

The dialects read the files (Dialect.load_seed).
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tablegate.gateway.control.answers import BadRequest, only
from tablegate.gateway.dialect import BadSeed, Dialect, Seed


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

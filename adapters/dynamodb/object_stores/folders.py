"""A folder as a place of objects: its sub-folders are the buckets, the files below them the objects.

Nothing outside of the folder can be named, read or written: keys whose parts are not plain names are refused, and so is whatever
a symbolic link leads out to. An object has its name when all of it is on the disk.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from adapters.dynamodb.object_stores.object_store import (
    ACCESS_DENIED,
    NO_BUCKET,
    Bucket,
    Encryption,
    Refused,
    StoredObject,
)

_UNFINISHED = ".tablegate-unfinished"
_BLOCK_BYTES = 1 << 20


class Folder:
    """The objects below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def listed(self, bucket: Bucket, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """See ObjectStore."""
        top = self._bucket(bucket)
        found = sorted(
            (key.encode(errors="surrogateescape"), path)
            for key, path in _files(top, prefix)
            if key.startswith(prefix)
        )
        begin = after.encode()
        for key, path in found:
            if key > begin:
                with suppress(FileNotFoundError):
                    yield StoredObject(key.decode(errors="surrogateescape"), path.stat().st_size)

    def read(self, bucket: Bucket, key: str) -> BinaryIO:
        """See ObjectStore."""
        try:
            return self._path(bucket, key).open("rb")
        except OSError as error:
            raise _refused(error, key) from None

    def write(self, bucket: Bucket, key: str, data: BinaryIO, encryption: Encryption) -> str:
        """See ObjectStore. Encryption is the disk's business."""
        path = self._path(bucket, key)
        hashed = hashlib.md5(usedforsecurity=False)
        unfinished = path.with_name(f"{secrets.token_hex(8)}{_UNFINISHED}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("xb") as file:
                while block := data.read(_BLOCK_BYTES):
                    hashed.update(block)
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            _sync(path.parent)
        except OSError as error:
            with suppress(OSError):
                unfinished.unlink()
            raise _refused(error, key) from None
        return hashed.hexdigest()

    def _bucket(self, bucket: Bucket) -> Path:
        path = self._inside(bucket.name)
        if not path.is_dir():
            raise Refused(
                NO_BUCKET,
                f"The specified bucket does not exist (there is no folder {bucket.name} for exports)",
            )
        return path

    def _path(self, bucket: Bucket, key: str) -> Path:
        self._bucket(bucket)
        return self._inside(f"{bucket.name}/{key}")

    def _inside(self, name: str) -> Path:
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise Refused(ACCESS_DENIED, "The key cannot be that of a file below the folder for exports")
        path = self._root.joinpath(*parts)
        if not path.resolve().is_relative_to(self._root):
            raise Refused(ACCESS_DENIED, "The key leads out of the folder for exports")
        return path


def _files(top: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """(key, path) of the files of a bucket, at least those whose keys begin so. Symbolic links are not followed."""
    for folder, folders, names in os.walk(top):
        within = Path(folder).relative_to(top).as_posix()
        head = "" if within == "." else f"{within}/"
        folders[:] = [name for name in folders if _may_begin(f"{head}{name}/", prefix)]
        for name in names:
            path = Path(folder, name)
            if not name.endswith(_UNFINISHED) and not path.is_symlink() and path.is_file():
                yield head + name, path


def _may_begin(head: str, prefix: str) -> bool:
    return head.startswith(prefix) or prefix.startswith(head)


def _refused(error: OSError, key: str) -> Exception:
    """What is the matter for good, or the error itself, which may pass (a full disk)."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)):
        return Refused(ACCESS_DENIED, f"{error.strerror}: {key}")
    if error.strerror == "File name too long":
        return Refused(ACCESS_DENIED, "The key has a part that is too long for the name of a file")
    return error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

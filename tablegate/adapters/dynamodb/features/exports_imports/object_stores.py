"""The interface of object stores, their error, and a folder as an object store.

The sub-folders of the folder are the buckets, and the files in them are the objects. Nothing outside of the folder can be
listed, read or written. Keys with parts that are not plain names are rejected, and so are symbolic links that lead out of
it. An object gets its name only after all of it is on the disk.

A file beside the objects keeps the table of an object, as not every file system has extended attributes. It is written
before the object and stays if the object is removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

# Interface


class ObjectStoreRejection(Exception):
    """A lasting rejection by the object store. `code` and `text` become FailureCode and FailureMessage of the job.

    Any other exception may be temporary.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class BucketReference(NamedTuple):
    """A bucket named by an account. `owner`: the account that must own it. Empty for any."""

    name: str
    owner: str = ""
    account: str = ""


class Encryption(NamedTuple):
    """The encryption of a new object: AES256 or KMS, as in S3SseAlgorithm. Empty for the bucket's default."""

    algorithm: str = ""
    key: str = ""


class NewObject(NamedTuple):
    """Properties of an object to be written. `table`: the table of its rows (object_worker.py)."""

    encryption: Encryption = Encryption()
    table: str = ""


class OpenObject(NamedTuple):
    """An object being read, and the table recorded when it was written. Empty if none."""

    stream: BinaryIO
    table: str


class StoredObject(NamedTuple):
    """An entry of a listing."""

    key: str
    size_bytes: int


NO_BUCKET = "S3NoSuchBucket"
ACCESS_DENIED = "S3AccessDenied"


class ObjectStore(Protocol):
    """An object store. Every method raises ObjectStoreRejection."""

    def listed(self, bucket: BucketReference, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """Yield the objects with this prefix and a key greater than `after`, in byte order of the keys."""
        ...

    def read(self, bucket: BucketReference, key: str) -> OpenObject:
        """Open an object for reading."""
        ...

    def write(self, bucket: BucketReference, key: str, data: BinaryIO, new: NewObject) -> str:
        """Store a whole object, replacing an existing one. Return its ETag."""
        ...


# A folder


# Internal folders in each bucket.
_UNFINISHED = ".tablegate-unfinished"
_TABLES = ".tablegate-tables"
_OWN = (_UNFINISHED, _TABLES)
_BLOCK_BYTES = 1 << 20


class Folder:
    """The object store of a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        with suppress(OSError):
            for bucket in self._root.iterdir():
                _remove_unfinished(bucket / _UNFINISHED)

    def listed(self, bucket: BucketReference, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """See ObjectStore."""
        top = self._bucket(bucket)
        files = sorted(
            (key.encode(errors="surrogateescape"), path)
            for key, path in _files(top, prefix)
            if key.startswith(prefix)
        )
        begin = after.encode()
        for key, path in files:
            if key > begin:
                with suppress(FileNotFoundError):
                    yield StoredObject(key.decode(errors="surrogateescape"), path.stat().st_size)

    def read(self, bucket: BucketReference, key: str) -> OpenObject:
        """See ObjectStore."""
        try:
            stream = self._path(bucket, key).open("rb")
        except OSError as error:
            raise _rejection_of(error, key) from None
        # Read after the object is opened, as it is written before the object.
        table = self._table_file(bucket, key)
        return OpenObject(stream, table.read_text() if table.exists() else "")

    def write(self, bucket: BucketReference, key: str, data: BinaryIO, new: NewObject) -> str:
        """See ObjectStore. Encryption is left to the file system."""
        path = self._path(bucket, key)
        hashed = hashlib.md5(usedforsecurity=False)
        folder = self._bucket(bucket) / _UNFINISHED
        unfinished = folder / secrets.token_hex(8)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_unfinished(folder)
            if new.table:
                _write_table(self._table_file(bucket, key), new.table)
            with _create_locked(unfinished) as file:
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
            raise _rejection_of(error, key) from None
        finally:
            with suppress(OSError):
                folder.rmdir()
        return hashed.hexdigest()

    def _bucket(self, bucket: BucketReference) -> Path:
        path = self._path_inside(bucket.name)
        if not path.is_dir():
            raise ObjectStoreRejection(
                NO_BUCKET,
                f"The specified bucket does not exist (there is no folder {bucket.name} for exports)",
            )
        return path

    def _table_file(self, bucket: BucketReference, key: str) -> Path:
        name = hashlib.sha256(key.encode(errors="surrogateescape")).hexdigest()
        return self._bucket(bucket) / _TABLES / name

    def _path(self, bucket: BucketReference, key: str) -> Path:
        self._bucket(bucket)
        return self._path_inside(f"{bucket.name}/{key}")

    def _path_inside(self, name: str) -> Path:
        parts = name.split("/")
        if any(part in ("", ".", "..", *_OWN) or "\0" in part for part in parts):
            raise ObjectStoreRejection(ACCESS_DENIED, "The key is not a valid path in the export folder")
        path = self._root.joinpath(*parts)
        if not path.resolve().is_relative_to(self._root):
            raise ObjectStoreRejection(ACCESS_DENIED, "The key points outside of the export folder")
        return path


def _files(top: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """Yield (key, path) of the files of a bucket: all with this prefix, and possibly more.

    Symbolic links are not followed.
    """
    for folder, folders, names in os.walk(top):
        within = Path(folder).relative_to(top).as_posix()
        head = "" if within == "." else f"{within}/"
        folders[:] = [name for name in folders if name not in _OWN and _can_match(f"{head}{name}/", prefix)]
        for name in names:
            path = Path(folder, name)
            if not name.endswith(_UNFINISHED) and not path.is_symlink() and path.is_file():
                yield head + name, path


def _create_locked(path: Path) -> BinaryIO:
    """Create and lock an unfinished object.

    Raises OSError if another server process removes it before it is locked. The write can then be retried.
    """
    path.parent.mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        file = path.open("xb")
        with suppress(OSError):  # without locks, nothing is removed either
            fcntl.flock(file, fcntl.LOCK_EX)
        if path.exists():
            return file
        file.close()
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _remove_unfinished(folder: Path) -> None:
    """Remove the unfinished objects of killed servers. A server that writes one holds a lock on it."""
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError), path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


def _write_table(path: Path, table: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        file.write(table)
        file.flush()
        os.fsync(file.fileno())
    _sync(path.parent)


def _can_match(head: str, prefix: str) -> bool:
    return head.startswith(prefix) or prefix.startswith(head)


def _rejection_of(error: OSError, key: str) -> Exception:
    """Return ObjectStoreRejection for a lasting failure, or the error itself if it may be temporary (a full disk)."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)):
        return ObjectStoreRejection(ACCESS_DENIED, f"{error.strerror}: {key}")
    if error.strerror == "File name too long":
        return ObjectStoreRejection(
            ACCESS_DENIED, "The key has a part that is too long for the name of a file"
        )
    return error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

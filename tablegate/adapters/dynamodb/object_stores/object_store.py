"""The interface of object stores and their error."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Properties of an object to be written. `table`: the table of its rows (source_tables.py)."""

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

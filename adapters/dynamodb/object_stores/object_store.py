"""What a place of objects is, whether an S3 or a folder, and how it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol


class ObjectStoreRejection(Exception):
    """The object store refuses for good. `code` and `text` become FailureCode and FailureMessage of the job. Any other
    exception may be temporary."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code
        self.text = text


class BucketReference(NamedTuple):
    """A bucket that an account names. `owner`: the account that it must belong to; empty: any."""

    name: str
    owner: str = ""
    account: str = ""


class Encryption(NamedTuple):
    """How a new object is to be encrypted: AES256 or KMS, as S3SseAlgorithm has it; empty: as the bucket has it."""

    algorithm: str = ""
    key: str = ""


class NewObject(NamedTuple):
    """What is said of an object when it is written. `table`: the table whose rows it holds (source_tables.py)."""

    encryption: Encryption = Encryption()
    table: str = ""


class OpenObject(NamedTuple):
    """An object that is being read, and the table that was named when it was written; empty: none."""

    stream: BinaryIO
    table: str


class StoredObject(NamedTuple):
    """An object in a list."""

    key: str
    size_bytes: int


NO_BUCKET = "S3NoSuchBucket"
ACCESS_DENIED = "S3AccessDenied"


class ObjectStore(Protocol):
    """A place of objects. Every method raises Refused."""

    def listed(self, bucket: BucketReference, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """The objects whose keys begin so, in the order of their keys' bytes, behind a key."""
        ...

    def read(self, bucket: BucketReference, key: str) -> OpenObject:
        """Open an object, at its beginning."""
        ...

    def write(self, bucket: BucketReference, key: str, data: BinaryIO, new: NewObject) -> str:
        """Store an object whole, over whatever is there; its ETag."""
        ...

"""The buckets that clients may name. The server reads and writes objects with its own credentials for every client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tablegate.adapters.dynamodb.object_stores.object_store import (
    ACCESS_DENIED,
    Bucket,
    NewObject,
    ObjectStore,
    OpenObject,
    Refused,
    StoredObject,
)
from tablegate.gateway.configuration.settings import Settings


class AllowedBuckets:
    """A place of objects of which only the buckets can be named that the settings allow."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._store = store
        self._allowed = frozenset(settings.s3_bucket)
        self._allows_any = not settings.s3_bucket and settings.namespaces == "shared"

    def listed(self, bucket: Bucket, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.listed(bucket, prefix, after)

    def read(self, bucket: Bucket, key: str) -> OpenObject:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.read(bucket, key)

    def write(self, bucket: Bucket, key: str, data: BinaryIO, new: NewObject) -> str:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.write(bucket, key, data, new)

    def _check(self, bucket: Bucket) -> None:
        names = {bucket.name, f"{bucket.account}/{bucket.name}"}
        if not self._allows_any and self._allowed.isdisjoint(names):
            text = f"The bucket {bucket.name} is none that account {bucket.account} may name (--s3-bucket)"
            raise Refused(ACCESS_DENIED, text)

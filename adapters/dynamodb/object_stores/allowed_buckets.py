"""The buckets that clients may name. The server reads and writes objects with its own credentials for every client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tablegate.adapters.dynamodb.object_stores.object_store import (
    ACCESS_DENIED,
    BucketReference,
    NewObject,
    ObjectStore,
    ObjectStoreRejection,
    OpenObject,
    StoredObject,
)
from tablegate.gateway.configuration.settings import Settings


class AllowedBuckets:
    """A place of objects of which only the buckets can be named that the settings allow."""

    def __init__(self, store: ObjectStore, settings: Settings) -> None:
        self._store = store
        self._allowed = frozenset(settings.s3_bucket)
        self._allows_any = not settings.s3_bucket and settings.namespaces == "shared"

    def listed(self, bucket: BucketReference, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.listed(bucket, prefix, after)

    def read(self, bucket: BucketReference, key: str) -> OpenObject:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.read(bucket, key)

    def write(self, bucket: BucketReference, key: str, data: BinaryIO, new: NewObject) -> str:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.write(bucket, key, data, new)

    def _check(self, bucket: BucketReference) -> None:
        names = {bucket.name, f"{bucket.account}/{bucket.name}"}
        if not self._allows_any and self._allowed.isdisjoint(names):
            text = f"The bucket {bucket.name} is none that account {bucket.account} may name (--s3-bucket)"
            raise ObjectStoreRejection(ACCESS_DENIED, text)

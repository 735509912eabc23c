"""Creation of the object store that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tablegate.adapters.dynamodb.object_stores import object_store
from tablegate.adapters.dynamodb.object_stores.folders import Folder
from tablegate.gateway.configuration.settings import BadSetting, Settings

# The object store


def open_store(settings: Settings) -> object_store.ObjectStore:
    """Return the object store of the settings, restricted to the allowed buckets. Raises BadSetting."""
    return AllowedBuckets(_unrestricted_store(settings), settings)


def _unrestricted_store(settings: Settings) -> object_store.ObjectStore:
    if settings.s3_folder is not None:
        if not settings.s3_folder.is_dir():
            raise BadSetting(
                f"{{}}: {settings.s3_folder} is not a folder. Create it or name another", "s3_folder"
            )
        return Folder(settings.s3_folder)
    try:
        # boto3 is a large import, and an extra.
        from tablegate.adapters.dynamodb.object_stores.s3 import S3
    except ModuleNotFoundError as error:
        raise BadSetting(
            f"{{}} needs {error.name}: pip install 'tablegate[clouds]'", "s3_endpoint_url"
        ) from None
    try:
        return S3(settings)
    except ValueError as error:
        raise BadSetting(f"{{}}: {error}", "s3_endpoint_url") from None


class AllowedBuckets:
    """An object store restricted to the buckets that the settings allow."""

    def __init__(self, store: object_store.ObjectStore, settings: Settings) -> None:
        self._store = store
        self._allowed = frozenset(settings.s3_bucket)
        self._allows_any = not settings.s3_bucket and settings.namespaces == "shared"

    def listed(
        self, bucket: object_store.BucketReference, prefix: str, after: str = ""
    ) -> Iterator[object_store.StoredObject]:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.listed(bucket, prefix, after)

    def read(self, bucket: object_store.BucketReference, key: str) -> object_store.OpenObject:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.read(bucket, key)

    def write(
        self, bucket: object_store.BucketReference, key: str, data: BinaryIO, new: object_store.NewObject
    ) -> str:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.write(bucket, key, data, new)

    def _check(self, bucket: object_store.BucketReference) -> None:
        names = {bucket.name, f"{bucket.account}/{bucket.name}"}
        if not self._allows_any and self._allowed.isdisjoint(names):
            text = f"Account {bucket.account} may not use the bucket {bucket.name}. Allow it with --s3-bucket"
            raise object_store.ObjectStoreRejection(object_store.ACCESS_DENIED, text)

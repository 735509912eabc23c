"""The workers of exports, imports and bulk puts, registered with the engine, and the object store that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from tablegate.adapters.dynamodb.features.exports_imports import object_stores
from tablegate.adapters.dynamodb.features.exports_imports.bulk_puts import BulkPutWorker
from tablegate.adapters.dynamodb.features.exports_imports.export_worker import ExportWorker
from tablegate.adapters.dynamodb.features.exports_imports.imports import ImportWorker
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import BULK, EXPORT, IMPORT
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import Folder
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.features.jobs.job_runner import JobWorker, add_workers

# The object store


def open_store(settings: Settings) -> object_stores.ObjectStore:
    """Return the object store of the settings, restricted to the allowed buckets. Raises BadSetting."""
    return AllowedBuckets(_unrestricted_store(settings), settings)


def _unrestricted_store(settings: Settings) -> object_stores.ObjectStore:
    if settings.s3_folder is not None:
        if not settings.s3_folder.is_dir():
            raise BadSetting(
                f"{{}}: {settings.s3_folder} is not a folder. Create it or name another", "s3_folder"
            )
        return Folder(settings.s3_folder)
    try:
        # boto3 is a large import, and an extra.
        from tablegate.adapters.dynamodb.features.exports_imports.s3_store import S3
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

    def __init__(self, store: object_stores.ObjectStore, settings: Settings) -> None:
        self._store = store
        self._allowed = frozenset(settings.s3_bucket)
        self._allows_any = not settings.s3_bucket and settings.namespaces == "shared"

    def listed(
        self, bucket: object_stores.BucketReference, prefix: str, after: str = ""
    ) -> Iterator[object_stores.StoredObject]:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.listed(bucket, prefix, after)

    def read(self, bucket: object_stores.BucketReference, key: str) -> object_stores.OpenObject:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.read(bucket, key)

    def write(
        self, bucket: object_stores.BucketReference, key: str, data: BinaryIO, new: object_stores.NewObject
    ) -> str:
        """See ObjectStore."""
        self._check(bucket)
        return self._store.write(bucket, key, data, new)

    def _check(self, bucket: object_stores.BucketReference) -> None:
        names = {bucket.name, f"{bucket.account}/{bucket.name}"}
        if not self._allows_any and self._allowed.isdisjoint(names):
            text = f"Account {bucket.account} may not use the bucket {bucket.name}. Allow it with --s3-bucket"
            raise object_stores.ObjectStoreRejection(object_stores.ACCESS_DENIED, text)


# Workers


def register(gateway: Gateway) -> None:
    """Register the workers. Raises BadSetting."""
    store = open_store(gateway.settings)
    workers: dict[str, JobWorker] = {
        EXPORT.name: ExportWorker(gateway, store),
        IMPORT.name: ImportWorker(gateway, store),
        BULK.name: BulkPutWorker(gateway, store),
    }
    add_workers(gateway.engine.background, workers)

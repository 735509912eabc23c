"""Creation of the object store that the settings name."""

from __future__ import annotations

from tablegate.adapters.dynamodb.object_stores.allowed_buckets import AllowedBuckets
from tablegate.adapters.dynamodb.object_stores.folders import Folder
from tablegate.adapters.dynamodb.object_stores.object_store import ObjectStore
from tablegate.gateway.configuration.settings import BadSetting, Settings


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of the settings, restricted to the allowed buckets. Raises BadSetting."""
    return AllowedBuckets(_unrestricted_store(settings), settings)


def _unrestricted_store(settings: Settings) -> ObjectStore:
    if settings.s3_folder is not None:
        if not settings.s3_folder.is_dir():
            raise BadSetting(
                f"{{}}: {settings.s3_folder} is not a folder. Create it or name another", "s3_folder"
            )
        return Folder(settings.s3_folder)
    try:
        from tablegate.adapters.dynamodb.object_stores.s3 import S3  # boto3 is a large import, and an extra
    except ModuleNotFoundError as error:
        raise BadSetting(
            f"{{}} needs {error.name}: pip install 'tablegate[clouds]'", "s3_endpoint_url"
        ) from None
    try:
        return S3(settings)
    except ValueError as error:
        raise BadSetting(f"{{}}: {error}", "s3_endpoint_url") from None

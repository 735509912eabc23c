"""S3 as an object store, through boto3. Loaded only if it is configured."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

from tablegate.adapters.dynamodb.features.exports_imports import object_stores
from tablegate.gateway.configuration.settings import Settings

_ALGORITHMS = {"AES256": "AES256", "KMS": "aws:kms"}
_DENIED = frozenset(
    {"AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403"}
)
_TABLE = "tablegate-table"
"""The metadata of an object (x-amz-meta-...) that names its table."""
_FAILURES = (ClientError, NoCredentialsError, PartialCredentialsError)
_NO_CREDENTIALS = "The server has no credentials for S3. Set --s3-access-key-id and the secret key."
_MISSING = frozenset({"NoSuchBucket", "InvalidBucketName"})


class S3:
    """The object store of an S3 endpoint, with the server's credentials."""

    def __init__(self, settings: Settings) -> None:
        session = boto3.session.Session(
            aws_access_key_id=settings.s3_access_key_id or None,
            aws_secret_access_key=settings.s3_secret_access_key or None,
            region_name=settings.s3_region,
        )
        self._client = session.client(
            "s3",
            endpoint_url=settings.s3_endpoint_url,
            config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"total_max_attempts": 3, "mode": "standard"},
                s3={"addressing_style": "path"},
            ),
        )

    def listed(
        self, bucket: object_stores.BucketReference, prefix: str, after: str = ""
    ) -> Iterator[object_stores.StoredObject]:
        """See ObjectStore."""
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=bucket.name, Prefix=prefix, StartAfter=after, **_owner(bucket)):
                for entry in page.get("Contents", ()):
                    yield object_stores.StoredObject(entry["Key"], entry["Size"])
        except _FAILURES as error:
            raise _rejection_of(error) from error

    def read(self, bucket: object_stores.BucketReference, key: str) -> object_stores.OpenObject:
        """See ObjectStore."""
        try:
            answer = self._client.get_object(Bucket=bucket.name, Key=key, **_owner(bucket))
        except _FAILURES as error:
            raise _rejection_of(error) from error
        stream = cast(BinaryIO, io.BufferedReader(_Body(answer["Body"]), 1 << 16))
        return object_stores.OpenObject(stream, answer.get("Metadata", {}).get(_TABLE, ""))

    def write(
        self, bucket: object_stores.BucketReference, key: str, data: BinaryIO, new: object_stores.NewObject
    ) -> str:
        """See ObjectStore."""
        options: dict[str, Any] = _owner(bucket)
        encryption = new.encryption
        if new.table:
            options["Metadata"] = {_TABLE: new.table}
        if encryption.algorithm:
            options["ServerSideEncryption"] = _ALGORITHMS[encryption.algorithm]
        if encryption.key:
            options["SSEKMSKeyId"] = encryption.key
        try:
            answer = self._client.put_object(Bucket=bucket.name, Key=key, Body=data, **options)
        except _FAILURES as error:
            raise _rejection_of(error) from error
        return str(answer["ETag"]).strip('"')


class _Body(io.RawIOBase):
    """The body of a response as a file."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self._body.read(len(target))
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._body.close()
        super().close()


def _owner(bucket: object_stores.BucketReference) -> dict[str, Any]:
    return {"ExpectedBucketOwner": bucket.owner} if bucket.owner else {}


def _rejection_of(error: ClientError | NoCredentialsError | PartialCredentialsError) -> Exception:
    """Return ObjectStoreRejection for a lasting failure, or the error itself if a retry may succeed."""
    if not isinstance(error, ClientError):
        return object_stores.ObjectStoreRejection(object_stores.ACCESS_DENIED, _NO_CREDENTIALS)
    details = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code, text = str(details.get("Code", "")), str(details.get("Message", ""))
    if status >= 500 or status in (0, 408, 429) or code in ("SlowDown", "RequestTimeout", "Throttling"):
        return error
    kind = (
        object_stores.NO_BUCKET
        if code in _MISSING
        else object_stores.ACCESS_DENIED
        if code in _DENIED
        else f"S3{code}"
    )
    return object_stores.ObjectStoreRejection(
        kind, f"{text} (Service: Amazon S3; Status Code: {status}; Error Code: {code})"
    )

"""S3 as a place of objects, by boto3. Loaded only where it was switched on."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from adapters.dynamodb.object_stores.object_store import (
    ACCESS_DENIED,
    NO_BUCKET,
    Bucket,
    Encryption,
    Refused,
    StoredObject,
)
from gateway.settings import Settings

_ALGORITHMS = {"AES256": "AES256", "KMS": "aws:kms"}
_DENIED = frozenset(
    {"AccessDenied", "AllAccessDisabled", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403"}
)
_MISSING = frozenset({"NoSuchBucket", "InvalidBucketName"})


class S3:
    """The buckets of an endpoint, with credentials of their own."""

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

    def listed(self, bucket: Bucket, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """See ObjectStore."""
        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=bucket.name, Prefix=prefix, StartAfter=after, **_owner(bucket)):
                for found in page.get("Contents", ()):
                    yield StoredObject(found["Key"], found["Size"])
        except ClientError as error:
            raise _refused(error) from error

    def read(self, bucket: Bucket, key: str) -> BinaryIO:
        """See ObjectStore."""
        try:
            answer = self._client.get_object(Bucket=bucket.name, Key=key, **_owner(bucket))
        except ClientError as error:
            raise _refused(error) from error
        return cast(BinaryIO, io.BufferedReader(_Body(answer["Body"]), 1 << 16))

    def write(self, bucket: Bucket, key: str, data: BinaryIO, encryption: Encryption) -> str:
        """See ObjectStore."""
        more: dict[str, Any] = _owner(bucket)
        if encryption.algorithm:
            more["ServerSideEncryption"] = _ALGORITHMS[encryption.algorithm]
        if encryption.key:
            more["SSEKMSKeyId"] = encryption.key
        try:
            answer = self._client.put_object(Bucket=bucket.name, Key=key, Body=data, **more)
        except ClientError as error:
            raise _refused(error) from error
        return str(answer["ETag"]).strip('"')


class _Body(io.RawIOBase):
    """The body of an answer as a file."""

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


def _owner(bucket: Bucket) -> dict[str, Any]:
    return {"ExpectedBucketOwner": bucket.owner} if bucket.owner else {}


def _refused(error: ClientError) -> Exception:
    """What is refused for good, or the error itself, which may pass."""
    told = error.response.get("Error", {})
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    code, text = str(told.get("Code", "")), str(told.get("Message", ""))
    if status >= 500 or status in (0, 408, 429) or code in ("SlowDown", "RequestTimeout", "Throttling"):
        return error
    kind = NO_BUCKET if code in _MISSING else ACCESS_DENIED if code in _DENIED else f"S3{code}"
    return Refused(kind, f"{text} (Service: Amazon S3; Status Code: {status}; Error Code: {code})")

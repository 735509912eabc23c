"""Object stores for exports and imports: a folder, and moto's S3 on a separate thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import boto3

from tests.support.waiting import PATIENCE_S

BUCKET = "some-bucket"
_KEYS = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": "us-east-1"}


class Place(Protocol):
    """An object store. `settings` configures a server to use it."""

    settings: dict[str, Any]

    def put(self, key: str, data: bytes, bucket: str = BUCKET) -> None: ...

    def objects(self, bucket: str = BUCKET) -> dict[str, bytes]: ...


class FolderPlace:
    """A folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        (root / BUCKET).mkdir(parents=True)
        self.settings: dict[str, Any] = {"s3_folder": root}

    def put(self, key: str, data: bytes, bucket: str = BUCKET) -> None:
        path = self._root / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def objects(self, bucket: str = BUCKET) -> dict[str, bytes]:
        top = self._root / bucket
        return {
            path.relative_to(top).as_posix(): path.read_bytes()
            for path in sorted(top.rglob("*"))
            if path.is_file() and path.parent.name != ".tablegate-tables"
        }


class S3Place:
    """The S3 of moto's server."""

    def __init__(self, endpoint: str) -> None:
        self._client = boto3.client("s3", endpoint_url=endpoint, **_KEYS)
        self._client.create_bucket(Bucket=BUCKET)
        self.settings: dict[str, Any] = {
            "s3_endpoint_url": endpoint,
            "s3_access_key_id": _KEYS["aws_access_key_id"],
            "s3_secret_access_key": _KEYS["aws_secret_access_key"],
        }

    def put(self, key: str, data: bytes, bucket: str = BUCKET) -> None:
        self._client.put_object(Bucket=bucket, Key=key, Body=data)

    def objects(self, bucket: str = BUCKET) -> dict[str, bytes]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {
            found["Key"]: self._client.get_object(Bucket=bucket, Key=found["Key"])["Body"].read()
            for page in pages
            for found in page.get("Contents", ())
        }


@contextlib.contextmanager
def moto_endpoint() -> Iterator[str]:
    """The URL of a new, empty S3."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        reset_moto(endpoint)  # what another server of this process has left
        yield endpoint
    finally:
        server.stop()


def reset_moto(endpoint: str) -> None:
    """Forget what this S3 has."""
    import requests

    requests.post(f"{endpoint}/moto-api/reset", timeout=PATIENCE_S).raise_for_status()

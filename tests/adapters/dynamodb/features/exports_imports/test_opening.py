"""Objects are read and written with the server's credentials, so the server's settings determine the permitted buckets
of each caller.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    ACCESS_DENIED,
    BucketReference,
    NewObject,
    ObjectStoreRejection,
)
from tablegate.adapters.dynamodb.features.exports_imports.operations import open_store
from tablegate.gateway.configuration.settings import Settings


@pytest.mark.parametrize(
    ("namespaces", "allowed", "account", "is_let_in"),
    [
        ("shared", (), "1", True),
        ("separate", (), "1", False),
        ("keys", (), "1", False),
        ("shared", ("other",), "1", False),
        ("separate", ("bucket",), "1", True),
        ("separate", ("1/bucket",), "1", True),
        ("separate", ("1/bucket",), "2", False),
        ("separate", ("2/bucket", "1/other"), "1", False),
    ],
)
def test_buckets(
    tmp_path: Path, namespaces: str, allowed: tuple[str, ...], account: str, is_let_in: bool
) -> None:
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "a").write_bytes(b"x")
    store = open_store(Settings(s3_folder=tmp_path, namespaces=namespaces, s3_bucket=allowed))
    bucket = BucketReference("bucket", account=account)
    for attempt in (
        lambda: list(store.listed(bucket, "")),
        lambda: store.read(bucket, "a").stream.close(),
        lambda: store.write(bucket, "b", io.BytesIO(), NewObject()),
    ):
        if is_let_in:
            attempt()
        else:
            with pytest.raises(ObjectStoreRejection) as refused:
                attempt()
            assert refused.value.code == ACCESS_DENIED

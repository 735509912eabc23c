"""S3 as moto plays it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    ACCESS_DENIED,
    NO_BUCKET,
    BucketReference,
    Encryption,
    NewObject,
    ObjectStoreRejection,
)
from tablegate.adapters.dynamodb.features.exports_imports.operations import open_store
from tablegate.adapters.dynamodb.features.exports_imports.s3_store import S3
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tests.support.object_places import BUCKET, S3Place, moto_endpoint


@pytest.fixture(scope="module")
def place() -> Iterator[S3Place]:
    with moto_endpoint() as endpoint:
        yield S3Place(endpoint)


def test_objects_are_written_read_and_listed(place: S3Place) -> None:
    store = S3(Settings(**place.settings))
    bucket = BucketReference(BUCKET)
    for key, table in (("a/1", "shared/orders"), ("a/2", ""), ("b", "")):
        store.write(bucket, key, io.BytesIO(key.encode()), NewObject(Encryption("AES256"), table))
    assert [(found.key, found.size_bytes) for found in store.listed(bucket, "a/")] == [("a/1", 3), ("a/2", 3)]
    assert [found.key for found in store.listed(bucket, "", "a/1")] == ["a/2", "b"]
    for key, table in (("a/1", "shared/orders"), ("a/2", "")):
        opened = store.read(bucket, key)
        with opened.stream as stream:
            assert (stream.readline(), opened.table) == (key.encode(), table)


def test_requests_that_s3_refuses_are_rejections(place: S3Place) -> None:
    store = S3(Settings(**place.settings))
    for attempt in (
        lambda: list(store.listed(BucketReference("nobody"), "")),
        lambda: store.write(BucketReference("nobody"), "a", io.BytesIO(), NewObject()),
    ):
        with pytest.raises(ObjectStoreRejection) as refused:
            attempt()
        assert refused.value.code == NO_BUCKET
        assert refused.value.text.startswith(
            "The specified bucket does not exist (Service: Amazon S3; Status Code: 404;"
        )


def test_a_server_without_credentials_is_refused(
    place: S3Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once: a job that tried again would never end."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    given = {**place.settings, "s3_access_key_id": "", "s3_secret_access_key": ""}
    with pytest.raises(ObjectStoreRejection) as refused:
        list(S3(Settings(**given)).listed(BucketReference(BUCKET), ""))
    assert refused.value.code == ACCESS_DENIED
    assert refused.value.text.startswith("The server has no credentials for S3.")


def test_settings(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="exclude each other"):
        load({"s3_folder": tmp_path, "s3_endpoint_url": "http://localhost:1"}, {})
    with pytest.raises(BadSetting, match="is not a folder"):
        open_store(Settings(s3_folder=tmp_path / "nothing"))
    with pytest.raises(BadSetting, match="s3_endpoint_url"):
        open_store(Settings(s3_endpoint_url="no url"))
    secret = tmp_path / "secret"
    secret.write_text("abc\n")
    assert load({"s3_secret_access_key_file": secret}, {}).s3_secret_access_key == "abc"

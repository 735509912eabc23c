"""A folder in place of S3: what is below it, and nothing else."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    ACCESS_DENIED,
    NO_BUCKET,
    BucketReference,
    Folder,
    NewObject,
    ObjectStoreRejection,
)

BUCKET = BucketReference("bucket")
PLAIN = NewObject()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "exports" / "bucket").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "exports" / "top").write_text("no bucket")
    return tmp_path / "exports"


def write(folder: Folder, key: str, data: bytes = b"x") -> str:
    return folder.write(BUCKET, key, io.BytesIO(data), PLAIN)


def keys(folder: Folder, prefix: str = "", after: str = "") -> list[str]:
    return [found.key for found in folder.listed(BUCKET, prefix, after)]


def test_objects_are_written_read_and_listed(root: Path) -> None:
    folder = Folder(root)
    assert write(folder, "a/b/c.json", b"abc") == "900150983cd24fb0d6963f7d28e17f72"
    write(folder, "a/b/c.json", b"abcd")
    with folder.read(BUCKET, "a/b/c.json").stream as stream:
        assert stream.read() == b"abcd"
    for key in ("a.b", "a/a", "ab/1", "b"):
        write(folder, key)
    assert keys(folder) == [
        "a.b",
        "a/a",
        "a/b/c.json",
        "ab/1",
        "b",
    ]  # in the order of bytes: "." is before "/"
    assert keys(folder, "a/") == ["a/a", "a/b/c.json"]
    assert keys(folder, "a/b/c") == ["a/b/c.json"]
    assert keys(folder, "a") == ["a.b", "a/a", "a/b/c.json", "ab/1"]
    assert keys(folder, "a", "a/a") == ["a/b/c.json", "ab/1"]
    assert keys(folder, "nothing") == []
    assert [found.size_bytes for found in folder.listed(BUCKET, "a/b")] == [4]


@pytest.mark.parametrize(
    "key",
    [
        "../secret",
        "../../secret",
        "a/../../../secret",
        "/etc/passwd",
        "a//b",
        "",
        ".",
        "a/.",
        "..",
        "a\0b",
        "x" * 300,
    ],
)
def test_keys_that_no_file_below_can_have(root: Path, key: str) -> None:
    folder = Folder(root)
    for attempt in (lambda: folder.read(BUCKET, key), lambda: write(folder, key)):
        with pytest.raises(ObjectStoreRejection) as refused:
            attempt()
        assert refused.value.code == ACCESS_DENIED
    assert sorted(path.name for path in root.parent.iterdir()) == ["exports", "secret"]
    assert list((root / "bucket").iterdir()) == []


def test_symbolic_links_lead_nowhere(root: Path) -> None:
    folder = Folder(root)
    (root / "bucket" / "out").symlink_to(root.parent)
    (root / "bucket" / "file").symlink_to(root.parent / "secret")
    (root / "linked").symlink_to(root.parent)
    assert keys(folder) == []
    for key in ("out/secret", "file"):
        with pytest.raises(ObjectStoreRejection):
            folder.read(BUCKET, key)
    with pytest.raises(ObjectStoreRejection):
        write(folder, "out/new")
    with pytest.raises(ObjectStoreRejection):
        folder.read(BucketReference("linked"), "secret")
    assert not (root.parent / "new").exists()


@pytest.mark.parametrize("name", ["nobody", "top"])
def test_a_bucket_is_a_folder(root: Path, name: str) -> None:
    folder = Folder(root)
    with pytest.raises(ObjectStoreRejection) as refused:
        list(folder.listed(BucketReference(name), ""))
    assert refused.value.code == NO_BUCKET


@pytest.mark.parametrize("name", ["..", ".", "a/b", ""])
def test_a_bucket_is_directly_below(root: Path, name: str) -> None:
    with pytest.raises(ObjectStoreRejection):
        list(Folder(root).listed(BucketReference(name), ""))


def test_an_object_exists_once_it_is_complete(root: Path) -> None:
    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(3)
            if not data:
                raise OSError("the source is gone")
            return data

    folder = Folder(root)
    with pytest.raises(OSError, match="the source is gone"):
        folder.write(BUCKET, "a", Breaking(b"abcdef"), PLAIN)
    assert keys(folder) == []
    assert list((root / "bucket").iterdir()) == []


def left_over(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_partial_files_of_a_killed_server_are_removed(root: Path) -> None:
    """By the next server at its start. What a server still writes stays."""
    killed = 'import os, signal, sys; sys.path.insert(0, "."); from pathlib import Path;'
    killed += "from tablegate.adapters.dynamodb.features.exports_imports.object_stores import Folder;"
    killed += "from tablegate.adapters.dynamodb.features.exports_imports.object_stores import BucketReference, NewObject;"
    killed += "read = type('R', (), {'read': lambda self, size: os.kill(os.getpid(), signal.SIGKILL)})();"
    killed += "Folder(Path(sys.argv[1])).write(BucketReference('bucket'), 'deep/er/key', read, NewObject())"

    def kill_a_writer() -> None:
        done = subprocess.run([sys.executable, "-c", killed, str(root)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert len(left_over(root)) == len(before) + 1

    folder = Folder(root)
    before = left_over(root)
    kill_a_writer()
    assert "unfinished" not in "".join(keys(folder))
    Folder(root)
    assert left_over(root) == before
    kill_a_writer()

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            Folder(root)
            write(folder, "another")
            return super().read(size)

    folder.write(BucketReference("bucket"), "slow", Slow(b"slow"), NewObject())
    assert {*left_over(root)} == {*before, "bucket/another", "bucket/slow"}
    with pytest.raises(ObjectStoreRejection):
        folder.read(BucketReference("bucket"), ".tablegate-unfinished/x")


def test_an_object_keeps_its_table(root: Path) -> None:
    folder = Folder(root)
    write(folder, "a/plain")
    folder.write(BUCKET, "a/bound", io.BytesIO(b"x"), NewObject(table="shared/orders"))
    for key, table in (("a/plain", ""), ("a/bound", "shared/orders")):
        opened = Folder(root).read(BUCKET, key)
        opened.stream.close()
        assert opened.table == table
    assert keys(folder) == ["a/bound", "a/plain"]
    [kept] = (root / "bucket" / ".tablegate-tables").iterdir()
    for attempt in (lambda: folder.read(BUCKET, f".tablegate-tables/{kept.name}"),
                    lambda: write(folder, f".tablegate-tables/{kept.name}")):  # fmt: skip
        with pytest.raises(ObjectStoreRejection):
            attempt()


def test_the_table_of_an_object_is_known_before_the_object_is(root: Path) -> None:
    """A server may be killed in between, and another one reads the object while it is replaced."""
    folder = Folder(root)
    write(folder, "a")

    class Reading(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            opened = folder.read(BUCKET, "a")
            opened.stream.close()
            assert opened.table == "shared/orders"
            return super().read(size)

    folder.write(BUCKET, "a", Reading(b"new"), NewObject(table="shared/orders"))

"""The objects below a prefix as one run of records, from any place in it on, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple

from adapters.dynamodb.export_files.compression import Compression, Unreadable, reading
from adapters.dynamodb.export_files.records import Layout, Record, records
from adapters.dynamodb.object_stores.object_store import Bucket, ObjectStore, StoredObject

_BATCH_BYTES = 4 << 20


class Source(NamedTuple):
    """Where objects are, and how they are written."""

    bucket: Bucket
    prefix: str
    compression: Compression
    layout: Layout


class Cursor(NamedTuple):
    """A place: behind so many records of an object; the objects before it are done, `done_bytes` of them."""

    key: str = ""
    records: int = 0
    is_done: bool = False
    done_bytes: int = 0


class Found(NamedTuple):
    """A record, of which object it is, and which one there, from 1."""

    key: str
    number: int
    record: Record


class SourceObjects:
    """Reads from a cursor on. What it raises may pass (then begin anew at the last cursor), but for Refused."""

    def __init__(self, store: ObjectStore, source: Source, cursor: Cursor) -> None:
        self._store = store
        self._source = source
        self._cursor = cursor
        self._objects = self._listed(cursor)
        self._stream: BinaryIO | None = None
        self._records: Iterator[Record] = iter(())
        self._object: StoredObject | None = None

    def _listed(self, cursor: Cursor) -> Iterator[StoredObject]:
        bucket, prefix = self._source.bucket, self._source.prefix
        if not cursor.key or cursor.is_done:
            return self._store.listed(bucket, prefix, cursor.key)
        # The object in hand comes first, and there is no key just before it to list behind.
        return (found for found in self._store.listed(bucket, prefix) if found.key >= cursor.key)

    def take(self, limit: int) -> tuple[list[Found], Cursor, bool]:
        """The next records, at most so many; the cursor behind them; whether they are the last."""
        taken: list[Found] = []
        size = 0
        while len(taken) < limit and size < _BATCH_BYTES:
            if self._object is None and not self._open_next():
                return taken, self._cursor, True
            assert self._object is not None
            record = next(self._records, None)
            if record is None:
                self._finish_object()
                continue
            number = self._cursor.records + 1
            self._cursor = self._cursor._replace(records=number)
            taken.append(Found(self._object.key, number, record))
            size += _size_of(record.members)
            if record.ends:
                self._finish_object()
        return taken, self._cursor, False

    def _open_next(self) -> bool:
        found = next(self._objects, None)
        if found is None:
            return False
        resumes = found.key == self._cursor.key and not self._cursor.is_done
        skipped = self._cursor.records if resumes else 0
        self._object = found
        self._cursor = Cursor(found.key, skipped, False, self._cursor.done_bytes)
        opened = self._store.read(self._source.bucket, found.key)
        self._stream = reading(opened, self._source.compression)
        self._records = records(self._stream, self._source.layout)
        for _ in range(skipped):
            next(self._records, None)
        return True

    def _finish_object(self) -> None:
        assert self._object is not None
        done = self._cursor.done_bytes + self._object.size_bytes
        self._cursor = Cursor(self._object.key, 0, True, done)
        self._object = None
        self.close()

    def close(self) -> None:
        """Close what is open."""
        if self._stream is not None:
            with suppress(OSError, ValueError, Unreadable):
                self._stream.close()
            self._stream = None


def _size_of(members: Mapping[str, Any]) -> int:
    """About how many bytes a record has."""
    return len(repr(members)) if members else 0

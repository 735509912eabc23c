"""The objects below a prefix as one run of records, from any place in it on, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from tablegate.adapters.dynamodb.export_files.compression import Compression, blocks
from tablegate.adapters.dynamodb.export_files.records import ImportFormat, ImportRecord, records
from tablegate.adapters.dynamodb.object_stores.object_store import BucketReference, ObjectStore, StoredObject

# An object, and a block of one, count as this many bytes beyond those that they hold: either may be empty.
_OBJECT_BYTES, _BLOCK_BYTES = 8 << 10, 64
# RFC 8878 (3.1.1.1.2) recommends that decoders support at least 8 MB. Each object in hand may take as much memory.
_WINDOW_BYTES = 8 << 20


class ObjectSource(NamedTuple):
    """Where objects are, and how they are written."""

    bucket: BucketReference
    prefix: str
    compression: Compression
    layout: ImportFormat


class SourceCursor(NamedTuple):
    """A place: behind so many records of an object; the objects before it are done, `done_bytes` of them."""

    key: str = ""
    records: int = 0
    is_done: bool = False
    done_bytes: int = 0


class LocatedRecord(NamedTuple):
    """A record, of which object it is, and which one there, from 1."""

    key: str
    number: int
    record: ImportRecord


class RecordBatch(NamedTuple):
    """A batch of records, the cursor behind them, whether they are the last, and what the batch took: a unit for each record, and
    one for each KiB that was inflated."""

    found: list[LocatedRecord]
    cursor: SourceCursor
    is_over: bool
    units: int


class SourceObjects:
    """Reads from a cursor on. What it raises may pass (then begin anew at the last cursor), but for Refused.

    `check`: called with the table that an object names (empty: none) and the place that was named, before the object is read.
    Raises Refused."""

    def __init__(
        self,
        store: ObjectStore,
        source: ObjectSource,
        cursor: SourceCursor,
        check: Callable[[str, str], None],
    ) -> None:
        self._store = store
        self._check = check
        self._source = source
        self._cursor = cursor
        self._objects = self._listed(cursor)
        self._stream: BinaryIO | None = None
        self._records: Iterator[ImportRecord | None] = iter(())
        self._object: StoredObject | None = None
        self._skipped = 0
        self._read_bytes = 0

    def _listed(self, cursor: SourceCursor) -> Iterator[StoredObject]:
        bucket, prefix = self._source.bucket, self._source.prefix
        if not cursor.key or cursor.is_done:
            return self._store.listed(bucket, prefix, cursor.key)
        # The object in hand comes first, and there is no key just before it to list behind.
        return (found for found in self._store.listed(bucket, prefix) if found.key >= cursor.key)

    def take(self, limit: int) -> RecordBatch:
        """Take the next records, until this many units of work are done. There may be none, and more to come."""
        found: list[LocatedRecord] = []
        self._read_bytes = 0
        while self._units(found) < limit:
            if self._object is None and not self._open_next():
                return RecordBatch(found, self._cursor, True, self._units(found))
            assert self._object is not None
            try:
                record = next(self._records)
            except StopIteration:
                self._finish_object()
                continue
            if record is None:
                continue
            if self._skipped:
                self._skipped -= 1
                continue
            number = self._cursor.records + 1
            self._cursor = self._cursor._replace(records=number)
            found.append(LocatedRecord(self._object.key, number, record))
            if record.ends:
                self._finish_object()
        return RecordBatch(found, self._cursor, False, self._units(found))

    def _units(self, found: list[LocatedRecord]) -> int:
        return len(found) + (self._read_bytes >> 10)

    def _open_next(self) -> bool:
        found = next(self._objects, None)
        if found is None:
            return False
        resumes = found.key == self._cursor.key and not self._cursor.is_done
        self._skipped = self._cursor.records if resumes else 0
        self._object = found
        self._cursor = SourceCursor(found.key, self._skipped, False, self._cursor.done_bytes)
        self._read_bytes += _OBJECT_BYTES
        self._stream, table = self._store.read(self._source.bucket, found.key)
        self._check(table, f"s3://{self._source.bucket.name}/{self._source.prefix}")
        self._records = records(self._counted(self._stream), self._source.layout)
        return True

    def _counted(self, stream: BinaryIO) -> Iterator[bytes]:
        for block in blocks(stream, self._source.compression, _WINDOW_BYTES):
            self._read_bytes += len(block) + _BLOCK_BYTES
            yield block

    def _finish_object(self) -> None:
        assert self._object is not None
        done = self._cursor.done_bytes + self._object.size_bytes
        self._cursor = SourceCursor(self._object.key, 0, True, done)
        self._object = None
        self.close()

    def close(self) -> None:
        """Close what is open."""
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.close()
            self._stream = None

"""Records of all objects under a prefix, read in order from any position, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import BinaryIO, NamedTuple

from tablegate.adapters.dynamodb.export_files.compression import Compression, blocks
from tablegate.adapters.dynamodb.export_files.records import ImportFormat, ImportRecord, records
from tablegate.adapters.dynamodb.object_stores.object_store import BucketReference, ObjectStore, StoredObject

# Records of objects


# Overhead that is counted for each object and each block, since either may be empty.
_OBJECT_BYTES, _BLOCK_BYTES = 8 << 10, 64
# RFC 8878 (3.1.1.1.2) recommends that decoders support at least 8 MB. Each open object may take as much memory.
_WINDOW_BYTES = 8 << 20


class ObjectSource(NamedTuple):
    """The location and format of objects."""

    bucket: BucketReference
    prefix: str
    compression: Compression
    layout: ImportFormat


class SourceCursor(NamedTuple):
    """A position after `records` records of an object. `done_bytes`: the size of all objects before it."""

    key: str = ""
    records: int = 0
    is_done: bool = False
    done_bytes: int = 0


class LocatedRecord(NamedTuple):
    """A record, the key of its object, and its number in the object, from 1."""

    key: str
    number: int
    record: ImportRecord


class RecordBatch(NamedTuple):
    """A batch of records, the cursor after it, and whether it is the last.

    `units`: the work done, one unit for each record and one for each decompressed KiB.
    """

    found: list[LocatedRecord]
    cursor: SourceCursor
    is_over: bool
    units: int


class SourceObjects:
    """A reader of records from a cursor on.

    After any exception except ObjectStoreRejection, the read can be retried from the last cursor. `check` is called
    before an object is read, with the table that it names (empty if none) and its location. It raises
    ObjectStoreRejection.
    """

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
        self._objects = self._remaining_objects(cursor)
        self._stream: BinaryIO | None = None
        self._records: Iterator[ImportRecord | None] = iter(())
        self._object: StoredObject | None = None
        self._skipped = 0
        self._read_bytes = 0

    def _remaining_objects(self, cursor: SourceCursor) -> Iterator[StoredObject]:
        bucket, prefix = self._source.bucket, self._source.prefix
        if not cursor.key or cursor.is_done:
            return self._store.listed(bucket, prefix, cursor.key)
        # The current object comes first. No key just before it is known, so the listing is filtered.
        return (
            stored_object
            for stored_object in self._store.listed(bucket, prefix)
            if stored_object.key >= cursor.key
        )

    def take(self, limit: int) -> RecordBatch:
        """Return the next records, up to this many units of work. A batch may be empty without being the last."""
        located_records: list[LocatedRecord] = []
        self._read_bytes = 0
        while self._units(located_records) < limit:
            if self._object is None and not self._open_next():
                return RecordBatch(located_records, self._cursor, True, self._units(located_records))
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
            located_records.append(LocatedRecord(self._object.key, number, record))
            if record.ends:
                self._finish_object()
        return RecordBatch(located_records, self._cursor, False, self._units(located_records))

    def _units(self, located_records: list[LocatedRecord]) -> int:
        return len(located_records) + (self._read_bytes >> 10)

    def _open_next(self) -> bool:
        stored_object = next(self._objects, None)
        if stored_object is None:
            return False
        resumes = stored_object.key == self._cursor.key and not self._cursor.is_done
        self._skipped = self._cursor.records if resumes else 0
        self._object = stored_object
        self._cursor = SourceCursor(stored_object.key, self._skipped, False, self._cursor.done_bytes)
        self._read_bytes += _OBJECT_BYTES
        self._stream, table = self._store.read(self._source.bucket, stored_object.key)
        self._check(table, f"s3://{self._source.bucket.name}/{self._source.prefix}")
        self._records = records(self._counting_blocks(self._stream), self._source.layout)
        return True

    def _counting_blocks(self, stream: BinaryIO) -> Iterator[bytes]:
        for block in blocks(stream, self._source.compression, _WINDOW_BYTES):
            self._read_bytes += len(block) + _BLOCK_BYTES
            yield block

    def _finish_object(self) -> None:
        assert self._object is not None
        done_bytes = self._cursor.done_bytes + self._object.size_bytes
        self._cursor = SourceCursor(self._object.key, 0, True, done_bytes)
        self._object = None
        self.close()

    def close(self) -> None:
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.close()
            self._stream = None

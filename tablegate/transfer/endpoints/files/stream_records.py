"""Changes of items: their net effect, and records of DynamoDB streams as a table, the items as the changes left them.

The net effect is of incremental exports on a full export, or of the records of a stream. A window has the final state of
each item that changed in it, or its deletion. Windows are applied in the order of their ends, and later ones win. Lines
within a window concern different items, so that their order does not matter ("Using incremental exports" in the developer
guide). Records of a stream have an order, and the last one of a key wins. Changes may exceed the memory, so they are
stored in a temporary SQLite file.

The forms of records are events of Lambda and answers of GetRecords (`{"Records":[...]}`), and the objects that Firehose
writes from a Kinesis data stream, one record after the other. REMOVE deletes. A record without a new image is an error.
Records of a stream are in the order of SequenceNumber, those of Kinesis in the order of ApproximateCreationDateTime,
because Kinesis may repeat and disorder them. Records of the same time are in the order of the file.
Source: "Change data capture for Kinesis Data Streams" in the developer guide, API_streams_Record in the API reference.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import LineFormat, read_item
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.gateway.model.values.keys import LOWEST, KeySchema, Position
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import (
    CHANGES,
    DocumentFiles,
    elements_of,
    require_members,
)
from tablegate.transfer.endpoints.files.file_endpoint import LineReader, keys_missing, keys_of

_SCHEMA = (
    "CREATE TABLE changes (partition BLOB, sort BLOB, body BLOB, size INTEGER, place TEXT,"
    " PRIMARY KEY (partition, sort)) WITHOUT ROWID"
)
_UPSERT = (
    "INSERT INTO changes VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET body = excluded.body, size = excluded.size, place = excluded.place WHERE excluded.place >= place"
)
_PLACE_DIGITS = 64
_BATCH = 500


class ExportedChanges:
    """The net effect of windows by key. Methods may be called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect("", check_same_thread=False)  # "": a temporary file
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(_SCHEMA)

    def apply(self, changes: Iterable[tuple[Position, Contents | None]]) -> None:
        """Apply the next window: the contents of each key, None if its item was deleted."""
        self.apply_records((0, position, contents) for position, contents in changes)

    def apply_records(self, records: Iterable[tuple[int, Position, Contents | None]]) -> None:
        """Apply records in the order of their places. Of equal places, the later record wins."""
        with self._lock, self._database:
            self._database.executemany(
                _UPSERT,
                (
                    (*position, None, 0, f"{place:0{_PLACE_DIGITS}}")
                    if contents is None
                    else (*position, contents.body, contents.size_bytes, f"{place:0{_PLACE_DIGITS}}")
                    for place, position, contents in records
                ),
            )

    def overrides(self, position: Position) -> bool:
        """True if a window replaced or deleted the item of the full export."""
        with self._lock:
            row = self._database.execute(
                "SELECT 1 FROM changes WHERE partition = ? AND sort = ?", tuple(position)
            ).fetchone()
        return row is not None

    def rows(self, after: Position) -> Iterator[Row]:
        """Yield the rows of the windows in key order after a position."""
        while True:
            with self._lock:
                batch = self._database.execute(
                    "SELECT partition, sort, body, size FROM changes WHERE (partition, sort) > (?, ?) AND body IS NOT NULL"
                    " ORDER BY partition, sort LIMIT ?",
                    (*after, _BATCH),
                ).fetchall()
            for partition, sort, body, size in batch:
                yield Row(Position(partition, sort), Contents(body, None, size), 0)
            if len(batch) < _BATCH:
                return
            after = Position(*batch[-1][:2])

    def close(self) -> None:
        """Close and remove the file."""
        self._database.close()


_BESIDE_RECORDS = frozenset({"Records", "NextShardIterator", "ResponseMetadata", "$metadata"})
_EVENTS = ("INSERT", "MODIFY", "REMOVE")
_US_PER_MS = 1000
_Record = tuple[int, Position, Contents | None]


class StreamRecords(DocumentFiles):
    """Files of stream records. The option `keys` names the key attributes in their order."""

    service = Service.DYNAMODB
    format_name = CHANGES

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._schema = keys_of(options, self.shown)

    def read_definition(self) -> Definition:
        if self._schema is None:
            raise keys_missing(self.shown)
        return Definition(self.table_name, Service.DYNAMODB, self._schema, size_bytes=self.size_bytes())

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        records = _Records(self.describe().key_schema)
        changes = ExportedChanges()
        try:
            for lines in files:
                changes.apply_records(elements_of(lines, records.read, _check_rest))
            yield from changes.rows(Position(LOWEST, LOWEST))
        finally:
            changes.close()


def _check_rest(answer: dict[str, Any]) -> None:
    require_members(answer, _BESIDE_RECORDS, "Records")


class _Records:
    """The reader of records. All must be of one table, and have an order of the same kind."""

    def __init__(self, schema: KeySchema) -> None:
        self._schema = schema
        self._table: str | None = None
        self._has_numbers: bool | None = None

    def read(self, record: dict[str, Any]) -> _Record:
        """Return the place of a change in the order, its key, and the new contents. Raises UnreadableFile."""
        event, change = record.get("eventName"), record.get("dynamodb")
        if event not in _EVENTS or not isinstance(change, dict):
            raise UnreadableFile(
                f"no record of a stream: eventName {event!r}, expected one of {', '.join(_EVENTS)}"
            )
        self._require_table(record)
        position = position_of_members(_image(change, "Keys"), self._schema)
        if event == "REMOVE":
            return self._place(change), position, None
        if "NewImage" not in change:
            raise UnreadableFile(
                "a record without NewImage: the view type of the stream must include new images"
            )
        item = _image(change, "NewImage")
        if position_of_members(item, self._schema) != position:
            raise UnreadableFile("the key of NewImage differs from Keys")
        return self._place(change), position, item.contents

    def _require_table(self, record: Mapping[str, Any]) -> None:
        arn = str(record.get("eventSourceARN", ""))
        table = str(record.get("tableName") or arn.partition(":table/")[2].partition("/")[0])
        if self._table not in (None, table):
            raise UnreadableFile(f"a record of the table {table!r} after records of {self._table!r}")
        self._table = table

    def _place(self, change: Mapping[str, Any]) -> int:
        number, created_at = change.get("SequenceNumber"), change.get("ApproximateCreationDateTime")
        if self._has_numbers not in (None, isinstance(number, str)):
            raise UnreadableFile("records with and without SequenceNumber cannot be ordered")
        self._has_numbers = isinstance(number, str)
        if isinstance(number, str):
            if not (number.isascii() and number.isdecimal()):
                raise UnreadableFile(f"the SequenceNumber {number[:40]!r} is not a number")
            return int(number)
        if type(created_at) is not int or created_at < 0:
            raise UnreadableFile(
                f"the ApproximateCreationDateTime {str(created_at)[:40]} is not a whole number"
            )
        is_in_us = change.get("ApproximateCreationDateTimePrecision") == "MICROSECOND"
        return created_at if is_in_us else created_at * _US_PER_MS


def _image(change: Mapping[str, Any], name: str) -> ParsedItem:
    return read_item(orjson.dumps(change.get(name)), LineFormat.BARE)

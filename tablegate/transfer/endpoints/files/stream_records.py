"""Records of DynamoDB streams as a table: the items as the changes left them.

The forms are events of Lambda and answers of GetRecords (`{"Records":[...]}`), and the objects that Firehose writes from
a Kinesis data stream, one record after the other. The last record of a key wins. REMOVE deletes. A record without a new
image is an error.

Records of a stream are in the order of SequenceNumber, those of Kinesis in the order of ApproximateCreationDateTime,
because Kinesis may repeat and disorder them. Records of the same time are in the order of the file.
Source: "Change data capture for Kinesis Data Streams" in the developer guide, API_streams_Record in the API reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import LineFormat, read_item
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.gateway.model.values.keys import LOWEST, KeySchema, Position
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import DocumentFiles, elements_of, require_members
from tablegate.transfer.endpoints.files.exported_changes import ExportedChanges
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.endpoints.files.keys_option import keys_missing, keys_of
from tablegate.transfer.endpoints.files.recognition import CHANGES

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

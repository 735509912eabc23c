"""The items of a file of JSON documents or Ion lines.

A document is an item, bare or wrapped in `Item`, an array of them, an answer of Scan or Query, or requests of
BatchWriteItem. Documents may follow each other, with line breaks anywhere. The first item determines the form of all.
A partial answer without the rest after it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import (
    LineFormat,
    form_of,
    is_ion,
    read_item,
    shown_names,
)
from tablegate.adapters.dynamodb.export_files.records import RECORD_BYTES
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.gateway.model.values.row_lines import json_object
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.endpoints.files.json_documents import DocumentPart, DocumentSplitter

LocatedItem = tuple[ParsedItem, int]
"""An item and the number of the line where it begins."""

_ANSWER = frozenset(
    {
        "Items", "Count", "ScannedCount", "ConsumedCapacity", "LastEvaluatedKey", "NextToken", "ResponseMetadata",
        "$metadata",
    }
)  # fmt: skip
_REMEDIES = {
    "NextToken": "Read the rest with --starting-token and append the answers, or read all without --max-items",
    "LastEvaluatedKey": "Read the rest with --exclusive-start-key and append the answers, or omit --no-paginate",
}
_BATCH = frozenset({"RequestItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"})


def items_of(lines: LineReader) -> Iterator[LocatedItem]:
    """Yield the items. Raises BadFile, with the line."""
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return
    if is_ion(first):
        yield from _items_of_ion(first, lines)
    else:
        yield from _JsonItems(lines).read(first)


def _items_of_ion(first: bytes, lines: LineReader) -> Iterator[LocatedItem]:
    try:
        form = form_of(first)
        yield read_item(first, form), lines.number
        for line in lines:
            if line.strip():
                yield read_item(line, form), lines.number
    except UnreadableFile as error:
        raise lines.bad(error) from None


class _JsonItems:
    """The reader of JSON documents."""

    def __init__(self, lines: LineReader) -> None:
        self._lines = lines
        self._form: LineFormat | None = None
        self._splitter = DocumentSplitter()
        self._answers = _Answers()

    def read(self, first: bytes) -> Iterator[LocatedItem]:
        line: bytes | None = first
        while line is not None:
            item = self._item_of_line(line)
            if item is None:
                yield from self._items_of_parts(line)
            else:
                yield item, self._lines.number
            line = next(self._lines, None)
        try:
            self._splitter.end()
        except UnreadableFile as error:
            raise self._lines.bad(error, self._splitter.first_line) from None
        self._answers.require_end(self._lines)

    def _item_of_line(self, line: bytes) -> ParsedItem | None:
        """Return the item of a line that is one document, as most files have them. None for all other lines."""
        if self._form is None or not self._splitter.is_between_documents or len(line) > RECORD_BYTES:
            return None
        try:
            return read_item(line, self._form)
        except UnreadableFile:
            return None

    def _items_of_parts(self, line: bytes) -> Iterator[LocatedItem]:
        try:
            parts = self._splitter.parts_of(line, self._lines.number)
        except UnreadableFile as error:
            raise self._lines.bad(error) from None
        for part in parts:
            try:
                if part.elements is None:
                    for item in self._items_of_document(part.data):
                        yield item, part.line
                else:
                    self._answers.add(part)
            except UnreadableFile as error:
                raise self._lines.bad(error, part.line) from None

    def _items_of_document(self, data: bytes) -> list[ParsedItem]:
        if self._form is None:
            requests = _put_requests(json_object(data))
            if requests is not None:
                return [read_item(orjson.dumps(item), LineFormat.BARE) for item in requests]
            self._form = form_of(data)
        return [read_item(data, self._form)]


class _Answers:
    """The counts of answers of Scan or Query. All but the last of a series say that there are more items."""

    def __init__(self) -> None:
        self._number = self._count = self._items = self._line = 0
        self._continuation: str | None = None

    def add(self, part: DocumentPart) -> None:
        """Add an array or an answer. Raises UnreadableFile if it is not the whole."""
        assert part.elements is not None
        if part.data.startswith(b"["):
            if part.data != b"[]":
                raise UnreadableFile("not JSON: the array has no closing bracket")
            return
        answer = json_object(part.data)
        if not _ANSWER.issuperset(answer):
            raise UnreadableFile(f"unexpected members beside Items: {shown_names(answer.keys() - _ANSWER)}")
        count = answer.get("Count", part.elements)
        if type(count) is not int:
            raise UnreadableFile("the Count is not a number")
        self._number += 1
        self._count += count
        self._items += part.elements
        self._line = part.line
        self._continuation = next((name for name in _REMEDIES if answer.get(name)), None)
        if self._continuation is None:
            self._require_items()
            self._number = self._count = self._items = 0

    def _require_items(self) -> None:
        # The AWS CLI counts the items of a whole page, and none after --starting-token.
        if self._count > self._items or (self._number == 1 and self._count != self._items):
            raise UnreadableFile(
                f"the answer has a Count of {self._count}, but {self._items} items: it was changed, or --max-items"
                " cut it off. Run the command again"
            )

    def require_end(self, lines: LineReader) -> None:
        """Raise BadFile if the last answer says that there are more items."""
        if self._continuation is not None:
            raise lines.bad(
                f"the last answer has a {self._continuation}, so that items are missing after it."
                f" {_REMEDIES[self._continuation]}",
                self._line,
            )


def _put_requests(document: dict[str, Any]) -> list[Any] | None:
    """Return the items of requests of BatchWriteItem, None if it is another document. Raises UnreadableFile."""
    tables = document
    if "RequestItems" in document and _BATCH.issuperset(document):
        tables = document["RequestItems"]
    if not isinstance(tables, dict) or not tables or not all(map(_are_requests, tables.values())):
        return None
    if len(tables) > 1:
        raise UnreadableFile(f"requests for several tables: {shown_names(tables)}. Use a file for each table")
    [requests] = tables.values()
    if any("DeleteRequest" in request for request in requests):
        raise UnreadableFile("a DeleteRequest is no item: expected PutRequest only")
    return [request["PutRequest"].get("Item") for request in requests]


def _are_requests(requests: object) -> bool:
    return (
        isinstance(requests, list)
        and bool(requests)
        and all(
            isinstance(request, dict)
            and len(request) == 1
            and request.keys() <= {"PutRequest", "DeleteRequest"}
            and all(isinstance(member, dict) for member in request.values())
            for request in requests
        )
    )

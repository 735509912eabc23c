"""DynamoDB items as files of JSON documents or Ion lines.

A document is an item, bare or wrapped in `Item`, an array of them, an answer of Scan or Query, requests of BatchWriteItem,
or an answer of BatchGetItem or TransactGetItems. Documents may follow each other, with line breaks anywhere. The first
item of a file determines the form of all. A partial answer without the rest after it, also in the next file, is an
error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tablegate.adapters.dynamodb.export_files import line_formats
from tablegate.adapters.dynamodb.export_files.compression import Compression, UnreadableFile, compressed
from tablegate.adapters.dynamodb.export_files.line_formats import (
    LineFormat,
    form_of,
    is_ion,
    line_of,
    read_item,
    shown_names,
)
from tablegate.adapters.dynamodb.export_files.records import RECORD_BYTES
from tablegate.adapters.dynamodb.values.values import ParsedItem, render_row
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import json_object, position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import (
    DESCRIPTIONS,
    ITEMS,
    DocumentFiles,
    DocumentPart,
    DocumentSplitter,
    require_members,
)
from tablegate.transfer.endpoints.files.file_endpoint import (
    FileEndpoint,
    LineReader,
    keys_missing,
    keys_of,
    written_anew,
)
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import MissingSoftware

if TYPE_CHECKING:
    from tablegate.transfer.endpoints.files.table_description import TableDescription


LocatedItem = tuple[ParsedItem, LineReader, int]
"""An item, its file, and the number of the line where it begins."""

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
_TABLE_NAME_CHARACTERS = 3
_GOT = frozenset({"Responses", "UnprocessedKeys", "ConsumedCapacity", "ResponseMetadata", "$metadata"})


def items_of(files: Iterator[LineReader], table: str = "") -> Iterator[LocatedItem]:
    """Yield the items. Raises BadFile, with the line. `table`: the table of batches that name several."""
    answers, batches = _Answers(), _Batches(table)
    lines: LineReader | None = None
    for lines in files:
        first = next((line for line in lines if line.strip()), None)
        if first is not None and is_ion(first):
            yield from _items_of_ion(first, lines)
        elif first is not None:
            yield from _JsonItems(lines, answers, batches).read(first)
    if lines is not None:
        answers.require_end(lines)
        batches.require_table(lines)


def _items_of_ion(first: bytes, lines: LineReader) -> Iterator[LocatedItem]:
    try:
        form = form_of(first)
        yield read_item(first, form), lines, lines.number
        for line in lines:
            if line.strip():
                yield read_item(line, form), lines, lines.number
    except UnreadableFile as error:
        raise lines.bad(error) from None


class _JsonItems:
    """The reader of JSON documents in one file."""

    def __init__(self, lines: LineReader, answers: _Answers, batches: _Batches) -> None:
        self._lines = lines
        self._form: LineFormat | None = None
        self._splitter = DocumentSplitter()
        self._answers = answers
        self._batches = batches
        self._has_requests = False  # in a batch, if its table is called like a list of answers

    def read(self, first: bytes) -> Iterator[LocatedItem]:
        line: bytes | None = first
        while line is not None:
            item = self._item_of_line(line)
            if item is None:
                yield from self._items_of_parts(line)
            else:
                yield item, self._lines, self._lines.number
            line = next(self._lines, None)
        try:
            self._splitter.end()
        except UnreadableFile as error:
            raise self._lines.bad(error, self._splitter.first_line) from None

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
                        yield item, self._lines, part.line
                elif not self._has_requests:
                    self._answers.add(part)
                else:
                    self._batches.require_one((part.rest() or {}).keys())
            except UnreadableFile as error:
                raise self._lines.bad(error, part.line) from None

    def _items_of_document(self, data: bytes) -> list[ParsedItem]:
        if self._form is None:
            document = json_object(data)
            if _are_requests([document]):
                self._has_requests = True
                found: list[Any] | None = _put_items([document])
            else:
                found = self._batches.items_of(document)
            if found is not None:
                return [read_item(orjson.dumps(item), LineFormat.BARE) for item in found]
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
        answer = part.rest()
        if answer is None:
            return
        if part.list_name != "Items":
            raise UnreadableFile(f"no typed item: {part.list_name} is no list of an answer of Scan or Query")
        require_members(answer, _ANSWER, "Items")
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


class _Batches:
    """The items of batches, of one table. `table` selects it, "" if there must be only one."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._is_found = not table
        self._name: str | None = None  # of the table of the batches before

    def items_of(self, document: dict[str, Any]) -> list[Any] | None:
        """Return the items of a batch, None if it is another document. Raises UnreadableFile."""
        found = self._items_of_requests(document)
        return self._items_of_responses(document) if found is None else found

    def require_table(self, lines: LineReader) -> None:
        """Raise BadFile if no batch has the selected table."""
        if not self._is_found:
            raise lines.bad(f"no batch up to here has items of the table {self._table}")

    def _items_of_requests(self, document: dict[str, Any]) -> list[Any] | None:
        """BatchWriteItem."""
        tables = document
        if "RequestItems" in document and _BATCH.issuperset(document):
            tables = document["RequestItems"]
        if not isinstance(tables, dict) or not tables or not all(map(_are_requests, tables.values())):
            return None
        return _put_items(self._only(tables, "requests"))

    def _items_of_responses(self, document: dict[str, Any]) -> list[Any] | None:
        """BatchGetItem, TransactGetItems and BatchExecuteStatement."""
        responses = document.get("Responses")
        if not _GOT.issuperset(document) or not isinstance(responses, dict | list):
            return None
        if isinstance(responses, dict) and any(len(name) < _TABLE_NAME_CHARACTERS for name in responses):
            return None  # an item with the attribute Responses
        if document.get("UnprocessedKeys"):
            raise UnreadableFile("the answer has UnprocessedKeys, so that items are missing. Read them, too")
        if isinstance(responses, dict):
            found: list[Any] = self._only(responses, "items")
            return found
        return [item for item in map(_item_of_response, responses) if item is not None]

    def _only(self, tables: dict[str, Any], things: str) -> Any:
        """Return the member of one table. Raises UnreadableFile if there are several and none is selected."""
        if self._table:
            self._is_found |= self._table in tables
            return tables.get(self._table, [])
        self.require_one(tables.keys(), things)
        return next(iter(tables.values()), [])

    def require_one(self, names: Collection[str], things: str = "requests") -> None:
        """Raise UnreadableFile if the tables of a batch, and of those before it, are not the selected one or only one."""
        known = {*names, *([self._name] if self._name is not None else [])}
        if len(known) > 1:
            raise UnreadableFile(
                f"{things} for several tables: {shown_names(sorted(known))}. Add ?table=NAME to read one of them"
            )
        self._name = next(iter(known), None)
        if self._table and self._name not in (None, self._table):
            raise UnreadableFile(f"{things} for the table {self._name}, not {self._table}")
        self._is_found = True


def _item_of_response(response: Any) -> Any:
    """Return the item of a response, None if it was absent. Raises UnreadableFile."""
    if not isinstance(response, dict) or not response.keys() <= {"Item", "TableName"}:
        raise UnreadableFile(f"expected Item in Responses, found {str(response)[:60]}")
    return response.get("Item")


def _put_items(requests: list[Any]) -> list[Any]:
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


_WRITTEN_ROWS = 1000


class DynamoDBLines(DocumentFiles):
    """Files of DynamoDB items. Options: `keys` names the key attributes, which most files lack, and `table` the table of
    batches."""

    service = Service.DYNAMODB
    format_name = ITEMS

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._schema = keys_of(options, self.shown)
        self._table = options.get("table", "")

    def read_definition(self) -> Definition:
        name, size = self.table_name, self.size_bytes()
        if self._schema is not None:
            return Definition(name, Service.DYNAMODB, self._schema, size_bytes=size)
        description = self._description()
        if description is None:
            raise keys_missing(self.shown)
        schema, indexes, others = description
        return Definition(name, Service.DYNAMODB, schema, indexes, size_bytes=size, other_indexes=others)

    def _description(self) -> TableDescription | None:
        for name in DESCRIPTIONS if self.path.is_dir() else ():
            if (self.path / name).is_file():
                # Imported here, because it loads the adapter's control plane, the largest part of it.
                from tablegate.transfer.endpoints.files.table_description import read_description

                return read_description(self.path / name)
        return None

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        """Yield the rows. The time of writing is unknown."""
        schema = self.describe().key_schema
        for item, lines, line in items_of(files, self._table):
            try:
                position = position_of_members(item, schema)
            except UnreadableFile as error:
                raise lines.bad(error, line) from None
            yield Row(position, item.contents, 0)

    def create(self, definition: Definition) -> list[str]:
        if self._is_ion:
            require_ion_reader()
        return FileEndpoint.create(self, definition)

    @property
    def _is_ion(self) -> bool:
        """True if the name selects Ion for writing."""
        return ".ion" in self.path.suffixes

    def render(self, staging: Staging, target: Path) -> Path:
        compression = {".gz": Compression.GZIP, ".zst": Compression.ZSTD}.get(
            self.path.suffix, Compression.NONE
        )
        with written_anew(target) as file:
            for batch in batches(staging.read()):
                file.write(compressed(b"".join([line_of(row, self._is_ion) for row in batch]), compression))
        return target

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> DynamoDBLines:
        reader = DynamoDBLines(rendered, {})
        reader._schema = key_schema
        return reader

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        return render_row(row)


def require_ion_reader() -> None:
    """Raise MissingSoftware if Ion could be written, but not read back."""
    try:
        line_formats.ion_reader()
    except NotInstalled:
        raise MissingSoftware("Ion needs amazon-ion. Install it with: pip install 'tablegate[ion]'") from None


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows, all but the last of the same length. The last one may be empty: it compresses to some bytes."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _WRITTEN_ROWS:
            yield batch
            batch = []
    yield batch

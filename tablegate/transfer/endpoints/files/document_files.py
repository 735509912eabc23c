"""Endpoints of JSON files that other tools wrote: one file, or a folder of parts that are one table.

Documents stand one after the other, with line breaks anywhere, and are read in bounded memory. A document that is an array,
or that has one of the lists in LISTS, is taken apart: its elements are separate parts, so that it may be larger than the
memory. Each byte belongs to an element, to a separator or to the rest of a document. Elements and rests are parsed by the
caller, and separators are checked here. So nothing in a file is skipped.

Each format has a reader, a subclass of DocumentFiles. Only items of DynamoDB can also be written (dynamodb_lines.py). The
first document determines the format, also if the file's name has no ending. If it is damaged or in none of the formats, the
file counts as items of DynamoDB, and dynamodb_lines.py names the problem.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import is_ion, shown_names
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import LINE_BYTES, json_object
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, paged
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadAddress, BadFile

LISTS = {
    b'"Items"': "Items", b'"Records"': "Records", b'"value"': "value", b'"items"': "items",
}  # fmt: skip
"""Lists of answers and events: of Scan and Query, of streams, of Azure Table, and of `az storage entity query`."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_SPACE = b" \t\r\n"
_SHOWN_BYTES = 40
_ITEM, _LIST_END = "an item", "the end of the list"


class DocumentPart(NamedTuple):
    """A document or a part of one.

    - `line`: the number of the line where it begins.
    - `elements`: None for an element or a document that was not taken apart. Otherwise `data` is a document without
    the elements of its list, and this is their number.
    - `list_name`: the name of the list in such a document, "" for an array.
    """

    data: bytes
    line: int
    elements: int | None = None
    list_name: str = ""

    def rest(self) -> dict[str, Any] | None:
        """Return the members of a document that was taken apart, None for an array. Raises UnreadableFile."""
        if self.data.startswith(b"["):
            if self.data != b"[]":
                raise UnreadableFile("not JSON: the array has no closing bracket")
            return None
        document = json_object(self.data)
        if document.get(self.list_name) != []:
            raise UnreadableFile(f"not JSON: {self.list_name} occurs twice or has no closing bracket")
        return document


class DocumentSplitter:
    """A splitter of lines into documents and elements."""

    def __init__(self) -> None:
        self._depth = 0
        self._list_depth: int | None = None  # the depth of the elements, within the list that is taken apart
        self._name = b""  # the last text in an object at the top
        self._elements: int | None = None
        self._list_name = ""
        self._pending = bytearray()  # the beginning of an element or a separator in earlier lines
        self._pending_line = 0
        self._rest = bytearray()
        self.first_line = 0
        """The line where the current document begins."""

    @property
    def is_between_documents(self) -> bool:
        return self._depth == 0

    def parts_of(self, line: bytes, number: int) -> list[DocumentPart]:
        """Return the parts that end in this line. Raises UnreadableFile."""
        parts: list[DocumentPart] = []
        at = 0  # everything before it is assigned
        for token in _TOKEN.finditer(line):
            mark = token[0]
            if mark in b"{[":
                at = self._open(line, at, token.start(), number)
            elif mark in b"}]":
                at = self._close(line, at, token.end(), parts)
            elif self._depth == 1:
                self._name = mark
        self._keep(line[at:])
        return parts

    def end(self) -> None:
        """Raise UnreadableFile if a document is incomplete."""
        if self._depth:
            raise UnreadableFile("the document is incomplete: the file is truncated")

    def _open(self, line: bytes, at: int, start: int, number: int) -> int:
        """Handle an opening bracket. Return the offset up to which bytes are assigned."""
        if self._depth == self._list_depth:
            self._separator(line[at:start], _ITEM)
            self._pending_line = number
            at = start
        elif self._depth == 0:
            _require_space(line[at:start])
            self.first_line, self._elements, self._list_name = number, None, ""
            at = start
        if self._begins_list(line[start]):
            self._rest += line[at : start + 1]
            at = start + 1
            self._elements = self._elements or 0
            self._list_name = LISTS[self._name] if self._depth else ""
            self._list_depth = self._depth + 1
            self._pending_line = number
        self._depth += 1
        return at

    def _begins_list(self, bracket: int) -> bool:
        """True if a bracket opens a list that is taken apart."""
        is_named = self._depth == 1 and self._name in LISTS and self._elements is None
        return bracket == ord("[") and self._list_depth is None and (self._depth == 0 or is_named)

    def _close(self, line: bytes, at: int, end: int, parts: list[DocumentPart]) -> int:
        """Handle a closing bracket. Return the offset up to which bytes are assigned."""
        if not self._depth:
            raise UnreadableFile("a closing bracket has no opening bracket")
        if self._depth == self._list_depth:
            self._separator(line[at : end - 1], _LIST_END)
            self._list_depth = None
            at = end - 1
        self._depth -= 1
        if self._depth == self._list_depth:
            assert self._elements is not None
            self._elements += 1
            parts.append(DocumentPart(bytes(self._pending) + line[at:end], self._pending_line))
            self._pending.clear()
            return end
        if not self._depth:
            rest = bytes(self._rest) + line[at:end]
            parts.append(DocumentPart(rest, self.first_line, self._elements, self._list_name))
            self._rest.clear()
            self._name = b""
            return end
        return at

    def _keep(self, data: bytes) -> None:
        """Assign the end of a line."""
        if not self._depth:
            _require_space(data)
            return
        if self._depth == self._list_depth:
            self._separator(data)
            return
        kept = self._rest if self._list_depth is None else self._pending
        kept += data
        if len(kept) > LINE_BYTES:
            raise UnreadableFile(f"the item or document has no end within {LINE_BYTES >> 20} MiB")

    def _separator(self, data: bytes, following: str = "") -> None:
        """Add to the text between two elements. Check it before what is `following`. Raises UnreadableFile."""
        self._pending += data
        found = self._pending.strip(_SPACE)
        has_comma = found.startswith(b",")
        if other := found[has_comma:].strip(_SPACE):
            raise UnreadableFile(f"expected an item, found {_shown(bytes(other))}")
        self._pending = found[:has_comma]
        if following:
            self._pending.clear()
            is_comma_due = following == _ITEM and bool(self._elements)
            if has_comma != is_comma_due:
                expected = "a comma" if is_comma_due else "an item"
                raise UnreadableFile(f"expected {expected}, found {following if is_comma_due else 'a comma'}")


def _require_space(data: bytes) -> None:
    if found := data.strip(_SPACE):
        raise UnreadableFile(f"not JSON: expected a document, found {_shown(found)}")


def _shown(data: bytes) -> str:
    return data[:_SHOWN_BYTES].decode(errors="replace")


T = TypeVar("T")
DESCRIPTIONS = ("table.json", "schema.json")
"""Descriptions of tables in a folder: of tablegate, and of dynamodump."""
_MANIFEST = "manifest"
_BESIDE_PARTS = frozenset({*DESCRIPTIONS, _MANIFEST, "_SUCCESS", "_started"})


class DocumentFiles(FileEndpoint):
    """A file of JSON documents, or a folder of such files. Can only be read."""

    format_name: ClassVar[str]

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path)

    @abstractmethod
    def rows(self, files: Iterator[LineReader]) -> Iterable[Row]:
        """Return the rows of the files, always in the same order. Raises BadFile."""

    @property
    def table_name(self) -> str:
        return self.path.name.partition(".")[0]

    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._parts())

    def segments(self, count: int) -> list[JSON]:
        """Return one part, as the sizes and times of the files."""
        self.find()
        return [self._sizes_and_times()]

    def require_unchanged(self, segment: JSON) -> None:
        if self.path.is_dir():
            self._require_equal(segment, self._sizes_and_times())
        else:
            super().require_unchanged(segment)

    def _sizes_and_times(self) -> JSON:
        if not self.path.is_dir():
            return self._size_and_time()
        with self.converted_errors():
            facts = [(path, path.stat()) for path in self._parts()]
        return [[path.name, fact.st_size, fact.st_mtime_ns] for path, fact in facts]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        self.find()
        self.require_unchanged(segment)
        skipped = 0 if resume is None else int(resume)
        with self.converted_errors():
            numbered = (
                (row, count) for count, row in enumerate(self.rows(self.readers()), 1) if count > skipped
            )
            yield from paged(numbered)

    def readers(self) -> Iterator[LineReader]:
        """Yield an open reader of each file."""
        for path in self._parts():
            lines = LineReader(path)
            try:
                yield lines
            finally:
                lines.close()

    def _parts(self) -> list[Path]:
        return parts_of(self.path) if self.path.is_dir() else [self.path]

    # Writing

    def create(self, definition: Definition) -> list[str]:
        raise BadAddress(
            f"{self.shown}: files of the format {self.format_name} can only be read. Write .jsonl or .json"
        )

    def render(self, staging: Staging, target: Path) -> Path:
        raise AssertionError("never created")

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> FileEndpoint:
        raise AssertionError("never created")


def parts_of(folder: Path) -> list[Path]:
    """Return the sorted files of rows in a folder: of EMR, of dynamodump, or the data folder of an export.

    Raises BadFile if there is none, if there is another folder, or if a manifest names a missing file. No other file is
    skipped.
    """
    children = sorted(folder.iterdir())
    folders = [child for child in children if child.is_dir()]
    if is_dynamodump(folder):
        return parts_of(folder / "data")
    if folders:
        names = ", ".join(child.name for child in folders[:5])
        raise BadFile(f"{folder} has the folders {names}. Name one of them, or * for all, each as a table")
    parts = [
        child for child in children if child.name not in _BESIDE_PARTS and not child.name.startswith(".")
        and child.suffix != ".manifest"
    ]  # fmt: skip
    if not parts:
        raise BadFile(f"{folder} has no files of rows")
    _require_manifest(folder / _MANIFEST, {part.name for part in parts})
    return parts


def is_dynamodump(folder: Path) -> bool:
    """True if a folder is a table of dynamodump: a description, a folder with answers of Scan, and nothing else."""
    names = {child.name for child in folder.iterdir() if not child.name.startswith(".")}
    return names == {"schema.json", "data"} and (folder / "data").is_dir()


def _require_manifest(path: Path, names: set[str]) -> None:
    """Raise BadFile if a file is missing that a manifest of EMR or AWS Data Pipeline names."""
    if not path.is_file():
        return
    try:
        needed = {
            str(entry["url"]).rpartition("/")[2] for entry in orjson.loads(path.read_bytes())["entries"]
        }
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise BadFile(f"{path} is no manifest of an export: {error!r}") from None
    if missing := sorted(needed - names):
        raise BadFile(f"{path} names {', '.join(missing[:5])}, which is missing")


def document_parts(lines: LineReader) -> Iterator[DocumentPart]:
    """Yield the parts of the documents in a file. Raises BadFile, with the line."""
    splitter = DocumentSplitter()
    for line in lines:
        try:
            parts = splitter.parts_of(line, lines.number)
        except UnreadableFile as error:
            raise lines.bad(error) from None
        yield from parts
    try:
        splitter.end()
    except UnreadableFile as error:
        raise lines.bad(error, splitter.first_line) from None


def elements_of(
    lines: LineReader, read: Callable[[dict[str, Any]], T], check_rest: Callable[[dict[str, Any]], None]
) -> Iterator[T]:
    """Yield what `read` returns for each document and each element of a list.

    `check_rest` gets each document with a list, without its elements. Both raise UnreadableFile. Raises BadFile.
    """
    for part in document_parts(lines):
        try:
            if part.elements is None:
                yield read(json_object(part.data))
            elif (rest := part.rest()) is not None:
                check_rest(rest)
        except UnreadableFile as error:
            raise lines.bad(error, part.line) from None


def require_members(document: Mapping[str, Any], expected: Set[str], list_name: str) -> None:
    """Raise UnreadableFile for a member that may hold rows which would be left out."""
    if unexpected := document.keys() - expected:
        raise UnreadableFile(f"unexpected members beside {list_name}: {shown_names(unexpected)}")


ITEMS, CHANGES, MODEL = "dynamodb-json", "dynamodb-stream", "nosql-workbench"
ENTITIES, CLI_ROWS = "azure-json", "tablestore-json"
_OF_EMPTY_LISTS = {"Records": CHANGES, "value": ENTITIES, "items": ENTITIES}


def format_of_documents(paths: Iterable[Path]) -> str:
    """Return the name of the format of files of one table. Raises BadFile if a file cannot be decompressed."""
    part = next((part for part in map(_first_part, paths) if part is not None), None)
    if part is None:
        return ITEMS
    if part.elements is not None:
        return _OF_EMPTY_LISTS.get(part.list_name, ITEMS)
    try:
        document = orjson.loads(part.data)
    except orjson.JSONDecodeError:
        return ITEMS
    return _format_of(document)


def _first_part(path: Path) -> DocumentPart | None:
    lines = LineReader(path)
    splitter = DocumentSplitter()
    size = 0
    try:
        for line in lines:
            size += len(line)
            if size > LINE_BYTES or (splitter.is_between_documents and is_ion(line)):
                return None
            for part in splitter.parts_of(line, lines.number):
                return part
    except UnreadableFile:
        return None
    finally:
        lines.close()
    return None


def _format_of(document: dict[str, Any]) -> str:
    if isinstance(document.get("eventName"), str) and isinstance(document.get("dynamodb"), dict):
        return CHANGES
    if isinstance(document.get("DataModel"), list) and "ModelName" in document:
        return MODEL
    if isinstance(document.get("PartitionKey"), str) and isinstance(document.get("RowKey"), str):
        return ENTITIES
    keys = document.get("PK")
    if isinstance(keys, dict) and isinstance(keys.get("Values"), list):
        return CLI_ROWS
    return ITEMS

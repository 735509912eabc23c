"""Endpoints of JSON files that other tools wrote: one file, or a folder of parts that are one table.

Each format has a reader, a subclass of DocumentFiles. Only items of DynamoDB can also be written (dynamodb_lines.py).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import shown_names
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import json_object
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, paged
from tablegate.transfer.endpoints.files.json_documents import DocumentPart, DocumentSplitter
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadAddress, BadFile

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

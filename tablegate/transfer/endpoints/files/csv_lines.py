"""A file of CSV, in the parts that typed CSV and CSV of DynamoDB share: its records and their line numbers."""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.row_lines import LINE_BYTES
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, ScanPage
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, inflated, paged
from tablegate.transfer.errors import BadAddress, BadFile

csv.field_size_limit(LINE_BYTES)


class CsvFile(FileEndpoint):
    """A file of CSV with the option `delimiter`. The first record is the header."""

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path)
        delimiter = options.get("delimiter", ",")
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise BadAddress(f"{self.shown}: delimiter={delimiter}: the delimiter must be one character")
        self._delimiter = delimiter

    @abstractmethod
    def row_reader(self, header: list[str]) -> Callable[[list[str]], Row]:
        """Return the function that makes a row of the cells of a record. Both raise UnreadableFile."""

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        self.find()
        self.require_unchanged(segment)
        stream = inflated(self.path)
        try:
            with io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
                yield from paged(self._rows(text, 0 if resume is None else int(resume)))
        finally:
            stream.close()

    def _rows(self, text: io.TextIOWrapper, skipped: int) -> Iterator[tuple[Row, JSON]]:
        read: Callable[[list[str]], Row] | None = None
        for count, (line, cells) in enumerate(_numbered_records(text, self._delimiter, self.path)):
            try:
                if read is None:
                    read = self.row_reader(cells)
                    continue
                row = read(cells)
            except UnreadableFile as error:
                raise BadFile(f"{self.path}, line {line}: {error}") from None
            if count > skipped:
                yield row, count


def _numbered_records(text: io.TextIOWrapper, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of each record that is not empty, the header first. Raises BadFile."""
    reader = csv.reader(_whole_lines(text), delimiter=delimiter, strict=True)
    line = 1
    has_header = False
    try:
        for cells in reader:
            if cells or not has_header:
                yield line, cells
            has_header = True
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise BadFile(
            f"{path}, line {line}: not UTF-8 ({error}). Convert it: iconv -t UTF-8 -f ENCODING FILE > NEW"
        ) from None
    except (UnreadableFile, csv.Error) as error:
        raise BadFile(f"{path}, line {line}: {error}") from None
    if not has_header:
        raise BadFile(f"{path}, line 1: the file is empty")


def _whole_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield lines. Raises UnreadableFile if the last one has no end: a shorter key or value would be valid, too."""
    for line in text:
        if not line.endswith(("\n", "\r")):
            raise UnreadableFile(
                "the last line has no line break, so that the file may be truncated. Add one if it is complete"
            )
        yield line

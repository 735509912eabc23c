"""Records of CSV files with their line numbers, for typed CSV and CSV of DynamoDB."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.row_lines import LINE_BYTES
from tablegate.transfer.errors import BadAddress, BadFile

csv.field_size_limit(LINE_BYTES)


def delimiter_of(options: Mapping[str, str], shown: str) -> str:
    """Return the option `delimiter`. Raises BadAddress."""
    delimiter = options.get("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise BadAddress(f"{shown}: delimiter={delimiter}: the delimiter must be one character")
    return delimiter


def numbered_records(text: io.TextIOWrapper, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
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

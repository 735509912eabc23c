"""Records of an imported object: DynamoDB JSON, Ion or CSV, read one after another in bounded memory.

A record without a clear end ends the object: nothing after it is read. For example, of ten lines with a sixth that is
no JSON, six are processed (ack-api-quirks, October 2026). The caller checks whether a record can be stored. CSV follows
RFC 4180, optionally with another delimiter. An absent cell is an absent attribute.

Source: "DynamoDB import format quotas and validation", "Import formats" in the developer guide.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.export_files import line_formats
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.row_lines import json_object

RECORD_BYTES = 8 << 20
"""Maximum length of a record. An item of 400 KB with every character escaped takes less than half of it."""
RECORD_MARKS = 1_000_000
"""Maximum number of values of a record. An item of 400 KB has at most 400,000, each with a comma and perhaps a brace."""
TOO_MANY_VALUES = "there are more values than an item can have"
CSV_RECORD_BYTES = 2 << 20
"""Maximum length of a CSV record or header, in which a character becomes at most two."""
_CELL_CHARACTERS = 1 << 20
csv.field_size_limit(_CELL_CHARACTERS)
_JSON = json.JSONDecoder()


class ImportRecord(NamedTuple):
    """A record: `members` by name (`Item` and others), or `error`. If `ends`, nothing after it is read."""

    members: Mapping[str, Any]
    error: str = ""
    ends: bool = False


class ImportFormat(NamedTuple):
    """The format of objects: DYNAMODB_JSON, ION or CSV.

    The other fields are for CSV: the delimiter, the names of the columns (if empty, the first line of each object has
    them), and the types of key columns. Columns without a type are strings.
    """

    format: str
    delimiter: str = ","
    header: tuple[str, ...] = ()
    types: Mapping[str, str] = {}


def records(blocks: Iterable[bytes], layout: ImportFormat) -> Iterator[ImportRecord | None]:
    """Yield the records of a decompressed object, and None at the end of each block, where the caller may stop."""
    try:
        if layout.format == "CSV":
            yield from _rows(blocks, layout)
        else:
            yield from _lines(blocks, _ion_members if layout.format == "ION" else _json_members)
    except UnreadableFile as error:
        yield ImportRecord({}, str(error), ends=True)


def _split(
    blocks: Iterable[bytes], ends: Callable[[bytes], list[bytes]], limit: int
) -> Iterator[list[bytes]]:
    """Yield the lines that each block completes. `ends` splits them. Raises UnreadableFile."""
    partial_line = bytearray()
    for block in blocks:
        partial_line += block
        lines: list[bytes] = []
        if b"\n" in block or b"\r" in block:
            *lines, rest = ends(bytes(partial_line))
            partial_line = bytearray(rest)
        yield lines
        if len(partial_line) > limit:
            raise UnreadableFile("a line is too long")
    yield ends(bytes(partial_line))


def _lines(
    blocks: Iterable[bytes], read: Callable[[bytes], Iterator[Mapping[str, Any]]]
) -> Iterator[ImportRecord | None]:
    for lines in _split(blocks, lambda data: data.split(b"\n"), RECORD_BYTES):
        for line in lines:
            if not line or line.isspace():
                continue
            if has_too_many_values(line):
                yield ImportRecord({}, TOO_MANY_VALUES)
                continue
            for members in read(line):
                if not isinstance(members.get("Item"), dict):
                    raise UnreadableFile("no Item")
                yield ImportRecord(members)
        yield None


def has_too_many_values(line: bytes) -> bool:
    """Return True if a record has more values than an item can have. It is not parsed, since it would take much memory."""
    return len(line) > RECORD_MARKS and sum(map(line.count, (b",", b"[", b"{"))) > RECORD_MARKS


def _json_members(line: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a line: one or several (moto test_dynamodb_import_table.py, verified on the service)."""
    try:
        yield json_object(line)
        return
    except UnreadableFile:
        text = _text(line).rstrip()
    at = 0
    while at < len(text):
        try:
            document, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            # Reports the error as the reader of a whole line does, with the position in the rest.
            document, end = json_object(text[at:].encode()), len(text)
        if not isinstance(document, dict):
            raise UnreadableFile("no JSON object")
        yield document
        at = end


def _ion_members(line: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of an Ion struct in the shape of JSON: strings, and maps by name."""
    yield {name: _untagged(name, value) for name, value in line_formats.parse_ion(_text(line)).items()}


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise UnreadableFile("not UTF-8") from None


def _untagged(name: str, value: Mapping[str, Any]) -> Any:
    [data] = value.values()
    if name == "ExpressionAttributeNames" and isinstance(data, dict):
        return {alias: next(iter(member.values())) for alias, member in data.items()}
    return data


def _rows(blocks: Iterable[bytes], layout: ImportFormat) -> Iterator[ImportRecord | None]:
    header: Sequence[str] = layout.header
    for lines in csv_records(blocks, layout.delimiter):
        if not lines:
            yield None
            continue
        try:
            [cells] = csv.reader(lines, delimiter=layout.delimiter, strict=True)
        except csv.Error as error:
            raise UnreadableFile(f"not CSV: {error}") from None
        if not cells:
            continue
        if not header:
            header = cells
            if len(set(header)) < len(header) or "" in header:
                raise UnreadableFile("the header has an empty or repeated name")
        elif len(cells) > len(header):
            yield ImportRecord({}, f"a line has {len(cells)} cells for {len(header)} columns")
        else:
            types = layout.types
            item = {name: {types.get(name, "S"): cell} for name, cell in zip(header, cells, strict=False)}
            yield ImportRecord({"Item": item})


def csv_records(blocks: Iterable[bytes], delimiter: str) -> Iterator[list[str]]:
    """Yield the lines of each record of CSV: several if a quoted cell has line ends. An empty list marks the end of a block."""
    record: list[str] = []
    size = 0
    is_quoted = False
    bom = "\ufeff"
    for lines in _split(blocks, _split_csv, CSV_RECORD_BYTES):
        for data in lines:
            if data in _EMPTY_LINES and not is_quoted:
                continue
            line = _text(data).removeprefix(bom)
            bom = ""
            is_quoted = _ends_quoted(line, delimiter, is_quoted)
            record.append(line)
            size += len(data)
            if size > CSV_RECORD_BYTES:
                raise UnreadableFile("a record is too long")
            if not is_quoted:
                yield record
                record, size = [], 0
        yield []
    if record:
        yield record


_EMPTY_LINES = frozenset({b"", b"\n", b"\r", b"\r\n"})


def _split_csv(data: bytes) -> list[bytes]:
    """Split lines and keep their ends. The last line has none, or a CR that may be half of one."""
    lines = data.splitlines(keepends=True)
    return [*lines, b""] if lines and lines[-1].endswith(b"\n") else lines or [b""]


def _ends_quoted(line: str, delimiter: str, is_quoted: bool) -> bool:
    """Return True if a line of CSV ends within a quoted cell. `is_quoted`: it begins within one."""
    if '"' not in line:
        return is_quoted
    at = 0
    if not is_quoted:
        is_quoted = line.startswith('"')
        at = 1 if is_quoted else 0
    while True:
        if is_quoted:
            at = line.find('"', at) + 1
            if not at:
                return True
            if line.startswith('"', at):  # an escaped quote
                at += 1
                continue
        at = line.find(delimiter, at) + 1
        if not at:
            return False
        is_quoted = line.startswith('"', at)
        at += is_quoted

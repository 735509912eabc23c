"""The records of an object that is imported: DynamoDB JSON, Ion or CSV, one after the other, in bounded memory.

A record that cannot be told from its neighbours ends the object: what follows it is not read (ack-api-quirks, October 2026: of
ten lines whose sixth is no JSON six are processed). Whether what a record says can be stored is the reader's business. CSV: RFC
4180, with another delimiter if need be; an absent cell is an absent attribute.

Source: "DynamoDB import format quotas and validation", "Import formats" in the developer guide.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from adapters.dynamodb.export_files import ion
from adapters.dynamodb.export_files.compression import Unreadable
from gateway.model.row_lines import json_object

RECORD_BYTES = 8 << 20
"""No record is longer: an item of 400 KB whose every character is escaped has less than half of it."""
_CELL_CHARACTERS = 1 << 20
csv.field_size_limit(_CELL_CHARACTERS)
_JSON = json.JSONDecoder()


class Record(NamedTuple):
    """A record: its members by name (`Item`, and what else stands beside it), or what is wrong with it. `ends`: nothing behind it
    is read."""

    members: Mapping[str, Any]
    error: str = ""
    ends: bool = False


class Layout(NamedTuple):
    """How objects are written: DYNAMODB_JSON, ION or CSV. Of CSV: what stands between cells, the names of the columns (none: the
    first line of each object has them), and the types of columns that are keys, which are texts if they are nothing else."""

    format: str
    delimiter: str = ","
    header: tuple[str, ...] = ()
    types: Mapping[str, str] = {}


def records(stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    """What an object holds, inflated."""
    try:
        if layout.format == "CSV":
            yield from _rows(stream, layout)
        else:
            yield from _lines(stream, _ion_members if layout.format == "ION" else _json_members)
    except Unreadable as error:
        yield Record({}, str(error), ends=True)


def _lines(stream: BinaryIO, read: Callable[[bytes], Iterator[Mapping[str, Any]]]) -> Iterator[Record]:
    while line := stream.readline(RECORD_BYTES):
        if len(line) == RECORD_BYTES and not line.endswith(b"\n"):
            raise Unreadable("a line is too long")
        if line.isspace():
            continue
        for members in read(line):
            if not isinstance(members.get("Item"), dict):
                raise Unreadable("no Item")
            yield Record(members)


def _json_members(line: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a line: one, or several behind each other (moto test_dynamodb_import_table.py, verified on the
    service)."""
    try:
        yield json_object(line)
        return
    except Unreadable:
        text = _text(line).rstrip()
    at = 0
    while at < len(text):
        try:
            found, end = _JSON.raw_decode(text, at)
        except (ValueError, RecursionError):
            # As the reader of a whole line says it, with the place in what is left.
            found, end = json_object(text[at:].encode()), len(text)
        if not isinstance(found, dict):
            raise Unreadable("no JSON object")
        yield found
        at = end


def _ion_members(line: bytes) -> Iterator[Mapping[str, Any]]:
    """The fields of an Ion struct, in the shape that JSON gives: texts, and maps by name."""
    yield {name: _untagged(name, value) for name, value in ion.parse(_text(line)).items()}


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None


def _untagged(name: str, value: Mapping[str, Any]) -> Any:
    [data] = value.values()
    if name == "ExpressionAttributeNames" and isinstance(data, dict):
        return {alias: next(iter(member.values())) for alias, member in data.items()}
    return data


def _rows(stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    found = csv.reader(text, delimiter=layout.delimiter, strict=True)
    header: Sequence[str] = layout.header
    try:
        for cells in found:
            if not cells:
                continue
            if not header:
                header = cells
                if len(set(header)) < len(header) or "" in header:
                    raise Unreadable("the header has no name, or one twice")
                continue
            if len(cells) > len(header):
                yield Record({}, f"there are {len(cells)} cells in a line, and {len(header)} columns")
                continue
            item = {
                name: {layout.types.get(name, "S"): cell} for name, cell in zip(header, cells, strict=False)
            }
            yield Record({"Item": item})
    except csv.Error as error:
        raise Unreadable(f"not CSV: {error}") from None
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8") from None
    finally:
        text.detach()

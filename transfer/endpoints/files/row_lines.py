"""Our JSON Lines: a header, a row a line, and an end that says how many there were and what they sum up to.

    {"tablegate":"rows","version":1,"definition":{...}}
    {"row":{"id":{"S":"a"}},"modified_at":17000000000000000}
    {"end":{"rows":1,"crc64":"00c0ffee00c0ffee"}}

A row is its body (gateway/model/bodies.py) and whatever a row has beyond, as it is stored (gateway/model/rows.py): `kinds` with
the stamps of cells and their older versions, `modified_at`, `expires_at_ms`. The sum is the CRC-64/XZ of all bytes before the
end's line. Knows nothing of files.
"""

from __future__ import annotations

import orjson

from adapters.dynamodb.values.values import item_of
from adapters.dynamodb.wire.errors import ServiceError
from gateway.model import row_lines
from gateway.model.keys import KeySchema
from gateway.model.row_lines import Unreadable, json_object, position_of_members, times_of
from gateway.model.rows import Row
from transfer.endpoints.definitions import definition_of, document_of
from transfer.endpoints.endpoint import Definition

FORMAT = "rows"
VERSION = 1
HEADER_START = b'{"tablegate":'
END_START = b'{"end":'


def header_line(definition: Definition) -> bytes:
    """The first line."""
    header = {"tablegate": FORMAT, "version": VERSION, "definition": document_of(definition)}
    return orjson.dumps(header) + b"\n"


def read_header(line: bytes) -> Definition:
    """The definition that a first line carries. Raises Unreadable."""
    header = json_object(line)
    if header.get("tablegate") != FORMAT:
        raise Unreadable("no header of tablegate's JSON Lines")
    if header.get("version") != VERSION:
        raise Unreadable(f"version {header.get('version')}: this release reads version {VERSION}")
    try:
        return definition_of(header["definition"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"the header's definition is damaged ({error!r})") from None


def end_line(rows: int, crc64: int) -> bytes:
    """The last line, of so many rows, where the lines before sum up to this."""
    return orjson.dumps({"end": {"rows": rows, "crc64": f"{crc64:016x}"}}) + b"\n"


def check_end(line: bytes, rows: int, crc64: int) -> None:
    """Raise Unreadable if the end does not tell what was read."""
    end = json_object(line).get("end")
    if not isinstance(end, dict) or not isinstance(end.get("rows"), int):
        raise Unreadable("the end's line is damaged")
    if end["rows"] != rows:
        raise Unreadable(f"{rows} rows were read, and {end['rows']} written")
    if end.get("crc64") != f"{crc64:016x}":
        raise Unreadable("the checksum is wrong: the file is damaged, or was changed by hand")


def read_row(line: bytes, schema: KeySchema) -> Row:
    """The row of a line, as row_lines.read_row gives it. Raises Unreadable."""
    record = json_object(line)
    members = record.get("row")
    if record.get("kinds") is None and isinstance(members, dict):
        try:
            item = item_of(members)  # what DynamoDB takes needs no other look
        except ServiceError:
            return row_lines.read_row(line, schema)
        times = times_of(record.get("modified_at"), record.get("expires_at_ms"))
        return Row(position_of_members(item, schema), item.contents, *times)
    return row_lines.read_row(line, schema)

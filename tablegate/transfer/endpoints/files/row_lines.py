"""JSON Lines of tablegate (gateway/model/values/row_lines.py) as table files: their definition, and fast parsing of
rows."""

from __future__ import annotations

from tablegate.adapters.dynamodb.values.values import item_of
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.values import row_lines
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import (
    UnreadableFile,
    json_object,
    position_of_members,
    times_of,
)
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.definitions import definition_of, document_of
from tablegate.transfer.endpoints.endpoint import Definition


def header_line(definition: Definition) -> bytes:
    return row_lines.header_line(document_of(definition))


def read_header(line: bytes) -> Definition:
    """Return the definition in a first line. Raises UnreadableFile."""
    header = row_lines.read_header(line)
    try:
        return definition_of(header["definition"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableFile(f"the header's definition is damaged ({error!r})") from None


def read_row(line: bytes, schema: KeySchema) -> Row:
    """Return the row of a line, as row_lines.read_row. Raises UnreadableFile."""
    record = json_object(line)
    members = record.get("row")
    if record.get("kinds") is None and isinstance(members, dict):
        try:
            item = item_of(members)  # a valid DynamoDB item needs no further checks
        except ServiceError:
            return row_lines.read_row(line, schema)
        times = times_of(record.get("modified_at"), record.get("expires_at_ms"))
        return Row(position_of_members(item, schema), item.contents, *times)
    return row_lines.read_row(line, schema)

"""Our JSON Lines (gateway/model/values/row_lines.py) as files of tables: whose rows they are, and a row read quickly.

A header has a definition, or is that of a backup (gateway/store/tables/backup_files.py). Knows nothing of files.
"""

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
from tablegate.transfer.endpoints.definitions import definition_of, definition_of_backup, document_of
from tablegate.transfer.endpoints.endpoint import Definition


def header_line(definition: Definition) -> bytes:
    """The first line."""
    return row_lines.header_line(definition=document_of(definition))


def read_header(line: bytes) -> Definition:
    """The definition that a first line carries. Raises Unreadable."""
    header = row_lines.read_header(line)
    try:
        if "backup" in header:
            return definition_of_backup(header["backup"])
        return definition_of(header["definition"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableFile(f"the header's definition is damaged ({error!r})") from None


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

"""What a request asks for, in short: the tables and the keys that it names, for the control API's record of requests.

Reads a request that nobody has checked yet.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from adapters.tablestore.values import keys
from adapters.tablestore.wire import replies
from adapters.tablestore.wire.auth import Caller
from adapters.tablestore.wire.parsing import parse
from adapters.tablestore.wire.plainbuffer import Bound, Datum
from gateway.dialect import Summary
from gateway.http import Request
from gateway.model.values import Value

_OF_A_ROW = ("primary_key", "row", "row_change")


def summary(request: Request, operation: str, kind: type[Message], caller: Caller) -> Summary:
    """The summary of a request whose message is of this kind. Raises ServiceError where it is none."""
    message: Any = parse(kind, replies.inflated(request), "the ProtoBuf message")
    fields = message.DESCRIPTOR.fields_by_name
    parts = message.tables if "tables" in fields else [message] if "table_name" in fields else []
    found = [(part.table_name, _key(data)) for part in parts for data in _rows(part)]
    tables = dict.fromkeys(part.table_name for part in parts)
    return Summary(operation, caller.access_id, tuple(tables), found)


def _rows(part: Any) -> Iterator[bytes]:
    """The rows and keys that a message, or a table's part of it, has."""
    fields = part.DESCRIPTOR.fields_by_name
    for name in _OF_A_ROW:
        if name in fields:
            value = getattr(part, name)
            yield from [value] if isinstance(value, bytes) else value
    for row in part.rows if "rows" in fields else ():
        yield row.row_change


def _key(data: bytes) -> dict[str, Any]:
    return {cell.name: _shown(cell.value) for cell in keys.decode(data).key}


def _shown(value: Datum | None) -> Any:
    """A key's value as JSON: bytes in base64, and what is no value by its name."""
    if isinstance(value, Value):
        data = value.data
        return base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return value.name if isinstance(value, Bound) else str(value)

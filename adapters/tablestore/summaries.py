"""What a request asks for, in short: the tables and the keys that it names, for the control API's record and for the audit.

Reads a request that nobody has checked yet: no column but those of primary keys.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from adapters.tablestore.values import keys
from adapters.tablestore.wire import replies
from adapters.tablestore.wire.parsing import parse
from adapters.tablestore.wire.plainbuffer import Bound, Datum
from gateway.dialect import Summary
from gateway.http import Request
from gateway.model.values.values import Value

_NAMING = ("table_name", "main_table_name")
_NAMING_STREAMS = ("stream_id", "shard_iterator")
"""Members that begin with a stream's id, which is its table's name and its label (streams/streams.py)."""
_OF_A_ROW = ("primary_key", "row", "row_change")


def summary(request: Request, operation: str, kind: type[Message], who: str) -> Summary:
    """The summary of a request whose message is of this kind. `who`: the access id that whoever asks believes it to be from.
    Raises ServiceError where it is no such message."""
    message: Any = parse(kind, replies.inflated(request), "the ProtoBuf message")
    parts = [message, *(message.tables if _has(message, "tables") else ())]
    found = [(_table(part), _key(data)) for part in parts for data in _rows(part)]
    tables = dict.fromkeys(filter(None, map(_table, parts)))
    return Summary(operation, who, tuple(tables), found)


def _has(message: Message, name: str) -> bool:
    return name in message.DESCRIPTOR.fields_by_name


def _table(part: Any) -> str:
    """The table that a message, or a table's part of it, names; "" if it names none of its own."""
    if _has(part, "table_meta"):
        return _table(part.table_meta)
    named = next((getattr(part, name) for name in _NAMING if _has(part, name)), "")
    stream = next((getattr(part, name).partition(":")[0] for name in _NAMING_STREAMS if _has(part, name)), "")
    return named or stream.rpartition("_")[0]


def _rows(part: Any) -> Iterator[bytes]:
    """The rows and keys that a message, or a table's part of it, has."""
    for name in _OF_A_ROW:
        if _has(part, name):
            value = getattr(part, name)
            yield from [value] if isinstance(value, bytes) else value
    for row in part.rows if _has(part, "rows") else ():
        yield row.row_change


def _key(data: bytes) -> dict[str, Any]:
    return {cell.name: _shown(cell.value) for cell in keys.decode(data).key}


def _shown(value: Datum | None) -> Any:
    """A key's value as JSON: bytes in base64, and what is no value by its name."""
    if isinstance(value, Value):
        data = value.data
        return base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return value.name if isinstance(value, Bound) else str(value)

"""The description of a request to Table Store (gateway/model/request_info.py).

They are parsed separately from the handling, from requests that are not validated yet. Only primary key columns are
read.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore import values
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire import replies
from tablegate.adapters.tablestore.wire.auth import SIGNATURES
from tablegate.adapters.tablestore.wire.errors import REFUSALS
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, Datum
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model import request_info
from tablegate.gateway.model.request_info import RequestInfo, RequestKind, table_names
from tablegate.gateway.model.values.values import Value

_SQL = "SQLQuery"
_READING_STATEMENT = re.compile(r"[\s(]*(?:select|show|desc|describe|explain)\b", re.IGNORECASE)
_AUTHENTICATED_REFUSALS = frozenset({"OTSNoPermissionAccess"})
"""Refusals of authenticated callers."""
_NAMING = ("table_name", "main_table_name")
_NAMING_STREAMS = ("stream_id", "shard_iterator")
"""Members that begin with a stream id: the name of its table and its label (features/streams/operations.py)."""
_OF_A_ROW = ("primary_key", "row", "row_change")


def read(head: RequestInfo, request: Request, reply: Reply | None, caller: str) -> RequestInfo:
    """Return the description of a request. Raises ServiceError if the body is no message of the operation.

    `head`: its operation and kind. `reply`: None before the answer. The caller must be authenticated then. A request
    without key or signature counts as a refusal, although its code is OTSParameterInvalid.
    """
    code = ""
    is_refusal = False
    if reply is not None:
        code = messages.Error.FromString(reply.body).code if reply.status >= 400 else ""
        is_refusal = code in REFUSALS or not caller or not any(map(request.header, SIGNATURES))
    info = head._replace(caller=caller, error_code=code, is_refusal=is_refusal)
    row = OPERATIONS.get(head.operation)
    if row is None or (is_refusal and code not in _AUTHENTICATED_REFUSALS):
        return info
    message: Any = parse(row.request, replies.inflated(request), "the ProtoBuf message")
    parts = [message, *(message.tables if _has(message, "tables") else ())]
    return info._replace(
        kind=kind_of(head.operation, message),
        is_refusal=code in REFUSALS,
        tables=table_names(map(_table, parts) if row.tables_of is None else row.tables_of(message)),
        keys=[(_table(part), _key(data)) for part in parts for data in _rows(part)],
    )


def kind_of(operation: str, message: Any) -> RequestKind:
    """Return the kind of a request. A statement of SQL reads unless it changes a mapping."""
    if operation == _SQL and _READING_STATEMENT.match(message.query):
        return RequestKind.READ
    return request_info.kind_of(OPERATIONS[operation].purpose)


def _has(message: Message, name: str) -> bool:
    return name in message.DESCRIPTOR.fields_by_name


def _table(part: Any) -> str:
    """Return the table that a message, or its part for one table, names, or ""."""
    for name in ("table_meta", "tunnel"):
        if _has(part, name):
            return _table(getattr(part, name))
    table = next((getattr(part, name) for name in _NAMING if _has(part, name)), "")
    stream = next((getattr(part, name).partition(":")[0] for name in _NAMING_STREAMS if _has(part, name)), "")
    return table or stream.rpartition("_")[0]


def _rows(part: Any) -> Iterator[bytes]:
    """Yield the rows and keys of a message, or of its part for one table."""
    for name in _OF_A_ROW:
        if _has(part, name):
            value = getattr(part, name)
            yield from [value] if isinstance(value, bytes) else value
    for row in part.rows if _has(part, "rows") else ():
        yield row.row_change


def _key(data: bytes) -> dict[str, Any]:
    return {cell.name: _json_value(cell.value) for cell in values.decode_key(data).key}


def _json_value(value: Datum | None) -> Any:
    """Return a key value as JSON: bytes in base64, and virtual bounds by name."""
    if isinstance(value, Value):
        data = value.data
        return base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return value.name if isinstance(value, Bound) else str(value)

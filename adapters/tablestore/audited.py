"""What a request did, for the audit (gateway/audit.py): its operation's kind, who sent it, tables, keys, the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Tells no column but those of primary keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf.message import Message

from adapters.tablestore.operation_table import OPERATIONS
from adapters.tablestore.wire import plainbuffer, replies
from adapters.tablestore.wire.errors import REFUSALS
from adapters.tablestore.wire.parsing import parse
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.audit import Deed, Kind, names_among
from gateway.http import Reply, Request

_WRITES = frozenset({
    "PutRow", "UpdateRow", "DeleteRow", "BatchWriteRow", "BulkImport",
    "StartLocalTransaction", "CommitTransaction", "AbortTransaction",
})  # fmt: skip
_READING = ("Get", "Describe", "List", "BatchGet", "BulkExport", "Compute", "Search", "SQLQuery")


def _kind(name: str) -> Kind:
    if name in _WRITES:
        return Kind.WRITE
    return Kind.READ if name.startswith(_READING) else Kind.DEFINITION


KINDS: Mapping[str, Kind] = {name: _kind(name) for name in OPERATIONS}
"""Operation -> what it is. Whatever neither reads nor writes rows defines something."""


def deed_of(request: Request, reply: Reply, operation: str) -> Deed:
    """What a request did."""
    who = request.header("x-ots-accesskeyid")
    kind = KINDS.get(operation, Kind.READ)
    code = messages.Error.FromString(reply.body).code if reply.status >= 400 else ""
    row = OPERATIONS.get(operation)
    if row is None or (code in REFUSALS and code != "OTSNoPermissionAccess"):
        return Deed(kind, who, code=code, is_refusal=code in REFUSALS)
    message: Any = parse(row.request, replies.inflated(request), "the message")
    return Deed(kind, who, names_among(_tables(message)), list(_keys(message)), code, code in REFUSALS)


def _has(message: Message, name: str) -> bool:
    return name in message.DESCRIPTOR.fields_by_name


def _tables(message: Any) -> Iterator[str]:
    for name in ("table_name", "main_table_name"):
        if _has(message, name):
            yield getattr(message, name)
    if _has(message, "table_meta"):
        yield from _tables(message.table_meta)
    if _has(message, "tables"):
        for member in message.tables:
            yield member.table_name


def _keys(message: Any) -> Iterator[dict[str, Any]]:
    for name in ("primary_key", "row", "row_change"):
        if _has(message, name):
            given = getattr(message, name)
            for data in (given,) if isinstance(given, bytes) else given:
                yield _key(data)
    for name in ("tables", "rows"):
        if _has(message, name):
            for member in getattr(message, name):
                yield from _keys(member)


def _key(data: bytes) -> dict[str, Any]:
    return {cell.name: _shown(cell.value) for cell in plainbuffer.decode_row(data).key}


def _shown(value: Any) -> Any:
    plain = getattr(value, "data", value)
    return plain.hex() if isinstance(plain, bytes) else plain if isinstance(plain, str | int) else repr(plain)

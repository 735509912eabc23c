"""What a request did, for the audit (gateway/audit.py): its operation's kind, who sent it, tables, keys, the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Tells no attributes but keys, and of
statements their tables alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from adapters.dynamodb.operation_table import OPERATIONS
from adapters.dynamodb.wire import auth, http
from adapters.dynamodb.wire.errors import REFUSALS
from adapters.dynamodb.wire.resources import bare_name
from gateway.audit import Deed, Kind, names_among
from gateway.dialect import Gateway
from gateway.http import Reply, Request

_WRITES = frozenset({
    "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems",
    "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
})  # fmt: skip
_READING = ("Get", "Describe", "List", "Query", "Scan", "Search", "BatchGet", "TransactGet")
_TABLE_IN_STATEMENT = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+(?:"((?:[^"]|"")+)"|([\w.-]+))', re.IGNORECASE)
_NAMING = ("TableName", "TableArn", "ResourceArn", "SourceTableName", "SourceTableArn", "TargetTableName", "BackupArn",
           "StreamArn")  # fmt: skip


def _kind(name: str) -> Kind:
    if name in _WRITES:
        return Kind.WRITE
    return Kind.READ if name.startswith(_READING) else Kind.DEFINITION


KINDS: Mapping[str, Kind] = {
    name: _kind(name) for name in (target.partition(".")[2] for target in OPERATIONS)
}
"""Operation -> what it is. Whatever neither reads nor writes items defines something."""


def deed_of(request: Request, reply: Reply, operation: str, gateway: Gateway) -> Deed:
    """What a request did."""
    code = _code(reply)
    who = auth.claimed(request, gateway.credentials)
    kind = KINDS.get(operation, Kind.READ)
    access_id = "" if who is None else who.access_id
    if code in REFUSALS and code != "AccessDeniedException":
        return Deed(kind, access_id, code=code, is_refusal=True)
    body = orjson.loads(http.body_of(request) or b"{}")
    if not isinstance(body, dict):
        return Deed(kind, access_id, code=code)
    statements = list(_statements(body))
    if statements and all(text.lstrip()[:6].upper() == "SELECT" for text in statements):
        kind = Kind.READ
    tables = names_among([*_tables(body), *map(_table_of, statements)])
    keys = list(_keys(body, gateway, "" if who is None else who.namespace))
    return Deed(kind, access_id, tables, keys, code, code in REFUSALS)


def _code(reply: Reply) -> str:
    if reply.status < 400 or not reply.body.startswith(b"{"):
        return ""
    return str(orjson.loads(reply.body).get("__type", "")).rpartition("#")[2]


def _tables(body: dict[str, Any]) -> Iterator[Any]:
    for name in _NAMING:
        yield body.get(name)
    yield from body.get("RequestItems") or ()
    for member in _members(body):
        yield member.get("TableName")


def _statements(body: dict[str, Any]) -> Iterator[str]:
    for holder in (body, *(body.get("Statements") or ()), *(body.get("TransactStatements") or ())):
        text = holder.get("Statement")
        if isinstance(text, str):
            yield text


def _table_of(statement: str) -> str | None:
    found = _TABLE_IN_STATEMENT.search(statement)
    return None if found is None else (found[1] or "").replace('""', '"') or found[2]


def _members(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The members of a transaction."""
    for item in body.get("TransactItems") or ():
        yield from item.values()


def _keys(body: dict[str, Any], gateway: Gateway, namespace: str) -> Iterator[Any]:
    for asked in (body, *_members(body)):
        yield from _key_of(asked.get("TableName", ""), asked, gateway, namespace)
    for table, asked in (body.get("RequestItems") or {}).items():
        if isinstance(asked, dict):
            yield from asked.get("Keys") or ()
            continue
        for write in asked:
            for member in write.values():
                yield from _key_of(table, member, gateway, namespace)


def _key_of(name: str, asked: dict[str, Any], gateway: Gateway, namespace: str) -> Iterator[Any]:
    if "Key" in asked:
        yield asked["Key"]
    elif "Item" in asked:
        table = gateway.engine.cached_table(namespace, bare_name(name))
        item = asked["Item"]
        if table is not None and all(column in item for column in table.key_schema.names):
            yield {column: item[column] for column in table.key_schema.names}

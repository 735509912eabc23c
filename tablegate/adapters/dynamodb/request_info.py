"""The description of a request to DynamoDB (gateway/model/request_info.py), read apart from its handling.

The request is not checked yet, so values of a wrong form are ignored. Only the keys of items and the tables of statements
are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb.call import list_or_empty
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.tables.table_definitions import shown_table_keys
from tablegate.adapters.dynamodb.wire import http, limits
from tablegate.adapters.dynamodb.wire.errors import REFUSALS
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model import request_info

_AUTHENTICATED_REFUSALS = frozenset({"AccessDeniedException"})
"""Refusals of authenticated callers."""
_PART_CODE = "AccessDenied"
"""The error code of a rejected member of a BatchExecuteStatement (BatchStatementError, API reference)."""
PART_MARKS: Mapping[str, bytes] = {"BatchExecuteStatement": b'"Code":"%s"' % _PART_CODE.encode()}
"""An item cannot contain these bytes: its quotation marks are escaped, and an object follows each name."""
_NAMING = (
    "TableName", "TableArn", "ResourceArn", "SourceTableName", "SourceTableArn", "TargetTableName", "BackupArn", "StreamArn",
    "ShardIterator", "ExportArn", "ImportArn", "BulkOperationArn", "GlobalTableName",
)  # fmt: skip
_TABLE_IN_STATEMENT = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+(?:"((?:[^"]|"")+)"|([\w.-]+))', re.IGNORECASE)


def read(
    head: request_info.RequestInfo,
    request: Request,
    reply: Reply | None,
    caller: Caller | None,
    gateway: Gateway,
) -> request_info.RequestInfo:
    """Return the description of a request. Raises the errors of http.document_of.

    `head`: its operation and kind. `reply`: None before the answer. `caller`: authenticated before the answer, afterwards
    only claimed by the request.
    """
    code = "" if reply is None else _error_code(reply)
    info = head._replace(
        caller="" if caller is None else caller.access_id, error_code=code, is_refusal=code in REFUSALS
    )
    if info.is_refusal and code not in _AUTHENTICATED_REFUSALS:
        return info
    body = http.document_of(request)
    namespace = "" if caller is None else caller.namespace
    return info._replace(
        kind=kind_of(info.operation, body),
        tables=_tables(body),
        keys=list(_keys(body, gateway, namespace)),
        refused_parts=None if reply is None else _refused_parts(body, reply, info.operation),
    )


def kind_of(operation: str, body: dict[str, Any]) -> request_info.RequestKind:
    """Return the kind of a request. Statements that are all SELECT only read."""
    statements = list(_statements(body))
    if statements and all(text.lstrip()[:6].upper() == "SELECT" for text in statements):
        return request_info.RequestKind.READ
    return request_info.kind_of(OPERATIONS[operation].purpose)


def _tables(body: dict[str, Any]) -> list[str]:
    names = [body.get(member) for member in _NAMING]
    parameters = body.get("TableCreationParameters")
    names.append(parameters.get("TableName") if isinstance(parameters, dict) else None)
    requests = body.get("RequestItems")
    names += requests if isinstance(requests, dict) else ()
    names += (name for name, _, _ in _members(body))
    names += map(_table_of, _statements(body))
    return request_info.table_names(_bare(name) for name in names if isinstance(name, str))


def _keys(body: dict[str, Any], gateway: Gateway, namespace: str) -> Iterator[tuple[str, Any]]:
    for name, key, item in _members(body):
        if key is None and item is not None:
            key = _key_of_item(gateway, namespace, name, item)
        if key:
            yield name, key


def _refused_parts(body: dict[str, Any], reply: Reply, operation: str) -> request_info.RejectedParts | None:
    mark = PART_MARKS.get(operation)
    if mark is None or reply.status != 200 or mark not in reply.body:
        return None
    answers = orjson.loads(reply.body)["Responses"]
    members = [
        member
        for member, answer in zip(body["Statements"], answers, strict=True)
        if answer.get("Error", {}).get("Code") == _PART_CODE
    ]
    return request_info.RejectedParts(_tables({"Statements": members}), _PART_CODE)


def _error_code(reply: Reply) -> str:
    if reply.status < 400 or not reply.body.startswith(b"{"):
        return ""
    return str(orjson.loads(reply.body).get("__type", "")).rpartition("#")[2]


def _statements(body: dict[str, Any]) -> Iterator[str]:
    """Yield the PartiQL statements of a request."""
    for holder in (
        body,
        *list_or_empty(body.get("Statements")),
        *list_or_empty(body.get("TransactStatements")),
    ):
        text = holder.get("Statement") if isinstance(holder, dict) else None
        if isinstance(text, str):
            yield text


def _table_of(statement: str) -> str | None:
    # Longer statements are rejected. The pattern takes some 130 bytes of memory for each character.
    match = _TABLE_IN_STATEMENT.search(statement[: limits.STATEMENT_CHARACTERS])
    return None if match is None else (match[1] or "").replace('""', '"') or match[2]


def _bare(name: str) -> str:
    """Return the table of a name or an ARN, "" for an ARN of another resource. The ARN may have further parts."""
    if not name.startswith("arn:"):
        return name
    return name.partition(":table/")[2].partition("/")[0]


def _members(
    body: dict[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Yield (table, key, item) of the request itself and of each member of a batch or transaction."""
    yield from _member(body.get("TableName"), body)
    requests = body.get("RequestItems")
    for name, table_request in requests.items() if isinstance(requests, dict) else ():
        keys = table_request.get("Keys") if isinstance(table_request, dict) else None
        for key in keys if isinstance(keys, list) else ():
            yield from _member(name, {"Key": key})
        for write in table_request if isinstance(table_request, list) else ():
            for part in write.values() if isinstance(write, dict) else ():
                yield from _member(name, part)
    for action in list_or_empty(body.get("TransactItems")):
        for part in action.values() if isinstance(action, dict) else ():
            yield from _member(part.get("TableName") if isinstance(part, dict) else None, part)


def _member(
    name: Any, member: Any
) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    if isinstance(name, str) and isinstance(member, dict):
        key, item = member.get("Key"), member.get("Item")
        yield (
            _bare(name),
            key if isinstance(key, dict) else None,
            item if isinstance(item, dict) else None,
        )


def _key_of_item(
    gateway: Gateway, namespace: str, name: str, item: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the key of an item. None if the table is not cached."""
    table = gateway.engine.cached_table(namespace, name)
    if table is None:
        return None
    return {key.name: item[key.name] for key in shown_table_keys(table.key_schema) if key.name in item}

"""What a request asks for, in short: the tables and the keys that it names, for the control API's record and for the audit.

Reads a request that nobody has checked yet, and takes of it what is of the right form; of statements their tables alone. Whoever
asks says whom the request is from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from adapters.dynamodb.tables.descriptions import shown_table_keys
from adapters.dynamodb.wire import http
from adapters.dynamodb.wire.calls import Caller
from gateway.dialect import Gateway, Summary
from gateway.http import Request

_NAMING = (
    "TableName", "TableArn", "ResourceArn", "SourceTableName", "SourceTableArn", "TargetTableName", "BackupArn", "StreamArn",
    "ShardIterator", "ExportArn", "ImportArn", "BulkOperationArn", "GlobalTableName",
)  # fmt: skip
_TABLE_IN_STATEMENT = re.compile(r'\b(?:FROM|INTO|UPDATE)\s+(?:"((?:[^"]|"")+)"|([\w.-]+))', re.IGNORECASE)


def document(request: Request) -> dict[str, Any]:
    """The JSON of a request. Raises TooLarge, ServiceError, Busy."""
    try:
        body = orjson.loads(http.body_of(request) or b"{}")
    except (ValueError, SystemError, MemoryError) as error:
        raise http.json_failure(error) from None
    return body if isinstance(body, dict) else {}


def summary(body: dict[str, Any], operation: str, gateway: Gateway, caller: Caller | None) -> Summary:
    """The summary of a request with this JSON. `caller`: who sent it, as far as whoever asks believes it."""
    names = [body.get(member) for member in _NAMING]
    made = body.get("TableCreationParameters")
    names.append(made.get("TableName") if isinstance(made, dict) else None)
    requests = body.get("RequestItems")
    names += requests if isinstance(requests, dict) else ()
    keys = []
    for name, key, item in _members(body):
        names.append(name)
        if key is None and item is not None:
            key = _key_of_item(gateway, "" if caller is None else caller.namespace, name, item)
        if key:
            keys.append((name, key))
    names += map(_table_of, statements(body))
    tables = dict.fromkeys(_bare(name) for name in names if isinstance(name, str))
    return Summary(operation, "" if caller is None else caller.access_id, tuple(filter(None, tables)), keys)


def statements(body: dict[str, Any]) -> Iterator[str]:
    """The PartiQL statements of a request."""
    for holder in (body, *_listed(body, "Statements"), *_listed(body, "TransactStatements")):
        text = holder.get("Statement") if isinstance(holder, dict) else None
        if isinstance(text, str):
            yield text


def _listed(body: dict[str, Any], member: str) -> list[Any]:
    found = body.get(member)
    return found if isinstance(found, list) else []


def _table_of(statement: str) -> str | None:
    found = _TABLE_IN_STATEMENT.search(statement)
    return None if found is None else (found[1] or "").replace('""', '"') or found[2]


def _bare(name: str) -> str:
    """The table of a name or an ARN, which may go on behind the table's name; "" for an ARN of something else."""
    if not name.startswith("arn:"):
        return name
    return name.partition(":table/")[2].partition("/")[0]


def _members(
    body: dict[str, Any],
) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """(table, key, item) of each member of a request: the one that it is, or those of a batch or a transaction."""
    yield from _member(body.get("TableName"), body)
    requests = body.get("RequestItems")
    for name, wanted in requests.items() if isinstance(requests, dict) else ():
        keys = wanted.get("Keys") if isinstance(wanted, dict) else None
        for key in keys if isinstance(keys, list) else ():
            yield from _member(name, {"Key": key})
        for write in wanted if isinstance(wanted, list) else ():
            for each in write.values() if isinstance(write, dict) else ():
                yield from _member(name, each)
    for action in _listed(body, "TransactItems"):
        for each in action.values() if isinstance(action, dict) else ():
            yield from _member(each.get("TableName") if isinstance(each, dict) else None, each)


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
    """The key of an item that is put; None if nobody knows what that table's key is."""
    table = gateway.engine.cached_table(namespace, name)
    if table is None:
        return None
    return {key.name: item[key.name] for key in shown_table_keys(table.key_schema) if key.name in item}

"""What a request asks for, in short: the tables and the keys that it names, for the control API's record of requests.

Reads a request that nobody has checked yet, and takes of it what is of the right form. Statements are not looked into.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from adapters.dynamodb.tables.descriptions import shown_table_keys
from adapters.dynamodb.wire import auth, http
from adapters.dynamodb.wire.errors import ServiceError
from adapters.dynamodb.wire.resources import bare_name
from gateway.dialect import Gateway, Summary
from gateway.http import Request

_MEMBERS = ("TableName", "ResourceArn", "StreamArn")


def summary(request: Request, operation: str, gateway: Gateway) -> Summary:
    """The summary of a request. Raises ServiceError, TooLarge, JSONDecodeError where there is none."""
    try:
        caller = auth.verify(request, gateway.credentials, gateway.real_now_ms())
    except ServiceError:
        return Summary(operation)
    body = orjson.loads(http.body_of(request) or b"{}")
    if not isinstance(body, dict):
        return Summary(operation, caller.access_id)
    tables = dict.fromkeys(_bare(body[member]) for member in _MEMBERS if isinstance(body.get(member), str))
    keys = []
    for name, key, item in _members(body):
        tables[name] = None
        if key is None and item is not None:
            key = _key_of_item(gateway, caller.namespace, name, item)
        if key:
            keys.append((name, key))
    return Summary(operation, caller.access_id, tuple(tables), keys)


def _bare(name: str) -> str:
    """The table of a name or an ARN, which may go on behind the table's name."""
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
    actions = body.get("TransactItems")
    for action in actions if isinstance(actions, list) else ():
        for each in action.values() if isinstance(action, dict) else ():
            yield from _member(each.get("TableName") if isinstance(each, dict) else None, each)


def _member(
    name: Any, member: Any
) -> Iterator[tuple[str, Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    if isinstance(name, str) and isinstance(member, dict):
        key, item = member.get("Key"), member.get("Item")
        yield (
            bare_name(name),
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

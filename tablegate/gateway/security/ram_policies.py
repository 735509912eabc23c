"""Alibaba's RAM policies for Table Store, as policies (model/authorization/grants.py).

A policy of Version "1" has `ots:` actions and resources `acs:ots:REGION:ACCOUNT:instance/I[/table/T]`. It has no conditions on
rows. Sources: "Custom RAM policies" and "RAM policy elements" (Alibaba Cloud help, Tablestore and RAM, 2026).

An Allow of a table includes its streams and tunnels. It excludes its indexes, which clients read as tables with names of their
own. A Deny of a table includes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tablegate.gateway.model.authorization.conditions import EVERY, Condition, Glob
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission
from tablegate.gateway.security.iam_conditions import BadPolicy, conditions_of
from tablegate.gateway.security.iam_policies import read_document

_P = Permission
_MEMBERS = frozenset({"Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})
_ROW = (Channel.SINGLE, Channel.TRANSACTION)
_SEARCH_INDEX = (Channel.SEARCH_INDEX,)


def _pairs(
    *permissions: Permission, channels: Iterable[Channel] = (Channel.SINGLE,)
) -> frozenset[GrantAction]:
    channels = tuple(channels)
    return frozenset((permission, channel) for permission in permissions for channel in channels)


ACTIONS: Mapping[str, frozenset[GrantAction]] = {
    "GetRow": _pairs(_P.READ, channels=_ROW),
    "GetRange": _pairs(_P.QUERY, _P.SCAN),
    "PutRow": _pairs(_P.PUT, channels=_ROW),
    "UpdateRow": _pairs(_P.UPDATE, channels=_ROW),
    "DeleteRow": _pairs(_P.DELETE, channels=_ROW),
    "BatchGetRow": _pairs(_P.READ, _P.QUERY, channels=[Channel.BATCH]),
    "BatchWriteRow": _pairs(_P.PUT, _P.UPDATE, _P.DELETE, channels=[Channel.BATCH]),
    "BulkImport": _pairs(_P.PUT, _P.UPDATE, _P.DELETE, channels=[Channel.BATCH]),
    "BulkExport": _pairs(_P.QUERY, _P.SCAN, channels=[Channel.BATCH]),
    "ListTable": _pairs(_P.LIST),
    "CreateTable": _pairs(_P.CREATE),
    "UpdateTable": _pairs(_P.ALTER),
    "DescribeTable": _pairs(_P.DESCRIBE),
    "DeleteTable": _pairs(_P.DROP),
    "ComputeSplitPointsBySize": _pairs(_P.SPLIT),
    "AddDefinedColumn": _pairs(_P.ADD_COLUMNS),
    "DeleteDefinedColumn": _pairs(_P.DROP_COLUMNS),
    "CreateIndex": _pairs(_P.CREATE_INDEX),
    "DropIndex": _pairs(_P.DROP_INDEX),
    "ListSearchIndex": _pairs(_P.LIST_FEATURES),
    "CreateSearchIndex": _pairs(_P.CREATE_INDEX, channels=_SEARCH_INDEX),
    "UpdateSearchIndex": _pairs(_P.CREATE_INDEX, channels=_SEARCH_INDEX),
    "DescribeSearchIndex": _pairs(_P.DESCRIBE, channels=_SEARCH_INDEX),
    "DeleteSearchIndex": _pairs(_P.DROP_INDEX, channels=_SEARCH_INDEX),
    "ComputeSplits": _pairs(_P.SCAN, channels=_SEARCH_INDEX),
    "ParallelScan": _pairs(_P.SCAN, channels=_SEARCH_INDEX),
    "Search": _pairs(_P.SCAN, channels=_SEARCH_INDEX),
    "ListTimeseriesTable": _pairs(_P.LIST_FEATURES),
    "StartLocalTransaction": _pairs(_P.BEGIN),
    "CommitTransaction": _pairs(_P.COMMIT),
    "AbortTransaction": _pairs(_P.ABORT),
    "ListStream": _pairs(_P.LIST_STREAMS),
    "DescribeStream": _pairs(_P.DESCRIBE_STREAM),
    "GetShardIterator": _pairs(_P.POSITION_STREAM),
    "GetStreamRecord": _pairs(_P.READ_STREAM),
    "SQL_Select": _pairs(_P.SCAN, _P.QUERY, channels=[Channel.STATEMENT]),
    "SQL_Create": _pairs(_P.ALTER, channels=[Channel.STATEMENT]),
    "SQL_DropMapping": _pairs(_P.ALTER, channels=[Channel.STATEMENT]),
    "SQL_Show": _pairs(_P.LIST, _P.DESCRIBE, channels=[Channel.STATEMENT]),
    "CreateTunnel": _pairs(_P.ALTER_DELIVERIES, channels=[Channel.TUNNEL]),
    "DeleteTunnel": _pairs(_P.ALTER_DELIVERIES, channels=[Channel.TUNNEL]),
    "ListTunnel": _pairs(_P.DESCRIBE_STREAM, channels=[Channel.TUNNEL]),
    "DescribeTunnel": _pairs(_P.DESCRIBE_STREAM, channels=[Channel.TUNNEL]),
    "ConsumeTunnel": _pairs(_P.SCAN, _P.READ_STREAM, channels=[Channel.TUNNEL]),
}
"""The (permission, channel) pairs that an Allow of each action covers."""

_EVERY_PAIR = frozenset((permission, channel) for permission in Permission for channel in Channel)
_CONDITION_KEYS = {
    "acs:sourceip": "aws:SourceIp",
    "acs:securetransport": "aws:SecureTransport",
    "acs:currenttime": "aws:CurrentTime",
}


def ram_policy(text: str) -> Policy:
    """Return the policy of a document. Raises BadPolicy."""
    document = read_document(text)
    if document.keys() - {"Version", "Statement"} or document.get("Version") != "1":
        raise BadPolicy('a RAM policy must have the members Version, "1", and Statement')
    statement = document.get("Statement")
    elements = [statement] if isinstance(statement, dict) else statement
    if not isinstance(elements, list) or not elements:
        raise BadPolicy("a policy must have a Statement")
    return Policy(tuple(_statement(element) for element in elements))


def _statement(element: Any) -> Statement:
    if not isinstance(element, dict) or element.keys() - _MEMBERS:
        raise BadPolicy(f"a statement has the members {', '.join(sorted(_MEMBERS))}")
    effects = {"Allow": Effect.ALLOW, "Deny": Effect.DENY}
    effect = effects.get(str(element.get("Effect")))
    if effect is None:
        raise BadPolicy("Effect must be Allow or Deny")
    if ("Action" in element) is ("NotAction" in element):
        raise BadPolicy("a statement must have either Action or NotAction")
    if ("Resource" in element) is ("NotResource" in element):
        raise BadPolicy("a statement must have either Resource or NotResource")
    if "Action" in element:
        pairs = _pairs_of(_texts(element["Action"]), effect is Effect.DENY)
    else:
        pairs = _EVERY_PAIR - _pairs_of(_texts(element["NotAction"]), False)
    excludes = "NotResource" in element
    names = _texts(element["NotResource" if excludes else "Resource"])
    is_wide = (effect is Effect.DENY) is not excludes
    resources = tuple(resource for name in names for resource in _resources(name, is_wide))
    return Statement(effect, pairs, resources, tuple(_conditions(element.get("Condition", {}))), excludes)


def _texts(element: Any) -> list[str]:
    texts = [element] if isinstance(element, str) else element
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadPolicy("actions and resources must be texts")
    return texts


def _pairs_of(patterns: list[str], is_refusal: bool) -> frozenset[GrantAction]:
    result: set[GrantAction] = set()
    for pattern in patterns:
        service, _, name = pattern.partition(":") if pattern != "*" else ("ots", ":", "*")
        if not name:
            raise BadPolicy(f"{pattern} is not an action")
        if service != "ots":
            continue
        if name == "*":
            result |= _EVERY_PAIR
        actions = Glob.of(name)
        for action, pairs in ACTIONS.items():
            if actions.matches(action):
                result |= pairs
                if is_refusal and not action.startswith(("Batch", "Bulk")):
                    result |= {(permission, channel) for permission, _ in pairs for channel in Channel}
                if is_refusal and (_P.SCAN, Channel.SINGLE) in pairs:
                    result |= _pairs(_P.SPLIT)  # split points are keys of rows
    return frozenset(result)


def _resources(name: str, is_wide: bool) -> Iterator[Resources]:
    """Yield the resources of acs:ots:REGION:ACCOUNT:instance/I/table/T. `is_wide` includes the indexes of a table.

    The instance has an effect only if each instance has tables of its own.
    """
    if name == "*":
        yield Resources(EVERY)
        return
    parts = name.split(":", 4)
    if len(parts) != 5 or parts[:1] != ["acs"]:
        raise BadPolicy(f"{name} is not a resource")
    if parts[1] != "ots":
        return
    location = parts[4]
    if location in ("*", "instance/*", "instance*"):
        yield Resources(EVERY)
        return
    kind, _, path = location.partition("/")
    instance, _, path = path.partition("/")
    if kind != "instance":
        raise BadPolicy(f"{name} is not a resource of Table Store")
    where = Glob.of(instance.lower())
    if path in ("*", "table/*", "table*") or (not path and instance.endswith("*")):
        yield Resources(EVERY, instance=where)
        return
    if not path.startswith("table/"):
        return  # an instance itself, for which this server has no operation
    table = path.removeprefix("table/")
    yield Resources(Glob.of(table, "/"), instance=where)
    yield Resources(Glob.of(f"{table}/stream/", "/") + EVERY, instance=where)
    yield Resources(Glob.of("*/index/" + table, "/"), instance=where)
    if is_wide:
        yield Resources(Glob.of(f"{table}/index/", "/") + EVERY, instance=where)


def _conditions(element: Any) -> Iterator[Condition]:
    if not isinstance(element, dict):
        raise BadPolicy("Condition is not an object")
    iam_element: dict[str, Any] = {}
    for operator, keys in element.items():
        if not isinstance(keys, dict):
            raise BadPolicy(f"Condition {operator} is not an object")
        new_keys = {}
        for key, values in keys.items():
            if key.lower() not in _CONDITION_KEYS:
                raise BadPolicy(f"the condition key {key} is not supported")
            new_keys[_CONDITION_KEYS[key.lower()]] = values
        iam_element[operator] = new_keys
    return conditions_of(iam_element, Glob.of)

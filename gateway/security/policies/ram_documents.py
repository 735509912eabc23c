"""Alibaba's RAM policies for Table Store -> policies (model/authorization/grants.py).

`ots:` actions and `acs:ots:REGION:ACCOUNT:instance/I[/table/T]`; Version "1". There are no conditions on rows. Sources:
"Custom RAM policies" and "RAM policy elements" (Alibaba Cloud help, Tablestore and RAM, 2026).

An allowance of a table is none of its indexes, which clients read as tables under their own names and which a pattern
names so; it is one of its streams and tunnels. A refusal of a table is one of all of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tablegate.gateway.model.authorization.conditions import Condition
from tablegate.gateway.model.authorization.globs import EVERY, Glob
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import Channel, GrantAction, Permission
from tablegate.gateway.security.policies.errors import BadPolicy
from tablegate.gateway.security.policies.iam_conditions import conditions_of
from tablegate.gateway.security.policies.iam_documents import read_document

_P = Permission
_MEMBERS = frozenset({"Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"})
_ROW = (Channel.SINGLE, Channel.TRANSACTION)


def _doors(*permissions: Permission, ways: Iterable[Channel] = (Channel.SINGLE,)) -> frozenset[GrantAction]:
    ways = tuple(ways)
    return frozenset((permission, way) for permission in permissions for way in ways)


ACTIONS: Mapping[str, frozenset[GrantAction]] = {
    "GetRow": _doors(_P.READ, ways=_ROW),
    "GetRange": _doors(_P.QUERY, _P.SCAN),
    "PutRow": _doors(_P.PUT, ways=_ROW),
    "UpdateRow": _doors(_P.UPDATE, ways=_ROW),
    "DeleteRow": _doors(_P.DELETE, ways=_ROW),
    "BatchGetRow": _doors(_P.READ, _P.QUERY, ways=[Channel.BATCH]),
    "BatchWriteRow": _doors(_P.PUT, _P.UPDATE, _P.DELETE, ways=[Channel.BATCH]),
    "BulkImport": _doors(_P.PUT, _P.UPDATE, _P.DELETE, ways=[Channel.BATCH]),
    "BulkExport": _doors(_P.QUERY, _P.SCAN, ways=[Channel.BATCH]),
    "ListTable": _doors(_P.LIST),
    "CreateTable": _doors(_P.CREATE),
    "UpdateTable": _doors(_P.ALTER),
    "DescribeTable": _doors(_P.DESCRIBE),
    "DeleteTable": _doors(_P.DROP),
    "ComputeSplitPointsBySize": _doors(_P.SPLIT),
    "AddDefinedColumn": _doors(_P.ADD_COLUMNS),
    "DeleteDefinedColumn": _doors(_P.DROP_COLUMNS),
    "CreateIndex": _doors(_P.CREATE_INDEX),
    "DropIndex": _doors(_P.DROP_INDEX),
    "ListSearchIndex": _doors(_P.LIST_FEATURES),
    "ListTimeseriesTable": _doors(_P.LIST_FEATURES),
    "StartLocalTransaction": _doors(_P.BEGIN),
    "CommitTransaction": _doors(_P.COMMIT),
    "AbortTransaction": _doors(_P.ABORT),
    "ListStream": _doors(_P.LIST_STREAMS),
    "DescribeStream": _doors(_P.DESCRIBE_STREAM),
    "GetShardIterator": _doors(_P.POSITION_STREAM),
    "GetStreamRecord": _doors(_P.READ_STREAM),
}
"""Action -> the doors that it opens."""

_EVERY_DOOR = frozenset((permission, way) for permission in Permission for way in Channel)
_CONDITION_KEYS = {
    "acs:sourceip": "aws:SourceIp",
    "acs:securetransport": "aws:SecureTransport",
    "acs:currenttime": "aws:CurrentTime",
}


def ram_policy(text: str) -> Policy:
    """The policy that a document is. Raises BadPolicy."""
    document = read_document(text)
    if document.keys() - {"Version", "Statement"} or document.get("Version") != "1":
        raise BadPolicy('a RAM policy has a Version, "1", and a Statement')
    given = document.get("Statement")
    listed = [given] if isinstance(given, dict) else given
    if not isinstance(listed, list) or not listed:
        raise BadPolicy("a policy has a Statement")
    return Policy(tuple(_statement(element) for element in listed))


def _statement(element: Any) -> Statement:
    if not isinstance(element, dict) or element.keys() - _MEMBERS:
        raise BadPolicy(f"a statement has the members {', '.join(sorted(_MEMBERS))}")
    effects = {"Allow": Effect.ALLOW, "Deny": Effect.DENY}
    effect = effects.get(str(element.get("Effect")))
    if effect is None:
        raise BadPolicy("Effect is Allow or Deny")
    if ("Action" in element) is ("NotAction" in element):
        raise BadPolicy("a statement has an Action or a NotAction")
    if ("Resource" in element) is ("NotResource" in element):
        raise BadPolicy("a statement has a Resource or a NotResource")
    if "Action" in element:
        doors = _doors_of(_texts(element["Action"]), effect is Effect.DENY)
    else:
        doors = _EVERY_DOOR - _doors_of(_texts(element["NotAction"]), False)
    excludes = "NotResource" in element
    names = _texts(element["NotResource" if excludes else "Resource"])
    is_wide = (effect is Effect.DENY) is not excludes
    resources = tuple(each for name in names for each in _resources(name, is_wide))
    return Statement(effect, doors, resources, tuple(_conditions(element.get("Condition", {}))), excludes)


def _texts(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise BadPolicy("actions and resources are texts")
    return texts


def _doors_of(patterns: list[str], is_refusal: bool) -> frozenset[GrantAction]:
    found: set[GrantAction] = set()
    for pattern in patterns:
        service, _, name = pattern.partition(":") if pattern != "*" else ("ots", ":", "*")
        if not name:
            raise BadPolicy(f"{pattern} is no action")
        if service != "ots":
            continue
        if name == "*":
            found |= _EVERY_DOOR
        actions = Glob.of(name)
        for action, doors in ACTIONS.items():
            if actions.matches(action):
                found |= doors
                if is_refusal and not action.startswith(("Batch", "Bulk")):
                    found |= {(permission, way) for permission, _ in doors for way in Channel}
                if is_refusal and (_P.SCAN, Channel.SINGLE) in doors:
                    found |= _doors(_P.SPLIT)  # split points are keys of rows
    return frozenset(found)


def _resources(name: str, is_wide: bool) -> Iterator[Resources]:
    """The resources that acs:ots:REGION:ACCOUNT:instance/I/table/T names; `is_wide`: with all that belongs to a table.
    An instance is looked at where each has tables of its own."""
    if name == "*":
        yield Resources(EVERY)
        return
    parts = name.split(":", 4)
    if len(parts) != 5 or parts[:1] != ["acs"]:
        raise BadPolicy(f"{name} is no resource")
    if parts[1] != "ots":
        return
    rest = parts[4]
    if rest in ("*", "instance/*", "instance*"):
        yield Resources(EVERY)
        return
    kind, _, path = rest.partition("/")
    instance, _, path = path.partition("/")
    if kind != "instance":
        raise BadPolicy(f"{name} is no resource of Table Store")
    where = Glob.of(instance.lower())
    if path in ("*", "table/*", "table*") or (not path and instance.endswith("*")):
        yield Resources(EVERY, instance=where)
        return
    if not path.startswith("table/"):
        return  # an instance itself, to which nothing that this server does belongs
    table = path.removeprefix("table/")
    yield Resources(Glob.of(table, "/"), instance=where)
    yield Resources(Glob.of(f"{table}/stream/", "/") + EVERY, instance=where)
    yield Resources(Glob.of("*/index/" + table, "/"), instance=where)
    if is_wide:
        yield Resources(Glob.of(f"{table}/index/", "/") + EVERY, instance=where)


def _conditions(element: Any) -> Iterator[Condition]:
    if not isinstance(element, dict):
        raise BadPolicy("Condition is no object")
    translated: dict[str, Any] = {}
    for operator, keys in element.items():
        if not isinstance(keys, dict):
            raise BadPolicy(f"Condition {operator} is no object")
        named = {}
        for key, values in keys.items():
            if key.lower() not in _CONDITION_KEYS:
                raise BadPolicy(f"the condition key {key} is not known here")
            named[_CONDITION_KEYS[key.lower()]] = values
        translated[operator] = named
    return conditions_of(translated, Glob.of)

"""What a request did, for the audit (gateway/observability/audit.py).

That is its operation's kind, who says to have sent it, and the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Which tables and keys a request names is
read in summaries.py: no attributes but keys, and of statements their tables alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from adapters.dynamodb import summaries
from adapters.dynamodb.operation_table import OPERATIONS
from adapters.dynamodb.wire import auth
from adapters.dynamodb.wire.calls import Caller
from adapters.dynamodb.wire.errors import REFUSALS
from gateway.dialect import Gateway
from gateway.http import Reply, Request
from gateway.model.authorization.deeds import Deed, Kind, RefusedParts
from gateway.observability.audit import kind_of, names_among

_WRITES = frozenset({
    "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems",
    "ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction",
})  # fmt: skip
_READING = ("Get", "Describe", "List", "Query", "Scan", "Search", "BatchGet", "TransactGet")


KINDS: Mapping[str, Kind] = {
    name: kind_of(name, _WRITES, _READING) for name in (target.partition(".")[2] for target in OPERATIONS)
}


def kinds() -> Mapping[str, Kind]:
    """Operation -> what it is."""
    return KINDS


_PART_CODE = "AccessDenied"
"""What a member of a BatchExecuteStatement is told (BatchStatementError, API reference)."""
PART_MARKS: Mapping[str, bytes] = {"BatchExecuteStatement": b'"Code":"%s"' % _PART_CODE.encode()}
"""In an item such a text could only stand with its quotation marks escaped, or with an object behind the name."""


def part_marks() -> Mapping[str, bytes]:
    """Operations whose parts may be refused alone, and what such an answer has in it."""
    return PART_MARKS


def deed_of(request: Request, reply: Reply, operation: str, gateway: Gateway) -> Deed:
    """What a request did."""
    code = _code(reply)
    kind = KINDS.get(operation, Kind.READ)
    claimed = auth.claimed(request, gateway.credentials)
    who = "" if claimed is None else claimed.access_id
    if code in REFUSALS and code != "AccessDeniedException":
        return Deed(kind, who, code=code, is_refusal=True)
    body = summaries.document(request)
    statements = list(summaries.statements(body))
    if statements and all(text.lstrip()[:6].upper() == "SELECT" for text in statements):
        kind = Kind.READ
    found = summaries.summary(body, operation, gateway, claimed)
    parts = _refused_parts(body, reply, operation, gateway, claimed)
    keys = [key for _, key in found.keys]
    return Deed(kind, who, names_among(found.tables), keys, code, code in REFUSALS, parts)


def _refused_parts(
    body: dict[str, Any], reply: Reply, operation: str, gateway: Gateway, claimed: Caller | None
) -> RefusedParts | None:
    mark = PART_MARKS.get(operation)
    if mark is None or reply.status != 200 or mark not in reply.body:
        return None
    answers = orjson.loads(reply.body)["Responses"]
    refused = [
        member
        for member, answer in zip(body["Statements"], answers, strict=True)
        if answer.get("Error", {}).get("Code") == _PART_CODE
    ]
    found = summaries.summary({"Statements": refused}, operation, gateway, claimed)
    return RefusedParts(names_among(found.tables), _PART_CODE)


def _code(reply: Reply) -> str:
    if reply.status < 400 or not reply.body.startswith(b"{"):
        return ""
    return str(orjson.loads(reply.body).get("__type", "")).rpartition("#")[2]

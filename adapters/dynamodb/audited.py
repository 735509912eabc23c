"""What a request did, for the audit (gateway/audit.py): its operation's kind, who says to have sent it, the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Which tables and keys a request names is
read in summaries.py: no attributes but keys, and of statements their tables alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from adapters.dynamodb import summaries
from adapters.dynamodb.operation_table import OPERATIONS
from adapters.dynamodb.wire import auth
from adapters.dynamodb.wire.errors import REFUSALS
from gateway.audit import Deed, Kind, kind_of, names_among
from gateway.dialect import Gateway
from gateway.http import Reply, Request

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
    return Deed(kind, who, names_among(found.tables), [key for _, key in found.keys], code, code in REFUSALS)


def _code(reply: Reply) -> str:
    if reply.status < 400 or not reply.body.startswith(b"{"):
        return ""
    return str(orjson.loads(reply.body).get("__type", "")).rpartition("#")[2]

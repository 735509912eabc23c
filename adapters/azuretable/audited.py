"""What a request did, for the audit (gateway/observability/audit.py).

That is its operation's kind, the account, and the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Which tables and keys a request names is
read in summaries.py: no property but the two keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters.azuretable import summaries
from adapters.azuretable.summaries import Asked
from adapters.azuretable.wire import addresses
from adapters.azuretable.wire.addresses import Batch
from adapters.azuretable.wire.errors import REFUSALS
from gateway.http import Reply, Request
from gateway.model.authorization.deeds import Deed, Kind, RefusedParts
from gateway.observability.audit import names_among

KINDS: Mapping[str, Kind] = {
    "POST TableSet": Kind.DEFINITION,
    "DELETE TableEntry": Kind.DEFINITION,
    "PUT EntitySet": Kind.DEFINITION,  # its access policies
    "PUT Service": Kind.DEFINITION,
    "POST EntitySet": Kind.WRITE,
    "POST Batch": Kind.WRITE,
    **{f"{verb} Entity": Kind.WRITE for verb in ("PUT", "MERGE", "PATCH", "DELETE", "POST")},
}
_INNER_CODE = re.compile(rb'"code":"(\w+)"')
_INNER_FAILURE = re.compile(rb"^HTTP/1\.1 ([45]\d\d)\b", re.MULTILINE)


def kinds() -> Mapping[str, Kind]:
    """Operation -> what it is."""
    return KINDS


_OF_PROVEN_CALLERS = frozenset({"AuthorizationPermissionMismatch"})
"""Refusals of callers whose signature or token is right."""
PART_MARKS: Mapping[str, bytes] = {"POST Batch": b"\r\nHTTP/1.1 403 "}
"""No value of JSON has a line break."""


def part_marks() -> Mapping[str, bytes]:
    """Operations whose parts may be refused alone, and what such an answer has in it."""
    return PART_MARKS


def deed_of(request: Request, reply: Reply, operation: str, host: str) -> Deed:
    """What a request to a host ("": it names no account) did. If its sender is not proven, nothing is read but its address."""
    address = addresses.parse(request.path, host)
    code = next((value for name, value in reply.headers if name.lower() == "x-ms-error-code"), "")
    kind = KINDS.get(operation, Kind.READ)
    is_refusal = code in REFUSALS
    if is_refusal and code not in _OF_PROVEN_CALLERS:
        tables = summaries.summary(operation, address.account, [Asked(address.resource)]).tables
        return Deed(kind, address.account, names_among(tables), (), code, True)
    asked = summaries.asked(request, address, host)
    if isinstance(address.resource, Batch):
        if asked and all(each.method == "GET" for each in asked):
            kind = Kind.READ
        failure = _INNER_FAILURE.search(reply.body)
        code = code or (failure[1].decode() if failure else "")
    found = summaries.summary(operation, address.account, asked)
    tables = names_among(found.tables)
    parts = _refused_parts(reply, operation, tables)
    return Deed(kind, address.account, tables, [key for _, key in found.keys], code, is_refusal, parts)


def _refused_parts(reply: Reply, operation: str, tables: list[str]) -> RefusedParts | None:
    """A batch is a query or changes of one table, and of those one at most is told to be refused."""
    mark = PART_MARKS.get(operation)
    if mark is None or mark not in reply.body:
        return None
    told = _INNER_CODE.search(reply.body, reply.body.index(mark))
    code = told[1].decode() if told else ""
    return RefusedParts(tables, code) if code in REFUSALS else None

"""What a request did, for the audit (gateway/observability/audit.py).

That is its operation's kind, who says to have sent it, and the code of its error.

Looks at requests that have been answered, once more and apart from their handling. Which tables and keys a request names is
read in summaries.py: no column but those of primary keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.tablestore import summaries
from adapters.tablestore.operation_table import OPERATIONS
from adapters.tablestore.wire.auth import SIGNATURES
from adapters.tablestore.wire.errors import REFUSALS
from adapters.tablestore.wire.protocol import table_store_pb2 as messages
from gateway.http import Reply, Request
from gateway.model.authorization.deeds import Deed, Kind
from gateway.observability.audit import kind_of, names_among

_WRITES = frozenset({
    "PutRow", "UpdateRow", "DeleteRow", "BatchWriteRow", "BulkImport",
    "StartLocalTransaction", "CommitTransaction", "AbortTransaction",
})  # fmt: skip
_READING = ("Get", "Describe", "List", "BatchGet", "BulkExport", "Compute", "Search", "SQLQuery")


KINDS: Mapping[str, Kind] = {name: kind_of(name, _WRITES, _READING) for name in OPERATIONS}


def kinds() -> Mapping[str, Kind]:
    """Operation -> what it is."""
    return KINDS


def deed_of(request: Request, reply: Reply, operation: str) -> Deed:
    """What a request did. One without key or signature is a refusal, too, though its code is OTSParameterInvalid."""
    who = request.header("x-ots-accesskeyid")
    kind = KINDS.get(operation, Kind.READ)
    code = messages.Error.FromString(reply.body).code if reply.status >= 400 else ""
    row = OPERATIONS.get(operation)
    is_unsigned = not who or not any(map(request.header, SIGNATURES))
    is_refusal = is_unsigned or code in REFUSALS
    if row is None or (is_refusal and code != "OTSNoPermissionAccess"):
        return Deed(kind, who, code=code, is_refusal=is_refusal)
    found = summaries.summary(request, operation, row.request, who)
    return Deed(kind, who, names_among(found.tables), [key for _, key in found.keys], code, code in REFUSALS)

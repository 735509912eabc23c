"""The record of an operation, and the table of all operations.

Modules of operations are imported at the first request for one of them. Any other operation is answered with
OTSParameterInvalid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore.call import Handler
from tablegate.gateway.dialects.adapter import OperationTable
from tablegate.gateway.model.authorization.permissions import Purpose


class Operation(NamedTuple):
    """An operation of the API. The handler returns the message of the reply.

    - `purpose`: the needed permissions.
    - `may_block`: it may take long, so the server runs it on a thread.
    - `tables_of`: returns the tables that a message names in a text, for the audit. None if its members name them.
    """

    request: type[Message]
    handler: Handler
    purpose: Purpose
    may_block: bool = False
    tables_of: Callable[[Any], list[str]] | None = None


_GROUPS: Mapping[str, tuple[str, ...]] = {
    "rows.operations": (
        "StartLocalTransaction", "CommitTransaction", "AbortTransaction", "GetRow", "PutRow", "UpdateRow", "DeleteRow",
        "BatchGetRow", "BatchWriteRow", "GetRange", "BulkImport", "BulkExport",
    ),
    "tables": (
        "CreateTable", "ListTable", "DescribeTable", "UpdateTable", "DeleteTable", "AddDefinedColumn",
        "DeleteDefinedColumn", "ComputeSplitPointsBySize", "CreateIndex", "DropIndex", "ListTimeseriesTable",
    ),
    "features.search.operations": (
        "CreateSearchIndex", "UpdateSearchIndex", "DescribeSearchIndex", "ListSearchIndex", "DeleteSearchIndex",
        "Search", "ComputeSplits", "ParallelScan",
    ),
    "features.sql.operations": ("SQLQuery",),
    "features.streams.operations": ("ListStream", "DescribeStream", "GetShardIterator", "GetStreamRecord",),
    "features.tunnels.operations": (
        "tunnel/create", "tunnel/delete", "tunnel/list", "tunnel/describe", "tunnel/getrpo", "tunnel/connect",
        "tunnel/heartbeat", "tunnel/shutdown", "tunnel/getcheckpoint", "tunnel/checkpoint", "tunnel/readrecords",
    ),
}  # fmt: skip
"""Module -> the names of its operations."""

_EXTENSIONS: Mapping[str, str] = {
    "features.search.sql.indexes": "features.sql.operations",
    "features.search.table_options": "tables",
}
"""Module of a capability -> the module of operations that it extends."""

_PACKAGE = "tablegate.adapters.tablestore."
OPERATIONS = OperationTable[Operation](
    {},
    {_PACKAGE + module: names for module, names in _GROUPS.items()},
    {_PACKAGE + module: _PACKAGE + extended for module, extended in _EXTENSIONS.items()},
)


@lru_cache(maxsize=256)
def operation_name(path: str) -> str:
    """Return the last part of the path, or the last two for the tunnel service."""
    parts = path.strip("/").split("/")
    return "/".join(parts[-2:]) if parts[-2:-1] == ["tunnel"] else parts[-1]

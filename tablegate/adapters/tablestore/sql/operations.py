"""The operation on SQL statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.sql import parsing, statements
from tablegate.adapters.tablestore.wire.protocol import sql_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose

_P = Permission


def _tables_of(message: Any) -> list[str]:
    return parsing.tables_of(message.query)


OPERATIONS: Mapping[str, Operation] = {
    "SQLQuery": Operation(
        messages.SQLQueryRequest, statements.sql_query, Purpose((_P.SCAN, _P.QUERY, _P.ALTER), Channel.STATEMENT),
        may_block=True, tables_of=_tables_of,
    ),
}  # fmt: skip

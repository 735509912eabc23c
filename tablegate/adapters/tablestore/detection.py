"""Detection of requests of Table Store: they have an x-ots- header."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.views import index_view
from tablegate.gateway.dialects.dialect import Detection
from tablegate.gateway.http.messages import Request

if TYPE_CHECKING:
    from tablegate.gateway.model.commands.row_search import Endpoint
    from tablegate.gateway.model.tables.tables import Table

_HEADER_PREFIX = "x-ots-"
_HINT = 'OTSClient("{url}", "tablegate", "tablegate", "instance")'
# "Endpoints" (Tablestore developer guide).
_SERVICE_HOSTS = re.compile(
    r"[a-z0-9-]+\.[a-z0-9-]+\.(?:ots|ots-internal|vpc\.tablestore|tablestore)\.aliyuncs\.com"
)


def client_code(table: Table, endpoint: Endpoint) -> str:
    """Return the expression that makes a client of the SDK for the instance of a table."""
    _, _, instance = table.namespace.partition("/")
    keys = ("tablegate", "tablegate") if endpoint.accepts_all else ("your key id", "your secret")
    given = [endpoint.url, *keys, instance or "instance"]
    return f"tablestore.OTSClient({', '.join(map(repr, given))})"


class TableStoreDetection(Detection):
    """The part of Table Store that a server needs before its first request."""

    name = DIALECT
    hint = _HINT
    service_hosts = _SERVICE_HOSTS
    index_view = staticmethod(index_view)

    @staticmethod
    def matches(request: Request) -> bool:
        """Return True if the request has an x-ots- header. No other dialect has them."""
        return f"\n{_HEADER_PREFIX}" in "\n" + "\n".join(request.header_map)  # names have no line breaks


DETECTION = TableStoreDetection

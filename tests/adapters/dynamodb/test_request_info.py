"""Descriptions of requests that no handler has checked."""

from __future__ import annotations

from unittest.mock import Mock

import orjson
import pytest

from tablegate.adapters.dynamodb import request_info
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestInfo, RequestKind


@pytest.mark.parametrize(("beyond", "tables"), [(0, ["orders"]), (1, [])])
def test_the_table_of_a_statement_is_looked_for_within_its_greatest_length(
    beyond: int, tables: list[str]
) -> None:
    begin, end = "SELECT ", "FROM orders"
    blanks = " " * (limits.STATEMENT_CHARACTERS - len(begin + end) + 6 * beyond)
    body = orjson.dumps({"Statement": f"{begin}{blanks}{end}"})
    head = RequestInfo("ExecuteStatement", RequestKind.WRITE)
    found = request_info.read(head, Request("POST", "/", (), body), Reply(400, ()), None, Mock())
    assert (found.kind, found.tables) == (RequestKind.READ, tables)

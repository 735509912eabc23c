"""Descriptions of requests that no handler has checked. Their audit: tests/gateway/observability/test_audit.py."""

from __future__ import annotations

import pytest

from tablegate.adapters.azuretable import request_info
from tablegate.adapters.azuretable.wire import limits
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestInfo, RequestKind

KEY = {"PartitionKey": "p", "RowKey": "r"}


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        (b'{"PartitionKey":"p","RowKey":"r"}', [("people", KEY)]),
        (b'\xef\xbb\xbf{"PartitionKey":"p","RowKey":"r"}', [("people", KEY)]),
        (b'{"PartitionKey":"p","RowKey":"r","a":[%s1]}' % (b"1," * limits.JSON_NODES_MAX), []),
        (b'{"PartitionKey":"p"', []),
        (b"[]", []),
    ],
)
def test_bodies_are_read_within_the_bounds_of_the_service(body: bytes, keys: list[object]) -> None:
    head = RequestInfo("POST EntitySet", RequestKind.WRITE)
    found = request_info.read(head, Request("POST", "/account/people", (), body), Reply(400, ()), "")
    assert (found.tables, found.keys) == (["people"], keys)

"""Requests that surely have too much are refused without their JSON being built, and legal ones are not among them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.values.values import item_of
from tablegate.adapters.dynamodb.wire import limits
from tests.adapters.dynamodb import wasteful_requests
from tests.adapters.dynamodb.client import DynamoDBService

DENSE = {
    "PutItem: item with list of numbers",
    "PutItem: item with list of texts",
    "PutItem: item with list of lists",
    "PutItem: item with list of nothing",
    "PutItem: item with map",
    "PutItem: item of many attributes",
    "GetItem: key of many attributes",
    "GetItem: many members",
    "UpdateItem: key of many attributes",
    "BatchGetItem: many keys",
    "BatchGetItem: tables without keys",
    "TransactGetItems: transaction of nothing",
    "CreateTable: many GlobalSecondaryIndexes",
}


@pytest.mark.extended
def test_dense_requests_are_not_parsed(service: DynamoDBService, parsed: list[int]) -> None:
    service.table()
    seen = set()
    for name, operation, body in wasteful_requests.dynamodb(10_000_000, DENSE):
        seen.add(f"{operation}: {name}")
        parsed.clear()
        assert (service.post(operation, body).status, parsed) == (400, []), (operation, name)
    assert seen == DENSE


LEGAL: dict[str, list[Any]] = {
    "empty texts": [{"S": ""}],
    "numbers": [{"N": "1"}],
    "empty lists": [{"L": []}],
    "empty maps": [{"M": {}}],
    "maps with an attribute N": [{"M": {"N": {"N": "1"}}}],
    "sets": [{"NS": ["1", "2"]}],
    "nulls": [{"NULL": True}],
    "braces and commas in texts": [{"S": "{,{,{,"}],
    "quotation marks in texts": [{"S": '"N":"N":'}],
}


@pytest.mark.parametrize("name", LEGAL)
def test_the_largest_item_is_not_dense(name: str) -> None:
    [part] = LEGAL[name]
    one = item_of({"v": {"L": [orjson.loads(orjson.dumps(part))] * 2}}).size_bytes
    each = one - item_of({"v": {"L": [orjson.loads(orjson.dumps(part))]}}).size_bytes
    item = {"v": {"L": [part] * ((limits.ITEM_BYTES - 10) // each)}}
    text = orjson.dumps({"TableName": "orders", "Item": item})
    assert limits.ITEM_BYTES - 20 < item_of(item).size_bytes <= limits.ITEM_BYTES
    assert OPERATIONS["PutItem"].refusal_of_dense(text) is None
    assert OPERATIONS["PutItem"].refusal_of_dense(text.replace(b",", b", ")) is None
    for count in (1, 2):
        text = orjson.dumps({"RequestItems": {"orders": [{"PutRequest": {"Item": item}}] * count}})
        assert OPERATIONS["BatchWriteItem"].refusal_of_dense(text) is None


def test_a_batch_with_a_too_large_item_is_dense(service: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    service.table()
    item = {"pk": {"S": "1"}, "v": {"L": [{"S": ""}] * 600_000}}
    for text in (
        orjson.dumps({"RequestItems": {"orders": [{"PutRequest": {"Item": item}}]}}),
        orjson.dumps({"TableName": "orders", "Item": item}),
    ):
        operation = "PutItem" if b"TableName" in text else "BatchWriteItem"
        with monkeypatch.context() as patched:
            patched.setattr(orjson, "loads", lambda text: pytest.fail(f"parsed {len(text)} bytes"))
            reply = service.post(operation, text)
        assert b"Item size has exceeded the maximum allowed size" in reply.body

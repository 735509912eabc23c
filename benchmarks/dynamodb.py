"""Workloads of DynamoDB, with items of 925 billed bytes and attributes of several types.

Each workload has its own tables, so that workloads do not depend on each other.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.signing import Client, dynamodb
from benchmarks.workloads import Unsupported, Workload, expect

ITEM_BYTES = 925
ITEMS_PER_PARTITION = 60
_READ_PARTITIONS = 20
_SCANNED_ITEMS = 1000
_COUNTERS = 64
_FILLER = "x" * 815  # with the attributes below: ITEM_BYTES

Item = dict[str, dict[str, Any]]


def item(partition: str, number: int) -> Item:
    """Return an item of ITEM_BYTES bytes. The partition key must have 8 characters."""
    return {
        "pk": {"S": partition},
        "sk": {"S": f"{number:010d}"},
        "name": {"S": f"customer {number % 1000:03d}"},
        "visits": {"N": str(number % 1000)},
        "active": {"BOOL": number % 2 == 0},
        "tags": {"L": [{"S": "red"}, {"S": "large"}]},
        "address": {"M": {"city": {"S": "Zurich"}, "zip": {"N": "8004"}}},
        "text": {"S": _FILLER},
    }


def key(partition: str, number: int) -> Item:
    """Return the key of `item`."""
    return {"pk": {"S": partition}, "sk": {"S": f"{number:010d}"}}


def partition_of(number: int) -> str:
    """Return one of 997 partitions for a number."""
    return f"part{number * 7919 % 997:04d}"


def one_partition(number: int) -> str:
    return "part0000"


# Tables


def call(client: Client, operation: str, body: dict[str, Any]) -> dict[str, Any]:
    """Call one operation. Raises Unsupported."""
    answer: dict[str, Any] = json.loads(
        expect(client, dynamodb(client.port, operation, json.dumps(body).encode()))
    )
    return answer


def make_table(client: Client, name: str, sort_type: str = "S", extra: str = "") -> None:
    """Create a table with a partition and a sort key and wait until it is active.

    `extra` is "stream" or "index" to add one.
    """
    request: dict[str, Any] = {
        "TableName": name,
        "KeySchema": [_keyed("pk", "HASH"), _keyed("sk", "RANGE")],
        "AttributeDefinitions": [_typed("pk", "S"), _typed("sk", sort_type)],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if extra == "stream":
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    elif extra == "index":
        request["AttributeDefinitions"].append(_typed("name", "S"))
        index = {"IndexName": "by-name", "KeySchema": [_keyed("name", "HASH"), _keyed("sk", "RANGE")]}
        request["GlobalSecondaryIndexes"] = [{**index, "Projection": {"ProjectionType": "ALL"}}]
    call(client, "CreateTable", request)
    for _ in range(600):
        if call(client, "DescribeTable", {"TableName": name})["Table"]["TableStatus"] == "ACTIVE":
            return
        time.sleep(0.05)
    raise Unsupported(f"{name} is never active")


def _keyed(column: str, kind: str) -> dict[str, str]:
    return {"AttributeName": column, "KeyType": kind}


def _typed(column: str, kind: str) -> dict[str, str]:
    return {"AttributeName": column, "AttributeType": kind}


def load(client: Client, name: str, items: Iterable[Item]) -> None:
    requests = [{"PutRequest": {"Item": one}} for one in items]
    for at in range(0, len(requests), 25):
        call(client, "BatchWriteItem", {"RequestItems": {name: requests[at : at + 25]}})


def _empty(name: str) -> Callable[[Client], None]:
    return lambda client: make_table(client, name)


def _prepare_read(client: Client) -> None:
    make_table(client, "Read")
    for partition in range(_READ_PARTITIONS):
        load(client, "Read", (item(f"part{partition:04d}", number) for number in range(ITEMS_PER_PARTITION)))


def _prepare_counters(client: Client) -> None:
    make_table(client, "Counters")
    load(client, "Counters", (item("counters", number) for number in range(_COUNTERS)))


def _prepare_transactions(client: Client) -> None:
    make_table(client, "Transact")
    load(client, "Transact", (item("counters", number) for number in range(_COUNTERS)))
    status, answer = client.send(_transact(client.port, 1 << 40))
    if status != 200:
        raise Unsupported(f"{status} {answer[:200].decode(errors='replace')}")


def prepare_scan(client: Client) -> None:
    """Create a table of a thousand items in fifty partitions."""
    make_table(client, "Scanned")
    load(client, "Scanned", (item(f"part{number % 50:04d}", number) for number in range(_SCANNED_ITEMS)))


# Requests


def _body(operation: str, make: Callable[[int], dict[str, Any]]) -> Callable[[int, int], bytes]:
    return lambda port, number: dynamodb(
        port, operation, json.dumps(make(number), separators=(",", ":")).encode()
    )


def put(table: str, partition: Callable[[int], str]) -> Callable[[int, int], bytes]:
    return _body("PutItem", lambda number: {"TableName": table, "Item": item(partition(number), number)})


def read_key(number: int) -> Item:
    """Return a key of the table Read, in an order without pattern."""
    at = number * 7919 % (_READ_PARTITIONS * ITEMS_PER_PARTITION)
    return key(f"part{at // ITEMS_PER_PARTITION:04d}", at % ITEMS_PER_PARTITION)


def _query(number: int) -> dict[str, Any]:
    return {
        "TableName": "Read",
        "Limit": 50,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": f"part{number % _READ_PARTITIONS:04d}"}},
    }


def _conditional_put(number: int) -> dict[str, Any]:
    new_item = item(partition_of(number), number)
    return {"TableName": "Conditional", "Item": new_item, "ConditionExpression": "attribute_not_exists(pk)"}


def _update(number: int) -> dict[str, Any]:
    return {
        "TableName": "Counters",
        "Key": key("counters", number % _COUNTERS),
        "UpdateExpression": "ADD visits :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }


def _batch(number: int) -> dict[str, Any]:
    first = number * 25
    return {
        "RequestItems": {
            "Batch": [
                {"PutRequest": {"Item": item(partition_of(item_number), item_number)}}
                for item_number in range(first, first + 25)
            ]
        }
    }


def _transact(port: int, number: int) -> bytes:
    """Return a transaction of two puts (one conditional), a counter and a check, with a token as in the SDKs."""
    table = "Transact"
    fresh, other = item(partition_of(number), 2 * number), item(partition_of(number), 2 * number + 1)
    values = {":one": {"N": "1"}}
    writes = [
        {"Put": {"TableName": table, "Item": fresh, "ConditionExpression": "attribute_not_exists(pk)"}},
        {"Put": {"TableName": table, "Item": other}},
        {
            "Update": {
                "TableName": table,
                "Key": key("counters", number % (_COUNTERS // 2)),
                "UpdateExpression": "ADD visits :one",
                "ExpressionAttributeValues": values,
            }
        },
        {
            "ConditionCheck": {
                "TableName": table,
                "Key": key("counters", _COUNTERS // 2 + number % (_COUNTERS // 2)),
                "ConditionExpression": "attribute_exists(pk)",
            }
        },
    ]
    body = {"TransactItems": writes, "ClientRequestToken": f"bench-{number:030d}"}
    return dynamodb(port, "TransactWriteItems", json.dumps(body, separators=(",", ":")).encode())


def _scan(number: int, expression: str = "visits = :v") -> dict[str, Any]:
    """Return a Scan of a page of a thousand items with one match."""
    values = {":v": {"N": str(number % _SCANNED_ITEMS)}}
    return {"TableName": "Scanned", "FilterExpression": expression, "ExpressionAttributeValues": values}


def scan_request(port: int, number: int, expression: str) -> bytes:
    """Return that Scan with another filter expression."""
    return dynamodb(port, "Scan", json.dumps(_scan(number, expression), separators=(",", ":")).encode())


# Checks of replies


def _is_empty(body: bytes) -> bool:
    # moto reports the capacity of an update without a request for it.
    return set(json.loads(body)) <= {"ConsumedCapacity"}


def _has_item(body: bytes) -> bool:
    return bool(json.loads(body)["Item"]["text"]["S"] == _FILLER)


def _counts(number: int) -> Callable[[bytes], bool]:
    def holds(body: bytes) -> bool:
        answer = json.loads(body)
        return answer["Count"] == number == len(answer["Items"])

    return holds


def _wrote_all(body: bytes) -> bool:
    return not json.loads(body).get("UnprocessedItems")


WORKLOADS = (
    Workload("put", "PutItem", put("Put", partition_of), _empty("Put"), _is_empty),
    Workload(
        "get",
        "GetItem",
        _body("GetItem", lambda number: {"TableName": "Read", "Key": read_key(number)}),
        _prepare_read,
        _has_item,
        pool=1200,
    ),
    Workload("query", "Query of 50", _body("Query", _query), _prepare_read, _counts(50), pool=20, rows=50),
    Workload(
        "conditional",
        "conditional PutItem",
        _body("PutItem", _conditional_put),
        _empty("Conditional"),
        _is_empty,
    ),
    Workload("update", "UpdateItem counter", _body("UpdateItem", _update), _prepare_counters, _is_empty),
    Workload(
        "batch", "BatchWriteItem of 25", _body("BatchWriteItem", _batch), _empty("Batch"), _wrote_all, rows=25
    ),
    Workload("transact", "TransactWriteItems of 4", _transact, _prepare_transactions, _is_empty, rows=4),
    Workload(
        "scan",
        "filtered Scan, 0.1 % of 1,000",
        _body("Scan", _scan),
        prepare_scan,
        _counts(1),
        pool=100,
        rows=1000,
    ),
)

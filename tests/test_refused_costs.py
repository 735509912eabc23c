"""What is refused costs little: bodies of very many small things, of each dialect, and a neighbour meanwhile.

CPU time is measured, and against what the JSON parser takes for the same body in the same moment, so that a slow or busy
machine fails nothing. Lengths and echoes are checked before anything is built; before, a BatchWriteItem of 200,000 puts took
6.9 s and answered 33.9 MB, and one of many tables without a request took minutes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import orjson
import pytest

from adapters.dynamodb.wire import limits
from gateway.http import Reply
from gateway.settings import Settings
from tests import wasteful_requests
from tests.adapters.dynamodb.conftest import JSON_1_0, Clock, serving, signed
from tests.adapters.dynamodb.conftest import Service as DynamoDB
from tests.adapters.tablestore.client import Clock as TableStoreClock
from tests.adapters.tablestore.client import Service as TableStore
from tests.adapters.tablestore.client import opened
from tests.support.raw_client import RawClient
from tests.support.running import Process

SIZE_BYTES = 400_000
MOST_ECHOED = 100_000

DYNAMODB = {
    "BatchWriteItem: many puts",
    "BatchWriteItem: many empty writes",
    "BatchWriteItem: many nulls",
    "BatchWriteItem: many puts of nothing",
    "BatchWriteItem: many wrong puts",
    "BatchWriteItem: tables with a put",
    "BatchWriteItem: tables with nothing",
    "BatchWriteItem: tables with a bad name",
    "BatchGetItem: many keys",
    "BatchGetItem: many nulls",
    "BatchGetItem: tables with a key",
    "BatchGetItem: tables without keys",
    "TransactWriteItems: transaction of puts",
    "TransactWriteItems: transaction of deletes",
    "TransactWriteItems: transaction of wrong puts",
    "TransactWriteItems: transaction of updates without members",
    "TransactWriteItems: transaction of nothing",
    "TransactGetItems: transaction of gets",
    "TransactGetItems: transaction of nothing",
    "PutItem: item with a long wrong number",
    "GetItem: AttributesToGet of strings",
    "GetItem: long table name",
    "GetItem: a long placeholder",
    "GetItem: many names without an expression",
    "DeleteItem: ConditionExpression of many values",
    "ExecuteTransaction: many statements",
    "BatchExecuteStatement: many nothing",
    "CreateTable: many definitions",
    "CreateTable: many GlobalSecondaryIndexes",
}

TABLE_STORE = {
    "BatchWriteRow: many rows",
    "BatchWriteRow: many broken rows",
    "BatchWriteRow: many tables",
    "BatchWriteRow: many tables without rows",
    "BulkImport: many rows",
    "BatchGetRow: many keys",
}


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[DynamoDB]:
    settings = Settings(database="sqlite://", memory=True)
    for service in serving(settings, Clock()):
        service.table()
        yield service


@pytest.fixture(scope="module")
def tablestore() -> Iterator[TableStore]:
    with opened(TableStoreClock()) as service:
        service.create()
        yield service


def cpu_seconds(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def judged(body: bytes, send: Callable[[], Reply], yardstick: bytes) -> str | None:
    """What is wrong with a refusal's cost, if anything. It may take so many times what reading JSON takes."""
    replies: list[Reply] = []
    parsing = cpu_seconds(lambda: orjson.loads(yardstick))
    spent = cpu_seconds(lambda: replies.append(send()))
    [reply] = replies
    if reply.status < 400:
        return f"was not refused: {reply.status}"
    if len(reply.body) > MOST_ECHOED:
        return f"answered {len(reply.body)} bytes"
    allowed = 0.05 + 6 * parsing
    return f"took {spent:.3f} s, not {allowed:.3f}" if spent > allowed else None


def test_dynamodb_refuses_at_little_cost(dynamodb: DynamoDB) -> None:
    wrong: dict[str, str] = {}
    seen = set()
    for name, operation, body in wasteful_requests.dynamodb(SIZE_BYTES):
        label = f"{operation}: {name}"
        if label not in DYNAMODB:
            continue
        seen.add(label)
        headers = {"content_type": JSON_1_0, "x_amz_target": f"DynamoDB_20120810.{operation}", **signed()}
        problem = judged(body, lambda body=body, headers=headers: dynamodb.send(body=body, **headers), body)  # type: ignore[misc]
        if problem is not None:
            wrong[label] = problem
    assert wrong == {}
    assert seen == DYNAMODB


def test_items_are_measured_no_further_than_they_may_weigh(dynamodb: DynamoDB) -> None:
    """A list of a million numbers; one of 409,600 bytes less name, key and list passes, and one byte more does not."""

    def put(count: int, spare: int) -> bytes:
        item = {"pk": {"S": "1"}, "v": {"L": [{"N": "1"}] * count}, "s": {"S": "x" * spare}}
        return orjson.dumps({"TableName": "orders", "Item": item})

    headers = {"content_type": JSON_1_0, "x_amz_target": "DynamoDB_20120810.PutItem", **signed()}
    body = put(1_000_000, 0)
    assert judged(body, lambda: dynamodb.send(body=body, **headers), body) is None
    assert b"Item size has exceeded the maximum allowed size" in dynamodb.last.body
    weight = len("pk") + 1 + len("v") + 3 + 3 * 100_000 + len("s")
    for spare, status in ((limits.ITEM_BYTES - weight, 200), (limits.ITEM_BYTES - weight + 1, 400)):
        assert dynamodb.send(body=put(100_000, spare), **headers).status == status


def test_table_store_refuses_at_little_cost(tablestore: TableStore) -> None:
    yardstick = b"[" + b",".join([b'{"a":{"b":1}}'] * (SIZE_BYTES // 14)) + b"]"
    wrong: dict[str, str] = {}
    seen = set()
    for name, operation, body in wasteful_requests.tablestore_batches(SIZE_BYTES):
        label = f"{operation}: {name}"
        if label not in TABLE_STORE:
            continue
        seen.add(label)
        problem = judged(
            body,
            lambda body=body, operation=operation: tablestore.post(operation, body),  # type: ignore[misc]
            yardstick,
        )
        if problem is not None:
            wrong[label] = problem
    assert wrong == {}
    assert seen == TABLE_STORE


def test_statements_of_too_many_operators_cost_little(dynamodb: DynamoDB) -> None:
    """Operators are counted before a tree is built of them: 25 such statements took a second."""
    statement = "SELECT * FROM orders WHERE " + " AND ".join(["a=1"] * 580)
    given = {"Statements": [{"Statement": statement}] * 25}
    assert cpu_seconds(lambda: dynamodb.call("BatchExecuteStatement", given)) < 0.25
    errors = [each["Error"]["Message"] for each in orjson.loads(dynamodb.last.body)["Responses"]]
    assert errors == ["The expression contains too many operators; operator count: 1159"] * 25


def test_a_neighbour_is_served_meanwhile(tmp_path: object) -> None:
    process = Process(tmp_path, "--dialects", "dynamodb")  # type: ignore[arg-type]
    process.wait_until_ready()
    put = {"PutRequest": {"Item": {"p": {"S": "1"}}}}
    with RawClient(process.url) as client, RawClient(process.url) as wasteful:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": {"S": "1"}})
        wasteful.start("BatchWriteItem", RequestItems={"things": [put] * 200_000})
        began = time.monotonic()
        for _ in range(20):
            assert "Item" in client.call("GetItem", TableName="things", Key={"p": {"S": "1"}})
        assert time.monotonic() - began < 5  # it was more than 7 s on a machine with nothing else to do
        answer = wasteful.connection.getresponse()
        assert answer.status == 400
        assert len(answer.read()) < 10_000
    code, errors = process.terminate()
    assert (code, "Traceback" in errors) == (0, False), errors

"""Refusals are cheap: bodies with very many small parts.

The test measures CPU time and compares it with the JSON parser's time for the same body at the same moment. A slow or
busy machine therefore fails nothing.

Lengths and echoes are checked before anything is built. Earlier, a BatchWriteItem of 200,000 puts took 6.9 s and
answered 33.9 MB, and one of many tables without a request took minutes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import partial

import orjson
import pytest

from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.http.messages import Reply
from tests.adapters.dynamodb import wasteful_requests
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock
from tests.support.refusal_costs import NOT_REFUSED, Bounds, cpu_seconds, problem

pytestmark = pytest.mark.extended

SIZE_BYTES = 10_000_000
# The bound of issue 11 for 10 MB: 100 ms, plus the time that orjson takes to read and free the same body (20 to 300
# ms). A body must be read before its error is known.
BOUNDS = Bounds(any_request_s=0, readings=1, echoed_bytes=200_000)

WORST = {
    "BatchWriteItem: many puts",
    "PutItem: item with list of nothing",
    "PutItem: item with set of equal numbers",
    "PutItem: item with a long fraction",
    "PutItem: item of many wrong attributes",
    "UpdateItem: many wrong AttributeUpdates",
    "DeleteItem: many Expected",
    "Query: many wrong QueryFilter",
    "Scan: many ScanFilter",
    "Scan: a long list of IN",
    "Scan: a long start key",
}


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[DynamoDBService]:
    with DynamoDBService.opened(Clock()) as service:
        service.table()
        yield service


def read(body: bytes) -> None:
    """Read JSON, which has no circles."""
    gc.disable()
    orjson.loads(body)
    gc.enable()


def cost_problem(body: bytes, send: Callable[[], Reply]) -> str | None:
    return problem(len(body), lambda: read(body), send, BOUNDS)


def refused_at_little_cost(wanted: set[str] | None) -> set[str]:
    """Feed the bodies, or all if None, and return the labels of those that were not refused."""
    wrong: dict[str, str] = {}
    not_refused, seen = set(), set()
    with DynamoDBService.opened(Clock()) as service:
        service.table()
        for name, operation, body in wasteful_requests.dynamodb(SIZE_BYTES, wanted):
            label = f"{operation}: {name}"
            seen.add(label)
            prefix = "DynamoDBStreams" if operation == "GetRecords" else "DynamoDB"
            found = cost_problem(body, partial(service.post, operation, body, f"{prefix}_20120810"))
            if found is not None and found.startswith(NOT_REFUSED):
                not_refused.add(label)
            elif found is not None:
                wrong[label] = found
    assert wrong == {}
    assert wanted is None or seen == wanted
    return not_refused


@pytest.mark.fast_paths
def test_dynamodb_refuses_at_little_cost() -> None:
    """Bodies of 10 MB of those kinds that cost most before: up to 26 s.

    The general validator takes 90 % of the bound for "many ScanFilter", the fast one 70 %.
    """
    assert refused_at_little_cost(WORST) == set()


@pytest.mark.soak
@pytest.mark.skipif(
    "TABLEGATE_TEST_SOAK_SECONDS" not in os.environ,
    reason="a hundred bodies of 10 MB take minutes: make soak",
)
def test_dynamodb_refuses_all_at_little_cost() -> None:
    not_refused = refused_at_little_cost(None)
    assert {label for label in not_refused if not label.startswith("BatchExecuteStatement: 25 ")} == {
        "ExecuteStatement: many parameters"  # for a statement that takes none
    }


def test_items_are_measured_no_further_than_they_may_be_large(dynamodb: DynamoDBService) -> None:
    """A list of a million numbers. One of 409,600 bytes less name, key and list passes, and one more byte does not."""

    def put(count: int, spare: int) -> bytes:
        item = {"pk": {"S": "1"}, "v": {"L": [{"N": "1"}] * count}, "s": {"S": "x" * spare}}
        return orjson.dumps({"TableName": "orders", "Item": item})

    body = put(1_000_000, 0)
    assert cost_problem(body, lambda: dynamodb.post("PutItem", body)) is None
    assert b"Item size has exceeded the maximum allowed size" in dynamodb.last.body
    used_bytes = len("pk") + 1 + len("v") + 3 + 3 * 100_000 + len("s")
    for spare, status in ((limits.ITEM_BYTES - used_bytes, 200), (limits.ITEM_BYTES - used_bytes + 1, 400)):
        assert dynamodb.post("PutItem", put(100_000, spare)).status == status


@pytest.mark.parametrize(
    ("condition", "count"), [(" AND ".join(["a=1"] * 580), 1159), (" OR ".join(["NOT a IN [1]"] * 300), 899)]
)
def test_statements_of_too_many_operators_cost_little(
    dynamodb: DynamoDBService, condition: str, count: int
) -> None:
    """Operators are counted before a tree is built of them: 25 such statements took a second."""
    statement = f"SELECT * FROM orders WHERE {condition}"
    given = {"Statements": [{"Statement": statement}] * 25}
    assert cpu_seconds(lambda: dynamodb.call("BatchExecuteStatement", given)) < 0.25
    errors = [each["Error"]["Message"] for each in orjson.loads(dynamodb.last.body)["Responses"]]
    assert errors == [f"The expression contains too many operators; operator count: {count}"] * 25

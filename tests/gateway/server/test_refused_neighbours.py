"""The delay of another connection while the server refuses a request of maximum size, in each dialect. The other
connection reads one item.

The delay is measured as the server's CPU time between a read and its reply, so other load on the machine does not
matter. The limit is the cost of a refusal (tests/support/refusal_costs.py) and of receiving the request.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import formatdate

import orjson
import pytest

from tests.adapters.azuretable import wasteful_requests as azure
from tests.adapters.azuretable.client import ACCOUNT, KEY, sign
from tests.adapters.tablestore import wasteful_requests as tablestore
from tests.adapters.tablestore.client import signed
from tests.support import refusal_costs
from tests.support.raw_client import SIGNED_IN_FORM, RawClient
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.extended

SIZE_BYTES = 2_000_000
LIMIT_S = refusal_costs.allowed_seconds(SIZE_BYTES, 0)
READS_LEAST = 3


@dataclass
class Wasteful:
    """A request of any dialect."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def of_dynamodb() -> Wasteful:
    put = {"PutRequest": {"Item": {"p": {"S": "1"}}}}
    count = SIZE_BYTES // (len(json.dumps(put)) + 2)
    body = json.dumps({"RequestItems": {"things": [put] * count}}).encode()
    return Wasteful("POST", "/", {**SIGNED_IN_FORM, "X-Amz-Target": "DynamoDB_20120810.BatchWriteItem"}, body)


def of_azure(kind: str, name: str) -> Wasteful:
    made = next(each for each in getattr(azure, kind)(SIZE_BYTES) if f"{each.method} {each.name}" == name)
    target = f"/{ACCOUNT}{made.path}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2019-02-02", **made.headers}
    headers.setdefault("Content-Type", "application/json")
    headers["Authorization"] = sign(KEY, made.method, target, headers)
    return Wasteful(made.method, target, headers, made.body)


def of_table_store(kind: str, name: str) -> Wasteful:
    made = next(
        each for each in getattr(tablestore, kind)(SIZE_BYTES) if f"{each.operation}: {each.name}" == name
    )
    headers = dict(signed(made.operation, made.body, time.time_ns() // 1_000_000))
    return Wasteful("POST", f"/{made.operation}", headers, made.body)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    process = Process(tmp_path_factory.mktemp("neighbours"))
    process.wait_until_ready()
    with RawClient(process.url) as client:
        client.create_table("things")
        client.call("PutItem", TableName="things", Item={"p": {"S": "1"}})
    yield process
    code, errors = process.terminate()
    assert (code, "Traceback" in errors) == (0, False), errors


@dataclass
class Refusal:
    """A request in progress on a separate thread: the start of its transmission, and its status."""

    url: str
    request: Wasteful
    is_done: threading.Event = field(default_factory=threading.Event)
    status: int = 0

    def run(self) -> None:
        host = self.url.removeprefix("http://")
        try:
            connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
            made = self.request
            connection.request(made.method, made.target, made.body, made.headers)
            reply = connection.getresponse()
            reply.read()
            self.status = reply.status
            connection.close()
        finally:
            self.is_done.set()


def longest_wait(server: Process, request: Wasteful) -> float:
    """The most CPU that the server spent between a read and its reply, while it refused a request."""
    refusal = Refusal(server.url, request)
    thread = threading.Thread(target=refusal.run)
    waits: list[float] = []
    with RawClient(server.url, timeout_seconds=PATIENCE_S) as client:
        client.call("GetItem", TableName="things", Key={"p": {"S": "1"}})
        thread.start()
        while not refusal.is_done.is_set() or len(waits) < READS_LEAST:
            before = server.cpu_seconds()
            assert "Item" in client.call("GetItem", TableName="things", Key={"p": {"S": "1"}})
            waits.append(server.cpu_seconds() - before)
    thread.join()
    assert refusal.status >= 400 or refusal.status == 202  # a batch
    return max(waits)


REQUESTS = {
    "DynamoDB, a batch of many puts": of_dynamodb,
    "Azure, an entity with a list of objects": lambda: of_azure("entities", "POST a list of objects"),
    "Azure, a batch of long blanks": lambda: of_azure(
        "batches", "POST a change with a long blank at the end"
    ),
    "Table Store, a table of many indexes": lambda: of_table_store("tables", "CreateTable: many indexes"),
    "Table Store, a batch of many tables": lambda: of_table_store("batches", "BatchWriteRow: many tables"),
}


@pytest.mark.parametrize("name", list(REQUESTS))
def test_a_refused_request_delays_other_connections_little(server: Process, name: str) -> None:
    request = REQUESTS[name]()
    reading = refusal_costs.cpu_seconds(lambda: orjson.loads(of_dynamodb().body))
    waited = min(longest_wait(server, request) for _ in range(2))
    assert waited < LIMIT_S + 0.1 + 2 * reading

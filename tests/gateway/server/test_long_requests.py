"""Requests that take long run on a thread, and leave the event loop to others."""

from __future__ import annotations

import threading

import pytest

from tablegate.adapters.dynamodb.dialect import DynamoDB
from tablegate.gateway.http.messages import Request
from tablegate.gateway.server.server import Server
from tests.gateway.server.conftest import FakeEngine, Toy
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.fast_paths
LONG = b"long" * (64 << 10)


@pytest.mark.parametrize("lane", ["inline", "thread", "split"])
def test_other_requests_are_answered_while_a_long_write_runs(
    toy, wire, engine: FakeEngine, lane: str
) -> None:
    server = toy(lane)
    engine.gate.clear()
    long = wire(server).post("/say", LONG)
    assert engine.entered.acquire(timeout=PATIENCE_S)
    other = wire(server).post("/say", b"other")
    found = wire(server).post("/find", b"table")
    for _ in range(3):
        assert wire(server).post("/at-once").reply()[2] == b"no engine"
    assert engine.lists == [[LONG]], "the database has one writer"
    engine.gate.set()
    assert [connection.reply()[2] for connection in (long, other, found)] == [LONG, b"other", b"table"]


def test_reads_go_on_while_a_long_write_runs(toy, wire, engine: FakeEngine) -> None:
    server = toy("inline")
    is_writing, may_end = threading.Event(), threading.Event()
    run = engine.run

    def blocking(commands: list, nowait: bool = False) -> list:
        outcomes = run(commands, nowait)
        if outcomes == [LONG]:
            is_writing.set()
            may_end.wait(PATIENCE_S)
        return outcomes

    engine.run = blocking  # type: ignore[method-assign]
    long = wire(server).post("/say", LONG)
    assert is_writing.wait(PATIENCE_S)
    for path in ("/read", "/page", "/read"):
        assert wire(server).post(path, b"row").reply()[2] == b"row"
    may_end.set()
    assert long.reply()[2] == LONG


@pytest.mark.parametrize("lane", ["inline", "thread"])
def test_other_requests_are_answered_while_a_long_one_is_parsed(
    toy, wire, engine: FakeEngine, lane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_parsing, may_end = threading.Event(), threading.Event()

    def parse(_: Toy, request: Request, caller: None) -> Request:
        if request.body == LONG:
            is_parsing.set()
            may_end.wait(PATIENCE_S)
        return request

    monkeypatch.setattr(Toy, "parse", parse)
    server = toy(lane)
    long = wire(server).post("/say", LONG)
    assert is_parsing.wait(PATIENCE_S)
    for path in ("/say", "/read", "/page"):
        assert wire(server).post(path, b"row").reply()[2] == b"row"
    may_end.set()
    assert long.reply()[2] == LONG


def test_long_requests_have_all_steps_and_errors(toy, wire, engine: FakeEngine) -> None:
    server = toy("inline")
    padding = b" " * (256 << 10)
    connection = wire(server)
    assert connection.post("/each", b"one two" + padding).reply()[2] == b"one two"
    assert connection.post("/many", b"3" + padding).reply()[2] == b"done"
    assert connection.post("/at-once", padding).reply()[2] == b"no engine"
    for path, text in (("/raise-first", b"before"), ("/raise-later", b"after")):
        status, _, body = connection.post(path, padding).reply()
        assert (status, text in body) == (500, True)
    engine.stale = 1
    assert connection.post("/each", b"stale" + padding).reply()[2] == b"stale"
    engine.contended = 1
    assert connection.post("/each", b"contended" + padding).reply()[2] == b"contended"


def test_only_large_requests_are_estimated_to_take_long() -> None:
    dialect = object.__new__(DynamoDB)
    item = b'{"pk": {"S": "' + b"x" * 900 + b'"}, "n": {"N": "1"}}'
    cases = {
        "an item": ("PutItem", item, False),
        "25 items": ("BatchWriteItem", item * 25, False),
        "one text of 200 KB": ("PutItem", b'{"S": "' + b"x" * 200_000 + b'"}', False),
        "a short query": ("Query", b"x" * 2_000, False),
        "a query with a long expression": ("Query", b"x" * 5_000, True),
        "a list of 20,000 numbers": ("PutItem", b'{"N":"1"},' * 20_000, True),
        "an item of 12 MB": ("PutItem", b"x" * 12_000_000, True),
        "statements": ("BatchExecuteStatement", b"x" * 10_000, True),
        "a transaction of 5 KB": ("TransactWriteItems", b"x" * 5_000, False),
        "a transaction of 38 KB": ("TransactWriteItems", b"x" * 38_000, True),
    }
    for name, (operation, body, takes_long) in cases.items():
        request = Request("POST", "/", (), body, "", False)
        assert dialect.takes_long(request, operation) is takes_long, name


def test_healthz_is_answered_without_a_thread(toy, wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is answered while all threads are busy, and thousands of pipelined ones do not wake threads (issue 44)."""
    monkeypatch.setattr(Server, "_serve", lambda *_: None)
    status, _, body = wire(toy()).send("GET /healthz HTTP/1.1").reply()
    assert (status, body) == (200, b"ok\n")

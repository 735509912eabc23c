"""Work ends once the client is gone, at the next step or slice, if it leaves nothing half done.

Source: issue 44, point 12: "the work goes on after the client left".
"""

from __future__ import annotations

import pytest

from tablegate.gateway.server import server as server_module
from tablegate.gateway.server.connection import Connection
from tests.gateway.server.conftest import FakeEngine, Toy
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.fast_paths


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """The connections that the server has seen ending. It looks for absent clients often."""
    found: list[Connection] = []
    end = Connection.connection_lost

    def note(connection: Connection, error: Exception | None) -> None:
        end(connection, error)
        found.append(connection)

    monkeypatch.setattr(Connection, "connection_lost", note)
    monkeypatch.setattr(server_module, "_SWEEP_S", 0.01)
    monkeypatch.setattr(Toy, "only_reads", lambda _, request: request.path in ("/read", "/page"))
    return found


@pytest.mark.parametrize("target", ["/say", "/read", "/page", "/find"])
def test_waiting_requests_without_a_client_are_not_run(
    toy, wire, engine: FakeEngine, lost: list[Connection], target: str
) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    gone, stays = wire(server).post(target, b"gone"), wire(server).post(target, b"stays")
    assert wire(server).post("/at-once").reply()[0] == 200
    gone.close()
    wait_until(lambda: lost)
    engine.gate.set()
    assert [each.reply()[2] for each in (first, stays)] == [b"first", b"stays"]
    assert engine.lists == [[b"first"], [b"stays"]]


def test_a_waiting_long_write_without_a_client_is_not_run(
    toy, wire, engine: FakeEngine, lost: list[Connection]
) -> None:
    server = toy("inline")
    engine.gate.clear()
    long = b"long" * (64 << 10)
    first = wire(server).post("/say", long)
    assert engine.entered.acquire(timeout=PATIENCE_S)
    gone = wire(server).post("/say", long + b"gone")
    assert wire(server).post("/at-once").reply()[0] == 200
    gone.close()
    wait_until(lambda: lost)
    engine.gate.set()
    assert first.reply()[2] == long
    assert wire(server).post("/say", b"next").reply()[2] == b"next"
    assert engine.lists == [[long], [b"next"]]


def test_pages_without_a_client_are_read_to_the_end_of_a_slice(
    toy, wire, engine: FakeEngine, lost: list[Connection]
) -> None:
    server = toy("inline")
    engine.slices, engine.slice_seconds = 1_000_000, 0.001
    gone = wire(server).post("/page", b"gone")
    wait_until(lambda: engine.read)
    gone.close()
    wait_until(lambda: lost)
    assert wire(server).post("/read", b"row").reply()[2] == b"row"
    engine.slices = 1
    assert wire(server).post("/page", b"rows").reply()[2] == b"rows"
    number = len(engine.read)
    assert engine.read[-1] == (b"rows", 0)
    assert wire(server).post("/read", b"row").reply()[2] == b"row"
    assert len(engine.read) == number


def test_a_write_in_several_steps_is_completed_without_a_client(
    toy, wire, engine: FakeEngine, lost: list[Connection]
) -> None:
    server = toy("thread")
    engine.gate.clear()
    gone = wire(server).post("/many", b"3")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    gone.close()
    wait_until(lambda: lost)
    engine.gate.set()
    wait_until(lambda: len(engine.lists) == 3)
    assert wire(server).post("/say", b"next").reply()[2] == b"next"
    assert engine.lists == [[b"round 0"], [b"round 1"], [b"round 2"], [b"next"]]


def test_a_client_that_has_only_stopped_sending_gets_its_reply(
    toy, wire, engine: FakeEngine, lost: list[Connection]
) -> None:
    """RFC 9110, 15.2.1: a client that did not ask for a 100 (Continue) can simply discard it."""
    server = toy("thread")
    engine.gate.clear()
    waiting = wire(server).post("/say", b"said")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    waiting.shut_down_writing()
    status = waiting.reply(has_body=False)[0]
    assert (status, lost) == (100, [])
    engine.gate.set()
    while status == 100:
        status, _, body = waiting.reply()
    assert (status, body) == (200, b"said")

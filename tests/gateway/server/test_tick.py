"""Batches of commands for the engine, and the requests that an error affects."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.gateway.server.conftest import FakeEngine, Wire
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S, wait_until

# A request that Flask handles is in no tick.
pytestmark = pytest.mark.fast_paths
LANES = ["inline", "thread", "split"]


@pytest.fixture(params=LANES)
def lane(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_requests_that_come_while_the_database_works_go_together(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    others = [wire(server).post("/say", b"%d" % number) for number in range(5)]
    # The server has read all of these when a later request of the same loop is answered.
    assert wire(server).post("/at-once").reply()[2] == b"no engine"
    engine.gate.set()
    assert [connection.reply()[2] for connection in (first, *others)] == [
        b"first",
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert engine.lists[0] == [b"first"]
    assert sorted(engine.lists[1]) == [b"0", b"1", b"2", b"3", b"4"]


def test_answered_requests_continue_in_the_next_list(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/many", b"2")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    other = wire(server).post("/say", b"other")
    assert wire(server).post("/at-once").reply()[2] == b"no engine"
    engine.gate.set()
    assert [first.reply()[2], other.reply()[2]] == [b"done", b"other"]
    assert engine.lists == [[b"round 0"], [b"other", b"round 1"]]


def test_a_tick_is_bounded_in_requests_and_bytes(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread", tick_requests=3, tick_bytes=100)
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    bodies = [b"1", b"2", b"3", b"4" * 90, b"5" * 20, b"6" * 200, b"7"]
    others = []
    for body in bodies:
        others.append(wire(server).post("/say", body))
        assert wire(server).post("/at-once").reply()[0] == 200
    engine.gate.set()
    assert [connection.reply()[2] for connection in (first, *others)] == [b"first", *bodies]
    assert engine.lists[1:] == [bodies[:3], bodies[3:4], bodies[4:5], bodies[5:6], bodies[6:]]


def test_tables_that_are_not_cached_are_found_together(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    others = []
    for target, body in (("/find", b"t1"), ("/say", b"1"), ("/find", b"t2"), ("/find", b"t3")):
        others.append(wire(server).post(target, body))
        assert wire(server).post("/at-once").reply()[0] == 200
    engine.gate.set()
    assert [connection.reply()[2] for connection in (first, *others)] == [b"first", b"t1", b"1", b"t2", b"t3"]
    assert engine.lists == [[b"first"], [b"1"], [b"t1", b"t2", b"t3"]]


def test_reads_writes_and_mixed_requests_are_separate_lists(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    others = []
    for target, body in (
        ("/say", b"1"),
        ("/read", b"2"),
        ("/both", b""),
        ("/say", b"3"),
        ("/read", b"4"),
        ("/both", b""),
    ):
        others.append(wire(server).post(target, body))
        assert wire(server).post("/at-once").reply()[0] == 200
    engine.gate.set()
    answers = [connection.reply()[2] for connection in (first, *others)]
    assert answers == [b"first", b"1", b"2", b"read written", b"3", b"4", b"read written"]
    assert engine.lists == [
        [b"first"],
        [b"2", b"4"],
        [b"1", b"3"],
        [b"read", b"written"],
        [b"read", b"written"],
    ]


def test_a_node_that_does_not_answer_delays_no_other_node(
    toy, wire, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.is_distributed = True
    entered, answers = threading.Event(), threading.Event()
    run = engine.run

    def hang(commands: list[Any], nowait: bool = False) -> list[Any]:
        if engine.node_of(commands) == b"h":
            entered.set()
            assert answers.wait(PATIENCE_S)
        return run(commands, nowait)

    monkeypatch.setattr(engine, "run", hang)
    server = toy("thread")
    hung = wire(server).post("/say", b"hung")
    assert entered.wait(PATIENCE_S)
    for target, body in (("/say", b"a1"), ("/say", b"b1"), ("/read", b"b2")):
        assert wire(server).post(target, body).reply()[2] == body
    answers.set()
    assert hung.reply()[2] == b"hung"
    assert engine.lists == [[b"a1"], [b"b1"], [b"b2"], [b"hung"]]


def held_up(toy, wire, engine: FakeEngine, *requests: tuple[str, bytes]) -> tuple[Running, list[Wire]]:
    """A server, and the connections of a first write and these requests, which all came while it was under way."""
    server = toy("thread")
    engine.gate.clear()
    connections = [wire(server).post("/say", b"first")]
    assert engine.entered.acquire(timeout=PATIENCE_S)
    for target, body in requests:
        connections.append(wire(server).post(target, body))
        assert wire(server).post("/at-once").reply()[0] == 200
    engine.gate.set()
    return server, connections


def test_point_reads_go_between_the_slices_of_a_page(toy, wire, engine: FakeEngine) -> None:
    engine.slices, engine.slice_seconds = 20, 0.02
    server, [first, page, point] = held_up(toy, wire, engine, ("/page", b"page"), ("/read", b"point"))
    assert [connection.reply()[2] for connection in (first, point)] == [b"first", b"point"]
    assert wire(server).post("/read", b"late").reply()[2] == b"late"
    assert wire(server).post("/say", b"written").reply()[2] == b"written"
    assert len(engine.read) < 20
    assert page.reply()[2] == b"page"
    assert engine.lists == [[b"first"], [b"point"], [b"page"], [b"late"], [b"written"]]


def test_pages_that_came_together_are_read_in_one_snapshot(toy, wire, engine: FakeEngine) -> None:
    pages = [b"0", b"1", b"2"]
    _, connections = held_up(toy, wire, engine, *(("/page", page) for page in pages))
    assert [connection.reply()[2] for connection in connections] == [b"first", *pages]
    assert engine.lists == [[b"first"], pages]


def test_later_pages_do_not_wait_for_long_ones(toy, wire, lane: str, engine: FakeEngine) -> None:
    server = toy(lane)
    engine.slices, engine.slice_seconds = 50, 0.01
    long = wire(server).post("/page", b"long")
    wait_until(lambda: engine.read)
    engine.slices = 2
    assert wire(server).post("/page", b"short").reply()[2] == b"short"
    assert (b"long", 49) not in engine.read
    assert long.reply()[2] == b"long"


def test_the_number_of_snapshots_open_for_pages_is_bounded(toy, wire, engine: FakeEngine) -> None:
    server = toy("inline")
    engine.slices, engine.slice_seconds = 20, 0.01
    connections = []
    for number in range(4):
        connections.append(wire(server).post("/page", b"%d" % number))
        wait_until(lambda number=number: len(engine.lists) > number)
    for number in range(4, 8):
        connections.append(wire(server).post("/page", b"%d" % number))
        assert wire(server).post("/at-once").reply()[0] == 200
    assert len(engine.lists) == 4
    assert [connection.reply()[2] for connection in connections] == [b"%d" % number for number in range(8)]
    assert engine.lists[4:] == [[b"4", b"5", b"6", b"7"]]


def test_a_page_over_which_the_engine_breaks_is_refused(toy, wire, lane: str, engine: FakeEngine) -> None:
    server = toy(lane)
    assert wire(server).post("/page", b"poison").reply()[::2] == (500, b"toy: the engine choked")
    assert wire(server).post("/page", b"well").reply()[2] == b"well"


def test_a_stale_table_begins_a_page_anew(toy, wire, lane: str, engine: FakeEngine) -> None:
    engine.stale = 3
    assert wire(toy(lane)).post("/page", b"stale").reply()[2] == b"stale"
    assert len(engine.lists) == 4


def test_with_split_lanes_reads_do_not_wait_for_writes(toy, wire, engine: FakeEngine) -> None:
    server = toy("split")
    engine.gate.clear()
    waiting = wire(server).post("/say", b"waits")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    closed, engine.gate = engine.gate, threading.Event()
    engine.gate.set()
    assert wire(server).post("/read", b"at once").reply()[2] == b"at once"
    closed.set()
    assert waiting.reply()[2] == b"waits"


def test_a_reader_waits_for_the_one_write_that_is_under_way(toy, wire, engine: FakeEngine) -> None:
    """It does not wait for the other writes of that moment, however many there are.

    It is answered while they are written.
    """
    server = toy("thread")
    closed, engine.gate = engine.gate, threading.Event()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    writers = [wire(server).post("/say", b"%d" % number) for number in range(20)]
    reader = wire(server).post("/read", b"light")
    assert wire(server).post("/at-once").reply()[2] == b"no engine"  # so all of them have been read
    under_way, engine.gate = engine.gate, threading.Event()
    under_way.set()
    wait_until(lambda: len(engine.lists) == 2)
    assert engine.lists == [[b"first"], [b"light"]]
    reading, engine.gate = engine.gate, threading.Event()
    reading.set()
    # The writes have begun, and cannot end.
    assert reader.reply()[2] == b"light"
    wait_until(lambda: len(engine.lists) == 3)
    assert sorted(engine.lists[2]) == sorted(b"%d" % number for number in range(20))
    engine.gate.set()
    engine.gate = closed
    assert first.reply()[2] == b"first"
    assert {each.reply()[2] for each in writers} == {b"%d" % number for number in range(20)}


def test_one_request_of_a_connection_runs_at_a_time(toy, wire, engine: FakeEngine) -> None:
    connection = wire(toy("thread"))
    connection.post("/say", b"1").post("/say", b"2").post("/say", b"3")
    assert [connection.reply()[2] for _ in range(3)] == [b"1", b"2", b"3"]
    assert engine.lists == [[b"1"], [b"2"], [b"3"]]


def test_a_handler_can_call_the_engine_repeatedly(toy, wire, lane: str, engine: FakeEngine) -> None:
    assert wire(toy(lane)).post("/many", b"4").reply()[2] == b"done"
    assert engine.lists == [[b"round %d" % number] for number in range(4)]


def test_a_stale_table_begins_the_handler_anew(toy, wire, lane: str, engine: FakeEngine) -> None:
    engine.stale = 3
    assert wire(toy(lane)).post("/say", b"stale").reply()[2] == b"stale"
    assert len(engine.lists) == 4


def test_tables_that_never_stop_changing_end_in_busy(toy, wire, lane: str, engine: FakeEngine) -> None:
    engine.stale = 1000
    assert wire(toy(lane)).post("/say", b"stale").reply()[::2] == (500, b"toy: tables keep changing")
    assert len(engine.lists) == 8


def test_a_gateway_error_is_an_outcome(toy, wire, lane: str) -> None:
    assert wire(toy(lane)).post("/say", b"busy").reply()[::2] == (503, b"toy: busy")


def test_contended_commands_wait_and_are_run_again_alone(toy, wire, lane: str, engine: FakeEngine) -> None:
    engine.contended = 3
    server = toy(lane)
    waiting = wire(server).post("/each", b"a contended b")
    assert wire(server).post("/say", b"others go on").reply()[2] == b"others go on"
    assert waiting.reply()[2] == b"a contended b"
    assert [said for said in engine.lists if b"others go on" not in said] in (
        [[b"a", b"contended", b"b"], [b"contended"], [b"contended"], [b"contended"]],
        [[b"contended"], [b"contended"], [b"contended"]],
    )


def test_commands_that_stay_contended_end_in_busy(toy, wire, lane: str, engine: FakeEngine) -> None:
    engine.contended = 1000
    engine.last_contended_list = 4
    server = toy(lane)
    assert wire(server).post("/say", b"contended").reply()[::2] == (503, b"toy: busy")
    assert engine.lists == [[b"contended"]] * 4
    engine.contended = 0
    assert wire(server).post("/say", b"contended").reply()[2] == b"contended"


@pytest.mark.parametrize(
    ("target", "words"), [("/raise-first", b"before the engine"), ("/raise-later", b"after the engine")]
)
def test_a_handler_that_raises_is_answered_by_its_dialect(
    toy, wire, lane: str, target: str, words: bytes
) -> None:
    connection = wire(toy(lane))
    assert connection.post(target).reply()[::2] == (500, b"toy: " + words)
    assert connection.post("/say", b"still here").reply()[2] == b"still here"


def test_a_failing_list_fails_only_the_request_at_fault(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    first = wire(server).post("/say", b"first")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    others = [wire(server).post("/say", body) for body in (b"good", b"poison", b"fine")]
    assert wire(server).post("/at-once").reply()[0] == 200
    engine.gate.set()
    assert first.reply()[2] == b"first"
    assert [connection.reply()[::2] for connection in others] == [
        (200, b"good"),
        (500, b"toy: the engine choked"),
        (200, b"fine"),
    ]


def test_the_loop_answers_others_while_the_database_works(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    engine.gate.clear()
    waiting = wire(server).post("/say", b"waits")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    assert wire(server).send("GET /healthz HTTP/1.1").reply()[0] == 200
    engine.gate.set()
    assert waiting.reply()[0] == 200

"""HTTP/1.1 on one connection with slow, fast, old or hostile clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import orjson
import pytest

from tablegate.gateway.observability import metrics
from tablegate.gateway.server import connection as connections
from tablegate.gateway.server.pending_request import PendingRequest
from tablegate.gateway.server.server import Server
from tests.gateway.server.conftest import FakeEngine, Wire
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S


def test_a_request_is_answered_and_the_connection_kept(toy, wire) -> None:
    connection = wire(toy())
    for body in (b"one", b"two"):
        status, headers, answer = connection.post("/echo?a=%2F", body).reply()
        assert (status, orjson.loads(answer)) == (200, ["POST", "/echo?a=%2F", body.decode(), "127.0.0.1"])
        assert headers["server"] == "tablegate"
        assert headers["date"].endswith(" GMT")
        assert "connection" not in headers


def test_pipelined_requests_are_answered_in_order(toy, wire) -> None:
    connection = wire(toy())
    one = b"POST /say HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
    connection.raw(b"".join(one + b"%03d" % number for number in range(100)))
    assert [connection.reply()[2] for _ in range(100)] == [b"%03d" % number for number in range(100)]


def test_a_request_may_come_byte_by_byte(toy, wire) -> None:
    connection = wire(toy())
    for byte in b"POST /say HTTP/1.1\r\nHost: a\r\nX-Y: z\r\nContent-Length: 2\r\n\r\nok":
        connection.raw(bytes([byte]))
    assert connection.reply()[2] == b"ok"


def test_chunked_bodies_are_put_together_and_trailers_dropped(toy, wire) -> None:
    connection = wire(toy())
    connection.send("POST /say HTTP/1.1", "Transfer-Encoding: chunked")
    connection.raw(b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert connection.reply()[2] == b"abcde"
    assert connection.post("/say", b"next").reply()[2] == b"next"


def test_every_spelling_of_chunked_is_recognized(toy, wire) -> None:
    connection = wire(toy())
    connection.send("POST /say HTTP/1.1", "transfer-encoding:  Chunked ").raw(b"1\r\nx\r\n0\r\n\r\n")
    assert connection.reply()[2] == b"x"


def test_expect_100_continue_is_granted_before_the_body(toy, wire) -> None:
    connection = wire(toy())
    connection.send("POST /say HTTP/1.1", "Content-Length: 4", "Expect: 100-continue")
    assert connection.reply(has_body=False)[0] == 100
    assert connection.raw(b"body").reply()[2] == b"body"


def test_expect_100_continue_is_not_granted_to_a_body_that_is_too_long(toy, wire) -> None:
    connection = wire(toy(max_body_bytes=3))
    connection.send("POST /say HTTP/1.1", "Content-Length: 4", "Expect: 100-continue")
    assert connection.reply()[::2] == (413, b"toy: too large")


def test_http_10_is_closed_unless_it_requests_keep_alive(toy, wire) -> None:
    server = toy()
    closing = wire(server)
    assert closing.raw(b"GET /at-once HTTP/1.0\r\n\r\n").reply()[1]["connection"] == "close"
    assert closing.is_closed()
    kept = wire(server).raw(b"GET /at-once HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    assert kept.reply()[1]["connection"] == "keep-alive"


def test_connection_close_is_obeyed(toy, wire) -> None:
    connection = wire(toy())
    assert connection.send("GET /at-once HTTP/1.1", "Connection: close").reply()[1]["connection"] == "close"
    assert connection.is_closed()


def test_a_client_that_stops_sending_gets_its_replies(toy, wire) -> None:
    connection = wire(toy("thread"))
    connection.post("/say", b"one").post("/say", b"two")
    connection.shut_down_writing()
    assert [connection.reply()[2], connection.reply()[2]] == [b"one", b"two"]
    assert connection.is_closed()


def test_head_and_204_have_no_body(toy, wire) -> None:
    connection = wire(toy())
    status, headers, _ = connection.send("HEAD /at-once HTTP/1.1").reply(has_body=False)
    assert (status, headers["content-length"]) == (200, "9")
    status, headers, _ = connection.send("GET /empty HTTP/1.1").reply(has_body=False)
    assert status == 204
    assert "content-length" not in headers
    assert connection.post("/say", b"in step").reply()[2] == b"in step"


def test_an_offer_to_upgrade_is_declined_by_answering(toy, wire) -> None:
    # Java's HttpClient sends this with its first request on a plain connection.
    connection = wire(toy())
    offer = (
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk",
    )
    assert connection.send("GET /at-once HTTP/1.1", *offer).reply()[2] == b"no engine"
    assert connection.send("POST /say HTTP/1.1", "Content-Length: 2", *offer, body=b"ok").reply()[2] == b"ok"


@pytest.mark.parametrize("body", [b"", b"ok"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_a_request_that_offers_to_upgrade_keeps_its_method(toy, wire, method: str, body: bytes) -> None:
    offer = (
        "Connection: Upgrade, HTTP2-Settings",
        f"Content-Length: {len(body)}",
        "Upgrade: h2c",
        "HTTP2-Settings: AAEA",
    )
    told = wire(toy()).send(f"{method} /echo HTTP/1.1", *offer, body=body).reply()[2]
    assert orjson.loads(told)[:3] == [method, "/echo", body.decode()]


def test_a_body_after_an_offer_to_upgrade_is_no_second_request(toy, wire) -> None:
    smuggled = b"POST /say HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
    head = f"POST /say HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\nContent-Length: {len(smuggled)}"
    connection = wire(toy()).raw(f"{head}\r\n\r\n".encode() + smuggled)
    assert connection.reply()[2] == smuggled
    assert connection.post("/say", b"in step").reply()[2] == b"in step"


def test_two_offers_to_upgrade_in_one_packet_are_both_answered(toy, wire) -> None:
    one = b"GET /at-once HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    connection = wire(toy()).raw(one + one)
    assert [connection.reply()[0], connection.reply()[0]] == [200, 200]


@pytest.mark.parametrize("size", [10, 200_000, 5_000_000])
def test_replies_of_any_size_arrive_whole(toy, wire, size: int) -> None:
    connection = wire(toy())
    for _ in range(2):
        connection.post("/big", b"%d" % size)
    assert [len(connection.reply()[2]) for _ in range(2)] == [size, size]


def test_a_header_cannot_break_out_of_its_line(toy, wire) -> None:
    status, headers, _ = wire(toy()).post("/breakout").reply()
    assert status == 500
    assert "x-injected" not in headers


# Refusals. After each the connection is closed, and what was answered before stays in order.


def refused(connection) -> int:
    status, headers, _ = connection.reply()
    assert headers["connection"] == "close"
    assert connection.is_closed()
    return int(status)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS on a plain port
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",  # RFC 9112, 3.2
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Y: z\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        # RFC 9112, 6.1: the only supported transfer coding is chunked, and a message has one framing header.
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST /say HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /say HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: y\r\n\r\n",  # no Host
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_bytes_that_are_not_http_get_400(toy, wire, request_bytes: bytes) -> None:
    assert refused(wire(toy()).raw(request_bytes)) == 400


def test_a_refusal_waits_for_the_answers_before_it(toy, wire) -> None:
    connection = wire(toy("thread")).post("/say", b"first")
    connection.raw(b"nonsense\r\n\r\n")
    assert connection.reply()[2] == b"first"
    assert refused(connection) == 400


def test_a_request_line_has_a_limit(toy, wire) -> None:
    server = toy(max_request_line_bytes=100)
    assert wire(server).send(f"GET /{'x' * 99} HTTP/1.1").reply()[0] == 404
    assert refused(wire(server).send(f"GET /{'x' * 100} HTTP/1.1")) == 400


def test_headers_have_a_limit(toy, wire) -> None:
    server = toy(max_header_bytes=1000)
    room = 1000 - len("Host") - len("toy") - len("X") - 8
    assert wire(server).send("GET /at-once HTTP/1.1", f"X: {'y' * room}").reply()[0] == 200
    assert refused(wire(server).send("GET /at-once HTTP/1.1", f"X: {'y' * (room + 1)}")) == 400


def test_a_header_that_never_ends_is_refused(toy, wire) -> None:
    connection = wire(toy(max_header_bytes=1000)).raw(b"GET / HTTP/1.1\r\nX: ")
    for _ in range(50):
        connection.raw(b"y" * 100)
    assert refused(connection) == 400


def test_a_trailer_that_never_ends_is_refused(toy, wire) -> None:
    connection = wire(toy(max_header_bytes=1000))
    connection.send("POST /say HTTP/1.1", "Transfer-Encoding: chunked").raw(b"1\r\na\r\n0\r\nX: ")
    for _ in range(50):
        connection.raw(b"y" * 100)
    assert refused(connection) == 400


@pytest.mark.parametrize("chunked", [False, True])
def test_bodies_have_a_limit_in_the_words_of_the_dialect(toy, wire, chunked: bool) -> None:
    server = toy(max_body_bytes=1000)

    def send(size: int):
        if chunked:
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"b" * size)
            return wire(server).send("POST /say HTTP/1.1", "Transfer-Encoding: chunked", body=body)
        return wire(server).post("/say", b"b" * size)

    assert send(1000).reply()[2] == b"b" * 1000
    connection = send(1001)
    assert connection.reply()[::2] == (413, b"toy: too large")
    assert connection.is_closed()


def test_the_refusal_of_a_long_body_reaches_a_client_that_is_still_sending(toy, wire) -> None:
    connection = wire(toy(max_body_bytes=1000))
    connection.send("POST /say HTTP/1.1", "Content-Length: 5000000")
    for _ in range(50):
        connection.raw(b"b" * 100_000)
    assert connection.reply()[0] == 413


def test_bodies_in_memory_have_a_limit_together(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread", max_buffered_bytes=15_000)
    engine.gate.clear()
    first = wire(server).post("/say", b"b" * 10_000)
    assert engine.entered.acquire(timeout=PATIENCE_S)
    assert wire(server).post("/say", b"b" * 10_000).reply()[0] == 500  # the toy's word for Busy
    engine.gate.set()
    assert first.reply()[0] == 200
    assert wire(server).post("/say", b"b" * 10_000).reply()[0] == 200


def test_a_head_that_takes_too_long_is_a_408(toy, wire) -> None:
    connection = wire(toy(header_seconds=0.1)).raw(b"GET / HTTP/1.1\r\nHost: a\r\n")
    assert refused(connection) == 408


def test_a_body_that_takes_too_long_is_a_408(toy, wire) -> None:
    connection = wire(toy(body_seconds=0.1)).send("POST /say HTTP/1.1", "Content-Length: 5", body=b"four")
    assert refused(connection) == 408


def test_an_idle_connection_is_closed(toy, wire) -> None:
    connection = wire(toy(idle_seconds=0.1))
    assert connection.post("/say", b"x").reply()[2] == b"x"
    assert connection.is_closed()


def test_a_client_that_does_not_take_its_reply_is_cut_off(toy, wire) -> None:
    connection = wire(toy(write_seconds=0.1))
    connection.post("/big", b"50000000").post("/say", b"never answered")
    assert connection.is_cut_off()


def test_when_all_places_are_taken_an_idle_connection_goes(toy, wire) -> None:
    server = toy(max_connections=2)
    first, second = wire(server), wire(server)
    assert first.post("/say", b"1").reply()[2] == b"1"
    assert second.post("/say", b"2").reply()[2] == b"2"
    assert wire(server).post("/say", b"3").reply()[2] == b"3"
    assert first.is_closed()


def test_connections_above_the_limit_are_counted_and_logged(
    toy, wire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[None] = []
    monkeypatch.setattr(metrics, "record_excess_connection", lambda: counted.append(None))
    server = toy(max_connections=1)
    for number in range(3):
        assert wire(server).post("/say", b"x").reply()[2] == b"x"
        assert len(counted) == number
    [record] = [each for each in caplog.records if "--max-connections" in each.getMessage()]
    assert record.facts == {"max_connections": 1, "closed": 1}


def settle(server: Running, connect: Callable[[Running], Wire]) -> None:
    """Until the server has read what was sent to it so far: a new connection is accepted in one turn and read in a later."""
    for _ in range(3):
        connection = connect(server)
        connection.post("/say", b"x").reply()
        connection.close()


def half_sent(server: Running, connect: Callable[[Running], Wire], count: int) -> list[Wire]:
    """Connections on which the beginning of a head has arrived, one after the other."""
    made = []
    for _ in range(count):
        made.append(connect(server).raw(b"POST /say HTTP/1.1\r\nHost: a\r\n"))
        settle(server, connect)
    return made


def finish(connection: Wire) -> bytes:
    return connection.raw(b"Content-Length: 2\r\n\r\nok").reply()[2]


def test_a_client_has_a_maximum_number_of_pending_heads(toy, wire) -> None:
    server = toy(max_heads_per_client=3)
    assert [finish(each) for each in half_sent(server, wire, 3)] == [b"ok"] * 3
    first, *others = half_sent(server, wire, 4)
    assert refused(first) == 408
    assert [finish(each) for each in others] == [b"ok"] * 3
    # Those that have ended no longer count.
    assert [finish(each) for each in half_sent(server, wire, 3)] == [b"ok"] * 3


def test_unfinished_heads_block_no_other_connection(toy, wire) -> None:
    server = toy(max_connections=4)
    first, second, third = half_sent(server, wire, 3)
    others = [wire(server) for _ in range(3)]
    for each in others:  # the last place, and two that heads are in
        assert each.post("/say", b"x").reply()[2] == b"x"
    assert [refused(first), refused(second)] == [408, 408]
    assert finish(third) == b"ok"
    assert [each.post("/say", b"y").reply()[2] for each in others] == [b"y"] * 3


def test_the_longest_idle_connection_is_closed_first(toy, wire) -> None:
    server = toy(max_connections=3)
    idle = wire(server)
    assert idle.post("/say", b"1").reply()[2] == b"1"
    [head] = half_sent(server, wire, 1)
    kept = wire(server)
    assert kept.post("/say", b"2").reply()[2] == b"2"
    new = wire(server)
    assert new.post("/say", b"3").reply()[2] == b"3"
    assert idle.is_closed()
    assert wire(server).post("/say", b"4").reply()[2] == b"4"
    assert refused(head) == 408
    assert [kept.post("/say", b"5").reply()[2], new.post("/say", b"6").reply()[2]] == [b"5", b"6"]


@pytest.mark.parametrize("is_stalled", [True, False])
def test_a_stalled_body_gives_way_to_a_new_connection_and_an_arriving_one_does_not(
    toy, wire, monkeypatch: pytest.MonkeyPatch, is_stalled: bool
) -> None:
    monkeypatch.setattr(connections, "_STALLED_S", 0.0 if is_stalled else 60.0)
    server = toy(max_connections=1)
    body = wire(server).send("POST /say HTTP/1.1", "Content-Length: 5", body=b"four")
    new = wire(server)
    if is_stalled:
        assert new.post("/say", b"x").reply()[2] == b"x"
        assert refused(body) == 408
    else:
        assert refused(new) == 503
        assert body.raw(b"!").reply()[2] == b"four!"


def test_refused_clients_that_go_on_sending_make_room(toy, wire) -> None:
    server = toy(max_connections=2)
    for _ in range(2):
        assert wire(server).raw(b"nonsense\r\n\r\n").reply()[0] == 400
    assert wire(server).post("/say", b"x").reply()[2] == b"x"


def test_an_idle_connection_on_which_a_request_arrives_is_not_closed(
    toy, wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A request arrives on an expired connection while the event loop is blocked. When the loop continues, timers run
    # before received data.
    sweep_s = 0.05
    entered, leave, handle = threading.Event(), threading.Event(), Server.handle

    def hold(self: Server, pending: PendingRequest) -> None:
        if pending.body == b"hold":
            for connection in self._connections:
                if connection.phase is connections.DeadlinePhase.IDLE:
                    connection.deadline = 0.0
            entered.set()
            leave.wait(60)
            time.sleep(sweep_s)  # at least: the sweep is due when the loop continues
        handle(self, pending)

    monkeypatch.setattr(Server, "handle", hold)
    monkeypatch.setattr("tablegate.gateway.server.server._SWEEP_S", sweep_s)
    server = toy()
    idle, other = wire(server), wire(server)
    assert idle.post("/say", b"1").reply()[2] == b"1"
    other.post("/say", b"hold")
    assert entered.wait(60)
    idle.post("/say", b"2")
    leave.set()
    assert other.reply()[2] == b"hold"
    assert idle.reply()[2] == b"2"


def test_when_all_places_are_busy_the_answer_is_503(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread", max_connections=1)
    engine.gate.clear()
    first = wire(server).post("/say", b"1")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    assert refused(wire(server)) == 503
    engine.gate.set()
    assert first.reply()[2] == b"1"

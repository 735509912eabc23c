"""Pipelined requests of one connection take turns with those of other connections. No sockets are used."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Reply
from tablegate.gateway.http.request_bodies import RequestMemory
from tablegate.gateway.server import connection as connections
from tablegate.gateway.server.connection import Connection
from tablegate.gateway.server.pending_request import PendingRequest

SHORT = b"GET / HTTP/1.1\r\nHost:a\r\n\r\n"


class Transport(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.reads = True
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True


class Server:
    """The part of a server that a connection calls. A test answers the requests."""

    is_stopping = False

    def __init__(self) -> None:
        self.settings = load({"memory": True}, {})
        self.memory = RequestMemory(self.settings.max_buffered_bytes)
        self.waiting: list[PendingRequest] = []

    def handle(self, pending: PendingRequest) -> None:
        self.waiting.append(pending)

    def enter(self, _: Connection) -> bool:
        return True

    def refusal_of_head(self, _: PendingRequest) -> None:
        return None

    def leave(self, _: Connection) -> None: ...

    def head_began(self, _: Connection) -> None: ...

    def head_ended(self, _: Connection) -> None: ...


class Client:
    """A connection with its server, and the number of requests that were parsed."""

    def __init__(self) -> None:
        self.server, self.transport = Server(), Transport()
        self.connection = Connection(self.server)  # type: ignore[arg-type]
        self.connection.connection_made(self.transport)

    def answer(self) -> bytes:
        """Answer the current request and return its body."""
        [pending] = self.server.waiting
        self.server.waiting = []
        self.connection.answer(Reply(200, (), pending.body))
        return pending.body


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[PendingRequest]:
    """The requests that are parsed, in order."""
    requests: list[PendingRequest] = []

    def keep(*arguments: Any) -> PendingRequest:
        requests.append(PendingRequest(*arguments))
        return requests[-1]

    monkeypatch.setattr("tablegate.gateway.server.http1.PendingRequest", keep)
    return requests


def test_thousands_of_requests_at_once_are_parsed_in_pieces(parsed: list[PendingRequest]) -> None:
    client = Client()
    client.connection.data_received(SHORT * 9_000)
    for answered in range(9_000):
        assert len(parsed) - answered <= 150, (
            "too many requests are parsed before other connections have their turn"
        )
        assert len(client.server.waiting) == 1
        assert not client.transport.reads or len(parsed) == 9_000
        client.answer()
    assert client.server.waiting == []
    assert client.transport.reads
    assert client.transport.written.count(b"HTTP/1.1 200") == 9_000
    client.connection.data_received(SHORT)
    client.answer()


def test_bodies_in_pieces_are_whole(parsed: list[PendingRequest]) -> None:
    bodies = [b"%d" % at * 10 ** (at % 6) for at in range(40)]
    counted = b"".join(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies
    )
    chunked = b"".join(
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
        % (len(body), body)
        for body in bodies
    )
    upgrading = b"".join(
        b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
        for body in bodies
    )
    for requests in (counted, chunked, upgrading):
        for size in (len(requests), 100_000, 2_500):
            client = Client()
            for at in range(0, len(requests), size):
                client.connection.data_received(requests[at : at + size])
            assert [client.answer() for _ in bodies] == bodies
            assert client.server.memory.received_bytes == 0


def test_requests_before_the_end_of_the_client_are_answered(parsed: list[PendingRequest]) -> None:
    client = Client()
    client.connection.data_received(SHORT * 1_000)
    assert client.connection.eof_received(), "the replies are still to be sent"
    for _ in range(1_000):
        assert not client.transport.is_closed
        client.answer()
    assert client.transport.is_closed


def test_requests_already_sent_are_answered_while_the_server_stops(parsed: list[PendingRequest]) -> None:
    client = Client()
    client.connection.data_received(SHORT * 1_000)
    client.server.is_stopping = True
    for _ in range(1_000):
        client.answer()
    assert client.transport.written.count(b"Connection: close") == 1
    assert connections.DeadlinePhase.LINGERING is client.connection.phase


def test_short_bodies_are_received_while_large_requests_use_all_memory(parsed: list[PendingRequest]) -> None:
    client, large = Client(), PendingRequest("POST", "/", (), b"")
    client.server.memory.hold(large, 1 << 30)
    client.connection.data_received(
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4096\r\n\r\n" + b"x" * 4096
    )
    assert client.answer() == b"x" * 4096

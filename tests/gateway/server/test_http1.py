"""The parser of requests on its own: what it keeps in memory of a message that has not arrived in full."""

from __future__ import annotations

import tracemalloc

import pytest

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import RequestMemory
from tablegate.gateway.server.http1 import RequestParser
from tablegate.gateway.server.pending_request import PendingRequest

PARTS = 20_000


class Server:
    """Accepts every head."""

    settings = Settings()
    memory = RequestMemory(settings.max_buffered_bytes)

    def refusal_of_head(self, pending: PendingRequest) -> Reply | None:
        return None

    def refuse(self, request: Request, error: Exception) -> Reply:
        raise error


class Channel:
    def answer(self, reply: Reply) -> None: ...


@pytest.mark.parametrize("is_chunked", [True, False])
def test_a_body_in_tiny_parts_takes_no_more_memory_than_its_bytes(is_chunked: bool) -> None:
    """A list of such parts took 20 times as much, which no limit counted."""
    parser = RequestParser(Server(), Channel(), "127.0.0.1", False)
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {2 * PARTS + 2}"
    parser.feed(f"POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n".encode())
    tracemalloc.start()
    try:
        for _ in range(PARTS // 1000):
            if is_chunked:
                assert parser.feed(b"2\r\nab\r\n" * 1000) == []
            else:
                for _ in range(1000):
                    parser.feed(b"ab")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 4 * PARTS
    [pending] = parser.feed(b"2\r\nab\r\n0\r\n\r\n" if is_chunked else b"ab")
    assert pending.body == b"ab" * (PARTS + 1)

"""Clients without valid credentials wait for their refusal, and further data from them is read slowly.

The delays of these tests are so long that no test ends during one.
"""

from __future__ import annotations

import asyncio
import json
import select
import socket
import time
from collections.abc import Iterator

import pytest

from tablegate.adapters.dynamodb.wire.auth import authorization
from tablegate.gateway.http.messages import Request
from tablegate.gateway.server import server as server_module
from tablegate.gateway.server.server import Server
from tests.gateway.http.test_bodies_after_credentials import AWS, gateway_of
from tests.support.running import EVERY_DIALECT, Running, beyond_wsgi, plain_app, start_app
from tests.support.waiting import PATIENCE_S

pytestmark = beyond_wsgi
HEADERS = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}


@pytest.fixture
def server() -> Iterator[Running]:
    gateway = gateway_of("strict")
    object.__setattr__(gateway.settings, "stop_seconds", 0.1)
    object.__setattr__(gateway.settings, "drain_seconds", 0.0)
    running = start_app(plain_app(gateway, *EVERY_DIALECT))
    yield running
    running.stop()


def request(running: Running, body: bytes, secret: str) -> bytes:
    """A DynamoDB request that is signed with a secret."""
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = {**HEADERS, "host": f"127.0.0.1:{running.port}", "x-amz-date": date}
    made = Request("POST", "/", tuple(headers.items()), body)
    headers["authorization"] = authorization(made, AWS.access_id, secret, "us-east-1")
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(["POST / HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""]).encode() + body


def sent(running: Running, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S)
    connection.sendall(data)
    return connection


def test_only_the_refusal_of_a_wrong_signature_is_held_back(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "REFUSAL_DELAY_S", 3600.0)
    refused = sent(server, request(server, b"{}", "another secret"))
    for _ in range(10):
        known = sent(server, request(server, b"{}", AWS.secrets[0]))
        assert known.recv(100).startswith(b"HTTP/1.1 200 ")
        known.close()
    assert select.select([refused], [], [], 0) == ([], [], [])
    refused.close()


def test_the_refusal_comes(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "REFUSAL_DELAY_S", 0.001)
    refused = sent(server, request(server, b"{}", "another secret"))
    assert refused.recv(100).startswith(b"HTTP/1.1 400 ")
    refused.close()


def test_bytes_after_a_refused_head_are_read_slowly(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each part that is thrown away the connection is left alone for a while."""
    monkeypatch.setattr(server_module, "REFUSAL_DELAY_S", 0.001)
    discarded: list[int] = []
    discard = Server.discard

    def noted(self: Server, transport: asyncio.Transport, size_bytes: int) -> None:
        discarded.append(size_bytes)
        discard(self, transport, size_bytes)

    monkeypatch.setattr(Server, "discard", noted)
    monkeypatch.setattr(server_module, "_DISCARDED_BYTES_PER_S", 0.001)
    monkeypatch.setattr(server_module, "_DISCARDING_PAUSE_MAX_S", 3600.0)
    body = json.dumps({"a": "x" * 8_000_000}).encode()
    head = request(server, body, "another secret").removesuffix(body).replace(b"authorization", b"x-other")
    refused = sent(server, head)
    assert refused.recv(100).startswith(b"HTTP/1.1 400 ")
    refused.setblocking(False)
    rest = memoryview(body)
    while rest:
        try:
            rest = rest[refused.send(rest) :]
        except BlockingIOError:
            known = sent(server, request(server, b"{}", AWS.secrets[0]))
            assert known.recv(100).startswith(b"HTTP/1.1 200 ")
            known.close()
            break
    assert len(discarded) <= 1
    refused.close()

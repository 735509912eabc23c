"""The Python version of generator.c for machines without a C compiler, with the same arguments, files and line of
JSON.

It reaches a fraction of the C program's rate. The report says if it is the bottleneck.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

_READ_BYTES = 1 << 18


class Connection:
    """One connection of the closed loop."""

    def __init__(self, port: int, selector: selectors.BaseSelector) -> None:
        self._port = port
        self._selector = selector
        self.number = -1
        self.began = 0.0
        self.status = 0
        self.answer = bytearray()
        self.body = b""
        self.closes = False
        self._connect()

    def _connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(self.socket, selectors.EVENT_READ, self)

    def again(self) -> None:
        self._selector.unregister(self.socket)
        self.socket.close()
        self._connect()

    def begin(self, number: int, request: bytes) -> None:
        self.number, self.answer = number, bytearray()
        self.began = time.perf_counter()
        self.socket.sendall(request)

    def read(self) -> tuple[bool, bool]:
        """Return (True if the reply is complete, True if the connection has ended)."""
        try:
            data = self.socket.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        self.answer += data
        return self._is_complete(not data), not data

    def _is_complete(self, ended: bool) -> bool:
        head, head_end, rest = bytes(self.answer).partition(b"\r\n\r\n")
        if not head_end:
            return False
        lines = head.lower().split(b"\r\n")
        fields = dict(line.split(b":", 1) for line in lines[1:] if b":" in line)
        self.status = int(lines[0][9:12])
        connection = fields.get(b"connection", b"").strip()
        self.closes = connection == b"close" or (
            lines[0].startswith(b"http/1.0") and connection != b"keep-alive"
        )
        self.body = rest
        if b"content-length" in fields:
            return len(rest) >= int(fields[b"content-length"])
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            return rest.endswith(b"0\r\n\r\n")
        self.closes = True
        return self.status in (204, 304) or ended


def load(
    port: int, connections: int, files: tuple[Path, Path], status: int, every: int, seconds: float
) -> None:
    """See generator.c."""
    requests, results = _requests(files[0]), files[1].open("wb")
    selector = selectors.DefaultSelector()
    remaining = iter(enumerate(requests))
    cpu, start = time.process_time(), time.perf_counter()
    running = completed = unexpected = broken = 0
    for _ in range(min(connections, len(requests))):
        Connection(port, selector).begin(*next(remaining))
        running += 1
    while running:
        for event, _ in selector.select(1):
            connection: Connection = event.data
            complete, ended = connection.read()
            if not complete and not ended:
                continue
            completed += 1
            if complete:
                unexpected += connection.status != status
                _note(results, connection, connection.status != status or connection.number % every == 0)
            broken += not complete
            if ended or connection.closes:
                connection.again()
            following = next(remaining, None) if time.perf_counter() - start < seconds else None
            if following is None:
                running -= 1
            else:
                connection.begin(*following)
    results.close()
    facts = {"asked": len(requests), "completed": completed, "unexpected": unexpected, "broken": broken}
    print(json.dumps(facts | {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}))


def _note(results: BinaryIO, connection: Connection, sampled: bool) -> None:
    body = connection.body if sampled else b""
    microseconds = int((time.perf_counter() - connection.began) * 1e6)
    results.write(struct.pack("<IIII", connection.number, microseconds, connection.status, len(body)) + body)


def _requests(path: Path) -> list[bytes]:
    data, at, requests = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        requests.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return requests


def answer(port: int) -> None:
    """Serve the same reply to all requests."""
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
    selector = selectors.DefaultSelector()
    listening = socket.create_server(("127.0.0.1", port))
    selector.register(listening, selectors.EVENT_READ)
    while True:
        for event, _ in selector.select():
            client = event.fileobj
            assert isinstance(client, socket.socket)
            if client is listening:
                selector.register(listening.accept()[0], selectors.EVENT_READ)
            elif client.recv(_READ_BYTES):
                client.sendall(reply)
            else:
                selector.unregister(client)
                client.close()


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "answer":
        answer(int(rest[0]))
    else:
        paths = Path(rest[2]), Path(rest[3])
        load(int(rest[0]), int(rest[1]), paths, int(rest[4]), int(rest[5]), float(rest[6]))

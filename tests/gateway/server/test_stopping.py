"""SIGTERM: every request on a connection that a client has made is answered, with `Connection: close`.

The servers are processes. They drain for ten minutes, so that no test depends on the time: they stop when their clients have
closed their connections.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tablegate.gateway.server import listening
from tests.support.running import Process
from tests.support.waiting import PATIENCE_S

CLIENTS = 12
DRAIN = ("--drain-seconds", "600")
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
KINDS = {
    "one process": (),
    "workers": ("--workers", "3"),
    "TLS": ("--tls-self-signed",),
    "workers, TLS": ("--workers", "3", "--tls-self-signed"),
}


def address_of(server: Process) -> tuple[str, int]:
    parts = urlsplit(server.url)
    return parts.hostname or "", parts.port or 0


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Client:
    """One kept connection. Raises ConnectionError if it cannot be made."""

    def __init__(self, server: Process) -> None:
        self._socket = socket.create_connection(address_of(server), timeout=PATIENCE_S)
        if server.url.startswith("https"):
            self._socket = _context().wrap_socket(self._socket)
        self._file = self._socket.makefile("rb")

    def send(self, data: bytes = GET) -> None:
        self._socket.sendall(data)

    def read(self) -> str:
        """The `Connection` header of the next reply, "" if it has none."""
        status = self._file.readline()
        assert status == b"HTTP/1.1 200 OK\r\n", status
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        self._file.read(int(headers["Content-Length"]))
        return headers.get("Connection", "")

    def send_until_closed(self, answered: Callable[[], object] = lambda: None) -> None:
        """Send requests until a reply announces the close of the connection and it is closed."""
        connection = ""
        while connection != "close":
            self.send()
            connection = self.read()
            answered()
        self.read_end()

    def read_end(self) -> None:
        assert self._file.read() == b""
        self.close()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def begin(*flags: str) -> Process:
        started.append(Process(tmp_path, *flags))
        started[-1].wait_until_ready()
        return started[-1]

    yield begin
    for process in started:
        if process.is_running:
            for pid in (process.pid, *process.workers()):
                os.kill(pid, signal.SIGCONT)
            process.kill()


def can_hold_handshakes() -> bool:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listening.hold_handshakes(listener)


@pytest.mark.extended
@pytest.mark.skipif(
    not can_hold_handshakes(),
    reason="holding handshakes needs CAP_NET_ADMIN (Linux since commit 5d39580f68e6)",
)
@pytest.mark.parametrize("flags", KINDS.values(), ids=KINDS.keys())
def test_clients_that_go_on_sending_are_all_answered(
    start: Callable[..., Process], flags: tuple[str, ...]
) -> None:
    """Each client sends on one connection after the other, until the port is closed."""
    server = start(*DRAIN, *flags)
    failures: list[BaseException] = []
    sending = threading.Semaphore(0)

    def go_on() -> None:
        try:
            while True:
                try:
                    client = Client(server)
                except ConnectionRefusedError:
                    return
                client.send_until_closed(sending.release)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=go_on) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for _ in range(10 * CLIENTS):
        sending.acquire()
    os.kill(server.pid, signal.SIGTERM)
    for thread in threads:
        thread.join()
    code, errors = server.end()
    assert failures == []
    assert (code, "in hand" in errors) == (0, False)


@pytest.mark.extended
@pytest.mark.parametrize("flags", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_connections_that_wait_to_be_accepted_are_answered(
    start: Callable[..., Process], flags: tuple[str, ...]
) -> None:
    """SIGTERM comes while the processes are suspended, and the system makes connections for them."""
    server = start(*DRAIN, *flags)
    serving = server.workers() or [server.pid]
    for pid in serving:
        os.kill(pid, signal.SIGSTOP)
    clients = [Client(server) for _ in range(CLIENTS)]
    for client in clients:
        client.send()
    os.kill(server.pid, signal.SIGTERM)
    for pid in serving:
        os.kill(pid, signal.SIGCONT)

    def finish(client: Client) -> None:
        if client.read() == "close":
            client.read_end()
        else:  # answered before the process saw the signal
            client.send_until_closed()

    with ThreadPoolExecutor(
        CLIENTS
    ) as threads:  # a worker stops when all of its clients have gone, the first one last
        list(threads.map(finish, clients))
    assert server.end()[0] == 0


def stop_begins(server: Process) -> Client:
    """Send SIGTERM. Returns another connection, once the server is stopping."""
    idle, active = Client(server), Client(server)
    idle.send()
    assert idle.read() == ""
    os.kill(server.pid, signal.SIGTERM)
    active.send_until_closed()
    return idle


@pytest.mark.extended
@pytest.mark.parametrize("flags", [(), ("--tls-self-signed",)], ids=["plain", "TLS"])
def test_a_request_on_an_idle_connection_is_answered(
    start: Callable[..., Process], flags: tuple[str, ...]
) -> None:
    server = start(*DRAIN, *flags)
    idle = stop_begins(server)
    idle.send()
    assert idle.read() == "close"
    idle.read_end()
    assert server.end()[0] == 0


@pytest.mark.extended
@pytest.mark.parametrize("flags", [(), ("--tls-self-signed",)], ids=["plain", "TLS"])
def test_connections_that_stay_idle_are_ended_and_not_reset(
    start: Callable[..., Process], flags: tuple[str, ...]
) -> None:
    server = start("--drain-seconds", "0.01", *flags)
    idle = Client(server)
    idle.send()
    assert idle.read() == ""
    unread = Client(server)
    os.kill(server.pid, signal.SIGTERM)
    idle.read_end()
    assert server.end()[0] == 0
    unread.read_end()


def test_a_tls_handshake_that_has_begun_is_waited_for(start: Callable[..., Process]) -> None:
    server = start(*DRAIN, "--tls-self-signed")
    raw = socket.create_connection(address_of(server), timeout=PATIENCE_S)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = _context().wrap_bio(incoming, outgoing)
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    raw.sendall(outgoing.read())
    incoming.write(raw.recv(65536))  # the server has accepted the connection, and answers the handshake
    stop_begins(server).close()

    def until_done(step: Callable[[], object]) -> object:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                received = raw.recv(65536)
                assert received
                incoming.write(received)
            else:
                raw.sendall(outgoing.read())
                return done

    until_done(tls.do_handshake)
    tls.write(GET)
    raw.sendall(outgoing.read())
    reply = until_done(lambda: tls.read(65536))
    assert b"\r\nConnection: close\r\n" in reply  # type: ignore[operator]
    raw.close()
    assert server.end()[0] == 0


def test_failed_handshakes_leave_nothing_open(start: Callable[..., Process]) -> None:
    server = start("--tls-self-signed")
    folder = Path(f"/proc/{server.pid}/fd")
    Client(server).close()
    before = len([*folder.iterdir()])
    for _ in range(50):
        plain = socket.create_connection(address_of(server), timeout=PATIENCE_S)
        plain.sendall(GET)
        while plain.recv(65536):
            pass
        plain.close()
    Client(server).close()
    assert len([*folder.iterdir()]) <= before + 2  # the last connections may not be closed yet

"""A server on a socket that a service manager keeps open: clients connect while it restarts (sd_listen_fds(3))."""

from __future__ import annotations

import http.client
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.running import Process
from tests.support.waiting import PATIENCE_S

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
# As systemd does: the socket is descriptor 3, and LISTEN_PID names the process after fork and before exec.
PASS_ON = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "tablegate.socket", "LISTEN_PID": str(os.getpid())}
os.execv(sys.executable, [sys.executable, "-m", "tablegate", *sys.argv[2:]])
"""


@pytest.fixture
def kept() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def serve(folder: Path, kept: socket.socket, *flags: str) -> Process:
    """Start a server with the socket, as the service manager would."""
    number = kept.fileno()
    command = (sys.executable, "-c", PASS_ON, str(number))
    return Process(folder, *(flags or ("--memory",)), command=command, descriptors=(number,))


def answer(client: socket.socket) -> int:
    response = http.client.HTTPResponse(client)
    response.begin()
    return response.status


@pytest.mark.parametrize("flags", [("--memory",), ("--memory", "--tls-self-signed")], ids=["plain", "TLS"])
def test_the_server_listens_where_the_manager_does(
    tmp_path: Path, kept: socket.socket, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    server = serve(tmp_path, kept, *flags)
    try:
        assert server.url == f"{'https' if flags[1:] else 'http'}://127.0.0.1:{kept.getsockname()[1]}"
    finally:
        server.terminate()
    assert not list(temporary.iterdir()), "the key of the self-signed certificate"


@pytest.mark.parametrize("stop", [Process.terminate, Process.kill])
def test_a_client_that_connects_during_a_restart_is_answered(
    tmp_path: Path, kept: socket.socket, stop: Callable[[Process], object]
) -> None:
    server = serve(tmp_path, kept)
    server.wait_until_ready()
    stop(server)
    with socket.create_connection(kept.getsockname(), timeout=PATIENCE_S) as client:
        client.sendall(GET)
        server = serve(tmp_path, kept)
        try:
            assert answer(client) == 200
        finally:
            server.terminate()


def test_workers_leave_the_socket_open(tmp_path: Path, kept: socket.socket) -> None:
    flags = ("--workers", "2", "--database", f"sqlite:///{tmp_path}/x.sqlite")
    for _ in range(2):
        server = serve(tmp_path, kept, *flags)
        try:
            with socket.create_connection(kept.getsockname(), timeout=PATIENCE_S) as client:
                client.sendall(GET)
                assert answer(client) == 200
        finally:
            assert server.terminate()[0] == 0


def test_a_descriptor_that_does_not_listen_is_named(tmp_path: Path) -> None:
    with socket.socket() as idle:
        code, errors = serve(tmp_path, idle).end()
    assert code == 1
    assert "cannot use the sockets of the service manager (LISTEN_FDS)" in errors


def test_the_variables_of_another_process_are_ignored(tmp_path: Path, kept: socket.socket) -> None:
    server = Process(tmp_path, "--memory", environment={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    try:
        assert server.url and not server.url.endswith(f":{kept.getsockname()[1]}")
    finally:
        server.terminate()

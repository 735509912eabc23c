"""The server that a process of tests uses: one at a time, always on one port.

Clients that are made once, at import or by a cache, reach it in every test. The pytest plugin and `mock_aws` share it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

from tablegate.testing.client_checks import CLIENT_CHECKS
from tablegate.testing.control import ControlError
from tablegate.testing.server import Server, ServerFailed

_BEGINNING = "tablegate-beginning"
# A clock cannot go back, so a server is replaced if its clock was moved further than this.
_CLOCK_SLACK_MS = 1000


class ProcessServer:
    """A server in its initial state for each test. Other settings, or a moved clock, replace the running server."""

    def __init__(self) -> None:
        self.defaults: dict[str, Any] = {}
        """Settings of a server for which no others are given."""
        self.holder = ""
        """The scope of the fixture `tablegate` while it is in use, otherwise ""."""
        self._server: Server | None = None
        self._settings: dict[str, Any] = {}
        self._reservation: socket.socket | None = None
        self._port = 0
        self._owner = 0

    def begin(self, settings: dict[str, Any] | None = None) -> Server:
        """Return a server with these settings in its initial state. Start it if there is none."""
        wanted = dict(self.defaults if settings is None else settings)
        server = self._begin(wanted)
        CLIENT_CHECKS.begin("" if "namespaces" in wanted else server.url)
        return server

    @contextlib.contextmanager
    def hold(self, scope: str) -> Iterator[None]:
        """Keep the server of the fixture within the block, also where `mock_aws` begins."""
        self.holder = scope
        try:
            yield
        finally:
            self.holder = ""

    def begin_mock(self, settings: dict[str, Any]) -> Server:
        """Return the server of a mock, in its initial state. `settings`: those that the ini file does not have.

        It is the server of the fixture, if that is in use: as it is, if the fixture belongs to the test alone.
        """
        if not self.holder or self._server is None:
            return self.begin({**settings, **self.defaults})
        return self._server if self.holder == "function" else self.begin(self._settings)

    def _begin(self, wanted: dict[str, Any]) -> Server:
        server = self._server
        if server is None or wanted != self._settings or not _can_go_on(server):
            return self._start(wanted)
        server.control.unfreeze()
        server.control.clear_faults()
        server.control.record(0)
        server.control.forget_requests()
        if _has_beginning(wanted):
            server.control.load(_BEGINNING)
        else:
            server.control.reset()
        return server

    @property
    def current(self) -> Server | None:
        """The server as it is, or None before the first one."""
        return self._server

    def stop(self) -> None:
        """Stop the server and release its port."""
        if self._owner != os.getpid():  # a fork of the process that started it
            return
        self._stop_server()
        if self._reservation is not None:
            self._reservation.close()
        self._reservation, self._port = None, 0

    def _start(self, wanted: dict[str, Any]) -> Server:
        self._stop_server()
        if not self._port:
            self._reserve_port()
        settings = {"port": self._port, **wanted}
        if "database" in wanted and _has_beginning(wanted):
            _empty(settings)
        server = Server(**settings).start()
        if _has_beginning(wanted):
            server.control.save(_BEGINNING)
        else:
            server.control.reset()  # a database keeps the tables of an earlier run
        self._server, self._settings = server, wanted
        return server

    def _stop_server(self) -> None:
        if self._server is not None:
            self._server.stop()
        self._server = None

    def _reserve_port(self) -> None:
        """Choose a free port. On Linux it stays bound, so that no other process gets it between two servers."""
        self._reservation = socket.socket()
        self._reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reservation.bind(("127.0.0.1", 0))
        self._port, self._owner = self._reservation.getsockname()[1], os.getpid()
        atexit.register(self.stop)
        if sys.platform != "linux":
            self._reservation.close()


PROCESS_SERVER = ProcessServer()


def _has_beginning(settings: dict[str, Any]) -> bool:
    """True if the initial state is not empty."""
    return not {"seed", "start_from"}.isdisjoint(settings)


def _empty(settings: dict[str, Any]) -> None:
    """Remove the tables of an earlier run from the database. Load `start_from` here: a server does so only once.

    Raises ServerFailed.
    """
    path = settings.pop("start_from", None)
    with Server(**{name: value for name, value in settings.items() if name != "seed"}) as server:
        server.control.reset()
        if path is not None:
            try:
                server.control.import_snapshot(_BEGINNING, path)
            except (ControlError, OSError) as error:
                raise ServerFailed(f"start_from: {error}") from None
            server.control.load(_BEGINNING)


def _can_go_on(server: Server) -> bool:
    """True if the server is running and its clock is close to real time."""
    if server.pid is None:
        return False
    try:
        return abs(server.control.clock()["ahead_ms"]) <= _CLOCK_SLACK_MS
    except OSError:
        return False  # a test has killed it

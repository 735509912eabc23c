"""Live servers for tests: in a thread of this process (fast), or in a separate process (can be killed).

The gateway has two entries: the built-in server, and any WSGI server (here werkzeug's). Tests use the first by default.
They use the other on request, or if TABLEGATE_TEST_ENTRY is `wsgi` (`make test-wsgi`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import flask
import jinja2
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.test import run_wsgi_app

from tablegate.adapters.azuretable import dialect as azuretable
from tablegate.adapters.dynamodb import dialect as dynamodb
from tablegate.adapters.tablestore import dialect as tablestore
from tablegate.gateway.app import application_of, create_app, mount
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.http import messages
from tablegate.gateway.http.flask_bridge import WSGI_REQUEST
from tablegate.gateway.http.messages import Reply, Request, environ_of
from tablegate.gateway.observability.audit import AuditTrail
from tablegate.gateway.server import listening, server, server_process
from tablegate.gateway.server.background import BackgroundWork
from tablegate.gateway.server.server_process import lane_of
from tablegate.gateway.wiring import connect, open_store
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
EVERY_DIALECT = (
    dynamodb.DynamoDB,
    tablestore.TableStore,
    azuretable.AzureTable,
)  # Azure takes what no other dialect matches
ENTRIES = ("server", "wsgi")
ENTRY = os.environ.get("TABLEGATE_TEST_ENTRY", "server")
beyond_wsgi = pytest.mark.skipif(
    ENTRY == "wsgi", reason="WSGI joins repeated headers and drops the body of a HEAD"
)


OWN_CREDENTIALS = {"credentials_period": 3600.0}
"""Settings of a server whose credentials a test replaces. Otherwise it would load the stored ones after a change of grants."""


@dataclass
class Running:
    """A server in a thread of this process."""

    url: str
    port: int
    app: flask.Flask
    settings: Settings
    _thread: threading.Thread
    _tell: Callable[[], object]

    def request_stop(self) -> None:
        """Request a stop, as SIGTERM does."""
        with contextlib.suppress(RuntimeError):  # its loop has just been closed: it has stopped by itself
            self._tell()

    def stop(self) -> None:
        """Stop it and wait until it has."""
        self.request_stop()
        self._thread.join()


def start(database_url: str, entry: str = ENTRY, **settings: Any) -> Running:
    """A server on a database that has been migrated, with its background work. `entry`: one of ENTRIES."""
    made = load({"database": database_url, "port": 0, "drain_seconds": 0.0, **settings}, {})
    opened = open_store(made, connect(made))
    app = create_app(made, opened)
    app.jinja_env.undefined = jinja2.StrictUndefined  # a template that names an absent attribute fails
    background = BackgroundWork(
        opened.engine,
        opened.credential_store,
        application_of(app).gateway.credentials,
        made.background_cpu_share,
        opened.quota_keeper(application_of(app).gateway.quotas),
        made.credentials_period,
        made.background_cpu_share,
    )

    def finish() -> None:
        background.stop()
        opened.close()

    running = start_app(app, lane_of(made), finish) if entry == "server" else start_plain(app, finish)
    background.start()
    return running


def start_app(
    app: flask.Flask,
    lane: str = "inline",
    finish: Any = lambda: None,
    trail: AuditTrail | None = None,
    telemetry: Any = None,
) -> Running:
    """A server of an application that is there already. `finish` is called after it has stopped."""
    settings = application_of(app).gateway.settings
    bound = listening.bind(settings.host, settings.port)
    port = bound.getsockname()[1]
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def main() -> bool:
        state["told"], state["loop"] = asyncio.Event(), asyncio.get_running_loop()
        return await server_process.serve_until_stopped(
            server.ServerContext(application_of(app), partial(messages.call_wsgi, app), trail, telemetry),
            server_process.ListenAddress([bound], lane),
            ready.set,
            state["told"],
        )

    def work() -> None:
        try:
            server_process.run_in_loop(main())
        finally:
            ready.set()
            finish()

    thread = threading.Thread(target=work, name="server")
    thread.start()
    ready.wait()

    def tell() -> None:
        state["loop"].call_soon_threadsafe(state["told"].set)

    return Running(f"http://127.0.0.1:{port}", port, app, settings, thread, tell)


def start_plain(app: flask.Flask, finish: Any = lambda: None) -> Running:
    """Start the application under werkzeug's WSGI server, without the gateway's own server."""
    settings = application_of(app).gateway.settings
    plain = make_server(settings.host, settings.port, app, threaded=True, request_handler=_Quiet)

    def work() -> None:
        try:
            plain.serve_forever(poll_interval=0.01)
        finally:
            plain.server_close()
            finish()

    thread = threading.Thread(target=work, name="plain server")
    thread.start()
    return Running(f"http://127.0.0.1:{plain.port}", plain.port, app, settings, thread, plain.shutdown)


class _Quiet(WSGIRequestHandler):
    """Request handler without logging. It accepts chunked bodies, which HTTP/1.1 requires."""

    protocol_version = "HTTP/1.1"

    def log(self, *_: Any) -> None:
        pass

    def finish(self) -> None:
        """Read what the client sends after its reply. Werkzeug waits for it for 10 ms. To close earlier than a client that is
        slower would reset the connection, and the client could lose the reply.
        """
        super().finish()
        self.connection.settimeout(PATIENCE_S)
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while self.connection.recv(1 << 16):
                pass


def plain_app(gateway: Gateway, *create: Callable[[Gateway], Dialect]) -> flask.Flask:
    """Return the application of these dialects on an engine that a test created."""
    return mount(Application(gateway, [each(gateway) for each in create]))


def call_plainly(app: flask.Flask, request: Request) -> Reply:
    """Return the application's reply to a request as a generic WSGI server passes it."""
    environ = environ_of(request)
    del environ[WSGI_REQUEST]
    body, status, headers = run_wsgi_app(app, environ, buffered=True)
    # The length is a server's to add (gateway.http.messages.Reply).
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return Reply(int(status[:3]), kept, b"".join(body))


class Process:
    """`tablegate serve` as a separate process with its own folder. Flags are those of the command line."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        environment: dict[str, str] | None = None,
        command: tuple[str, ...] = (sys.executable, "-m", "tablegate"),
        descriptors: tuple[int, ...] = (),
    ) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        self._process = subprocess.Popen(
            [*command, "serve", "--port", "0", *flags],
            cwd=folder,
            env={**clean, "PYTHONPATH": str(ROOT), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        """The first line that it printed; "" if it did not get that far."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def workers(self) -> list[int]:
        """Return the worker processes of the supervisor, if there are several."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads of the process and of its workers."""
        tasks = [task for pid in (self.pid, *self.workers()) for task in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> str:
        """Return the output up to the moment when the server accepts requests."""
        assert self._process.stdout is not None
        lines = []
        with self._killed_when_late():
            for line in self._process.stdout:
                lines.append(line)
                if line.startswith("health:"):
                    return "".join(lines)
        raise AssertionError(f"the server did not start: {self.end()}")

    def wait_for_error(self, *words: str) -> None:
        """Read standard error until these have been seen, one after the other."""
        assert self._process.stderr is not None
        with self._killed_when_late():
            for word in words:
                while word not in (line := self._process.stderr.readline()):
                    assert line, f"the server ended without saying: {word}"

    @contextlib.contextmanager
    def _killed_when_late(self) -> Iterator[None]:
        """Kill a server that does not print the expected line, so that the test fails instead of waiting forever."""
        timer = threading.Timer(PATIENCE_S, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def terminate(self) -> tuple[int, str]:
        """Send SIGTERM. Returns the exit code and the text on standard error."""
        self._process.send_signal(signal.SIGTERM)
        return self.end()

    def kill(self) -> None:
        """SIGKILL: as a crash."""
        self._process.kill()
        self.end()

    def end(self) -> tuple[int, str]:
        """Wait for it to end by itself."""
        _, errors = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, errors


def free_port() -> int:
    """Return an unused port below the range from which the system assigns ports to other programs."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


Begin = Callable[..., Process]


@contextlib.contextmanager
def processes(folder: Path, *always: str) -> Iterator[Begin]:
    """Start server processes on a database: `begin(url, *flags)`. Those that still run are killed at the end."""
    started: list[Process] = []

    def begin(database_url: str, *flags: str) -> Process:
        process = Process(folder, "--database", database_url, *always, *flags)
        started.append(process)
        process.wait_until_ready()
        return process

    yield begin
    for process in started:
        if process.is_running:
            os.kill(process.pid, signal.SIGCONT)  # a test may have stopped it
            process.kill()

"""One server process: it opens the database, adds initial data, builds the application, serves, and closes everything.

A server consists of one such process or of several workers (workers.py), each with its own connections to the database. The
initial data are the credentials, a snapshot and a seed named in the settings. Each addition is recorded in the audit.

The process runs an event loop with settings of the interpreter and the allocator. Memory freed by a request is kept for the next
one. A page of rows takes several megabytes, and a tick holds those of many requests. By default, glibc returns such memory to
the system at once. Each further tick then pays for page faults, a third of the cost of sixteen readers of pages.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tablegate.gateway.application import Application
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialects.dialect import BadSeed
from tablegate.gateway.http import messages
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import SNAPSHOTS
from tablegate.gateway.observability import audit, logs
from tablegate.gateway.server import server, workers
from tablegate.gateway.server.background import BackgroundWork
from tablegate.gateway.server.listening import Certificate
from tablegate.gateway.server.relay import RelaySocket
from tablegate.gateway.server.server import Server, ServerContext
from tablegate.gateway.server.startup_errors import StartupError
from tablegate.gateway.wiring import OpenDatabase, connect, open_store, wire

if TYPE_CHECKING:
    from tablegate.gateway.observability.telemetry import Telemetry


# glibc's numbers for mallopt (malloc.h).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 64 << 20
_LARGEST_BYTES = 32 << 20  # glibc's maximum, larger blocks are mapped separately


def keep_freed_memory() -> bool:
    """Keep up to 64 MiB of freed memory instead of returning it. Return True if the C library supports it (glibc
    does)."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Set both, because setting either disables the automatic growth of the other.
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, _LARGEST_BYTES))


# A collection stops all threads. The second number bounds one of the middle generation: 40,000 objects take 4 ms.
_GC_THRESHOLDS = (10_000, 4, 100)
# The longest time, for each thread that computes, until the event loop's thread has the interpreter again. A request
# needs it several times. Python's default is 5 ms.
_SWITCH_INTERVAL_S = 0.0005


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address and mode of a server.

    - `lane`: the ticker's (tick.py)
    - `relay`: the writer's socket, if several processes use a database that only one of them writes
    - `is_writer`: this process writes
    - `is_shared`: other processes accept connections from the same sockets, or will do so
    """

    sockets: list[socket.socket]
    lane: str
    tls: ssl.SSLContext | None = None
    relay: RelaySocket | None = None
    is_writer: bool = True
    is_shared: bool = False


async def serve_until_stopped(
    context: ServerContext,
    listen_address: ListenAddress,
    ready: Callable[[], None],
    stop_requested: asyncio.Event,
) -> bool:
    """Serve until `stop_requested` is set. Call `ready` once requests are being answered.

    Return False if requests were left unanswered. Threads may still run them.
    """
    relay = listen_address.relay
    server = Server(
        context, listen_address.lane, relay.path if relay and not listen_address.is_writer else ""
    )
    if relay is not None and listen_address.is_writer:
        await server.listen_to_readers(relay.listening)
    await server.listen(listen_address.sockets, listen_address.tls)
    ready()
    await stop_requested.wait()
    return await server.stop(listen_address.is_shared)


def run_event_loop(
    context: ServerContext,
    listen_address: ListenAddress,
    ready: Callable[[], None],
    reload: Callable[[], None],
) -> bool:
    """Serve until SIGTERM or SIGINT. Return what `serve` returns. SIGHUP calls `reload`, starting just before
    `ready`."""

    async def main() -> bool:
        stop_requested = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop_requested.set)
        # Objects made so far are permanent, so further collections need not scan them. A last collection would take 10
        # ms and find a dozen objects.
        gc.freeze()
        # Requests make few reference cycles, while a batch of 25 items makes thousands of objects.
        gc.set_threshold(*_GC_THRESHOLDS)
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        keep_freed_memory()

        def begin() -> None:
            loop.add_signal_handler(signal.SIGHUP, reload)
            ready()

        return await serve_until_stopped(context, listen_address, begin, stop_requested)

    return run_in_loop(main())


def run_in_loop(main: Coroutine[None, None, bool]) -> bool:
    """Run a coroutine as asyncio.run does, on uvloop if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)


def add_initial_data(settings: Settings, open_database: OpenDatabase) -> None:
    """Add the initial credentials and tables. Raises StartupError, BadSetting, BadCredential."""
    sources = [
        name
        for name, value in (("--from", settings.start_from), ("--seed", settings.seed))
        if value is not None
    ]
    _remove_unfinished_snapshots(open_database)
    if settings.credentials_file is None and not sources:
        return
    with contextlib.ExitStack() as stack:
        if settings.audit:
            from tablegate.gateway.observability.audit_sinks import recording

            try:
                stack.enter_context(recording(settings, open_database.store))
            except OSError as error:
                raise audit_unavailable(settings, error) from None
        if settings.credentials_file is not None:
            open_database.credential_store.add_first(settings.credentials_file)
        if sources:
            _add_tables(settings, open_database)
        for name in sources:
            audit.record_operation(f"serve {name}", (), "done")


def audit_unavailable(settings: Settings, error: OSError) -> StartupError:
    """Return the error for an audit file that cannot be written."""
    return StartupError(f"cannot write the audit {settings.audit}: {error.strerror}")


def _remove_unfinished_snapshots(open_database: OpenDatabase) -> None:
    with open_database.store.read() as session:
        names = open_database.store.catalog.namespaces(session)
    if any(name.startswith(SNAPSHOTS) for name in names):
        from tablegate.gateway.control import snapshots

        snapshots.remove_unfinished(
            open_database.engine, open_database.store.database.shared, time.time_ns() // 1_000_000
        )


def _add_tables(settings: Settings, open_database: OpenDatabase) -> None:
    """Add the tables of the snapshot and of the seed. Raises BadSetting."""
    from tablegate.gateway.control import documents, seeds, snapshots

    dialects = wire(settings, open_database).loaded_dialects()
    try:
        if settings.start_from is not None:
            snapshots.start_from(open_database.engine, settings.start_from)
    except (documents.BadRequest, documents.OperationRejected, GatewayError, OSError) as error:
        raise BadSetting(f"{{}} {settings.start_from}: {error}", "start_from") from None
    try:
        if settings.seed is not None:
            seeds.from_folder(dialects, settings.seed)
    except BadSeed as error:
        raise BadSetting(f"{{}}: {error}", "seed") from None


class ServerProcess:
    """A server process, from the open database to the end of `run`."""

    def __init__(
        self,
        settings: Settings,
        sockets: list[socket.socket],
        metrics_socket: socket.socket | None,
        tls: Certificate | None,
        announce: Callable[[Application], None],
        relay: RelaySocket | None = None,
        open_database: OpenDatabase | None = None,
        are_sockets_inherited: bool = False,
    ) -> None:
        """Open the database and build the application.

        - `announce`: called when requests are being answered
        - `relay`: the writer's socket, if several processes use a SQLite file. The first process writes
        - `open_database`: the database, if it is already open
        - `are_sockets_inherited`: a service manager keeps the sockets open
        """
        self._are_sockets_shared = are_sockets_inherited or workers.is_worker()
        self._settings = settings
        self._sockets = sockets
        self._metrics_socket = metrics_socket
        self._tls = tls
        self._announce = announce
        self._relay = relay
        self._is_writer = relay is None or workers.is_first()
        self._opened = open_database or open_store(
            settings, connect(settings, reads_only=not self._is_writer)
        )
        self._application = wire(settings, self._opened)
        self._trail = _trail(settings, self._opened)
        self._telemetry = _telemetry(settings, self._opened)
        self._background = BackgroundWork(
            self._opened.engine,
            self._opened.credential_store,
            self._application.gateway.credentials,
            # The share is for the whole server, not for each process.
            settings.background_cpu_share if workers.is_first() else 0.0,
            self._application.quota_keeper,
            settings.credentials_period,
            settings.background_cpu_share,
        )

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, then close the database. Exits the process if a thread is blocked."""
        context = server.ServerContext(
            self._application, _wsgi_caller(self._application), self._trail, self._telemetry
        )
        listen_address = ListenAddress(
            self._sockets,
            lane_of(self._settings),
            self._tls.context if self._tls is not None else None,
            self._relay,
            self._is_writer,
            self._are_sockets_shared,
        )
        is_clean = run_event_loop(context, listen_address, self._ready, self._reload)
        if self._trail is not None:
            audit.stop()
        if self._telemetry is not None:
            self._telemetry.close()
        if not is_clean:
            # A thread is blocked in the database. A normal exit of the interpreter would wait for it.
            logging.shutdown()
            os._exit(1)
        self._background.stop()
        self._opened.close()

    def _ready(self) -> None:
        if self._tls is not None:
            # The parent has read the certificate at its start. A SIGHUP before this process handled it is lost, so
            # reload now.
            _reload_certificate(self._tls)
            self._tls.watch_expiry()
        self._background.start()
        if workers.is_first() and self._metrics_socket is not None:
            _serve_metrics(self._application, self._metrics_socket)
        self._announce(self._application)

    def _reload(self) -> None:
        """Reload credentials and certificates, at SIGHUP."""
        self._background.look_at_credentials_now()
        if self._tls is not None:
            if not _reload_certificate(self._tls):
                return
            self._tls.check_expiry(time.time())
        logs.info("credentials and certificates were reloaded")


def lane_of(settings: Settings) -> str:
    """Return the lane for the setting, with `auto` resolved. For measurements see docs/architecture.md, "The tick"."""
    if settings.database_thread != "auto":
        return settings.database_thread
    return "inline" if settings.database.startswith("sqlite") else "thread"


def _reload_certificate(tls: Certificate) -> bool:
    """Reload the certificate. Log an error and return False if it cannot be used."""
    try:
        tls.reload()
    except OSError as error:
        logs.error(
            "the certificate cannot be loaded, so the previous one stays in use", None, reason=str(error)
        )
        return False
    return True


def _trail(settings: Settings, open_database: OpenDatabase) -> audit.AuditTrail | None:
    """Open the audit, if it is enabled. Raises StartupError."""
    if not settings.audit:
        return None
    from tablegate.gateway.observability.audit_sinks import trail_of

    try:
        trail = trail_of(settings, open_database.store)
    except OSError as error:
        raise audit_unavailable(settings, error) from None
    if trail is not None:
        audit.start(trail)
    return trail


def _telemetry(settings: Settings, open_database: OpenDatabase) -> Telemetry | None:
    """Start OpenTelemetry, if it is enabled. Raises StartupError."""
    make = telemetry_class(settings)
    if make is None:
        return None
    telemetry = make()
    open_database.store.database.trace_statements(telemetry.statement)
    return telemetry


def telemetry_class(settings: Settings) -> type[Telemetry] | None:
    """Import the class that exports traces and metrics. None if that is disabled. Raises StartupError if its packages
    are not installed."""
    if not settings.otel:
        return None
    try:
        from tablegate.gateway.observability.telemetry import Telemetry
    except ImportError as error:
        raise StartupError(f"otel: pip install 'tablegate[otel]' ({error.name} is not installed)") from None
    return Telemetry


def _wsgi_caller(application: Application) -> Callable[[Request], Reply]:
    """Return a function that calls the WSGI application. Its first call imports Flask, which many test servers never
    need."""
    lock = threading.Lock()

    @cache
    def make() -> messages.WSGIApplication:
        from tablegate.gateway.app import mount

        return mount(application)

    def call(request: Request) -> Reply:
        with lock:
            wsgi_application = make()
        return messages.call_wsgi(wsgi_application, request)

    return call


def _serve_metrics(application: Application, metrics_socket: socket.socket) -> None:
    """Serve /metrics on its own port, from a daemon thread."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    from tablegate.gateway.app import metrics_app

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            """Omit the log line of each metrics request."""

    metrics_socket.setblocking(True)
    host, port = metrics_socket.getsockname()[:2]
    http_server = make_server(
        host,
        port,
        metrics_app(application.gateway),
        threaded=True,
        request_handler=Quiet,
        fd=metrics_socket.fileno(),
    )
    threading.Thread(target=http_server.serve_forever, name="metrics", daemon=True).start()

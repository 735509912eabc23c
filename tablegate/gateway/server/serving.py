"""The start of a server, from its settings.

The steps are: check the settings, lock the database, migrate, add initial data, listen, announce and serve.
server_process.py runs one process, and workers.py several.
"""

from __future__ import annotations

import atexit
import contextlib
import ipaddress
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tablegate.gateway import __version__
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.checks import is_exposed, is_loopback
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.control.health import PATHS
from tablegate.gateway.dialects.adapter import check_dialects
from tablegate.gateway.observability import logs
from tablegate.gateway.server import listening, workers
from tablegate.gateway.server.file_lock import FileLock
from tablegate.gateway.server.relay import RelaySocket
from tablegate.gateway.server.server_process import ServerProcess, add_initial_data, telemetry_class
from tablegate.gateway.server.startup_errors import PortTaken, StartupError
from tablegate.gateway.store.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening import prepare_file
from tablegate.gateway.wiring import OpenDatabase, connect, open_store, wire

_OWN_DESCRIPTORS = 512


class StartupMessage:
    """The messages of a server on standard output. Commands that replace other programs print their own."""

    def ready(
        self,
        settings: Settings,
        dialects: Application,
        sockets: list[socket.socket],
        metrics_socket: socket.socket | None,
    ) -> None:
        """Print the addresses once requests are being answered. Nothing is printed if the start fails.

        The first line is the URL, for callers that chose a free port.
        """
        urls = [_url(settings, sock) for sock in sockets]
        if settings.print_json:
            print(_addresses_json(urls, metrics_socket), flush=True)
        else:
            print(urls[0])
            _print_endpoints(settings, dialects, urls, metrics_socket)

    def closed(self) -> None:
        """Called after the last reply, when no process listens any more."""


_ANNOUNCEMENT = StartupMessage()


def serve(settings: Settings, announcement: StartupMessage = _ANNOUNCEMENT) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError, LockAlreadyHeld, NewerDatabase, BadSetting, BadCredential."""
    logs.configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to reload
    _check_exposure(settings)
    check_dialects(settings)
    if settings.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, name="standard input", daemon=True).start()
    _allow_descriptors(settings.max_connections)
    handover = workers.take_handover()
    if handover is not None:
        _replace_worker(settings, handover)
        return
    with _database_lock(settings):
        tls = _certificate(settings)
        database = connect(settings)
        migrate(database, logs.info)
        open_database = open_store(settings, database)
        add_initial_data(settings, open_database)
        inherited = _inherited_sockets()
        sockets = inherited or [_bind(settings.host, port, flag) for port, flag in _ports(settings)]
        metrics_socket = _metrics_socket(settings)

        def announce(application: Application) -> None:
            announcement.ready(settings, application, sockets, metrics_socket)

        if settings.workers > 1:
            _supervise(settings, sockets, metrics_socket, tls, announce, open_database, bool(inherited))
        else:
            ServerProcess(
                settings, sockets, metrics_socket, tls, announce,
                open_database=open_database, are_sockets_inherited=bool(inherited),
            ).run()  # fmt: skip
            announcement.closed()


def _supervise(
    settings: Settings,
    sockets: list[socket.socket],
    metrics_socket: socket.socket | None,
    tls: listening.Certificate | None,
    announce: Callable[[Application], None],
    open_database: OpenDatabase,
    are_sockets_inherited: bool,
) -> None:
    """Run several workers until SIGTERM or SIGINT. `announce` is called once all of them serve."""
    # Wrong settings are reported here, once, and not by each worker.
    application = wire(settings, open_database)
    telemetry_class(settings)
    open_database.close()
    relay = _relay() if settings.database_path is not None else None
    try:
        workers.supervise(
            settings.workers,
            lambda ready: ServerProcess(settings, sockets, metrics_socket, tls, ready, relay).run(),
            lambda: announce(application),
            sockets,
            None if metrics_socket is None else metrics_socket.fileno(),
            settings.drain_seconds + settings.stop_seconds,
            # A replacement could not find the writer's socket of the other workers.
            can_replace=relay is None,
            are_sockets_inherited=are_sockets_inherited,
        )
    finally:
        if relay is not None:
            relay.remove()


def _replace_worker(settings: Settings, handover: workers.WorkerHandover) -> None:
    """Serve as the replacement of a worker, on the sockets of the running server.

    Raises StartupError if the database needs a migration, which could break workers of an earlier release.
    """
    database = connect(settings)
    revision, newest = revision_of(database), steps()[-1]
    if revision != newest:
        raise StartupError(
            f"the schema is {revision}, and this release has {newest}: run `tablegate migrate` first"
        )
    sockets = [socket.socket(fileno=descriptor) for descriptor in handover.sockets]
    metrics_socket = (
        None if handover.metrics_descriptor is None else socket.socket(fileno=handover.metrics_descriptor)
    )

    def announce(_: Application) -> None:
        workers.tell_ready(handover.ready)

    tls, open_database = _certificate(settings), open_store(settings, database)
    ServerProcess(settings, sockets, metrics_socket, tls, announce, open_database=open_database).run()


def _relay() -> RelaySocket:
    folder = tempfile.mkdtemp(prefix="tablegate-relay-")
    try:
        return RelaySocket.make(folder)
    except OSError as error:
        os.rmdir(folder)
        raise StartupError(f"cannot make a socket in {folder} (TMPDIR): {error}") from None


def _stop_with_stdin() -> None:
    """Stop this process when its standard input is closed at the other end, for example after a kill of the parent."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _print_endpoints(
    settings: Settings, dialects: Application, urls: list[str], metrics_socket: socket.socket | None
) -> None:
    """Print how to configure each SDK for this server."""
    lines = [f"tablegate {__version__} on {without_password(settings.database)}, auth {settings.auth}"]
    if settings.memory:
        lines.append("in memory: nothing is kept after the server stops")
    if settings.auth == "strict":
        lines += [] if dialects.gateway.credentials.are_stored else first_credential(settings)
    else:
        hints = [dialect.hint.replace("{url}", urls[0]) for dialect in dialects.dialects if dialect.hint]
        lines += [f"  {hint}" for hint in hints]
    lines += [f"also on {url}" for url in urls[1:]]
    if metrics_socket is not None:
        lines.append(f"metrics on {_metrics_url(metrics_socket)}")
    lines.append("health: " + ", ".join(sorted(PATHS)))
    print("\n".join(lines), flush=True)


def first_credential(settings: Settings) -> list[str]:
    """Return lines that say how to store the first credential, with the key that encrypts it."""
    lines = ["only stored credentials are accepted, and there is none. To add one that may do everything:"]
    if settings.memory:
        return [
            *lines,
            "  restart with --credentials-file FILE: no other process can open a database in memory",
        ]
    command = (
        f"  tablegate credentials add KEY --all --database {shlex.quote(without_password(settings.database))}"
    )
    if settings.secret_key_file is not None:
        return [*lines, f"{command} --secret-key-file {shlex.quote(str(settings.secret_key_file.resolve()))}"]
    if settings.secret_key:
        return [*lines, command, "  with the TABLEGATE_SECRET_KEY of this server"]
    if settings.database_path is None:
        restart = "  restart with --secret-key-file FILE, a file of 32 random characters. Then:"
        return [*lines, restart, f"{command} --secret-key-file FILE"]
    return [
        *lines,
        command,
        f"  Its secret is encrypted with the key in {settings.database_path}.key. Keep a copy of it",
    ]


def _addresses_json(urls: list[str], metrics_socket: socket.socket | None) -> str:
    """Return the addresses of this server as one line of JSON."""
    return json.dumps(
        {
            "url": urls[0],
            "azure_url": urls[1] if len(urls) > 1 else None,
            "metrics_url": None if metrics_socket is None else _metrics_url(metrics_socket),
            "pid": os.getpid(),
            "version": __version__,
        }
    )


def _metrics_url(metrics_socket: socket.socket) -> str:
    host, port = metrics_socket.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _check_exposure(settings: Settings) -> None:
    """Raise StartupError if auth `dev`, which accepts every caller, would be reachable from other machines by
    mistake."""
    if is_exposed(settings):
        raise StartupError(
            f"auth is dev, which accepts any AWS access key, and {settings.host} is reachable from other machines: "
            "use --auth strict with stored credentials, or allow it with --insecure"
        )


def _allow_descriptors(connections: int) -> None:
    """Raise the soft limit of open files, usually 1,024, to twice the connections and a reserve for the database.

    Connections in a TLS handshake are not counted as connections yet, so the same number is reserved for them.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * connections + _OWN_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))


@contextlib.contextmanager
def _database_lock(settings: Settings) -> Iterator[None]:
    """Lock the SQLite file, if there is one, for this server while the context is open."""
    path = settings.database_path
    if path is None:
        yield
        return
    prepare_file(path)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        logs.info(
            "the database file is accessible to other users: remove their permissions with chmod",
            path=str(path),
            mode=f"{mode:04o}",
        )
    try:
        lock = FileLock(path)
    except OSError as error:
        raise StartupError(f"cannot lock the database {path}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def _ports(settings: Settings) -> list[tuple[int, str]]:
    ports = ((settings.port, "--port"), (settings.azure_port, "--azure-port"))
    return [(port, flag) for port, flag in ports if port is not None]


def _inherited_sockets() -> list[socket.socket]:
    try:
        return listening.inherited()
    except (OSError, ValueError) as error:
        raise StartupError(f"cannot use the sockets of the service manager (LISTEN_FDS): {error}") from None


def _bind(host: str, port: int, flag: str) -> socket.socket:
    try:
        return listening.bind(host, port)
    except OSError as error:
        raise PortTaken(host, port, error.strerror or str(error), flag) from None


def _metrics_socket(settings: Settings) -> socket.socket | None:
    """Return the socket of the separate /metrics port, or None. It binds to a loopback address if the server does
    not."""
    if settings.metrics_port is None:
        return None
    host = settings.host if is_loopback(settings.host) else "127.0.0.1"
    return _bind(host, settings.metrics_port, "--metrics-port")


def _certificate(settings: Settings) -> listening.Certificate | None:
    if not settings.is_secure:
        return None
    certificate, key = settings.tls_cert, settings.tls_key
    if settings.tls_self_signed:
        folder = settings.database_path.parent if settings.database_path else _temporary_folder()
        certificate, key = listening.make_self_signed_certificate(folder, settings.host)
    assert certificate is not None
    assert key is not None
    try:
        return listening.Certificate(certificate, key)
    except OSError as error:
        raise StartupError(f"cannot use the certificate {certificate}: {error}") from None


def _temporary_folder() -> Path:
    """Return a new folder that is removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="tablegate-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _url(settings: Settings, sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    scheme = "https" if settings.is_secure else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

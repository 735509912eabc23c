"""The start of a server, from its settings: check them, lock the database, migrate, add initial data, listen, announce, serve.

Knows the order of these steps and what is printed. One process is in server_process.py, several are in workers.py.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from tablegate.gateway import __version__
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.health import PATHS
from tablegate.gateway.observability import logs
from tablegate.gateway.server import certificates, listening, workers
from tablegate.gateway.server.file_lock import FileLock
from tablegate.gateway.server.initial_data import add_initial_data
from tablegate.gateway.server.relay import RelaySocket
from tablegate.gateway.server.server_process import ServerProcess
from tablegate.gateway.server.startup_errors import PortTaken, StartupError
from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.opening import prepare_file
from tablegate.gateway.wiring import connect, open_store

_OWN_DESCRIPTORS = 512


class StartupMessage:
    """What a server prints of itself on standard output. Command lines of other programs have words of their own."""

    def bound(self, settings: Settings, sockets: list[socket.socket]) -> None:
        """The database is ready and the sockets are bound: clients may connect. The first line is the URL, for whoever asked
        for a free port."""
        print(_url(settings, sockets[0]), flush=True)

    def ready(
        self,
        settings: Settings,
        dialects: Application,
        sockets: list[socket.socket],
        figures: socket.socket | None,
    ) -> None:
        """Requests are being answered."""
        _tell(settings, dialects, [_url(settings, each) for each in sockets], figures)

    def closed(self) -> None:
        """All that was accepted is answered, and nobody listens any more."""


_ANNOUNCEMENT = StartupMessage()


def serve(settings: Settings, announcement: StartupMessage = _ANNOUNCEMENT) -> None:
    """Serve until SIGTERM or SIGINT. Raises StartupError, LockAlreadyHeld, NewerDatabase, BadSetting, BadCredential."""
    logs.configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again
    _check_exposure(settings)
    if settings.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, name="standard input", daemon=True).start()
    _allow_descriptors(settings.max_connections)
    inherited = workers.inherited()
    if inherited is not None:
        _replace_worker(settings, inherited)
        return
    with _sole_owner(settings):
        tls = _certificate(settings)
        database = connect(settings)
        migrate(database)
        opened = open_store(settings, database)
        add_initial_data(settings, opened)
        sockets = [_bind(settings.host, port) for port in _ports(settings)]
        metrics_socket = _metrics_socket(settings)
        announcement.bound(settings, sockets)

        def announce(application: Application) -> None:
            if workers.is_first():
                announcement.ready(settings, application, sockets, metrics_socket)

        if settings.workers > 1:
            opened.close()
            relay = _relay() if settings.database_path is not None else None
            workers.supervise(
                settings.workers,
                lambda: ServerProcess(settings, sockets, metrics_socket, tls, announce, relay).run(),
                sockets,
                None if metrics_socket is None else metrics_socket.fileno(),
                settings.drain_seconds + settings.stop_seconds,
                # A program that replaces a worker would have to find the others' socket of the writer.
                may_replace=relay is None,
            )
            if relay is not None:
                relay.remove()
        else:
            ServerProcess(settings, sockets, metrics_socket, tls, announce, opened=opened).run()
            announcement.closed()


def _replace_worker(settings: Settings, inherited: workers.WorkerHandover) -> None:
    """Serve in the place of a worker of a running server, on its sockets. The other workers may be of an earlier release. Raises
    StartupError if the database is not migrated for this release: a migration could break them."""
    database = connect(settings)
    found, wanted = revision_of(database), steps()[-1]
    if found != wanted:
        raise StartupError(
            f"the schema is {found}, and this release has {wanted}: run `tablegate migrate` first"
        )
    sockets = [socket.socket(fileno=descriptor) for descriptor in inherited.sockets]
    metrics_socket = None if inherited.figures is None else socket.socket(fileno=inherited.figures)

    def announce(_: Application) -> None:
        os.write(inherited.ready, b".")
        os.close(inherited.ready)

    tls, opened = _certificate(settings), open_store(settings, database)
    ServerProcess(settings, sockets, metrics_socket, tls, announce, opened=opened).run()


def _relay() -> RelaySocket:
    folder = tempfile.mkdtemp(prefix="tablegate-relay-")
    try:
        return RelaySocket.make(folder)
    except OSError as error:
        os.rmdir(folder)
        raise StartupError(f"cannot make a socket in {folder} (TMPDIR): {error}") from None


def _stop_with_stdin() -> None:
    """Tell this process to stop when nobody has the other end of its standard input any more, killed or not."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _tell(settings: Settings, dialects: Application, urls: list[str], figures: socket.socket | None) -> None:
    """Print how each SDK is pointed at this server."""
    lines = [f"tablegate {__version__} on {without_password(settings.database)}, auth {settings.auth}"]
    if settings.memory:
        lines.append("in memory: nothing is kept")
    lines += [f"  {dialect.hint.replace('{url}', urls[0])}" for dialect in dialects.dialects if dialect.hint]
    if settings.auth == "strict":
        lines.append("with the keys of `tablegate credentials`, none others are known")
    lines += [f"also on {url}" for url in urls[1:]]
    if figures is not None:
        host, port = figures.getsockname()[:2]
        lines.append(f"metrics on http://{f'[{host}]' if ':' in host else host}:{port}/metrics")
    lines.append("health: " + ", ".join(sorted(PATHS)))
    print("\n".join(lines), flush=True)


def _check_exposure(settings: Settings) -> None:
    """Raise StartupError where auth `dev`, which lets everybody in, would be had from other machines by oversight."""
    if is_exposed(settings):
        raise StartupError(
            f"auth is dev, which takes any AWS access key, and {settings.host} can be reached from elsewhere: "
            "use --auth strict with stored credentials, or say --insecure if you mean it"
        )


def is_exposed(settings: Settings) -> bool:
    """Whether everybody would be let in from other machines, though nobody has said so."""
    return settings.auth == "dev" and not settings.insecure and not is_loopback(settings.host)


def _allow_descriptors(connections: int) -> None:
    """Raise the soft limit of open files, usually 1,024, so that the database can be opened while as many clients as may be
    are connected. Connections in a TLS handshake are not counted yet, so there is room for as many of these."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * connections + _OWN_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def is_loopback(host: str) -> bool:
    """Whether an address to listen on, or a name, can be reached from this machine alone."""
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


@contextlib.contextmanager
def _sole_owner(settings: Settings) -> Iterator[None]:
    """Within it the SQLite file, if there is one, is locked for this server."""
    path = settings.database_path
    if path is None:
        yield
        return
    prepare_file(path)
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        logs.info(
            "others than its owner may read the database or write it", path=str(path), mode=f"{mode:04o}"
        )
    try:
        lock = FileLock(path)
    except OSError as error:
        raise StartupError(f"cannot lock the database {path}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def _ports(settings: Settings) -> list[int]:
    return [settings.port] + ([settings.azure_port] if settings.azure_port is not None else [])


def _bind(host: str, port: int) -> socket.socket:
    try:
        return listening.bind(host, port)
    except OSError as error:
        raise PortTaken(host, port, error.strerror or str(error)) from None


def _metrics_socket(settings: Settings) -> socket.socket | None:
    """The socket of the port for /metrics alone, on a loopback address whatever the server listens on; None if there is no
    such port."""
    if settings.metrics_port is None:
        return None
    return _bind(settings.host if is_loopback(settings.host) else "127.0.0.1", settings.metrics_port)


def _certificate(settings: Settings) -> certificates.Certificate | None:
    if not settings.is_secure:
        return None
    certificate, key = settings.tls_cert, settings.tls_key
    if settings.tls_self_signed:
        folder = (
            settings.database_path.parent
            if settings.database_path
            else Path(tempfile.mkdtemp(prefix="tablegate-"))
        )
        certificate, key = certificates.make_self_signed(folder, settings.host)
    assert certificate is not None
    assert key is not None
    try:
        return certificates.Certificate(certificate, key)
    except OSError as error:
        raise StartupError(f"cannot use the certificate {certificate}: {error}") from None


def _url(settings: Settings, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    scheme = "https" if settings.is_secure else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

"""From settings to a process that serves: refuse what is unsafe, take the lock, migrate, listen, tell, serve, leave.

Knows the order of these steps and what is printed. How several processes are kept is in workers.py.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gateway import __version__, certificates, logs, metrics, server, workers
from gateway.app import OWN_PATHS, Mounted, Opened, connect, create_app, mounted, open_store
from gateway.chores import Chores
from gateway.database_urls import without_password
from gateway.file_lock import FileLock
from gateway.settings import Settings
from gateway.store.migrating import migrate


class Refused(Exception):
    """The gateway will not start like this. The text says what to do."""


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises Refused, AlreadyHeld, NewerDatabase, BadSetting, BadCredential."""
    logs.configure(settings.log_level)
    _check_exposure(settings)
    with _sole_owner(settings):
        tls = _tls_context(settings)
        database = connect(settings)
        migrate(database)
        opened = open_store(settings, database)
        if settings.credentials_file is not None:
            opened.vault.add_first(settings.credentials_file)
        sockets = [_bind(settings.host, port) for port in _ports(settings)]
        # The first line, for whoever asked for a free port.
        print(_url(settings, sockets[0]), flush=True)
        if settings.workers > 1:
            opened.close()
            workers.supervise(
                settings.workers, lambda: _work(settings, sockets, tls, None), settings.stop_seconds
            )
        else:
            _work(settings, sockets, tls, opened)


def _work(
    settings: Settings, sockets: list[socket.socket], tls: ssl.SSLContext | None, opened: Opened | None
) -> None:
    """What one server process does; a worker opens the database for itself."""
    opened = opened or open_store(settings, connect(settings))
    app = create_app(settings, opened)
    dialects = mounted(app)
    share = (
        settings.background_share if workers.is_first() else 0.0
    )  # of the server, not of each of its processes
    chores = Chores(opened.engine, opened.vault, dialects.house.credentials, share)

    def ready() -> None:
        chores.start()
        if workers.is_first():
            _tell(settings, dialects, [_url(settings, each) for each in sockets])

    is_clean = server.run(app, server.Place(sockets, lane_of(settings), tls), ready)
    if not is_clean:
        # A thread is stuck in the database, and would be waited for at the end of the interpreter.
        logging.shutdown()
        os._exit(1)
    chores.stop()
    opened.close()


def _tell(settings: Settings, dialects: Mounted, urls: list[str]) -> None:
    """How to point each SDK here."""
    if settings.metrics_port is not None:
        metrics.serve(settings.host, settings.metrics_port)
    lines = [f"tablegate {__version__} on {without_password(settings.database)}, auth {settings.auth}"]
    if settings.memory:
        lines.append("in memory: nothing is kept")
    lines += [f"  {dialect.hint.replace('{url}', urls[0])}" for dialect in dialects.dialects if dialect.hint]
    if settings.auth == "strict":
        lines.append("with the keys of `tablegate credentials`, none others are known")
    lines += [f"also on {url}" for url in urls[1:]]
    lines.append("health: " + ", ".join(sorted(OWN_PATHS)))
    print("\n".join(lines), flush=True)


def lane_of(settings: Settings) -> str:
    """The lane that `auto` means; measured, see docs/architecture.md section 5."""
    if settings.lane != "auto":
        return settings.lane
    return "inline" if settings.database.startswith("sqlite") else "thread"


def _check_exposure(settings: Settings) -> None:
    """Auth `dev` lets everybody in: not to be had from elsewhere by oversight."""
    if settings.auth == "dev" and not settings.insecure and not _is_loopback(settings.host):
        raise Refused(
            f"auth is dev, which takes any AWS access key, and {settings.host} can be reached from elsewhere: "
            "use --auth strict with stored credentials, or say --insecure if you mean it"
        )


def _is_loopback(host: str) -> bool:
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address).partition("%")[0]).is_loopback for address in found)


@contextlib.contextmanager
def _sole_owner(settings: Settings) -> Iterator[None]:
    """The lock beside a SQLite file."""
    path = settings.database_path
    if path is None:
        yield
        return
    if not path.parent.is_dir():
        raise Refused(f"the folder of the database, {path.parent}, is not there")
    lock = FileLock(path.with_name(path.name + ".lock"))
    try:
        yield
    finally:
        lock.release()


def _ports(settings: Settings) -> list[int]:
    return [settings.port] + ([settings.azure_port] if settings.azure_port is not None else [])


def _bind(host: str, port: int) -> socket.socket:
    try:
        return server.bind(host, port)
    except OSError as error:
        raise Refused(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


def _tls_context(settings: Settings) -> ssl.SSLContext | None:
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
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise Refused(f"cannot use the certificate {certificate}: {error}") from None
    return context


def _url(settings: Settings, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    scheme = "https" if settings.is_secure else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

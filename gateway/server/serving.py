"""From settings to a process that serves: refuse what is unsafe, take the lock, migrate, listen, tell, serve, leave.

Knows the order of these steps and what is printed. How several processes are kept is in workers.py.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablegate.gateway import __version__
from tablegate.gateway.application import Application
from tablegate.gateway.background import BackgroundWork
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialect import BadSeed
from tablegate.gateway.health import PATHS
from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.namespaces import SNAPSHOTS
from tablegate.gateway.observability import audit, logs
from tablegate.gateway.server import certificates, listening, server, workers, wsgi
from tablegate.gateway.server.file_lock import FileLock
from tablegate.gateway.server.relay import RelaySocket
from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.opening import prepare_file
from tablegate.gateway.wiring import OpenDatabase, connect, open_store, wire

if TYPE_CHECKING:
    from tablegate.gateway.observability.telemetry import Telemetry

_OWN_DESCRIPTORS = 512


class Refused(Exception):
    """The gateway will not start like this. The text says what to do."""


class PortTaken(Refused):
    """A port that somebody else has."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host} port {port}: {reason}")
        self.host, self.port = host, port


class Announcement:
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


_ANNOUNCEMENT = Announcement()


def serve(settings: Settings, announcement: Announcement = _ANNOUNCEMENT) -> None:
    """Serve until SIGTERM or SIGINT. Raises Refused, AlreadyHeld, NewerDatabase, BadSetting, BadCredential."""
    logs.configure(settings.log_level)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to read again
    _check_exposure(settings)
    if settings.stop_with_stdin:
        threading.Thread(target=_stop_with_stdin, name="standard input", daemon=True).start()
    _allow_descriptors(settings.max_connections)
    inherited = workers.inherited()
    if inherited is not None:
        _take_a_place(settings, inherited)
        return
    with _sole_owner(settings):
        tls = _certificate(settings)
        database = connect(settings)
        migrate(database)
        opened = open_store(settings, database)
        _furnish(settings, opened)
        sockets = [_bind(settings.host, port) for port in _ports(settings)]
        figures = _metrics_socket(settings)
        announcement.bound(settings, sockets)

        def ready(*served: Any) -> None:
            if workers.is_first():
                announcement.ready(*served)

        if settings.workers > 1:
            opened.close()
            relay = _relay() if settings.database_path is not None else None
            workers.supervise(
                settings.workers,
                lambda: _work(settings, sockets, figures, tls, None, ready, relay),
                sockets,
                None if figures is None else figures.fileno(),
                settings.drain_seconds + settings.stop_seconds,
                # A program that is started in a worker's place would have to find the others' way to the writer.
                may_replace=relay is None,
            )
            if relay is not None:
                relay.remove()
        else:
            _work(settings, sockets, figures, tls, opened, ready)
            announcement.closed()


def _take_a_place(settings: Settings, inherited: workers.Inherited) -> None:
    """Serve on the sockets of a server that runs, in the place of one of its workers, which may be of an earlier release. Raises
    Refused where the database is not ready for this one: it serves others, who are not to be surprised."""
    database = connect(settings)
    found, wanted = revision_of(database), steps()[-1]
    if found != wanted:
        raise Refused(f"the schema is {found}, and this release has {wanted}: run `tablegate migrate` first")
    sockets = [socket.socket(fileno=descriptor) for descriptor in inherited.sockets]
    figures = None if inherited.figures is None else socket.socket(fileno=inherited.figures)

    def ready(*_: Any) -> None:
        os.write(inherited.ready, b".")
        os.close(inherited.ready)

    _work(settings, sockets, figures, _certificate(settings), open_store(settings, database), ready)


def _relay() -> RelaySocket:
    folder = tempfile.mkdtemp(prefix="tablegate-relay-")
    try:
        return RelaySocket.make(folder)
    except OSError as error:
        os.rmdir(folder)
        raise Refused(f"cannot make a socket in {folder} (TMPDIR): {error}") from None


def _work(
    settings: Settings,
    sockets: list[socket.socket],
    figures: socket.socket | None,
    tls: certificates.Certificate | None,
    opened: OpenDatabase | None,
    announce: Callable[[Settings, Application, list[socket.socket], socket.socket | None], None],
    relay: RelaySocket | None = None,
) -> None:
    """What one server process does; a worker opens the database for itself. `announce` is called when requests are being
    answered. `relay`: of several on a SQLite file the first writes."""
    is_writer = relay is None or workers.is_first()
    opened = opened or open_store(settings, connect(settings, reads_only=not is_writer))
    dialects = wire(settings, opened)
    trail = _trail(settings, opened)
    telemetry = _telemetry(settings, opened)
    served = server.ServerContext(dialects, _application(dialects), trail, telemetry)
    share = (
        settings.background_share if workers.is_first() else 0.0
    )  # of the server, not of each of its processes
    gateway = dialects.gateway
    background = BackgroundWork(
        opened.engine,
        opened.credential_store,
        gateway.credentials,
        share,
        dialects.quota_keeper,
        settings.credentials_period,
        settings.background_share,
    )

    def ready() -> None:
        if tls is not None:
            # A SIGHUP that came earlier met nobody, and the process that forked this one has read the files at its own start.
            _read_again(tls)
            tls.watch_expiry()
        background.start()
        if workers.is_first() and figures is not None:
            _serve_metrics(dialects, figures)
        announce(settings, dialects, sockets, figures)

    def reload() -> None:
        background.look_at_credentials_now()
        if tls is not None:
            if not _read_again(tls):
                return
            tls.check_expiry(time.time())
        logs.info("credentials and certificates are read again")

    listen_address = server.ListenAddress(
        sockets,
        lane_of(settings),
        tls.context if tls is not None else None,
        relay,
        is_writer,
        workers.is_worker(),
    )
    is_clean = server.run(served, listen_address, ready, reload)
    if trail is not None:
        audit.stop()
    if telemetry is not None:
        telemetry.close()
    if not is_clean:
        # A thread is stuck in the database, and would be waited for at the end of the interpreter.
        logging.shutdown()
        os._exit(1)
    background.stop()
    opened.close()


def _furnish(settings: Settings, opened: OpenDatabase) -> None:
    """Make the credentials and the tables with which the server begins, and put them on record. Raises Refused, BadCredential."""
    planted = [
        name
        for name, value in (("--from", settings.start_from), ("--seed", settings.seed))
        if value is not None
    ]
    _remove_unfinished_snapshots(opened)
    if settings.credentials_file is None and not planted:
        return
    with contextlib.ExitStack() as stack:
        if settings.audit:
            from tablegate.gateway.observability.audit_sinks import recording

            try:
                stack.enter_context(recording(settings, opened.store))
            except OSError as error:
                raise _audit_refused(settings, error) from None
        if settings.credentials_file is not None:
            opened.credential_store.add_first(settings.credentials_file)
        if planted:
            _plant(settings, opened)
        for name in planted:
            audit.record_operation(f"serve {name}", (), "done")


def _remove_unfinished_snapshots(opened: OpenDatabase) -> None:
    with opened.store.read() as session:
        names = opened.store.catalog.namespaces(session)
    if any(name.startswith(SNAPSHOTS) for name in names):
        from tablegate.gateway.control import snapshots

        snapshots.remove_unfinished(opened.engine, opened.store.shared, time.time_ns() // 1_000_000)


def _audit_refused(settings: Settings, error: OSError) -> Refused:
    return Refused(f"cannot write the audit {settings.audit}: {error.strerror}")


def _plant(settings: Settings, opened: OpenDatabase) -> None:
    """Make the tables with which the server begins. Raises Refused."""
    from tablegate.gateway.control import answers, seeds, snapshots

    dialects = wire(settings, opened).dialects
    try:
        if settings.start_from is not None:
            snapshots.start_from(opened.engine, settings.start_from)
    except (answers.BadRequest, answers.Refused, GatewayError, OSError) as error:
        raise Refused(f"from {settings.start_from}: {error}") from None
    try:
        if settings.seed is not None:
            seeds.from_folder(dialects, settings.seed)
    except BadSeed as error:
        raise Refused(f"seed: {error}") from None


def _stop_with_stdin() -> None:
    """Tell this process to stop when nobody has the other end of its standard input any more, killed or not."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    os.kill(os.getpid(), signal.SIGTERM)


def _trail(settings: Settings, opened: OpenDatabase) -> audit.Trail | None:
    """Where what is done goes on record; it has begun. Raises Refused."""
    if not settings.audit:
        return None
    from tablegate.gateway.observability.audit_sinks import trail_of

    try:
        trail = trail_of(settings, opened.store)
    except OSError as error:
        raise _audit_refused(settings, error) from None
    if trail is not None:
        audit.start(trail)
    return trail


def _telemetry(settings: Settings, opened: OpenDatabase) -> Telemetry | None:
    """OpenTelemetry, if it is asked for; else nothing of it is imported. Raises Refused."""
    if not settings.otel:
        return None
    try:
        from tablegate.gateway.observability.telemetry import Telemetry
    except ImportError as error:
        raise Refused(f"otel: pip install 'tablegate[otel]' ({error.name} is not there)") from None
    telemetry = Telemetry()
    opened.store.database.trace_statements(telemetry.statement)
    return telemetry


def _application(dialects: Application) -> Callable[[Request], Reply]:
    """The WSGI application, called with a request. Flask is loaded and the application made when the first comes, since many
    servers of tests never need it."""
    lock = threading.Lock()

    @cache
    def made() -> wsgi.Application:
        from tablegate.gateway.app import mount

        return mount(dialects)

    def call(request: Request) -> Reply:
        with lock:
            application = made()
        return wsgi.call(application, request)

    return call


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


def lane_of(settings: Settings) -> str:
    """The lane that `auto` means; measured, see docs/architecture.md, "The tick"."""
    if settings.lane != "auto":
        return settings.lane
    return "inline" if settings.database.startswith("sqlite") else "thread"


def _check_exposure(settings: Settings) -> None:
    """Raise Refused where auth `dev`, which lets everybody in, would be had from other machines by oversight."""
    if is_exposed(settings):
        raise Refused(
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
        raise Refused(f"cannot lock the database {path}: {error.strerror}") from None
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


def _serve_metrics(dialects: Application, figures: socket.socket) -> None:
    """Serve /metrics on its own port, from a thread that ends with the process."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    from tablegate.gateway.app import metrics_app

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            """No line for each look at the figures."""

    figures.setblocking(True)
    host, port = figures.getsockname()[:2]
    made = make_server(
        host, port, metrics_app(dialects.gateway), threaded=True, request_handler=Quiet, fd=figures.fileno()
    )
    threading.Thread(target=made.serve_forever, name="metrics", daemon=True).start()


def _read_again(tls: certificates.Certificate) -> bool:
    """Whether the certificate could be used. If not, that is logged."""
    try:
        tls.reload()
    except OSError as error:
        logs.error("the certificate cannot be used, the last one stays", None, reason=str(error))
        return False
    return True


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
        raise Refused(f"cannot use the certificate {certificate}: {error}") from None


def _url(settings: Settings, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    scheme = "https" if settings.is_secure else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

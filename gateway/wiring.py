"""The wiring: settings -> store, engine, credentials -> dialects, in the order in which they are asked whose a request is.

Shows how everything is put together and does nothing else. Knows no web framework: a server that is asked through its tick
alone never loads one. The WSGI application on top of this is app.py.
"""

from __future__ import annotations

import hmac
import importlib
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gateway import logs, metrics
from gateway.clock import Clock
from gateway.control.access import CONSOLE, PREFIX
from gateway.control.watching import Watch
from gateway.database_urls import hosts_of
from gateway.dialect import Claims, Dialect, Gateway
from gateway.engine.engine import Engine, EngineOptions
from gateway.engine.reading import can_approximate
from gateway.http import Reply, Request
from gateway.late_dialect import LateDialect
from gateway.model.errors import Busy, GatewayError, LimitExceeded, NotAllowed, OutOfSpace
from gateway.model.fast_dataclasses import dataclass
from gateway.model.tables import Table
from gateway.quotas import QuotaKeeper, Quotas
from gateway.security.browsers import Browsers
from gateway.security.credential_store import CredentialStore
from gateway.security.credentials import Credentials
from gateway.security.secret_cipher import find_key
from gateway.settings import BadSetting, Settings
from gateway.store.databases import Database
from gateway.store.opening import open_database, open_replica
from gateway.store.store import Store

if TYPE_CHECKING:
    from gateway.model.rows import Row
    from gateway.model.writes import Write
    from gateway.store.backup_files import BackupDirectory
    from gateway.store.replicas import Lag, Replicas

# A statement that takes longer costs its server a look at whether it still answers.
_LEAST_SILENCE_MS = 1000
OWN_PATHS = frozenset(("/healthz", "/readyz", "/metrics"))


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that is open: its store, its engine and its credentials."""

    store: Store
    engine: Engine
    credential_store: CredentialStore
    clock: Clock

    def quota_keeper(self, quotas: Quotas) -> QuotaKeeper:
        """What takes up the stored quotas."""
        return QuotaKeeper(self.store, self.engine, quotas)

    def close(self) -> None:
        """Give back connections."""
        self.engine.close()


@dataclass(frozen=True, slots=True)
class Mounted:
    """The dialects of an application, in the order in which they are asked."""

    gateway: Gateway
    dialects: tuple[Dialect, ...]
    clock: Clock = field(default_factory=Clock)
    """The one that tables live by."""
    watch: Watch = field(init=False)
    _browsers: Browsers = field(init=False)

    def __post_init__(self) -> None:
        hosts = [dialect.service_hosts for dialect in self.dialects]
        settings = self.gateway.settings
        object.__setattr__(self, "_browsers", Browsers(settings, settings.auth == "dev", hosts))
        object.__setattr__(self, "watch", Watch(self.dialects, self.clock.now_ns, settings.recorded_requests))

    def dialect_of(self, request: Request) -> Dialect | None:
        """The dialect that a request speaks; None: it is for the gateway itself, or for nobody."""
        if request.path.startswith(PREFIX) or (
            request.method in ("GET", "HEAD") and request.path in OWN_PATHS
        ):
            return None
        for dialect in self.dialects:
            if dialect.claims(request):
                return dialect
        return None

    def own_reply(self, request: Request) -> Reply | None:
        """/healthz: the process answers; /readyz: the database does too, on a read connection, and has room for writes as far
        as is known; /metrics, unless it has a port of its own; the control API. None: the request asks for none of these."""
        if request.path.startswith(CONSOLE):
            return None
        if request.path.startswith(PREFIX) and self.gateway.settings.control:
            from gateway.control.routes import Routes

            return Routes(self.gateway, self.clock, self.watch).reply(request)
        if request.method not in ("GET", "HEAD"):
            return None
        if request.path == "/healthz":
            return text_reply(200, "ok")
        if request.path == "/metrics" and self.gateway.settings.metrics_port is None:
            return figures(self.gateway, request, is_public=self.gateway.settings.auth == "strict")
        if request.path != "/readyz":
            return None
        try:
            self.gateway.engine.ping()
        except OutOfSpace as error:
            return text_reply(503, f"writes are refused: {error}")
        except Exception as error:
            logs.error("not ready", None, reason=repr(error))
            return text_reply(503, "the database does not answer")
        replicas = self.gateway.engine.replicas
        lags = [] if replicas is None else replicas.lags()
        return text_reply(200, "\n".join(["ready", *map(_replica_line, lags)]))

    def turn_away(self, request: Request) -> Reply | None:
        """The refusal of a request that a foreign page may have sent, which that page cannot read; None: it may go on. Both
        entries ask this before anything else."""
        known = request.header_map
        host, origin = known.get("host", ""), known.get("origin", "")
        if self._browsers.lets_in(host, origin, known.get("sec-fetch-site", "")):
            return None
        try:
            self._browsers.check(request)
        except NotAllowed as error:
            status, headers, body = self.refuse(request, error)
            return Reply(
                status,
                [header for header in headers if not header[0].lower().startswith("access-control-")],
                body,
            )
        return None

    def refuse(self, request: Request, error: Exception) -> Reply:
        """The reply to a request that the gateway itself refuses, in the words of its dialect if it has one."""
        try:
            dialect = self.dialect_of(request)
            reply = dialect.refuse(request, error) if dialect is not None else None
        except Exception as second:
            logs.error("a dialect could not word a refusal", second, request_id=request.id)
            reply = None
        return reply or plain_refusal(error)

    def refuse_and_log(self, request: Request, error: Exception) -> Reply:
        """The refusal of a request whose handling raised, and a line for what should not have happened."""
        reply = self.refuse(request, error)
        if reply.status >= 500:
            logs.error(
                "a request failed", None if isinstance(error, Busy) else error, reason=repr(error),
                request_id=request.id, method=request.method, path=request.path,
            )  # fmt: skip
        return reply


def connect(settings: Settings, reads_only: bool = False) -> Database:
    """Open the database that the settings name. Nothing is read from it yet. `reads_only`: see open_database."""
    url = settings.database
    if settings.memory:
        # SQLite's memdb shares one database in memory between the connections of this process that know its name.
        url = f"sqlite:///file:/tablegate-{secrets.token_hex(16)}?vfs=memdb&uri=true"
    return open_database(
        url,
        settings.synchronous,
        not settings.prepared_statements,
        reads_only=reads_only,
        silence_ms=max(_LEAST_SILENCE_MS, round(settings.failover_seconds * 1000)),
    )


def open_store(settings: Settings, database: Database) -> Opened:
    """The store and the engine on a database that has been migrated. Raises BadSetting."""
    if settings.vector_approximate_from and not can_approximate():
        raise BadSetting(
            "vector_approximate_from: needs numpy and usearch (pip install 'tablegate[vectors]')"
        )
    store = Store(database)
    store.backup_files = backup_files_of(settings)
    options = EngineOptions(
        control_plane_delay_ms=round(settings.control_plane_delay * 1000),
        sweep_period_s=settings.sweep_period,
        stream_shards=settings.stream_shards,
        stream_roll_ms=round(settings.stream_roll_hours * 3_600_000),
        failover_s=settings.failover_seconds,
        vector_memory_bytes=settings.vector_memory_bytes,
        vector_approximate_from=settings.vector_approximate_from,
        replication_lag_ms=settings.global_table_lag_ms,
    )
    clock = Clock()
    engine = Engine(store, options, clock.now_ns, _replicas(settings, database))
    return Opened(store, engine, CredentialStore(store, lambda: find_key(settings)), clock)


def backup_files_of(settings: Settings) -> BackupDirectory | None:
    """Where the settings let backups be kept as files; None: in the database."""
    path = settings.backup_directory
    if path is None:
        return None
    if not path.is_dir() or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise BadSetting(f"backup_directory: {path} is no directory that files can be written to")
    from gateway.store.backup_files import BackupDirectory  # a quick start needs no compression

    return BackupDirectory(path)


def _replicas(settings: Settings, primary: Database) -> Replicas | None:
    """The replicas that the settings name; None if they name none."""
    if not settings.replica:
        return None
    if primary.has_nodes:
        raise BadSetting(
            "replica: the database is distributed over several nodes, and a standby of one of them has a part of it only"
        )
    from gateway.store.replicas import Replica, Replicas

    pooled = not settings.prepared_statements
    opened = [Replica(open_replica(url, pooled), hosts_of(url)) for url in settings.replica]
    primary.notes_written = settings.replica_wait_ms > 0
    return Replicas(primary, opened, settings.replica_lag_ms, settings.replica_wait_ms)


def wire(settings: Settings, opened: Opened) -> Mounted:
    """The dialects that the settings name, on a database that is open."""
    quotas = Quotas(processes=settings.workers)
    opened.quota_keeper(quotas).look()
    gateway = Gateway(
        opened.engine,
        _credentials(settings, opened.credential_store),
        settings,
        opened.clock.now_ms,
        real_now_ms=lambda: time.time_ns() // 1_000_000,
        quotas=quotas,
    )
    dialects = tuple(_dialect(name, gateway) for name in settings.dialects)
    return Mounted(gateway, dialects, opened.clock)


def _credentials(settings: Settings, store: CredentialStore) -> Credentials:
    credentials = Credentials(settings)
    credentials.replace(store.load(), store.roles)
    credentials.keep_resource_policies(store.resource_policies)
    return credentials


def _module(name: str, part: str) -> ModuleType:
    """A module of an adapter, by the name that the settings give. Raises BadSetting if there is none.

    This is the one place where a module is found by its name: a dialect is a folder of adapters/ with a blueprint.py that
    has `create(gateway)` and `listed(table)`, and perhaps a claims.py (dialect.py); nothing under gateway/ knows more of it.
    """
    try:
        return importlib.import_module(f"adapters.{name}.{part}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"adapters.{name}.{part}".startswith(error.name):
            raise
        raise BadSetting(f"dialects: there is no adapter {name}") from None


def _dialect(name: str, gateway: Gateway) -> Dialect:
    settings = gateway.settings
    # Where everybody is let in, a server is started often and asked little. Any other loads all before it is asked, and
    # what it reads from files (keys of tokens) is read, or refused, at its start.
    if settings.auth == "dev" and settings.jwt_keys_file is None:
        claims = _claims(name)
        if claims is not None:
            if claims.index_view is not None:
                gateway.engine.register_view(name, claims.index_view)
            return cast(Dialect, LateDialect(claims, lambda: _create(name, gateway)))
    return _create(name, gateway)


def _create(name: str, gateway: Gateway) -> Dialect:
    dialect: Dialect = _module(name, "blueprint").create(gateway)
    return dialect


def _claims(name: str) -> Claims | None:
    """What is known of a dialect before it is loaded; None: it is loaded at once."""
    try:
        claims: Claims = _module(name, "claims").CLAIMS
    except BadSetting:
        return None
    return claims


Listing = Callable[[Table], tuple[str, str, str]]
"""How a dialect calls a table: its name, its key, its address (`listed` in adapters/*/blueprint.py)."""


def listings(settings: Settings) -> dict[str, Listing]:
    """Dialect -> how it calls tables."""
    return {name: _module(name, "blueprint").listed for name in sorted(settings.dialects)}


class Display(NamedTuple):
    """How a dialect shows rows to people (adapters/*/display.py): what its form is called; a row as a JSON document; a few lines
    of its SDK that read a table of a server at a URL; the write that puts a row of such a document (raises ValueError),
    where it can be written so."""

    form: str
    shown_row: Callable[[Table, Row], Any]
    snippet: Callable[[Table, str], str]
    put_of: Callable[[Table, Any], Write] | None


def displays(settings: Settings) -> dict[str, Display]:
    """Dialect -> how it shows rows."""
    made = {}
    for name in settings.dialects:
        module = _module(name, "display")
        made[name] = Display(module.FORM, module.shown_row, module.snippet, getattr(module, "put_of", None))
    return made


def figures(gateway: Gateway, request: Request, is_public: bool) -> Reply:
    """/metrics, to whoever has the token if there is one. The figures name tables, so without a token `is_public` has none."""
    token = gateway.settings.metrics_token
    if token:
        given = request.header("authorization").encode("latin-1")
        if not hmac.compare_digest(given, f"Bearer {token}".encode()):
            refusal = text_reply(401, "the metrics token is wanted: Authorization: Bearer ...")
            return refusal._replace(headers=(*refusal.headers, ("WWW-Authenticate", "Bearer")))
    elif is_public:
        return text_reply(403, "with auth strict: --metrics-token, or --metrics-port")
    body, content_type = metrics.exposition(_table_names(gateway))
    return Reply(200, (("Content-Type", content_type),), body)


def _table_names(gateway: Gateway) -> frozenset[str] | None:
    try:
        return gateway.engine.table_names()
    except Exception as error:
        logs.error("figures of dropped tables are kept", None, reason=repr(error))
        return None


def _replica_line(lag: Lag) -> str:
    behind = (
        "it is not known how far behind" if lag.milliseconds is None else f"{lag.milliseconds:.0f} ms behind"
    )
    return f"replica {lag.replica}: {behind}" + ("" if lag.is_used else ", left alone")


def text_reply(status: int, text: str) -> Reply:
    """A line of plain text, where no dialect has words."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())


def plain_refusal(error: Exception) -> Reply:
    """A refusal where no dialect has words for it."""
    match error:
        case LimitExceeded():
            return text_reply(413, f"the {error.what} is longer than {error.limit} bytes")
        case Busy():
            return text_reply(503, "try again")
        case NotAllowed():
            return text_reply(403, error.facts.get("text", "this is not allowed"))
        case GatewayError() | _:
            return text_reply(500, "internal error")

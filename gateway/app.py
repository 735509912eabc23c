"""The wiring: settings -> store, engine, credentials -> dialects -> one WSGI application.

Shows how everything is put together and does nothing else. Each dialect is a Flask application of its blueprint; one in
front of them answers the gateway's own paths and asks the dialects, in the order of the settings, whose a request is.
(Routes alone could not tell: `POST /PutRow` is a Table Store operation, or, in Azure's host style, an entity for a table.)
"""

from __future__ import annotations

import hmac
import importlib
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import flask

from gateway import handling, logs, metrics
from gateway.clock import Clock
from gateway.control.blueprint import PREFIX
from gateway.control.blueprint import create as create_control
from gateway.control.watching import Met, Watch
from gateway.dialect import Dialect, Gateway
from gateway.engine.engine import Engine, EngineOptions
from gateway.http import CUT, Reply, Request
from gateway.model.errors import Busy, GatewayError, LimitExceeded, NotAllowed, OutOfSpace
from gateway.model.tables import Table
from gateway.security.browsers import Browsers
from gateway.security.credential_store import CredentialStore
from gateway.security.credentials import Credentials
from gateway.security.secret_cipher import find_key
from gateway.server.flask_bridge import WSGI_REQUEST, current_request, flask_response, request_of
from gateway.settings import BadSetting, Settings
from gateway.store.databases import Database
from gateway.store.opening import open_database
from gateway.store.store import Store

_IS_CUT = "tablegate.cut"
OWN_PATHS = frozenset(("/healthz", "/readyz", "/metrics"))


@dataclass(frozen=True, slots=True)
class Opened:
    """A database that is open: its store, its engine and its credentials."""

    store: Store
    engine: Engine
    credential_store: CredentialStore
    clock: Clock

    def close(self) -> None:
        """Give back connections."""
        self.engine.close()


@dataclass(frozen=True, slots=True)
class Mounted:
    """The dialects of an application, in the order in which they are asked."""

    gateway: Gateway
    dialects: tuple[Dialect, ...]
    now_ns: Callable[[], int] = time.time_ns
    """The tables' clock."""
    watch: Watch = field(init=False)
    _browsers: Browsers = field(init=False)

    def __post_init__(self) -> None:
        hosts = [dialect.service_hosts for dialect in self.dialects]
        settings = self.gateway.settings
        object.__setattr__(self, "_browsers", Browsers(settings, settings.auth == "dev", hosts))
        object.__setattr__(self, "watch", Watch(self.dialects, self.now_ns, settings.recorded_requests))

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
        return reply or _plain_refusal(error)

    def refuse_and_log(self, request: Request, error: Exception) -> Reply:
        """The refusal of a request whose handling raised, and a line for what should not have happened."""
        reply = self.refuse(request, error)
        if reply.status >= 500:
            logs.error(
                "a request failed", None if isinstance(error, Busy) else error, reason=repr(error),
                request_id=request.id, method=request.method, path=request.path,
            )  # fmt: skip
        return reply


def connect(settings: Settings) -> Database:
    """Open the database that the settings name. Nothing is read from it yet."""
    url = settings.database
    if settings.memory:
        # SQLite's memdb shares one database in memory between the connections of this process that know its name.
        url = f"sqlite:///file:/tablegate-{secrets.token_hex(16)}?vfs=memdb&uri=true"
    return open_database(url, settings.synchronous, pooled=not settings.prepared_statements)


def open_store(settings: Settings, database: Database) -> Opened:
    """The store and the engine on a database that has been migrated."""
    store = Store(database)
    options = EngineOptions(
        control_plane_delay_ms=round(settings.control_plane_delay * 1000),
        sweep_period_s=settings.sweep_period,
        stream_shards=settings.stream_shards,
        stream_roll_ms=round(settings.stream_roll_hours * 3_600_000),
    )
    clock = Clock()
    engine = Engine(store, options, clock.now_ns)
    return Opened(store, engine, CredentialStore(store, lambda: find_key(settings)), clock)


def create_app(settings: Settings, opened: Opened | None = None) -> flask.Flask:
    """The gateway as an ordinary WSGI application, on a database that has been migrated."""
    opened = opened or open_store(settings, connect(settings))
    credentials = Credentials(settings, opened.credential_store.load())
    gateway = Gateway(
        opened.engine,
        credentials,
        settings,
        opened.clock.now_ms,
        real_now_ms=lambda: time.time_ns() // 1_000_000,
    )
    dialects = Mounted(
        gateway, tuple(_dialect(name, gateway) for name in settings.dialects), opened.clock.now_ns
    )
    app = mount(dialects)
    if settings.control:
        app.register_blueprint(create_control(gateway, opened.clock, dialects.watch))
    return app


def mounted(app: flask.Flask) -> Mounted:
    """What create_app mounted."""
    found: Mounted = app.extensions["tablegate"]
    return found


def mount(dialects: Mounted) -> flask.Flask:
    """One WSGI application of several dialects."""
    app = flask.Flask("tablegate", static_folder=None)
    app.extensions["tablegate"] = dialects
    _add_own_paths(app, dialects.gateway)
    app.wsgi_app = _Dispatch(app.wsgi_app, dialects)  # type: ignore[method-assign]
    return app


def _adapter(name: str) -> ModuleType:
    """The blueprint of an adapter, by the name that the settings give. Raises BadSetting.

    This is the one place where a module is found by its name: a dialect is a folder of adapters/ with a blueprint.py that
    has `create(gateway)` and `listed(table)` (dialect.py); nothing under gateway/ knows more of it.
    """
    try:
        return importlib.import_module(f"adapters.{name}.blueprint")
    except ModuleNotFoundError as error:
        if error.name is None or not f"adapters.{name}.blueprint".startswith(error.name):
            raise
        raise BadSetting(f"dialects: there is no adapter {name}") from None


def _dialect(name: str, gateway: Gateway) -> Dialect:
    dialect: Dialect = _adapter(name).create(gateway)
    return dialect


Listing = Callable[[Table], tuple[str, str, str]]
"""How a dialect calls a table: its name, its key, its address (`listed` in adapters/*/blueprint.py)."""


def listings(settings: Settings) -> dict[str, Listing]:
    """Dialect -> how it calls tables."""
    return {name: _adapter(name).listed for name in sorted(settings.dialects)}


class _Dispatch:
    """Hands a request to its dialect's Flask application."""

    def __init__(self, own: Callable[..., Iterable[bytes]], dialects: Mounted) -> None:
        self._own = own
        self._mounted = dialects
        self._apps = {dialect.name: _flask_of(dialect, dialects) for dialect in dialects.dialects}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = request_of(environ, b"")
        refusal = self._mounted.turn_away(request)
        if refusal is not None:
            return flask_response(refusal)(environ, start_response)
        dialect = self._mounted.dialect_of(request)
        application = self._own if dialect is None else self._apps[dialect.name].wsgi_app
        answer = application(environ, start_response)
        if _IS_CUT in environ:
            raise ConnectionAbortedError("a test wants no reply to this request")
        return answer


def _flask_of(dialect: Dialect, dialects: Mounted) -> flask.Flask:
    app = flask.Flask(f"tablegate.{dialect.name}", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = dialects.gateway.settings.max_body_bytes
    # A dialect's raw paths are its own business: no redirect from `//` to `/`.
    app.url_map.merge_slashes = False
    _watch(app, dialect, dialects.watch)
    app.register_blueprint(dialect.blueprint())

    @app.errorhandler(413)
    def too_long(error: Exception) -> flask.Response:
        # Our own server refuses such a body before Flask sees it (connection.py); others leave it to Flask.
        request = request_of(flask.request.environ, b"")
        limit = dialects.gateway.settings.max_body_bytes
        size = flask.request.content_length or limit + 1
        return flask_response(dialects.refuse(request, LimitExceeded("body", limit, size)))

    @app.errorhandler(500)
    def internal(error: Exception) -> flask.Response:
        cause = getattr(error, "original_exception", None) or error
        return flask_response(dialects.refuse_and_log(request_of(flask.request.environ, b""), cause))

    app.logger.disabled = True  # Flask has a line of its own for what the handler above has one for
    return app


def _watch(app: flask.Flask, dialect: Dialect, watch: Watch) -> None:
    """What server.py does with requests that are watched, under a WSGI server that is not ours."""

    @app.before_request
    def meet() -> flask.Response | None:
        if not watch.is_on or WSGI_REQUEST in flask.request.environ:
            return None
        request = current_request()
        flask.g.met = met = watch.meet(request, dialect)
        flask.g.handling = handling.current(met.handling)
        flask.g.handling.__enter__()
        time.sleep(met.latency_s)
        reply = met.instead()
        return None if reply is None else _sent(reply)

    @app.after_request
    def answered(response: flask.Response) -> flask.Response:
        met: Met | None = flask.g.get("met")
        if met is not None and met.answered(Reply(response.status_code, ())) is CUT:
            return _sent(CUT)
        return response

    @app.teardown_request
    def leave(error: BaseException | None) -> None:
        if "handling" in flask.g:
            flask.g.pop("handling").__exit__(None, None, None)


def _sent(reply: Reply) -> flask.Response:
    if reply is CUT:
        flask.request.environ[_IS_CUT] = True
        return flask.Response()
    return flask_response(reply)


def _add_own_paths(app: flask.Flask, gateway: Gateway) -> None:
    """Health and metrics. /healthz: the process answers; /readyz: the database does too, on a read connection, and has
    room for writes as far as is known."""

    @app.get("/healthz")
    def healthz() -> flask.Response:
        return flask_response(_text(200, "ok"))

    @app.get("/readyz")
    def readyz() -> flask.Response:
        try:
            gateway.engine.ping()
        except OutOfSpace as error:
            return flask_response(_text(503, f"writes are refused: {error}"))
        except Exception as error:
            logs.error("not ready", None, reason=repr(error))
            return flask_response(_text(503, "the database does not answer"))
        return flask_response(_text(200, "ready"))

    if gateway.settings.metrics_port is None:
        _add_metrics(app, gateway, is_public=gateway.settings.auth == "strict")

    @app.errorhandler(404)
    def missing(error: Exception) -> flask.Response:
        return flask_response(_text(404, "there is nothing here"))


def metrics_app(gateway: Gateway) -> flask.Flask:
    """/metrics alone, for a port of its own on a loopback address. Pages in a browser are kept out whatever auth is."""
    app = flask.Flask("tablegate.metrics", static_folder=None)
    browsers = Browsers(gateway.settings, is_open=True)
    _add_metrics(app, gateway, is_public=False)

    @app.before_request
    def turn_away() -> flask.Response | None:
        try:
            browsers.check(current_request())
        except NotAllowed as error:
            return flask_response(_plain_refusal(error))
        return None

    return app


def _add_metrics(app: flask.Flask, gateway: Gateway, is_public: bool) -> None:
    """The figures, to whoever has the token if there is one. They name tables, so without a token `is_public` has none."""
    token = gateway.settings.metrics_token

    @app.get("/metrics")
    def exposition() -> flask.Response:
        if token:
            given = current_request().header("authorization").encode("latin-1")
            if not hmac.compare_digest(given, f"Bearer {token}".encode()):
                refusal = _text(401, "the metrics token is wanted: Authorization: Bearer ...")
                return flask_response(
                    refusal._replace(headers=(*refusal.headers, ("WWW-Authenticate", "Bearer")))
                )
        elif is_public:
            return flask_response(_text(403, "with auth strict: --metrics-token, or --metrics-port"))
        body, content_type = metrics.exposition(_table_names(gateway))
        return flask_response(Reply(200, (("Content-Type", content_type),), body))


def _table_names(gateway: Gateway) -> frozenset[str] | None:
    try:
        return gateway.engine.table_names()
    except Exception as error:
        logs.error("figures of dropped tables are kept", None, reason=repr(error))
        return None


def _text(status: int, text: str) -> Reply:
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())


def _plain_refusal(error: Exception) -> Reply:
    match error:
        case LimitExceeded():
            return _text(413, f"the {error.what} is longer than {error.limit} bytes")
        case Busy():
            return _text(503, "try again")
        case NotAllowed():
            return _text(403, error.facts.get("text", "this is not allowed"))
        case GatewayError() | _:
            return _text(500, "internal error")

"""The WSGI application: a Flask application for each dialect, and one for the gateway's own paths.

A dispatcher in front of them finds the dialect of a request, in the order of the settings. Routes alone are ambiguous:
`POST /PutRow` is a Table Store operation, or an entity for a table in Azure's host style. The gateway's own server loads this
module at the first request that needs it.
"""

from __future__ import annotations

import atexit
import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import flask
from werkzeug.wsgi import get_content_length

from tablegate.gateway.application import Application, plain_refusal
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.console.blueprint import create as create_console
from tablegate.gateway.control.access import PREFIX
from tablegate.gateway.control.health import figures
from tablegate.gateway.control.interceptor import InterceptedRequest, RequestInterceptor
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.http import request_context
from tablegate.gateway.http.flask_bridge import (
    current_request,
    flask_response,
    request_of,
    request_without_body,
)
from tablegate.gateway.http.messages import CUT, WSGI_REQUEST, Reply, Request, text_reply
from tablegate.gateway.http.request_bodies import HEAD_FIRST_BYTES
from tablegate.gateway.model.errors import Busy, LimitExceeded, NotAllowed
from tablegate.gateway.observability import audit
from tablegate.gateway.security.browsers import OriginPolicy
from tablegate.gateway.wiring import OpenDatabase, connect, open_store, wire

_IS_CUT = "tablegate.cut"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def create_app(settings: Settings, open_database: OpenDatabase | None = None) -> flask.Flask:
    """Return the gateway as a WSGI application on a migrated database."""
    open_database = open_database or open_store(settings, connect(settings))
    if settings.audit:
        _audit(settings, open_database)
    return mount(wire(settings, open_database))


def _audit(settings: Settings, open_database: OpenDatabase) -> None:
    """Enable the audit log until the process ends."""
    from tablegate.gateway.observability.audit_sinks import recording

    stack = contextlib.ExitStack()
    stack.enter_context(recording(settings, open_database.store))
    atexit.register(stack.close)


def application_of(app: flask.Flask) -> Application:
    """Return the Application behind a WSGI application."""
    application: Application = app.extensions["tablegate"]
    return application


def mount(dialects: Application) -> flask.Flask:
    """Return one WSGI application for several dialects."""
    app = flask.Flask("tablegate", static_folder=None)
    app.extensions["tablegate"] = dialects
    _record_in_audit(app, None)
    _add_own_paths(app, dialects)
    if dialects.gateway.settings.console:
        app.register_blueprint(create_console(dialects.gateway, dialects.administration))
    app.wsgi_app = _DialectDispatcher(app.wsgi_app, dialects)  # type: ignore[method-assign]
    return app


class _DialectDispatcher:
    """The WSGI dispatcher of requests to the Flask applications of their dialects."""

    def __init__(self, own_app: Callable[..., Iterable[bytes]], dialects: Application) -> None:
        self._own = own_app
        self._application = dialects
        self._apps = {dialect.name: _flask_of(dialect, dialects) for dialect in dialects.loaded_dialects()}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = request_of(environ, b"")
        refusal = self._application.reject_cross_origin(request)
        if refusal is not None:
            return self._refuse(refusal, request, environ, start_response)
        dialect = self._application.dialect_of(request)
        application = self._own if dialect is None else self._apps[dialect.name].wsgi_app
        if WSGI_REQUEST in environ:  # the gateway's own server has received and counted the body
            answer = application(environ, start_response)
        else:
            answer = self._count_and_answer(application, request, environ, start_response)
        if _IS_CUT in environ:
            raise ConnectionAbortedError("an injected fault closes the connection without a reply")
        return answer

    def _count_and_answer(
        self,
        application: Callable[..., Iterable[bytes]],
        request: Request,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Count the body of a request in the memory budget, then return the application's reply or a refusal."""
        limit_bytes = self._application.gateway.settings.max_body_bytes
        length = get_content_length(environ)
        if length is None:
            may_have_body = "HTTP_TRANSFER_ENCODING" in environ or not _is_http_1(environ)
            length = limit_bytes if may_have_body and environ.get("wsgi.input_terminated") else 0
        size_bytes = min(length, limit_bytes)
        refusal = self._application.refusal_of_head(request) if size_bytes > HEAD_FIRST_BYTES else None
        if refusal is not None:
            return self._refuse(refusal, request, environ, start_response)
        memory = self._application.gateway.memory
        try:
            memory.receive(size_bytes)
        except Busy as error:
            return self._refuse(self._application.refuse(request, error), request, environ, start_response)
        try:
            return application(environ, start_response)
        finally:
            memory.discard(size_bytes)

    def _refuse(
        self, reply: Reply, request: Request, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer a request without a Flask application."""
        if WSGI_REQUEST not in environ:
            dialect = self._application.dialect_of(request)
            audit.record_request(
                request, reply, dialect, "" if dialect is None else dialect.operation(request)
            )
        return flask_response(reply)(environ, start_response)


def _is_http_1(environ: dict[str, Any]) -> bool:
    """True if a request without Content-Length and Transfer-Encoding has no body (RFC 9112, section 6.3)."""
    return str(environ.get("SERVER_PROTOCOL", "HTTP/1.1")).startswith("HTTP/1")


def _flask_of(dialect: Dialect, dialects: Application) -> flask.Flask:
    app = flask.Flask(f"tablegate.{dialect.name}", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = dialects.gateway.settings.max_body_bytes
    # Dialects get raw paths, so Flask must not redirect from `//` to `/`.
    app.url_map.merge_slashes = False
    _record_in_audit(app, dialect)
    _intercept(app, dialect, dialects.interceptor)
    app.register_blueprint(dialect.blueprint())

    @app.errorhandler(413)
    def too_long(error: Exception) -> flask.Response:
        # The gateway's own server refuses such a body earlier (connection.py).
        request = request_without_body()
        limit = dialects.gateway.settings.max_body_bytes
        size = flask.request.content_length or limit + 1
        return flask_response(dialects.refuse(request, LimitExceeded("body", limit, size)))

    @app.errorhandler(500)
    def internal(error: Exception) -> flask.Response:
        cause = getattr(error, "original_exception", None) or error
        return flask_response(dialects.refuse_and_log(request_of(flask.request.environ, b""), cause))

    app.logger.disabled = True  # the handler above logs the error already
    return app


def _record_in_audit(app: flask.Flask, dialect: Dialect | None) -> None:
    """Record replies in the audit log under another WSGI server. The gateway's own server records them itself."""

    @app.after_request
    def record(response: flask.Response) -> flask.Response:
        if audit.is_on() and WSGI_REQUEST not in flask.request.environ:
            request = current_request()
            operation = "" if dialect is None else dialect.operation(request)
            reply = Reply(response.status_code, [*response.headers.items()], response.get_data())
            audit.record_request(request, reply, dialect, operation)
        return response


def _intercept(app: flask.Flask, dialect: Dialect, interceptor: RequestInterceptor) -> None:
    """Intercept requests under another WSGI server. The gateway's own server does so in server.py."""

    @app.before_request
    def intercept() -> flask.Response | None:
        if not interceptor.is_on or WSGI_REQUEST in flask.request.environ:
            return None
        request = current_request()
        flask.g.interception = interception = interceptor.intercept(request, dialect)
        flask.g.request_context = request_context.current(interception.context)
        flask.g.request_context.__enter__()
        time.sleep(interception.latency_s)
        reply = interception.injected_reply()
        return None if reply is None else _response_of(reply)

    @app.after_request
    def cut(response: flask.Response) -> flask.Response:
        interception: InterceptedRequest | None = flask.g.get("interception")
        if interception is not None and interception.answered(Reply(response.status_code, ())) is CUT:
            return _response_of(CUT)
        return response

    @app.teardown_request
    def leave(error: BaseException | None) -> None:
        if "request_context" in flask.g:
            flask.g.pop("request_context").__exit__(None, None, None)


def _response_of(reply: Reply) -> flask.Response:
    if reply is CUT:
        flask.request.environ[_IS_CUT] = True
        return flask.Response()
    return flask_response(reply)


def _add_own_paths(app: flask.Flask, dialects: Application) -> None:
    """Health, metrics and the control API."""
    gateway = dialects.gateway

    @app.get("/health")
    @app.get("/healthz")
    @app.get("/readyz")
    @app.get("/metrics")
    @app.route(f"{PREFIX}<path:_>", methods=_METHODS)
    def reply(_: str = "") -> flask.Response:
        return flask_response(
            dialects.own_reply(current_request()) or text_reply(404, "there is nothing here")
        )

    @app.errorhandler(404)
    def missing(error: Exception) -> flask.Response:
        if gateway.settings.emulator_health and flask.request.path == "/":
            return flask_response(Reply(400, (), b""))
        return flask_response(text_reply(404, "there is nothing here"))


def metrics_app(gateway: Gateway) -> flask.Flask:
    """Return the application of the metrics port, on a loopback address. It refuses web pages with any auth."""
    app = flask.Flask("tablegate.metrics", static_folder=None)
    browsers = OriginPolicy(gateway.settings, is_open=True)

    @app.get("/metrics")
    def exposition() -> flask.Response:
        return flask_response(figures(gateway, current_request(), is_public=False))

    @app.before_request
    def reject_cross_origin() -> flask.Response | None:
        try:
            browsers.check(current_request())
        except NotAllowed as error:
            return flask_response(plain_refusal(error))
        return None

    return app

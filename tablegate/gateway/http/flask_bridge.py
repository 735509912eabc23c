"""Conversion between Flask or WSGI and the gateway's Request and Reply.

It does not depend on dialects, and adds nothing to their replies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import flask
from werkzeug.datastructures import Headers as FlaskHeaders

from tablegate.gateway.http.messages import WSGI_REQUEST, Reply, Request

_REQUEST = "tablegate_request"


def request_of(environ: dict[str, Any], body: bytes) -> Request:
    """Return the request of a WSGI call.

    Our server passes the request itself. For other servers it is assembled. The raw target is used if werkzeug,
    gunicorn or uWSGI provide it. Otherwise the decoded path is used, which cannot distinguish %2F from /.
    """
    request = environ.get(WSGI_REQUEST)
    if isinstance(request, Request):
        return request
    target = environ.get("RAW_URI") or environ.get("REQUEST_URI")
    if not target:
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        query = environ.get("QUERY_STRING", "")
        target = quote(path.encode("latin-1"), safe="/~!$&'()*+,;=:@") + (f"?{query}" if query else "")
    headers = [
        (name.removeprefix("HTTP_").replace("_", "-").lower(), value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name in ("CONTENT_TYPE", "CONTENT_LENGTH") and value)
    ]
    return Request(
        method=environ["REQUEST_METHOD"],
        target=target,
        headers=tuple(headers),
        body=body,
        client=environ.get("REMOTE_ADDR", ""),
        secure=environ.get("wsgi.url_scheme") == "https",
    )


def current_request() -> Request:
    """Return the request that Flask is handling. The object is the same for all calls."""
    environ = flask.request.environ
    if WSGI_REQUEST in environ:
        return request_of(environ, b"")
    if _REQUEST not in flask.g:
        setattr(flask.g, _REQUEST, request_of(environ, flask.request.get_data()))
    request: Request = flask.g.get(_REQUEST)
    return request


def request_without_body() -> Request:
    """Return the request that Flask is handling, without reading its body. Later calls of `current_request` return it too."""
    if WSGI_REQUEST not in flask.request.environ:
        setattr(flask.g, _REQUEST, request_of(flask.request.environ, b""))
    return current_request()


def flask_response(reply: Reply) -> flask.Response:
    """Return a reply as a Flask response, without additional headers."""
    response = flask.Response(reply.body, reply.status)
    response.headers = FlaskHeaders(list(reply.headers))
    return response


def routes(name: str, methods: frozenset[str], serve: Callable[[Request], Reply]) -> flask.Blueprint:
    """Return the routes of a dialect: one rule for all paths, as the dialect evaluates the raw target."""
    blueprint = flask.Blueprint(name, __name__)

    def reply(**_: str) -> flask.Response:
        return flask_response(serve(current_request()))

    for route in ("/", "/<path:path>"):
        blueprint.add_url_rule(
            route, "reply", reply, methods=sorted(methods), provide_automatic_options=False
        )
    return blueprint

"""HTTP requests and replies as plain frozen values; the bridge to and from Flask.

Adapters see nothing else of HTTP. The target is kept as it was sent: Azure signatures cover its very bytes, and %2F or +
would not survive decoding.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

import flask
from flask import Blueprint
from werkzeug.datastructures import Headers as FlaskHeaders

from gateway.engine.engine import Engine
from gateway.model.commands import Exchange
from gateway.security.credentials import Credentials
from gateway.settings import Settings

Headers = tuple[tuple[str, str], ...]


def new_request_id() -> str:
    """52 characters of A-Z and 0-9, as the AWS services give; unique enough to find a line in a log."""
    try:
        return _ready_ids.pop()
    except IndexError:
        letters = secrets.token_bytes(_ID_LENGTH * _IDS_AT_ONCE).translate(_LETTERS).decode()
        _ready_ids.extend(letters[at : at + _ID_LENGTH] for at in range(_ID_LENGTH, len(letters), _ID_LENGTH))
        return letters[:_ID_LENGTH]


_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 8
_ID_LENGTH, _IDS_AT_ONCE = 52, 64
_ready_ids: list[str] = []
# Workers are forked (gateway/server/workers.py): no two may give the same ids.
os.register_at_fork(after_in_child=_ready_ids.clear)


# Not frozen: that would treble the time in which one is made, and one is made of every request.
@dataclass(slots=True, eq=False)
class Request:
    """One HTTP request, not to be changed. Header names are lower-case, values decoded as latin-1, in the order they came,
    repeats kept.

    `target` is the raw request target (path and query as sent); `client` the peer's address; `secure` whether TLS was used.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    client: str = "127.0.0.1"
    secure: bool = False
    id: str = field(default_factory=new_request_id)
    path: str = field(init=False, repr=False)
    """The raw path, percent-encoding untouched. An absolute-form target is cut down to its path."""
    query: str = field(init=False, repr=False)
    """The raw query, without the question mark."""
    _first: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._first = dict(self.headers[::-1])
        self.path, self.query = split_target(self.target)

    def header(self, name: str, default: str = "") -> str:
        """The first value of a header, named in lower case."""
        return self._first.get(name, default)

    def header_values(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for known, value in self.headers if known == name]


class Reply(NamedTuple):
    """One HTTP reply. Content-Length and Connection are the server's to add."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes = b""


def split_target(target: str) -> tuple[str, str]:
    """(path, query) of a request target, both raw."""
    if not target.startswith("/"):
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            target = "/" + rest.partition("/")[2]
    path, _, query = target.partition("?")
    return path, query


def request_of(environ: dict[str, Any], body: bytes) -> Request:
    """The request of a WSGI call. Our server brings it along; of others its parts are put together, the target from where
    werkzeug, gunicorn and uWSGI keep it raw (else from the decoded path, which cannot tell %2F from /)."""
    known = environ.get(WSGI_REQUEST)
    if isinstance(known, Request):
        return known
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


WSGI_REQUEST = "tablegate.request"


def current_request() -> Request:
    """The request that Flask is handling."""
    environ = flask.request.environ
    return request_of(environ, b"" if WSGI_REQUEST in environ else flask.request.get_data())


def flask_response(reply: Reply) -> flask.Response:
    """A reply for Flask to give; no header is added that the dialect did not ask for."""
    response = flask.Response(reply.body, reply.status)
    response.headers = FlaskHeaders(list(reply.headers))
    return response


Handler = Callable[[Request], Exchange[Reply]]
"""Begins to handle a request. Called again with the same request when a table turned out to be stale."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an adapter's `blueprint.create(gateway)` gives.

    `blueprint`: its Flask blueprint, which owns every route. `enter`: the way past Flask for its hot wire operations, a
    handler if the request is one of them, else None. The rest lets several dialects share a port, and speak for themselves
    where the server must: `claims` says whether a request is this dialect's, asked in the order of settings.dialects and
    before the body has come; `operation` names it for metrics, from a closed set; `refuse` words what the server itself
    has to say to it: LimitExceeded (the body is too long), Busy, or any other exception (a bug: the dialect's internal
    error). A refusal of None leaves the words to the server. `hint`: how to point an SDK at `{url}`, printed at the start.
    `service_hosts`: the names (in lower case) of the service itself, to which nobody but its operator can give an address
    (browsers.py).
    """

    name: str
    blueprint: Blueprint
    enter: Callable[[Request], Handler | None]
    claims: Callable[[Request], bool] = lambda request: True
    operation: Callable[[Request], str] = lambda request: ""
    refuse: Callable[[Request, Exception], Reply | None] = lambda request, error: None
    hint: str = ""
    service_hosts: re.Pattern[str] = re.compile("(?!)")


@dataclass(frozen=True, slots=True)
class Gateway:
    """What the application gives to every adapter. `now_ms` is the clock: milliseconds since 1970."""

    engine: Engine
    credentials: Credentials
    settings: Settings
    now_ms: Callable[[], int]

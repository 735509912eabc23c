"""HTTP requests and replies as plain values, request ids, and calls of a WSGI application with a Request.

Adapters use no other HTTP types. The target is kept as it was sent, because Azure signatures cover its bytes, and decoding
would lose %2F and +.

Flask answers for the console and for paths without a dialect. The WSGI environ has the Request as `tablegate.request`, and its
raw target under the names that werkzeug's server uses.
"""

from __future__ import annotations

import io
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from tablegate.gateway.model.authorization.authorizations import Authorization
from tablegate.gateway.model.request_info import RequestInfo

Headers = tuple[tuple[str, str], ...]

WSGI_REQUEST = "tablegate.request"
"""The key of the Request in a WSGI environment of the gateway's own server."""


def new_request_id() -> str:
    """Return a unique id of 52 characters of A-Z and 0-9, as in the AWS services."""
    try:
        return _ready_ids.pop()
    except IndexError:
        letters = secrets.token_bytes(_ID_LENGTH * _IDS_AT_ONCE).translate(_LETTERS).decode()
        _ready_ids.extend(
            [letters[at : at + _ID_LENGTH] for at in range(_ID_LENGTH, len(letters), _ID_LENGTH)]
        )
        return letters[:_ID_LENGTH]


_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 8
_ID_LENGTH, _IDS_AT_ONCE = 52, 64
_ready_ids: list[str] = []
# Forked workers (gateway/server/workers.py) must not use the same ids.
os.register_at_fork(after_in_child=_ready_ids.clear)


# Not frozen, and with its own constructor, for speed.
@dataclass(slots=True, eq=False, init=False)
class Request:
    """One HTTP request. Only `held_bytes`, `authorization`, `is_unauthenticated` and `info` change.

    - `target`: the path and the query as they were sent.
    - `headers`: in the order of the request, repeated ones included. Names are in lower case, values are decoded as
      latin-1.
    - `client`: the address of the peer.
    - `secure`: the request came over TLS.
    """

    method: str
    # These three have credentials, and the event loop logs the arguments of a callback that fails.
    target: str = field(repr=False)
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    client: str
    secure: bool
    id: str = field(init=False)
    """The unique id. A copy by `dataclasses.replace` gets a new one."""
    path: str = field(init=False, repr=False)
    """The path with its percent-encoding. Of a target in absolute form, only the path."""
    query: str = field(init=False, repr=False)
    """The raw query, without the question mark."""
    header_map: dict[str, str] = field(init=False, repr=False)
    """The first value of each header, by its name in lower case."""
    held_bytes: int = field(init=False, repr=False)
    """Bytes counted for the decoded request (gateway/http/request_bodies.py)."""
    authorization: Authorization | None = field(init=False, repr=False)
    """The authorization, set after authentication. None is unrestricted."""
    is_unauthenticated: bool = field(init=False, repr=False)
    """True if authentication is required and the head failed it."""
    info: RequestInfo | None = field(init=False, repr=False)
    """The description of a request to the control API or the console, for the audit log. Dialects have
    `Dialect.request_info`."""

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes,
        client: str = "127.0.0.1",
        secure: bool = False,
        header_map: dict[str, str] | None = None,
    ) -> None:
        """`header_map`: computed from `headers` if it is None."""
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.client = client
        self.secure = secure
        self.authorization = None
        self.is_unauthenticated = False
        self.held_bytes = 0
        self.info = None
        self.id = _ready_ids.pop() if _ready_ids else new_request_id()
        self.header_map = first_values(headers) if header_map is None else header_map
        if target == "/":  # all requests of DynamoDB
            self.path, self.query = target, ""
        else:
            self.path, self.query = split_target(target)

    def check_client(self) -> None:
        """Raise Busy if the client has closed the connection and the request only reads.

        Only the gateway's own server knows it.
        """

    def header(self, name: str, default: str = "") -> str:
        """Return the first value of a header by its name in lower case."""
        return self.header_map.get(name, default)

    def header_values(self, name: str) -> list[str]:
        """Return all values of a header, in order."""
        return [value for header_name, value in self.headers if header_name == name]


def first_values(headers: Headers) -> dict[str, str]:
    """Return the first value of each header, by its name."""
    return dict(headers[::-1])


class Reply(NamedTuple):
    """One HTTP reply. The server adds Content-Length and Connection."""

    status: int
    headers: Iterable[tuple[str, str]]
    body: bytes = b""


def text_reply(status: int, text: str) -> Reply:
    """Return a reply of one line of plain text."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())


CUT = Reply(0, ())
"""The marker for a connection that an injected fault closes without a reply."""


def split_target(target: str) -> tuple[str, str]:
    """Return the raw (path, query) of a request target."""
    if not target.startswith("/"):
        scheme, separator, location = target.partition("://")
        if separator and scheme.lower() in ("http", "https"):
            target = "/" + location.partition("/")[2]
    path, _, query = target.partition("?")
    return path, query


WSGIApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def call_wsgi(application: WSGIApplication, request: Request) -> Reply:
    """Return the application's complete reply. Errors of the application propagate."""
    responses: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], None]:
        responses.append((status, headers))
        return parts.append

    parts: list[bytes] = []
    chunks = application(environ_of(request), start_response)
    try:
        parts.extend(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = responses[-1]
    return Reply(int(status[:3]), headers, b"".join(parts))


def environ_of(request: Request) -> dict[str, Any]:
    """Return the WSGI environ of a request (PEP 3333)."""
    host, _, port = request.header("host").rpartition(":")
    if not port.isdigit():
        host, port = request.header("host"), "443" if request.secure else "80"
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.path).decode("latin-1"),
        "QUERY_STRING": request.query,
        "RAW_URI": request.target,
        "REQUEST_URI": request.target,
        "SERVER_NAME": host or "localhost",
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": request.client,
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if request.secure else "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        WSGI_REQUEST: request,
    }
    for name, value in request.headers:
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name not in ("content-length", "transfer-encoding"):
            key = "HTTP_" + name.upper().replace("-", "_")
            environ[key] = f"{environ[key]},{value}" if key in environ else value
    return environ

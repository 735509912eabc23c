"""Calls of a WSGI application with a Request. Flask answers for the console and for paths without a dialect.

The environ has the Request as `tablegate.request`, and its raw target under the names that werkzeug's server uses.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from tablegate.gateway.http.messages import WSGI_REQUEST, Reply, Request

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def call(application: Application, request: Request) -> Reply:
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

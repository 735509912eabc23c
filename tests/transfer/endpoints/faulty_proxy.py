"""A proxy that throttles, loses connections and executes only half of a request, as a test configures it."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import PATIENCE_S


@dataclass
class Asked:
    """A request as it came: `forward(body)` gives the server's (status, headers, body) to it."""

    path: str
    headers: Any
    body: bytes
    forward: Callable[[bytes], tuple[int, list[tuple[str, str]], bytes]]

    @property
    def operation(self) -> str:
        """The name of the operation in DynamoDB and Table Store."""
        target = self.headers.get("X-Amz-Target", "")
        return str(target.rpartition(".")[2] or self.path.strip("/"))


Answer = tuple[int, list[tuple[str, str]], bytes]
Script = Callable[[Asked], Answer | None]
"""The answer to a request, or None to close the connection without one."""


@contextlib.contextmanager
def faulty_proxy(upstream: str, script: Script) -> Iterator[str]:
    """The URL of a proxy."""
    address = urlsplit(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two writes

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            given = script(Asked(self.path, self.headers, body, self._forward))
            if given is None:
                self.close_connection = True
                self.connection.close()
                return
            status, headers, content = given
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

        def _forward(self, body: bytes) -> Answer:
            connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE_S)
            try:
                headers = {
                    name: value for name, value in self.headers.items() if name.lower() != "content-length"
                }
                connection.request(self.command, self.path, body, headers)
                reply = connection.getresponse()
                return reply.status, reply.getheaders(), reply.read()
            finally:
                connection.close()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

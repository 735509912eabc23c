"""Requests as bytes on the wire, signed as by each service's SDK, and a client for single requests.

Signatures are valid although servers with development credentials do not check them. So the same requests work with
strict servers. The adapters implement the signature rules.
"""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Sequence
from email.utils import formatdate

from tablegate.adapters.azuretable import auth as azure_auth
from tablegate.adapters.dynamodb.wire import auth as aws
from tablegate.adapters.tablestore.wire import auth as ots
from tablegate.gateway.http.messages import Request

HOST = "127.0.0.1"
AWS_KEY_ID, AWS_SECRET, AWS_REGION = "tablegate", "tablegate", "us-east-1"
AZURE_ACCOUNT = "devstoreaccount1"
# The key of all storage emulators, published by Microsoft.
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # gitleaks:allow
TABLESTORE_INSTANCE = "bench"


def raw(method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes) -> bytes:
    """Return a request as bytes with Content-Length."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def dynamodb(port: int, operation: str, body: bytes) -> bytes:
    """Return a POST request with AWS Signature Version 4."""
    headers = (
        ("host", f"{HOST}:{port}"),
        # As in botocore, for servers that parse these headers.
        ("accept-encoding", "identity"),
        (
            "user-agent",
            "Boto3/1.42.0 md/Botocore#1.42.0 ua/2.1 os/linux lang/python#3.11 cfg/retry-mode#legacy",
        ),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-date", time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())),
        ("x-amz-target", f"DynamoDB_20120810.{operation}"),
    )
    authorization = aws.authorization(Request("POST", "/", headers, body), AWS_KEY_ID, AWS_SECRET, AWS_REGION)
    return raw("POST", "/", (*headers, ("authorization", authorization)), body)


def azure(
    port: int, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
) -> bytes:
    """Return a request with SharedKey. `path` follows the account and is percent-encoded with its query."""
    date, target = formatdate(usegmt=True), f"/{AZURE_ACCOUNT}{path}"
    headers = [
        ("host", f"{HOST}:{port}"),
        ("x-ms-version", "2019-02-02"),
        ("dataserviceversion", "3.0"),
        ("accept", "application/json;odata=minimalmetadata"),
        ("x-ms-date", date),
        ("date", date),
        ("user-agent", "azsdk-python-data-tables/12.7.0 Python/3.11"),
    ]
    if body:
        headers.append(("content-type", content_type))
    if method in ("POST", "PUT") and not path.startswith("/$batch"):
        headers.append(("prefer", "return-no-content"))
    request = Request(method, target, tuple(headers), body)
    headers.append(("authorization", azure_auth.authorization(request, {}, AZURE_ACCOUNT, AZURE_KEY)))
    return raw(method, target, headers, body)


def tablestore(port: int, operation: str, body: bytes) -> bytes:
    """Return a POST request with a signature of version 2."""
    moment = time.time()
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    others = {"x-ots-apiversion": "2015-12-31", "x-ots-instancename": TABLESTORE_INSTANCE}
    signing = ots.signing_headers(operation, body, others, "tablegate", "tablegate", date)
    headers = (("host", f"{HOST}:{port}"), *others.items(), *signing.items(), ("user-agent", "bench"))
    return raw("POST", f"/{operation}", headers, body)


# Single requests


class Client:
    """A client that sends raw requests one by one over a connection. It reconnects if the server closes it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return (status, body). A connection that was idle too long is retried once."""
        for attempt in (1, 2):
            if self._socket is None:
                self._socket = socket.create_connection((HOST, self.port), 60)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self._socket.sendall(request)
                response = http.client.HTTPResponse(self._socket)
                response.begin()
                body = response.read()
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                if attempt == 2:
                    raise
                continue
            if response.will_close:
                self.close()
            return response.status, body
        raise AssertionError

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

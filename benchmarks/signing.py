"""Requests as bytes on the wire, signed as by each service's SDK, and a client for single requests.

Signatures are valid although servers with development credentials do not check them. So the same requests work with
strict servers. Sources: "Create a signed AWS API request" (IAM User Guide), "Authorize with Shared Key" (Azure
Storage REST), "Request signature" (Table Store API reference).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import socket
import time
from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache

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


# DynamoDB

_SIGNED = "content-type;host;x-amz-date;x-amz-target"
_JSON = "application/x-amz-json-1.0"


def dynamodb(port: int, operation: str, body: bytes) -> bytes:
    """Return a POST request with AWS Signature Version 4."""
    date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target, host = f"DynamoDB_20120810.{operation}", f"{HOST}:{port}"
    scope = f"{date[:8]}/{AWS_REGION}/dynamodb/aws4_request"
    canonical = (
        f"POST\n/\n\ncontent-type:{_JSON}\nhost:{host}\nx-amz-date:{date}\nx-amz-target:{target}\n\n{_SIGNED}\n"
        f"{hashlib.sha256(body).hexdigest()}"
    )
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = hmac.digest(_aws_key(date[:8]), text.encode(), "sha256").hex()
    headers = (
        ("Host", host),
        # As in botocore, for servers that parse these headers.
        ("Accept-Encoding", "identity"),
        (
            "User-Agent",
            "Boto3/1.42.0 md/Botocore#1.42.0 ua/2.1 os/linux lang/python#3.11 cfg/retry-mode#legacy",
        ),
        ("Content-Type", _JSON),
        ("X-Amz-Date", date),
        ("X-Amz-Target", target),
        (
            "Authorization",
            f"AWS4-HMAC-SHA256 Credential={AWS_KEY_ID}/{scope}, SignedHeaders={_SIGNED}, Signature={signature}",
        ),
    )
    return raw("POST", "/", headers, body)


@lru_cache(maxsize=8)
def _aws_key(day: str) -> bytes:
    key = b"AWS4" + AWS_SECRET.encode()
    for part in (day, AWS_REGION, "dynamodb", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


# Azure Table


def azure(
    port: int, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
) -> bytes:
    """Return a request with SharedKey. `path` follows the account and is percent-encoded with its query."""
    date = formatdate(usegmt=True)
    target = f"/{AZURE_ACCOUNT}{path}"
    signed_type = content_type if body else ""
    text = f"{method}\n\n{signed_type}\n{date}\n/{AZURE_ACCOUNT}{target.partition('?')[0]}"
    signature = base64.b64encode(hmac.digest(base64.b64decode(AZURE_KEY), text.encode(), "sha256")).decode()
    headers = [
        ("Host", f"{HOST}:{port}"),
        ("x-ms-version", "2019-02-02"),
        ("DataServiceVersion", "3.0"),
        ("Accept", "application/json;odata=minimalmetadata"),
        ("x-ms-date", date),
        ("Date", date),
        ("User-Agent", "azsdk-python-data-tables/12.7.0 Python/3.11"),
        ("Authorization", f"SharedKey {AZURE_ACCOUNT}:{signature}"),
    ]
    if body:
        headers.append(("Content-Type", content_type))
    if method in ("POST", "PUT") and not path.startswith("/$batch"):
        headers.append(("Prefer", "return-no-content"))
    return raw(method, target, headers, body)


# Table Store


def tablestore(port: int, operation: str, body: bytes) -> bytes:
    """Return a POST request with a signature of version 2 (HMAC-SHA1 over the x-ots-* headers)."""
    moment = time.time()
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1000):03d}Z"
    headers = {
        "x-ots-accesskeyid": "tablegate",
        "x-ots-apiversion": "2015-12-31",
        "x-ots-contentmd5": base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode(),
        "x-ots-date": date,
        "x-ots-instancename": TABLESTORE_INSTANCE,
    }
    text = f"/{operation}\nPOST\n\n" + "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    signature = base64.b64encode(hmac.digest(b"tablegate", text.encode(), "sha1")).decode()
    all_headers = (
        ("Host", f"{HOST}:{port}"),
        *headers.items(),
        ("x-ots-signature", signature),
        ("User-Agent", "bench"),
    )
    return raw("POST", f"/{operation}", all_headers, body)


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

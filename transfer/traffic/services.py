"""A service behind a URL, as bytes: a request goes out as it is, and its answer comes back as it is.

Knows HTTP connections and their limits. Knows neither dialects nor signatures.
"""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from tablegate.gateway.http import Reply, Request
from tablegate.transfer.errors import BadAddress, TransferError

ANSWER_MAX_BYTES = 64 << 20
_CONNECT_SECONDS = 10.0
# Shorter than any service keeps an idle connection, so that none is used that is just being closed.
_IDLE_SECONDS = 4.0
_OWN_HEADERS = frozenset({"Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Host"})
# Of one connection only (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset(
    {
        "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class NoReply(TransferError):
    """The service gave no answer that could be used; the message says why."""


class Address:
    """Where a service is. Raises BadAddress for what is no http URL of a host alone."""

    def __init__(self, url: str, what: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise BadAddress(f"{what}: not a URL of a service, as http://HOST:PORT is")
        if parts.username or parts.password:
            raise BadAddress(
                f"{what}: credentials do not belong into a URL (docs/migrate/replaying.md says where)"
            )
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise BadAddress(f"{what}: the URL of a service has no path, since signatures cover paths")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        # As HTTP clients send Host: without the port that the scheme implies.
        self.host = re.sub(r":80$" if parts.scheme == "http" else r":443$", "", parts.netloc)


class Service:
    """Sends requests to an address. To be closed."""

    def __init__(self, address: Address, timeout_seconds: float) -> None:
        self.address = address
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_OWN_HEADERS,
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=_CONNECT_SECONDS),
        )

    async def send(self, request: Request) -> Reply:
        """The service's answer. Raises NoReply."""
        headers = [
            (name, _as_sent(value))
            for name, value in request.headers
            if name not in HOP_BY_HOP and name != "content-length"
        ]
        url = URL(self.address.origin + _path_and_query(request.target), encoded=True)
        body = request.body or (b"" if request.method in ("POST", "PUT", "PATCH", "MERGE") else None)
        try:
            async with self._session.request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            ) as answer:
                found = bytearray()
                async for chunk in answer.content.iter_any():
                    found += chunk
                    if len(found) > ANSWER_MAX_BYTES:
                        raise NoReply(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
                kept = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in answer.raw_headers
                    if name.decode("latin-1").lower() not in HOP_BY_HOP
                ]
                return Reply(answer.status, kept, bytes(found))
        except TimeoutError:
            raise NoReply(f"{self.address.origin} does not answer in time") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoReply(f"{self.address.origin} cannot be reached: {_said(error)}") from None

    async def close(self) -> None:
        """Give back connections."""
        await self._session.close()
        await asyncio.sleep(0)


def _path_and_query(target: str) -> str:
    """A target as a path; one in absolute form is cut down."""
    if target.startswith("/"):
        return target
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _as_sent(value: str) -> str:
    """A header's bytes, which are read as latin-1, as the library will write them, which is as UTF-8."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        raise NoReply("a header is not UTF-8") from None


def _said(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__

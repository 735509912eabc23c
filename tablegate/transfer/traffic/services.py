"""A client of one HTTP service that sends requests and returns replies without changing their bytes."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.errors import BadAddress, TransferError

ANSWER_MAX_BYTES = 64 << 20
_CONNECT_SECONDS = 10.0
# Shorter than the idle timeout of the services, so that no connection is used while the service closes it.
_IDLE_SECONDS = 4.0
_OWN_HEADERS = frozenset({"Accept", "Accept-Encoding", "User-Agent", "Content-Type", "Host"})
# Headers of one connection (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset(
    {
        "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class NoReply(TransferError):
    """The service sent no usable reply. The message has the reason."""


class Address:
    """The address of a service. Raises BadAddress if the URL is not `http(s)://HOST[:PORT]`."""

    def __init__(self, url: str, flag: str) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), 0
        if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
            raise BadAddress(f"{flag}: not a service URL. Use the form http://HOST:PORT")
        if parts.username or parts.password:
            raise BadAddress(
                f"{flag}: the URL contains credentials. Use --credentials (docs/migrate/replaying.md)"
            )
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise BadAddress(f"{flag}: remove the path from the URL, because signatures cover paths")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        # As HTTP clients send Host: without the default port of the scheme.
        self.host = re.sub(r":80$" if parts.scheme == "http" else r":443$", "", parts.netloc)


class Service:
    """A client session of one service. The caller closes it."""

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
        """Send a request and return the reply. Raises NoReply."""
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
                reply_body = bytearray()
                async for chunk in answer.content.iter_any():
                    reply_body += chunk
                    if len(reply_body) > ANSWER_MAX_BYTES:
                        raise NoReply(f"the reply exceeds {ANSWER_MAX_BYTES} bytes")
                reply_headers = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in answer.raw_headers
                    if name.decode("latin-1").lower() not in HOP_BY_HOP
                ]
                return Reply(answer.status, reply_headers, bytes(reply_body))
        except TimeoutError:
            raise NoReply(f"{self.address.origin} timed out") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoReply(f"{self.address.origin} cannot be reached: {_error_text(error)}") from None

    async def close(self) -> None:
        await self._session.close()
        await asyncio.sleep(0)


def _path_and_query(target: str) -> str:
    """Return the path and query of a target, also of one in absolute form."""
    if target.startswith("/"):
        return target
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _as_sent(value: str) -> str:
    """Convert a header value for aiohttp.

    Header bytes are read as latin-1, and aiohttp writes them as UTF-8. Raises NoReply if the bytes are not UTF-8.
    """
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        raise NoReply("a header is not UTF-8") from None


def _error_text(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__

"""The proxy of `record` and `shadow`: an HTTP server, and forwarding of its requests with a valid signature.

Signatures and traces need whole request bodies, so they are held in memory. The server's limits apply:
max_body_bytes for each body and max_buffered_bytes for all together. The caller formats errors in the words of a
dialect.

Table Store and Azure Shared Key do not sign Host. Their requests get the service's Host and keep their signature.
Replies of Table Store are signed with the caller's secret and stay valid too. AWS signatures cover Host:

- Without credentials, the request keeps the Host that the client signed. tablegate and the emulators accept it.
- With credentials, the request is signed again for the service's own Host.

A bearer token or a shared access signature is passed on.
Source: docs/protocols/dynamodb.md, azure-table.md and table-store.md on signatures.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from aiohttp import web

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import SETTINGS
from tablegate.gateway.http.messages import Headers, Reply, Request
from tablegate.gateway.security.browsers import OriginPolicy
from tablegate.transfer.errors import TransferError
from tablegate.transfer.traffic.dialects.detecting import DIALECTS, NONE, dialect_of
from tablegate.transfer.traffic.dialects.dialect import plain
from tablegate.transfer.traffic.rules import AZURE_TABLE, DYNAMODB
from tablegate.transfer.traffic.services import HOP_BY_HOP, KEY, Address, Signer, region_of, signed_how
from tablegate.transfer.traffic.sessions import AUTHENTICATION_CODES
from tablegate.transfer.traffic.traces import RecordedRequest

BODY_MAX_BYTES: int = SETTINGS["max_body_bytes"].default  # type: ignore[assignment]
BUFFERED_MAX_BYTES: int = SETTINGS["max_buffered_bytes"].default  # type: ignore[assignment]
_LINE_MAX_BYTES: int = SETTINGS["max_request_line_bytes"].default  # type: ignore[assignment]
_HEADER_MAX_BYTES: int = SETTINGS["max_header_bytes"].default  # type: ignore[assignment]
_STOP_SECONDS: float = SETTINGS["stop_seconds"].default  # type: ignore[assignment]

_OWN = web.ResponseKey("own", frozenset[str])
"""Names of the service's own headers of a reply."""

Handle = Callable[[Request, int], Awaitable[Reply]]
"""Return the reply to a request. The integer is the number of its connection."""
Refuse = Callable[[Request, int, str], Reply]
"""Return an error reply with this status and text."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """The address of a proxy and its allowed host names.

    The service behind the proxy sees another Host. So the proxy itself must reject web pages with a name that resolves
    to this machine (security/browsers.py).
    """

    host: str = "127.0.0.1"
    port: int = 0
    allowed_hosts: tuple[str, ...] = ()


Say = Callable[[str], object]
"""Show a text to the operator."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Callbacks of a proxy. `announce` shows the URLs once it listens. `until` returns when it must stop."""

    say: Say
    announce: Callable[..., object]
    until: Callable[[], Awaitable[None]]


class CannotListen(TransferError):
    """The port is not available."""


class Proxy:
    """A listening HTTP server."""

    def __init__(self, handle: Handle, refuse: Refuse, listen: ListenOptions) -> None:
        settings = load({"host": listen.host, "allowed_host": listen.allowed_hosts or None}, {})
        self._listen = listen
        self._browsers = OriginPolicy(settings, is_open=True)
        self._handle = handle
        self._refuse = refuse
        self._held_bytes = 0
        self._connections: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._next_connection = 0
        application = web.Application(
            handler_args={
                "max_line_size": _LINE_MAX_BYTES,
                "max_field_size": _HEADER_MAX_BYTES,
                # Signatures cover the encoded bytes, so bodies are passed on without decoding.
                "auto_decompress": False,
            }
        )
        application.router.add_route("*", "/{path:.*}", self._answer)
        application.on_response_prepare.append(_remove_added_headers)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_STOP_SECONDS)

    async def listen(self) -> str:
        """Start listening and return the URL. Raises CannotListen."""
        host, port = self._listen.host, self._listen.port
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotListen(
                f"cannot listen on {host}:{port}: {error.strerror}. Choose another port with --port"
            ) from None
        [name, *_] = self._runner.addresses
        host_text = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"http://{host_text}:{name[1]}"

    async def close(self) -> None:
        """Finish open requests and stop."""
        await self._runner.cleanup()

    async def _answer(self, incoming: web.Request) -> web.Response:
        headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in incoming.raw_headers
        )
        request = Request(incoming.method, incoming.raw_path, headers, b"", incoming.remote or "")
        host = request.header("host")
        if host and not self._browsers.is_allowed_host(host):
            text = f"Host {host[:256]} is not allowed. Add it with --allowed-host."
            return _response(request, self._refuse(request, 403, text))
        body_bytes = 0
        try:
            body = bytearray()
            async for chunk in incoming.content.iter_any():
                body += chunk
                body_bytes += len(chunk)
                self._held_bytes += len(chunk)
                if body_bytes > BODY_MAX_BYTES:
                    return _response(
                        request,
                        self._refuse(request, 413, f"the request body exceeds {BODY_MAX_BYTES} bytes"),
                    )
                if self._held_bytes > BUFFERED_MAX_BYTES:
                    return _response(
                        request, self._refuse(request, 503, "the memory for request bodies is exhausted")
                    )
            request.body = bytes(body)
            return _response(request, await self._handle(request, self._number_of(incoming)))
        finally:
            self._held_bytes -= body_bytes

    def _number_of(self, incoming: web.Request) -> int:
        """Return the number of a request's connection."""
        number = self._connections.get(incoming.transport)
        if number is None:
            number = self._connections[incoming.transport] = self._next_connection
            self._next_connection += 1
        return number


def _response(request: Request, reply: Reply) -> web.Response:
    response = web.Response(status=reply.status, body=reply.body or None)
    response.headers.clear()
    kept_headers = _end_to_end_headers(reply, request.method == "HEAD")
    for name, value in kept_headers:
        response.headers.add(name, value.encode("latin-1").decode("utf-8", "replace"))
    response[_OWN] = frozenset(name.lower() for name, _ in kept_headers)
    return response


def _end_to_end_headers(reply: Reply, is_head: bool) -> Headers:
    """Return the reply's headers without those of its connection. Content-Length is recomputed, except for HEAD."""
    removed_names = HOP_BY_HOP if is_head else HOP_BY_HOP | {"content-length"}
    return tuple((name, value) for name, value in reply.headers if name.lower() not in removed_names)


async def _remove_added_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Remove headers that aiohttp adds, so that clients see only those of the service."""
    own: frozenset[str] | None = response.get(_OWN)
    for name in ("server", "date", "content-type"):
        if own is not None and name not in own:
            response.headers.popall(name, None)


async def wait_for_stop_signal() -> None:
    """Wait for SIGINT or SIGTERM."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await stopped.wait()


REFUSED = (
    "the service rejects a signature that was passed on unchanged. AWS signatures cover the Host that the client used. "
    "Sign again with --credentials FILE, or configure the service to accept that Host"
)


class Forwarder:
    """A converter of client requests for one service. `signer` is None if no credentials were given."""

    def __init__(self, address: Address, signer: Signer | None) -> None:
        self._address = address
        self._signer = signer

    def forwarded(self, request: Request) -> Request:
        """Return the request as it is sent to the service."""
        dialect = dialect_of(request)
        if dialect in (DYNAMODB, NONE):
            if self._signer is None or signed_how(request) != KEY:
                return request
            return self._signer.signed(dialect, request, region_of(request))
        headers = (
            *((name, value) for name, value in request.headers if name != "host"),
            ("host", self._address.host),
        )
        if dialect == AZURE_TABLE:
            request = DIALECTS[dialect].moved(request, self._address.origin, "")
        return replace(request, headers=headers)


def request_metadata(number: int, connection: int, at: float, request: Request) -> RecordedRequest:
    """Return the record of a client's request."""
    dialect = dialect_of(request)
    operation = DIALECTS[dialect].operation(request) if dialect != NONE else request.method
    return RecordedRequest(
        number, connection, at, dialect, operation, signed_how(request), region_of(request)
    )


def is_refused_signature(metadata: RecordedRequest, request: Request, reply: Reply) -> bool:
    """True if the service rejected the caller's identity or signature."""
    if metadata.dialect == NONE or metadata.signed != KEY or not 400 <= reply.status < 500:
        return False
    return DIALECTS[metadata.dialect].answer(request, plain(reply)).code in AUTHENTICATION_CODES

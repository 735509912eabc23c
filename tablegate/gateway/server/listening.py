"""Listening sockets: created, accepted from, and closed without losing established connections.

The system establishes a connection before it is accepted here. Closing a listening socket resets the connections that
wait to be accepted. So the system first stops establishing connections (`hold_handshakes`), and then all waiting ones
are accepted.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import ssl
import struct
from collections.abc import Callable

_BACKLOG = 1024
_ACCEPT_AGAIN_S = 1.0
# Seconds for which a closed TLS connection waits for the end of the client's side. Idle clients do not react to ours.
_TLS_CLOSING_S = 1.0
_SO_ATTACH_FILTER = 26  # Linux
# Classic BPF (Linux, Documentation/networking/filter.rst): drop segments with SYN and without ACK, pass all others.
_DROP_SYN = (
    (0x30, 0, 0, 13),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises OSError."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # "::" includes all IPv4 addresses
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def hold_handshakes(listening: socket.socket) -> None:
    """Stop the system from establishing connections on a socket, for all processes that share it.

    A client that connects now retries after a second. By then the socket is closed, or another server uses the port. No
    effect on systems that do not support it.
    """
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _DROP_SYN))
    with contextlib.suppress(OSError):
        listening.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", len(_DROP_SYN), ctypes.addressof(program)),
        )


class Listener:
    """Accepts the connections of one listening socket, and closes the socket at the end. Not thread-safe.

    opening: accepted connections without a call of their protocol yet, for example during a TLS handshake.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
        on_opened: Callable[[], None],
    ) -> None:
        """`on_opened` is called after `opening` has become smaller."""
        self.opening: set[asyncio.Task[None]] = set()
        self._socket = listening
        self._make_protocol = make_protocol
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._on_opened = on_opened
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._is_closed = False

    async def start(self) -> None:
        """Start accepting connections. The loop accepts plain ones, in half the time of `accept`."""
        if self._tls is None:
            self._server = await self._loop.create_server(
                self._make_protocol, sock=self._socket.dup(), backlog=_BACKLOG
            )
        else:
            self._accept_when_ready()

    def accept(self) -> None:
        """Accept all waiting connections."""
        while True:
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # out of descriptors or memory
                self._loop.remove_reader(self._socket)
                self._loop.call_later(_ACCEPT_AGAIN_S, self._accept_when_ready)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._open(connection))
            self.opening.add(task)
            task.add_done_callback(self._finish_opening)

    def hold_handshakes(self) -> None:
        """Stop the system from establishing connections. Established ones are still accepted."""
        hold_handshakes(self._socket)

    def close(self) -> None:
        """Accept all waiting connections, then close the socket."""
        if self._server is not None:
            self._server.close()
        self._loop.remove_reader(self._socket)
        self.accept()
        self._is_closed = True
        self._socket.close()

    def _accept_when_ready(self) -> None:
        if self._tls is not None and not self._is_closed:
            self._loop.add_reader(self._socket, self.accept)

    async def _open(self, connection: socket.socket) -> None:
        handshake_seconds = closing_seconds = None
        if self._tls is not None:
            handshake_seconds, closing_seconds = self._handshake_seconds, _TLS_CLOSING_S
        with contextlib.suppress(OSError):  # the client has closed, or its handshake failed
            await self._loop.connect_accepted_socket(
                self._make_protocol,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=handshake_seconds,
                ssl_shutdown_timeout=closing_seconds,
            )

    def _finish_opening(self, task: asyncio.Task[None]) -> None:
        self.opening.discard(task)
        self._on_opened()

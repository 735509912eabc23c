"""The server process: sockets, the event loop, and the way of a request through it.

A request that its dialect `enter`s goes into the tick (tick.py); any other is served by its dialect on a small pool of threads,
or, if no dialect claims it, by the WSGI application. Everything that touches connections happens in the event loop's thread.

Knows no HTTP grammar (connection.py), no dialect and no SQL.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING

from gateway import handling, logs, metrics
from gateway.http import Reply, Request
from gateway.model import fast_paths
from gateway.model.fast_dataclasses import dataclass
from gateway.server import allocator
from gateway.server.connection import NEVER, Connection
from gateway.server.pending_request import PendingRequest
from gateway.server.relay import Relay, Relayed, RelaySocket
from gateway.server.tick import Ticker, TickLimits
from gateway.settings import Settings
from gateway.wiring import Mounted

if TYPE_CHECKING:
    from gateway.audit import Trail
    from gateway.telemetry import Telemetry

_WSGI_THREADS = 8
_SWEEP_S = 1.0
_GC_THRESHOLDS = (10_000, 20, 20)
_BACKLOG = 1024
# So many connections are asked to make room for a new one: on an idle one a request may be arriving.
_CANDIDATES = 16


@dataclass(frozen=True, slots=True)
class Served:
    """What a server serves: dialects, and the WSGI application (wsgi.py) that answers what none of them claims; and whom it
    tells of what it has answered (gateway/audit.py, gateway/telemetry.py)."""

    dialects: Mounted
    call_application: Callable[[Request], Reply]
    trail: Trail | None = None
    telemetry: Telemetry | None = None


class Server:
    """One event loop's share of the gateway. Made and used in the loop's thread."""

    def __init__(self, served: Served, lane: str, writer_path: str = "") -> None:
        """`writer_path`: where the process is to which writes are handed on; "" where this one writes."""
        self._mounted = served.dialects
        self.settings: Settings = self._mounted.gateway.settings
        self.is_stopping = False
        self.buffered_bytes = 0
        self._call_application = served.call_application
        self._trail = served.trail
        self._telemetry = served.telemetry
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._heads: dict[str, dict[Connection, None]] = {}  # by client address, oldest first
        self._threads = ThreadPoolExecutor(_WSGI_THREADS, "wsgi")
        limits = TickLimits(self.settings.tick_requests, self.settings.tick_bytes)
        traced = served.telemetry.traced if served.telemetry is not None else None
        self._relay = Relay(writer_path, self) if writer_path else None
        hand_on = self._relay.hand_on if self._relay is not None else None
        self._ticker = Ticker(
            self._mounted.gateway.engine, limits, lane, self.answer, self.refuse, hand_on, traced
        )
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_gone = asyncio.Event()

    async def listen_to_readers(self, listening: socket.socket) -> None:
        """Answer what other processes of this server hand on."""
        self._listeners.append(await self._loop.create_unix_server(lambda: Relayed(self), sock=listening))

    async def listen(self, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        """Answer whoever calls on these sockets, which are bound."""
        for each in sockets:
            listener = await self._loop.create_server(
                lambda: Connection(self), sock=each, ssl=tls, backlog=_BACKLOG,
                ssl_handshake_timeout=self.settings.header_seconds if tls else None,
            )  # fmt: skip
            self._listeners.append(listener)
        self._sweep()

    async def stop(self) -> bool:
        """Listen no more, answer what was accepted, close; after `stop_seconds` whatever is in hand. Whether all was
        answered."""
        self.is_stopping = True
        for listener in self._listeners:
            listener.close()
        await asyncio.sleep(0)  # what has arrived is read first
        for connection in list(self._connections):
            if connection.is_idle:
                connection.give_up()
        is_clean = True
        if self._connections:
            try:
                await asyncio.wait_for(self._all_gone.wait(), self.settings.stop_seconds)
            except TimeoutError:
                is_clean = False
                logs.error("stopped with requests in hand", connections=len(self._connections))
                for connection in list(self._connections):
                    connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ticker.close()
        return is_clean

    # What connections call (connection.Reception)

    def enter(self, connection: Connection) -> bool:
        """A new connection. When there are as many as may be, the one goes that has waited longest for its client to send, be it
        idle, in the middle of a head or of a body that has stopped coming; if none waits, this one."""
        self._connections.add(connection)
        metrics.connections = len(self._connections)
        if len(self._connections) <= self.settings.max_connections:
            return True
        waiting = [
            (since, id(known), known)
            for known in self._connections
            if known is not connection and (since := known.waits_since) < NEVER
        ]
        return any(known.give_up() for _, _, known in heapq.nsmallest(_CANDIDATES, waiting))

    def leave(self, connection: Connection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        metrics.connections = len(self._connections)
        if self.is_stopping and not self._connections:
            self._all_gone.set()

    def head_began(self, connection: Connection) -> None:
        """A part of a head has come. Of one client so many are waited for; with more its oldest is refused."""
        heads = self._heads.setdefault(connection.client, {})
        heads[connection] = None
        if len(heads) > self.settings.max_heads_per_client:
            next(iter(heads)).give_up()

    def head_ended(self, connection: Connection) -> None:
        """The rest of a head is not waited for any longer."""
        heads = self._heads.get(connection.client, {})
        heads.pop(connection, None)
        if not heads:
            self._heads.pop(connection.client, None)

    def handle(self, pending: PendingRequest) -> None:
        """Have a request handled; it is answered once, in a later turn of the loop. One that is watched comes here twice."""
        dialect, met = pending.dialect, pending.met
        if met is None:
            pending.began = monotonic()
            if self._telemetry is not None:
                pending.span = self._telemetry.began(pending)
            dialect = pending.dialect = self._mounted.dialect_of(pending)
            instead = self._mounted.turn_away(pending)
            if instead is None and dialect is not None and self._mounted.watch.is_on:
                pending.met = self._mounted.watch.meet(pending, dialect)
                self._loop.call_later(pending.met.latency_s, self.handle, pending)
                return
        else:
            instead = met.instead()
        if instead is not None:
            self._loop.call_soon(self.answer, pending, instead)
            return
        if self._relay is not None and not self._may_read_here(pending):
            self._relay.hand_on(pending)
            return
        try:
            handler = dialect.enter(pending) if dialect is not None and fast_paths.ARE_ON else None
        except Exception as error:
            self._loop.call_soon(self.answer, pending, self.refuse(pending, error))
            return
        if handler is not None:
            self._ticker.submit(pending, handler if met is None else met.watched(handler))
        else:
            self._threads.submit(self._serve, pending)

    def _may_read_here(self, pending: PendingRequest) -> bool:
        """Whether a process that does not write can answer a request: what surely reads, and what is not about the database."""
        if pending.dialect is not None:
            return pending.dialect.only_reads(pending)
        return pending.method in ("GET", "HEAD") and pending.path in ("/healthz", "/metrics")

    def answer(self, pending: PendingRequest, reply: Reply) -> None:
        """Send the reply to a request in hand, then note it for the figures and write down what is worth a line."""
        authorization = pending.authorization
        if authorization is not None and not authorization.is_checked and pending.dialect is not None:
            reply = pending.dialect.judged(pending, reply)
        if pending.answered_after_s:
            after_s, pending.answered_after_s = pending.answered_after_s, 0.0
            self._loop.call_later(after_s, self.answer, pending, reply)
            return
        pending.connection.answer(reply if pending.met is None else pending.met.answered(reply))
        seconds = monotonic() - pending.began
        dialect = pending.dialect
        if dialect is not None:
            name, operation = dialect.name, dialect.operation(pending)
        else:
            name, operation = "gateway", pending.path if reply.status < 400 else ""
        metrics.answered((name, operation, reply.status, seconds))
        if self._telemetry is not None:
            self._telemetry.answered(pending.span, pending, reply, name, operation)
        if self._trail is not None:
            self._trail.answered(pending, reply, dialect, operation)
        if self.settings.access_log or seconds * 1000 >= self.settings.slow_request_ms:
            logs.info(
                "request" if seconds * 1000 < self.settings.slow_request_ms else "slow request",
                request_id=pending.id, client=pending.client, method=pending.method, target=pending.target,
                dialect=name, operation=operation if dialect is not None else pending.path, status=reply.status,
                bytes_in=len(pending.body), bytes_out=len(reply.body), ms=round(seconds * 1000, 2),
            )  # fmt: skip

    def refuse(self, request: Request, error: Exception) -> Reply:
        """What the server itself has to say to a request. A line for what should not have happened."""
        return self._mounted.refuse_and_log(request, error)

    def _serve(self, pending: PendingRequest) -> None:
        dialect = pending.dialect
        is_dialects = dialect is not None and fast_paths.ARE_ON and pending.method in dialect.methods
        token = None if pending.met is None else handling.CURRENT.set(pending.met.handling)
        try:
            if dialect is not None and is_dialects:
                reply = dialect.serve(pending)
            else:
                reply = self._mounted.own_reply(pending) or self._call_application(pending)
        except Exception as error:
            reply = self.refuse(pending, error)
        finally:
            if token is not None:
                handling.CURRENT.reset(token)
        self._loop.call_soon_threadsafe(self.answer, pending, reply)

    def _sweep(self) -> None:
        """Look for connections whose time is over, and count what was noted."""
        if metrics.is_counting:
            metrics.count_noted()
        elif metrics.is_due():
            # The first time the library is loaded, for which nobody should wait here.
            self._threads.submit(metrics.count_noted)
        now = monotonic()
        for connection in [known for known in self._connections if known.deadline < now]:
            connection.overdue()
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # "::" is every address, of IPv4 too
        made.bind((host, port))
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where and how to listen: bound sockets, TLS or not; `lane` is the ticker's (tick.py). `relay`: where readers reach the
    writer, if there are several processes on a database that one of them writes; `is_writer`: whether this is that one."""

    sockets: list[socket.socket]
    lane: str
    tls: ssl.SSLContext | None = None
    relay: RelaySocket | None = None
    is_writer: bool = True


async def serve(
    served: Served, listen_address: ListenAddress, ready: Callable[[], None], told: asyncio.Event
) -> bool:
    """Serve until told to stop. `ready` is called when requests are being answered. False: requests were left
    unanswered, and threads may still be at them."""
    relay = listen_address.relay
    server = Server(served, listen_address.lane, relay.path if relay and not listen_address.is_writer else "")
    if relay is not None and listen_address.is_writer:
        await server.listen_to_readers(relay.listening)
    await server.listen(listen_address.sockets, listen_address.tls)
    ready()
    await told.wait()
    return await server.stop()


def run(
    served: Served, listen_address: ListenAddress, ready: Callable[[], None], reload: Callable[[], None]
) -> bool:
    """Serve until SIGTERM or SIGINT; what `serve` says. At SIGHUP `reload` is called, from just before `ready` on."""

    async def main() -> bool:
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told.set)
        # What has been made by now stays; looking through it again at each collection would only cost. A last look would take
        # 10 ms and find a dozen objects: the collector has run all the time.
        gc.freeze()
        # Requests make no circles worth looking for every 700 objects: a batch of 25 items makes thousands.
        gc.set_threshold(*_GC_THRESHOLDS)
        allocator.keep_freed_memory()

        def begin() -> None:
            loop.add_signal_handler(signal.SIGHUP, reload)
            ready()

        return await serve(served, listen_address, begin, told)

    return run_in_loop(main())


def run_in_loop(main: Coroutine[None, None, bool]) -> bool:
    """asyncio.run on uvloop, where there is one for the platform."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    return uvloop.run(main)

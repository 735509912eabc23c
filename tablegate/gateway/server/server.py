"""The server in one process: its connections, and the path of a request. server_process.py runs it.

A request of a dialect goes into the tick (tick.py). If it may wait for something else than the database, its dialect
serves it on a small thread pool. If no dialect matches it, the WSGI application answers it there. All operations on
connections run in the event loop's thread.

This module does not depend on HTTP grammar (connection.py), dialects or SQL.
"""

from __future__ import annotations

import asyncio
import heapq
import socket
import ssl
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import random
from time import monotonic
from typing import TYPE_CHECKING

from tablegate.gateway.application import Application
from tablegate.gateway.configuration.secrets import masked_target
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.control import health
from tablegate.gateway.dialects.dialect import QUICK_BYTES, Dialect, UnloadedDialect
from tablegate.gateway.http import request_context
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.observability import logs, metrics
from tablegate.gateway.server.connection import NEVER, Connection
from tablegate.gateway.server.listening import Listener
from tablegate.gateway.server.pending_request import ABANDONED, REFUSAL_DELAY_S, PendingRequest
from tablegate.gateway.server.relay import Relay, Relayed
from tablegate.gateway.server.tick import Ticker

if TYPE_CHECKING:
    from tablegate.gateway.observability.audit import AuditTrail
    from tablegate.gateway.observability.telemetry import Telemetry

_WSGI_THREADS = 8
_SWEEP_S = 1.0
# Characters of a target in the access log. Masking takes time for each.
_LOGGED_CHARACTERS = 4096
# Limit on bytes read from refused clients, over all connections. To read 10 MB takes 5 ms of CPU.
_DISCARDED_BYTES_PER_S = 32 << 20
_DISCARDING_PAUSE_MAX_S = 1.0
# Number of connections tried when one must be closed for a new one. A request may be arriving on an idle one.
_CANDIDATES = 16
_EXCESS_LOG_PERIOD_S = 60.0


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The parts that a server uses besides its sockets.

    - `application`: routes requests to the dialects
    - `call_application`: calls the WSGI application (http/messages.py) with a request that no dialect matches
    - `trail`, `telemetry`: receive answered requests
    """

    application: Application
    call_application: Callable[[Request], Reply]
    trail: AuditTrail | None = None
    telemetry: Telemetry | None = None


class Server:
    """The server of one event loop. Created and used in the loop's thread."""

    def __init__(self, context: ServerContext, lane: str, writer_path: str = "") -> None:
        """`writer_path`: the socket of the process that writes. Empty if this process writes."""
        self._application = context.application
        self.settings: Settings = self._application.gateway.settings
        self.is_stopping = False
        self.memory = self._application.gateway.memory
        self._call_application = context.call_application
        self._trail = context.trail
        self._telemetry = context.telemetry
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._heads: dict[str, dict[Connection, None]] = {}  # by client address, oldest first
        self._threads = ThreadPoolExecutor(_WSGI_THREADS, "wsgi")
        trace = self._telemetry.trace_lists if self._telemetry is not None else None
        self._relay = Relay(writer_path, self) if writer_path else None
        forward = self._relay.forward if self._relay is not None else None
        self._ticker = Ticker(
            self._application.gateway.engine, self.settings, lane, self.answer, self.refuse, forward, trace
        )
        self._listeners: list[Listener] = []
        self._from_readers: asyncio.Server | None = None
        self._discarding_until = 0.0
        self._sweeper: asyncio.TimerHandle | None = None
        self._all_closed = asyncio.Event()
        self._excess_connections, self._log_excess_at = 0, 0.0

    async def listen_to_readers(self, listening: socket.socket) -> None:
        """Start serving requests that other processes of this server forward."""
        self._from_readers = await self._loop.create_unix_server(lambda: Relayed(self), sock=listening)

    async def listen(self, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        """Start serving on these bound sockets. They are closed at the end."""
        for sock in sockets:
            listener = Listener(
                sock,
                lambda: Connection(self),
                tls,
                self.settings.header_seconds,
                self._check_all_closed,
            )
            await listener.start()
            self._listeners.append(listener)
        self._sweep()

    async def stop(self, is_shared: bool = False) -> bool:
        """Answer the requests already sent, each last one with `Connection: close`, and close the connections.

        Return False if connections were left after `drain_seconds` and `stop_seconds`. Those are aborted.

        is_shared: other processes accept connections from the same sockets, or will do so.
        """
        self.is_stopping = True
        deadline = monotonic() + self.settings.drain_seconds + self.settings.stop_seconds
        for listener in self._listeners:
            if not is_shared:
                listener.hold_handshakes()
            listener.accept()
        for connection in list(self._connections):
            self._close_if_idle_later(connection)
        await self._wait_until_closed(self.settings.drain_seconds)
        for listener in self._listeners:
            listener.close()
        await asyncio.sleep(0)  # the loop registers connections that it has accepted in its next iteration
        await asyncio.sleep(0)
        is_clean = await self._wait_until_closed(deadline - monotonic())
        if not is_clean:
            logs.error("stopped before all requests were answered", connections=len(self._connections))
            for connection in list(self._connections):
                connection.abort()
        if self._from_readers is not None:
            self._from_readers.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ticker.close()
        return is_clean

    def _close_if_idle_later(self, connection: Connection) -> None:
        """Close a connection that stays idle until the end of the drain period."""
        # Where new connections cannot be held, many are closed before that.
        reference = weakref.ref(connection)

        def close() -> None:
            kept = reference()
            if kept is not None and kept.is_idle:
                kept.give_up()

        self._loop.call_later(self.settings.drain_seconds, close)

    async def _wait_until_closed(self, seconds: float) -> bool:
        """Wait until there is no connection. Return False if one is left after this time."""
        self._all_closed.clear()
        self._check_all_closed()
        try:
            await asyncio.wait_for(self._all_closed.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _check_all_closed(self) -> None:
        if (
            self.is_stopping
            and not self._connections
            and not any(listener.opening for listener in self._listeners)
        ):
            self._all_closed.set()

    # Calls by connections (connection.ConnectionServer)

    def enter(self, connection: Connection) -> bool:
        """Register a new connection. Above the limit, close the one that has waited longest for its client to send.

        Such a connection is idle, in a head, or in a stalled body. Return False if there is none.
        """
        self._connections.add(connection)
        if self.is_stopping:
            self._close_if_idle_later(connection)
        metrics.connections = len(self._connections)
        if len(self._connections) <= self.settings.max_connections:
            return True
        self._note_excess()
        candidates = [
            (since, id(other), other)
            for other in self._connections
            if other is not connection and (since := other.waits_since) < NEVER
        ]
        return any(other.give_up() for _, _, other in heapq.nsmallest(_CANDIDATES, candidates))

    def _note_excess(self) -> None:
        """Count a connection above the limit, and log the number at most once a minute."""
        metrics.record_excess_connection()
        self._excess_connections += 1
        if monotonic() >= self._log_excess_at:
            logs.warning(
                "more clients are connected than --max-connections allows, so a waiting connection is closed for each new one",
                max_connections=self.settings.max_connections,
                closed=self._excess_connections,
            )
            self._excess_connections, self._log_excess_at = 0, monotonic() + _EXCESS_LOG_PERIOD_S

    def leave(self, connection: Connection) -> None:
        self.head_ended(connection)
        self._connections.discard(connection)
        metrics.connections = len(self._connections)
        self._check_all_closed()

    def head_began(self, connection: Connection) -> None:
        """Count an incomplete head. If the client has too many, refuse the oldest."""
        heads = self._heads.setdefault(connection.client, {})
        heads[connection] = None
        if len(heads) > self.settings.max_heads_per_client:
            next(iter(heads)).give_up()

    def head_ended(self, connection: Connection) -> None:
        heads = self._heads.get(connection.client, {})
        heads.pop(connection, None)
        if not heads:
            self._heads.pop(connection.client, None)

    def handle(self, pending: PendingRequest) -> None:
        """Start handling a request. It is answered once, in a later iteration of the loop.

        A request is passed here a second time after its dialect was loaded, and an intercepted one after its delay.
        """
        dialect, interception = pending.dialect, pending.interception
        if interception is None:
            pending.began = pending.began or monotonic()
            found = self._application.find_dialect(pending)
            if isinstance(found, UnloadedDialect):
                self._threads.submit(self._load, found, pending)
                return
            if self._telemetry is not None:
                pending.span = self._telemetry.start_span(pending)
            dialect = pending.dialect = found
            if dialect is not None:
                pending.operation = dialect.operation(pending)
            reply = self._application.reject_cross_origin(pending)
            if reply is None and dialect is None:
                reply = health.reply_at_once(pending)
                if metrics.is_counting:  # without a tick, thousands would be counted together
                    metrics.count_if_enough()
            if reply is None and dialect is not None and self._application.interceptor.is_on:
                pending.interception = self._application.interceptor.intercept(pending, dialect)
                self._loop.call_later(pending.interception.latency_s, self.handle, pending)
                return
        else:
            reply = interception.injected_reply()
        if reply is not None:
            self._loop.call_soon(self.answer, pending, reply)
            return
        if self._relay is not None and not self._can_serve_here(pending):
            self._relay.forward(pending)
            return
        is_blocking = dialect is None or pending.operation in dialect.blocking_operations
        if dialect is not None and (is_blocking or len(pending.body) > QUICK_BYTES):
            pending.takes_long = dialect.takes_long(pending, pending.operation)
        if dialect is not None and pending.takes_long and self._runs_whole(pending, dialect):
            self._ticker.run_slowly(partial(self._reply_of, pending), partial(self.answer, pending))
        elif dialect is not None and not is_blocking:
            self._ticker.submit(
                pending, dialect.handle if interception is None else interception.in_context(dialect.handle)
            )
        else:
            self._threads.submit(self._serve, pending)

    def _runs_whole(self, pending: PendingRequest, dialect: Dialect) -> bool:
        """Return True if all steps of a request that takes long run on one thread. With standbys, the tick reads, as it
        knows which standbys have the last write of the connection."""
        if pending.operation in dialect.blocking_operations:
            return True
        return dialect.only_reads(pending) and self._application.gateway.engine.replicas is None

    def _can_serve_here(self, pending: PendingRequest) -> bool:
        """Return True if a process that does not write can answer a request: it only reads, or does not use the
        database."""
        if pending.dialect is not None:
            return pending.dialect.only_reads(pending)
        return pending.method in ("GET", "HEAD") and pending.path in ("/healthz", "/metrics")

    def answer(self, pending: PendingRequest, reply: Reply) -> None:
        """Send the reply to a request, and record it for metrics, traces, the audit and the log."""
        if pending.held_bytes:
            self.memory.release(pending)
        authorization, is_to_be_delayed = pending.authorization, pending.is_unauthenticated
        if authorization is not None:
            if not authorization.is_checked and pending.dialect is not None:
                reply = pending.dialect.finalize_authorization(pending, reply)
            is_to_be_delayed = authorization.usage is not None and authorization.exceeded_quota is not None
        if is_to_be_delayed and not pending.is_delayed:
            pending.is_delayed = True
            # Spread the replies, as clients that are answered together also retry together.
            self._loop.call_later(REFUSAL_DELAY_S * (1 + random()), self.answer, pending, reply)
            return
        pending.connection.answer(
            reply if pending.interception is None else pending.interception.answered(reply)
        )
        seconds = monotonic() - pending.began
        dialect = pending.dialect
        if dialect is not None:
            name, operation = dialect.name, pending.operation
        else:
            name, operation = "gateway", pending.path if reply.status < 400 else ""
        metrics.record_request((name, operation, reply.status, seconds))
        if self._telemetry is not None:
            self._telemetry.end_span(pending.span, pending, reply, name, operation)
        if self._trail is not None:
            self._trail.record_request(pending, reply, dialect, operation)
        if self.settings.access_log or seconds * 1000 >= self.settings.slow_request_ms:
            logs.info(
                "request" if seconds * 1000 < self.settings.slow_request_ms else "slow request",
                request_id=pending.id, client=pending.client, method=pending.method,
                target=masked_target(pending.target[:_LOGGED_CHARACTERS]),
                dialect=name, operation=operation if dialect is not None else pending.path, status=reply.status,
                bytes_in=len(pending.body), bytes_out=len(reply.body), ms=round(seconds * 1000, 2),
            )  # fmt: skip

    def refusal_of_head(self, pending: PendingRequest) -> Reply | None:
        """Return the refusal of a request that its head justifies, or None."""
        reply = self._application.refusal_of_head(pending)
        if reply is not None:
            pending.is_unauthenticated = True
            pending.began = monotonic()
            pending.dialect = self._application.dialect_of(pending)
            if pending.dialect is not None:
                pending.operation = pending.dialect.operation(pending)
            if self._telemetry is not None:
                pending.span = self._telemetry.start_span(pending)
        return reply

    def discard(self, transport: asyncio.Transport, size_bytes: int) -> None:
        """Count discarded bytes, and resume reading later. This limits the time spent on data of refused clients."""

        def resume() -> None:
            if not transport.is_closing():
                transport.resume_reading()

        if not transport.is_closing():
            now = monotonic()
            self._discarding_until = max(now, self._discarding_until) + size_bytes / _DISCARDED_BYTES_PER_S
            transport.pause_reading()
            self._loop.call_later(min(self._discarding_until - now, _DISCARDING_PAUSE_MAX_S), resume)

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Return the refusal for an error, in the words of the request's dialect. Server errors are logged."""
        return self._application.refuse_and_log(request, error)

    def _load(self, unloaded: UnloadedDialect, pending: PendingRequest) -> None:
        """Load the dialect of a request, on a thread, and handle the request."""
        try:
            self._application.load(unloaded)
        except Exception as error:
            self._loop.call_soon_threadsafe(self.answer, pending, self.refuse(pending, error))
        else:
            self._loop.call_soon_threadsafe(self.handle, pending)

    def _serve(self, pending: PendingRequest) -> None:
        self._loop.call_soon_threadsafe(self.answer, pending, self._reply_of(pending))

    def _reply_of(self, pending: PendingRequest) -> Reply:
        """Return the reply to a request. Runs on a thread."""
        if pending.connection.is_lost:
            return ABANDONED
        dialect, interception = pending.dialect, pending.interception
        token = None if interception is None else request_context.CURRENT.set(interception.context)
        try:
            if dialect is not None:
                return dialect.serve(pending)
            return self._application.own_reply(pending) or self._call_application(pending)
        except Exception as error:
            return self.refuse(pending, error)
        finally:
            if token is not None:
                request_context.CURRENT.reset(token)

    def _sweep(self) -> None:
        """Close connections after their deadline or without a client, and count metrics. Runs once a second."""
        if metrics.is_counting:
            metrics.count_noted()
        elif metrics.is_due():
            # The first call loads the library, which would block the loop.
            self._threads.submit(metrics.count_noted)
        now = monotonic()
        for connection in [*self._connections]:
            if connection.deadline < now:
                connection.overdue()
            else:
                connection.probe()
        self._sweeper = self._loop.call_later(_SWEEP_S, self._sweep)

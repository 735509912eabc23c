"""One client connection: bytes to requests and replies to bytes, one request at a time and in order.

This module implements HTTP/1.1 on a connection: pipelining, 100-continue, time limits, back-pressure, and a close that
does not lose the last reply. http1.py parses requests. The meaning of requests is left to the server
(server.py).
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from enum import Enum
from time import monotonic
from typing import Protocol, cast

from tablegate.gateway.http.messages import CUT, Reply
from tablegate.gateway.server import http1
from tablegate.gateway.server.http1 import Refusals, RequestParser
from tablegate.gateway.server.pending_request import PendingRequest

# A client may send this many requests ahead before its connection is no longer read.
_PIPELINE_LIMIT = 16
# Bytes that are parsed at a time. Most requests are shorter than the first number. 2 KB have at most 113 requests, which
# take 1 ms. Further requests of the same client come in smaller pieces.
_PIECE_BYTES = 2048
_FURTHER_PIECE_BYTES = 256
# Seconds for which further data of a refused client is discarded. An immediate close could lose the reply.
_LINGER_S = 3.0
_WRITE_SEPARATELY_BYTES = 64 << 10
# A body without new data for this time may be closed to free its place.
_STALLED_S = 1.0
NEVER = float("inf")


class ConnectionServer(Refusals, Protocol):
    """The part of the server that connections call. One instance for all connections of a process."""

    is_stopping: bool

    def enter(self, connection: Connection) -> bool:
        """Register a new connection. Return False if there are too many."""

    def leave(self, connection: Connection) -> None:
        """Unregister a connection."""

    def head_began(self, connection: Connection) -> None:
        """Count an incomplete head."""

    def head_ended(self, connection: Connection) -> None:
        """Stop counting a head as incomplete: it is complete or abandoned."""

    def handle(self, pending: PendingRequest) -> None:
        """Start handling a request. Its connection's `answer` is called once, in the event loop."""

    def answer(self, pending: PendingRequest, reply: Reply) -> None:
        """Answer a request that was refused by its head."""

    def discard(self, transport: asyncio.Transport, size_bytes: int) -> None:
        """Count discarded bytes, and resume reading later."""


class DeadlinePhase(Enum):
    """The state that a connection's deadline applies to."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    WORKING = "working"
    LINGERING = "lingering"


class Connection(asyncio.Protocol):
    """One connection. The server checks `deadline` (monotonic seconds) once a second."""

    written_up_to = 0
    is_lost = False

    def __init__(self, server: ConnectionServer) -> None:
        self._server = server
        self._memory = server.memory
        self._settings = server.settings
        self._queue: deque[PendingRequest] = deque()
        self._unparsed = b""
        self._has_client_ended = False
        self._current: PendingRequest | None = None
        self._is_blocked = self._is_paused = False
        self._idle_seconds = self._settings.idle_seconds
        self.client = ""
        self._is_secure = False
        self.phase = DeadlinePhase.IDLE
        self.deadline = NEVER
        self._since = 0.0

    # Calls by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        # A socket for both address families reports an IPv4 address as an IPv6 one.
        self.client = peer[0].removeprefix("::ffff:") if isinstance(peer, tuple) else ""
        self._is_secure = transport.get_extra_info("sslcontext") is not None
        self._parser = RequestParser(self._server, self, self.client, self._is_secure)
        self._expect_next()
        if not self._server.enter(self):
            self._queue.append(self._parser.refuse_message(http1.plain_reply(503, "too many connections")))
            self._next()

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser.is_ended:
            self._server.discard(self._transport, len(data))
            return
        if self._unparsed:
            self._unparsed += data
            self._parse_pieces()
        elif len(data) > _PIECE_BYTES:
            self._queue += parser.feed(data[:_PIECE_BYTES])
            self._unparsed = data[_PIECE_BYTES:]
            self._parse_pieces()
        else:
            self._queue += parser.feed(data)
        if parser.has_message and self.phase is not DeadlinePhase.WORKING:
            self._expect_rest_of_message()
        is_ahead = len(self._queue) >= _PIPELINE_LIMIT or self._unparsed
        if is_ahead and not (self._is_paused or parser.is_ended):
            self._is_paused = True
            self._transport.pause_reading()
        self._next()

    def _parse_pieces(self) -> None:
        """Parse what was received, up to the next request. The rest waits until it is answered.

        So a client that sends thousands of requests at once takes turns with the clients of other connections.
        """
        parser, data, at = self._parser, self._unparsed, 0
        while at < len(data) and not self._queue and not parser.is_ended:
            is_in_body = parser.is_head_complete
            end = at + (max(_PIECE_BYTES, parser.missing_body_bytes) if is_in_body else _FURTHER_PIECE_BYTES)
            self._queue += parser.feed(data[at:end])
            at = end
        self._unparsed = b"" if parser.is_ended else data[at:]
        if self._has_client_ended and not self._unparsed:
            parser.is_ended = True

    def eof_received(self) -> bool:
        """Keep the connection open for the replies, as the client may only have stopped sending."""
        self._has_client_ended = True
        self._parser.is_ended = self._parser.is_ended or not self._unparsed
        return self._current is not None or bool(self._queue or self._unparsed)

    def pause_writing(self) -> None:
        self._is_blocked = True
        if self._current is None and self.phase is not DeadlinePhase.LINGERING:
            self._expect(DeadlinePhase.WORKING, self._settings.write_seconds)

    def resume_writing(self) -> None:
        self._is_blocked = False
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._parser.is_ended = True
        self._parser.drop_body()
        for pending in self._queue:
            self._memory.received_bytes -= len(pending.body)
        self._queue.clear()
        self._unparsed = b""
        self._server.leave(self)

    def _expect_rest_of_message(self) -> None:
        """Set the deadline of an incomplete message, from the beginning of its head or body."""
        if self._parser.is_head_complete:
            if self.phase is not DeadlinePhase.BODY:
                self._expect(DeadlinePhase.BODY, self._settings.body_seconds)
            self._since = monotonic()
        elif self.phase is not DeadlinePhase.HEAD:
            self._expect(DeadlinePhase.HEAD, self._settings.header_seconds)

    # Answering

    def _next(self) -> None:
        """Start the next request, unless one is running or replies wait to be sent."""
        if self._current is not None or self._is_blocked or self._transport.is_closing():
            return
        if self._unparsed and not self._queue:
            self._parse_pieces()
        if not self._queue:
            if self._parser.owes_continue:
                self._parser.owes_continue = False
                self._transport.write(http1.CONTINUE)
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            if self.phase is DeadlinePhase.WORKING:
                self._expect_next()
            return
        self._current = pending = self._queue.popleft()
        if self.phase is DeadlinePhase.HEAD:
            self._server.head_ended(self)
        self.phase = DeadlinePhase.WORKING
        self.deadline = NEVER
        if pending.refusal is None:
            self._server.handle(pending)
        elif pending.dialect is not None:
            self._server.answer(pending, pending.refusal)
        else:
            self.answer(pending.refusal)

    def answer(self, reply: Reply) -> None:
        """Send the reply to the current request, in one piece, and start the next."""
        current = self._current
        if current is None:
            return
        self._current = None
        self._memory.received_bytes -= len(current.body)
        if reply is CUT:
            self._transport.abort()
        if self._transport.is_closing():
            return
        has_next = bool(self._queue or self._unparsed)
        keep_alive = current.keep_alive and (has_next or not self._server.is_stopping)
        try:
            head, body = http1.encode_reply(reply, current.method, keep_alive, current.http_10)
        except ValueError as error:
            refusal = self._server.refuse(current, error)
            head, body = http1.encode_reply(refusal, current.method, keep_alive, current.http_10)
        if len(body) < _WRITE_SEPARATELY_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        if not keep_alive:
            # While the server stops, a further request must not reset the connection before the client has read the
            # last reply. TLS waits for the end of the client by itself.
            is_stopping = self._server.is_stopping and self._transport.can_write_eof()
            self._finish(linger=current.refusal is not None or is_stopping)
        elif (
            self._queue
            or self._parser.has_message
            or self._is_paused
            or self._is_blocked
            or self._parser.is_ended
        ):
            self._next()
        else:  # the idle case of `_expect_next`
            self.phase = DeadlinePhase.IDLE
            self._since = monotonic()
            self.deadline = self._since + self._idle_seconds

    def _expect_next(self) -> None:
        """Set the deadline for the time without a request: idle, or within a message."""
        if self._parser.is_ended:
            self._finish(linger=False)
        elif not self._parser.has_message:
            self._expect(DeadlinePhase.IDLE, self._settings.idle_seconds)
        elif self._parser.is_head_complete:
            self._expect(DeadlinePhase.BODY, self._settings.body_seconds)
        else:
            self._expect(DeadlinePhase.HEAD, self._settings.header_seconds)

    def _expect(self, phase: DeadlinePhase, seconds: float) -> None:
        if self.phase is DeadlinePhase.HEAD:
            self._server.head_ended(self)
        self.phase = phase
        self._since = monotonic()
        self.deadline = self._since + seconds
        if phase is DeadlinePhase.HEAD:
            self._server.head_began(self)

    def _finish(self, linger: bool) -> None:
        self._parser.is_ended = True
        if linger:
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._expect(DeadlinePhase.LINGERING, _LINGER_S)
        else:
            self._expect(DeadlinePhase.LINGERING, self._settings.write_seconds)
            self._transport.close()

    # Calls by the server

    def overdue(self) -> None:
        """Close the connection after its deadline."""
        if self.phase in (DeadlinePhase.HEAD, DeadlinePhase.BODY) and not self._is_blocked:
            self._time_out()
        elif self.phase is DeadlinePhase.IDLE:
            self.give_up()
        else:
            self._transport.abort()

    def probe(self) -> None:
        """Send an interim response if the client has ended sending while its request runs.

        If it has closed the connection, its system rejects the data, and the connection is lost. A client that waits for
        the reply ignores it (RFC 9110, 15.2.1).
        """
        current = self._current
        if self._has_client_ended and current is not None and not current.http_10:
            self._transport.write(http1.CONTINUE)

    @property
    def is_idle(self) -> bool:
        """True if closing now loses no reply."""
        return self.phase is DeadlinePhase.IDLE

    @property
    def waits_since(self) -> float:
        """Time since which the connection waits for its client to send. NEVER while it handles a request or receives a
        body."""
        if self.phase is DeadlinePhase.WORKING or self._transport.is_closing():
            return NEVER
        if self.phase is DeadlinePhase.BODY and monotonic() - self._since < _STALLED_S:
            return NEVER
        return self._since

    def give_up(self) -> bool:
        """Close a connection that waits for its client. Return False if its next request is arriving."""
        if self.phase is DeadlinePhase.IDLE and self._has_arrived():
            return False
        if self.phase in (DeadlinePhase.HEAD, DeadlinePhase.BODY) and not self._is_blocked:
            self._time_out()
        self._finish(linger=False)
        return True

    def _time_out(self) -> None:
        self._queue.append(
            self._parser.refuse_message(http1.plain_reply(408, "the request took too long to arrive"))
        )
        self._next()

    def _has_arrived(self) -> bool:
        """Return True if there are bytes to read. A timer may run before they are read."""
        socket = self._transport.get_extra_info("socket")
        if socket is None:
            return False
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def abort(self) -> None:
        """Close at once. The current request gets no reply."""
        self._transport.abort()

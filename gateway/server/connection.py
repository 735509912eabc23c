"""One client connection: bytes -> requests -> replies, one request at a time and in order.

Knows HTTP/1.1 on a connection: pipelining, chunked bodies, 100-continue, limits of size and time, back-pressure, closing so
that the last reply arrives. The grammar is httptools'. Knows nothing of what requests mean: `Reception` does.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from enum import Enum
from time import monotonic
from typing import Protocol, cast

import httptools

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.http import CUT, Headers, Reply, Request
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.errors import Busy, LimitExceeded
from tablegate.gateway.request_memory import HEAD_FIRST_BYTES, RequestMemory
from tablegate.gateway.server import fast_heads, framing, heads
from tablegate.gateway.server.fast_heads import Whole
from tablegate.gateway.server.pending_request import PendingRequest

# A client may send this many requests ahead before its connection is no longer read.
_PIPELINE_LIMIT = 16
# For how long what a refused client goes on sending is thrown away: closing at once could lose it the reply.
_LINGER_S = 3.0
_WRITE_SEPARATELY_BYTES = 64 << 10
# A body of which nothing has come for so long may be given up when its place is needed.
_STALLED_S = 1.0
NEVER = float("inf")


class Reception(Protocol):
    """What a connection hands its requests to; one for all connections of a process."""

    settings: Settings
    is_stopping: bool
    memory: RequestMemory

    def enter(self, connection: Connection) -> bool:
        """A new connection; False if there are too many."""

    def leave(self, connection: Connection) -> None:
        """A connection is gone."""

    def head_began(self, connection: Connection) -> None:
        """A part of a head has come, and the rest has not."""

    def head_ended(self, connection: Connection) -> None:
        """The rest of the head has come, or is not waited for any longer."""

    def handle(self, pending: PendingRequest) -> None:
        """Have a request handled; its connection's `answer` is called once, in the event loop."""

    def answer(self, pending: PendingRequest, reply: Reply) -> None:
        """Have a request answered that was refused by its head, and note it."""

    def refusal_of_head(self, pending: PendingRequest) -> Reply | None:
        """The refusal of a request whose body is not worth waiting for, or None."""

    def discard(self, transport: asyncio.Transport, size_bytes: int) -> None:
        """Count bytes that were received for nothing, and read the connection on later."""

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Word a refusal of the server's as the request's dialect has it."""


class Phase(Enum):
    """What a connection's deadline is about."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    WORKING = "working"
    LINGERING = "lingering"


def _by_parser(data: bytes, most_head_bytes: int, most_target_bytes: int) -> Whole | None:
    """In place of `fast_heads.whole_request` where fast paths are off."""
    return None


_whole_request = fast_paths.choose(fast_heads.whole_request, _by_parser)


class Connection(asyncio.Protocol):
    """One connection: bytes to requests, replies to bytes. `deadline` (monotonic seconds) is looked at by the reception's
    sweep, once a second."""

    written_up_to = 0
    # Of the message that is being read.
    _target: bytes
    _headers: Headers
    _has_message: bool
    _body_bytes: int
    _told: int

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._memory = reception.memory
        self._settings = reception.settings
        self._parser = httptools.HttpRequestParser(self)
        self._in_line: deque[PendingRequest] = deque()
        self._current: PendingRequest | None = None
        self._is_blocked = self._is_paused = self._is_last_read = False
        self._max_target_bytes = self._settings.max_request_line_bytes
        self._max_header_bytes = self._settings.max_header_bytes
        self._max_body_bytes = self._settings.max_body_bytes
        self._idle_seconds = self._settings.idle_seconds
        self.client = ""
        self._is_secure = False
        self.phase = Phase.IDLE
        self.deadline = NEVER
        self._since = 0.0
        self._forget_message()

    # asyncio's calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        # On a socket for both, an IPv4 address comes as one of IPv6.
        self.client = peer[0].removeprefix("::ffff:") if isinstance(peer, tuple) else ""
        self._is_secure = transport.get_extra_info("sslcontext") is not None
        self._rest()
        if not self._reception.enter(self):
            self._stand_in_line(self._refused(framing.plain(503, "too many connections")))
            self._next()

    def data_received(self, data: bytes) -> None:
        if self._is_last_read:
            self._reception.discard(self._transport, len(data))
            return
        if not self._has_message and not self._quiet_bytes:
            whole = _whole_request(data, self._max_header_bytes, self._max_target_bytes)
            if whole is not None and self._take(*whole):
                return
        known = len(self._in_line)
        try:
            self._feed(data)
        except httptools.HttpParserError as error:
            if not self._is_last_read:
                self._refuse(framing.plain(400, f"not HTTP/1.1: {error}"))
        if len(self._in_line) == known:
            self._look_at_progress(len(data))
        if self._refusal is not None:
            self._stand_in_line(self._refusal)
        if self._has_message and self.phase is not Phase.WORKING:
            self._expect_rest_of_message()
        self._next()

    def _take(self, method: str, target: str, headers: Headers, known: dict[str, str], body: bytes) -> bool:
        """Take a request that came whole, as the parser's calls below would. False: its body is refused, as they will say."""
        memory, body_bytes = self._memory, len(body)
        if body_bytes > self._max_body_bytes or memory.received_bytes + body_bytes > memory.receivable_bytes:
            return False
        pending = PendingRequest(method, target, headers, body, self.client, self._is_secure, "", known)
        pending.connection = self
        memory.received_bytes += body_bytes
        if self.phase is Phase.IDLE and not self._is_blocked and not self._transport.is_closing():
            self._begin(pending)  # nothing is in hand or in line
        else:
            self._stand_in_line(pending)
            self._next()
        return True

    def eof_received(self) -> bool:
        """A client that only stopped sending still gets its replies."""
        self._is_last_read = True
        return self._current is not None or bool(self._in_line)

    def pause_writing(self) -> None:
        self._is_blocked = True
        if self._current is None and self.phase is not Phase.LINGERING:
            self._expect(Phase.WORKING, self._settings.write_seconds)

    def resume_writing(self) -> None:
        self._is_blocked = False
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._is_last_read = True
        self._leave_phase()
        self._drop_body()
        for waiting in self._in_line:
            self._memory.received_bytes -= len(waiting.body)
        self._in_line.clear()
        self._reception.leave(self)

    # httptools' calls. After a refusal they go on for the rest of what was read, and are not listened to.

    def on_message_begin(self) -> None:
        if self._refusal is None and not self._is_last_read:
            if self._has_message:  # its head is read once more (_head_without_upgrade)
                self._forget_message()
            self._has_message = True

    def on_url(self, part: bytes) -> None:
        self._target += part
        if len(self._target) > self._max_target_bytes:
            self._refuse(framing.plain(400, "the request line is too long"))

    def on_header(self, name: bytes, value: bytes) -> None:
        # Of headers there are many, so nothing is done here that can be done for all of them at once.
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > self._max_header_bytes:
            self._refuse(framing.plain(400, "the headers are too large"))
        else:
            self._raw_headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._is_head_complete = True
        self._headers = headers = heads.decoded(self._raw_headers)
        if self._refusal is not None:
            return
        known = dict(headers)
        fault = heads.fault(headers, known, self._parser.get_http_version() == "1.0")
        if fault is not None:
            self._refuse(framing.plain(400, fault))
            return
        if self._parser.should_upgrade() and self._parser.get_method() == b"CONNECT":
            self._refuse(framing.plain(405, "this is no proxy"))
            return
        size_bytes = int(known.get("content-length") or 0)
        self._check_body(size_bytes)
        if self._refusal is None and (size_bytes > HEAD_FIRST_BYTES or "transfer-encoding" in known):
            pending = self._message(b"")
            refusal = self._reception.refusal_of_head(pending)
            if refusal is not None:
                self._refuse(refusal, pending)
        self._owes_continue = "expect" in known and known["expect"].lower() == "100-continue"

    def on_body(self, part: bytes) -> None:
        if self._refusal is None:
            self._body.append(part)
            self._body_bytes += len(part)
            self._memory.received_bytes += len(part)
            self._check_body(self._body_bytes)

    def on_message_complete(self) -> None:
        if self._refusal is None and not self._is_last_read and not self._awaits_body_after_upgrade():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            pending = self._message(body)
            pending.http_10 = self._parser.get_http_version() == "1.0"
            pending.keep_alive = self._parser.should_keep_alive()
            self._stand_in_line(pending)
            self._forget_message()

    # Reading

    def _look_at_progress(self, fed_bytes: int) -> None:
        """Nothing was completed by what has just been fed. If nothing new was told either, the parser is keeping a line that
        does not end; it would do so forever."""
        told = len(self._target) + len(self._raw_headers) + self._body_bytes
        if told > self._told:
            self._told = told
            self._quiet_bytes = 0
        else:
            self._quiet_bytes += fed_bytes
            if self._quiet_bytes > self._max_header_bytes:
                self._refuse(framing.plain(400, "a header is too long"))

    def _expect_rest_of_message(self) -> None:
        """A part of a message is there, and nothing in hand. Its deadlines run from its beginning and the end of its head."""
        if self._is_head_complete:
            if self.phase is not Phase.BODY:
                self._expect(Phase.BODY, self._settings.body_seconds)
            self._since = monotonic()
        elif self.phase is not Phase.HEAD:
            self._expect(Phase.HEAD, self._settings.header_seconds)

    def _feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Java's client offers h2c on every plain connection; a server may go on in HTTP/1.1 (RFC 9110, 7.8).
            [offset] = upgrade.args
            if self._awaits_body_after_upgrade():
                head = self._head_without_upgrade()  # as this parser has read it
                self._parser = httptools.HttpRequestParser(self)
                data, offset = head + data[offset:], 0
            if offset < len(data) and not self._is_last_read:
                self._feed(data[offset:])

    def _awaits_body_after_upgrade(self) -> bool:
        """Whether the parser took a message for complete because of its offer to upgrade, though it has a body."""
        return (
            self._refusal is None
            and self._parser.should_upgrade()
            and any(name in ("content-length", "transfer-encoding") for name, _ in self._headers)
        )

    def _head_without_upgrade(self) -> bytes:
        """The message's head once more, to be parsed as if nothing had been offered."""
        request = self._message(b"")
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers if name != "upgrade"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _message(self, body: bytes) -> PendingRequest:
        method = self._parser.get_method().decode() if self._is_head_complete else "GET"
        target = self._target.decode("latin-1")
        pending = PendingRequest(method, target, self._headers, body, self.client, self._is_secure)
        pending.connection = self
        return pending

    def _forget_message(self) -> None:
        """Ready for the next; the bytes of a body that stands in line are its exchange's from here."""
        self._target = b""
        self._raw_headers: list[tuple[bytes, bytes]] = []
        self._headers = ()
        self._header_bytes = self._quiet_bytes = self._body_bytes = self._told = 0
        self._body: list[bytes] = []
        self._is_head_complete = self._has_message = self._owes_continue = False
        self._refusal: PendingRequest | None = None

    def _check_body(self, size_bytes: int) -> None:
        if size_bytes > self._settings.max_body_bytes:
            error: Exception = LimitExceeded("body", self._settings.max_body_bytes, size_bytes)
        elif self._memory.received_bytes + size_bytes - self._body_bytes > self._memory.receivable_bytes:
            error = Busy("too many request bodies in memory")
        else:
            return
        self._refuse(self._reception.refuse(self._message(b""), error))

    def _refuse(self, reply: Reply, pending: PendingRequest | None = None) -> None:
        """Answer this message so, then nothing more of this connection. `pending`: the request, if it is known whose it is."""
        if self._refusal is None:
            self._drop_body()
            self._refusal = self._refused(reply, pending)

    def _refused(self, reply: Reply, pending: PendingRequest | None = None) -> PendingRequest:
        pending = pending or self._message(b"")
        pending.keep_alive = False
        pending.refusal = reply
        return pending

    def _drop_body(self) -> None:
        self._memory.received_bytes -= self._body_bytes
        self._body_bytes = 0
        self._body = []

    def _stand_in_line(self, pending: PendingRequest) -> None:
        self._in_line.append(pending)
        if not pending.keep_alive:
            self._is_last_read = True
        elif len(self._in_line) >= _PIPELINE_LIMIT and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()

    # Answering

    def _next(self) -> None:
        """Begin with the next request, if nothing is in the way."""
        if self._current is not None or self._is_blocked or self._transport.is_closing():
            return
        if not self._in_line:
            if self._owes_continue:
                self._owes_continue = False
                self._transport.write(framing.CONTINUE)
            if self._is_paused:
                self._is_paused = False
                self._transport.resume_reading()
            if self.phase is Phase.WORKING:
                self._rest()
            return
        pending = self._in_line.popleft()
        self._leave_phase()
        self._begin(pending)

    def _begin(self, pending: PendingRequest) -> None:
        self._current = pending
        self.phase = Phase.WORKING
        self.deadline = NEVER
        if pending.refusal is not None and pending.dialect is not None:
            self._reception.answer(pending, pending.refusal)
        elif pending.refusal is not None:
            self.answer(pending.refusal)
        else:
            self._reception.handle(pending)

    def answer(self, reply: Reply) -> None:
        """Send the reply to the request in hand, in one piece, and go on to the next."""
        current = self._current
        if current is None:
            return
        self._current = None
        self._memory.received_bytes -= len(current.body)
        if reply is CUT:
            self._transport.abort()
        if self._transport.is_closing():
            return
        keep_alive = current.keep_alive and not (self._reception.is_stopping and not self._in_line)
        try:
            head, body = framing.encode(reply, current.method, keep_alive, current.http_10)
        except ValueError as error:
            refusal = self._reception.refuse(current, error)
            head, body = framing.encode(refusal, current.method, keep_alive, current.http_10)
        if len(body) < _WRITE_SEPARATELY_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        if not keep_alive:
            # While the server stops, a request that comes behind the last reply must not reset the connection before that
            # reply is read. (TLS waits for the client's end by itself.)
            is_stopping = self._reception.is_stopping and self._transport.can_write_eof()
            self._finish(linger=current.refusal is not None or is_stopping)
        elif self._in_line or self._has_message or self._is_paused or self._is_blocked or self._is_last_read:
            self._next()
        else:  # as `_rest` has it
            self.phase = Phase.IDLE
            self._since = monotonic()
            self.deadline = self._since + self._idle_seconds

    def _rest(self) -> None:
        """Nothing in hand: idle, or in the middle of a message that came behind the last one."""
        if self._is_last_read:
            self._finish(linger=False)
        elif not self._has_message:
            self._expect(Phase.IDLE, self._settings.idle_seconds)
        elif self._is_head_complete:
            self._expect(Phase.BODY, self._settings.body_seconds)
        else:
            self._expect(Phase.HEAD, self._settings.header_seconds)

    def _expect(self, phase: Phase, seconds: float) -> None:
        self._leave_phase()
        self.phase = phase
        self._since = monotonic()
        self.deadline = self._since + seconds
        if phase is Phase.HEAD:
            self._reception.head_began(self)

    def _leave_phase(self) -> None:
        if self.phase is Phase.HEAD:
            self._reception.head_ended(self)

    def _finish(self, linger: bool) -> None:
        self._is_last_read = True
        if linger:
            if self._transport.can_write_eof():
                self._transport.write_eof()
            self._expect(Phase.LINGERING, _LINGER_S)
        else:
            self._expect(Phase.LINGERING, self._settings.write_seconds)
            self._transport.close()

    # The reception's calls

    def overdue(self) -> None:
        """The deadline has passed."""
        if self.phase in (Phase.HEAD, Phase.BODY) and not self._is_blocked:
            self._time_out()
        elif self.phase is Phase.IDLE:
            self.give_up()
        else:
            self._transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether closing now would cost nobody a reply."""
        return self.phase is Phase.IDLE

    @property
    def waits_since(self) -> float:
        """Since when it has been waiting for its client to send; NEVER if it is at work, or a body is coming."""
        if self.phase is Phase.WORKING or self._transport.is_closing():
            return NEVER
        if self.phase is Phase.BODY and monotonic() - self._since < _STALLED_S:
            return NEVER
        return self._since

    def give_up(self) -> bool:
        """Close a connection that waits for its client. False: it stays, because the next request is arriving."""
        if self.phase is Phase.IDLE and self._has_arrived():
            return False
        if self.phase in (Phase.HEAD, Phase.BODY) and not self._is_blocked:
            self._time_out()
        self._finish(linger=False)
        return True

    def _time_out(self) -> None:
        self._refuse(framing.plain(408, "the request took too long to arrive"))
        assert self._refusal is not None
        self._stand_in_line(self._refusal)
        self._next()

    def _has_arrived(self) -> bool:
        """Whether there is something to read. A timer may run before what has arrived is read."""
        socket = self._transport.get_extra_info("socket")
        if socket is None:
            return False
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def abort(self) -> None:
        """Close whatever is in hand."""
        self._transport.abort()

"""HTTP/1.1 messages as bytes: replies are written, and requests are parsed with httptools and the server's limits.

A reply consists of its status line, the server's own headers and the body, prepared for a single write. The body is omitted for
HEAD, 204 and 304. The parser handles heads, chunked bodies, upgrade offers and size limits. This module neither sends data nor
measures time (connection.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Protocol

import httptools

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.http.messages import Headers, Reply, Request, first_values
from tablegate.gateway.http.request_bodies import HEAD_FIRST_BYTES, MIN_PARSED_BYTES, RequestMemory
from tablegate.gateway.model.errors import Busy, HeadTooLong, LimitExceeded
from tablegate.gateway.server.pending_request import PendingRequest, ReplyChannel

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_REASONS = {status.value: status.phrase for status in HTTPStatus}
# A dialect may set Date and Server. The headers that frame the message are set only here.
_FRAMING = frozenset(("content-length", "connection", "transfer-encoding", "keep-alive"))


@lru_cache(maxsize=256)
def _header_role(name: str) -> str:
    """Return a header name with a special meaning in lower case. "" for others."""
    lower_name = name.lower()
    return lower_name if lower_name in _FRAMING or lower_name in ("date", "server") else ""


@lru_cache(maxsize=1024)
def _head_template(status: int, names: tuple[str, ...]) -> tuple[str, int]:
    """Return a template for replies with this status and these headers, and its number of lines.

    It is filled in with the values of the headers and the Date.
    """
    head = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n"]
    hidden = 0
    roles = [_header_role(name) for name in names]
    for name, role in zip(names, roles, strict=True):
        is_framing = role in _FRAMING
        hidden += is_framing
        # "%.0s" consumes a value without output.
        head.append("%.0s" if is_framing else name.replace("%", "%%") + ": %s\r\n")
    head.append("%.0s" if "date" in roles else "Date: %s\r\n")
    hidden += "date" in roles
    if "server" not in roles:
        head.append("Server: tablegate\r\n")
    return "".join(head), len(head) - hidden


class _DateHeader:
    """The cached Date header, updated once a second."""

    second = 0
    text = ""


def http_date() -> str:
    """Return the current time in the format of HTTP."""
    second = int(time.time())
    if second != _DateHeader.second:
        _DateHeader.text = formatdate(second, usegmt=True)
        _DateHeader.second = second
    return _DateHeader.text


def encode_reply(reply: Reply, method: str, keep_alive: bool, http_10: bool) -> tuple[bytes, bytes]:
    """Return head and body of a reply as bytes. Raises ValueError if a header contains a line break."""
    status, headers, body = reply
    names, values = (*zip(*headers, strict=True),) or ((), ())
    template, lines = _head_template(status, names)
    date = _DateHeader.text if int(time.time()) == _DateHeader.second else http_date()
    head = template % (*values, date)
    if status in (204, 304) or status < 200:
        body = b""
    else:
        length = str(len(body))
        if method == "HEAD":
            length = (
                next((value for name, value in headers if _header_role(name) == "content-length"), "")
                or length
            )
            body = b""
        head += f"Content-Length: {length}\r\n"
        lines += 1
    if not keep_alive or http_10:
        head += "Connection: keep-alive\r\n" if keep_alive else "Connection: close\r\n"
        lines += 1
    if head.count("\n") != lines or head.count("\r") != lines:
        raise ValueError("a line break in a reply header")
    return (head + "\r\n").encode("latin-1"), body


def plain_reply(status: int, text: str) -> Reply:
    """Return a reply in plain text, for requests without a dialect."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())


# Headers that must not be repeated. A proxy in front of this server could use the other value.
_SINGLE_HEADERS = ("host", "transfer-encoding")
# Only a query may be longer, because dialects cache what they find in a path. The longest path of a service has the two
# keys of an Azure entity: 512 characters each, of nine bytes each in percent-encoding.
_PATH_MAX_BYTES = 16 << 10
# The maximum of one header. Source: docs/protocols/dynamodb.md rule 6.
_FIELD_MAX_BYTES = 16 << 10

# Parts of a body from this length on are kept as they came.
_LONG_PART_BYTES = 16 << 10


class Refusals(Protocol):
    """The part of the server that the parser calls."""

    settings: Settings
    memory: RequestMemory

    def refusal_of_head(self, pending: PendingRequest) -> Reply | None:
        """Return the refusal of a request before its body is received, or None."""

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Return the refusal for an error, in the format of the request's dialect."""


class RequestParser:
    """The parser for the requests of one connection.

    - `has_message`: a request has arrived in part
    - `is_head_complete`: the head of that request is complete
    - `owes_continue`: its client waits for "100 Continue"
    - `quiet_bytes`: bytes since httptools last reported a new part
    - `is_ended`: no further request is read, because the last one closes the connection or was refused, or the client
      has closed it
    """

    # State of the current message.
    _target: bytes
    _headers: Headers
    _header_map: dict[str, str]
    _is_http_10: bool
    _offers_upgrade: bool
    _parts: list[bytes | bytearray]
    _body_bytes: int
    _received_parts: int
    has_message: bool

    def __init__(self, server: Refusals, connection: ReplyChannel, client: str, is_secure: bool) -> None:
        self._server = server
        self._connection = connection
        self._client = client
        self._is_secure = is_secure
        self._memory = server.memory
        self._max_target_bytes = server.settings.max_request_line_bytes
        self._surely_short_bytes = min(self._max_target_bytes, _PATH_MAX_BYTES)
        self._max_header_bytes = server.settings.max_header_bytes
        self._max_body_bytes = server.settings.max_body_bytes
        self._http = httptools.HttpRequestParser(self)
        self._complete: list[PendingRequest] = []
        self.is_ended = False
        self._reset_message()

    def feed(self, data: bytes) -> list[PendingRequest]:
        """Parse bytes. Return the requests that they complete. A refused one is the last."""
        self._complete = []
        remaining = data
        while remaining:
            try:
                self._http.feed_data(remaining)
                break
            except httptools.HttpParserUpgrade as upgrade:
                remaining = self._decline_upgrade(remaining, *upgrade.args)
            except httptools.HttpParserError as error:
                if not self.is_ended:
                    self._refuse(plain_reply(400, f"not HTTP/1.1: {error}"))
                break
        if not self._complete:
            self._check_progress(len(data))
        if self._refusal is not None:
            self._complete.append(self._refusal)
        return self._complete

    def refuse_message(self, reply: Reply, pending: PendingRequest | None = None) -> PendingRequest:
        """Return a request with a refusal, the last of this connection. `pending`: the request, if it is known."""
        self.drop_body()
        self.is_ended = True
        pending = pending or self._message(b"")
        pending.keep_alive = False
        pending.refusal = reply
        return pending

    @property
    def missing_body_bytes(self) -> int:
        """Number of bytes of the current body that are still to come. 0 if the head does not say it."""
        size = self._header_map.get("content-length") if self.is_head_complete else None
        return int(size) - self._body_bytes if size else 0

    def drop_body(self) -> None:
        """Release the memory of an incomplete body."""
        self._memory.received_bytes -= self._body_bytes
        self._body_bytes = 0
        self._parts = []

    # Calls by httptools. They continue for the rest of the data after a refusal, and are ignored then.

    def on_message_begin(self) -> None:
        if self._refusal is None and not self.is_ended:
            if self.has_message:  # its head is parsed again (_head_without_upgrade)
                self._reset_message()
            self.has_message = True

    def on_url(self, part: bytes) -> None:
        if len(self._target) <= self._max_target_bytes:  # The rest of a longer one is dropped.
            self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # Called for each header, so further checks are done once for all of them.
        size_bytes = len(name) + len(value) + 4
        self._header_bytes += size_bytes
        if self._header_bytes > self._max_header_bytes:
            self._refuse_head("headers", self._max_header_bytes)
        elif size_bytes > _FIELD_MAX_BYTES:
            self._refuse_head("header", _FIELD_MAX_BYTES)
        else:
            self._header_lines.append((_lower_name(name), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.is_head_complete = True
        self._headers = headers = tuple(self._header_lines)
        self._header_map = header_map = first_values(headers)
        if self._refusal is not None:
            return
        if len(self._target) > self._surely_short_bytes:
            self._check_target()
            if self._refusal is not None:
                return
        self._is_http_10 = self._http.get_http_version() == "1.0"
        self._offers_upgrade = self._http.should_upgrade()
        fault = _fault_of_head(headers, header_map, self._is_http_10)
        if fault is not None:
            self._refuse(plain_reply(400, fault))
            return
        if self._offers_upgrade and self._http.get_method() == b"CONNECT":
            self._refuse(plain_reply(405, "CONNECT is not supported: this server is not a proxy"))
            return
        size_bytes = int(header_map.get("content-length") or 0)
        self._check_body(size_bytes)
        if self._refusal is None and (size_bytes > HEAD_FIRST_BYTES or "transfer-encoding" in header_map):
            pending = self._message(b"")
            refusal = self._server.refusal_of_head(pending)
            if refusal is not None:
                self._refuse(refusal, pending)
        self.owes_continue = "expect" in header_map and header_map["expect"].lower() == "100-continue"

    def on_body(self, part: bytes) -> None:
        if self._refusal is None:
            if self._parts:
                self._keep_further(part)
            else:
                self._parts.append(part)
            self._body_bytes += len(part)
            self._memory.received_bytes += len(part)
            self._check_body(self._body_bytes)

    def _keep_further(self, part: bytes) -> None:
        """Keep a further part of the body. Short ones are kept together: a list of bytes would need many times their
        length."""
        parts = self._parts
        if len(part) >= _LONG_PART_BYTES:
            parts.append(part)
        elif type(parts[-1]) is bytearray:
            parts[-1] += part
        else:
            parts.append(bytearray(part))

    def on_message_complete(self) -> None:
        if self._refusal is None and not self.is_ended and not self._awaits_body_after_upgrade():
            pending = self._message(b"".join(self._parts))
            pending.http_10 = self._is_http_10
            pending.keep_alive = self._http.should_keep_alive()
            self.is_ended = not pending.keep_alive
            self._complete.append(pending)
            self._reset_message()

    def _decline_upgrade(self, data: bytes, offset: int) -> bytes:
        """Return the bytes to continue with in HTTP/1.1, after a head with an upgrade offer that ends at `offset`.

        Java's client offers h2c on every plain connection. A server may continue in HTTP/1.1 (RFC 9110, 7.8).
        """
        head = b""
        if self._awaits_body_after_upgrade():
            head = self._head_without_upgrade()  # from the current parser
            self._http = httptools.HttpRequestParser(self)
        return b"" if self.is_ended else head + data[offset:]

    def _awaits_body_after_upgrade(self) -> bool:
        """Return True if httptools considers a message complete because of its upgrade offer, although it has a
        body."""
        return (
            self._offers_upgrade
            and self._refusal is None
            and ("content-length" in self._header_map or "transfer-encoding" in self._header_map)
        )

    def _head_without_upgrade(self) -> bytes:
        """Return the message's head without its upgrade offer, to be parsed again."""
        request = self._message(b"")
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers if name != "upgrade"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def _check_progress(self, fed_bytes: int) -> None:
        """Refuse a line that does not end. httptools would buffer it without a call or limit."""
        parts = len(self._target) + len(self._header_lines) + self._body_bytes
        if parts > self._received_parts:
            self._received_parts = parts
            self.quiet_bytes = 0
        else:
            self.quiet_bytes += fed_bytes
            if self.quiet_bytes > self._max_header_bytes:
                self._refuse_head("headers", self._max_header_bytes)

    def _message(self, body: bytes) -> PendingRequest:
        method = self._http.get_method().decode() if self.is_head_complete else "GET"
        target = self._target.decode("latin-1")
        pending = PendingRequest(
            method, target, self._headers, body, self._client, self._is_secure, self._header_map
        )
        pending.connection = self._connection
        return pending

    def _reset_message(self) -> None:
        """Prepare for the next message. The bytes of a complete body are counted until its request is answered."""
        self._target = b""
        self._header_lines: list[tuple[str, str]] = []
        self._headers, self._header_map = (), {}
        self._offers_upgrade = False
        self._header_bytes = self.quiet_bytes = self._body_bytes = self._received_parts = 0
        self._parts = []
        self.is_head_complete = self.has_message = self.owes_continue = False
        self._refusal: PendingRequest | None = None

    def _check_body(self, size_bytes: int) -> None:
        if size_bytes > self._max_body_bytes:
            error: Exception = LimitExceeded("body", self._max_body_bytes, size_bytes)
        elif (
            size_bytes > MIN_PARSED_BYTES
            and self._memory.received_bytes + size_bytes - self._body_bytes > self._memory.receivable_bytes
        ):
            error = Busy("too many request bodies in memory")
        else:
            return
        self._refuse(self._server.refuse(self._message(b""), error))

    def _check_target(self) -> None:
        if len(self._target) > self._max_target_bytes:
            self._refuse_head("request line", self._max_target_bytes)
        elif len(self._target.partition(b"?")[0]) > _PATH_MAX_BYTES:
            self._refuse_head("path", _PATH_MAX_BYTES)

    def _refuse_head(self, what: str, limit_bytes: int) -> None:
        """Refuse the current message in the format of its dialect, as far as its head has arrived."""
        if not self.is_head_complete:
            self._headers = tuple(self._header_lines)
            self._header_map = first_values(self._headers)
        self._refuse(self._server.refuse(self._message(b""), HeadTooLong(what, limit_bytes)))

    def _refuse(self, reply: Reply, pending: PendingRequest | None = None) -> None:
        """Answer the current message with a refusal, unless it is already refused."""
        if self._refusal is None:
            self._refusal = self.refuse_message(reply, pending)


@lru_cache(maxsize=512)
def _lower_name(name: bytes) -> str:
    """Return the name of a header in lower case."""
    return name.decode("latin-1").lower()


def _fault_of_head(headers: Headers, header_map: Mapping[str, str], is_http_10: bool) -> str | None:
    """Return the reason for a 400 reply to a head, or None. httptools has checked each line of it (RFC 9112)."""
    if "host" not in header_map and not is_http_10:
        return "a Host header is required"  # 3.2
    if len(header_map) < len(headers):
        for single in _SINGLE_HEADERS:
            if sum(name == single for name, _ in headers) > 1:
                return f"{single} is given twice"  # 3.2 and 6.1
    coding = header_map.get("transfer-encoding")
    if coding is not None and (is_http_10 or coding.strip().lower() != "chunked"):
        return "the only transfer coding that is known here is chunked"  # 6.1
    return None

"""Replies as HTTP/1.1 bytes: status line, the server's own headers, body - made to be sent in one piece.

Knows what a reply to HEAD, a 204 or a 304 leaves out, and which headers are the server's to give. Knows no sockets.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from gateway.http import Reply

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_REASONS = {status.value: status.phrase for status in HTTPStatus}
# A dialect's Date and Server stand; what frames the message is decided here alone.
_FRAMING = frozenset(("content-length", "connection", "transfer-encoding", "keep-alive"))


@lru_cache(maxsize=256)
def _role(name: str) -> str:
    """The name of a header that means something here, in lower case; "" of any other."""
    lowered = name.lower()
    return lowered if lowered in _FRAMING or lowered in ("date", "server") else ""


@lru_cache(maxsize=64)
def _status_line(status: int) -> str:
    return f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"


class _Clock:
    """The Date header, made once a second."""

    second = 0
    text = ""


def http_date() -> str:
    """Now, as HTTP writes it."""
    second = int(time.time())
    if second != _Clock.second:
        _Clock.text = formatdate(second, usegmt=True)
        _Clock.second = second
    return _Clock.text


def encode(reply: Reply, method: str, keep_alive: bool, http_10: bool) -> tuple[bytes, bytes]:
    """Head and body of a reply as they are sent. Raises ValueError if a header would break out of its line."""
    lines = [_status_line(reply.status)]
    dated = named = False
    length = None
    for name, value in reply.headers:
        match _role(name):
            case "":
                pass
            case "date":
                dated = True
            case "server":
                named = True
            case "content-length":
                length = value
                continue
            case _:
                continue
        lines.append(f"{name}: {value}")
    if not dated:
        lines.append(f"Date: {http_date()}")
    if not named:
        lines.append("Server: tablegate")
    body = reply.body
    if reply.status in (204, 304) or reply.status < 200:
        body = b""
    elif method == "HEAD":
        lines.append(f"Content-Length: {length or len(body)}")
        body = b""
    else:
        lines.append(f"Content-Length: {len(body)}")
    if not keep_alive:
        lines.append("Connection: close")
    elif http_10:
        lines.append("Connection: keep-alive")
    head = "\r\n".join(lines) + "\r\n\r\n"
    if head.count("\n") != len(lines) + 1 or head.count("\r") != len(lines) + 1:
        raise ValueError("a line break in a reply header")
    return head.encode("latin-1"), body


def plain(status: int, text: str) -> Reply:
    """A reply in the server's own words, where no dialect has any."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())

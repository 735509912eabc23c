"""Replies as HTTP/1.1 bytes: status line, the server's own headers and the body, prepared for a single write.

This module omits the body for HEAD, 204 and 304, and sets the headers that belong to the server.
"""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from tablegate.gateway.http import Reply

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_REASONS = {status.value: status.phrase for status in HTTPStatus}
# A dialect may set Date and Server. The headers that frame the message are set only here.
_FRAMING = frozenset(("content-length", "connection", "transfer-encoding", "keep-alive"))


@lru_cache(maxsize=256)
def _role(name: str) -> str:
    """Return a header name with a special meaning in lower case. "" for others."""
    lower_name = name.lower()
    return lower_name if lower_name in _FRAMING or lower_name in ("date", "server") else ""


@lru_cache(maxsize=1024)
def _template(status: int, names: tuple[str, ...]) -> tuple[str, int]:
    """Return a template for replies with this status and these headers, and its number of lines.

    It is filled in with the values of the headers and the Date.
    """
    head = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\n"]
    hidden = 0
    roles = [_role(name) for name in names]
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


class _Clock:
    """The cached Date header, updated once a second."""

    second = 0
    text = ""


def http_date() -> str:
    """Return the current time in the format of HTTP."""
    second = int(time.time())
    if second != _Clock.second:
        _Clock.text = formatdate(second, usegmt=True)
        _Clock.second = second
    return _Clock.text


def encode(reply: Reply, method: str, keep_alive: bool, http_10: bool) -> tuple[bytes, bytes]:
    """Return head and body of a reply as bytes. Raises ValueError if a header contains a line break."""
    status, headers, body = reply
    names, values = (*zip(*headers, strict=True),) or ((), ())
    template, lines = _template(status, names)
    date = _Clock.text if int(time.time()) == _Clock.second else http_date()
    head = template % (*values, date)
    if status in (204, 304) or status < 200:
        body = b""
    else:
        length = str(len(body))
        if method == "HEAD":
            length = next((value for name, value in headers if _role(name) == "content-length"), "") or length
            body = b""
        head += f"Content-Length: {length}\r\n"
        lines += 1
    if not keep_alive or http_10:
        head += "Connection: keep-alive\r\n" if keep_alive else "Connection: close\r\n"
        lines += 1
    if head.count("\n") != lines or head.count("\r") != lines:
        raise ValueError("a line break in a reply header")
    return (head + "\r\n").encode("latin-1"), body


def plain(status: int, text: str) -> Reply:
    """Return a reply in plain text, for requests without a dialect."""
    return Reply(status, (("Content-Type", "text/plain; charset=utf-8"),), f"{text}\n".encode())

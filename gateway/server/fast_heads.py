"""The fast path of the parser: a request that came whole and alone, and is written as nearly all clients write nearly all of
theirs. Anything else is the parser's (httptools), which comes to the same for what is taken here (connection.py).

Most of what a client sends is equal, byte for byte, from request to request: lines that are no secrets are looked at once and
then known by their bytes, and so is a whole head of such lines but for its Authorization. What is taken is a narrow part of
the grammar (RFC 9112): a plain target, one blank after each colon, values of visible ASCII, every name once, a body of a
given length or none, nothing about the connection but that it is kept.
"""

from __future__ import annotations

import re
from typing import Any

from tablegate.gateway.http import Headers

_START = re.compile(rb"(DELETE|GET|MERGE|PATCH|POST|PUT) (/[A-Za-z0-9$%&'()*+,./:;=@_~!?-]*) HTTP/1\.1")
_NAME = re.compile(rb"[A-Za-z0-9-]{1,64}")
_MOST_LENGTH_DIGITS = 9
# Names that say something of the message or the connection, beyond how long a body is and that the connection is kept.
_ELSEWHERE = frozenset(
    ("expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
# Lines of these names are remembered, if they are short; of no other, since some are secrets and some are new each time.
_REMEMBERED = frozenset(
    (
        "accept", "accept-charset", "accept-encoding", "amz-sdk-request", "connection", "content-length", "content-type",
        "dataserviceversion", "date", "host", "if-match", "maxdataserviceversion", "prefer", "user-agent", "x-amz-date",
        "x-amz-target", "x-ms-date", "x-ms-version", "x-ots-apiversion", "x-ots-date", "x-ots-instancename",
    )
)  # fmt: skip
_REMEMBERED_BYTES, _KEPT = 256, 4096
_REMEMBERED_HEAD_BYTES, _HEADS_KEPT = 1024, 1024
# The only line that is new in each request of most clients, and its value.
_PROOF = re.compile(rb"\r\n[Aa]uthorization: ([!-~](?:[ -~]*[!-~])?)(?=\r\n)")
_AUTHORIZATION = "authorization"
_PROOF_NAMES = {_AUTHORIZATION}

Whole = tuple[str, str, Headers, dict[str, str], bytes]
"""A request as its bytes say: method, target, headers with names in lower case, the same by name, body."""

# By their bytes: first lines, and header lines; and names of headers.
_starts: dict[bytes, tuple[str, str]] = {}
_lines: dict[bytes, tuple[str, str]] = {}
_names: dict[bytes, str] = {}
# Heads by their bytes, two line breaks in the place of the Authorization: first line, headers before and after it, those by name,
# length of the body.
_heads: dict[bytes, tuple[tuple[str, str], Headers, Headers, dict[str, str], int]] = {}


def whole_request(data: bytes, most_head_bytes: int, most_target_bytes: int) -> Whole | None:
    """The one request that these bytes are from the first to the last; None: it takes the parser to say."""
    end = data.find(b"\r\n\r\n")
    if not 0 < end <= most_head_bytes:
        return None
    rest, proof = b"", ""
    found = _PROOF.search(data, 0, end + 2)
    if found is not None:
        rest = data[: found.start(1)] + b"\r\n\r\n" + data[found.end(1) : end]
        proof = found[1].decode()
    head = _heads.get(rest)
    if head is not None and len(data) == end + 4 + head[4]:
        start, before, after, known, _ = head
        if len(start[1]) > most_target_bytes:
            return None
        headers_of_head = (*before, (_AUTHORIZATION, proof), *after)
        return start[0], start[1], headers_of_head, {**known, _AUTHORIZATION: proof}, data[end + 4 :]
    return _unknown_head(data, end, rest, most_target_bytes)


def _unknown_head(data: bytes, end: int, rest: bytes, most_target_bytes: int) -> Whole | None:
    """Read a head line by line. `rest`: the head without the value of its Authorization, empty if it has none."""
    lines = data[:end].split(b"\r\n")
    first_line = lines[0]
    first = _starts.get(first_line) or _start_of(first_line)
    if first is None or len(first[1]) > most_target_bytes:
        return None
    del lines[0]
    headers: list[tuple[str, str]] = []
    for line in lines:
        field = _lines.get(line)
        if field is None:
            name, _, value = line.partition(b": ")
            field = _names.get(name) or _name_of(name), value.decode("latin-1")
            if not field[0] or not _is_plain(field[1]):
                return None
            if field[0] in _REMEMBERED and len(line) <= _REMEMBERED_BYTES:
                _remember(_lines, line, field)
        headers.append(field)
    known = dict(headers)
    if len(known) < len(headers) or "host" not in known or not _ELSEWHERE.isdisjoint(known):
        return None
    if "connection" in known and known["connection"] != "keep-alive":
        return None
    length = known.get("content-length", "0")
    if not length.isdecimal() or len(length) > _MOST_LENGTH_DIGITS or (length[0] == "0" and length != "0"):
        return None
    if len(data) != end + 4 + int(length):
        return None
    # Of a first line that is not remembered, the address of a row, the same head hardly ever comes again.
    is_likely_again = rest and len(rest) <= _REMEMBERED_HEAD_BYTES and first_line in _starts
    if is_likely_again and known.keys() - _REMEMBERED == _PROOF_NAMES:
        _remember_head(rest, first, headers, known, int(length))
    return first[0], first[1], tuple(headers), known, data[end + 4 :]


def _is_plain(text: str) -> bool:
    """Whether a header's value is written plainly."""
    return text.isascii() and text.isprintable() and text != "" and text[0] != " " != text[-1]


def _remember_head(
    rest: bytes, start: tuple[str, str], headers: list[tuple[str, str]], known: dict[str, str], length: int
) -> None:
    """Know a head from now on, whatever its Authorization."""
    if len(_heads) >= _HEADS_KEPT:
        _heads.clear()
    at = headers.index((_AUTHORIZATION, known[_AUTHORIZATION]))
    others = {name: value for name, value in known.items() if name != _AUTHORIZATION}
    _heads[rest] = start, tuple(headers[:at]), tuple(headers[at + 1 :]), others, length


def _start_of(line: bytes) -> tuple[str, str] | None:
    """Method and target of a first line, if it is written plainly."""
    found = _START.fullmatch(line)
    if found is None:
        return None
    start = found[1].decode(), found[2].decode()
    if start[1][1:].isalnum() or start[1] == "/":  # an operation, and not the key of a row
        _remember(_starts, line, start)
    return start


def _name_of(name: bytes) -> str:
    """The name of a header in lower case, if it is written plainly; else ""."""
    if _NAME.fullmatch(name) is None:
        return ""
    lowered = name.decode().lower()
    _remember(_names, name, lowered)
    return lowered


def _remember(known: dict[bytes, Any], data: bytes, meaning: Any) -> None:
    """Know these bytes from now on. Bounded: what is known is forgotten when it is too much."""
    if len(known) >= _KEPT:
        known.clear()
    known[data] = meaning

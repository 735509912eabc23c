"""The fast path of the parser, for a request that arrives whole and alone, in the usual format of clients.

All other requests go to httptools, which gives the same result for the requests accepted here (connection.py).

Requests of a client are mostly equal, byte for byte. Header lines that are not secret are parsed once and cached by
their bytes. A whole head of such lines is cached too, except for its Authorization. The accepted grammar is a narrow
part of RFC 9112:

- a plain target
- one blank after each colon, and values of visible ASCII
- every name once
- a body of a given length or none
- no connection options except keep-alive
"""

from __future__ import annotations

import re
from typing import Any

from tablegate.gateway.http import Headers

_START = re.compile(rb"(DELETE|GET|MERGE|PATCH|POST|PUT) (/[A-Za-z0-9$%&'()*+,./:;=@_~!?-]*) HTTP/1\.1")
_NAME = re.compile(rb"[A-Za-z0-9-]{1,64}")
_MAX_LENGTH_DIGITS = 9
# Headers that affect the message or the connection in ways that only the parser handles.
_PARSER_NAMES = frozenset(
    ("expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
# Short lines with these names are cached. Others may be secrets or differ in each request.
_CACHED_NAMES = frozenset(
    (
        "accept", "accept-charset", "accept-encoding", "amz-sdk-request", "connection", "content-length", "content-type",
        "dataserviceversion", "date", "host", "if-match", "maxdataserviceversion", "prefer", "user-agent", "x-amz-date",
        "x-amz-target", "x-ms-date", "x-ms-version", "x-ots-apiversion", "x-ots-date", "x-ots-instancename",
    )
)  # fmt: skip
_MAX_CACHED_LINE_BYTES, _MAX_CACHED = 256, 4096
_MAX_CACHED_HEAD_BYTES, _MAX_CACHED_HEADS = 1024, 1024
# The only line that differs in each request of most clients, and its value.
_PROOF = re.compile(rb"\r\n[Aa]uthorization: ([!-~](?:[ -~]*[!-~])?)(?=\r\n)")
_AUTHORIZATION = "authorization"
_PROOF_NAMES = {_AUTHORIZATION}

Whole = tuple[str, str, Headers, dict[str, str], bytes]
"""A request: method, target, headers with names in lower case, the headers by name, and the body."""

# Caches by bytes: first lines, header lines and header names.
_starts: dict[bytes, tuple[str, str]] = {}
_lines: dict[bytes, tuple[str, str]] = {}
_names: dict[bytes, str] = {}
# Cache of heads. The key has two line breaks instead of the Authorization value. The value has the first line, the
# headers before and after it, the headers by name, and the length of the body.
_heads: dict[bytes, tuple[tuple[str, str], Headers, Headers, dict[str, str], int]] = {}


def whole_request(data: bytes, max_head_bytes: int, max_target_bytes: int) -> Whole | None:
    """Return the request if these bytes are exactly one. None if the parser has to decide."""
    end = data.find(b"\r\n\r\n")
    if not 0 < end <= max_head_bytes:
        return None
    rest, proof = b"", ""
    found = _PROOF.search(data, 0, end + 2)
    if found is not None:
        rest = data[: found.start(1)] + b"\r\n\r\n" + data[found.end(1) : end]
        proof = found[1].decode()
    head = _heads.get(rest)
    if head is not None and len(data) == end + 4 + head[4]:
        start, before, after, known, _ = head
        if len(start[1]) > max_target_bytes:
            return None
        headers_of_head = (*before, (_AUTHORIZATION, proof), *after)
        return start[0], start[1], headers_of_head, {**known, _AUTHORIZATION: proof}, data[end + 4 :]
    return _unknown_head(data, end, rest, max_target_bytes)


def _unknown_head(data: bytes, end: int, rest: bytes, max_target_bytes: int) -> Whole | None:
    """Parse a head line by line. `rest`: the head without the value of its Authorization, empty if it has none."""
    lines = data[:end].split(b"\r\n")
    first_line = lines[0]
    first = _starts.get(first_line) or _start_of(first_line)
    if first is None or len(first[1]) > max_target_bytes:
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
            if field[0] in _CACHED_NAMES and len(line) <= _MAX_CACHED_LINE_BYTES:
                _cache(_lines, line, field)
        headers.append(field)
    known = dict(headers)
    if len(known) < len(headers) or "host" not in known or not _PARSER_NAMES.isdisjoint(known):
        return None
    if "connection" in known and known["connection"] != "keep-alive":
        return None
    length = known.get("content-length", "0")
    if not length.isdecimal() or len(length) > _MAX_LENGTH_DIGITS or (length[0] == "0" and length != "0"):
        return None
    if len(data) != end + 4 + int(length):
        return None
    # A first line that is not cached names a row, and its head is unlikely to be repeated.
    is_likely_again = rest and len(rest) <= _MAX_CACHED_HEAD_BYTES and first_line in _starts
    if is_likely_again and known.keys() - _CACHED_NAMES == _PROOF_NAMES:
        _cache_head(rest, first, headers, known, int(length))
    return first[0], first[1], tuple(headers), known, data[end + 4 :]


def _is_plain(text: str) -> bool:
    """Return True if a header's value has the accepted form."""
    return text.isascii() and text.isprintable() and text != "" and text[0] != " " != text[-1]


def _cache_head(
    rest: bytes, start: tuple[str, str], headers: list[tuple[str, str]], known: dict[str, str], length: int
) -> None:
    """Cache a head, for any Authorization."""
    if len(_heads) >= _MAX_CACHED_HEADS:
        _heads.clear()
    at = headers.index((_AUTHORIZATION, known[_AUTHORIZATION]))
    others = {name: value for name, value in known.items() if name != _AUTHORIZATION}
    _heads[rest] = start, tuple(headers[:at]), tuple(headers[at + 1 :]), others, length


def _start_of(line: bytes) -> tuple[str, str] | None:
    """Return method and target of a first line, or None if it does not have the accepted form."""
    found = _START.fullmatch(line)
    if found is None:
        return None
    start = found[1].decode(), found[2].decode()
    if start[1][1:].isalnum() or start[1] == "/":  # an operation, and not the key of a row
        _cache(_starts, line, start)
    return start


def _name_of(name: bytes) -> str:
    """Return the name of a header in lower case, or "" if it does not have the accepted form."""
    if _NAME.fullmatch(name) is None:
        return ""
    lowered = name.decode().lower()
    _cache(_names, name, lowered)
    return lowered


def _cache(known: dict[bytes, Any], data: bytes, meaning: Any) -> None:
    """Cache the meaning of these bytes. A full cache is cleared."""
    if len(known) >= _MAX_CACHED:
        known.clear()
    known[data] = meaning

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
        "x-amz-target", "x-ms-date", "x-ms-version", "x-ots-accesskeyid", "x-ots-apiversion", "x-ots-date",
        "x-ots-instancename",
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
    head_key, proof = b"", ""
    match = _PROOF.search(data, 0, end + 2)
    if match is not None:
        head_key = data[: match.start(1)] + b"\r\n\r\n" + data[match.end(1) : end]
        proof = match[1].decode()
    head = _heads.get(head_key)
    if head is not None and len(data) == end + 4 + head[4]:
        start, before, after, header_map, _ = head
        if len(start[1]) > max_target_bytes:
            return None
        headers_of_head = (*before, (_AUTHORIZATION, proof), *after)
        return start[0], start[1], headers_of_head, {**header_map, _AUTHORIZATION: proof}, data[end + 4 :]
    return _unknown_head(data, end, head_key, max_target_bytes)


def _unknown_head(data: bytes, end: int, head_key: bytes, max_target_bytes: int) -> Whole | None:
    """Parse a head line by line. `head_key`: the head without its Authorization, or b""."""
    lines = data[:end].split(b"\r\n")
    first_line = lines[0]
    start = _starts.get(first_line) or _start_of(first_line)
    if start is None or len(start[1]) > max_target_bytes:
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
    header_map = dict(headers)
    if len(header_map) < len(headers) or "host" not in header_map or not _PARSER_NAMES.isdisjoint(header_map):
        return None
    if "connection" in header_map and header_map["connection"] != "keep-alive":
        return None
    length = header_map.get("content-length", "0")
    if not length.isdecimal() or len(length) > _MAX_LENGTH_DIGITS or (length[0] == "0" and length != "0"):
        return None
    if len(data) != end + 4 + int(length):
        return None
    # A first line that is not cached names a row, and its head is unlikely to be repeated.
    is_likely_again = head_key and len(head_key) <= _MAX_CACHED_HEAD_BYTES and first_line in _starts
    if is_likely_again and header_map.keys() - _CACHED_NAMES == _PROOF_NAMES:
        _cache_head(head_key, start, headers, header_map, int(length))
    return start[0], start[1], tuple(headers), header_map, data[end + 4 :]


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text != "" and text[0] != " " != text[-1]


def _cache_head(
    head_key: bytes,
    start: tuple[str, str],
    headers: list[tuple[str, str]],
    header_map: dict[str, str],
    length: int,
) -> None:
    """Cache a head, for any Authorization."""
    if len(_heads) >= _MAX_CACHED_HEADS:
        _heads.clear()
    at = headers.index((_AUTHORIZATION, header_map[_AUTHORIZATION]))
    other_headers = {name: value for name, value in header_map.items() if name != _AUTHORIZATION}
    _heads[head_key] = start, tuple(headers[:at]), tuple(headers[at + 1 :]), other_headers, length


def _start_of(line: bytes) -> tuple[str, str] | None:
    """Return method and target of a first line, or None if it does not have the accepted form."""
    match = _START.fullmatch(line)
    if match is None:
        return None
    start = match[1].decode(), match[2].decode()
    if start[1][1:].isalnum() or start[1] == "/":  # an operation, and not the key of a row
        _cache(_starts, line, start)
    return start


def _name_of(name: bytes) -> str:
    """Return the name of a header in lower case, or "" if it does not have the accepted form."""
    if _NAME.fullmatch(name) is None:
        return ""
    lower_name = name.decode().lower()
    _cache(_names, name, lower_name)
    return lower_name


def _cache(cache: dict[bytes, Any], data: bytes, value: Any) -> None:
    if len(cache) >= _MAX_CACHED:
        cache.clear()
    cache[data] = value

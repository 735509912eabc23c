"""The fast path of the parser: a request that came whole and alone, and is written as nearly all clients write nearly all of
theirs. Anything else is the parser's (httptools), which comes to the same for what is taken here (connection.py).

Most of what a client sends is equal, byte for byte, from request to request: lines that are no secrets are looked at once and
then known by their bytes. What is taken is a narrow part of the grammar (RFC 9112): a plain target, one blank after each colon,
values of visible ASCII, every name once, a body of a given length or none, nothing about the connection but that it is kept.
"""

from __future__ import annotations

import re

from gateway.http import Headers

_START = re.compile(rb"(DELETE|GET|MERGE|PATCH|POST|PUT) (/[A-Za-z0-9$%&'()*+,./:;=@_~!?-]*) HTTP/1\.1")
_LINE = re.compile(rb"([A-Za-z0-9-]+): ([!-~](?:[ -~]*[!-~])?)")
_LENGTH = re.compile(r"0|[1-9][0-9]{0,8}")
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
_REMEMBERED_BYTES, _LINES_KEPT = 256, 4096

_lines: dict[bytes, tuple[str, str]] = {}


Whole = tuple[str, str, Headers, dict[str, str], bytes]
"""A request as its bytes say: method, target, headers with names in lower case, the same by name, body."""


def whole_request(data: bytes, most_head_bytes: int, most_target_bytes: int) -> Whole | None:
    """The one request that these bytes are from the first to the last; None: it takes the parser to say."""
    end = data.find(b"\r\n\r\n")
    if not 0 < end <= most_head_bytes:
        return None
    start, *lines = data[:end].split(b"\r\n")
    found = _START.fullmatch(start)
    if found is None or len(found[2]) > most_target_bytes:
        return None
    headers = []
    for line in lines:
        pair = _lines.get(line)
        if pair is None:
            field = _LINE.fullmatch(line)
            if field is None:
                return None
            pair = field[1].decode().lower(), field[2].decode()
            if pair[0] in _REMEMBERED and len(line) <= _REMEMBERED_BYTES:
                _remember(line, pair)
        headers.append(pair)
    known = dict(headers)
    if len(known) < len(headers) or "host" not in known or not _ELSEWHERE.isdisjoint(known):
        return None
    if "connection" in known and known["connection"] != "keep-alive":
        return None
    length = known.get("content-length", "0")
    if _LENGTH.fullmatch(length) is None or len(data) != end + 4 + int(length):
        return None
    return found[1].decode(), found[2].decode(), tuple(headers), known, data[end + 4 :]


def _remember(line: bytes, pair: tuple[str, str]) -> None:
    """Know a line's name and value by its bytes from now on."""
    if len(_lines) >= _LINES_KEPT:
        _lines.clear()
    _lines[line] = pair

"""The framing of $batch: multipart/mixed bytes <-> inner requests and replies.

Parsing is as tolerant as the service: CRLF or LF, quoted boundaries, header names in any case, optional Content-Length,
targets without percent-encoding. Writing is exact: Go's parser fails without the last CRLF, .NET's with one too many.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.http.messages import Headers

_BOUNDARY = re.compile(r"""boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;,"]{1,200}))""", re.IGNORECASE)
_VERB = re.compile(r"([A-Za-z]+)[ \t]+(?=\S)")
_PROTOCOL = re.compile(r"[ \t]HTTP/\d\.\d")
_PROTOCOL_CHARACTERS = len(" HTTP/1.1")
_TAIL = re.compile(rb"(--)?[ \t]*(?=\r?\n|$)")
_LF = 0x0A


@dataclass(frozen=True, slots=True)
class InnerHead:
    """Request line and headers of an operation.

    `target` is an absolute URI or a path, as sent. Equal heads share one object.
    """

    method: str
    target: str
    headers: Headers
    content_id: str | None


class InnerRequest(NamedTuple):
    """One operation of a batch."""

    head: InnerHead
    body: bytes
    content_id: str | None = None


@dataclass(frozen=True, slots=True)
class InnerBatch:
    """The contents of a batch: the changes of its changeset, or (`is_query`) one query."""

    requests: tuple[InnerRequest, ...]
    is_query: bool = False


class InnerReply(NamedTuple):
    """The reply to one operation."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


def parse(content_type: str, body: bytes, changes_max: int) -> InnerBatch:
    """Return the operations of a $batch body. At most `changes_max` + 1 changes are parsed.

    Raises ServiceError InvalidInput for another framing, MediaTypeNotSupported for another media type.
    """
    parts = _parts(content_type, body, changes_max)
    queries = []
    changesets = []
    for head, content in parts:
        inner_type = head.content_type or ""
        if inner_type.lower().startswith("multipart/mixed"):
            changesets.append((inner_type, content))
        elif inner_type.lower().startswith("application/http"):
            queries.append(_request(head, content, limits.QUERY_HEAD_MAX_BYTES))
        else:
            raise ServiceError("InvalidInput")
    if not parts:
        return InnerBatch(())
    if len(changesets) + len(queries) != 1:
        raise ServiceError("InvalidInput")
    if queries:
        return InnerBatch((queries[0],), is_query=True)
    inner_parts = _parts(*changesets[0], changes_max)
    for head, _ in inner_parts:
        if head.content_type is not None and not head.content_type.lower().startswith("application/http"):
            raise ServiceError("InvalidInput")
    return InnerBatch(
        tuple([_request(head, content, limits.CHANGE_HEAD_MAX_BYTES) for head, content in inner_parts])
    )


@dataclass(frozen=True, slots=True)
class _PartHead:
    """The headers of a part that are used."""

    content_type: str | None
    content_id: str | None


def _parts(content_type: str, body: bytes, parts_max: int) -> list[tuple[_PartHead, bytes]]:
    """Return head and content of the parts between the boundaries that Content-Type names."""
    if not content_type.lower().startswith("multipart/mixed"):
        raise ServiceError("MediaTypeNotSupported")
    match = _BOUNDARY.search(content_type)
    if match is None:
        raise ServiceError("InvalidInput")
    delimiter = b"--" + (match.group(1) or match.group(2)).encode("latin-1", "replace")
    pieces = _regular_pieces(body, delimiter) if body.count(delimiter) <= parts_max + 1 else None
    parts: list[tuple[_PartHead, bytes]] = []
    for piece in _pieces(body, delimiter, parts_max) if pieces is None else pieces:
        head, content = _split(piece)
        parts.append((_part_head(head), content))
    return parts


def _regular_pieces(body: bytes, delimiter: bytes) -> list[bytes] | None:
    """Return the result of `_pieces` by a single split, which suffices for nearly all bodies. None if it does not.

    Every delimiter must be on a line of its own between CR LFs, and the last one must be the closing one.
    """
    split_body = (b"\r\n" + body).split(b"\r\n" + delimiter)
    pieces, end = split_body[1:-1], split_body[-1]
    if len(split_body) != body.count(delimiter) + 1 or not (end + b"\r\n").startswith(b"--\r\n"):
        return None
    return pieces if all(piece.startswith(b"\r\n") for piece in pieces) else None


def _pieces(body: bytes, delimiter: bytes, pieces_max: int) -> Iterator[bytes]:
    """Yield the bytes between delimiters, up to the closing one, and at most `pieces_max` + 1 pieces.

    Raises ServiceError InvalidInput.
    """
    content_start: int | None = None
    count = 0
    for start, end, is_last in _delimiters(body, delimiter):
        if content_start is not None:
            yield body[content_start:start]
            count += 1
        if is_last or count > pieces_max:
            return
        content_start = end
    raise ServiceError("InvalidInput")  # no closing boundary, or none at all


def _delimiters(body: bytes, delimiter: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is closing) of each delimiter line. The start includes the preceding line break.

    Raises ServiceError InvalidInput if too many places only look like delimiters.
    """
    at = body.find(delimiter)
    seeming = 0
    while at >= 0:
        tail = _TAIL.match(body, at + len(delimiter))
        if tail is not None and (at == 0 or body[at - 1] == _LF):
            start = at
            if at > 0:
                start = at - 2 if body[at - 2 : at - 1] == b"\r" else at - 1
            yield start, tail.end(), tail.group(1) is not None
        else:
            seeming += 1
            if seeming > limits.SEEMING_DELIMITERS_MAX:
                raise ServiceError("InvalidInput")
        at = body.find(delimiter, at + len(delimiter))


def _split(part: bytes) -> tuple[bytes, bytes]:
    """Split bytes into head and content at the first blank line."""
    head, separator, content = part.partition(b"\r\n\r\n")
    if separator and head.count(b"\n") == head.count(b"\r\n"):
        return head, content
    ends = [at + len(blank) for blank in (b"\n\n", b"\n\r\n") if (at := part.find(blank)) >= 0]
    if not ends:
        return part, b""
    return part[: min(ends)].rstrip(b"\r\n"), part[min(ends) :]


# The heads of a client's parts are mostly equal, so each is parsed once.
_HEAD_KNOWN_MAX = 2048


def _part_head(head: bytes) -> _PartHead:
    if len(head) > limits.CHANGE_HEAD_MAX_BYTES:
        raise ServiceError("InvalidInput")
    return _known_part_head(head) if len(head) <= _HEAD_KNOWN_MAX else _read_part_head(head)


def _read_part_head(head: bytes) -> _PartHead:
    headers = dict(_headers(head))
    return _PartHead(headers.get("content-type"), headers.get("content-id"))


_known_part_head = lru_cache(maxsize=1024)(_read_part_head)


def _headers(head: bytes) -> Headers:
    if head.count(b"\n") > limits.PART_HEADERS_MAX:
        raise ServiceError("InvalidInput")
    headers = []
    for line in head.decode("latin-1").splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ServiceError("InvalidInput")
        headers.append((name.strip().lower(), value.strip()))
    return tuple(headers)


def _request(part: _PartHead, content: bytes, most_bytes: int) -> InnerRequest:
    head, body = _split(content.lstrip(b"\r\n"))
    if len(head) > most_bytes:
        raise ServiceError("InvalidInput")
    inner = _known_inner_head(head) if len(head) <= _HEAD_KNOWN_MAX else _read_inner_head(head)
    return InnerRequest(inner, body.strip(b"\r\n"), part.content_id or inner.content_id)


def _read_inner_head(head: bytes) -> InnerHead:
    line_bytes, _, rest = head.partition(b"\n")
    try:
        line = line_bytes.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise ServiceError("InvalidInput") from None
    line = line.rstrip(" \t")
    match = _VERB.match(line)
    if match is None:
        raise ServiceError("InvalidInput")
    target = line[match.end() :]
    if _PROTOCOL.fullmatch(target, max(0, len(target) - _PROTOCOL_CHARACTERS)):
        target = target[:-_PROTOCOL_CHARACTERS].rstrip(" \t")
    headers = _headers(rest)
    return InnerHead(match.group(1).upper(), target, headers, dict(headers).get("content-id"))


_known_inner_head = lru_cache(maxsize=1024)(_read_inner_head)


def render(answers: Iterable[tuple[InnerReply, str | None]], is_query: bool = False) -> tuple[str, bytes]:
    """Return (Content-Type, body) of the reply to a batch. `answers`: the replies with their Content-IDs, in order."""
    outer = f"batchresponse_{uuid.uuid4()}"
    parts = [_part(answer, content_id) for answer, content_id in answers]
    if not is_query and parts:
        inner = f"changesetresponse_{uuid.uuid4()}"
        changes = b"".join(f"--{inner}\r\n".encode() + part for part in parts)
        head = f"Content-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()
        parts = [head + changes + f"--{inner}--\r\n".encode()]
    body = b"".join(f"--{outer}\r\n".encode() + part for part in parts) + f"--{outer}--\r\n".encode()
    return f"multipart/mixed; boundary={outer}", body


def _part(answer: InnerReply, content_id: str | None) -> bytes:
    head = _STATUS_LINES[answer.status]
    if content_id is not None:
        head += f"Content-ID: {content_id}\r\n"
    head += "".join([f"{name}: {value}\r\n" for name, value in answer.headers])
    return b"%s\r\n%s\r\n" % (head.encode("latin-1", "replace"), answer.body)


_STATUS_LINES = {
    status.value: "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    f"HTTP/1.1 {status.value} {status.phrase}\r\n"
    for status in HTTPStatus
}

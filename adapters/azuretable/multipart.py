"""The framing of $batch: multipart/mixed bytes <-> inner requests and answers. Knows nothing of tables or entities.

Tolerant in reading as the service is: CRLF or LF, quoted boundaries, header names in any case, Content-Length optional,
targets that were never percent-encoded. Exact in writing: Go's reader fails without the last CRLF, .NET's on one too many.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus

from adapters.azuretable.errors import ServiceError
from gateway.http import Headers

_BOUNDARY = re.compile(r"""boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;,"]{1,200}))""", re.IGNORECASE)
_REQUEST_LINE = re.compile(r"([A-Za-z]+)[ \t]+(\S.*?)(?:[ \t]+HTTP/\d\.\d)?[ \t]*")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_TAIL = re.compile(rb"(--)?[ \t]*(?=\r?\n|$)")
_LF = 0x0A


@dataclass(frozen=True, slots=True)
class InnerRequest:
    """One operation of a batch. `target` as sent: an absolute URI or a path."""

    method: str
    target: str
    headers: Headers
    body: bytes
    content_id: str | None = None


@dataclass(frozen=True, slots=True)
class InnerBatch:
    """What a batch asks for: the changes of its changeset, or (`is_query`) one query outside of any."""

    requests: tuple[InnerRequest, ...]
    is_query: bool = False


@dataclass(frozen=True, slots=True)
class InnerAnswer:
    """The answer of one operation."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


def parse(content_type: str, body: bytes, most: int) -> InnerBatch:
    """The operations of a $batch body; of a changeset with more than `most` changes only `most` + 1 are read.

    Raises ServiceError InvalidInput for anything that is not so framed, MediaTypeNotSupported for another media type.
    """
    parts = _parts(content_type, body, most)
    queries = []
    changesets = []
    for headers, content in parts:
        inner_type = dict(headers).get("content-type", "")
        if inner_type.lower().startswith("multipart/mixed"):
            changesets.append((inner_type, content))
        elif inner_type.lower().startswith("application/http"):
            queries.append(_request(headers, content))
        else:
            raise ServiceError("InvalidInput")
    if not parts:
        return InnerBatch(())
    if len(changesets) + len(queries) != 1:
        raise ServiceError("InvalidInput")
    if queries:
        return InnerBatch((queries[0],), is_query=True)
    inner_parts = _parts(*changesets[0], most)
    for headers, _ in inner_parts:
        if not dict(headers).get("content-type", "application/http").lower().startswith("application/http"):
            raise ServiceError("InvalidInput")
    return InnerBatch(tuple(_request(headers, content) for headers, content in inner_parts))


def _parts(content_type: str, body: bytes, most: int) -> list[tuple[Headers, bytes]]:
    """The parts between the boundaries that a Content-Type names: headers and content."""
    if not content_type.lower().startswith("multipart/mixed"):
        raise ServiceError("MediaTypeNotSupported")
    named = _BOUNDARY.search(content_type)
    if named is None:
        raise ServiceError("InvalidInput")
    delimiter = b"--" + (named.group(1) or named.group(2)).encode("latin-1", "replace")
    parts: list[tuple[Headers, bytes]] = []
    began: int | None = None
    for start, end, is_last in _delimiters(body, delimiter):
        if began is not None:
            parts.append(_split_head(body[began:start]))
        if is_last or len(parts) > most:
            return parts
        began = end
    raise ServiceError("InvalidInput")  # no closing boundary, or none at all


def _delimiters(body: bytes, delimiter: bytes) -> Iterator[tuple[int, int, bool]]:
    """Each line that is the delimiter: where it begins (line break in front included), where it ends, whether it closes."""
    at = body.find(delimiter)
    while at >= 0:
        tail = _TAIL.match(body, at + len(delimiter))
        if tail is not None and (at == 0 or body[at - 1] == _LF):
            start = at
            if at > 0:
                start = at - 2 if body[at - 2 : at - 1] == b"\r" else at - 1
            yield start, tail.end(), tail.group(1) is not None
        at = body.find(delimiter, at + len(delimiter))


def _split_head(part: bytes) -> tuple[Headers, bytes]:
    """Headers and content of bytes that begin with the line break before the headers."""
    blank = _BLANK_LINE.search(part)
    if blank is None:
        return _headers(part), b""
    return _headers(part[: blank.start()]), part[blank.end() :]


def _headers(head: bytes) -> Headers:
    headers = []
    for line in head.decode("latin-1").splitlines():
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise ServiceError("InvalidInput")
        headers.append((name.strip().lower(), value.strip()))
    return tuple(headers)


def _request(part_headers: Headers, content: bytes) -> InnerRequest:
    content = content.lstrip(b"\r\n")
    line_bytes, _, rest = content.partition(b"\n")
    try:
        line = line_bytes.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise ServiceError("InvalidInput") from None
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise ServiceError("InvalidInput")
    headers, body = _split_head(b"\n" + rest)
    content_id = dict(part_headers).get("content-id") or dict(headers).get("content-id")
    return InnerRequest(found.group(1).upper(), found.group(2), headers, body.strip(b"\r\n"), content_id)


def render(answers: Iterable[tuple[InnerAnswer, str | None]], is_query: bool = False) -> tuple[str, bytes]:
    """(Content-Type, body) of the reply to a batch: answers with their Content-ID, in order."""
    outer = f"batchresponse_{uuid.uuid4()}"
    parts = [_part(answer, content_id) for answer, content_id in answers]
    if not is_query and parts:
        inner = f"changesetresponse_{uuid.uuid4()}"
        changes = b"".join(f"--{inner}\r\n".encode() + part for part in parts)
        head = f"Content-Type: multipart/mixed; boundary={inner}\r\n\r\n".encode()
        parts = [head + changes + f"--{inner}--\r\n".encode()]
    body = b"".join(f"--{outer}\r\n".encode() + part for part in parts) + f"--{outer}--\r\n".encode()
    return f"multipart/mixed; boundary={outer}", body


def _part(answer: InnerAnswer, content_id: str | None) -> bytes:
    lines = ["Content-Type: application/http", "Content-Transfer-Encoding: binary", ""]
    lines.append(f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}")
    if content_id is not None:
        lines.append(f"Content-ID: {content_id}")
    lines += [f"{name}: {value}" for name, value in answer.headers]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + answer.body + b"\r\n"

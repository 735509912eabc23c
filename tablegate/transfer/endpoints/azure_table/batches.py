"""Entity group transactions as bytes: a changeset of upserts or deletes of one partition, and the result.

Source: "Performing entity group transactions" (learn.microsoft.com/rest/api/storageservices). The SDK's parser of
multipart replies costs more than the rest of a write, so it is not used.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from tablegate.transfer.endpoints.azure_table.client import error_of

_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")


class EntityChange(NamedTuple):
    """One operation on the entity at `url`. It is a delete if `body` is None."""

    url: str
    body: bytes | None

    @property
    def size_bytes(self) -> int:
        """Upper bound of the bytes that it adds to a batch."""
        return len(self.url) + len(self.body or b"") + 400


def encode(changes: Sequence[EntityChange]) -> tuple[str, bytes]:
    """Return (Content-Type, body) of a batch."""
    batch, changeset = f"batch_{uuid.uuid4()}", f"changeset_{uuid.uuid4()}"
    parts = [
        f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changeset}\r\n\r\n".encode(),
    ]
    for number, change in enumerate(changes):
        parts.append(
            f"--{changeset}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: {number}\r\n\r\n".encode()
        )
        parts.append(_request(change))
    parts.append(f"--{changeset}--\r\n--{batch}--\r\n".encode())
    return f"multipart/mixed; boundary={batch}", b"".join(parts)


def _request(change: EntityChange) -> bytes:
    if change.body is None:
        head = "Accept: application/json\r\nIf-Match: *\r\nDataServiceVersion: 3.0\r\n"
        return f"DELETE {change.url} HTTP/1.1\r\n{head}\r\n\r\n".encode()
    head = (
        "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\n"
        f"DataServiceVersion: 3.0\r\nContent-Length: {len(change.body)}\r\n"
    )
    return f"PUT {change.url} HTTP/1.1\r\n{head}\r\n".encode() + change.body + b"\r\n"


def failure(answer: bytes) -> tuple[int, str, str] | None:
    """Return (status, code, text) of the operation that made a batch fail, None if the batch succeeded."""
    for match in _STATUS.finditer(answer):
        status = int(match[1])
        if status >= 400:
            start, end = answer.find(b"{", match.end()), answer.rfind(b"}")
            return (status, *error_of(answer[start : end + 1]))
    return None

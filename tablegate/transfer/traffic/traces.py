"""The trace file: events as JSON Lines in zstandard frames.

The first line is a header with format and version. Requests and replies follow in order of time. So a reader knows
which requests had been answered before each request. A frame holds whole lines and is written at once. If the
recorder is killed, the file can be read up to its last whole frame. Module recording.py removes secrets before
events are written.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import zstandard

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.errors import TransferError

FORMAT, VERSION = "tablegate-trace", 1
FRAME_BYTES = 256 << 10
_LINE_MAX_BYTES = 256 << 20
_CHUNK_BYTES = 64 << 10
_WINDOW_MAX_BYTES = 128 << 20
_MAGIC = b"\x28\xb5\x2f\xfd"


class BadTrace(TransferError):
    """The file is no trace, or it lacks what the command needs."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The facts about a request besides its bytes.

    `signed` is the kind of authentication (services.py). `at` is in seconds since 1970.
    """

    number: int
    connection: int
    at: float
    dialect: str
    operation: str
    signed: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """A request sent to the service. It has no body if the trace has no bodies."""

    about: RecordedRequest
    request: Request


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """The reply to a request. `failure` is the reason if there was none."""

    number: int
    at: float
    reply: Reply | None
    failure: str = ""


Event = RequestEvent | AnswerEvent


# Writing


class TraceWriter:
    """A writer that appends events. `upstream` is the address of the service.

    Events that are not yet in a frame are lost with the process. `flush` ends a frame. Raises OSError on disk
    errors, after which the file ends with its last whole frame.
    """

    def __init__(self, path: Path, upstream: str, with_bodies: bool = True) -> None:
        self._with_bodies = with_bodies
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        # Only the owner may read the file, because it holds table data.
        self._file: BinaryIO = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 0)
        header = {"format": FORMAT, "version": VERSION, "bodies": with_bodies, "upstream": upstream}
        self._add({**header, "began": time.time()})
        try:
            self.flush()
        except OSError:
            self._file.close()
            raise

    def request(self, metadata: RecordedRequest, request: Request) -> None:
        """Write a request, which must be free of secrets."""
        self._add(
            {
                "event": "request",
                "number": metadata.number,
                "connection": metadata.connection,
                "at": metadata.at,
                "dialect": metadata.dialect,
                "operation": metadata.operation,
                "signed": metadata.signed,
                "region": metadata.region,
                "method": request.method,
                "target": request.target,
                "headers": request.headers,
                **self._body(request.body),
            }
        )

    def answer(self, number: int, reply: Reply) -> None:
        """Write a reply, which must be free of secrets."""
        event = {"event": "answer", "number": number, "at": time.time(), "status": reply.status}
        self._add({**event, "headers": list(reply.headers), **self._body(reply.body)})

    def failure(self, number: int, text: str) -> None:
        """Record that there was no reply."""
        self._add({"event": "failure", "number": number, "at": time.time(), "text": text})

    def flush(self) -> None:
        """End the frame. If it cannot be written whole, the file is truncated to the frame before."""
        if not self._pending:
            return
        frame = self._compressor.compress(b"".join(self._pending))
        self._pending, self._pending_bytes = [], 0
        seekable = self._file.seekable()
        start = self._file.tell() if seekable else 0
        offset = 0
        try:
            while offset < len(frame):
                offset += self._file.write(frame[offset:])
        except OSError:
            if seekable:
                self._file.truncate(start)
            raise

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()

    def _add(self, line: dict[str, Any]) -> None:
        text = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        self._pending.append(text)
        self._pending_bytes += len(text)
        if self._pending_bytes >= FRAME_BYTES:
            self.flush()

    def _body(self, body: bytes) -> dict[str, Any]:
        if not self._with_bodies:
            return {"bytes": len(body)}
        try:
            return {"body": body.decode()}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(body).decode()}


# Reading


class TraceReader:
    """An iterator over the events of a trace. `is_cut` is set at the end if the last frame is incomplete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_cut = False
        self._lines = self._read_lines()
        header = self._parse(next(self._lines, b""), 1)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise BadTrace(f"{path} is no trace of `tablegate record`: its header is missing")
        if header.get("version") != VERSION:
            raise BadTrace(
                f"{path} is a trace of version {header.get('version')}. This release reads version {VERSION}"
            )
        self.has_bodies: bool = header.get("bodies") is True
        self.began = float(header.get("began", 0.0))

    def __iter__(self) -> Iterator[Event]:
        for number, text in enumerate(self._lines, 2):
            line = self._parse(text, number)
            try:
                yield _event(line)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise BadTrace(f"{self._path}, line {number}: invalid event ({error!r})") from None

    def _parse(self, text: bytes, number: int) -> Any:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise BadTrace(f"{self._path}, line {number}: {error}") from None

    def _read_lines(self) -> Iterator[bytes]:
        """Yield whole lines. A last line without its end is dropped."""
        rest = b""
        try:
            for data in self._frames():
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
                if len(rest) > _LINE_MAX_BYTES:
                    raise BadTrace(f"{self._path} has a line that exceeds {_LINE_MAX_BYTES} bytes")
        except OSError as error:
            raise BadTrace(f"{self._path}: {error.strerror}") from None
        except zstandard.ZstdError as error:
            raise BadTrace(f"{self._path} is damaged: {error}") from None
        self.is_cut = self.is_cut or bool(rest)

    def _frames(self) -> Iterator[bytes]:
        opener = zstandard.ZstdDecompressor(max_window_size=_WINDOW_MAX_BYTES)
        with self._path.open("rb") as file:
            data = file.read(_CHUNK_BYTES)
            if data[:4] != _MAGIC:
                raise BadTrace(f"{self._path} is no trace: it is not compressed with zstandard")
            frame = opener.decompressobj()
            while data:
                yield frame.decompress(data)
                if frame.eof:
                    data = frame.unused_data or file.read(_CHUNK_BYTES)
                    if data:
                        frame = opener.decompressobj()
                else:
                    data = file.read(_CHUNK_BYTES)
            self.is_cut = not frame.eof


def _event(line: dict[str, Any]) -> Event:
    number, at = int(line["number"]), float(line["at"])
    match line["event"]:
        case "request":
            metadata = RecordedRequest(
                number,
                int(line["connection"]),
                at,
                str(line["dialect"]),
                str(line["operation"]),
                str(line["signed"]),
                str(line["region"]),
            )
            request = Request(line["method"], line["target"], _headers(line), _body_of(line))
            return RequestEvent(metadata, request)
        case "answer":
            return AnswerEvent(number, at, Reply(int(line["status"]), _headers(line), _body_of(line)))
        case "failure":
            return AnswerEvent(number, at, None, str(line["text"]))
        case other:
            raise ValueError(f"event {other!r}")


def _headers(line: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in line["headers"])


def _body_of(line: dict[str, Any]) -> bytes:
    if "base64" in line:
        return base64.b64decode(line["base64"], validate=True)
    return str(line.get("body", "")).encode()

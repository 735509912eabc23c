"""Several server processes on one SQLite file, of which one writes. The others, the readers, forward requests to the writer.

A reader forwards each request that may write as a whole, over a Unix-domain socket. The reply comes back the same way. The writer
handles the request as if its client had connected to it, and checks the signature once more.

A frame is its length and the `marshal` bytes of a tuple. The bytes are trusted: both ends are one program, and the
socket's file is in a folder that only the server's own user may enter.

Many requests are under way on one connection at a time. What the readers forward in one turn is one tick of the writer.
Knows neither HTTP grammar nor what requests mean.
"""

from __future__ import annotations

import asyncio
import itertools
import marshal
import shutil
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from tablegate.gateway.http import Reply, Request
from tablegate.gateway.model.errors import Busy, CommitUnknown
from tablegate.gateway.observability import logs
from tablegate.gateway.request_memory import RequestMemory
from tablegate.gateway.server.pending_request import PendingRequest

_LENGTH = struct.Struct("<I")
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class RelaySocket:
    """The socket on which the writer listens. It is made before the processes are forked and outlives each of them: requests
    that are forwarded while there is no writer wait for the next one."""

    listening: socket.socket
    path: str

    @classmethod
    def make(cls, folder: str) -> RelaySocket:
        """A socket in a folder of its own, which nobody else may enter. Raises OSError."""
        path = f"{folder}/writer"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        Path(path).chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        return cls(listening, path)

    def remove(self) -> None:
        """Take the folder away."""
        shutil.rmtree(Path(self.path).parent, ignore_errors=True)


class RelayServer(Protocol):
    """The part of the server that both ends call."""

    memory: RequestMemory

    def handle(self, pending: PendingRequest) -> None:
        """Have a request handled. Its connection's `answer` is called once."""

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Return the refusal for an error, in the words of the request's dialect."""


class _Frames(asyncio.Protocol):
    """Tuples, in both directions, as frames."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        at = 0
        while len(received) - at >= _LENGTH.size:
            start = at + _LENGTH.size
            end = start + _LENGTH.unpack_from(received, at)[0]
            if end > len(received):
                break
            self.take(*marshal.loads(bytes(received[start:end])))
            at = end
        del received[:at]

    def take(self, number: int, *parts: Any) -> None:
        """A frame has come."""
        raise NotImplementedError

    @staticmethod
    def framed(*parts: Any) -> bytes:
        """A tuple as a frame."""
        data = marshal.dumps(parts)
        return _LENGTH.pack(len(data)) + data


class Relay(_Frames):
    """The reader's end: forwards requests, and has the replies sent."""

    def __init__(self, path: str, server: RelayServer) -> None:
        super().__init__()
        self._path = path
        self._server = server
        self._numbers: Iterator[int] = itertools.count()
        self._waiting: dict[int, PendingRequest] = {}
        self._unsent: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None

    def forward(self, pending: PendingRequest) -> None:
        """Have the writer answer a request; its connection's `answer` is called once."""
        number = next(self._numbers)
        self._waiting[number] = pending
        if pending.held_bytes:  # the writer decodes it anew
            self._server.memory.release(pending)
        frame = self.framed(
            number, pending.method, pending.target, pending.headers, pending.body, pending.client, pending.secure, pending.id
        )  # fmt: skip
        if self._transport is not None:
            self._transport.write(frame)
            return
        self._unsent.append(frame)
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: self, self._path)
        except OSError as error:
            logs.error("the process that writes cannot be reached", None, reason=str(error))
            self._unsent.clear()
            self._refuse_all(Busy("the process that writes cannot be reached"))
        finally:
            self._connecting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        unsent, self._unsent = self._unsent, []
        self._transport.writelines(unsent)

    def take(self, number: int, *parts: Any) -> None:
        pending = self._waiting.pop(number, None)
        if pending is not None:
            pending.connection.answer(Reply(*parts))

    def connection_lost(self, error: Exception | None) -> None:
        """The writer is gone. What it had in hand may or may not have been done."""
        self._transport = None
        self._received.clear()
        self._refuse_all(CommitUnknown("the process that writes is gone"))

    def _refuse_all(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, {}
        for pending in waiting.values():
            pending.connection.answer(self._server.refuse(pending, error))


class _RelayedConnection:
    """The connection of a forwarded request: sends the reply back to the reader."""

    __slots__ = ("_body_bytes", "_memory", "_number", "_relayed", "written_up_to")

    def __init__(self, relayed: Relayed, number: int, body_bytes: int, memory: RequestMemory) -> None:
        self._relayed = relayed
        self._number = number
        self._body_bytes = body_bytes
        self._memory = memory
        self.written_up_to = 0

    def answer(self, reply: Reply) -> None:
        """Send the reply back to the reader."""
        self._memory.discard(self._body_bytes)
        self._relayed.send(self._number, reply)


class Relayed(_Frames):
    """The writer's end of one reader's connection."""

    def __init__(self, server: RelayServer) -> None:
        super().__init__()
        self._server = server

    def take(self, number: int, *parts: Any) -> None:
        *request, request_id = parts
        pending = PendingRequest(*request)
        pending.id = request_id
        memory, size_bytes = self._server.memory, len(pending.body)
        try:
            memory.receive(size_bytes)
        except Busy as error:
            self.send(number, self._server.refuse(pending, error))
            return
        pending.connection = _RelayedConnection(self, number, size_bytes, memory)
        self._server.handle(pending)

    def send(self, number: int, reply: Reply) -> None:
        """Send a reply, if the reader is still there."""
        if self._transport is not None:
            self._transport.write(
                self.framed(number, int(reply.status), tuple(map(tuple, reply.headers)), reply.body)
            )

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

"""Several server processes on one SQLite file. One of them writes. The others, the readers, forward requests to it.

A reader forwards each request that may write, as a whole, over a Unix-domain socket. The reply comes back the same way.
The writer handles the request as if its client had connected to it, and checks the signature again.

A frame is its length and the `marshal` bytes of a tuple. The bytes are trusted: both ends are one program, and the
folder of the socket is accessible to the server's own user only.

A connection carries many requests at the same time. Requests that the readers forward in one iteration form one tick of
the writer. This module does not depend on HTTP grammar or on the meaning of requests.
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

from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.http.request_bodies import RequestMemory
from tablegate.gateway.model.errors import Busy, CommitUnknown
from tablegate.gateway.observability import logs
from tablegate.gateway.server.pending_request import PendingRequest

_LENGTH = struct.Struct("<I")
_BACKLOG = 128


@dataclass(frozen=True, slots=True)
class RelaySocket:
    """The listening socket of the writer.

    It is created before the fork and outlives each process. Requests that are forwarded while there is no writer wait
    for the next one.
    """

    listening: socket.socket
    path: str

    @classmethod
    def make(cls, folder: str) -> RelaySocket:
        """Create a socket in a private folder. Raises OSError."""
        path = f"{folder}/writer"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        Path(path).chmod(0o600)
        listening.listen(_BACKLOG)
        listening.setblocking(False)
        return cls(listening, path)

    def remove(self) -> None:
        shutil.rmtree(Path(self.path).parent, ignore_errors=True)


class RelayServer(Protocol):
    """The part of the server that both ends call."""

    memory: RequestMemory

    def handle(self, pending: PendingRequest) -> None:
        """Start handling a request. Its connection's `answer` is called once."""

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Return the refusal for an error, in the format of the request's dialect."""


class _Frames(asyncio.Protocol):
    """A connection that exchanges tuples as frames."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._received
        buffer += data
        at = 0
        while len(buffer) - at >= _LENGTH.size:
            start = at + _LENGTH.size
            end = start + _LENGTH.unpack_from(buffer, at)[0]
            if end > len(buffer):
                break
            self.receive(*marshal.loads(bytes(buffer[start:end])))
            at = end
        del buffer[:at]

    def receive(self, number: int, *parts: Any) -> None:
        """Handle a received frame."""
        raise NotImplementedError

    @staticmethod
    def frame(*parts: Any) -> bytes:
        data = marshal.dumps(parts)
        return _LENGTH.pack(len(data)) + data


class Relay(_Frames):
    """The reader's end: it forwards requests and passes on the replies."""

    def __init__(self, path: str, server: RelayServer) -> None:
        super().__init__()
        self._path = path
        self._server = server
        self._numbers: Iterator[int] = itertools.count()
        self._waiting: dict[int, PendingRequest] = {}
        self._unsent: list[bytes] = []
        self._connecting: asyncio.Task[None] | None = None

    def forward(self, pending: PendingRequest) -> None:
        """Forward a request to the writer. Its connection's `answer` is called once."""
        number = next(self._numbers)
        self._waiting[number] = pending
        if pending.held_bytes:  # the writer decodes it again
            self._server.memory.release(pending)
        frame = self.frame(
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
            logs.error("cannot connect to the writer process", None, reason=str(error))
            self._unsent.clear()
            self._refuse_all(Busy("cannot connect to the writer process"))
        finally:
            self._connecting = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._transport is not None
        unsent, self._unsent = self._unsent, []
        self._transport.writelines(unsent)

    def receive(self, number: int, *parts: Any) -> None:
        pending = self._waiting.pop(number, None)
        if pending is not None:
            pending.connection.answer(Reply(*parts))

    def connection_lost(self, error: Exception | None) -> None:
        """Refuse all forwarded requests after the loss of the writer. Their outcome is unknown."""
        self._transport = None
        self._received.clear()
        self._refuse_all(CommitUnknown("the writer process has exited"))

    def _refuse_all(self, error: Exception) -> None:
        refused_requests, self._waiting = self._waiting, {}
        for pending in refused_requests.values():
            pending.connection.answer(self._server.refuse(pending, error))


class _RelayedConnection:
    """The connection of a forwarded request, which returns the reply to the reader.

    The writer does not learn of clients that close their connections.
    """

    is_lost = False

    __slots__ = ("_body_bytes", "_memory", "_number", "_reader", "written_up_to")

    def __init__(self, reader: Relayed, number: int, body_bytes: int, memory: RequestMemory) -> None:
        self._reader = reader
        self._number = number
        self._body_bytes = body_bytes
        self._memory = memory
        self.written_up_to = 0

    def answer(self, reply: Reply) -> None:
        self._memory.discard(self._body_bytes)
        self._reader.send(self._number, reply)


class Relayed(_Frames):
    """The writer's end of a reader's connection."""

    def __init__(self, server: RelayServer) -> None:
        super().__init__()
        self._server = server

    def receive(self, number: int, *parts: Any) -> None:
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
        if self._transport is not None:
            self._transport.write(
                self.frame(number, int(reply.status), tuple(map(tuple, reply.headers)), reply.body)
            )

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

"""A toy dialect over an engine without a database, to test the server alone.

The path of a request selects the behaviour. `/echo` returns method, target and body through the tick. `/say` returns
the body as the fake engine returns it. `/many` calls the engine as often as the body says. Other paths misbehave on
purpose. Paths below `/flask` go through Flask.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from tablegate.gateway.app import mount
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.dialects.dialect import Dialect, Gateway
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.commands.row_commands import Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import (
    Busy,
    Contended,
    GatewayError,
    HeadTooLong,
    LimitExceeded,
    StaleTable,
)
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.security.credentials import Credentials
from tests.support.running import Running, start_app
from tests.support.waiting import PATIENCE_S


class FakeEngine:
    """An engine that returns the bytes of a write and records lists of commands.

    `gate` can block it. A page takes `slices` of `slice_seconds` each. `read` records them. The next `contended` commands of
    that name are Contended, with no time for another attempt in the list of number `last_contended_list`.
    """

    replicas = None
    is_distributed = False

    def __init__(self) -> None:
        self.lists: list[list[Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.stale = 0
        self.contended = 0
        self.last_contended_list = 0
        self.slices, self.slice_seconds = 1, 0.0
        self.read: list[tuple[bytes, int]] = []

    def run(self, commands: list[Any], nowait: bool = False) -> list[Any]:
        said = [_said(command) for command in commands]
        self.lists.append(said)
        self.entered.release()
        self.gate.wait(PATIENCE_S)
        if b"poison" in said:
            raise RuntimeError("the engine choked")
        return [self._outcome(each) for each in said]

    def node_states(self) -> list[Any]:
        return []

    def node_of(self, commands: list[Any]) -> bytes:
        """Return the node of a command in tests with several nodes: its first letter."""
        return _said(commands[0])[:1]  # type: ignore[no-any-return]

    def run_in_slices(
        self, commands: list[Any], outcomes: dict[int, Any], slot: int, written: int
    ) -> Iterator[None]:
        said = [_said(command) for command in commands]
        self.lists.append(said)
        for at, each in enumerate(said):
            for number in range(self.slices):
                time.sleep(self.slice_seconds)
                self.read.append((each, number))
                yield
            if each == b"poison":
                raise RuntimeError("the engine choked")
            outcomes[at] = self._outcome(each)
            yield

    def _outcome(self, said: bytes) -> Any:
        if said == b"stale" and self.stale:
            self.stale -= 1
            return StaleTable()
        if said == b"contended" and self.contended:
            self.contended -= 1
            is_last = len(self.lists) == self.last_contended_list
            return Contended("a lock", wait_s=0.0 if is_last else 3600.0)
        return Busy("refused") if said == b"busy" else said

    def register_view(self, dialect: str, view: Any) -> None:
        pass

    def ping(self) -> None:
        pass

    def table_names(self) -> frozenset[str]:
        return frozenset()


def _said(command: Any) -> Any:
    if isinstance(command, Read):
        return command.table
    if isinstance(command, FindTable):
        return command.name.encode()
    return command.writes[0] if isinstance(command, WriteGroup) else command.gets[0]


def write(said: bytes) -> WriteGroup:
    return WriteGroup((said,))  # type: ignore[arg-type]


def read(said: bytes) -> ReadAll:
    return ReadAll((said,))  # type: ignore[arg-type]


def find(said: bytes) -> FindTable:
    return FindTable("", said.decode())


def page(said: bytes) -> Read:
    return Read(said, KeyRange(Position(b"", b""), Position(b"", b"")), PageLimits())  # type: ignore[arg-type]


async def handle(request: Request) -> Reply:
    """The toy's one handler."""
    match request.path:
        case "/echo":
            await all_of([write(request.body)])
            body = orjson.dumps(
                [request.method, request.target, request.body.decode("latin-1"), request.client]
            )
            return Reply(200, (("Content-Type", "application/json"), ("x-id", request.id)), body)
        case "/say":
            [outcome] = await all_of([write(request.body)])
            if isinstance(outcome, GatewayError):
                return Reply(503, (), b"toy: busy")
            return Reply(200, (), outcome)
        case "/read":
            [outcome] = await all_of([read(request.body)])
            return Reply(200, (), outcome)
        case "/page":
            [outcome] = await all_of([page(request.body)])
            return Reply(200, (), outcome)
        case "/find":
            [outcome] = await all_of([find(request.body)])
            return Reply(200, (), outcome)
        case "/both":
            outcomes = await all_of([read(b"read"), write(b"written")])
            return Reply(200, (), b" ".join(outcomes))
        case "/each":
            outcomes = await all_of([write(word) for word in request.body.split()])
            return Reply(200, (), b" ".join(outcomes))
        case "/many":
            for round_number in range(int(request.body)):
                await all_of([write(b"round %d" % round_number)])
            return Reply(200, (), b"done")
        case "/at-once":
            return Reply(200, (), b"no engine")
        case "/big":
            await all_of([write(b"")])
            return Reply(200, (), b"x" * int(request.body))
        case "/empty":
            await all_of([write(b"")])
            return Reply(204, (), b"this is not sent")
        case "/breakout":
            await all_of([write(b"")])
            return Reply(200, (("x-bad", "a\r\nx-injected: b"),), b"")
        case "/raise-first":
            raise RuntimeError("before the engine")
        case "/raise-later":
            await all_of([write(b"")])
            raise RuntimeError("after the engine")
        case "/flask/raise":
            raise RuntimeError("in Flask")
        case path if path.startswith("/flask/"):
            facts = [request.method, request.target, request.body.decode("latin-1"), request.headers]
            return Reply(200, (("Content-Type", "application/json"),), orjson.dumps(facts))
        case _:
            return Reply(404, (), b"")


class Toy(Dialect):
    """A dialect that accepts every request. Handlers of paths below /flask can block."""

    name = "toy"
    blocking_operations = frozenset({"flask"})

    @staticmethod
    def matches(request: Request) -> bool:
        return True

    def operation(self, request: Request) -> str:
        return "flask" if request.path.startswith("/flask") else request.path

    def authenticate(self, request: Request) -> None:
        return None

    def parse(self, request: Request, caller: None) -> Request:
        return request

    async def execute(self, call: Request) -> Reply:
        return await handle(call)

    def render(self, request: Request, caller: None, answer: Reply) -> Reply:
        return answer

    def render_error(self, request: Request, caller: None, error: Exception) -> Reply:
        raise error

    def refuse(self, request: Request, error: Exception) -> Reply:
        match error:
            case LimitExceeded():
                return Reply(413, (), b"toy: too large")
            case HeadTooLong():
                return Reply(400, (), b"toy: " + error.text.encode())
            case _:
                return Reply(500, (), b"toy: " + str(error).encode())


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


ToyServer = Callable[..., Running]


@pytest.fixture
def toy(engine: FakeEngine) -> Iterator[ToyServer]:
    """Start a server of the toy dialect: `toy(lane="thread", max_body_bytes=...)`."""
    running: list[Running] = []

    def begin(lane: str = "inline", **settings: Any) -> Running:
        made = load({"memory": True, "port": 0, "drain_seconds": 0.0, **settings}, {})
        gateway = Gateway(engine, Credentials(made), made, lambda: 0, lambda: 0)  # type: ignore[arg-type]
        running.append(start_app(mount(Application(gateway, [Toy(gateway)])), lane))
        return running[-1]

    yield begin
    engine.gate.set()
    for each in running:
        each.stop()


class Wire:
    """A client that sends bytes as they are and reads replies apart."""

    def __init__(self, running: Running) -> None:
        self._socket = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S)
        self._file = self._socket.makefile("rb")

    def send(self, *lines: str, body: bytes = b"") -> Wire:
        """Send a request with these head lines. Adds a Host header and the empty line."""
        head = [lines[0], "Host: toy", *lines[1:], "", ""]
        return self.raw("\r\n".join(head).encode("latin-1") + body)

    def post(self, target: str, body: bytes = b"") -> Wire:
        return self.send(f"POST {target} HTTP/1.1", f"Content-Length: {len(body)}", body=body)

    def raw(self, data: bytes) -> Wire:
        self._socket.sendall(data)
        return self

    def reply(self, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        """The next reply: status, headers by lower-case name, body."""
        status = int(self._file.readline().split()[1])
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        body = self._file.read(int(headers.get("content-length", 0))) if has_body else b""
        return status, headers, body

    def is_closed(self) -> bool:
        """Wait for the server to close the connection. Returns True when it has."""
        try:
            return self._file.read(1) == b""
        except ConnectionResetError:
            return True

    def is_cut_off(self) -> bool:
        """Send empty lines without reading. Returns True when the server closes the connection."""
        try:
            while True:
                self.raw(b"\r\n" * 1000)
        except ConnectionError:
            return True

    def shut_down_writing(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def wire() -> Iterator[Callable[[Running], Wire]]:
    """Connect to a server: `wire(server)`."""
    made: list[Wire] = []

    def connect(running: Running) -> Wire:
        made.append(Wire(running))
        return made[-1]

    yield connect
    for each in made:
        each.close()

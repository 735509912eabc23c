"""The modules of a dialect are imported at its first request (gateway/dialect.UnloadedDialect)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tablegate.gateway.app import mount
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.dialect import Dialect, Gateway, UnloadedDialect
from tablegate.gateway.http.messages import Request
from tablegate.gateway.security.credentials import Credentials
from tests.gateway.server.conftest import FakeEngine, Toy, Wire
from tests.support.running import Running, start_app

Serve = Callable[..., Running]


class Other(Toy):
    name = "other"

    @staticmethod
    def matches(request: Request) -> bool:
        return request.path == "/at-once"


@pytest.fixture
def serve(engine: FakeEngine) -> Iterator[Serve]:
    """Start a server of a loaded dialect for the path /at-once and of an unloaded one for all other paths."""
    running: list[Running] = []

    def begin(new: Callable[[Gateway], Dialect]) -> Running:
        settings = load({"memory": True, "port": 0, "drain_seconds": 0.0}, {})
        gateway = Gateway(engine, Credentials(settings), settings, lambda: 0, lambda: 0)  # type: ignore[arg-type]
        application = Application(gateway, [])
        app = mount(application)
        application.dialects[:] = [Other(gateway), UnloadedDialect(Toy, lambda: new(gateway))]
        running.append(start_app(app))
        return running[-1]

    yield begin
    for each in running:
        each.stop()


def test_a_dialect_is_loaded_once_and_beside_the_event_loop(serve: Serve) -> None:
    """Imports take tens of milliseconds. Requests of other dialects are answered meanwhile."""
    began, gate, loads = threading.Event(), threading.Event(), []

    def new(gateway: Gateway) -> Dialect:
        loads.append(threading.current_thread().name)
        began.set()
        gate.wait()
        return Toy(gateway)

    running = serve(new)
    clients = [Wire(running).post("/say", b"one"), Wire(running).post("/say", b"two")]
    began.wait()
    assert Wire(running).post("/at-once").reply()[2] == b"no engine"
    gate.set()
    assert [client.reply()[0] for client in clients] == [200, 200]
    assert len(loads) == 1 and loads != ["server"]


def test_a_dialect_that_cannot_be_loaded_is_an_error_of_the_server(serve: Serve) -> None:
    attempts: list[None] = []

    def new(gateway: Gateway) -> Dialect:
        attempts.append(None)
        if len(attempts) <= 2:  # for the request, and for its refusal
            raise ModuleNotFoundError("no module named toy")
        return Toy(gateway)

    running = serve(new)
    assert Wire(running).post("/say").reply()[0] == 500
    assert Wire(running).post("/say", b"one").reply()[0] == 200

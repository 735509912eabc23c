"""Recorders and shadows in a thread of this process, and services that are wrong in a way that a test chooses."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.proxies import Forwarder, Hooks, ListenOptions, Proxy
from tablegate.transfer.traffic.recording import record
from tablegate.transfer.traffic.replaying import replay
from tablegate.transfer.traffic.reports import DivergenceReport
from tablegate.transfer.traffic.services import Address, Service, SigningKey, credentials_of
from tablegate.transfer.traffic.shadowing import Sampling, shadow
from tests.support.waiting import PATIENCE_S

LISTEN = ListenOptions()
DEV = credentials_of(None, {})


@dataclass
class Run:
    """A coroutine in a thread: its address, its output, and its result."""

    url: str = ""
    metrics: str = ""
    said: list[str] = field(default_factory=list)
    result: Any = None
    error: BaseException | None = None


@contextlib.contextmanager
def running(start: Callable[[Run, Callable[..., None], Callable[[], Any]], Any]) -> Iterator[Run]:
    """Run a coroutine that listens, and stop it at the end of the block."""
    run, ready, told, loops = Run(), threading.Event(), threading.Event(), []

    def announce(url: str, metrics: str = "") -> None:
        run.url, run.metrics = url, metrics
        ready.set()

    async def until() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        if told.is_set():
            stop.set()
        await stop.wait()

    def work() -> None:
        try:
            run.result = asyncio.run(start(run, announce, until))
        except BaseException as error:
            run.error = error
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="proxy")
    thread.start()
    assert ready.wait(PATIENCE_S)
    try:
        yield run
    finally:
        told.set()
        for loop, stop in loops:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@contextlib.contextmanager
def recorder(
    upstream: str, path: Path, bodies: bool = True, keys: dict[str, SigningKey] | None = None
) -> Iterator[Run]:
    """`tablegate record`."""
    address = Address(upstream, "--upstream")
    with running(
        lambda run, announce, until: record(
            address, LISTEN, path, bodies, keys, Hooks(run.said.append, announce, until)
        )
    ) as run:
        yield run


@contextlib.contextmanager
def shadowing(primary: str, secondary: str, share: float = 1.0, with_writes: bool = True) -> Iterator[Run]:
    """Run `tablegate shadow`. The report is its result."""
    addresses = (Address(primary, "--primary"), Address(secondary, "--secondary"))
    sampling = Sampling(share, with_writes)
    with running(
        lambda run, announce, until: shadow(
            *addresses, LISTEN, 0, sampling, (None, DEV), Hooks(run.said.append, announce, until)
        )
    ) as run:
        yield run


def replayed(path: Path, against: str, speed: float | None = None) -> DivergenceReport:
    """`tablegate replay`."""
    return asyncio.run(replay(path, Address(against, "--against"), DEV, speed))


Change = Callable[[Request, Reply], Reply]


@contextlib.contextmanager
def faulty(upstream: str, change: Change) -> Iterator[Run]:
    """A service that answers as another does, but for what `change` makes of it."""
    address = Address(upstream, "upstream")

    async def serve(run: Run, announce: Callable[..., None], until: Callable[[], Any]) -> None:
        service = Service(address, 30.0)
        forwarder = Forwarder(address, None)

        async def handle(request: Request, connection: int) -> Reply:
            sent = forwarder.forwarded(request)
            return change(sent, await service.send(sent))

        proxy = Proxy(handle, lambda request, status, text: Reply(status, [], text.encode()), LISTEN)
        announce(await proxy.listen())
        try:
            await until()
        finally:
            await proxy.close()
            await service.close()

    with running(serve) as run:
        yield run

"""Workers read a tunnel while clients write, a server is killed, a worker stops, and shards are split and merged.

Each acknowledged row and change arrives at least once, the changes of a key in order, and rows before changes. The run
takes seconds here and a minute with `make soak`.
"""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import WireRow
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tests.adapters.tablestore.client import Refused, plain
from tests.durability.test_stream_crashes import WRITERS, Writer, reshard
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Begin, processes
from tests.support.tunnel_client import TunnelWorker, create_tunnel

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))
OLD_ROWS = 100


@pytest.fixture
def begin(tmp_path: Path, database_url: str) -> Iterator[Begin]:
    """Start a server process. Those that still run are killed at the end."""
    with processes(tmp_path, "--dialects", "tablestore") as begin:
        yield partial(begin, database_url)


class CountingWorker(TunnelWorker):
    """A worker that records the changes of each key, in the order of their arrival. Rows have none."""

    seen: dict[str, list[int]]

    def process(self, name: str, action: int, row: WireRow) -> None:
        found = plain(row)
        assert found is not None
        if name.startswith("BaseData_"):
            assert not any(self.seen.values()), "a row after a change"
            self.seen.setdefault(found["p"], [])
        else:
            self.seen.setdefault(found["p"], []).append(found["n"])


def connect(url: str, tunnel: str, seen: dict[str, list[int]]) -> CountingWorker:
    worker = CountingWorker(LiveTableStore(url), tunnel, timeout_s=1)
    worker.seen = seen
    return worker


def work(worker: CountingWorker) -> bool:
    """Read a page of each channel. A server may be killed meanwhile. Return False once there is nothing new."""
    try:
        return worker.work()
    except (OSError, http.client.HTTPException):
        worker.tokens.clear()  # as a worker that continues at its saved positions
        time.sleep(0.02)
        return True


@pytest.mark.soak
def test_a_tunnel_loses_nothing(begin: Begin, database_url: str) -> None:
    server = begin()
    urls = [server.url]
    live = LiveTableStore(server.url)
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    live.create("t", ("p", messages.STRING), stream_spec=stream)
    for number in range(OLD_ROWS):
        live.put({"p": f"old-{number}"}, {"n": -1}, "t")
    tunnel = create_tunnel(live, tunnel_pb2.BaseAndStream)
    done = threading.Event()
    writers = [Writer(urls, number, done) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    seen: dict[str, list[int]] = {}
    workers = [connect(server.url, tunnel, seen) for _ in range(2)]
    began = time.monotonic()

    def kill() -> None:
        server.kill()
        began_again = begin()
        urls[0] = began_again.url
        workers[0].service = LiveTableStore(began_again.url)
        workers.pop()  # this one stops without a word

    events: list[tuple[float, Callable[[], None]]] = [
        (SECONDS * 0.3, lambda: reshard(database_url, 3)),
        (SECONDS * 0.6, kill),
        (SECONDS * 0.8, lambda: reshard(database_url, 2)),
    ]
    while events or time.monotonic() - began < SECONDS:
        while events and time.monotonic() - began > events[0][0]:
            events.pop(0)[1]()
        for worker in workers:
            try:
                work(worker)
            except Refused as refused:
                assert refused.code == "OTSResourceGone"
                workers[workers.index(worker)] = connect(urls[0], tunnel, seen)
    done.set()
    for writer in writers:
        writer.join()
        assert not writer.errors
    finish(connect(urls[0], tunnel, seen), LiveTableStore(urls[0]), tunnel)
    check(writers, seen)


def finish(worker: CountingWorker, live: LiveTableStore, tunnel: str) -> None:
    """Work until the worker holds all channels, and there is nothing new in them."""
    while True:
        found = work(worker)
        channels = live.call("tunnel/describe", table_name="t", tunnel_name="u").channels
        others = [
            channel
            for channel in channels
            if channel.channel_status != "TERMINATED" and channel.client_id != worker.client
        ]
        if not found and not others:
            return


def check(writers: list[Writer], seen: dict[str, list[int]]) -> None:
    assert all(f"old-{number}" in seen for number in range(OLD_ROWS))
    for numbers in seen.values():
        first_times = list(dict.fromkeys(numbers))
        assert first_times == sorted(first_times)
    for at, writer in enumerate(writers):
        got = {number for key, numbers in seen.items() if key.startswith(f"{at}-") for number in numbers}
        assert writer.acknowledged <= got <= writer.acknowledged | writer.unknown
    assert sum(len(writer.acknowledged) for writer in writers) > 50

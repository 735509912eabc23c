"""A reader follows all shards of a stream while eight clients write, servers are killed and shards are split.

It gets each acknowledged change exactly once, each unacknowledged one at most once, and each key's changes in order.
There are two server processes on PostgreSQL and one on SQLite. The run takes seconds here and a minute with `make
soak`.
"""

from __future__ import annotations

import http.client
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.model.commands.stream_commands import Reshard
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.wiring import connect, open_store
from tests.adapters.tablestore.client import Refused
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Begin, Process, processes

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "3"))
WRITERS = 8
KEYS = 5

ShardIterator = tuple[str, str]
"""(shard, iterator)."""


@pytest.fixture
def begin(tmp_path: Path, database_url: str) -> Iterator[Begin]:
    """Start a server process. Those that still run are killed at the end."""
    with processes(tmp_path, "--dialects", "tablestore") as begin:
        yield partial(begin, database_url)


class Writer(threading.Thread):
    """A client that writes increasing numbers to its own keys, through any running server.

    It records the acknowledgements.
    """

    def __init__(self, urls: list[str], number: int, done: threading.Event) -> None:
        super().__init__()
        self._urls = urls
        self._number = number
        self._done = done
        self.acknowledged: set[int] = set()
        self.unknown: set[int] = set()
        self.errors: list[BaseException] = []

    def run(self) -> None:
        try:
            for number in itertools.count():
                if self._done.is_set():
                    return
                self._write(number)
        except BaseException as error:
            self.errors.append(error)

    def _write(self, number: int) -> None:
        live = LiveTableStore(self._urls[self._number % len(self._urls)])
        try:
            live.put({"p": f"{self._number}-{number % KEYS}"}, {"n": number}, "t")
            self.acknowledged.add(number)
        except (OSError, http.client.HTTPException):
            self.unknown.add(number)
            time.sleep(0.02)
        except Refused as refused:
            # The busy error means that nothing was written. After a broken commit the outcome is unknown.
            if refused.code not in ("OTSServerBusy", "OTSTimeout"):
                raise
            if refused.code == "OTSTimeout":
                self.unknown.add(number)


class Reader:
    """Follows a stream: parents before their children, each shard from where it was left."""

    def __init__(self, urls: list[str]) -> None:
        self._urls = urls
        self._places: dict[str, str | None] = {}
        self.seen: list[tuple[str, int]] = []

    def follow(self) -> bool:
        """Read what there is now. Whether there was anything."""
        live = LiveTableStore(self._urls[0])
        [stream] = live.call("ListStream", table_name="t").streams
        found = False
        for shard in live.call("DescribeStream", stream_id=stream.stream_id).shards:
            parents = [parent for parent in (shard.parent_id, shard.parent_sibling_id) if parent]
            if any(self._places.get(parent, "") is not None for parent in parents):
                continue  # not all of them are read to their end
            if shard.shard_id not in self._places:
                members = {"stream_id": stream.stream_id, "shard_id": shard.shard_id}
                self._places[shard.shard_id] = live.call("GetShardIterator", **members).shard_iterator
            found = self._drain(live, shard.shard_id) or found
        return found

    def _drain(self, live: LiveTableStore, shard: str) -> bool:
        """Read a page of a shard that is not read to its end."""
        place = self._places[shard]
        if place is None:
            return False
        answer = live.call("GetStreamRecord", shard_iterator=place, limit=1000)
        for each in answer.stream_records:
            wire = decode_row(each.record)
            self.seen.append((wire.key[0].value.data, wire.cells[0].value.data))  # type: ignore[union-attr]
        self._places[shard] = answer.next_shard_iterator if answer.HasField("next_shard_iterator") else None
        return self._places[shard] != place


def with_retries(work: Callable[[], bool]) -> bool:
    """Do something that a killed server may interrupt."""
    try:
        return work()
    except (OSError, http.client.HTTPException):
        time.sleep(0.02)
        return True


@pytest.mark.soak
def test_a_reader_gets_each_change_once_and_in_order(begin: Begin, database_url: str) -> None:
    servers = [begin() for _ in range(2 if database_url.startswith("postgresql") else 1)]
    urls = [server.url for server in servers]
    stream = messages.StreamSpecification(enable_stream=True, expiration_time=24)
    LiveTableStore(urls[0]).create("t", ("p", messages.STRING), stream_spec=stream)
    done = threading.Event()
    writers = [Writer(urls, number, done) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    reader = Reader(urls)
    began = time.monotonic()
    events = [
        (SECONDS * 0.3, lambda: reshard(database_url, 3)),
        (SECONDS * 0.5, lambda: restart(begin, servers, urls)),
        (SECONDS * 0.7, lambda: reshard(database_url, 2)),
    ]
    while events or time.monotonic() - began < SECONDS:
        while events and time.monotonic() - began > events[0][0]:
            events.pop(0)[1]()
        with_retries(reader.follow)
    done.set()
    for writer in writers:
        writer.join()
    while with_retries(reader.follow):
        pass
    check(writers, reader.seen)


def reshard(database_url: str, count: int) -> None:
    """As `tablegate streams reshard` does, beside the servers."""
    settings = load({"database": database_url}, {})
    opened = open_store(settings, connect(settings))
    try:
        [table] = opened.engine.run([FindTable("shared", "t")])
        [altered] = opened.engine.run([Reshard(table, count)])
        assert len(altered.rules.stream.shards) == count
    finally:
        opened.close()


def restart(begin: Begin, servers: list[Process], urls: list[str]) -> None:
    servers[-1].kill()
    servers[-1] = begin()
    urls[-1] = servers[-1].url


def check(writers: list[Writer], seen: list[tuple[str, int]]) -> None:
    counts = Counter(seen)
    assert max(counts.values()) == 1
    by_key: dict[str, list[int]] = {}
    for key, number in seen:
        by_key.setdefault(key, []).append(number)
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    for at, writer in enumerate(writers):
        assert not writer.errors
        got = {number for key, number in counts if key.startswith(f"{at}-")}
        assert writer.acknowledged <= got <= writer.acknowledged | writer.unknown
    assert sum(len(writer.acknowledged) for writer in writers) > 50

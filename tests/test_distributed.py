"""Two gateways at two nodes of Citus: no group half, nothing acknowledged lost, no change skipped, while nodes are killed.

Only with a cluster that somebody else runs (`make test-distributed URL=... URL2=...`): URL names its coordinator, URL2 a worker,
both with a role that may create databases, and with synchronous_commit on. Nodes are killed only where they are processes of this
machine that tests may kill. Seconds here; with TABLEGATE_SOAK_SECONDS as long as that says. The races are those of
tests/gateway/engine, whose engines then enter at two nodes.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from gateway.__main__ import main
from gateway.engine.engine import Engine, EngineOptions, run_with_retries
from gateway.model.changes import Change, ChangePage
from gateway.model.commands import ListShards, ListStreams, ReadChanges, WriteGroup
from gateway.model.errors import GatewayError
from gateway.model.tables import Rules, StreamRule, Table
from gateway.model.values import decimal
from gateway.store.databases import Unusable
from gateway.store.opening import open_database, placement_of
from gateway.store.store import Store
from tests.gateway.engine.conftest import Client, make_table
from tests.support.cluster_nodes import ClusterNode
from tests.support.databases import SECOND_URL, PostgresServer, at_another_node

SECONDS = float(os.environ.get("TABLEGATE_SOAK_SECONDS", "6"))
WRITERS = 6
PAIRS = 4

pytestmark = pytest.mark.skipif(not SECOND_URL, reason="a cluster is needed: make test-distributed")


@pytest.fixture
def urls(postgres: PostgresServer) -> Iterator[tuple[str, str]]:
    """A distributed database, at the coordinator and at a worker."""
    with postgres.new_pair() as pair:
        yield pair


@pytest.fixture
def engines(urls: tuple[str, str]) -> Iterator[list[Engine]]:
    made = [Engine(Store(open_database(url)), EngineOptions(stream_shards=2, failover_s=1.0)) for url in urls]
    yield made
    for engine in made:
        engine.close()


def with_stream(engine: Engine) -> Table:
    rule = StreamRule("2026", True, "NEW_AND_OLD_IMAGES", 86_400_000, 0)
    return make_table(engine, rules=Rules(stream=rule))


class Writer(threading.Thread):
    """Writes numbers that go up to pairs of rows of two partitions, each pair in one group; remembers what it was told."""

    def __init__(self, client: Client, number: int, done: threading.Event) -> None:
        super().__init__()
        self._client = client
        self._number = number
        self._done = done
        self.acknowledged: list[int] = []
        self.refused = 0

    def run(self) -> None:
        for number in itertools.count():
            if self._done.is_set():
                return
            names = [f"{side}{self._number}-{number % PAIRS}" for side in "ab"]
            group = WriteGroup(tuple(self._client.put(name, n=decimal(number)) for name in names))
            [answer] = run_with_retries(self._client.engine, [group])
            if isinstance(answer, GatewayError):
                self.refused += 1
                time.sleep(0.05)
            else:
                self.acknowledged.append(number)


class Reader(threading.Thread):
    """Follows a stream from its beginning, as pollers do: what is read is not asked for again."""

    def __init__(self, engine: Engine, table: Table) -> None:
        super().__init__()
        self._engine = engine
        [[stream]] = engine.run([ListStreams(table.namespace)])
        [shards] = engine.run([ListShards(stream)])
        self._stream = stream
        self._after = {shard.number: 1 for shard in shards}
        self.changes: list[Change] = []
        self.last_round = threading.Event()

    def run(self) -> None:
        while True:
            is_last = self.last_round.is_set()
            got = sum([self._poll(number) for number in [*self._after]])
            if is_last and not got:
                return
            time.sleep(0.02)

    def _poll(self, number: int) -> int:
        [page] = self._engine.run([ReadChanges(self._stream, number, self._after[number], 1000)])
        if not isinstance(page, ChangePage):
            return 1  # a node is away: once more
        self.changes += page.changes
        if page.changes:
            self._after[number] = page.changes[-1].sequence + 1
        return len(page.changes)


def work(engines: list[Engine], table: Table, nodes: list[ClusterNode], disturb: list[ClusterNode]) -> None:
    """Writers at both nodes and a reader at each, while nodes are killed in turn; then everything is looked at."""
    done = threading.Event()
    readers = [Reader(engine, table) for engine in engines]
    writers = [Writer(Client(engines[at % 2], table), at, done) for at in range(WRITERS)]
    for thread in (*readers, *writers):
        thread.start()
    until = time.monotonic() + SECONDS
    kills = 0
    for node in itertools.cycle(disturb or [None]):
        time.sleep(min(5.0, SECONDS / 3))
        if node is not None:
            node.kill()
            kills += 1
            time.sleep(0.5)
            node.start()
            for each in nodes:
                each.recover()
        if time.monotonic() >= until:
            break
    time.sleep(1.0)
    done.set()
    for writer in writers:
        writer.join()
    for each in nodes:
        each.recover()
    for reader in readers:
        reader.last_round.set()
        reader.join()
    print(f"{sum(len(each.acknowledged) for each in writers)} groups, {kills} kills,", end=" ")
    print(f"{sum(each.refused for each in writers)} refused, {len(readers[0].changes)} changes")
    check(Client(engines[0], table), writers, readers)


def check(client: Client, writers: list[Writer], readers: list[Reader]) -> None:
    rows = {str(row.latest["p"].data): int(row.latest["n"].data) for row in client.rows()}
    for at, writer in enumerate(writers):
        assert writer.acknowledged
        for pair in range(PAIRS):
            mine = [number for number in writer.acknowledged if number % PAIRS == pair]
            assert rows.get(f"a{at}-{pair}") == rows.get(f"b{at}-{pair}"), "half a group"
            assert not mine or rows[f"a{at}-{pair}"] >= mine[-1], "an acknowledged write is lost"
    for reader in readers:
        seen: dict[str, list[int]] = {}
        for change in reader.changes:
            assert change.new is not None
            seen.setdefault(str(change.key_values["p"].data), []).append(int(change.new.latest["n"].data))
        for name, numbers in seen.items():
            assert numbers == sorted(set(numbers)), f"changes of {name} came twice, or in another order"
        for at, writer in enumerate(writers):
            for number in writer.acknowledged:
                for side in "ab":
                    assert number in seen[f"{side}{at}-{number % PAIRS}"], "a change was skipped"


def test_streams_are_told_everything_once_and_in_order(engines: list[Engine]) -> None:
    work(engines, with_stream(engines[0]), [], [])


@pytest.mark.parametrize("which", ["worker", "coordinator", "both"])
def test_killed_nodes_lose_nothing(engines: list[Engine], urls: tuple[str, str], which: str) -> None:
    coordinator, worker = map(ClusterNode, urls)
    disturb = {"worker": [worker], "coordinator": [coordinator], "both": [worker, coordinator]}[which]
    work(engines, with_stream(engines[0]), [coordinator, worker], disturb)


def test_what_is_brought_back_is_all_there(postgres: PostgresServer, urls: tuple[str, str]) -> None:
    """Distributing again does nothing; a worker has no tables of its own to begin with."""
    url, at_worker = urls
    engine = Engine(Store(open_database(url)))
    things = Client(engine, make_table(engine))
    things.write(*(things.put(f"p{n}", n=decimal(n)) for n in range(50)))
    before = contents(things)
    engine.close()
    placed = placement_of(at_worker)
    assert placed is not None and "rows" in placed.distributed and "tables" in placed.everywhere
    assert not placed.alone and sum(node.shards for node in placed.nodes) == 4
    assert command("distribute", "--database", url).startswith("everything was distributed already")
    assert "rows: on the coordinator" in command("undistribute", "--database", url)
    assert placement_of(url) is None
    with pytest.raises(Unusable, match="worker"):
        open_database(at_another_node(url))
    engine = Engine(Store(open_database(url)))
    assert contents(Client(engine, things.table)) == before
    engine.close()
    assert "rows: by slot" in command("distribute", "--shards", "4", "--database", url)
    engine = Engine(Store(open_database(at_worker)))
    assert contents(Client(engine, things.table)) == before
    engine.close()


def contents(client: Client) -> list[dict[str, object]]:
    return [dict(row.latest) for row in client.rows()]


def command(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.output

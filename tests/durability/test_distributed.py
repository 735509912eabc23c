"""Two gateways at two Citus nodes, which tests kill: no partial group, no lost write, no skipped change.

The tests need a cluster: `make test-distributed` starts one, and uses another with URL=... and URL2=.... URL names its
coordinator, URL2 a worker. Both roles can create databases, and synchronous_commit is on. Nodes are killed only if they
are processes of this machine that the tests can kill. The run takes seconds, or TABLEGATE_TEST_SOAK_SECONDS. The race
tests are those of tests/gateway/engine, whose engines then use two nodes.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from click.testing import CliRunner
from sqlalchemy import make_url

from tablegate.gateway.__main__ import main
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.doctor import databases as doctor_databases
from tablegate.gateway.engine.engine import Engine, EngineOptions, run_with_retries
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.stream_commands import ListShards, ListStreams, ReadChanges
from tablegate.gateway.model.errors import Contended, GatewayError
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.changes import Change, ChangePage
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.model.values.values import decimal
from tablegate.gateway.store import accounts
from tablegate.gateway.store.accounts import StoredGrant
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database, placement_of
from tablegate.gateway.store.postgresql.distributed import database
from tablegate.gateway.store.postgresql.distributed.database import DistributedNode
from tablegate.gateway.store.sql.databases import DatabaseUnusable
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, make_table
from tests.support.cluster import free_ports
from tests.support.cluster_nodes import ClusterNode
from tests.support.databases import SECOND_URL, PostgresServer, at_another_node
from tests.support.running import Running
from tests.support.waiting import wait_until

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "6"))
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
    made = [
        new_engine(Store(open_database(url, silence_ms=2000)), EngineOptions(stream_shards=2, failover_s=1.0))
        for url in urls
    ]
    yield made
    for engine in made:
        engine.close()


def with_stream(engine: Engine) -> Table:
    rule = StreamRule("2026", True, "NEW_AND_OLD_IMAGES", 86_400_000, 0)
    return make_table(engine, rules=Rules(stream=rule))


class Writer(threading.Thread):
    """A client that writes increasing numbers to pairs of rows in two partitions, each pair in one group.

    It records the acknowledgements.
    """

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
    """A client that follows a stream from its beginning, as pollers do. It never reads a position twice."""

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


def work(
    engines: list[Engine],
    table: Table,
    url: str,
    nodes: list[ClusterNode],
    disturb: list[Callable[[], None]],
) -> None:
    """Run writers and a reader at both nodes during a sequence of disturbances, and then check all data."""
    done = threading.Event()
    readers = [Reader(engine, table) for engine in engines]
    writers = [Writer(Client(engines[at % 2], table), at, done) for at in range(WRITERS)]
    for thread in (*readers, *writers):
        thread.start()
    until = time.monotonic() + SECONDS
    times = 0
    for disturbance in itertools.cycle(disturb or [None]):
        time.sleep(min(5.0, SECONDS / 3))
        if disturbance is not None:
            disturbance()
            times += 1
            finish_interrupted(engines[0], url, nodes)
        if time.monotonic() >= until:
            break
    time.sleep(1.0)
    done.set()
    for writer in writers:
        writer.join()
    finish_interrupted(engines[0], url, nodes)
    for reader in readers:
        reader.last_round.set()
        reader.join()
    print(f"{sum(len(each.acknowledged) for each in writers)} groups, disturbed {times} times,", end=" ")
    print(f"{sum(each.refused for each in writers)} refused, {len(readers[0].changes)} changes")
    check(Client(engines[0], table), writers, readers)


def finish_interrupted(engine: Engine, url: str, nodes: list[ClusterNode]) -> None:
    """Finish what a kill has left prepared, as Citus and the servers do after some seconds."""
    for node in nodes:
        node.recover()
    finish_all(engine, url, older_than_s=1)


def finish_all(engine: Engine, url: str, older_than_s: int) -> None:
    until = time.monotonic() + 60
    while prepared(url, older_than_s):
        assert time.monotonic() < until, "transactions stay prepared"
        engine._store.database.finish_interrupted()


def prepared(url: str, older_than_s: int) -> int:
    """Return the number of transactions of servers that are prepared at a node."""
    [(number,)] = asked(
        url,
        "SELECT sum(result::int) FROM run_command_on_all_nodes($$SELECT count(*) FROM pg_prepared_xacts"
        " WHERE database = current_database() AND gid LIKE 'tablegate %'"
        f" AND prepared < now() - interval '{older_than_s} second'$$)",
    )
    return int(number)


def check(client: Client, writers: list[Writer], readers: list[Reader]) -> None:
    # As a server does: connections to a node that was killed are found out one by one.
    [page] = run_with_retries(client.engine, [Read(client.table, EVERYTHING, PageLimits())])
    rows = {str(row.latest["p"].data): int(row.latest["n"].data) for row in page.rows}
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


def test_streams_have_every_change_once_and_in_order(engines: list[Engine], urls: tuple[str, str]) -> None:
    work(engines, with_stream(engines[0]), urls[0], [], [])


def test_rows_that_are_read_together_are_of_one_moment(engines: list[Engine]) -> None:
    """Rows of two nodes, which each transaction of a writer changes together."""
    table = make_table(engines[0])
    done = threading.Event()
    clients = [Client(engine, table) for engine in engines]
    writers = [Writer(clients[at], at, done) for at in range(2)]
    for writer in writers:
        writer.start()
    until = time.monotonic() + SECONDS
    times = 0
    while time.monotonic() < until:
        for at, pair in itertools.product(range(2), range(PAIRS)):
            client = clients[times % 2]
            keys = [client.key(f"{side}{at}-{pair}") for side in "ab"]
            [rows] = run_with_retries(
                client.engine, [ReadAll(tuple(Get(table, key.position) for key in keys))]
            )
            if not isinstance(rows, GatewayError):
                first, second = (None if row is None else row.latest["n"].data for row in rows)
                assert first == second, "half a group"
                times += 1
    done.set()
    for writer in writers:
        writer.join()
    print(f"{times} reads, {sum(len(writer.acknowledged) for writer in writers)} groups")
    assert times and all(writer.acknowledged for writer in writers)


@pytest.mark.parametrize("which", ["worker", "coordinator", "both"])
def test_killed_nodes_lose_nothing(engines: list[Engine], urls: tuple[str, str], which: str) -> None:
    coordinator, worker = map(ClusterNode, urls)
    killed = {"worker": [worker], "coordinator": [coordinator], "both": [worker, coordinator]}[which]
    disturb = [functools.partial(kill, node) for node in killed]
    work(engines, with_stream(engines[0]), urls[0], [coordinator, worker], disturb)


def test_stopped_nodes_lose_nothing(engines: list[Engine], urls: tuple[str, str]) -> None:
    """Connections to a stopped node stay open. Its locks and prepared transactions are there when it goes on."""
    coordinator, worker = map(ClusterNode, urls)
    work(engines, with_stream(engines[0]), urls[0], [coordinator, worker], [functools.partial(stop, worker)])


def stop(node: ClusterNode) -> None:
    with node.stopped():
        time.sleep(4)  # longer than the gateways wait


def test_nodes_that_change_their_address_lose_nothing(engines: list[Engine], urls: tuple[str, str]) -> None:
    coordinator, worker = map(ClusterNode, urls)
    ports = [make_url(urls[1]).port or 0, *free_ports(1)]

    def move_worker() -> None:
        worker.kill()
        worker.start(ports[1])
        change_port(urls[0], *ports)
        ports.reverse()

    # The second gateway enters at the coordinator, too, since the address in its URL would end.
    entered = [engines[0], new_engine(Store(open_database(urls[0], silence_ms=2000)))]
    try:
        work(entered, with_stream(engines[0]), urls[0], [coordinator, worker], [move_worker])
    finally:
        entered[1].close()
        if ports[0] != make_url(urls[1]).port:
            move_worker()


def kill(node: ClusterNode) -> None:
    node.kill()
    time.sleep(0.5)
    node.start()


def test_a_node_that_hangs_does_not_delay_requests_for_other_nodes(
    engines: list[Engine], urls: tuple[str, str], serve: Callable[..., Running]
) -> None:
    client = Client(engines[0], make_table(engines[0]))
    client.write(client.put("p0"))
    worker = make_url(urls[1])

    def is_at_worker(name: str) -> bool:
        partition = client.key(name).position.partition
        return engines[0]._store.database.node_of(partition) == (worker.host, worker.port)

    names = [f"p{number}" for number in range(20)]
    here, there = ([name for name in names if is_at_worker(name) is at] for at in (False, True))
    server = serve(urls[0], failover_seconds=2.0)
    dynamodb = dynamodb_client(server.url)
    key = {"AttributeName": "p", "KeyType": "HASH"}
    attribute = {"AttributeName": "p", "AttributeType": "S"}
    dynamodb.create_table(
        TableName="things", KeySchema=[key], AttributeDefinitions=[attribute], BillingMode="PAY_PER_REQUEST"
    )

    def put(name: str) -> None:
        dynamodb.put_item(TableName="things", Item={"p": {"S": name}})
        assert dynamodb.get_item(TableName="things", Key={"p": {"S": name}})["Item"]

    for name in names:
        put(name)
    with ClusterNode(urls[1]).stopped(), ThreadPoolExecutor(1) as threads:
        delayed = threads.submit(put, there[0])
        for name in here:
            put(name)
        assert not delayed.done()
        assert is_retryable(delayed.exception())
        for name in here:
            put(name)
        with pytest.raises(ClientError) as refused:
            put(there[1])
        assert is_retryable(refused.value)
        health = requests.get(f"{server.url}/readyz", timeout=60)
        assert (health.status_code, health.text) == (
            200,
            f"ready\nnode {worker.host}:{worker.port} does not answer\n",
        )

    def works_again() -> bool:
        with contextlib.suppress(ClientError):
            put(there[0])
            return True
        return False

    wait_until(works_again)


def dynamodb_client(url: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=4)
    return boto3.client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=config,
    )


def is_retryable(error: BaseException | None) -> bool:
    return isinstance(error, ClientError) and error.response["ResponseMetadata"]["HTTPStatusCode"] >= 500


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_that_a_server_left_is_finished_as_the_deciding_node_says(
    engines: list[Engine], urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    client = Client(engines[0], make_table(engines[0]))
    names = [f"p{number}" for number in range(20)]  # on both nodes
    client.write(*(client.put(name, n=decimal(1)) for name in names))
    group = WriteGroup(tuple(client.put(name, n=decimal(2)) for name in names))
    with monkeypatch.context() as patched:
        # The server is lost before it commits at the deciding node, or before it commits at the other.
        if is_committed:
            patched.setattr(DistributedNode, "finish", lambda node, name, is_committed: None)
            [answer] = engines[0].run([group])
            assert isinstance(answer, list)
        else:
            patched.setattr(DistributedNode, "prepare", _lost_after_prepare)
            [answer] = engines[0].run([group])
            assert isinstance(answer, GatewayError)
    assert prepared(urls[0], older_than_s=0)
    for module, name in ((doctor_databases, "_STUCK"), (database, "_PREPARED")):
        statement = getattr(module, name)
        monkeypatch.setattr(module, name, re.sub(r"\d+ second", "0 second", statement))
    told = CliRunner().invoke(main, ["doctor", "--database", urls[0]])
    assert "prepared transactions older than 30 s" in told.output
    engines[1]._store.database.finish_interrupted()
    assert sum(node.stuck for node in engines[1].node_states()) == 1
    finish_all(engines[1], urls[0], older_than_s=0)
    assert {int(row["n"].data) for row in contents(client)} == {2 if is_committed else 1}  # type: ignore[attr-defined]


@pytest.mark.parametrize("node", ["99", "10.0.0.1"])
def test_a_prepared_transaction_of_an_unknown_node_is_left_to_the_operator(
    engines: list[Engine], urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch, node: str
) -> None:
    monkeypatch.setattr(database, "_PREPARED", re.sub(r"\d+ second", "0 second", database._PREPARED))
    name = f"tablegate {node} 1/2/3"
    plain = make_url(urls[1]).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '{name}'")  # type: ignore[arg-type]
        engines[0]._store.database.finish_interrupted()
        assert sum(state.stuck for state in engines[0].node_states()) == 1
        connection.execute(f"ROLLBACK PREPARED '{name}'")  # type: ignore[arg-type]


def test_a_commit_is_finished_after_the_deciding_node_has_changed_its_address(
    engines: list[Engine], urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that was promoted has another address, too."""
    client = Client(engines[0], make_table(engines[0]))
    names = [f"p{number}" for number in range(20)]  # on both nodes
    client.write(*(client.put(name, n=decimal(1)) for name in names))
    group = WriteGroup(tuple(client.put(name, n=decimal(2)) for name in names))
    with monkeypatch.context() as patched:
        patched.setattr(DistributedNode, "finish", lambda node, name, is_committed: None)
        [answer] = engines[0].run([group])
        assert isinstance(answer, list)
    host, port = engines[0]._store.database.node_of(client.key(names[0]).position.partition)  # type: ignore[misc]
    decider = ClusterNode(make_url(urls[0]).set(host=host, port=port).render_as_string(hide_password=False))
    [new_port] = free_ports(1)
    try:
        decider.kill()
        decider.start(new_port)
        change_port(urls[0], port, new_port)
        finish_all(engines[0], urls[0], older_than_s=0)
        assert {int(row["n"].data) for row in contents(client)} == {2}  # type: ignore[attr-defined]
        client.write(*(client.put(name, n=decimal(3)) for name in names))
    finally:
        decider.kill()
        decider.start(port)
        change_port(urls[0], new_port, port)


def change_port(url: str, old: int, new: int) -> None:
    """Tell Citus the new port of a node, and wait until its maintenance daemon has told all nodes."""
    asked(
        url,
        f"SELECT citus_update_node(nodeid, nodename, {new}, true)::text FROM pg_dist_node WHERE nodeport = {old}",
    )
    wait_until(lambda: asked(url, "SELECT bool_and(metadatasynced) FROM pg_dist_node") == [(True,)])


def test_a_restore_point_excludes_commits_over_several_nodes(
    engines: list[Engine], urls: tuple[str, str]
) -> None:
    """Citus creates restore points under these locks, so that no transaction is committed at some nodes only."""
    client = Client(engines[0], make_table(engines[0]))
    names = [f"p{number}" for number in range(20)]  # on both nodes
    group = WriteGroup(tuple(client.put(name, n=decimal(1)) for name in names))
    with contextlib.ExitStack() as stack:
        for (port,) in asked(urls[0], "SELECT nodeport FROM pg_dist_node"):
            node = make_url(urls[0]).set(drivername="postgresql", port=port)
            connection = stack.enter_context(psycopg.connect(node.render_as_string(hide_password=False)))
            connection.execute("LOCK TABLE pg_dist_transaction IN EXCLUSIVE MODE")
        assert isinstance(engines[0].run([group])[0], Contended)
        assert contents(client) == []
    assert isinstance(engines[0].run([group])[0], list)


def test_a_backup_restored_to_a_restore_point_has_no_half_group(
    engines: list[Engine], urls: tuple[str, str]
) -> None:
    """Base backups of three nodes, each of another moment, while clients write to pairs of rows on two nodes."""
    table = make_table(engines[0])
    addresses = asked(urls[0], "SELECT nodeid, nodeport FROM pg_dist_node ORDER BY groupid")
    url_at = make_url(urls[0]).set
    nodes = {
        port: ClusterNode(url_at(port=port).render_as_string(hide_password=False)) for _, port in addresses
    }
    done = threading.Event()
    writers = [Writer(Client(engines[at % 2], table), at, done) for at in range(WRITERS)]
    for writer in writers:
        writer.start()
    with tempfile.TemporaryDirectory(prefix="tablegate-restore-") as folder:
        Path(folder).chmod(0o777)
        for port, node in nodes.items():
            node.back_up(Path(folder) / str(port))
        wait_until(lambda: all(len(writer.acknowledged) > 2 * PAIRS for writer in writers))
        before = [len(writer.acknowledged) for writer in writers]
        created = command("restore-point", "here", "--database", urls[0])
        assert created.count("here at ") == len(nodes)
        wait_until(
            lambda: all(
                len(writer.acknowledged) > number + 2 for writer, number in zip(writers, before, strict=True)
            )
        )
        done.set()
        for writer in writers:
            writer.join()
        ports = dict(zip(nodes, free_ports(len(nodes)), strict=True))
        restored = [node.restored(Path(folder) / str(old), ports[old], "here") for old, node in nodes.items()]
        try:
            url = url_at(port=ports[addresses[0][1]]).render_as_string(hide_password=False)
            for node_id, old in addresses:
                asked(url, f"SELECT citus_update_node({node_id}, '127.0.0.1', {ports[old]}, true)::text")
            engine = new_engine(Store(open_database(url)))
            finish_all(engine, url, older_than_s=0)
            stored = {str(row["p"].data): int(row["n"].data) for row in contents(Client(engine, table))}  # type: ignore[attr-defined]
            engine.close()
        finally:
            for node in restored:
                node.kill()
    for at, writer in enumerate(writers):
        for pair in range(PAIRS):
            acknowledged = [number for number in writer.acknowledged[: before[at]] if number % PAIRS == pair]
            assert stored.get(f"a{at}-{pair}") == stored.get(f"b{at}-{pair}"), "half a group"
            assert stored[f"a{at}-{pair}"] >= acknowledged[-1], "a write before the restore point is lost"


@contextlib.contextmanager
def _lost_after_prepare(node: DistributedNode, nowait: bool, name: Any, prepared: Any) -> Iterator[Any]:
    with _PREPARE(node, nowait, name, prepared) as session:
        yield session
    raise OSError("the server is lost")


_PREPARE = DistributedNode.prepare


@pytest.mark.parametrize("mode", ["block_writes", "force_logical"])
def test_shards_that_are_moved_meanwhile_lose_nothing(
    engines: list[Engine], urls: tuple[str, str], mode: str
) -> None:
    """Gateways write directly to shards. They find a moved shard through the nodes' metadata."""
    if mode == "force_logical" and asked(urls[0], "SHOW wal_level") != [("logical",)]:
        pytest.skip("the nodes have no wal_level = logical")
    work(engines, with_stream(engines[0]), urls[0], [], [functools.partial(move, urls[0], mode)])


def move(url: str, mode: str) -> None:
    """Bring the shard that was moved longest ago to another node that has some."""
    [moved] = asked(
        url,
        "SELECT s.shardid, n.nodename, n.nodeport, o.nodename, o.nodeport FROM pg_dist_shard s"
        " JOIN pg_dist_placement p ON p.shardid = s.shardid JOIN pg_dist_node n ON n.groupid = p.groupid"
        " JOIN pg_dist_node o ON o.groupid <> p.groupid AND o.shouldhaveshards"
        " WHERE s.logicalrelid = 'rows'::regclass ORDER BY p.placementid LIMIT 1",
    )
    values = ", ".join(f"'{each}'" if isinstance(each, str) else str(each) for each in moved)
    asked(url, f"SELECT citus_move_shard_placement({values}, '{mode}')::text")


def test_shards_that_are_split_meanwhile_lose_nothing(engines: list[Engine], urls: tuple[str, str]) -> None:
    """So a cluster that began with few shards can spread over more nodes."""
    [before] = asked(urls[0], _NUMBER_OF_SHARDS)
    work(engines, with_stream(engines[0]), urls[0], [], [functools.partial(split, urls[0])])
    [after] = asked(urls[0], _NUMBER_OF_SHARDS)
    assert after[0] > before[0]


_NUMBER_OF_SHARDS = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'rows'::regclass"


def split(url: str) -> None:
    """Split the largest shard in the middle, and place a half on each of two nodes."""
    [(shard, middle)] = asked(
        url,
        "SELECT shardid, (shardminvalue::bigint + shardmaxvalue::bigint) / 2 FROM pg_dist_shard"
        " WHERE logicalrelid = 'rows'::regclass"
        " ORDER BY shardmaxvalue::bigint - shardminvalue::bigint DESC, shardid LIMIT 1",
    )
    nodes = asked(url, "SELECT nodeid FROM pg_dist_node WHERE shouldhaveshards ORDER BY nodeid LIMIT 2")
    places = ", ".join(str(node) for (node,) in nodes)
    asked(
        url,
        f"SELECT citus_split_shard_by_split_points({shard}, ARRAY['{middle}'], ARRAY[{places}], 'block_writes')::text",
    )


def asked(url: str, statement: str) -> list[tuple[Any, ...]]:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type]


def test_a_table_that_a_release_adds_is_placed_when_it_migrates(urls: tuple[str, str]) -> None:
    """Played by tables that were brought back."""
    for name in ("vectors", "jobs"):
        asked(urls[0], f"SELECT undistribute_table('{name}')::text")
    placed = placement_of(urls[0])
    assert placed is not None and set(placed.alone) == {"vectors", "jobs"}
    told = CliRunner().invoke(main, ["doctor", "--json", "--database", urls[1]])
    assert told.exit_code == 1 and "on one node only: jobs, vectors" in told.output
    migrated = open_database(urls[0])
    migrate(migrated)
    migrated.close()
    placed = placement_of(urls[1])
    assert placed is not None and not placed.alone
    assert "vectors" in placed.distributed and "jobs" in placed.everywhere
    assert "tables by slot" in CliRunner().invoke(main, ["doctor", "--database", urls[1]]).output


def test_reference_tables_are_written_at_a_worker_and_read_at_the_coordinator(
    urls: tuple[str, str],
) -> None:
    there, here = (Store(open_database(url)) for url in urls)
    with here.write() as session:
        accounts.save_grant(session, StoredGrant("g", "somebody", "short", "read things", 1))
        accounts.save_quota(session, "somebody", "{}", 1)
        accounts.save_demand(session, "somebody", "this process", "{}", 1)
        accounts.add_audit_line(session, 1, "event", "{}")
    with there.read() as session:
        assert [grant.id for grant in accounts.all_grants(session)] == ["g"]
        assert [quota[0] for quota in accounts.all_quotas(session)] == ["somebody"]
        assert len(accounts.demands(session, 0)) == 1
    with there.write() as session:
        assert accounts.trim_audit_lines(session, 2, 10) == 1
        accounts.remove_grant(session, "g")
        accounts.remove_quota(session, "somebody")
        accounts.forget_demands(session, 2)
    with here.read() as session:
        assert not accounts.all_grants(session) and not accounts.all_quotas(session)
    for store in (there, here):
        store.close()


def test_a_server_refuses_replicas_of_a_distributed_database(urls: tuple[str, str]) -> None:
    told = CliRunner().invoke(main, ["serve", "--database", urls[1], "--replica", urls[0], "--port", "0"])
    assert told.exit_code != 0 and "has only a part of it" in told.output


def test_undistributing_keeps_all_rows(postgres: PostgresServer, urls: tuple[str, str]) -> None:
    """A second distribution does nothing. A worker has no local tables at the start."""
    url, at_worker = urls
    postgres.close()  # its sessions count as other clients
    engine = new_engine(Store(open_database(url)))
    things = Client(engine, make_table(engine))
    things.write(*(things.put(f"p{n}", n=decimal(n)) for n in range(50)))
    before = contents(things)
    engine.close()
    placed = placement_of(at_worker)
    assert placed is not None and "rows" in placed.distributed and "tables" in placed.everywhere
    [shards] = asked(url, _NUMBER_OF_SHARDS)
    assert not placed.alone and sum(node.shards for node in placed.nodes) == shards[0]
    assert command("distribute", "--database", url).startswith("everything was distributed already")
    assert ": rows to the coordinator" in command("undistribute", "--database", url)
    assert placement_of(url) is None
    with pytest.raises(DatabaseUnusable, match="worker"):
        open_database(at_another_node(url))
    engine = new_engine(Store(open_database(url)))
    assert contents(Client(engine, things.table)) == before
    engine.close()
    assert re.search(
        r"\d+ of \d+: rows \(\d+ .*\), by slot", command("distribute", "--shards", "4", "--database", url)
    )
    engine = new_engine(Store(open_database(at_worker)))
    assert contents(Client(engine, things.table)) == before
    engine.close()


def contents(client: Client) -> list[dict[str, object]]:
    return [dict(row.latest) for row in client.rows()]


def command(*words: str) -> str:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return result.output

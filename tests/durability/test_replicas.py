"""Standbys answer reads within the permitted age, and the primary answers the others. A standby causes no errors.

The tests use a real primary and a real standby.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient

from tablegate.gateway.app import application_of
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.doctor import databases
from tablegate.gateway.doctor.findings import CheckContext
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model import fast_paths
from tablegate.gateway.store import opening
from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.wiring import connect
from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support.across import Across
from tests.support.capabilities import needs
from tests.support.raw_client import RawClient
from tests.support.running import Running, processes, start
from tests.support.standby import Cluster, Node, start_cluster, wait_for_replay
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.extended

BOUND_MS = 2000
knows_connections = pytest.mark.skipif(
    not fast_paths.ARE_ON,
    reason="by way of WSGI, which `tablegate serve` never goes, a request knows no connection",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_cluster() as made:
        made.add_standby()
        yield made


@pytest.fixture
def standby(cluster: Cluster) -> Iterator[Node]:
    node = cluster.nodes[1]
    yield node
    node.resume()
    node.ask("SELECT pg_wal_replay_resume()")
    wait_until(lambda: node.ask("SELECT pg_last_wal_replay_lsn()::text") >= "0")


@contextlib.contextmanager
def served(cluster: Cluster, *standbys: Node, **settings: Any) -> Iterator[Running]:
    """A gateway that has found its replicas usable."""
    given = {"replica_lag_ms": BOUND_MS, **settings}
    server = start(cluster.primary.url, replica=[node.url for node in standbys], **given)
    try:
        wait_until(lambda: all(is_used(server, node) for node in standbys))
        yield server
    finally:
        server.stop()


def is_used(server: Running, node: Node) -> bool:
    replicas = engine(server).replicas
    assert replicas is not None
    return any(lag.is_used for lag in replicas.lags() if lag.replica.endswith(f":{node.port}"))


def engine(server: Running) -> Engine:
    return application_of(server.app).gateway.engine


@pytest.fixture
def read_by(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports of the servers that rows were read from, in the order of the lists."""
    # On a busy machine a replica can need more than half a second for an answer.
    monkeypatch.setattr(opening, "_REPLICA_PATIENCE_MS", int(1000 * PATIENCE_S))
    ports: list[int] = []
    opened = PostgresSession.ask

    def ask(self: Any, statement: str, parameters: Any = ()) -> Any:
        if re.search(r"\bFROM (tables t LEFT JOIN )?rows r\b|concat|string_agg|JOIN rows", statement):
            ports.append(int(self._pipeline._libpq.port))
        return opened(self, statement, parameters)

    monkeypatch.setattr(PostgresSession, "ask", ask)
    return ports


def test_only_reads_that_may_be_stale_use_the_replica(
    cluster: Cluster, standby: Node, read_by: list[int]
) -> None:
    """Amazon DynamoDB developer guide, "Read consistency": reads are eventually consistent unless ConsistentRead is
    true. The same pages cover transactions and global indexes.
    """
    old, current = {standby.port}, {cluster.primary.port}
    with served(cluster, standby) as server, RawClient(server.url) as client:
        client.create_table("kinds")
        client.call("PutItem", TableName="kinds", Item={"p": {"S": "a"}})
        wait_for_replay(cluster, standby)
        key = {"p": {"S": "a"}}
        query: dict[str, Any] = {
            "TableName": "kinds",
            "KeyConditionExpression": "p = :p",
            "ExpressionAttributeValues": {":p": {"S": "a"}},
        }

        def asked(operation: str, **members: Any) -> set[int]:
            read_by.clear()
            client.call(operation, **members)
            return set(read_by)

        for consistent, expected in ((False, old), (True, current)):
            flag = {"ConsistentRead": consistent}
            assert asked("GetItem", TableName="kinds", Key=key, **flag) == expected
            assert asked("Query", **query, **flag) == expected
            assert asked("Scan", TableName="kinds", **flag) == expected
            batch = {"kinds": {"Keys": [key], **flag}}
            assert asked("BatchGetItem", RequestItems=batch) == expected
            statement = "SELECT * FROM kinds WHERE p = 'a'"
            assert asked("ExecuteStatement", Statement=statement, **flag) == expected
            assert asked("BatchExecuteStatement", Statements=[{"Statement": statement, **flag}]) == expected
        assert asked("GetItem", TableName="kinds", Key=key) == old
        together = [{"Get": {"TableName": "kinds", "Key": key}}]
        assert asked("TransactGetItems", TransactItems=together) == current


@needs("vectors")
@pytest.mark.parametrize("replica_reads", ["eventual", "all"])
def test_vector_searches_are_the_primarys(
    cluster: Cluster, standby: Node, read_by: list[int], replica_reads: str
) -> None:
    """Every write that was answered is found (docs/explain/differences.md), and images are of one server's versions."""
    index = {
        "IndexName": "near",
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 2,
        "DistanceFunction": "EUCLIDEAN",
        "Projection": {"ProjectionType": "ALL"},
    }
    with served(cluster, standby, replica_reads=replica_reads) as server, RawClient(server.url) as client:
        client.create_table(f"vectors-{replica_reads}", VectorIndexes=[index])
        standby.ask("SELECT pg_wal_replay_pause()")
        for number in range(3):
            item = {"p": {"S": f"{number}"}, "v": {"L": [{"N": f"{number}"}, {"N": "0"}]}}
            client.call("PutItem", TableName=f"vectors-{replica_reads}", Item=item)
            read_by.clear()
            found = client.call(
                "SearchVectors",
                TableName=f"vectors-{replica_reads}",
                IndexName="near",
                SearchVector=[{"N": f"{number}"}, {"N": "0"}],
                TopK=1,
            )
            assert found["SearchResults"][0]["Item"]["p"] == {"S": f"{number}"}
            assert set(read_by) == {cluster.primary.port}


@pytest.mark.parametrize("replica_reads", ["eventual", "all"])
def test_azure_reads_old_only_from_the_secondary_and_table_store_only_if_set(
    cluster: Cluster, standby: Node, read_by: list[int], replica_reads: str
) -> None:
    """Microsoft Learn, "Azure Storage redundancy", read access to the secondary region: data read there may be old."""
    old, current = {standby.port}, {cluster.primary.port}
    ordinary = old if replica_reads == "all" else current
    with served(cluster, standby, replica_reads=replica_reads) as server:
        across = Across(server.url)
        entities = across.azure.new_table()
        entities.create_entity({"PartitionKey": "a", "RowKey": "b"})
        name = across.table("p:STRING")
        across.put(name, {"p": "a"}, x=1)
        wait_for_replay(cluster, standby)

        def asked(read: Callable[[], Any]) -> set[int]:
            read_by.clear()
            read()
            return set(read_by)

        table = entities.table_name
        secondary = f"{server.url}/{ACCOUNT}-secondary"
        service = TableServiceClient(
            secondary, credential=AzureNamedKeyCredential(ACCOUNT, DEV_KEY), retry_total=0
        )
        there = service.get_table_client(table)
        assert asked(lambda: entities.get_entity("a", "b")) == ordinary
        assert asked(lambda: list(entities.list_entities())) == ordinary
        assert asked(lambda: there.get_entity("a", "b")) == old
        assert asked(lambda: list(there.list_entities())) == old
        assert asked(lambda: across.get(name, {"p": "a"})) == ordinary
        assert asked(lambda: across.rows(name, ["p"])) == ordinary
        batch = ots.BatchGetRowRequest()
        batch.add(ots.TableInBatchGetRowItem(name, [[("p", "a")]], max_version=1))
        assert asked(lambda: across.tablestore.batch_get_row(batch)) == ordinary


def numbered(client: RawClient, table: str, number: int) -> None:
    client.call("PutItem", TableName=table, Item={"p": {"S": "a"}, "n": {"N": str(number)}})


def number_of(client: RawClient, table: str, **options: Any) -> int:
    answer = client.call("GetItem", TableName=table, Key={"p": {"S": "a"}}, **options)
    return int(answer["Item"]["n"]["N"]) if "Item" in answer else -1


def test_a_paused_replay_is_seen_up_to_the_bound_and_no_longer(cluster: Cluster, standby: Node) -> None:
    with served(cluster, standby) as server, RawClient(server.url) as client:
        client.create_table("bound")
        numbered(client, "bound", 0)
        wait_for_replay(cluster, standby)
        standby.ask("SELECT pg_wal_replay_pause()")
        numbered(client, "bound", 1)
        acknowledged = time.monotonic()
        bound_s = BOUND_MS / 1000
        seen: list[tuple[float, int]] = []
        while not seen or seen[-1][0] < 1.5 * bound_s:
            age_s = time.monotonic() - acknowledged
            seen.append((age_s, number_of(client, "bound")))
            if len(seen) == 1 and time.monotonic() - acknowledged < bound_s:
                assert seen[0][1] == 0  # the replica answered, as it may
            assert number_of(client, "bound", ConsistentRead=True) == 1
        assert all(number == 1 for age_s, number in seen if age_s > bound_s)
        wait_until(lambda: not is_used(server, standby))
        assert f":{standby.port}" in requests.get(f"{server.url}/readyz").text
        assert "not used" in requests.get(f"{server.url}/readyz").text
        figures = requests.get(f"{server.url}/metrics").text
        assert f'tablegate_replica_used{{replica="127.0.0.1:{standby.port}"}} 0.0' in figures
        standby.ask("SELECT pg_wal_replay_resume()")
        wait_until(lambda: is_used(server, standby))
        assert requests.get(f"{server.url}/readyz").text.startswith("ready\n")


@knows_connections
def test_a_reader_sees_what_was_written_on_its_connection(
    cluster: Cluster, standby: Node, read_by: list[int]
) -> None:
    """With the wait: no stale read. The writes and reads of others go on meanwhile."""
    with served(cluster, standby, replica_wait_ms=1000) as server:
        with RawClient(server.url) as client:
            client.create_table("own")
        stale: list[int] = []

        def work(name: str) -> None:
            with RawClient(server.url) as client:
                for number in range(100):
                    item = {"p": {"S": name}, "n": {"N": str(number)}}
                    client.call("PutItem", TableName="own", Item=item)
                    found = client.call("GetItem", TableName="own", Key={"p": {"S": name}})
                    if found.get("Item") != item:
                        stale.append(number)

        threads = [threading.Thread(target=work, args=(f"{at}",)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stale == []
        assert standby.port in read_by


@knows_connections
def test_the_primary_answers_if_a_replica_does_not_catch_up(cluster: Cluster, standby: Node) -> None:
    with served(cluster, standby, replica_wait_ms=50) as server, RawClient(server.url) as client:
        client.create_table("late")
        wait_for_replay(cluster, standby)
        standby.ask("SELECT pg_wal_replay_pause()")
        for number in range(5):
            numbered(client, "late", number)
            assert number_of(client, "late") == number


def test_a_table_change_that_the_replica_has_not_seen_is_no_error(cluster: Cluster, standby: Node) -> None:
    with served(cluster, standby) as server, RawClient(server.url) as client:
        client.create_table("changing")
        numbered(client, "changing", 0)
        wait_for_replay(cluster, standby)
        standby.ask("SELECT pg_wal_replay_pause()")
        client.create_table("new")
        numbered(client, "new", 7)
        client.call(
            "UpdateTable",
            TableName="changing",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        )
        numbered(client, "changing", 1)
        assert number_of(client, "new") == 7
        assert number_of(client, "changing") == 1
        assert client.call("Scan", TableName="new")["Count"] == 1
        assert engine(server).cached_table(next(iter_namespace(server)), "new") is not None


def iter_namespace(server: Running) -> Iterator[str]:
    with engine(server)._store.read() as session:
        yield from engine(server)._store.catalog.namespaces(session)


@pytest.mark.parametrize("trouble", ["paused", "dead"])
def test_a_replica_in_trouble_costs_no_error_and_no_long_wait(cluster: Cluster, trouble: str) -> None:
    standby = cluster.add_standby()
    with served(cluster, standby) as server, RawClient(server.url) as client:
        client.create_table(f"trouble-{trouble}")
        numbered(client, f"trouble-{trouble}", 3)
        wait_for_replay(cluster, standby)
        assert number_of(client, f"trouble-{trouble}") == 3
        (standby.pause if trouble == "paused" else standby.kill)()
        began = time.monotonic()
        for _ in range(200):
            assert number_of(client, f"trouble-{trouble}") == 3
            assert client.call("Scan", TableName=f"trouble-{trouble}")["Count"] == 1
        # Two probes of a replica reach their time limit on a busy machine. There is not one probe for each read.
        assert time.monotonic() - began < 20
        wait_until(lambda: not is_used(server, standby))
        if trouble == "paused":
            standby.resume()
            wait_until(lambda: is_used(server, standby))


def test_a_promoted_standby_is_no_replica_any_more(cluster: Cluster) -> None:
    standby = cluster.add_standby()
    with served(cluster, standby) as server, RawClient(server.url) as client:
        client.create_table("promoted")
        standby.ask("SELECT pg_promote()")
        for number in range(3):
            numbered(client, "promoted", number)
        wait_until(lambda: not is_used(server, standby))
        assert number_of(client, "promoted") == 2


def test_a_role_that_may_only_read_is_enough(cluster: Cluster, standby: Node) -> None:
    cluster.primary.ask("CREATE ROLE reader LOGIN")
    cluster.primary.ask("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    wait_for_replay(cluster, standby)
    url = standby.url.replace("postgres@", "reader@")
    server = start(cluster.primary.url, replica=[url], replica_lag_ms=BOUND_MS)
    try:
        wait_until(lambda: is_used(server, standby))
    finally:
        server.stop()


def test_several_workers_each_look_for_themselves(cluster: Cluster, standby: Node, tmp_path: Path) -> None:
    flags = ("--workers", "2", "--replica", standby.url, "--replica-lag-ms", "5000", "--auth", "dev")
    with processes(tmp_path, *flags) as begin, contextlib.ExitStack() as stack:
        server = begin(cluster.primary.url)
        wait_until(
            lambda: all(" ms behind" in line and "alone" not in line for line in ready_lines(server.url))
        )
        clients = [stack.enter_context(RawClient(server.url)) for _ in range(8)]
        clients[0].create_table("shared")
        clients[0].call("PutItem", TableName="shared", Item={"p": {"S": "a"}})
        wait_for_replay(cluster, standby)
        standby.pause()
        for client in clients:
            found = client.call("GetItem", TableName="shared", Key={"p": {"S": "a"}})
            assert found["Item"] == {"p": {"S": "a"}}


def ready_lines(url: str) -> list[str]:
    """Return the replica's state from several requests to /readyz, on connections that any worker can have."""
    return [requests.get(f"{url}/readyz", timeout=PATIENCE_S).text.splitlines()[1] for _ in range(8)]


def test_doctor_looks_at_each_replica(cluster: Cluster, standby: Node) -> None:
    def told(*replicas: str) -> list[tuple[str, str]]:
        settings = load({"database": cluster.primary.url, "replica": replicas, "replica_lag_ms": 300}, {})
        with contextlib.closing(connect(settings)) as database:
            return [
                (told.level.value, told.text) for told in databases.replicas(CheckContext(settings, database))
            ]

    nowhere = "postgresql://postgres@127.0.0.1:1/postgres"
    well, not_there, primary = told(standby.url, nowhere, cluster.primary.url)
    assert well[0] == "ok" and f"127.0.0.1:{standby.port} is a standby" in well[1]
    assert not_there[0] == "warning" and "127.0.0.1:1 does not answer" in not_there[1]
    assert primary[0] == "warning" and "is not a standby" in primary[1]
    standby.ask("SELECT pg_wal_replay_pause()")
    cluster.primary.ask("CREATE TABLE newer ()")
    [(level, text)] = told(standby.url)
    assert level == "warning" and "lags more than replica_lag_ms" in text
    standby.ask("SELECT pg_wal_replay_resume()")
    cluster.primary.ask("DROP TABLE newer")
    assert told() == [("ok", "no replica is set")]


def test_only_postgresql_has_replicas() -> None:
    for settings in (
        {"database": "sqlite:///a", "replica": ["postgresql://a/b"]},
        {"database": "postgresql://a/b", "replica": ["sqlite:///a"]},
    ):
        with pytest.raises(BadSetting, match="replica"):
            load(settings, {})


def test_a_replica_may_have_several_hosts() -> None:
    given = "postgresql://a:1,b:2/x postgresql://c/x"
    assert len(load({"database": "postgresql://a/x"}, {"TABLEGATE_REPLICA": given}).replica) == 2

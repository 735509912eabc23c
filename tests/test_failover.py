"""The primary dies under load and a synchronous standby takes its place: what was acknowledged is there, nothing was done twice,
and the SDK's users see no error. The gateway has the URLs of both, and is told nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
import requests
from botocore.config import Config

from gateway.database_urls import normalise
from gateway.store.databases import CommitLost
from gateway.store.opening import open_database
from gateway.store.postgresql.database import PostgreSQL
from gateway.store.postgresql.statements import POSITION
from tests.support.raw_client import RawClient, Refused
from tests.support.running import Running, start
from tests.support.standby import Cluster, Node, start_cluster

WRITERS = 8


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with start_cluster() as made:
        yield made


def both(first: Node, second: Node) -> str:
    return (
        f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/postgres"
        "?target_session_attrs=read-write"
    )


def synchronous_standby(cluster: Cluster, primary: Node) -> Node:
    """A standby without which nothing is acknowledged."""
    standby = cluster.add_standby(f"standby{len(cluster.nodes)}")
    primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.ask("SELECT pg_reload_conf()")
    until(lambda: primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1)
    return standby


def until(holds: Callable[[], Any], seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.02)


class Counter(threading.Thread):
    """Adds one to a number of its own again and again, and counts what was acknowledged. An update is not idempotent: if any
    was lost or applied twice, the sums differ."""

    def __init__(self, client: Any, name: str, stopping: threading.Event) -> None:
        super().__init__()
        self.acknowledged = 0
        self.errors: list[str] = []
        self._client = client
        self._name = name
        self._stopping = stopping

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._client.update_item(
                    TableName="counters",
                    Key={"p": {"S": self._name}},
                    UpdateExpression="ADD n :one",
                    ExpressionAttributeValues={":one": {"N": "1"}},
                )
                self.acknowledged += 1
            except Exception as error:
                self.errors.append(repr(error))


def dynamodb(server: Running) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=Config(max_pool_connections=WRITERS),
    )


def test_a_failover_loses_nothing_and_does_nothing_twice(cluster: Cluster) -> None:
    standby = synchronous_standby(cluster, cluster.primary)
    server = start(both(cluster.primary, standby), failover_seconds=30)
    try:
        client = dynamodb(server)
        client.create_table(
            TableName="counters",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        stopping = threading.Event()
        counters = [Counter(client, f"{at}", stopping) for at in range(WRITERS)]
        for counter in counters:
            counter.start()
        until(lambda: sum(counter.acknowledged for counter in counters) > 200)
        cluster.primary.kill()
        time.sleep(0.5)
        standby.ask("SELECT pg_promote()")
        before = [counter.acknowledged for counter in counters]
        until(
            lambda: all(
                counter.acknowledged > known + 10 for counter, known in zip(counters, before, strict=True)
            )
        )
        stopping.set()
        for counter in counters:
            counter.join()
        found = {
            item["p"]["S"]: int(item["n"]["N"])
            for item in client.scan(TableName="counters", ConsistentRead=True)["Items"]
        }
        assert [counter.errors for counter in counters] == [[]] * WRITERS
        assert found == {f"{at}": counter.acknowledged for at, counter in enumerate(counters)}
    finally:
        server.stop()


def test_a_commit_that_did_not_reach_the_new_primary_is_never_taken_for_another_of_its_number(
    cluster: Cluster,
) -> None:
    """The new primary gives the numbers of transactions again of which it has heard nothing. Whoever asks it by number alone is
    told that a commit was kept which was lost."""
    standby = cluster.add_standby()
    database = open_database(normalise(both(cluster.primary, standby)))
    assert isinstance(database, PostgreSQL)
    standby.pause()
    with pytest.raises(CommitLost) as lost, database.write() as session:
        session.execute("INSERT INTO counters (name, slot, value) VALUES ('lost', 0, 1)")
        session.ask_position = session.ask(POSITION)
        [(number,)] = session.query("SELECT pg_current_xact_id()::text")
        session.transaction_id = number
        cluster.primary.kill()
    standby.go_on()
    standby.ask("SELECT pg_promote()")
    while int(standby.ask("SELECT pg_current_xact_id()::text")) <= int(number):
        pass
    assert standby.ask(f"SELECT pg_xact_status('{number}')") == "committed"
    until(lambda: database.committed(lost.value.transaction_id) is not None)
    assert database.committed(lost.value.transaction_id) is False
    assert standby.ask("SELECT count(*) FROM counters WHERE name = 'lost'") == 0
    database.close()


def test_a_commit_that_reached_the_new_primary_is_known_there(cluster: Cluster) -> None:
    standby = synchronous_standby(cluster, cluster.primary)
    database = open_database(normalise(both(cluster.primary, standby)))
    assert isinstance(database, PostgreSQL)
    with database.write() as session:
        session.ask_position = session.ask(POSITION)
        session.execute("INSERT INTO counters (name, slot, value) VALUES ('kept', 0, 1)")
        [(number,)] = session.query("SELECT pg_current_xact_id()::text")
        [(position,)] = session.ask_position()
        session.transaction_id = number
    asked = f"{number}/{position}/{database._server_of_writer()}"
    assert database.committed(asked) is True
    cluster.primary.kill()
    standby.ask("SELECT pg_promote()")
    until(lambda: database.committed(asked) is not None)
    assert database.committed(asked) is True
    database.close()


def test_requests_are_refused_when_no_primary_comes_in_time(cluster: Cluster) -> None:
    server = start(cluster.primary.url, failover_seconds=0.5)
    try:
        with RawClient(server.url) as client:
            client.create_table("things")
            key = {"p": {"S": "a"}}
            client.call("PutItem", TableName="things", Item=key)
            cluster.primary.kill()
            for operation, members in (("GetItem", {"Key": key}), ("PutItem", {"Item": key})):
                with pytest.raises(Refused) as refused:
                    client.call(operation, TableName="things", **members)
                assert refused.value.status == 503
            cluster.primary.start()
            until(lambda: requests.get(f"{server.url}/readyz").status_code == 200)
            assert client.call("GetItem", TableName="things", Key=key) == {"Item": key}
    finally:
        server.stop()

"""A synchronous standby replaces a primary that fails under load. No acknowledged write is lost or applied twice, and
SDK users see no error.

The gateway has the URLs of both and gets no notice of the change.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
import tablestore as ots
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableServiceClient
from botocore.config import Config

from tablegate.gateway.configuration.database_urls import normalise
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql.database import PostgreSQL
from tablegate.gateway.store.postgresql.statements import TRANSACTION_ID
from tablegate.gateway.store.sql.databases import CommitInterrupted
from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY
from tests.support.pgbouncer import PgBouncer, require_pgbouncer
from tests.support.raw_client import RawClient, Refused
from tests.support.running import start
from tests.support.standby import Cluster, Node, start_cluster, wait_for_replay
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended

WRITERS = 9
SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "3"))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with start_cluster() as made:
        yield made


def both(first: Node, second: Node) -> str:
    return (
        f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/postgres"
        "?target_session_attrs=read-write"
    )


def synchronous_standby(cluster: Cluster, primary: Node, port: int = 0) -> Node:
    """A standby without which nothing is acknowledged."""
    cluster.primary = primary
    standby = cluster.add_standby(f"standby{len(cluster.nodes)}", port)
    primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.ask("SELECT pg_reload_conf()")
    wait_until(lambda: primary.ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1)
    return standby


class Counter(threading.Thread):
    """A thread that repeats one operation with the retries of its SDK and counts the acknowledgements.

    The operation is not idempotent. A lost or repeated one therefore changes the sum or raises an error.
    """

    def __init__(self, add: Callable[[int], object], stopping: threading.Event) -> None:
        super().__init__()
        self.acknowledged = 0
        self.errors: list[str] = []
        self._add = add
        self._stopping = stopping

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._add(self.acknowledged)
                self.acknowledged += 1
            except Exception as error:
                self.errors.append(repr(error))
                return


class DynamoDB:
    """boto3 adds to numbers."""

    def __init__(self, url: str) -> None:
        self._client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(max_pool_connections=WRITERS),
        )
        self._client.create_table(
            TableName="counters",
            KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def adding(self, name: str) -> Callable[[int], object]:
        return lambda _: self._client.update_item(
            TableName="counters",
            Key={"p": {"S": name}},
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    def sum_of(self, name: str) -> int:
        key = {"p": {"S": name}}
        found = self._client.get_item(TableName="counters", Key=key, ConsistentRead=True)
        return int(found["Item"]["n"]["N"])


class AzureTable:
    """azure-data-tables inserts entities that must not be there."""

    def __init__(self, url: str) -> None:
        credential = AzureNamedKeyCredential(ACCOUNT, DEV_KEY)
        service = TableServiceClient(f"{url}/{ACCOUNT}", credential=credential)
        self._table = service.create_table("inserted")

    def adding(self, name: str) -> Callable[[int], object]:
        return lambda number: self._table.create_entity({"PartitionKey": name, "RowKey": f"{number}"})

    def sum_of(self, name: str) -> int:
        return len(list(self._table.query_entities(f"PartitionKey eq '{name}'")))


class TableStore:
    """tablestore increments numbers."""

    def __init__(self, url: str) -> None:
        self._client = ots.OTSClient(url, "tablegate", "tablegate", "failover")
        throughput = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
        self._client.create_table(ots.TableMeta("added", [("p", "STRING")]), ots.TableOptions(), throughput)

    def adding(self, name: str) -> Callable[[int], object]:
        row = ots.Row([("p", name)], {"INCREMENT": [("n", 1)]})
        anyway = ots.Condition(ots.RowExistenceExpectation.IGNORE)
        return lambda _: self._client.update_row("added", row, anyway)

    def sum_of(self, name: str) -> int:
        _, row, _ = self._client.get_row("added", [("p", name)], max_version=1)
        return int(row.attribute_columns[0][1])


def fail_over(cluster: Cluster, standby: Node, counters: list[Counter]) -> None:
    """Kill the primary during the work. Waits until all threads work again or have an error."""
    at_work(counters, 20)
    cluster.primary.kill()
    time.sleep(0.5)
    standby.ask("SELECT pg_promote()")
    at_work(counters, 10)


def failed_over(cluster: Cluster, sdks: Sequence[type], times: int) -> None:
    """Check that nothing is lost, repeated or refused during this number of failovers."""
    first = synchronous_standby(cluster, cluster.primary)

    def fail(counters: list[Counter]) -> None:
        standby = first
        for number in range(times):
            if number:
                standby = synchronous_standby(cluster, standby, port=cluster.primary.port)
            fail_over(cluster, standby, counters)

    counted_while(fail, both(cluster.primary, first), sdks)


def counted_while(
    fail: Callable[[list[Counter]], None], url: str, sdks: Sequence[type], **settings: Any
) -> None:
    """Check that nothing is lost, done twice or refused while something fails behind a gateway that has this URL."""
    server = start(url, failover_seconds=30, **settings)
    stopping = threading.Event()
    counters: dict[tuple[Any, str], Counter] = {}
    try:
        for sdk in [kind(server.url) for kind in sdks]:
            for at in range(WRITERS // len(sdks)):
                counters[sdk, f"{at}"] = Counter(sdk.adding(f"{at}"), stopping)
        for counter in counters.values():
            counter.start()
        fail([*counters.values()])
        stopping.set()
        for counter in counters.values():
            counter.join()
        assert [counter.errors for counter in counters.values()] == [[]] * len(counters)
        sums = {counted: sdk.sum_of(name) for counted in counters for sdk, name in [counted]}
        assert sums == {counted: counter.acknowledged for counted, counter in counters.items()}
    finally:
        stopping.set()
        server.stop()


def at_work(counters: list[Counter], number: int) -> None:
    """Wait until each thread has done this much more work or has an error."""
    known = [counter.acknowledged for counter in counters]
    wait_until(
        lambda: all(
            counter.acknowledged > before + number or counter.errors
            for counter, before in zip(counters, known, strict=True)
        )
    )


def test_a_failover_loses_nothing_and_does_nothing_twice(cluster: Cluster) -> None:
    failed_over(cluster, [DynamoDB], times=1)


@pytest.mark.soak
def test_failovers_lose_nothing_and_do_nothing_twice_with_any_sdk(cluster: Cluster) -> None:
    failed_over(cluster, [DynamoDB, AzureTable, TableStore], times=10 if SECONDS >= 60 else 1)


def test_either_of_two_pgbouncers_may_go(cluster: Cluster) -> None:
    """Both are hosts of one URL. A write through the lost one may have been committed, so its outcome is looked up."""
    require_pgbouncer()
    with tempfile.TemporaryDirectory() as folder:
        first, second = (PgBouncer(Path(folder), cluster.primary.port) for _ in range(2))

        def fail(counters: list[Counter]) -> None:
            for one in (first, second):
                at_work(counters, 10)
                one.kill()
                at_work(counters, 10)
                one.start()

        url = f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/postgres"
        try:
            counted_while(fail, url, [DynamoDB, AzureTable, TableStore], prepared_statements=False)
        finally:
            first.kill()
            second.kill()


def test_a_commit_that_did_not_reach_the_new_primary_is_never_taken_for_another_of_its_number(
    cluster: Cluster,
) -> None:
    """The new primary reuses transaction numbers that it never received.

    A lookup by number alone would report a lost commit as kept.
    """
    standby = cluster.add_standby()
    database = open_database(normalise(both(cluster.primary, standby)))
    assert isinstance(database, PostgreSQL)
    standby.pause()
    with pytest.raises(CommitInterrupted) as lost, database.write() as session:  # noqa: PT012
        session.execute("INSERT INTO counters (name, slot, value) VALUES ('lost', 0, 1)")
        [(known_as,)] = session.query(f"SELECT {TRANSACTION_ID}")
        session.transaction_id = known_as
        cluster.primary.kill()  # before COMMIT is sent
    number = known_as.partition("/")[0]
    standby.resume()
    standby.ask("SELECT pg_promote()")
    while int(standby.ask("SELECT pg_current_xact_id()::text")) <= int(number):
        pass
    assert standby.ask(f"SELECT pg_xact_status('{number}')") == "committed"
    wait_until(lambda: database.committed(lost.value.transaction_id) is not None)
    assert database.committed(lost.value.transaction_id) is False
    assert standby.ask("SELECT count(*) FROM counters WHERE name = 'lost'") == 0
    database.close()


def test_a_commit_that_reached_the_new_primary_is_known_there(cluster: Cluster) -> None:
    standby = synchronous_standby(cluster, cluster.primary)
    database = open_database(normalise(both(cluster.primary, standby)))
    assert isinstance(database, PostgreSQL)
    with database.write() as session:
        session.execute("INSERT INTO counters (name, slot, value) VALUES ('kept', 0, 1)")
        [(session.transaction_id,)] = session.query(f"SELECT {TRANSACTION_ID}")
    asked = f"{session.transaction_id}/{database.server_of_writer()}"
    assert database.committed(asked) is True
    cluster.primary.kill()
    standby.ask("SELECT pg_promote()")
    wait_until(lambda: database.committed(asked) is not None)
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
            wait_until(lambda: requests.get(f"{server.url}/readyz").status_code == 200)
            assert client.call("GetItem", TableName="things", Key=key) == {"Item": key}
    finally:
        server.stop()


def test_a_primary_that_hangs_is_given_up(cluster: Cluster) -> None:
    """The kernel of a hanging primary still accepts connections, so only the missing answers show the failure.

    A standby promoted meanwhile is found.
    """
    standby = cluster.add_standby()
    server = start(both(cluster.primary, standby), failover_seconds=1)
    try:
        with RawClient(server.url) as client:
            client.create_table("things")
            client.call("PutItem", TableName="things", Item={"p": {"S": "a"}})
            wait_for_replay(cluster, standby)  # the table
            cluster.primary.pause()
            with pytest.raises(Refused):
                client.call("PutItem", TableName="things", Item={"p": {"S": "b"}})
            standby.ask("SELECT pg_promote()")
            put_somehow(client, "c")
            found = client.call("GetItem", TableName="things", Key={"p": {"S": "c"}}, ConsistentRead=True)
            assert found["Item"] == {"p": {"S": "c"}}
    finally:
        cluster.primary.resume()
        server.stop()


def put_somehow(client: RawClient, name: str) -> None:
    def is_put() -> bool:
        with contextlib.suppress(Refused):
            client.call("PutItem", TableName="things", Item={"p": {"S": name}})
            return True
        return False

    wait_until(is_put)

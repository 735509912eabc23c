"""Several client processes on real servers: one server process on SQLite, two on one PostgreSQL.

One conditional insert wins, no update is lost, and transactions are atomic and never read partially. Tables and indexes
are created and dropped meanwhile. The run takes seconds here and a minute for each test with `make soak`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import pytest

from tests.conftest import OWN_URL
from tests.support import loads
from tests.support.databases import PostgresServer
from tests.support.loads import LoadProcess, run_loads, text
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.waiting import wait_until

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))


@pytest.fixture(scope="module", params=["postgresql"] if OWN_URL else ["sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Return the URLs of the servers on one database: one on SQLite, two on PostgreSQL.

    They start once, because a start takes seconds.
    """
    folder = tmp_path_factory.mktemp("servers")
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            flags = [()]
        else:
            postgres: PostgresServer = request.getfixturevalue("postgres")
            flags = [("--database", stack.enter_context(postgres.new_database()))] * 2
        processes = [Process(folder, "--dialects", "dynamodb", *each) for each in flags]
        for each in processes:
            each.wait_until_ready()
        yield [each.url for each in processes]
        for each in processes:
            code, errors = each.terminate()
            assert (code, "Traceback" in errors) == (0, False), errors


@pytest.fixture
def urls(servers: list[str]) -> Iterator[list[str]]:
    """The servers, with an empty table `things`."""
    with RawClient(servers[0]) as client:
        client.create_table("things")
        yield servers
        for table in client.call("ListTables")["TableNames"]:
            client.call("DeleteTable", TableName=table)


def test_clients_at_once(urls: list[str]) -> None:
    """All loads run at the same time, so that they share ticks and locks."""
    first, last = urls[0], urls[-1]
    with RawClient(first) as client:
        loads.open_accounts(client)
    works = [
        (loads.insert, first), (loads.insert, last),
        (loads.count, first), (loads.count, last),
        (loads.transfer, first), (loads.transfer, last), (loads.watch, last),
    ]  # fmt: skip
    *books, seen = run_loads(works, SECONDS)
    inserts, counts, transfers = books[:2], books[2:4], books[4:]
    with RawClient(first) as client:
        items = {item["p"]["S"]: item for item in client.scan("things")}

    winners = {f"i{at}": book["name"] for book in inserts for at in book["won"]}
    assert len(winners) == sum(len(book["won"]) for book in inserts) == max(book["tried"] for book in inserts)
    assert winners == {key: item["winner"]["S"] for key, item in items.items() if key.startswith("i")}

    counted = sum(int(item["n"]["N"]) for key, item in items.items() if key.startswith("c"))
    assert counted == sum(book["done"] for book in counts) > 0

    balances = [int(item["balance"]["N"]) for key, item in items.items() if key.startswith("a")]
    assert sum(balances) == loads.ACCOUNTS * loads.OPENING_BALANCE
    assert min(balances) >= 0
    assert all(book["moved"] for book in transfers)
    assert seen["sums"] == [loads.ACCOUNTS * loads.OPENING_BALANCE]
    assert seen["looks"] > 0


@pytest.mark.extended
def test_an_index_switched_on_under_load_misses_nothing(urls: list[str]) -> None:
    with RawClient(urls[0]) as client:
        for start in range(0, 200, 25):
            puts = [
                {"PutRequest": {"Item": {"p": text(f"old-{at}"), "color": text("grey")}}}
                for at in range(start, start + 25)
            ]
            client.call("BatchWriteItem", RequestItems={"things": puts})
        running = [
            LoadProcess(loads.fill, url, SECONDS + 1, seed) for seed, url in enumerate((urls[0], urls[-1]))
        ]
        wait_until(lambda: len(client.scan("things")) > 200)
        client.call(
            "UpdateTable",
            TableName="things",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("p", "color")],
            GlobalSecondaryIndexUpdates=[
                {
                    "Create": {
                        "IndexName": "by_color",
                        "KeySchema": [{"AttributeName": "color", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        )
        books = [each.books() for each in running]
        wait_until(lambda: _is_active(client))
        expected = {key: color for book in books for key, color in book["items"].items()}
        expected |= {f"old-{at}": "grey" for at in range(200)}
        table = {item["p"]["S"]: item["color"]["S"] for item in client.scan("things")}
        index = {item["p"]["S"]: item["color"]["S"] for item in client.scan("things", IndexName="by_color")}
    assert all(book["written"] for book in books)
    assert table == expected
    assert index == expected


def _is_active(client: RawClient) -> bool:
    table = client.call("DescribeTable", TableName="things")["Table"]
    return bool(table["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE")


@pytest.mark.extended
def test_no_write_is_acknowledged_into_a_dropped_table(urls: list[str]) -> None:
    """A put sent after the last table was created and acknowledged is in that table, whichever server created it."""
    with RawClient(urls[0]) as client:
        client.create_table("phoenix")
        running = [
            LoadProcess(loads.outlive, url, SECONDS + 1, seed) for seed, url in enumerate((urls[-1], urls[0]))
        ]
        until = time.monotonic() + SECONDS
        made_at = 0.0
        while time.monotonic() < until:
            time.sleep(0.2)
            client.call("DeleteTable", TableName="phoenix")
            client.create_table("phoenix")
            made_at = time.monotonic()
        books = [each.books() for each in running]
        kept = {item["p"]["S"] for item in client.scan("phoenix")}
    must = {key for book in books for asked, _, key in book["acknowledged"] if asked > made_at}
    may = {key for book in books for _, answered, key in book["acknowledged"] if answered > made_at - 5}
    assert must
    assert must <= kept <= may

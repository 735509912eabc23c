"""A request for one row does not wait until the pages of other requests are read."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import OWN_URL
from tests.support.databases import PostgresServer
from tests.support.raw_client import RawClient
from tests.support.running import Process

pytestmark = pytest.mark.extended

# Small ones, so that one page has them all.
ITEMS = 6_000


def heavy(terms: int) -> dict[str, Any]:
    """Return a Scan whose filter no prefilter supports. With twenty terms, each item takes at least 0.1 ms."""
    return {
        "TableName": "things",
        "FilterExpression": "NOT contains(x, :part) AND " * terms + "size(x) > :size",
        "ExpressionAttributeValues": {":size": {"N": "90"}, ":part": {"S": "q"}},
    }


@pytest.fixture(scope="module", params=["postgresql"] if OWN_URL else ["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a table of many small items."""
    folder = tmp_path_factory.mktemp("server")
    if request.param == "sqlite":
        yield from served(Process(folder, "--dialects", "dynamodb"))
    else:
        postgres: PostgresServer = request.getfixturevalue("postgres")
        with postgres.new_database() as database:
            yield from served(Process(folder, "--dialects", "dynamodb", "--database", database))


def served(process: Process) -> Iterator[str]:
    process.wait_until_ready()
    with RawClient(process.url) as client:
        client.create_table("things")
        for start in range(0, ITEMS, 25):
            items = [{"p": {"S": f"{at}"}, "x": {"S": "x" * 40}} for at in range(start, start + 25)]
            client.call(
                "BatchWriteItem", RequestItems={"things": [{"PutRequest": {"Item": each}} for each in items]}
            )
    yield process.url
    code, errors = process.terminate()
    assert (code, "Traceback" in errors) == (0, False), errors


def is_readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def test_rows_are_read_and_written_while_a_page_is(url: str) -> None:
    with RawClient(url) as scanning, RawClient(url) as client:
        client.call("GetItem", TableName="things", Key={"p": {"S": "1"}})
        scanning.start("Scan", **heavy(20))
        answered = 0
        while not is_readable(scanning.connection.sock):
            if answered % 2:
                client.call("PutItem", TableName="things", Item={"p": {"S": "0"}, "x": {"S": f"{answered}"}})
            else:
                assert "Item" in client.call("GetItem", TableName="things", Key={"p": {"S": "7"}})
            answered += 1
        # One request can precede the page and one can share its tick. Without slices there would be no others.
        assert answered >= 4
        page = scanning.finish()
        assert (page["Count"], page["ScannedCount"]) == (0, ITEMS)


def test_pages_that_many_read_are_all_whole(url: str) -> None:
    """More at a time than snapshots are kept open, among writers."""
    done = threading.Event()

    def scan(_: int) -> int:
        with RawClient(url) as client:
            return int(client.call("Scan", **heavy(1))["ScannedCount"])

    def write() -> int:
        with RawClient(url) as client:
            count = 0
            while not done.is_set():
                client.call("PutItem", TableName="things", Item={"p": {"S": "1"}, "x": {"S": f"{count}"}})
                count += 1
            return count

    with ThreadPoolExecutor(13) as pool:
        writing = pool.submit(write)
        try:
            scans = list(pool.map(scan, range(12)))
        finally:
            done.set()
        assert scans == [ITEMS] * 12
        assert writing.result() > 1

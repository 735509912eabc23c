"""Size, constant speed, isolation of readers, and crashes, against live servers.

The run takes seconds here. `make soak` runs the stated sizes and minutes.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.adapters.azuretable.batch_requests import insert_part, upsert_part
from tests.adapters.azuretable.client import ACCOUNT, KEY, sign
from tests.support.concurrency import all_at_once
from tests.support.running import Process, Running, start
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))
# Only the long form checks times, because three batches are too few on a busy machine.
IS_LONG = "TABLEGATE_TEST_SOAK_SECONDS" in os.environ
ENTITIES = 100_000 if IS_LONG else 3_000


class Connection:
    """A persistent connection that signs and sends requests.

    It is faster than an SDK, so that the test measures the server.
    """

    def __init__(self, url: str) -> None:
        host = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=PATIENCE_S)

    def send(
        self, method: str, path: str, body: bytes = b"", content_type: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        target = f"/{ACCOUNT}{path}"
        headers = {
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": "2019-02-02",
            "Content-Type": content_type,
        }
        headers["Authorization"] = sign(KEY, method, target, headers)
        self._connection.request(
            method, target, body, {name: value for name, value in headers.items() if value}
        )
        reply = self._connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()

    def create(self, table: str) -> None:
        status, _, body = self.send(
            "POST", "/Tables", json.dumps({"TableName": table}).encode(), "application/json"
        )
        assert status == 201, body

    def batch(self, parts: list[str]) -> bool:
        """Send a changeset. Returns True if it was accepted."""
        head = "Content-Type: application/http\r\n\r\n"
        changes = "".join(f"--c\r\n{head}{part}\r\n" for part in parts)
        body = f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{changes}--c--\r\n--b--\r\n"
        status, _, reply = self.send("POST", "/$batch", body.encode(), "multipart/mixed; boundary=b")
        return status == 202 and b"HTTP/1.1 4" not in reply and b"HTTP/1.1 5" not in reply

    def page(self, table: str, **options: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Return a page of entities and the options for the next one. The options are empty at the end."""
        query = "&".join(
            f"{name if name[0].isupper() else '$' + name}={quote(value)}" for name, value in options.items()
        )
        status, headers, body = self.send("GET", f"/{table}()?{query}")
        assert status == 200, body
        prefix = "x-ms-continuation-"
        token = {
            name.removeprefix(prefix): value for name, value in headers.items() if name.startswith(prefix)
        }
        return json.loads(body)["value"], token

    def pages(self, table: str, **options: str) -> list[list[dict[str, Any]]]:
        found, token = self.page(table, **options)
        pages = [found]
        while token:
            found, token = self.page(table, **options, **token)
            pages.append(found)
        return pages

    def close(self) -> None:
        self._connection.close()


@pytest.mark.soak
def test_a_large_table_is_loaded_at_a_constant_rate_and_read_in_order(server: Running) -> None:
    """The rate of loading does not fall, a walk finds everything once and in order, a small partition costs what it holds."""
    client = Connection(server.url)
    client.create("large")
    client.batch([insert_part("large", "small", f"{row}", n=row) for row in range(10)])
    took: list[float] = []
    worked: list[float] = []
    for number in range(ENTITIES // 100):
        parts = [
            insert_part("large", f"p{number // 100:04}", f"{number % 100:02}{row:02}", n=row)
            for row in range(100)
        ]
        began, worked_before = time.perf_counter(), time.process_time()
        assert client.batch(parts)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - worked_before)
    tenth = len(took) // 10 or 1
    for name, figures, most in (("elapsed", took, 3), ("of this process", worked, 1.5)):
        first, last = median(figures[:tenth]), median(figures[-tenth:])
        print(
            f"a batch of 100, ms {name}: {first * 1000:.1f} at first, {last * 1000:.1f} with {ENTITIES} entities"
        )
        assert last < most * first or not IS_LONG
    keys = [(entity["PartitionKey"], entity["RowKey"]) for page in client.pages("large") for entity in page]
    assert len(keys) == ENTITIES + 10
    assert keys == sorted(set(keys))
    began = time.perf_counter()
    for _ in range(20):
        assert client.page("large", filter="PartitionKey eq 'small' and n eq 99") == ([], {})
    seconds = (time.perf_counter() - began) / 20
    print(f"a query without a hit on a partition of ten: {seconds * 1000:.2f} ms")
    assert seconds < 0.05 or not IS_LONG  # of ten rows; the whole table takes far longer
    client.close()


@pytest.mark.soak
def test_readers_never_see_half_of_a_batch(server: Running) -> None:
    client = Connection(server.url)
    client.create("groups")
    rows = [f"{row:02}" for row in range(50)]
    assert client.batch([insert_part("groups", "p", row, n=0) for row in rows])
    deadline = time.monotonic() + SECONDS
    counts = {"writes": 0, "reads": 0}

    def write() -> None:
        mine = Connection(server.url)
        while time.monotonic() < deadline or min(counts.values()) <= 3:
            counts["writes"] += 1
            assert mine.batch([upsert_part("groups", "p", row, n=counts["writes"]) for row in rows])
        mine.close()

    def read(expression: str) -> Callable[[], None]:
        def work() -> None:
            mine = Connection(server.url)
            while time.monotonic() < deadline or min(counts.values()) <= 3:
                entities, _ = mine.page("groups", filter=expression)
                counts["reads"] += 1
                assert len(entities) == 50
                assert len({entity["n"] for entity in entities}) == 1
            mine.close()

        return work

    all_at_once(
        [write, read("PartitionKey eq 'p'"), read("n ge 0"), read("PartitionKey ge 'a' and RowKey lt '9'")]
    )
    print(f"{counts['writes']} batches of 50 and {counts['reads']} looks at them")
    client.close()


@pytest.mark.soak
def test_a_crash_loses_nothing_that_was_acknowledged(tmp_path: Path, database_url: str) -> None:
    """kill -9 under a load of single inserts and of batches: all acknowledged entities are there, no batch is half there."""
    process = Process(tmp_path, "--database", database_url)
    process.wait_until_ready()
    client = Connection(process.url)
    client.create("crash")
    client.close()
    singles: list[str] = []
    groups: list[str] = []

    def load(work: Callable[[Connection, int], None]) -> Callable[[], None]:
        def run() -> None:
            mine = Connection(process.url)
            number = 0
            try:
                while True:
                    work(mine, number)
                    number += 1
            except (OSError, http.client.HTTPException):
                return  # killed

        return run

    def insert(mine: Connection, number: int) -> None:
        body = json.dumps({"PartitionKey": "single", "RowKey": f"{number}"}).encode()
        if mine.send("POST", "/crash", body, "application/json")[0] == 201:
            singles.append(f"{number}")

    def insert_group(mine: Connection, number: int) -> None:
        if mine.batch([insert_part("crash", f"group{number}", f"{row}") for row in range(10)]):
            groups.append(f"group{number}")

    killer = threading.Timer(SECONDS, process.kill)
    killer.start()
    all_at_once([load(insert), load(insert_group)])
    killer.join()
    assert singles
    assert groups

    again = start(database_url)
    try:
        client = Connection(again.url)
        found: dict[str, set[str]] = {}
        for page in client.pages("crash"):
            for entity in page:
                found.setdefault(entity["PartitionKey"], set()).add(entity["RowKey"])
        client.close()
    finally:
        again.stop()
    assert set(singles) <= found["single"]
    assert set(groups) <= found.keys()
    assert {len(rows) for partition, rows in found.items() if re.match("group", partition)} == {10}

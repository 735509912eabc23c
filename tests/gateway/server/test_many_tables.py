"""A server with many tables: start, ListTables, reads of all tables in random order, memory and metrics.

There are 200 tables here and 100,000 with `make soak`.
"""

from __future__ import annotations

import dataclasses
import os
import random
from pathlib import Path

import pytest

from benchmarks import dynamodb, signing
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.observability.prometheus import MAX_CAPACITY_SERIES
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.server.test_memory import resident_mb
from tests.support.running import Process

pytestmark = pytest.mark.extended

TABLES = 100_000 if "TABLEGATE_TEST_SOAK_SECONDS" in os.environ else 200
TOGETHER = 5_000
# 64 MiB of descriptors, 64 MiB of pages of two connections, metrics of 10,000 tables, and their fragmentation.
GROWTH_MB = 250
KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


def name_of(number: int) -> str:
    return f"table-{number:06}"


def copy_table(database: Database, name: str, number: int) -> None:
    """Store copies of a table's definition under other names, as if they had been created."""
    store = Store(database)
    with store.read() as session:
        [table] = store.catalog.all(session, "name = ?", (name,))
    for first in range(1, number, TOGETHER):
        with store.write() as session:
            numbers = range(first, min(first + TOGETHER, number))
            for at, table_id in zip(numbers, store.catalog.next_ids(session, len(numbers)), strict=True):
                store.catalog.insert(session, _renamed(table, table_id, at))


def _renamed(table: Table, table_id: int, number: int) -> Table:
    return dataclasses.replace(table, id=table_id, name=name_of(number), azure_name=f"table{number:06}")


def listed(client: signing.Client) -> list[str]:
    names: list[str] = []
    start: dict[str, str] = {}
    while True:
        page = dynamodb.call(client, "ListTables", start)
        names += page["TableNames"]
        if "LastEvaluatedTableName" not in page:
            return names
        start = {"ExclusiveStartTableName": page["LastEvaluatedTableName"]}


@pytest.mark.soak
def test_a_server_with_many_tables(database: Database, database_url: str, tmp_path: Path) -> None:
    first = Process(tmp_path, "--database", database_url)
    first.wait_until_ready()
    client = signing.Client(_port(first))
    dynamodb.make_table(client, name_of(0))
    client.close()
    first.kill()
    copy_table(database, name_of(0), TABLES)
    server = Process(tmp_path, "--database", database_url)
    server.wait_until_ready()
    try:
        client = signing.Client(_port(server))
        before_mb = resident_mb(server.pid)
        assert listed(client) == [name_of(number) for number in range(TABLES)]
        numbers = list(range(TABLES))
        random.Random(1).shuffle(numbers)
        with_item = set(numbers[: TABLES // 20])
        for number in sorted(with_item):
            dynamodb.call(
                client, "PutItem", {"TableName": name_of(number), "Item": {**KEY, "n": {"N": str(number)}}}
            )
        for number in numbers:
            item = dynamodb.call(client, "GetItem", {"TableName": name_of(number), "Key": KEY}).get("Item")
            assert item == ({**KEY, "n": {"N": str(number)}} if number in with_item else None)
        grown_mb = resident_mb(server.pid) - before_mb
        assert grown_mb <= GROWTH_MB, grown_mb
        series = [
            line
            for line in _metrics(client).splitlines()
            if line.startswith("tablegate_consumed_capacity_total{")
        ]
        assert min(TABLES, MAX_CAPACITY_SERIES) <= len(series) <= MAX_CAPACITY_SERIES + 2
        assert sum(float(line.rpartition(" ")[2]) for line in series if '"read"' in line) == TABLES / 2
    finally:
        server.kill()


def _port(server: Process) -> int:
    return int(server.url.rpartition(":")[2])


def _metrics(client: signing.Client) -> str:
    status, body = client.send(signing.raw("GET", "/metrics", [("Host", "127.0.0.1")], b""))
    assert status == 200, body
    return body.decode()

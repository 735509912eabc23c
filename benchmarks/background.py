"""Background work beside a client: purging a million items and filling an index over 500,000.

Meanwhile a client on one connection reads and writes another table. For each database and kind of work, the result
has the duration, the share of time at work, and the client's latencies with and without the work.
`python -m benchmarks.background [rows to purge] [rows to index]` runs this benchmark alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import dynamodb
from benchmarks.contestants import Postgres, Workspace, start_ours
from benchmarks.signing import HOST, Client
from benchmarks.signing import dynamodb as sign
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.gateway.wiring import connect, open_store

PURGED_ROWS, INDEXED_ROWS = 1_000_000, 500_000
_QUIET_S, _TIME_LIMIT_S = 5.0, 300.0
_LEFT = re.compile(r'^tablegate_background_rows_left\{work="(\w+)"\} (\S+)', re.MULTILINE)
_WORKED = re.compile(r'^tablegate_background_seconds_total\{work="(\w+)"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of a client's alternating reads and writes, in milliseconds."""

    reads: list[float]
    writes: list[float]

    def compared_with(self, quiet: Latencies) -> str:
        """Return the figures beside those of an idle server."""
        return ", ".join(
            f"{name} p50 {_percentile(mine, 0.5):.2f} ms "
            f"({_percentile(mine, 0.5) / _percentile(its, 0.5):.2f} of {_percentile(its, 0.5):.2f}), "
            f"p99 {_percentile(mine, 0.99):.1f} ({_percentile(its, 0.99):.1f})"
            for name, mine, its in (
                ("GetItem", self.reads, quiet.reads),
                ("PutItem", self.writes, quiet.writes),
            )
        )


def _percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def measure(workspace: Workspace, purged: int = PURGED_ROWS, indexed: int = INDEXED_ROWS) -> str:
    """Return result lines for SQLite FULL and PostgreSQL."""
    lines = []
    for name, url in _databases(workspace):
        lines += [f"{name}: {line}" for line in _measure(workspace, url, purged, indexed)]
    return "\n- ".join(lines)


def _databases(workspace: Workspace) -> Iterator[tuple[str, str]]:
    yield "SQLite FULL", f"sqlite:///{workspace.folder / 'background.sqlite'}"
    postgres = Postgres(Workspace(workspace.cores, workspace.folder / "postgres"))
    try:
        yield "PostgreSQL", postgres.new_database()
    finally:
        postgres.stop()


def _measure(workspace: Workspace, url: str, purged: int, indexed: int) -> Iterator[str]:
    port, process = start_ours(workspace, database=url)
    client = Client(port)
    for table in ("Gone", "Indexed", "Near"):
        dynamodb.make_table(client, table)
    client.close()
    process.stop()
    fill(url, "Gone", purged)
    fill(url, "Indexed", indexed)
    fill(url, "Near", 1_000)
    port, process = start_ours(workspace, database=url)
    client = Client(port)
    _neighbour(client, time.monotonic() + 1, lambda: False)
    index: dict[str, object] = {
        "TableName": "Indexed",
        "AttributeDefinitions": [{"AttributeName": "sk", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [
            {
                "Create": {
                    "IndexName": "by_sk",
                    "KeySchema": [{"AttributeName": "sk", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    }
    drop_request: dict[str, object] = {"TableName": "Gone"}
    for work, rows, operation, body in (
        ("purge", purged, "DeleteTable", drop_request),
        ("index_backfill", indexed, "UpdateTable", index),
    ):
        yield _beside(client, (work, rows), (operation, body))
    client.close()
    process.stop()


def _beside(client: Client, work: tuple[str, int], call: tuple[str, dict[str, object]]) -> str:
    """Measure one kind of work, with idle times before and after it, because the machine's speed may change."""
    name, rows = work
    quiet = _neighbour(client, time.monotonic() + _QUIET_S, lambda: False)
    dynamodb.call(client, *call)
    began = time.monotonic()
    latencies = _neighbour(client, began + _TIME_LIMIT_S, lambda: _is_done(client.port, name))
    took = time.monotonic() - began
    exposed = _metrics(client.port)
    seconds_of_work = dict(_WORKED.findall(exposed))[name]
    rows_left = float(dict(_LEFT.findall(exposed)).get(name, 0))
    after = _neighbour(client, time.monotonic() + _QUIET_S, lambda: False)
    quiet.reads.extend(after.reads)
    quiet.writes.extend(after.writes)
    progress = f"{rows - rows_left:,.0f} of {rows:,} rows"
    share = float(seconds_of_work) / took
    return f"{name}, {progress} in {took:.1f} s, working {share:.2f} of the time. Neighbour: {latencies.compared_with(quiet)}."


def _is_done(port: int, work: str) -> bool:
    text = _metrics(port)
    return work in dict(_WORKED.findall(text)) and float(dict(_LEFT.findall(text)).get(work, 1)) == 0


def _metrics(port: int) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=30) as reply:
        return str(reply.read().decode())


def _neighbour(client: Client, until: float, is_over: Callable[[], bool]) -> Latencies:
    """Read and write alternately until `is_over`, which is checked once a second."""
    latencies = Latencies([], [])
    number, ask_at = 0, time.monotonic() + 1
    put_request = dynamodb.put("Near", dynamodb.partition_of)
    while time.monotonic() < until:
        number += 1
        key = {
            "TableName": "Near",
            "Key": dynamodb.key(dynamodb.partition_of(number % 1_000), number % 1_000),
        }
        for request, times in (
            (sign(client.port, "GetItem", json.dumps(key).encode()), latencies.reads),
            (put_request(client.port, number % 1_000), latencies.writes),
        ):
            began = time.perf_counter()
            status, _ = client.send(request)
            times.append((time.perf_counter() - began) * 1000)
            assert status == 200
        if time.monotonic() >= ask_at:
            if is_over():
                break
            ask_at = time.monotonic() + 1
    return latencies


def fill(url: str, table_name: str, rows: int) -> None:
    """Insert items into an existing table through the engine, which is faster than over HTTP."""
    settings = load({"database": url, "synchronous": "normal"}, {})
    open_database = open_store(settings, connect(settings))
    with open_database.store.read() as session:
        [table] = open_database.store.catalog.all(session, "name = ?", (table_name,))
    for first in range(0, rows, 2_000):
        groups = [WriteGroup((_write(table, number),)) for number in range(first, min(rows, first + 2_000))]
        open_database.engine.run(list(groups))
    open_database.close()


def _write(table: Table, number: int) -> Write:
    item = dynamodb.item(dynamodb.partition_of(number), number)
    values = tuple(Value(Kind.TEXT, item[name]["S"]) for name in ("pk", "sk"))
    contents = Contents(json.dumps(item, separators=(",", ":")).encode(), None, dynamodb.ITEM_BYTES)
    return Write(table, Key(values, table.key_schema.position(values)), Replace(contents))


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    try:
        print(measure(Workspace(frozenset(os.sched_getaffinity(0)), folder), *map(int, sys.argv[1:])))
    finally:
        shutil.rmtree(folder)

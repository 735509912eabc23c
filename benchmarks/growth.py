"""How the cost of requests and of housekeeping grows with a table, on SQLite and PostgreSQL.

`python -m benchmarks.growth [--rows 10000 1000000] [--databases sqlite postgresql] [--against FOLDER] [--plot FILE]` fills
a table with an index and an expiry time for each number of rows. It prints the CPU of the gateway and of PostgreSQL for
each kind of request, the seconds of DescribeTable, the rows per second of expiry and of a drop, memory and disk.
`--against` adds the server of another checkout, `--plot` draws all figures as SVG.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import dynamodb
from benchmarks.contestants import Postgres, Workspace, start_ours
from benchmarks.processes import Tree
from benchmarks.report import count, table
from benchmarks.signing import Client
from benchmarks.signing import dynamodb as sign

_CORES = frozenset(os.sched_getaffinity(0))
_ROOT = Path(__file__).parent.parent
_REQUESTS, _PUT_TOGETHER = 400, 25
_COLOURS = 1_000
_NEVER_S, _HOUR_S = 4_000_000_000, 3_600
_EXPIRED_ROWS = 200_000
_DROP_LIMIT_S = 3_600.0
_TOP, _BAR, _GAP = 34, 13, 8
_COLOURS_OF_BARS = ("#1f6f8b", "#b4552d", "#4c7a34", "#7a4c8c", "#8a867c", "#a08a1e")


class Figure(NamedTuple):
    """A measured value: what, its unit, and the value."""

    name: str
    unit: str
    value: float


class Server:
    """A server process on a new database, and the processes of its PostgreSQL."""

    def __init__(self, database: str, folder: Path, root: Path) -> None:
        self._stack = ExitStack()
        self._workspace = Workspace(_CORES, folder)
        self._path: Path | None = None
        self._postgres: Tree | None = None
        if database == "sqlite":
            self._path = folder / "growth.sqlite"
            self._url = f"sqlite:///{self._path}"
        else:
            postgres = Postgres(Workspace(_CORES, folder / "postgres"))
            self._stack.callback(postgres.stop)
            self._postgres = Tree([postgres.pid])
            self._url = postgres.new_database()
        port, self._process = start_ours(self._workspace, database=self._url, root=root)
        self._gateway = Tree([self._process.pid])
        self.client = Client(port)

    def stop(self) -> None:
        self.client.close()
        self._process.stop()
        self._stack.close()

    def cpu_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of the gateway and of PostgreSQL."""
        database = 0.0 if self._postgres is None else self._postgres.cpu_seconds()
        return self._gateway.cpu_seconds(), database

    @property
    def memory_mb(self) -> float:
        return self._gateway.memory_mb()[1]

    def disk_bytes(self) -> int:
        """Return the bytes of the database on the disk."""
        if self._path is not None:
            return sum(part.stat().st_size for part in self._path.parent.glob("growth.sqlite*"))
        import psycopg

        with psycopg.connect(self._url) as connection:
            [(size,)] = connection.execute("SELECT pg_database_size(current_database())").fetchall()
        return int(size)

    def control(self, method: str, path: str, body: Any = None) -> str:
        """Return the answer to a request that is of no dialect."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.client.port}/{path}"
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as reply:
            text: str = reply.read().decode()
            return text

    def call(self, operation: str, **body: Any) -> dict[str, Any]:
        return dynamodb.call(self.client, operation, body)


# Tables


def _item(number: int, expires_at: int = _NEVER_S) -> dict[str, Any]:
    """Return an item of about 160 billed bytes."""
    return {
        "pk": {"S": f"customer-{number % 9973:06}"},
        "sk": {"N": str(number)},
        "colour": {"S": f"colour-{number * 7919 % _COLOURS:04}"},
        "expires": {"N": str(expires_at)},
        "note": {"S": "x" * 90},
    }


def _key(number: int) -> dict[str, Any]:
    return {name: value for name, value in _item(number).items() if name in ("pk", "sk")}


def _make(server: Server, name: str, rows: int, expires_at: int = _NEVER_S) -> None:
    """Make a table with an index and an expiry rule, and fill it in random order."""
    types = {"pk": "S", "sk": "N", "colour": "S"}
    index = {"AttributeName": "colour", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}
    server.call(
        "CreateTable",
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind} for key, kind in types.items()],
        GlobalSecondaryIndexes=[
            {"IndexName": "by-colour", "KeySchema": index, "Projection": {"ProjectionType": "ALL"}}
        ],
    )
    while server.call("DescribeTable", TableName=name)["Table"]["TableStatus"] != "ACTIVE":
        time.sleep(0.1)
    server.call(
        "UpdateTimeToLive",
        TableName=name,
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    numbers = list(range(rows))
    random.Random(rows).shuffle(numbers)
    for first in range(0, rows, _PUT_TOGETHER):
        puts = [
            {"PutRequest": {"Item": _item(number, expires_at)}}
            for number in numbers[first : first + _PUT_TOGETHER]
        ]
        server.call("BatchWriteItem", RequestItems={name: puts})


# Figures


def _requests(rows: int) -> Iterator[tuple[str, Callable[[int], tuple[str, dict[str, Any]]]]]:
    """Yield each kind of request with a function of a number of an item."""

    def query(number: int, **more: Any) -> tuple[str, dict[str, Any]]:
        key, value = ("colour", _item(number)["colour"]) if more else ("pk", _item(number)["pk"])
        condition = {"KeyConditionExpression": "#k = :v", "ExpressionAttributeNames": {"#k": key}}
        return "Query", {
            "TableName": "things",
            **condition,
            "ExpressionAttributeValues": {":v": value},
            "Limit": 20,
            **more,
        }

    yield "GetItem", lambda number: ("GetItem", {"TableName": "things", "Key": _key(number)})
    yield "PutItem over an item", lambda number: ("PutItem", {"TableName": "things", "Item": _item(number)})
    yield "Query of 20", query
    yield "Query of 20 of the index", lambda number: query(number, IndexName="by-colour")
    yield (
        "TransactWriteItems of 2",
        lambda number: (
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": "things", "Item": _item(each % rows)}}
                    for each in (number, number + 1)
                ]
            },
        ),
    )


def _cost_of_requests(server: Server, rows: int) -> Iterator[Figure]:
    chance = random.Random(1)
    for name, request_of in _requests(rows):
        requests = [request_of(chance.randrange(rows)) for _ in range(_REQUESTS)]
        encoded = [
            sign(server.client.port, operation, json.dumps(body).encode()) for operation, body in requests
        ]
        before = server.cpu_seconds()
        for request in encoded:
            status, reply = server.client.send(request)
            assert status == 200, reply
        after = server.cpu_seconds()
        for part, old, new in zip(("gateway", "database"), before, after, strict=True):
            if new:
                yield Figure(f"{name}, {part}", "us", (new - old) / _REQUESTS * 1e6)


def _describe(server: Server) -> Iterator[Figure]:
    took = []
    for _ in range(5):
        began = time.perf_counter()
        server.call("DescribeTable", TableName="things")
        took.append(time.perf_counter() - began)
    yield Figure("DescribeTable", "ms", min(took) * 1e3)


def _housekeeping(server: Server, rows: int) -> Iterator[Figure]:
    """Expire a table of at most 200,000 rows with a whole core, and drop the large one at the default share."""
    due = min(rows, _EXPIRED_ROWS)
    _make(server, "due", due, int(time.time()) + _HOUR_S)
    began = time.perf_counter()
    server.control("POST", "_tablegate/clock/advance", {"seconds": 2 * _HOUR_S})
    assert server.call("Scan", TableName="due", Limit=1)["Count"] == 0
    yield Figure("expiry, a whole core", "rows/s", due / (time.perf_counter() - began))
    began = time.perf_counter()
    server.call("DeleteTable", TableName="things")
    yield Figure("DeleteTable", "ms", (time.perf_counter() - began) * 1e3)
    while _purged(server) < 2 * rows:
        assert time.perf_counter() - began < _DROP_LIMIT_S, "the drop took too long"
        time.sleep(0.1)
    yield Figure("drop, a quarter of a core", "rows/s", rows / (time.perf_counter() - began))


def _purged(server: Server) -> float:
    """Return the number of purged rows and index entries."""
    name = 'tablegate_background_rows_total{work="purge"}'
    lines = [line.rpartition(" ") for line in server.control("GET", "metrics").splitlines()]
    return sum(float(value) for series, _, value in lines if series == name)


def measure(database: str, rows: int, root: Path) -> dict[str, Figure]:
    """Return the figures of one server, by name."""
    folder = Path(tempfile.mkdtemp(prefix="tablegate-growth-"))
    server = Server(database, folder, root)
    try:
        empty = server.disk_bytes()
        _make(server, "things", rows)
        figures = [Figure("disk, a row and its entry", "bytes", (server.disk_bytes() - empty) / rows)]
        figures += [*_cost_of_requests(server, rows), *_describe(server)]
        figures.append(Figure("memory of the gateway", "MB", server.memory_mb))
        figures += _housekeeping(server, rows)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return {figure.name: figure for figure in figures}


def draw(columns: Sequence[str], figures: Sequence[Mapping[str, Figure]]) -> str:
    """Draw a group of bars for each figure, as SVG. The longest bar of a group has the full width."""
    names = list(dict.fromkeys(name for column in figures for name in column))
    height = _TOP + len(names) * (len(columns) * _BAR + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="760" height="{height}" fill="white"/>',
    ]
    for at, label in enumerate(columns):
        parts.append(
            f'<rect x="{10 + at * 180}" y="10" width="10" height="10" fill="{_COLOURS_OF_BARS[at % 6]}"/>'
            f'<text x="{25 + at * 180}" y="19">{escape(label)}</text>'
        )
    y = _TOP
    for name in names:
        values = [column[name] for column in figures if name in column]
        longest = max(value.value for value in values) or 1
        parts.append(f'<text x="270" y="{y + 11}" text-anchor="end">{escape(name)} ({values[0].unit})</text>')
        for at, column in enumerate(figures):
            if name in column:
                width = column[name].value / longest * 380
                parts.append(
                    f'<rect x="280" y="{y + at * _BAR}" width="{width:.1f}" height="{_BAR - 2}"'
                    f' fill="{_COLOURS_OF_BARS[at % 6]}"/><text x="{286 + width:.1f}" y="{y + at * _BAR + 9}">'
                    f"{count(column[name].value)}</text>"
                )
        y += len(columns) * _BAR + _GAP
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument(
        "--databases", nargs="+", default=["sqlite", "postgresql"], choices=["sqlite", "postgresql"]
    )
    parser.add_argument("--against", type=Path, help="another checkout, measured before this one")
    parser.add_argument("--plot", type=Path, help="the SVG file to write")
    arguments = parser.parse_args()
    roots = [("before", arguments.against)] if arguments.against else []
    roots.append(("now" if roots else "", _ROOT))
    columns, figures = [], []
    for database in arguments.databases:
        for rows in arguments.rows:
            for label, root in roots:
                columns.append(f"{database}, {rows:,}" + (f", {label}" if label else ""))
                print(f"{columns[-1]} ...", file=sys.stderr, flush=True)
                figures.append(measure(database, rows, root))
    names = list(dict.fromkeys(name for column in figures for name in column))
    lines = [
        [
            f"{name} ({next(column[name].unit for column in figures if name in column)})",
            *(count(column[name].value) if name in column else "" for column in figures),
        ]
        for name in names
    ]
    print(table(["", *columns], lines))
    if arguments.plot:
        arguments.plot.write_text(draw(columns, figures))


if __name__ == "__main__":
    main()

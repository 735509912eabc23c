"""Growth of the cost of requests and of background work with the size of a table.

    python -m benchmarks.growth [--rows 10000 1000000] [--databases sqlite postgresql] [--against FOLDER] [--write]

It fills a table with an index and an expiry rule for each number of rows. Every key has the same number of rows at all
sizes. It prints CPU for each kind of request, seconds of DescribeTable, rates of background work, memory and disk.

The servers of all sizes run at the same time, and their requests alternate. `--against` also measures the server of
another checkout. `--plot FILE` draws a chart.
`--write` writes table and chart into docs/explain/performance-large.md.
With TABLEGATE_TEST_DATABASE_URL and TABLEGATE_TEST_SECOND_DATABASE_URL, it measures that Citus cluster too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import dynamodb, plot, report
from benchmarks.comparisons import interval
from benchmarks.growth_server import GrowthServer
from benchmarks.signing import Client
from benchmarks.signing import dynamodb as sign

_ROOT = Path(__file__).parent.parent
_CHART = report.LARGE.with_name("growth.svg")
_TITLE = "Growth of costs with the size of a table"
_ROWS_OF_KEY, _PUT_TOGETHER, _FILLING_CLIENTS = 20, 25, 4
_BATCHES, _REQUESTS = 9, 100
_SMALL_TABLES_OF_BATCH = 30
_NEVER_S, _HOUR_S = 4_000_000_000, 3_600
_EXPIRED_ROWS = 200_000
_DROP_LIMIT_S = 3_600.0
_NOT_CACHED = "GetItem, table not cached"


class Figure(NamedTuple):
    """A measured value: name, unit, and one value for each batch."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def costs(self) -> tuple[float, ...]:
        """The values, or their inverses if a higher value is better."""
        return tuple(1 / value for value in self.values) if self.unit.endswith("/s") else self.values


Figures = Mapping[str, Figure]
"""The figures of one server, by name."""
Column = tuple[str, int, str]
"""A measured server: its database, number of rows, and side ("before" or "now")."""


# Tables


def _item(number: int, rows: int, expires_at: int = _NEVER_S) -> dict[str, Any]:
    """Return an item of about 160 billed bytes. The 20 items of a colour are in 20 partitions."""
    keys = max(1, rows // _ROWS_OF_KEY)
    copy, partition = divmod(number, keys)
    return {
        "pk": {"S": f"customer-{partition:06}"},
        "sk": {"N": str(number)},
        "colour": {"S": f"colour-{(partition * 7919 + copy * 104_729) % keys:06}"},
        "expires": {"N": str(expires_at)},
        "note": {"S": "x" * 90},
    }


def _make(server: GrowthServer, name: str, rows: int, expires_at: int = _NEVER_S) -> None:
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
    expiry = {"Enabled": True, "AttributeName": "expires"}
    server.call("UpdateTimeToLive", TableName=name, TimeToLiveSpecification=expiry)
    _fill(server, name, rows, expires_at)


def _fill(server: GrowthServer, name: str, rows: int, expires_at: int) -> None:
    numbers = list(range(rows))
    random.Random(rows).shuffle(numbers)
    local = threading.local()

    def put(first: int) -> None:
        if not hasattr(local, "client"):
            local.client = Client(server.client.port)
        puts = [
            {"PutRequest": {"Item": _item(number, rows, expires_at)}}
            for number in numbers[first : first + _PUT_TOGETHER]
        ]
        answer = dynamodb.call(local.client, "BatchWriteItem", {"RequestItems": {name: puts}})
        assert not answer.get("UnprocessedItems"), answer

    with ThreadPoolExecutor(_FILLING_CLIENTS) as clients:
        for _ in clients.map(put, range(0, rows, _PUT_TOGETHER)):
            pass


# Requests

Request = tuple[str, dict[str, Any]]


def _requests(rows: int) -> Iterator[tuple[str, Callable[[int], Request]]]:
    """Yield each kind of request with the function that makes it of the number of an item."""

    def key(number: int) -> dict[str, Any]:
        return {name: value for name, value in _item(number, rows).items() if name in ("pk", "sk")}

    def query(number: int, attribute: str, **more: Any) -> Request:
        return "Query", {
            "TableName": "things",
            "KeyConditionExpression": "#k = :v",
            "ExpressionAttributeNames": {"#k": attribute},
            "ExpressionAttributeValues": {":v": _item(number, rows)[attribute]},
            "Limit": _ROWS_OF_KEY,
            **more,
        }

    def put(number: int) -> dict[str, Any]:
        return {"TableName": "things", "Item": _item(number % rows, rows)}

    def transact(number: int) -> Request:
        return "TransactWriteItems", {"TransactItems": [{"Put": put(number)}, {"Put": put(number + 1)}]}

    yield "GetItem", lambda number: ("GetItem", {"TableName": "things", "Key": key(number)})
    yield "PutItem over an item", lambda number: ("PutItem", put(number))
    yield "Query of 20", lambda number: query(number, "pk")
    yield "Query of 20 of the index", lambda number: query(number, "colour", IndexName="by-colour")
    yield "TransactWriteItems of 2", transact


def _batch(server: GrowthServer, requests: Sequence[Request]) -> tuple[float, float]:
    """Send requests one by one. Return microseconds of CPU for one: of the gateway and of the database."""
    encoded = [sign(server.client.port, name, json.dumps(body).encode()) for name, body in requests]
    before = server.cpu_seconds()
    for request in encoded:
        status, reply = server.client.send(request)
        assert status == 200, reply
    gateway, database = (new - old for old, new in zip(before, server.cpu_seconds(), strict=True))
    return gateway / len(requests) * 1e6, database / len(requests) * 1e6


def _cost_of(
    servers: Sequence[GrowthServer], name: str, batches: Sequence[Sequence[Sequence[Request]]]
) -> list[list[Figure]]:
    """Return the CPU of requests at each server, which has its own batches. The servers take turns with each batch."""
    costs: list[list[tuple[float, float]]] = [[] for _ in servers]
    for turn in zip(*batches, strict=True):
        for server, batch, measured in zip(servers, turn, costs, strict=True):
            measured.append(_batch(server, batch))
    figures = []
    for measured in costs:
        by_part = zip(("gateway", "database"), zip(*measured, strict=True), strict=True)
        figures.append([Figure(f"{name}, {part}", "us", values) for part, values in by_part if any(values)])
    return figures


def _costs_of_requests(servers: Sequence[GrowthServer], sizes: Sequence[int]) -> Iterator[list[list[Figure]]]:
    """Yield the figures of each kind of request at all servers. `sizes`: the number of rows of each server."""
    chance = random.Random(1)

    def batches(request_of: Callable[[int], Request], rows: int) -> list[list[Request]]:
        return [[request_of(chance.randrange(rows)) for _ in range(_REQUESTS)] for _ in range(_BATCHES)]

    for kinds in zip(*map(_requests, sizes), strict=True):
        name = kinds[0][0]
        yield _cost_of(
            servers,
            name,
            [batches(request_of, rows) for (_, request_of), rows in zip(kinds, sizes, strict=True)],
        )


def _small_tables(batch: int) -> list[str]:
    return [f"small-{batch}-{number}" for number in range(_SMALL_TABLES_OF_BATCH)]


def _costs_of_first_requests(servers: Sequence[GrowthServer]) -> list[list[Figure]]:
    """Measure the first request for each of the small tables, at servers that have just started."""
    key = {"pk": {"S": "p"}, "sk": {"S": "s"}}
    batches = [
        [("GetItem", {"TableName": name, "Key": key}) for name in _small_tables(batch)]
        for batch in range(_BATCHES)
    ]
    return _cost_of(servers, _NOT_CACHED, [batches for _ in servers])


# Other figures


def _describe(server: GrowthServer) -> Figure:
    took = []
    for _ in range(_BATCHES):
        began = time.perf_counter()
        server.call("DescribeTable", TableName="things")
        took.append((time.perf_counter() - began) * 1e3)
    return Figure("DescribeTable", "ms", tuple(took))


def _background(server: GrowthServer, rows: int) -> Iterator[Figure]:
    """Expire a table of at most 200,000 rows with a whole core, and drop the large one."""
    due = min(rows, _EXPIRED_ROWS)
    _make(server, "due", due, int(time.time()) + _HOUR_S)
    began = time.perf_counter()
    server.control("POST", "_tablegate/clock/advance", {"seconds": 2 * _HOUR_S})
    assert server.call("Scan", TableName="due", Limit=1)["Count"] == 0
    yield Figure("expiry, a whole core", "rows/s", (due / (time.perf_counter() - began),))
    began = time.perf_counter()
    server.call("DeleteTable", TableName="things")
    yield Figure("DeleteTable", "ms", ((time.perf_counter() - began) * 1e3,))
    while _work(server, "purge", "rows") < 2 * rows:
        assert time.perf_counter() - began < _DROP_LIMIT_S, "the drop took too long"
        time.sleep(0.1)
    seconds = _work(server, "purge", "seconds")
    yield Figure("drop, rows for a second of work", "rows/s", (rows / seconds,))


def _work(server: GrowthServer, name: str, unit: str) -> float:
    """Return the rows or the seconds of a kind of background work, since the start of the server."""
    counter = f'tablegate_background_{unit}_total{{work="{name}"}}'
    lines = [line.rpartition(" ") for line in server.control("GET", "metrics").splitlines()]
    return sum(float(value) for series, _, value in lines if series == counter)


def measure(database: str, contestants: Sequence[tuple[int, Path]]) -> list[Figures]:
    """Return the figures of each server, given by its number of rows and its checkout.

    All servers run at the same time and take turns, so that a load of the machine does not look like growth.
    """
    sizes = [rows for rows, _ in contestants]
    found: list[list[Figure]] = [[] for _ in contestants]
    with ExitStack() as stack:
        servers = []
        for (rows, root), figures in zip(contestants, found, strict=True):
            folder = Path(tempfile.mkdtemp(prefix="tablegate-growth-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            server = GrowthServer(database, folder, root)
            stack.callback(server.stop)
            servers.append(server)
            for name in (name for batch in range(_BATCHES) for name in _small_tables(batch)):
                dynamodb.make_table(server.client, name)
            server.restart()  # SQLite's log is then empty
            empty = server.disk_bytes()
            _make(server, "things", rows)
            server.restart()
            size = (server.disk_bytes() - empty) / rows
            figures.append(Figure("disk, a row and its entry", "bytes", (size,)))
        for costs in (_costs_of_first_requests(servers), *_costs_of_requests(servers, sizes)):
            for figures, some in zip(found, costs, strict=True):
                figures += some
        for server, rows, figures in zip(servers, sizes, found, strict=True):
            figures.append(_describe(server))
            figures.append(Figure("memory of the gateway", "MB", (server.memory_mb,)))
            figures += _background(server, rows)
    return [{figure.name: figure for figure in figures} for figures in found]


# Output


def chart(columns: Mapping[Column, Figures]) -> str:
    """Draw the cost at the smallest size divided by that at the largest. 1: it does not depend on the size."""
    bars = []
    fewest, most = min(rows for _, rows, _ in columns), max(rows for _, rows, _ in columns)
    for database in dict.fromkeys(database for database, _, _ in columns):
        small, large = columns[database, fewest, "now"], columns[database, most, "now"]
        for name in (name for name in small if name in large):
            ratios = [a / b for a, b in zip(small[name].costs, large[name].costs, strict=True)]
            before = [columns.get((database, rows, "before"), {}).get(name) for rows in (fewest, most)]
            mark = 0.0
            if before[0] is not None and before[1] is not None:
                mark = statistics.median(before[0].costs) / statistics.median(before[1].costs)
            bars.append(plot.Bar(f"{database}: {name}", interval(ratios), mark))
    legend = (
        f"dot: cost at {fewest:,} rows divided by cost at {most:,} rows. 1: equal, 0.5: twice the cost. "
        "Upright: before."
    )
    return plot.draw(_TITLE, bars, legend)


def figures_table(columns: Mapping[Column, Figures]) -> str:
    """Return a Markdown table of all figures."""
    names = list(dict.fromkeys(name for figures in columns.values() for name in figures))
    units = {name: figure.unit for figures in columns.values() for name, figure in figures.items()}
    lines = [
        [
            f"{name} ({units[name]})",
            *(report.count(figures[name].median) if name in figures else "" for figures in columns.values()),
        ]
        for name in names
    ]
    has_sides = any(side == "before" for _, _, side in columns)
    heads = [f"{database}, {rows:,}" + (f", {side}" if has_sides else "") for database, rows, side in columns]
    return report.table(["", *heads], lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    is_cluster_known = "TABLEGATE_TEST_SECOND_DATABASE_URL" in os.environ
    databases = ["sqlite", "postgresql", *(["citus"] if is_cluster_known else [])]
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--databases", nargs="+", default=databases, choices=databases)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--plot", type=Path, help="the SVG file to write")
    parser.add_argument("--write", action="store_true", help="write into docs/explain/performance-large.md")
    arguments = parser.parse_args()
    roots = {"before": arguments.against.resolve()} if arguments.against else {}
    roots["now"] = _ROOT
    columns: dict[Column, Figures] = {}
    for database in arguments.databases:
        print(f"{database} ...", file=sys.stderr, flush=True)
        names = [(database, rows, side) for rows in arguments.rows for side in roots]
        measured = measure(database, [(rows, roots[side]) for _, rows, side in names])
        columns |= dict(zip(names, measured, strict=True))
        # The figures of a database are printed even if a later part fails.
        print(figures_table({name: columns[name] for name in names}))
    print(figures_table(columns))
    if arguments.plot:
        arguments.plot.write_text(chart(columns))
    if arguments.write:
        _CHART.write_text(chart(columns))
        report.write("growth", f"![{_TITLE}]({_CHART.name})\n\n{figures_table(columns)}", report.LARGE)


if __name__ == "__main__":
    main()

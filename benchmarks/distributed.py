"""The cost of a distributed PostgreSQL: each operation on a plain server, at Citus' coordinator and at a worker.

    python -m benchmarks.distributed PLAIN COORDINATOR WORKER [--seconds 2] [--rounds 3]

The arguments are URLs of migrated databases without other users. The last two belong to one distributed database.
The engine is called as in the server's tick, with the requests of 16 connections in a list. So the gateway's HTTP
work does not hide the cost. CPU of the gateway is that of this process. CPU of the databases is measured if their
processes are on this machine. Connections are not encrypted unless a URL has an `sslmode`: Citus switches TLS on, which a
new plain server does not have. CPU of the databases without requests is subtracted: Citus' daemons use some milliseconds
a second. Rounds alternate, because figures of a shared machine are comparable only side by side.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import make_url

from benchmarks.processes import Tree
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import run_with_retries
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, NewIndex
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store

CONNECTIONS = 16
_SCHEMA = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.DECIMAL),))
_INDEX = NewIndex("by_color", KeySchema((KeyColumn("color", Kind.TEXT),)), IndexProjection.ALL)
_PARTITIONS, _ROWS = 200, 50
_COLORS, _ROWS_OF_COLOR = 100, 20
_BODY = "x" * 880
_IDLE_S = 20.0
_NODES = (2, 4, 8, 16, 32)


class Entry:
    """A gateway at one node: an engine, a table with rows, and the CPU of the databases behind it."""

    def __init__(self, name: str, url: str, processes: list[int]) -> None:
        self.name = name
        self.engine = new_engine(Store(open_database(url)))
        self.engine.register_view("dynamodb", lambda value, is_partition: value)
        self.idle_share = 0.0
        """Seconds of CPU that the databases use in a second without requests."""
        self._tree = Tree(processes) if processes else None
        self._numbers = iter(range(1 << 60))
        self.table = self._created_table("read")
        self.indexed = self._created_table("read_by_index", _INDEX)
        self.written = self._created_table(f"written_{name}_{time.time_ns()}")
        self.written_with_index = self._created_table(f"indexed_{name}_{time.time_ns()}", _INDEX)
        groups = [self.put(self.table, f"p{p}", s) for p in range(_PARTITIONS) for s in range(_ROWS)]
        groups += [self.put(self.indexed, f"p{n}", n) for n in range(_COLORS * _ROWS_OF_COLOR)]
        for at in range(0, len(groups), 500):
            self.run(groups[at : at + 500], 500)

    def _created_table(self, name: str, *indexes: NewIndex) -> Table:
        [outcome] = run_with_retries(self.engine, [CreateTable("dynamodb", "", name, _SCHEMA, indexes)])
        if isinstance(outcome, Table):
            return outcome
        catalog = self.engine._store.catalog
        with self.engine._store.read() as session:
            table = catalog.find(session, "", name)
        assert table is not None, outcome
        return table

    def put(self, table: Table, p: str, s: int, **options: Any) -> WriteGroup:
        return WriteGroup((self.write(table, p, s, **options),))

    def write(self, table: Table, p: str, s: int, **options: Any) -> Write:
        key = table.key_schema.key({"p": text(p), "s": decimal(s)})
        color = text(f"c{s % _COLORS}")
        contents = Contents.of_values({"p": text(p), "s": decimal(s), "color": color, "body": text(_BODY)})
        return Write(table, key, Replace(contents), **options)

    def number(self) -> int:
        return next(self._numbers)

    def fresh(self, table: Table | None = None, **options: Any) -> WriteGroup:
        number = self.number()
        return self.put(table or self.written, f"p{number % 1000}", number, **options)

    def get(self) -> Get:
        number = self.number() * 7919
        key = _SCHEMA.key({"p": text(f"p{number % _PARTITIONS}"), "s": decimal(number // 7 % _ROWS)})
        return Get(self.table, key.position)

    def query(self) -> Read:
        lower = _SCHEMA.position((text(f"p{self.number() * 7919 % _PARTITIONS}"),))
        upper = type(lower)(lower.partition, b"\xff" * 8)
        return Read(self.table, KeyRange(lower, upper), PageLimits(scanned=50))

    def index_query(self) -> Read:
        [index] = self.indexed.indexes
        lower = index.key_schema.position((text(f"c{self.number() * 7919 % _COLORS}"),))
        upper = type(lower)(lower.partition, b"\xff" * 8)
        limits = PageLimits(scanned=_ROWS_OF_COLOR)
        return Read(self.indexed, KeyRange(lower, upper), limits, index=index)

    def run(self, commands: list[Any], requests: int) -> None:
        """Run the commands of some requests as the tick does, grouped by node."""
        by_node: dict[Hashable, list[Any]] = {}
        length = len(commands) // requests
        for start in range(0, len(commands), length):
            request = commands[start : start + length]
            node = self.engine.node_of(request) if self.engine.is_distributed else None
            by_node.setdefault(node, []).extend(request)
        for some in by_node.values():
            self._run(some)

    def _run(self, commands: list[Any]) -> None:
        for outcome in run_with_retries(self.engine, commands):
            assert not isinstance(outcome, GatewayError), outcome

    def cpu_s(self) -> float:
        return self._tree.cpu_seconds() if self._tree else 0.0


Operation = Callable[[Entry], list[Any]]
# Name -> (commands of one engine call, number of requests in them).
OPERATIONS: dict[str, tuple[Operation, int]] = {
    "put": (lambda entry: [entry.fresh() for _ in range(CONNECTIONS)], CONNECTIONS),
    "conditional put": (
        lambda entry: [entry.fresh(condition=Not(RowExists())) for _ in range(CONNECTIONS)],
        CONNECTIONS,
    ),
    "put with one index": (
        lambda entry: [entry.fresh(entry.written_with_index) for _ in range(CONNECTIONS)],
        CONNECTIONS,
    ),
    "get": (lambda entry: [entry.get() for _ in range(CONNECTIONS)], CONNECTIONS),
    "query 50": (lambda entry: [entry.query() for _ in range(CONNECTIONS)], CONNECTIONS),
    "index query 20": (lambda entry: [entry.index_query() for _ in range(CONNECTIONS)], CONNECTIONS),
    "batch write 25": (lambda entry: [entry.fresh() for _ in range(4 * 25)], 4),
    "batch get 25": (lambda entry: [entry.get() for _ in range(4 * 25)], 4),
    "transact write 4": (
        lambda entry: [
            WriteGroup(
                tuple(entry.write(entry.table, f"p{entry.number() % _PARTITIONS}", at) for at in range(4))
            )
            for _ in range(CONNECTIONS // 4)
        ],
        CONNECTIONS // 4,
    ),
    "transact get 4": (
        lambda entry: [ReadAll(tuple(entry.get() for _ in range(4))) for _ in range(CONNECTIONS // 4)],
        CONNECTIONS // 4,
    ),
    "scan 100": (lambda entry: [Read(entry.table, EVERYTHING, PageLimits(scanned=100)) for _ in range(4)], 4),
}


class Cost(NamedTuple):
    """Requests a second, and microseconds of CPU for a request."""

    rate: float
    databases_us: float
    gateway_us: float


def measured(entry: Entry, operation: Operation, requests: int, seconds: float) -> Cost:
    """Repeat an operation for some seconds."""
    request_count = 0
    databases, gateway, began = entry.cpu_s(), time.process_time(), time.perf_counter()
    while time.perf_counter() - began < seconds:
        entry.run(operation(entry), requests)
        request_count += requests
    us, took = 1e6 / request_count, time.perf_counter() - began
    return Cost(
        request_count / took,
        (entry.cpu_s() - databases - entry.idle_share * took) * us,
        (time.process_time() - gateway) * us,
    )


def without_encryption(url: str) -> str:
    """Return a URL with `sslmode=disable`, unless it has an `sslmode`."""
    parsed = make_url(url)
    return parsed.set(query={"sslmode": "disable", **parsed.query}).render_as_string(hide_password=False)


def processes_of(url: str) -> Iterator[int]:
    """Yield the process of the server at a URL and of each node that it knows."""
    plain = make_url(url).set(drivername="postgresql")
    urls = [plain]
    with psycopg.connect(plain.render_as_string(hide_password=False), autocommit=True) as connection:
        if connection.execute("SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL").fetchone() == (
            True,
        ):
            nodes = connection.execute("SELECT nodename, nodeport FROM pg_dist_node").fetchall()
            urls = [plain.set(host=host, port=port) for host, port in nodes]
    for node_url in urls:
        with psycopg.connect(node_url.render_as_string(hide_password=False), autocommit=True) as connection:
            [pid] = connection.execute(
                "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"
            ).fetchone() or [0]
            yield int(pid)


def main() -> None:
    """Measure and print the table. A cell has the figures of the plain server, the coordinator and the worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs=3, metavar=("PLAIN", "COORDINATOR", "WORKER"))
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="Operations with this text in their names.")
    options = parser.parse_args()
    entries = [
        Entry(name, url, [*processes_of(url)])
        for name, url in zip(
            ("plain", "coordinator", "worker"), map(without_encryption, options.urls), strict=True
        )
    ]
    before = [entry.cpu_s() for entry in entries]
    time.sleep(_IDLE_S)
    for entry, cpu_s in zip(entries, before, strict=True):
        entry.idle_share = (entry.cpu_s() - cpu_s) / _IDLE_S
        print(f"{entry.name}: {entry.idle_share * 1e3:.1f} ms of CPU a second without requests")
    multiples: dict[str, float] = {}
    print("\n| operation | requests/s | CPU us of the databases | times | CPU us of the gateway | times |")
    print("|---|---|---|---|---|---|")
    for name, (operation, requests) in OPERATIONS.items():
        if options.only not in name:
            continue
        costs: list[list[Cost]] = [[] for _ in entries]
        for _ in range(options.rounds):
            for entry, costs_of_entry in zip(entries, costs, strict=True):
                costs_of_entry.append(measured(entry, operation, requests, options.seconds))
        medians = [Cost(*map(statistics.median, zip(*some, strict=True))) for some in costs]
        cells = [", ".join(f"{cost.rate:,.0f}" for cost in medians)]
        for column in (1, 2):
            cells.append(", ".join(f"{cost[column]:,.0f}" for cost in medians))
            cells.append(
                ", ".join(
                    _multiples([cost[column] for cost in costs[0]], [cost[column] for cost in some])
                    for some in costs[1:]
                )
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
        plain, *_, worker = (cost.databases_us for cost in medians)
        multiples[name] = worker / plain if plain else 0.0
    print_model(multiples)


def _multiples(plain: list[float], other: list[float]) -> str:
    """Return the median of the ratios of all rounds, and their range."""
    ratios = [b / a for a, b in zip(plain, other, strict=True) if a]
    return f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})" if ratios else ""


def print_model(multiples: dict[str, float]) -> None:
    """Print the throughput of several nodes as a multiple of one plain server of the same size.

    `multiples` are the CPU costs of a request at a worker, relative to a plain server. The model assumes that the
    databases' CPU is the bottleneck, that keys and gateways are spread evenly, and that a request costs the same
    with more than two nodes.
    """
    print(
        f"\n| operation | {' | '.join(f'{nodes} nodes' for nodes in _NODES)} |\n|---|{'---|' * len(_NODES)}"
    )
    for name, multiple in multiples.items():
        if multiple:
            print(f"| {name} | {' | '.join(f'{nodes / multiple:.1f}' for nodes in _NODES)} |")


if __name__ == "__main__":
    main()

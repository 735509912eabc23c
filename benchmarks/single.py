"""Figures of this server alone: start, memory, and behaviour with growing data, writers and hot spots.

Each function returns a line or two of Markdown with the measurement and its result.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import dynamodb, machine
from benchmarks.background import fill, measure
from benchmarks.contestants import CONTESTANTS, Running, Workspace, start_ours
from benchmarks.generator import Aim, Generator, Slice
from benchmarks.processes import Tree
from benchmarks.signing import Client
from benchmarks.signing import dynamodb as sign

_IDLE_S = 10
_STARTS = 5
_SAME_ITEMS, _SLICES_OF_A_MILLION = 1_000, 10
_PUTS, _PUTS_PER_SLICE = 100_000, 10_000
_FEW_ROWS, _MANY_ROWS = 10_000, 1_000_000
_WRITERS, _WRITER_PUTS = 32, 4_000
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Bench:
    """The generator and the workspace of a measurement."""

    generator: Generator
    workspace: Workspace

    def fresh(self, name: str) -> Workspace:
        """Return an empty folder."""
        folder = self.workspace.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return Workspace(self.workspace.cores, folder)


# Start and memory


def start(bench: Bench) -> str:
    """Measure time and CPU from the start of the process to the first reply."""
    lines: list[str] = []
    cpu: list[float] = []
    for kind in ("an empty folder", "an existing file"):
        times = []
        workspace = bench.fresh("start")
        for _ in range(_STARTS):
            if kind == "an empty folder":
                workspace = bench.fresh("start")
            began = time.perf_counter()
            port, process = start_ours(workspace)
            client = Client(port)
            dynamodb.call(client, "ListTables", {})
            times.append(time.perf_counter() - began)
            cpu.append(Tree([process.pid]).cpu_seconds())
            client.close()
            process.stop()
        lines.append(f"{kind} {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})")
    return f"First answer after the start, median of {_STARTS}: {', '.join(lines)}. CPU {statistics.median(cpu):.2f} s."


def memory(bench: Bench) -> str:
    """Measure the memory of an idle server."""
    _, process = start_ours(bench.fresh("memory"))
    time.sleep(_IDLE_S)
    resident, proportional = Tree([process.pid]).memory_mb()
    process.stop()
    return f"Memory after {_IDLE_S} s idle: PSS {proportional:.0f} MB, RSS {resident:.0f} MB."


def million(bench: Bench) -> str:
    """Measure memory during a million requests that read and write a thousand items over 16 connections."""
    port, process = start_ours(bench.fresh("million"))
    client = Client(port)
    dynamodb.make_table(client, "Same")
    put_request = dynamodb.put("Same", dynamodb.partition_of)
    puts = [put_request(port, number) for number in range(_SAME_ITEMS)]
    gets = [_get(port, number, "Same") for number in range(_SAME_ITEMS)]
    mixed = [request for pair in zip(gets, gets, gets, puts, strict=True) for request in pair]
    tree = Tree([process.pid])
    memory_mb = []
    for _ in range(_SLICES_OF_A_MILLION):
        _measure(bench, tree, mixed * (1_000_000 // _SLICES_OF_A_MILLION // len(mixed)), port, 16)
        memory_mb.append(tree.memory_mb()[1])
    process.stop()
    return (
        f"A million requests, three of four GetItem and one PutItem: PSS {memory_mb[0]:.1f} MB after the first tenth, "
        f"{statistics.median(memory_mb):.1f} MB in the middle, {memory_mb[-1]:.1f} MB after the last."
    )


# Growth


def growth(bench: Bench) -> str:
    """Compare rate and cost of the last tenth of 100,000 puts of 1 KB with the first."""
    port, process = start_ours(bench.fresh("growth"))
    dynamodb.make_table(Client(port), "Put")
    request = dynamodb.put("Put", dynamodb.partition_of)
    slices: list[tuple[float, float]] = []
    for start_at in range(0, _PUTS, _PUTS_PER_SLICE):
        requests = [request(port, number) for number in range(start_at, start_at + _PUTS_PER_SLICE)]
        slices.append(_measure(bench, Tree([process.pid]), requests, port, 16)[:2])
    process.stop()
    (first_rate, first_cpu), (last_rate, last_cpu) = slices[0], slices[-1]
    return (
        f"{_PUTS:,} puts of 1 KB, 16 connections: the last {_PUTS_PER_SLICE:,} at {last_rate / first_rate:.2f} of the "
        f"rate of the first ({last_rate:,.0f} against {first_rate:,.0f}/s, CPU {last_cpu:.0f} against {first_cpu:.0f} us)."
    )


def size(bench: Bench) -> str:
    """Compare point reads in a table of a million rows with one of ten thousand, alternating."""
    servers = []
    for rows in (_FEW_ROWS, _MANY_ROWS):
        workspace = bench.fresh(f"size-{rows}")
        _fill(workspace.folder, rows)
        servers.append((rows, *start_ours(workspace)))
    measurements: dict[int, list[tuple[float, float]]] = {_FEW_ROWS: [], _MANY_ROWS: []}
    generator = random.Random(1)
    for _ in range(_ROUNDS):
        for rows, port, process in servers:
            keys = [generator.randrange(rows) for _ in range(3_000)]
            requests = [_get(port, number) for number in keys]
            measurements[rows].append(_measure(bench, Tree([process.pid]), requests, port, 16)[:2])
    for _, _, process in servers:
        process.stop()
    with_few, with_many = (
        tuple(statistics.median(figures[at] for figures in measurements[rows]) for at in (0, 1))
        for rows in (_FEW_ROWS, _MANY_ROWS)
    )
    return (
        f"GetItem of random keys, 16 connections: with {_MANY_ROWS:,} rows {with_many[0] / with_few[0]:.2f} of the rate with "
        f"{_FEW_ROWS:,} ({with_many[0]:,.0f} against {with_few[0]:,.0f}/s, CPU {with_many[1]:.0f} against {with_few[1]:.0f} us)."
    )


def _get(port: int, number: int, table: str = "Big") -> bytes:
    body = {"TableName": table, "Key": dynamodb.key(dynamodb.partition_of(number), number)}
    return sign(port, "GetItem", json.dumps(body).encode())


def _fill(folder: Path, rows: int) -> None:
    """Create a table with rows through the engine, which is faster than over HTTP."""
    url = f"sqlite:///{folder / 'bench.sqlite'}"
    port, process = start_ours(Workspace(frozenset(os.sched_getaffinity(0)), folder))
    dynamodb.make_table(Client(port), "Big")
    process.stop()
    fill(url, "Big", rows)


# Writers and hot spots


def writers(bench: Bench) -> str:
    """Compare the worst latency of 32 writers with an fsync at the same time."""
    port, process = start_ours(bench.fresh("writers"))
    dynamodb.make_table(Client(port), "Put")
    request = dynamodb.put("Put", dynamodb.partition_of)
    requests = [request(port, number) for number in range(_WRITER_PUTS)]
    *_, measurement = _measure(bench, Tree([process.pid]), requests, port, _WRITERS)
    process.stop()
    fsync = machine.measure_fsync(bench.workspace.folder)
    ordered = sorted(measurement.latencies_us)
    return (
        f"{_WRITERS} writers on SQLite FULL, {measurement.completed:,} puts: worst latency {ordered[-1] / 1000:.0f} ms, p99 "
        f"{ordered[int(len(ordered) * 0.99)] / 1000:.0f} ms. fsync p99 at that time {fsync.p99_ms:.1f} ms."
    )


def partition(bench: Bench) -> str:
    """Compare writes to one partition with writes to 997, on both databases, with and without a stream."""
    lines = []
    for database, running in _servers(bench, "partition"):
        kinds = [(name, extra) for extra in ("", "stream") for name in ("Many", "One")]
        choices = {"Many": dynamodb.partition_of, "One": dynamodb.one_partition}
        measurements = _puts(
            bench, running, {f"{name}{extra}": (choices[name], extra) for name, extra in kinds}
        )
        for extra, label in (("", "no stream"), ("stream", "a stream")):
            one, many = measurements[f"One{extra}"], measurements[f"Many{extra}"]
            lines.append(f"{database}, {label}: {_against(one, many)}")
    return f"All puts on one partition against puts on 997, 16 connections. {'. '.join(lines)}."


def extras(bench: Bench) -> str:
    """Measure the cost that a stream or an index adds to a put, on both databases."""
    lines = []
    for database, running in _servers(bench, "extras"):
        kinds = {name: (dynamodb.partition_of, name) for name in ("", "stream", "index")}
        measurements = _puts(bench, running, {f"Put{name}": kind for name, kind in kinds.items()})
        for extra in ("stream", "index"):
            lines.append(
                f"{database}, with one {extra}: {_against(measurements[f'Put{extra}'], measurements['Put'])}"
            )
    return f"PutItem of 1 KB against the same without, 16 connections. {'. '.join(lines)}."


def _servers(bench: Bench, name: str) -> Iterator[tuple[str, Running]]:
    """Yield a server on SQLite, then one on PostgreSQL."""
    for database, contestant in (("SQLite FULL", "tablegate-full"), ("PostgreSQL", "tablegate-postgres")):
        [ours] = [
            contestant_of_name for contestant_of_name in CONTESTANTS if contestant_of_name.name == contestant
        ]
        running = ours.start(bench.fresh(f"{name}-{contestant}"))
        try:
            yield database, running
        finally:
            running.stop()


Measured = tuple[float, float]
"""(requests a second, microseconds of CPU for each)."""


def _puts(
    bench: Bench, running: Running, kinds: dict[str, tuple[Callable[[int], str], str]]
) -> dict[str, Measured]:
    """Return medians of puts of new items in different tables: name -> (partition of a number, extra)."""
    requests = {}
    for name, (choose, extra) in kinds.items():
        dynamodb.make_table(Client(running.port), name, extra=extra)
        requests[name] = dynamodb.put(name, choose)
    measurements: dict[str, list[Measured]] = {name: [] for name in kinds}
    for number in range(_ROUNDS):
        for name, request in requests.items():
            puts = [
                request(running.port, item_number)
                for item_number in range(number * 1_000, number * 1_000 + 1_000)
            ]
            measurements[name].append(_measure(bench, running.tree, puts, running.port, 16)[:2])
    return {
        name: (
            statistics.median(rate for rate, _ in item_number),
            statistics.median(cost for _, cost in item_number),
        )
        for name, item_number in measurements.items()
    }


def _against(one: Measured, other: Measured) -> str:
    """Return the relation of two measurements as text."""
    (rate, cost), (other_rate, other_cost) = one, other
    return (
        f"{rate / other_rate:.2f} of the rate, {cost / other_cost:.2f} of the CPU "
        f"({rate:,.0f} against {other_rate:,.0f}/s and {cost:.0f} against {other_cost:.0f} us)"
    )


# Filters


def filtering(bench: Bench) -> str:
    """Compare two filtered Scans with 0.1 % matches.

    SQL evaluates the first filter on the stored bytes. The second is written so that every row must be fetched and
    evaluated.
    """
    port, process = start_ours(bench.fresh("filtering"))
    dynamodb.prepare_scan(Client(port))
    measurements: dict[str, list[tuple[float, float]]] = {"visits = :v": [], "NOT visits <> :v": []}
    for _ in range(_ROUNDS):
        for expression, measured in measurements.items():
            requests = [dynamodb.scan_request(port, number, expression) for number in range(200)]
            measured.append(_measure(bench, Tree([process.pid]), requests, port, 16)[:2])
    process.stop()
    pushed, evaluated = (
        tuple(statistics.median(figures[at] for figures in measured) for at in (0, 1))
        for measured in measurements.values()
    )
    return (
        f"Filtered Scan, 0.1 % of 1,000 items, 16 connections, judged in SQL against evaluated row by row: "
        f"{pushed[0] / evaluated[0]:.1f} times the rate ({pushed[0]:,.0f} against {evaluated[0]:,.0f}/s, CPU "
        f"{pushed[1]:,.0f} against {evaluated[1]:,.0f} us)."
    )


def _measure(
    bench: Bench, tree: Tree, requests: list[bytes], port: int, connections: int
) -> tuple[float, float, Slice]:
    """Return (requests a second, microseconds of CPU for each, the slice)."""
    before = tree.cpu_seconds()
    measurement = bench.generator.run(requests, Aim(port, connections, seconds=300))
    assert not measurement.unexpected, measurement.refusals[:1]
    cost = (tree.cpu_seconds() - before) / measurement.completed * 1e6
    return measurement.completed / measurement.seconds, cost, measurement


SINGLE: dict[str, Callable[[Bench], str]] = {
    "start": start,
    "memory": memory,
    "million": million,
    "writers": writers,
    "partition": partition,
    "extras": extras,
    "growth": growth,
    "size": size,
    "filtering": filtering,
    "background": lambda bench: measure(bench.fresh("background")),
}

"""The load that a standby takes from its primary: GetItem on the primary alone and on both, with the age of the data
read.

    python -m benchmarks.replicas PRIMARY STANDBY [--seconds 4] [--lag-ms 1000]

The arguments are URLs of one migrated database without other users, at its primary and at a standby. Each gateway is
a process. Its engine is called as in the server's tick, with its share of the requests of 16 or 64 connections in a
list. So HTTP does not hide the databases' cost. In the measurement of both, every second gateway uses the standby.
CPU of the databases is measured if their processes are on this machine. On few cores, shared with the gateways, CPU
is more meaningful than throughput.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from typing import Any

from benchmarks.distributed import Entry, processes_of
from benchmarks.processes import Tree
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.server.background import TaskThread, replica_check
from tablegate.gateway.store.opening import open_database, open_replica
from tablegate.gateway.store.replicas import Standby, Standbys
from tablegate.gateway.store.store import Store

_GATEWAYS = 4
_WARM_S = 1.5


class Gateway(Entry):
    """An engine on the primary, with or without a standby for eventually consistent reads."""

    def __init__(self, primary: str, standby: str | None, lag_ms: int) -> None:
        database = open_database(primary)
        replicas = None
        if standby is not None:
            replicas = Standbys(database, [Standby(open_replica(standby), "standby")], lag_ms, wait_ms=0)
            self._watch = TaskThread("replicas", [replica_check(replicas)], set())
            self._watch.start()
        self.engine = new_engine(Store(database), EngineOptions(), replicas=replicas)
        self._numbers = iter(range(1 << 60))
        self.table = self._created_table("read")
        self.written = self.table

    def get_eventually_consistent(self) -> Get:
        """Return a GetItem without ConsistentRead."""
        return self.get()._replace(may_be_old=True)


def reading(primary: str, standby: str | None, lag_ms: int, together: int, until: Any, counter: Any) -> None:
    """Run lists of reads in a process until `until` is set, and store their number."""
    gateway = Gateway(primary, standby, lag_ms)
    began = time.monotonic()
    while time.monotonic() < began + _WARM_S:
        gateway.run([gateway.get_eventually_consistent() for _ in range(together)], together)
    number = 0
    while not until.is_set():
        gateway.run([gateway.get_eventually_consistent() for _ in range(together)], together)
        number += together
        counter.value = number


def ages(primary: str, standby: str, lag_ms: int, until: Any, results: Any) -> None:
    """Write a row repeatedly and read it with eventual consistency. Store the ages of the reads in milliseconds."""
    gateway = Gateway(primary, standby, lag_ms)
    time.sleep(_WARM_S)
    key = gateway.table.key_schema.key({"p": text("age"), "s": decimal(0)})
    measured = []
    while not until.is_set():
        contents = gateway.write(gateway.table, "age", 0)
        gateway.run([WriteGroup((contents,))], 1)
        [row] = gateway.engine.run([Get(gateway.table, key.position)])
        written_at = time.monotonic()
        while not until.is_set():
            [old] = gateway.engine.run([Get(gateway.table, key.position, may_be_old=True)])
            if old is not None and old.modified_at >= row.modified_at:
                measured.append((time.monotonic() - written_at) * 1000)
                break
    results.send(measured)


def measured(
    primary: str, standby: str | None, together: int, seconds: float, lag_ms: int
) -> tuple[float, list[float]]:
    """Return (requests a second, microseconds of CPU for a request by node, primary first)."""
    until = multiprocessing.Event()
    counters = [multiprocessing.Value("q", 0) for _ in range(_GATEWAYS)]
    gateways = [
        multiprocessing.Process(
            target=reading,
            args=(primary, standby if at % 2 else None, lag_ms, together // _GATEWAYS, until, counter),
        )
        for at, counter in enumerate(counters)
    ]
    for gateway in gateways:
        gateway.start()
    while not all(counter.value for counter in counters):
        time.sleep(0.05)
    trees = [Tree([*processes_of(url)]) for url in (primary, standby) if url is not None]
    before = sum(counter.value for counter in counters)
    cpu = [tree.cpu_seconds() for tree in trees]
    began = time.perf_counter()
    time.sleep(seconds)
    took = time.perf_counter() - began
    request_count = sum(counter.value for counter in counters) - before
    used = [(tree.cpu_seconds() - used) / request_count * 1e6 for tree, used in zip(trees, cpu, strict=True)]
    until.set()
    for gateway in gateways:
        gateway.join()
    return request_count / took, used


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs=2, metavar=("PRIMARY", "STANDBY"))
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--lag-ms", type=int, default=1000)
    options = parser.parse_args()
    primary, standby = options.urls
    Entry("filled", primary, []).engine.close()
    time.sleep(1.0)  # wait for the standby
    print("| connections | nodes | requests/s | CPU us a request: primary, standby |\n|---|---|---|---|")
    for together in (16, 64):
        for other in (None, standby):
            rate, used = measured(primary, other, together, options.seconds, options.lag_ms)
            nodes = "primary" if other is None else "both"
            print(
                f"| {together} | {nodes} | {rate:,.0f} | {', '.join(f'{cpu_us:.1f}' for cpu_us in used)} |",
                flush=True,
            )
    until = multiprocessing.Event()
    receiving, sending = multiprocessing.Pipe(False)
    reader = multiprocessing.Process(target=ages, args=(primary, standby, options.lag_ms, until, sending))
    reader.start()
    measured(primary, standby, 64, options.seconds, options.lag_ms)
    until.set()
    ages_ms = sorted(receiving.recv())
    reader.join()
    print(
        f"\nUnder 64 connections {len(ages_ms)} writes were seen on the standby after {statistics.median(ages_ms):.1f} ms"
        f" (median), {ages_ms[-1]:.1f} ms at most; the bound is {options.lag_ms} ms"
    )


if __name__ == "__main__":
    main()

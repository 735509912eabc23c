"""The cost of point-in-time recovery: PutItem into tables with and without it on one server, in pairs.

`python -m benchmarks.recovery [--rounds 15] [--seconds 0.5] [--connections 16]` prints a table for SQLite FULL and
PostgreSQL, with new and existing items. It has microseconds of CPU of all server processes for a put, without and
with recovery. It also has the relative speed with recovery, by CPU and by requests a second. Figures are medians of
rounds with their intervals (comparisons.py). Both have a slice in each round, one right after the other.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import dynamodb, machine, signing
from benchmarks.comparisons import Slices, interval
from benchmarks.contestants import CONTESTANTS, Workspace
from benchmarks.generator import Generator
from benchmarks.rounds import AtRound, Player
from benchmarks.signing import Client
from benchmarks.workloads import Workload

_ITEMS = 1_000
_ON = {"PointInTimeRecoveryEnabled": True}


def _prepare(table: str, is_kept: bool) -> Callable[[Client], None]:
    def prepare(client: Client) -> None:
        dynamodb.make_table(client, table)
        dynamodb.load(client, table, (_item(number) for number in range(_ITEMS)))
        if is_kept:
            request = {"TableName": table, "PointInTimeRecoverySpecification": _ON}
            dynamodb.call(client, "UpdateContinuousBackups", request)

    return prepare


def _item(number: int) -> dict[str, Any]:
    return dynamodb.item(dynamodb.partition_of(number), number)


def _workload(table: str, is_kept: bool, is_new: bool) -> Workload:
    def request(port: int, number: int) -> bytes:
        item = _item(_ITEMS + number if is_new else number * 7919 % _ITEMS)
        return signing.dynamodb(port, "PutItem", json.dumps({"TableName": table, "Item": item}).encode())

    title = "new items" if is_new else "items that are there"
    return Workload(table, title, request, _prepare(table, is_kept), lambda body: body == b"{}")


def pairs() -> list[tuple[Workload, Workload]]:
    """Return (without recovery, with recovery) for each kind of put."""
    return [
        (
            _workload(f"{kind}Without", is_kept=False, is_new=is_new),
            _workload(f"{kind}With", is_kept=True, is_new=is_new),
        )
        for kind, is_new in (("New", True), ("Old", False))
    ]


def measure(
    player: Player, generator: Generator, rounds: int, seconds: float, connections: int
) -> Iterator[str]:
    """Yield lines of the table."""
    for pair in pairs():
        for workload in pair:
            assert player.prepare(workload), player.absent
        for number in range(rounds):
            for workload in pair if number % 2 else reversed(pair):
                player.play(generator, workload, connections, AtRound(number, seconds))
        without, with_history = (player.slices[workload.name, connections] for workload in pair)
        yield _line(f"{player.contestant.title}, {pair[0].title}", without, with_history)


def _line(name: str, without: Slices, with_history: Slices) -> str:
    cpu = interval([without[number][1] / with_history[number][1] for number in with_history])
    rate = interval([with_history[number][0] / without[number][0] for number in with_history])
    us = [statistics.median(cost for _, cost in slices.values()) for slices in (without, with_history)]
    return f"| {name} | {us[0]:.0f} | {us[1]:.0f} | {cpu} | {rate} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    cores = machine.cores()
    print("| puts | CPU us, without | with | as fast by CPU | by requests a second |\n|---|---|---|---|---|")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        generator = Generator(cores.generator, folder)
        for contestant in CONTESTANTS:
            if contestant.name in ("tablegate-full", "tablegate-postgres"):
                place = folder / contestant.name
                place.mkdir()
                running = contestant.start(Workspace(cores.server, place))
                stack.callback(running.stop)
                player = Player(contestant, running)
                for line in measure(player, generator, options.rounds, options.seconds, options.connections):
                    print(line, flush=True)


if __name__ == "__main__":
    main()

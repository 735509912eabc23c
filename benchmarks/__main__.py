"""The command line: `make bench ARGS="..."`.

make bench                                              everything, into build/performance-all.md and the pages
make bench ARGS="--contestants tablegate-full,dynalite --workloads put,get --connections 16 --rounds 21"
make bench ARGS="--quick"                               under two minutes, printed only
make bench-against REF=main~50                          this commit beside an earlier commit, printed only
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import azuretable, comparisons, databases, dynamodb, machine, report, tablestore
from benchmarks.contestants import AZURE, CONTESTANTS, DYNAMODB, TABLESTORE, Contestant, Workspace, of_commit
from benchmarks.generator import Generator, is_compiled
from benchmarks.installing import Absent
from benchmarks.processes import StartFailed
from benchmarks.rounds import Plan, Player, play_all
from benchmarks.single import SINGLE, Bench
from benchmarks.workloads import Workload

_FEWEST_ROUNDS = 6
WORKLOADS: dict[str, Sequence[Workload]] = {
    DYNAMODB: dynamodb.WORKLOADS,
    AZURE: azuretable.WORKLOADS,
    TABLESTORE: tablestore.WORKLOADS,
}


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and write the results unless `--dry` is given."""
    options = _options(arguments)
    # SIGTERM must stop the started servers too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cores = machine.cores()
    os.sched_setaffinity(0, cores.generator)
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-", dir=options.data))
    memory = Path(
        tempfile.mkdtemp(prefix="tablegate-bench-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    )
    try:
        generator = Generator(cores.generator, memory)
        header = _header(generator, cores, folder)
        print(header, flush=True)
        if not options.dry:
            report.write("machine", header)
        _measure_ours(options, Bench(generator, Workspace(cores.server, folder / "single")))
        contestants = [contestant for contestant in CONTESTANTS if contestant.name in options.contestants]
        if options.against:
            contestants.append(of_commit(options.against, options.against_on, folder / "other commit"))
        for dialect in options.dialects:
            workspace = Workspace(cores.server, folder)
            _measure(dialect, contestants, options, generator, workspace)
        if not options.dry:
            report.write_all()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = [*(entry.name for entry in CONTESTANTS), *databases.PLAYERS]
    parser.add_argument(
        "--dialects", type=_names, default=list(WORKLOADS), help=f"dialects, from {', '.join(WORKLOADS)}"
    )
    parser.add_argument(
        "--contestants", type=_names, default=names, help=f"contestants, from {', '.join(names)}"
    )
    workloads = sorted({entry.name for choices in WORKLOADS.values() for entry in choices})
    parser.add_argument(
        "--workloads", type=_names, default=workloads, help=f"workloads, from {', '.join(workloads)}"
    )
    parser.add_argument(
        "--single",
        type=_names,
        default=list(SINGLE),
        help=f"figures of this server alone, from {', '.join(SINGLE)}, or none",
    )
    parser.add_argument(
        "--connections", type=_numbers, default=[1, 16], help="numbers of connections (default 1,16)"
    )
    parser.add_argument("--rounds", type=int, default=21, help="number of rounds. Intervals need 6 or more")
    parser.add_argument(
        "--seconds", type=float, default=0.25, help="approximate length of a slice in seconds"
    )
    parser.add_argument("--against", default="", help="earlier commit to compare with")
    parser.add_argument(
        "--against-on", default="sqlite", choices=("sqlite", "postgresql"), help="database of that commit"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=None,
        help="folder for databases (default: the system's temporary folder)",
    )
    parser.add_argument(
        "--dry", action="store_true", help="print the results without writing them to build/ and docs/"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few rounds of a few contestants at 16 connections, without writing",
    )
    options = parser.parse_args(arguments)
    if options.quick:
        quick = {"connections": [16], "rounds": 7, "seconds": 0.2, "dry": True, "single": []}
        quick["contestants"] = [
            name for name in options.contestants if name in ("tablegate-full", "dynalite", "azurite")
        ]
        vars(options).update(quick)
    if not options.dry and not machine.is_python_optimised():
        parser.error(
            f"{sys.executable} was built without --enable-optimizations and is slower than the Python of users: "
            "give --dry, or use another one (`make bench PYTHON=/usr/bin/python3`)"
        )
    for chosen, choices in (
        (options.contestants, names),
        (options.workloads, workloads),
        (options.dialects, list(WORKLOADS)),
        (options.single, list(SINGLE)),
    ):
        unknown = set(chosen) - set(choices)
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(choices)}")
    if options.rounds < _FEWEST_ROUNDS:
        parser.error(f"--rounds: {_FEWEST_ROUNDS} or more")
    return options


def _names(text: str) -> list[str]:
    return [] if text == "none" else text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _header(generator: Generator, cores: machine.Cores, folder: Path) -> str:
    fsync = machine.measure_fsync(folder)
    reached = ", ".join(f"{rate:,.0f} at {number}" for number, rate in generator.reach(cores.server).items())
    language = "C" if is_compiled() else "Python, slow because no C compiler was found"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M')}. {machine.describe()}. Servers on core {_list(cores.server)}, "
        f"generator on core {_list(cores.generator)}.\n"
        f"fsync of a 4 KB page: median {fsync.median_ms:.2f} ms, p99 {fsync.p99_ms:.2f} ms.\n"
        f"Load generator ({language}) alone, requests/s by connections: {reached}."
    )


def _list(cores: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(cores)))


def _measure_ours(options: argparse.Namespace, bench: Bench) -> None:
    """Measure the figures of this server alone."""
    lines = []
    for name in options.single:
        lines.append(f"- {SINGLE[name](bench)}")
        print(lines[-1], flush=True)
        shutil.rmtree(bench.workspace.folder, ignore_errors=True)
    if lines and not options.dry:
        report.write("single", "\n".join(lines), report.LARGE)


def _measure(
    dialect: str,
    contestants: Sequence[Contestant],
    options: argparse.Namespace,
    generator: Generator,
    workspace: Workspace,
) -> None:
    """Start the contestants of one dialect, run the rounds, stop them and report."""
    workloads = [each for each in WORKLOADS[dialect] if each.name in options.workloads]
    players: list[Player] = []
    notes: list[str] = []
    try:
        for each in contestants:
            if dialect in each.dialects:
                try:
                    running = each.start(Workspace(workspace.cores, workspace.folder / dialect / each.name))
                    players.append(Player(each, running))
                except (Absent, StartFailed) as reason:
                    notes.append(f"Without {each.title}: {reason}")
        for name, make in databases.PLAYERS.items():
            if name in options.contestants and dialect in (DYNAMODB, TABLESTORE):
                players.append(make(Workspace(workspace.cores, workspace.folder / dialect / name)))
        if players and workloads:
            plan = Plan(options.rounds, tuple(options.connections), options.seconds)
            play_all(generator, players, workloads, plan)
    finally:
        for player in players:
            player.running.stop()
    notes += sorted(
        f"{each.contestant.title} has no {name}: {why}"
        for each in players
        for name, why in each.absent.items()
    )
    _report(dialect, players, options, notes)


def _report(dialect: str, players: list[Player], options: argparse.Namespace, notes: list[str]) -> None:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    measured = f"{time.strftime('%Y-%m-%d')}, {commit.stdout.strip() or 'no commit'}"
    results = []
    for mine in players:
        for other in players:
            if mine.contestant.is_ours and not other.contestant.is_ours:
                for (workload, connections), ours in mine.slices.items():
                    theirs = other.slices.get((workload, connections), {})
                    name = (dialect, workload, connections, mine.contestant.name, other.contestant.name)
                    comparison = comparisons.compare(name, ours, theirs, measured)
                    results += [comparison] if comparison is not None else []
    print("\n\n".join([report.everything(results), report.memory(players), *notes]), flush=True)
    if not options.dry:
        comparisons.record(results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

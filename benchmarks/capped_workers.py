"""Reads of an SQLite gateway with several processes against one with one process.

A control group limits each process to the same share of a core (the kernel's CPU controller, version 1, as root). So
a machine of two cores shows the effect of more cores.

    python -m benchmarks.capped_workers --workers 3 --share 0.1 --rounds 21

Short slices alternate, as in the other benchmarks (comparisons.py). The results are requests a second and CPU for
each. The share is small, so that neither the generator nor other load of the machine is the bottleneck.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import comparisons, dynamodb, report
from benchmarks.contestants import Contestant, Running, Workspace, start_ours
from benchmarks.generator import Generator
from benchmarks.processes import Tree
from benchmarks.rounds import Plan, Player, play_all

_GROUPS = Path("/sys/fs/cgroup/cpu")
_PERIOD_US = 20_000
_READS = ("get", "query")


@contextlib.contextmanager
def capped(pids: list[int], share: float) -> Iterator[None]:
    """Limit each of these processes to a share of one core."""
    groups = []
    try:
        for pid in pids:
            group = _GROUPS / f"tablegate-bench-{pid}"
            group.mkdir()
            groups.append(group)
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(round(_PERIOD_US * share)))
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for pid, group in zip(pids, groups, strict=False):
            with contextlib.suppress(OSError):
                (_GROUPS / "cgroup.procs").write_text(str(pid))
            with contextlib.suppress(OSError):
                group.rmdir()


def main() -> None:
    """Print the comparison, and record it unless --dry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--connections", type=int, default=48)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    cores = frozenset(os.sched_getaffinity(0))
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    players, pids = [], []
    try:
        for number in (options.workers, 1):
            port, process = start_ours(Workspace(cores, folder / str(number)), "--workers", str(number))
            time.sleep(3.0)  # all of them have opened the database
            name = f"tablegate-workers-{number}"
            running = Running(port, process)
            players.append(Player(Contestant(name, name, (), "disk, fsync", _never), running))
            pids += [pid for pid in Tree([process.pid]).members() if pid != process.pid or number == 1]
        workloads = [each for each in dynamodb.WORKLOADS if each.name in _READS]
        for player in players:
            for workload in workloads:
                assert player.prepare(workload), player.absent
        with capped(pids, options.share):
            plan = Plan(options.rounds, (options.connections,), options.seconds)
            play_all(Generator(cores, folder), players, workloads, plan)
        several, one = players
        measured = f"{time.strftime('%Y-%m-%d')}, {options.share:.0%} of a core for each process"
        results = []
        for at, slices in several.slices.items():
            name_of = ("dynamodb", *at, several.contestant.name, one.contestant.name)
            comparison = comparisons.compare(name_of, slices, one.slices[at], measured)
            results += [comparison] if comparison is not None else []
        print(report.everything(results))
        if not options.dry:
            comparisons.record(results)
    finally:
        for player in players:
            player.running.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _never(workspace: Workspace) -> Running:
    raise AssertionError("started here")


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]

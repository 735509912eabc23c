"""Time and CPU from each server's start to its first successful reply, in interleaved rounds.

`python -m benchmarks.starting [--rounds 5] [--before FOLDER]` prints the medians. `--before` adds the server of
another working tree of this project. Servers that cannot be installed are reported and omitted.
"""

from __future__ import annotations

import argparse
import http.client
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.contestants import AZURE, CONTESTANTS, Running, Workspace
from benchmarks.installing import Absent
from benchmarks.processes import Process, StartFailed, free_port

_ROOT = Path(__file__).parent.parent
_LIST_TABLES = {
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20261122T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20261122/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
}
_OTHERS = ("moto", "dynalite", "dynamodb-local", "azurite")
_PATIENCE_S = 60.0
Start = Callable[[Workspace], Running]


def _ours(root: Path, *flags: str) -> Start:
    def start(workspace: Workspace) -> Running:
        port = free_port()
        command = [sys.executable, "-m", "tablegate", "serve", "--port", str(port), *flags]
        process = Process(command, workspace.cores, workspace.folder, {"PYTHONPATH": str(root)})
        process.wait_for_port(port)
        return Running(port, process)

    return start


def _answers(port: int, is_azure: bool) -> bool:
    """True if the server replies as expected: with a list of tables, or with a rejection of an unsigned request."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    try:
        if is_azure:
            client.request("GET", "/devstoreaccount1/Tables")
            return client.getresponse().status in (401, 403)
        client.request("POST", "/", b"{}", _LIST_TABLES)
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()


def _measure(start: Start, is_azure: bool, folder: Path) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and MB of memory at the first reply. Raises Absent, StartFailed."""
    cores = frozenset(os.sched_getaffinity(0))
    began = time.monotonic()
    running = start(Workspace(cores, folder))
    try:
        while not _answers(running.port, is_azure):
            if time.monotonic() - began > _PATIENCE_S:
                raise StartFailed("no successful reply")
            time.sleep(0.01)
        took = time.monotonic() - began
        return took, running.tree.cpu_seconds(), running.tree.memory_mb()[0]
    finally:
        running.stop()


def _starters(before: Path | None, folder: Path) -> dict[str, tuple[Start, bool]]:
    database = f"sqlite:///{folder / 'kept.sqlite'}"
    starters: dict[str, tuple[Start, bool]] = {
        "tablegate --memory": (_ours(_ROOT, "--memory"), False),
        "tablegate, existing file": (_ours(_ROOT, "--database", database), False),
    }
    if before is not None:
        starters["tablegate before, --memory"] = (_ours(before, "--memory"), False)
    for contestant in CONTESTANTS:
        if contestant.name in _OTHERS:
            starters[contestant.title] = (contestant.start, AZURE in contestant.dialects)
    return starters


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starting")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    figures: dict[str, list[tuple[float, float, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="tablegate-bench-") as name:
        folder = Path(name)
        starters = _starters(options.before, folder)
        for number in range(options.rounds + 1):  # the first fills caches of files, and is not counted
            for title, (start, is_azure) in [*starters.items()]:
                try:
                    measurement = _measure(start, is_azure, folder / f"{number}-{len(title)}")
                except (Absent, StartFailed) as error:
                    print(f"{title}: omitted: {error}", file=sys.stderr)
                    del starters[title]
                    continue
                if number:
                    figures.setdefault(title, []).append(measurement)
    print("| to the first reply, median | seconds | CPU seconds | MB |\n|---|---|---|---|")
    for title, rounds in figures.items():
        seconds, cpu, memory = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {title} | {seconds:.2f} | {cpu:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    main()

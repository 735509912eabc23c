"""Latency of a client while attackers send expensive requests to a server with `--auth strict`.

`python -m benchmarks.attackers [--attackers 10] [--reads 1000] [--only WORD ...]` prints the median, the 99th
percentile and the maximum of a signed GetItem for each kind of attack. There are two figures: wall time, and the
server's CPU time from the request to its reply. The client has real-time priority if the system allows it, so that it
reads each reply at once. Then the CPU time does not depend on other load of the machine.
`--against REF` also measures an earlier commit, attack by attack in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from benchmarks.attacks import prepare, signed_attacks, unsigned_attacks
from benchmarks.contestants import Workspace, checkout_of, start_ours
from benchmarks.dynamodb import call, item, key, make_table
from benchmarks.processes import Tree
from benchmarks.signing import AWS_KEY_ID, AWS_SECRET, HOST, Client
from benchmarks.workloads import Unsupported

_ROOT = Path(__file__).parent.parent
_CORES = sorted(os.sched_getaffinity(0))  # before this process is restricted to one of them
_READS_MAX_S = 20.0
_WARM_UP_MAX_S = 3.0  # pipelined requests without credentials are answered much later


def _set_priority(priority: int) -> None:
    """Give this process a real-time priority, or an ordinary one for 0. Without the permission, keep the ordinary one."""
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, policy, os.sched_param(priority))


def attack(port: int, request: bytes, threads: int, answer_count: Synchronized[int]) -> None:
    """Send a request repeatedly on several connections. Runs in a process of its own until it is killed."""

    _set_priority(0)

    def repeat() -> None:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, port)) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            with answer_count.get_lock():
                answer_count.value += 1

    for _ in range(threads):
        threading.Thread(target=repeat).start()


def reads(client: Client, server: Tree, count: int) -> tuple[list[float], list[float]]:
    """Return sorted (wall, server CPU) times in ms of up to `count` GetItems on one connection."""
    wall: list[float] = []
    cpu: list[float] = []
    get_request = {"TableName": "things", "Key": key("part0000", 1)}
    call(client, "GetItem", get_request)
    end = time.monotonic() + _READS_MAX_S
    for _ in range(count):
        if cpu and time.monotonic() > end:
            break
        cpu_before, began = server.cpu_seconds(), time.perf_counter()
        try:
            call(client, "GetItem", get_request)
        except Unsupported as refusal:
            print(f"    refused: {refusal}", flush=True)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((server.cpu_seconds() - cpu_before) * 1000)
    return sorted(wall), sorted(cpu)


@contextlib.contextmanager
def serving(root: Path = _ROOT) -> Iterator[tuple[Client, Tree]]:
    """Start a server with two credentials and tables, on a core of its own if there are two."""
    database = "sqlite:///bench.sqlite"
    with tempfile.TemporaryDirectory() as folder:
        own = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        added = ("credentials", "add", AWS_KEY_ID, "--secret", AWS_SECRET, "--all", "--scheme")
        for command in (("migrate",), (*added, "aws"), (*added, "tablestore")):
            subprocess.run(
                [sys.executable, "-m", "tablegate", *command, "--database", database],
                cwd=folder, env={**own, "PYTHONPATH": str(root)}, check=True, capture_output=True,
            )  # fmt: skip
        workspace = Workspace(frozenset(_CORES[:1]), Path(folder))
        flags = ("--auth", "strict", "--max-heads-per-client", "1000")
        port, process = start_ours(workspace, *flags, database=database, root=root)
        client = Client(port)
        try:
            os.sched_setaffinity(0, _CORES[1:] or _CORES)
            make_table(client, "things")
            call(client, "PutItem", {"TableName": "things", "Item": item("part0000", 1)})
            prepare(client)
            yield client, Tree([process.pid])
        finally:
            client.close()
            process.stop()


def measure(client: Client, server: Tree, name: str, request: bytes, options: argparse.Namespace) -> str:
    """Return a line of the table: the reads beside one kind of attack."""
    answer_count = multiprocessing.Value("i", 0)
    attacker = multiprocessing.Process(
        target=attack, args=(client.port, request, options.attackers, answer_count)
    )
    if request:
        attacker.start()
        ready_at = time.monotonic() + _WARM_UP_MAX_S
        while answer_count.value < options.attackers and time.monotonic() < ready_at:
            time.sleep(0.01)
    first, began = answer_count.value, time.perf_counter()
    _set_priority(1)
    wall, cpu = reads(client, server, options.reads)
    _set_priority(0)
    rate = (answer_count.value - first) / (time.perf_counter() - began)
    if request:
        attacker.kill()
        attacker.join()
    middle, late = len(wall) // 2, len(wall) * 99 // 100
    figures = "".join(f"{times[at]:9.2f}" for times in (wall, cpu) for at in (middle, late, -1))
    return f"{name:44}{figures}{rate:9.1f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attackers", description=__doc__)
    parser.add_argument("--attackers", type=int, default=10)
    parser.add_argument("--reads", type=int, default=1000)
    parser.add_argument(
        "--only", nargs="*", default=[""], help="run only attacks with one of these words in the name"
    )
    parser.add_argument("--against", default="", help="also measure this earlier commit")
    options = parser.parse_args()
    print(
        f"load {os.getloadavg()[0]:.1f}; ms: wall p50, p99, max; CPU of the server p50, p99, max; attacks a second"
    )
    with contextlib.ExitStack() as stack:
        servers = [("", *stack.enter_context(serving()))]
        if options.against:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            checkout_of(options.against, folder)
            servers.insert(0, (f" ({options.against})", *stack.enter_context(serving(folder))))
        names = {"nothing": b"", **unsigned_attacks(), **signed_attacks(servers[0][1].port)}
        for name in names:
            if any(word in name for word in options.only):
                for suffix, client, server in servers:
                    requests = {"nothing": b"", **unsigned_attacks(), **signed_attacks(client.port)}
                    print(measure(client, server, name + suffix, requests[name], options), flush=True)


if __name__ == "__main__":
    main()

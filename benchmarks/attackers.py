"""Latency of a client while attackers without credentials send expensive requests to a server with `--auth strict`.

`python -m benchmarks.attackers [--attackers 10] [--reads 1000]` prints the median and the 99th percentile of a
signed GetItem for each kind of attack. There are two figures: wall time, and the server's CPU time from the request
to its reply. The second does not depend on other load of the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
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

from benchmarks.contestants import Workspace, start_ours
from benchmarks.dynamodb import call, item, key, make_table
from benchmarks.processes import Tree
from benchmarks.signing import AWS_KEY_ID, AWS_SECRET, HOST, Client, raw

_ROOT = Path(__file__).parent.parent


def attacks() -> dict[str, bytes]:
    """Return requests without credentials by name."""
    json_type = ("Content-Type", "application/x-amz-json-1.0")
    head = [("Host", HOST), json_type, ("X-Amz-Target", "DynamoDB_20120810.PutItem")]
    bomb = gzip.compress(b"[" + b"{}," * 5_100_000 + b"{}]", 9)
    form = [("Host", HOST), ("Content-Type", "application/x-www-form-urlencoded")]
    return {
        "gzip bombs of 15 MB": raw("POST", "/", [*head, ("Content-Encoding", "gzip")], bomb),
        "bodies of 10 MB": raw("POST", "/", head, b"[" + b"{}," * 3_300_000 + b"{}]"),
        "bodies of 60 KB": raw("POST", "/", head, b"[" + b"{}," * 20_000 + b"{}]"),
        "forms of 15 MB": raw("POST", "/_tablegate/console/sign-in", form, b"a=1&" * 3_900_000),
        "forms of 8 KB": raw("POST", "/_tablegate/console/sign-in", form, b"a=1&" * 2_000),
    }


def attack(port: int, request: bytes, threads: int, answer_count: Synchronized[int]) -> None:
    """Send a request repeatedly on several connections. Runs in a process of its own until it is killed."""

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
    """Return sorted (wall, server CPU) times in ms of `count` GetItems on one connection."""
    wall, cpu = [], []
    get_request = {"TableName": "things", "Key": key("part0000", 1)}
    call(client, "GetItem", get_request)
    for _ in range(count):
        cpu_before, began = server.cpu_seconds(), time.perf_counter()
        call(client, "GetItem", get_request)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((server.cpu_seconds() - cpu_before) * 1000)
    return sorted(wall), sorted(cpu)


@contextlib.contextmanager
def serving() -> Iterator[tuple[Client, Tree]]:
    """Start a server with one credential and a table, on a core of its own if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    database = "sqlite:///bench.sqlite"
    with tempfile.TemporaryDirectory() as folder:
        own = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        subprocess.run(
            [sys.executable, "-m", "tablegate", "credentials", "add", AWS_KEY_ID, "--secret", AWS_SECRET, "--all",
             "--database", database],
            cwd=folder, env={**own, "PYTHONPATH": str(_ROOT)}, check=True, capture_output=True,
        )  # fmt: skip
        workspace = Workspace(frozenset(cores[:1]), Path(folder))
        flags = ("--auth", "strict", "--max-heads-per-client", "1000")
        port, process = start_ours(workspace, *flags, database=database)
        client = Client(port)
        try:
            os.sched_setaffinity(0, cores[1:] or cores)
            make_table(client, "things")
            call(client, "PutItem", {"TableName": "things", "Item": item("part0000", 1)})
            yield client, Tree([process.pid])
        finally:
            client.close()
            process.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attackers", description=__doc__)
    parser.add_argument("--attackers", type=int, default=10)
    parser.add_argument("--reads", type=int, default=1000)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; ms: wall p50, p99; CPU of the server p50, p99; attacks a second")
    with serving() as (client, server):
        for name, request in {"nothing": b"", **attacks()}.items():
            answer_count = multiprocessing.Value("i", 0)
            attacker = multiprocessing.Process(
                target=attack, args=(client.port, request, options.attackers, answer_count)
            )
            if request:
                attacker.start()
                while answer_count.value < options.attackers:
                    time.sleep(0.01)
            first, began = answer_count.value, time.perf_counter()
            wall, cpu = reads(client, server, options.reads)
            rate = (answer_count.value - first) / (time.perf_counter() - began)
            if request:
                attacker.kill()
                attacker.join()
            middle, late = len(wall) // 2, len(wall) * 99 // 100
            print(
                f"{name:22}{wall[middle]:9.2f}{wall[late]:9.2f}{cpu[middle]:9.2f}{cpu[late]:9.2f}{rate:9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""What a neighbour waits for while attackers without credentials send expensive requests to a server with `--auth strict`.

`python -m benchmarks.attackers [--attackers 10] [--reads 1000]` prints, for each kind of attack, the median and the 99th
percentile of a signed GetItem. Each in two figures: wall time, and CPU time that the server spent from the request to its reply.
The second does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import json
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

from benchmarks.processes import Process, Tree, free_port
from benchmarks.signing import AWS_KEY_ID, AWS_SECRET, HOST, dynamodb, raw

_ROOT = Path(__file__).parent.parent
_TABLE = {
    "TableName": "things",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
}
_KEY = {"TableName": "things", "Key": {"p": {"S": "1"}}}
_ITEM = {"TableName": "things", "Item": {"p": {"S": "1"}, "v": {"S": "x" * 500}}}


def attacks() -> dict[str, bytes]:
    """Requests without credentials, by name."""
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


def attack(port: int, request: bytes, threads: int, answered: Synchronized[int]) -> None:
    """Send a request again and again on as many connections. Runs in a process of its own, until it is killed."""

    def repeat() -> None:
        while True:
            with contextlib.suppress(OSError), socket.create_connection((HOST, port)) as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            with answered.get_lock():
                answered.value += 1

    for _ in range(threads):
        threading.Thread(target=repeat).start()


def call(connection: http.client.HTTPConnection, port: int, operation: str, body: object) -> None:
    """Send a signed request; its reply must be 200."""
    if connection.sock is None:
        connection.connect()
    connection.sock.sendall(dynamodb(port, operation, json.dumps(body).encode()))
    reply = http.client.HTTPResponse(connection.sock)
    reply.begin()
    text = reply.read()
    if reply.status != 200:
        raise SystemExit(f"{operation}: {reply.status} {text[:300]!r}")


def reads(port: int, server: Tree, count: int) -> tuple[list[float], list[float]]:
    """(wall, CPU of the server) in ms of so many GetItems on one connection, sorted."""
    wall, cpu = [], []
    connection = http.client.HTTPConnection(HOST, port)
    call(connection, port, "GetItem", _KEY)
    for _ in range(count):
        spent, began = server.cpu_seconds(), time.perf_counter()
        call(connection, port, "GetItem", _KEY)
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((server.cpu_seconds() - spent) * 1000)
    connection.close()
    return sorted(wall), sorted(cpu)


@contextlib.contextmanager
def serving() -> Iterator[tuple[int, Tree]]:
    """A server with one credential and a table, on a core of its own where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PYTHONPATH": str(_ROOT)}
        command = [sys.executable, "-m", "tablegate"]
        subprocess.run(
            [*command, "credentials", "add", AWS_KEY_ID, "--secret", AWS_SECRET, "--all"],
            cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True,
        )  # fmt: skip
        port = free_port()
        flags = ["serve", "--auth", "strict", "--port", str(port), "--max-heads-per-client", "1000"]
        process = Process([*command, *flags], frozenset(cores[:1]), Path(folder), environment)
        try:
            process.wait_for_port(port)
            os.sched_setaffinity(0, cores[1:] or cores)
            connection = http.client.HTTPConnection(HOST, port)
            call(connection, port, "CreateTable", _TABLE)
            while True:
                with contextlib.suppress(SystemExit):
                    call(connection, port, "PutItem", _ITEM)
                    break
            connection.close()
            yield port, Tree([process.pid])
        finally:
            process.stop()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attackers", description=__doc__)
    parser.add_argument("--attackers", type=int, default=10)
    parser.add_argument("--reads", type=int, default=1000)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; ms: wall p50, p99; CPU of the server p50, p99; attacks a second")
    with serving() as (port, server):
        for name, request in {"nothing": b"", **attacks()}.items():
            answered = multiprocessing.Value("i", 0)
            attacker = multiprocessing.Process(target=attack, args=(port, request, given.attackers, answered))
            if request:
                attacker.start()
                while answered.value < given.attackers:
                    time.sleep(0.01)
            first, began = answered.value, time.perf_counter()
            wall, cpu = reads(port, server, given.reads)
            rate = (answered.value - first) / (time.perf_counter() - began)
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

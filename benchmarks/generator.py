"""Runs the load generator: generator.c where there is a C compiler, else the same thing in Python.

A slice is a number of requests over a number of connections; what comes back is when each was answered, and samples.
"""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.processes import Process, free_port

_SOURCE = Path(__file__).with_name("generator.c")
_RECORD = struct.Struct("<IIII")
_LONGEST_SLICE_S = 20.0


@dataclass(frozen=True, slots=True)
class Slice:
    """What one run of the generator gave. `cpu_seconds` is the generator's own; `samples` are (request number, body)."""

    completed: int
    unexpected: int
    broken: int
    seconds: float
    cpu_seconds: float
    latencies_us: array[int]
    samples: list[tuple[int, bytes]]
    refusals: list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Aim:
    """Where to send, over how many connections, and the status that every answer must have."""

    port: int
    connections: int
    status: int = 200
    sample_every: int = 100
    seconds: float = _LONGEST_SLICE_S


class Generator:
    """Makes load from a set of cores. `folder` must be in memory: writing results must not cost the disk anything."""

    def __init__(self, cores: frozenset[int], folder: Path) -> None:
        self._cores = cores
        self._folder = folder
        self._requests, self._results = folder / "requests", folder / "results"

    def run(self, requests: Sequence[bytes], aim: Aim) -> Slice:
        """Send each request once, in order, and wait for all answers."""
        with self._requests.open("wb") as file:
            for request in requests:
                file.write(struct.pack("<I", len(request)))
                file.write(request)
        arguments = (
            "load", aim.port, aim.connections, self._requests, self._results, aim.status, aim.sample_every, aim.seconds,
        )  # fmt: skip
        pinned = ["taskset", "-c", ",".join(map(str, self._cores))] if shutil.which("taskset") else []
        command = [*pinned, *program(), *map(str, arguments)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        facts = json.loads(done.stdout)
        latencies: array[int] = array("I")
        samples: list[tuple[int, bytes]] = []
        refusals: list[tuple[int, bytes]] = []
        data = self._results.read_bytes()
        at = 0
        while at < len(data):
            number, microseconds, status, length = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            latencies.append(microseconds)
            if length or status != aim.status:
                body = data[at : at + length]
                (samples if status == aim.status else refusals).append((number, body))
            at += length
        return Slice(
            facts["completed"], facts["unexpected"], facts["broken"], facts["seconds"], facts["cpu"], latencies, samples,
            refusals,
        )  # fmt: skip

    def reach(self, server_cores: frozenset[int]) -> dict[int, float]:
        """Requests a second of the generator alone, by connections: against a server that only answers `{}`."""
        port = free_port()
        server = Process([*program(), "answer", str(port)], server_cores, self._folder / "answer")
        server.wait_for_port(port)
        request = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1300\r\n\r\n" + b"x" * 1300
        reached = {}
        for connections in (1, 16, 64):
            taken = self.run([request] * 40_000, Aim(port, connections, seconds=2.0))
            reached[connections] = taken.completed / taken.seconds
        server.stop()
        return reached


@lru_cache(maxsize=1)
def program() -> tuple[str, ...]:
    """The command that generates load; compiled when it is first asked for."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is not None:
        made = Path(tempfile.mkdtemp(prefix="tablegate-bench-")) / "generator"
        done = subprocess.run(
            [compiler, "-O2", "-o", str(made), str(_SOURCE)], capture_output=True, check=False
        )
        if done.returncode == 0:
            return (str(made),)
    return (sys.executable, str(Path(__file__).with_name("slow_generator.py")))


def is_compiled() -> bool:
    """Whether it is the one in C."""
    return len(program()) == 1

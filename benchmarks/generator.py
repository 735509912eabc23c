"""A wrapper of the load generator: generator.c if there is a C compiler, else its Python version.

A slice is a number of requests over a number of connections. The result has the latency of each reply and samples.
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
    """The result of one run. `cpu_seconds` is the generator's own. `samples` are (request number, body)."""

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
    """The target of a run: port, connections and the expected status of all replies."""

    port: int
    connections: int
    status: int = 200
    sample_every: int = 100
    seconds: float = _LONGEST_SLICE_S


class Generator:
    """A load generator on a set of cores. `folder` must be in memory, so that writing results needs no disk."""

    def __init__(self, cores: frozenset[int], folder: Path) -> None:
        self._cores = cores
        self._folder = folder
        self._requests, self._results = folder / "requests", folder / "results"

    def run(self, requests: Sequence[bytes], aim: Aim) -> Slice:
        """Send each request once in order and wait for all replies."""
        with self._requests.open("wb") as file:
            for request in requests:
                file.write(struct.pack("<I", len(request)))
                file.write(request)
        arguments = (
            "load", aim.port, aim.connections, self._requests, self._results, aim.status, aim.sample_every, aim.seconds,
        )  # fmt: skip
        pinned = ["taskset", "-c", ",".join(map(str, self._cores))] if shutil.which("taskset") else []
        command = [*pinned, *program(), *map(str, arguments)]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        facts = json.loads(process.stdout)
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
        """Return the generator's own limit in requests a second by connections, against a server that only replies
        `{}`."""
        port = free_port()
        server = Process([*program(), "answer", str(port)], server_cores, self._folder / "answer")
        server.wait_for_port(port)
        request = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1300\r\n\r\n" + b"x" * 1300
        reached = {}
        for connections in (1, 16, 64):
            measurement = self.run([request] * 40_000, Aim(port, connections, seconds=2.0))
            reached[connections] = measurement.completed / measurement.seconds
        server.stop()
        return reached


@lru_cache(maxsize=1)
def program() -> tuple[str, ...]:
    """Return the generator's command. The first call compiles it."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is not None:
        executable = Path(tempfile.mkdtemp(prefix="tablegate-bench-")) / "generator"
        process = subprocess.run(
            [compiler, "-O2", "-o", str(executable), str(_SOURCE)], capture_output=True, check=False
        )
        if process.returncode == 0:
            return (str(executable),)
    return (sys.executable, str(Path(__file__).with_name("slow_generator.py")))


def is_compiled() -> bool:
    return len(program()) == 1

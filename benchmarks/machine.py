"""The machine: its interpreter, cores for server and generator, and the time of an fsync."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

_FSYNC_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Cores:
    """Sets of core numbers. They are equal on a machine with one core."""

    server: frozenset[int]
    generator: frozenset[int]


def cores() -> Cores:
    """Return the last core for the server and the one before it for the generator."""
    usable = sorted(os.sched_getaffinity(0))
    return Cores(frozenset(usable[-1:]), frozenset(usable[-2:-1] or usable))


@dataclass(frozen=True, slots=True)
class FsyncTimes:
    """Times to append a page to a file with fsync, in milliseconds."""

    median_ms: float
    p99_ms: float


def measure_fsync(folder: Path, count: int = 200) -> FsyncTimes:
    """Measure an fsync in this folder."""
    path = folder / "fsync"
    times: list[float] = []
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(os.urandom(_FSYNC_BYTES))
            began = perf_counter()
            os.fdatasync(file.fileno())
            times.append((perf_counter() - began) * 1000)
    path.unlink()
    return FsyncTimes(statistics.median(times), sorted(times)[int(count * 0.99)])


def is_python_optimised() -> bool:
    """True if this interpreter was built with profile-guided optimisation, as those that users run.

    Linux distributions give the compiler's flags themselves, so that `configure` does not record them. The Makefile
    chooses an interpreter by the same test.
    """
    return sys.base_prefix == "/usr" or "--enable-optimizations" in (
        sysconfig.get_config_var("CONFIG_ARGS") or ""
    )


def describe() -> str:
    """Return one line with processor, cores, memory and system."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    python = platform.python_version()
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, Python {python}"

"""A server as a tree of processes: starting it on one core, measuring CPU time and memory, stopping it.

All figures are read from /proc, so this needs Linux.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat, counted after the command's closing bracket.
_PARENT, _CUTIME, _CSTIME = 1, 13, 14
# The clock id of a process in Linux (clock_getcpuclockid(3)): its inverted pid and the type "scheduled time".
_CPU_CLOCK = 2


class StartFailed(Exception):
    """A server did not start. The text has the end of its output."""


class Tree:
    """All processes under one or more roots."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = tuple(roots)

    def members(self) -> list[int]:
        """Return process ids, roots first."""
        children: dict[int, list[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                fields = _stat(int(entry))
                if fields:
                    children.setdefault(int(fields[_PARENT]), []).append(int(entry))
        pids: list[int] = []
        queue = list(self._roots)
        while queue:
            pid = queue.pop()
            pids.append(pid)
            queue += children.get(pid, [])
        return pids

    def cpu_seconds(self) -> float:
        """Return user and system time of all processes.

        Running processes have clocks in nanoseconds. Times of ended children are in hundredths of a second.
        """
        seconds = 0.0
        for member in self.members():
            with contextlib.suppress(OSError):
                seconds += time.clock_gettime((~member << 3) | _CPU_CLOCK)
            fields = _stat(member)
            if fields:
                seconds += sum(int(fields[at]) for at in (_CUTIME, _CSTIME)) / _TICKS_PER_SECOND
        return seconds

    def memory_mb(self) -> tuple[float, float]:
        """Return (sum of resident sizes, sum of proportional sizes) in MB of 10^6 bytes."""
        resident = proportional = 0
        for member in self.members():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                    name, _, value = line.partition(":")
                    if name == "Rss":
                        resident += int(value.split()[0]) * 1024
                    elif name == "Pss":
                        proportional += int(value.split()[0]) * 1024
        return resident / 1e6, proportional / 1e6

    def pin(self, cores: frozenset[int]) -> None:
        """Bind all processes and threads to cores. Processes that they start later inherit the binding."""
        for member in self.members():
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{member}/task"):
                    os.sched_setaffinity(int(thread), cores)


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


class Process:
    """A program on a core. Its output goes to a log file. A failure shows the end of the file."""

    def __init__(
        self,
        command: Sequence[str],
        cores: frozenset[int],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._command = " ".join(command)
        self._log = folder / "log"
        # Settings of the caller must not affect the server. Compiled Python files are kept, as for users.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("TABLEGATE_") and name != "PYTHONDONTWRITEBYTECODE"
        }
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(
                list(command),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**inherited, **(environment or {})},
                start_new_session=True,
            )
        os.sched_setaffinity(self._popen.pid, cores)
        self.pid = self._popen.pid

    def wait_for_port(self, port: int, seconds: float = 60.0) -> None:
        """Wait until the port accepts connections. Raises StartFailed."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._popen.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.02)
        raise StartFailed(f"{self._command}: {self.log_end()}")

    def log_end(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]

    def stop(self) -> None:
        """Send SIGTERM, and after ten seconds SIGKILL to the process group."""
        self._popen.terminate()
        try:
            self._popen.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

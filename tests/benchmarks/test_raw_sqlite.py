"""The process that runs the statements of requests on SQLite alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.raw_sqlite import KINDS, Worker


def test_each_kind_of_request_is_timed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.raw_sqlite", str(tmp_path / "raw.sqlite"), "normal"]
    worker = Worker(command, frozenset(os.sched_getaffinity(0)))
    try:
        for kind in KINDS:
            latencies_us = worker.ask(kind, 20, 3)
            assert len(latencies_us) == 3
    finally:
        worker.stop()

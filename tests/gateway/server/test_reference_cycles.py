"""Requests leave no reference cycles behind: those stay in memory until the garbage collector runs."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.in_process import CONNECTIONS
from tests.support.running import ROOT

pytestmark = pytest.mark.extended


@pytest.mark.fast_paths
def test_requests_leave_no_reference_cycles() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.reference_cycles"], cwd=ROOT, capture_output=True, text=True, timeout=240
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name: number for name, number in found.items() if number >= CONNECTIONS} == {}

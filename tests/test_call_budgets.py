"""How many calls of our own Python a request of each hot operation takes, from its bytes to the bytes of its reply: no more than
its budget. Counted, warm, sixteen requests at a time; so a budget holds on any machine, busy or not.

A call costs 30 to 100 ns before it does anything, so calls are what a point operation's CPU is made of. Who adds some to a hot
way sees it here, and takes others away or says in this file why they are worth it. Who takes some away lowers the budget.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.in_process import CONNECTIONS, REQUESTS
from tests.support.running import ROOT

# Calls a request, rounded up; with some room where dates and names that were not met before are looked at.
BUDGETS = {
    "DynamoDB GetItem": 48,
    "DynamoDB PutItem": 55,
    "DynamoDB PutItem on a condition": 87,
    "DynamoDB UpdateItem": 80,
    "DynamoDB DeleteItem": 53,
    "DynamoDB Query of 50": 85,
    "Azure get": 86,
    "Azure insert": 98,
    "Azure insert or replace": 98,
    "Azure insert or merge": 141,
    "Table Store GetRow": 117,
    "Table Store PutRow": 111,
    "Table Store UpdateRow": 199,
}

pytestmark = pytest.mark.fast_paths


@pytest.fixture(scope="module")
def asked() -> dict[str, Any]:
    """What a process of its own has counted (tests/support/counted_calls.py)."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.counted_calls"], cwd=ROOT, capture_output=True, text=True, timeout=240
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("operation", REQUESTS)
def test_an_operation_keeps_to_its_budget(operation: str, asked: dict[str, Any]) -> None:
    names = asked["calls"][operation]
    told = "\n".join(
        f"{number:8.2f} {name}" for name, number in sorted(names.items(), key=lambda item: -item[1])
    )
    assert sum(names.values()) <= BUDGETS[operation], f"{sum(names.values()):.1f} calls\n{told}"


def test_requests_leave_no_circles_behind(asked: dict[str, Any]) -> None:
    """What only the garbage collector can let go stays in memory, and in the way, until it runs."""
    assert {name: number for name, number in asked["circles"].items() if number >= CONNECTIONS} == {}

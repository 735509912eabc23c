"""How many calls of our own Python a request of each hot operation takes, from its bytes to the bytes of its reply: no more than
its budget. Counted, warm, sixteen requests at a time; so a budget holds on any machine, busy or not.

A call costs 30 to 100 ns before it does anything, so calls are what a point operation's CPU is made of. Who adds some to a hot
way sees it here, and takes others away or says in this file why they are worth it. Who takes some away lowers the budget.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from benchmarks.in_process import CONNECTIONS, REQUESTS, InProcess, counted, in_process

# Calls a request, rounded up; with some room where dates and names that were not met before are looked at.
BUDGETS = {
    "DynamoDB GetItem": 49,
    "DynamoDB PutItem": 60,
    "DynamoDB PutItem on a condition": 113,
    "DynamoDB UpdateItem": 141,
    "DynamoDB DeleteItem": 59,
    "DynamoDB Query of 50": 109,
    "Azure get": 101,
    "Azure insert": 107,
    "Azure insert or replace": 115,
    "Azure insert or merge": 167,
    "Table Store GetRow": 130,
    "Table Store PutRow": 125,
    "Table Store UpdateRow": 217,
}

pytestmark = pytest.mark.fast_paths


@pytest.fixture(scope="module")
def calls() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = in_process(counted)
    return found


@pytest.mark.parametrize("operation", REQUESTS)
def test_an_operation_keeps_to_its_budget(operation: str, calls: dict[str, dict[str, float]]) -> None:
    names = calls[operation]
    told = "\n".join(
        f"{number:8.2f} {name}" for name, number in sorted(names.items(), key=lambda item: -item[1])
    )
    assert sum(names.values()) <= BUDGETS[operation], f"{sum(names.values()):.1f} calls\n{told}"


def test_requests_leave_no_circles_behind() -> None:
    """What only the garbage collector can let go stays in memory, and in the way, until it runs."""

    async def left(running: InProcess) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, requests in REQUESTS.items():
            half = len(requests) // 2
            await running.send(requests[:half])
            gc.collect()
            gc.disable()
            try:
                await running.send(requests[half:])
                found[name] = gc.collect()
            finally:
                gc.enable()
        return found

    found: dict[str, Any] = in_process(left)
    assert {name: number for name, number in found.items() if number >= CONNECTIONS} == {}

"""How many calls of our own Python a request of each hot operation takes, from its bytes to the bytes of its reply: no more than
its budget. Counted, warm, sixteen requests at a time; so a budget holds on any machine, busy or not.

A call costs 30 to 100 ns before it does anything, so calls are what a point operation's CPU is made of. Who adds some to a hot
way sees it here, and takes others away or says in this file why they are worth it. Who takes some away lowers the budget.
"""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.support.in_process import CONNECTIONS, REQUESTS, Calls, InProcess, in_process

# Calls a request, rounded up.
BUDGETS = {
    "DynamoDB GetItem": 47,
    "DynamoDB PutItem": 58,
    "DynamoDB PutItem on a condition": 111,
    "DynamoDB UpdateItem": 139,
    "DynamoDB DeleteItem": 57,
    "DynamoDB Query of 50": 108,
    "Azure get": 117,
    "Azure insert": 129,
    "Azure insert or replace": 138,
    "Azure insert or merge": 186,
    "Table Store GetRow": 147,
    "Table Store PutRow": 140,
    "Table Store UpdateRow": 234,
}

pytestmark = pytest.mark.fast_paths


async def _counted(running: InProcess) -> dict[str, dict[str, float]]:
    """Operation -> how often a request calls each function."""
    found = {}
    for name, requests in REQUESTS.items():
        half = len(requests) // 2 // CONNECTIONS * CONNECTIONS
        await running.send(requests[:half])
        with Calls() as calls:
            await running.send(requests[half : 2 * half])
        found[name] = {called: number / half for called, number in calls.names.items()}
    return found


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = in_process(_counted)
    return found


@pytest.mark.parametrize("operation", REQUESTS)
def test_an_operation_keeps_to_its_budget(operation: str, counted: dict[str, dict[str, float]]) -> None:
    names = counted[operation]
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

"""What tests/test_call_budgets.py asks, asked in a process that has done nothing else: counts depend on what caches know, and
what the collector finds on what else is under way. Prints JSON.
"""

from __future__ import annotations

import gc
import json

from benchmarks.in_process import REQUESTS, InProcess, counted, in_process


async def circles(running: InProcess) -> dict[str, int]:
    """Operation -> how many objects only the garbage collector could let go, after half of its requests."""
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


if __name__ == "__main__":
    print(json.dumps({"calls": in_process(counted), "circles": in_process(circles)}))

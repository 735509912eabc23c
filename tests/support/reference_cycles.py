"""Run by tests/gateway/server/test_reference_cycles.py in a process that has done nothing else, on which depends what the
collector finds. Prints JSON.
"""

from __future__ import annotations

import gc
import json

from benchmarks.in_process import REQUESTS, InProcess, in_process


async def cycles(running: InProcess) -> dict[str, int]:
    """Return for each operation the number of objects that only the garbage collector could free, after half of its requests."""
    found: dict[str, int] = {}
    for name, sign in REQUESTS.items():
        requests = sign()
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
    print(json.dumps(in_process(cycles)))

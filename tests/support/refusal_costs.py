"""What a refusal may cost: 100 ms of CPU for each 10 MB that were sent, besides what any request takes and reading the body.

How long a parser in C takes for the same body, and Python for a fixed piece of work, is measured in the same moment, so that a
slow or busy machine fails nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from gateway.http import Reply

SECONDS_PER_BYTE = 0.1 / 10_000_000
ANY_REQUEST_S = 0.03
MOST_ECHOED = 10_000
_TRIES = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU that this process takes for something. What other tests have left behind is not looked at by the collector
    meanwhile."""
    gc.collect()
    gc.freeze()
    try:
        began = time.process_time()
        work()
        return time.process_time() - began
    finally:
        gc.unfreeze()


def slowness() -> float:
    """How many times as long as on the machine of the figures this one takes for Python, at this moment; 1 at least."""
    return max(1.0, cpu_seconds(lambda: sum(number * number for number in range(_WORK))) / _WORK_S)


# What two cores of 2026 took for it with nothing else to do.
_WORK, _WORK_S = 200_000, 0.012


def allowed_seconds(size_bytes: int, reading: float, slowness: float = 1.0) -> float:
    """What a refusal may cost, where a parser in C reads its body in so many seconds."""
    return (ANY_REQUEST_S + SECONDS_PER_BYTE * size_bytes) * slowness + 2 * reading


def problem(size_bytes: int, read: Callable[[], object], send: Callable[[], Reply]) -> str | None:
    """What is wrong with a refusal, if anything. What disturbs a measurement once does not do so each time."""
    told = None
    for _ in range(_TRIES):
        replies: list[Reply] = []
        reading = cpu_seconds(read)
        allowed = allowed_seconds(size_bytes, reading)
        spent = cpu_seconds(lambda into=replies: into.append(send()))  # type: ignore[misc]
        [reply] = replies
        if reply.status < 400 and b"\r\nHTTP/1.1 4" not in reply.body:  # the latter: in a batch
            return f"was not refused: {reply.status}"
        if len(reply.body) > MOST_ECHOED:
            return f"answered {len(reply.body)} bytes"
        if spent > allowed:
            allowed = allowed_seconds(size_bytes, reading, slowness())
        if spent <= allowed:
            return None
        told = f"took {spent:.3f} s, not {allowed:.3f}"
    return told

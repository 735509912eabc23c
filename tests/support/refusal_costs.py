"""What a refusal may cost: 100 ms of CPU for each 10 MB that were sent, besides what any request takes and reading the body.

How long a parser in C takes for the same body, and Python for a fixed piece of work, is measured in the same moment, so that a
slow or busy machine fails nothing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple

from tablegate.gateway.http import Reply


class Bounds(NamedTuple):
    """What a refusal may cost."""

    any_request_s: float = 0.03
    """Whatever was sent."""
    readings: float = 2
    """How often the body might be read by a parser in C meanwhile."""
    seconds_per_byte: float = 0.1 / 10_000_000
    echoed_bytes: int = 10_000


USUAL = Bounds()
_TRIES = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU that this process takes for something.

    What other tests have left behind is not looked at by the collector meanwhile, nor at the next measurement: looking through
    the objects of a whole test run takes a second.
    """
    gc.collect()
    gc.freeze()
    began = time.process_time()
    work()
    return time.process_time() - began


def slowness() -> float:
    """How many times as long as on the machine of the figures this one takes for Python, at this moment; 1 at least."""
    return max(1.0, cpu_seconds(lambda: sum(number * number for number in range(_WORK))) / _WORK_S)


# What two cores of 2026 took for it with nothing else to do.
_WORK, _WORK_S = 200_000, 0.012


def allowed_seconds(size_bytes: int, reading: float, slowness: float = 1.0, bounds: Bounds = USUAL) -> float:
    """What a refusal may cost, where a parser in C reads its body in so many seconds."""
    own = bounds.any_request_s + bounds.seconds_per_byte * size_bytes
    return own * slowness + bounds.readings * reading


NOT_REFUSED = "was not refused"


def problem(
    size_bytes: int, read: Callable[[], object], send: Callable[[], Reply], bounds: Bounds = USUAL
) -> str | None:
    """What is wrong with a refusal, if anything. What disturbs a measurement once does not do so each time."""
    told = None
    for _ in range(_TRIES):
        replies: list[Reply] = []
        reading = cpu_seconds(read)
        spent = cpu_seconds(lambda into=replies: into.append(send()))  # type: ignore[misc]
        [reply] = replies
        if reply.status < 400 and b"\r\nHTTP/1.1 4" not in reply.body:  # the latter: in a batch
            return f"{NOT_REFUSED}: {reply.status}"
        if len(reply.body) > bounds.echoed_bytes:
            return f"answered {len(reply.body)} bytes"
        allowed = allowed_seconds(size_bytes, reading, bounds=bounds)
        if spent > allowed:
            allowed = allowed_seconds(size_bytes, reading, slowness(), bounds)
        if spent <= allowed:
            return None
        told = f"took {spent:.3f} s, not {allowed:.3f}"
    return told

"""CPU limits for refusing a request: 100 ms for each 10 MB sent, plus a fixed cost and the time to read the body.

The same moment is used to measure a C parser on the same body and a fixed piece of Python work. A slow or busy machine
therefore fails no test.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import NamedTuple

from tablegate.gateway.http.messages import Reply


class Bounds(NamedTuple):
    """Limits of CPU time and size for a refusal."""

    any_request_s: float = 0.03
    """Whatever was sent."""
    readings: float = 2
    """The number of times that a parser in C could read the body meanwhile."""
    seconds_per_byte: float = 0.1 / 10_000_000
    echoed_bytes: int = 10_000


USUAL = Bounds()
_TRIES = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time that this process spends on `work`, in seconds.

    Objects of earlier tests are frozen for the garbage collector, now and for later measurements. A collection over the
    objects of a whole test run takes a second.
    """
    gc.collect()
    gc.freeze()
    began = time.process_time()
    work()
    return time.process_time() - began


def slowness() -> float:
    """Return how much slower Python is now than on the reference machine, at least 1."""
    return max(1.0, cpu_seconds(_work) / _WORK_S)


def _work() -> None:
    """Evaluate Python, and count in bytes, which some builds of Python do at half the speed of others."""
    sum(number * number for number in range(200_000))
    for mark in (b"{", b",", b'"N":'):
        _TEXT.count(mark)


_TEXT = b'{"a":1' * 1_700_000
_WORK_S = 0.029
"""Time for this work on two idle cores of 2026."""


def allowed_seconds(size_bytes: int, reading: float, slowness: float = 1.0, bounds: Bounds = USUAL) -> float:
    """Return the CPU time allowed for a refusal if a C parser reads its body in `reading` seconds."""
    own = bounds.any_request_s + bounds.seconds_per_byte * size_bytes
    return own * slowness + bounds.readings * reading


NOT_REFUSED = "was not refused"


def problem(
    size_bytes: int, read: Callable[[], object], send: Callable[[], Reply], bounds: Bounds = USUAL
) -> str | None:
    """Return a description of an excessive cost, or None.

    Measures several times, because a disturbance rarely repeats.
    """
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

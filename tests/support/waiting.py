"""Waits of tests, which must pass on a busy machine too. Tests wait for conditions, never for a guessed time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

PATIENCE_S = 150.0
"""Time after which a test fails that waits for a condition, a reply or the end of a process. At a load of 15 on two
cores, work takes up to ten times as long as alone."""


def wait_until(holds: Callable[[], object], situation: Callable[[], object] = lambda: "") -> None:
    """Wait for a condition. If it does not come true, fail with a description of the situation."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, situation()
        time.sleep(0.01)


def wait_at_random(chance: random.Random, most_s: float) -> None:
    """Wait for a random time before a kill. What is asserted after it must hold for every moment of the kill, so it
    does not matter how far a busy machine has come by then.
    """
    time.sleep(chance.uniform(0.0, most_s))

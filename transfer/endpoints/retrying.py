"""Trying again: how long an endpoint goes on asking a service that is busy or cannot be reached.

Knows time. Which of a service's errors are worth another try is that endpoint's business: it raises `TransientFailure` for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from tablegate.transfer.errors import ServiceUnavailable

PATIENCE_S = 600.0
"""How long a service that was reached before is tried again without any progress: throttling lasts for minutes."""
_STRANGER_S = 15.0
"""How long a service that has never answered is tried: mostly its address is wrong."""
_FIRST_REST_S = 0.05
_LONGEST_REST_S = 10.0

T = TypeVar("T")


class TransientFailure(Exception):
    """The service did not do it now, and may when it is asked again. The text says why, without any secret."""


class RetryBudget:
    """What the clients of one endpoint share: how long to try, and whether the service has ever answered."""

    def __init__(self, seconds: float, shown: str) -> None:
        self.seconds = seconds
        self.shown = shown
        self.was_reached = False

    def run(self, call: Callable[[], T]) -> T:
        """What a call gives, tried again while it raises Transient. Raises ServiceUnavailable."""
        rests = Backoff(self)
        while True:
            try:
                given = call()
            except TransientFailure as reason:
                rests.wait(str(reason))
            else:
                self.was_reached = True
                return given


class Backoff:
    """The rests between the tries of one piece of work: twice as long each time, from the first again after progress."""

    def __init__(self, patience: RetryBudget) -> None:
        self._patience = patience
        self.progressed()

    def progressed(self) -> None:
        """Something was done: patience begins anew."""
        self._since = time.monotonic()
        self._rest_s = _FIRST_REST_S

    def wait(self, reason: str) -> None:
        """Rest before the next try. Raises ServiceUnavailable where patience is over."""
        patience = self._patience
        most = patience.seconds if patience.was_reached else min(patience.seconds, _STRANGER_S)
        left = self._since + most - time.monotonic()
        if left <= 0:
            raise ServiceUnavailable(f"{patience.shown}: {reason} (tried for {most:g} seconds)")
        # Jitter keeps many threads from coming back at the same moment.
        time.sleep(min(random.uniform(self._rest_s / 2, self._rest_s), left))
        self._rest_s = min(2 * self._rest_s, _LONGEST_REST_S)

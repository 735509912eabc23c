"""Retries with backoff while a service is busy or cannot be reached.

Each endpoint decides which errors are worth a retry and raises `TransientFailure` for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from tablegate.transfer.errors import ServiceUnavailable

PATIENCE_S = 600.0
"""Limit of retries without progress, in seconds, for a service that has answered before. Throttling lasts for minutes."""
_FIRST_CONTACT_S = 15.0
"""Limit of retries, in seconds, for a service that has never answered. Usually its address is wrong."""
_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 10.0

T = TypeVar("T")


class TransientFailure(Exception):
    """A failure that a retry may fix. The text has the reason without secrets."""


class RetryBudget:
    """The retry limit that all clients of an endpoint share, and whether the service has ever answered."""

    def __init__(self, seconds: float, shown: str) -> None:
        self.seconds = seconds
        self.shown = shown
        self.was_reached = False

    def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call, which is retried on TransientFailure. Raises ServiceUnavailable."""
        backoff = Backoff(self)
        while True:
            try:
                result = call()
            except TransientFailure as reason:
                backoff.wait(str(reason))
            else:
                self.was_reached = True
                return result


class Backoff:
    """The waits between retries of one piece of work. They double each time and start again after progress."""

    def __init__(self, patience: RetryBudget) -> None:
        self._patience = patience
        self.progressed()

    def progressed(self) -> None:
        """Reset the waits and the time limit after progress."""
        self._since = time.monotonic()
        self._wait_s = _FIRST_WAIT_S

    def wait(self, reason: str) -> None:
        """Wait before the next try. Raises ServiceUnavailable if the limit is exceeded."""
        patience = self._patience
        seconds_max = patience.seconds if patience.was_reached else min(patience.seconds, _FIRST_CONTACT_S)
        seconds_left = self._since + seconds_max - time.monotonic()
        if seconds_left <= 0:
            raise ServiceUnavailable(f"{patience.shown}: {reason} (tried for {seconds_max:g} seconds)")
        # Jitter spreads the retries of many threads.
        time.sleep(min(random.uniform(self._wait_s / 2, self._wait_s), seconds_left))
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)

"""The clock that tables, streams and cells live by: the real time, or another that a test has set.

Signatures, certificates and the Date of replies keep the real time, since clients compare it with their own.
"""

from __future__ import annotations

import threading
import time


class BadTime(ValueError):
    """A time to which the clock cannot be set. The text says why."""


class Clock:
    """Runs with the real time, ahead of it by what it was advanced, unless it is frozen. Never goes back: what is stored
    relies on it. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead_ns = 0
        self._frozen_at_ns: int | None = None

    def now_ns(self) -> int:
        """Nanoseconds since 1970."""
        frozen_at_ns = self._frozen_at_ns
        return time.time_ns() + self._ahead_ns if frozen_at_ns is None else frozen_at_ns

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        frozen_at_ns = self._frozen_at_ns
        return (time.time_ns() + self._ahead_ns if frozen_at_ns is None else frozen_at_ns) // 1_000_000

    @property
    def is_frozen(self) -> bool:
        """Whether time stands still."""
        return self._frozen_at_ns is not None

    @property
    def ahead_ns(self) -> int:
        """How far the clock is ahead of the real time; negative where it was frozen for a while."""
        frozen_at_ns = self._frozen_at_ns
        return self._ahead_ns if frozen_at_ns is None else frozen_at_ns - time.time_ns()

    def freeze(self) -> None:
        """Let time stand still."""
        with self._lock:
            self._frozen_at_ns = self.now_ns()

    def run(self) -> None:
        """Let time go on from where it stands."""
        with self._lock:
            if self._frozen_at_ns is not None:
                self._ahead_ns = self._frozen_at_ns - time.time_ns()
                self._frozen_at_ns = None

    def set(self, at_ns: int) -> None:
        """Go to a moment, in nanoseconds since 1970, frozen or not as before. Raises BadTime if it is past."""
        with self._lock:
            self._go(at_ns - self.now_ns())

    def advance(self, by_ns: int) -> None:
        """Let so many nanoseconds pass at once. Raises BadTime."""
        with self._lock:
            self._go(by_ns)

    def _go(self, by_ns: int) -> None:
        now_ns = self.now_ns()
        if by_ns < 0:
            raise BadTime(f"the clock cannot go back: it is {now_ns // 1_000_000} ms since 1970 already")
        if now_ns + by_ns > LATEST_NS:
            raise BadTime("the clock cannot go beyond the year 9999")
        if self._frozen_at_ns is None:
            self._ahead_ns += by_ns
        else:
            self._frozen_at_ns += by_ns


LATEST_NS = 253_402_300_799 * 1_000_000_000
"""The last second of the year 9999, after which Azure has no DateTime."""

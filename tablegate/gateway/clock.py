"""The clock of tables, streams and cells: the real time, or a time set by a test.

Signatures, certificates and the Date of replies use the real time, since clients compare it with their own.
"""

from __future__ import annotations

import threading
import time


class BadTime(ValueError):
    """A time to which the clock cannot be set. The text gives the reason."""


class Clock:
    """A clock that runs ahead of the real time by a set amount, or is frozen. For use by several threads.

    It never goes back, because stored data depends on that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ahead_ns = 0
        self._frozen_at_ns: int | None = None

    def now_ns(self) -> int:
        """Return nanoseconds since 1970."""
        frozen_at_ns = self._frozen_at_ns
        return time.time_ns() + self._ahead_ns if frozen_at_ns is None else frozen_at_ns

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        frozen_at_ns = self._frozen_at_ns
        return (time.time_ns() + self._ahead_ns if frozen_at_ns is None else frozen_at_ns) // 1_000_000

    @property
    def is_frozen(self) -> bool:
        """True if the clock is frozen."""
        return self._frozen_at_ns is not None

    @property
    def ahead_ns(self) -> int:
        """The difference from the real time, in nanoseconds. It is negative after the clock was frozen for some time."""
        frozen_at_ns = self._frozen_at_ns
        return self._ahead_ns if frozen_at_ns is None else frozen_at_ns - time.time_ns()

    def freeze(self) -> None:
        """Stop the clock."""
        with self._lock:
            self._frozen_at_ns = self.now_ns()

    def run(self) -> None:
        """Continue from the present time of the clock."""
        with self._lock:
            if self._frozen_at_ns is not None:
                self._ahead_ns = self._frozen_at_ns - time.time_ns()
                self._frozen_at_ns = None

    def set(self, at_ns: int, is_frozen: bool = False) -> None:
        """Set the clock, in nanoseconds since 1970, and stop it there if `is_frozen`. Otherwise it stays frozen or running.

        Raises BadTime if the time is in the past.
        """
        with self._lock:
            self._go(at_ns - self.now_ns())
            if is_frozen:
                self._frozen_at_ns = at_ns

    def advance(self, by_ns: int) -> None:
        """Advance the clock by nanoseconds. Raises BadTime."""
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

"""How fast a copy may go: rates that its user set, and fewer calls at once while a service is slow to answer.

Knows times and numbers; nothing of rows or services.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tablegate.transfer.errors import TransferError

_FORM = re.compile(r"(\d+(?:\.\d+)?)(/s|rows|rows/s|wcu|rcu)?")


class RateUnit(Enum):
    """What a rate counts: rows; or the capacity units of a service, of 1 KiB for each row that is written, and of 4 KiB that are
    read together."""

    ROWS = "rows"
    WRITE_UNITS = "wcu"
    READ_UNITS = "rcu"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So much a second at most."""

    per_second: float
    unit: RateUnit


def limit_of(text: str) -> RateLimit:
    """What `--rate` says: 500 (rows a second), 100wcu, 50rcu. Raises TransferError."""
    found = _FORM.fullmatch(text.strip().lower())
    if found is None or float(found[1]) <= 0:
        raise TransferError(
            f"--rate {text}: say 500 (rows a second), 100wcu (write units) or 100rcu (read units)"
        )
    unit = {"wcu": RateUnit.WRITE_UNITS, "rcu": RateUnit.READ_UNITS}.get(found[2] or "", RateUnit.ROWS)
    return RateLimit(float(found[1]), unit)


@dataclass(slots=True)
class Rate:
    """A limit that several threads keep together. `take` allows what is asked at once and has whoever comes next wait for it, so
    that the average is kept whatever the size of what is asked."""

    limit: RateLimit
    wait: Callable[[float], object]
    now: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self, amount: float) -> None:
        """Wait for one's turn to use so much."""
        with self._lock:
            now = self.now()
            begin = max(now, self._free_at)
            self._free_at = begin + amount / self.limit.per_second
        if begin > now:
            self.wait(begin - now)


class Concurrency:
    """How many calls are under way at once: `most`, and half as many whenever a call takes far longer than usual, as those do
    whose service throttles or is not there; then slowly more again."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._running = 0
        self._usual_s: float | None = None
        self._slowed_at = 0.0
        self._free = threading.Condition()

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return max(1, int(self._limit))

    def enter(self, is_stopped: Callable[[], bool]) -> None:
        """Wait for one's turn; not when everything is to stop."""
        with self._free:
            while self._running >= self.limit and not is_stopped():
                self._free.wait(0.2)
            self._running += 1

    def leave(self, seconds: float, now: float) -> None:
        """A call has taken so long."""
        with self._free:
            self._running -= 1
            usual = self._usual_s
            if usual is not None and seconds > max(1.0, 8 * usual):
                if now - self._slowed_at > seconds / 2:  # once for all calls that were slow together
                    self._limit = max(1.0, self._limit / 2)
                    self._slowed_at = now
            else:
                self._usual_s = seconds if usual is None else 0.9 * usual + 0.1 * seconds
                self._limit = min(float(self._most), self._limit + 0.5 / self._limit)
            self._free.notify_all()


class MemoryBudget:
    """Bytes that may be in memory between reading and writing."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._free = threading.Condition()

    def take(self, size_bytes: int, is_stopped: Callable[[], bool]) -> None:
        """Wait until there is room; what is larger than everything goes alone."""
        with self._free:
            while self._used and self._used + size_bytes > self._most and not is_stopped():
                self._free.wait(0.2)
            self._used += size_bytes

    def give(self, size_bytes: int) -> None:
        """Room is free again."""
        with self._free:
            self._used -= size_bytes
            self._free.notify_all()

"""Rate limits of a copy, and the reduction of concurrent calls while a service is slow."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from tablegate.transfer.errors import TransferError

_LOWEST, _HIGHEST = 0.001, 1e9
_FORM = re.compile(r"(\d+(?:\.\d+)?)(/s|rows|rows/s|wcu|rcu)?")


class RateUnit(Enum):
    """The unit of a rate: rows, write units of 1 KiB for each row, or read units of 4 KiB of rows read together."""

    ROWS = "rows"
    WRITE_UNITS = "wcu"
    READ_UNITS = "rcu"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A maximum rate."""

    per_second: float
    unit: RateUnit


def limit_of(text: str) -> RateLimit:
    """Parse a value of `--rate`: 500 (rows a second), 100wcu, 50rcu. Raises TransferError."""
    match = _FORM.fullmatch(text.strip().lower())
    if match is None or not _LOWEST <= float(match[1]) <= _HIGHEST:
        raise TransferError(
            f"--rate {text}: use a form such as 500 (rows a second), 100wcu (write units) or 100rcu (read units), "
            f"from {_LOWEST} to {_HIGHEST:,.0f}"
        )
    unit = {"wcu": RateUnit.WRITE_UNITS, "rcu": RateUnit.READ_UNITS}.get(match[2] or "", RateUnit.ROWS)
    return RateLimit(float(match[1]), unit)


@dataclass(slots=True)
class Rate:
    """A rate limit that several threads share.

    An amount of any size is allowed at once. The next caller waits until the average is within the limit again.
    """

    limit: RateLimit
    wait: Callable[[float], object]
    now: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def take(self, amount: float) -> None:
        """Wait until the amount may be used."""
        with self._lock:
            now = self.now()
            begin = max(now, self._free_at)
            self._free_at = begin + amount / self.limit.per_second
        if begin > now:
            self.wait(begin - now)


class Concurrency:
    """The limit of concurrent calls.

    It starts at `maximum`. It is halved when a call takes far longer than usual, as with a throttling or unreachable
    service. It then grows slowly again.
    """

    def __init__(self, maximum: int) -> None:
        self._most = maximum
        self._limit = float(maximum)
        self._running = 0
        self._usual_s: float | None = None
        self._slowed_at = 0.0
        self._free = threading.Condition()

    @property
    def limit(self) -> int:
        return max(1, int(self._limit))

    def enter(self, is_stopped: Callable[[], bool]) -> None:
        """Wait until a call may start, or until `is_stopped`."""
        with self._free:
            while self._running >= self.limit and not is_stopped():
                self._free.wait(0.2)
            self._running += 1

    def leave(self, seconds: float, now: float) -> None:
        """End a call that took this time."""
        with self._free:
            self._running -= 1
            usual = self._usual_s
            if usual is not None and seconds > max(1.0, 8 * usual):
                if now - self._slowed_at > seconds / 2:  # once for all calls that were slow at the same time
                    self._limit = max(1.0, self._limit / 2)
                    self._slowed_at = now
            else:
                self._usual_s = seconds if usual is None else 0.9 * usual + 0.1 * seconds
                self._limit = min(float(self._most), self._limit + 0.5 / self._limit)
            self._free.notify_all()


class MemoryBudget:
    """A limit of the bytes in memory between reading and writing."""

    def __init__(self, bytes_max: int) -> None:
        self._most = bytes_max
        self._used = 0
        self._free = threading.Condition()

    def take(self, size_bytes: int, is_stopped: Callable[[], bool]) -> None:
        """Wait until the bytes fit. A size above the limit waits until nothing else is in memory."""
        with self._free:
            while self._used and self._used + size_bytes > self._most and not is_stopped():
                self._free.wait(0.2)
            self._used += size_bytes

    def give(self, size_bytes: int) -> None:
        with self._free:
            self._used -= size_bytes
            self._free.notify_all()

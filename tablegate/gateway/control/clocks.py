"""The clock of tables, streams and cells, and the operations on it: read, freeze, set, advance.

The clock shows the real time, or a time set by a test. Work that became due runs before the reply to an operation. Signatures,
certificates and the Date of replies use the real time, since clients compare it with their own.
"""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime
from typing import Any

from tablegate.gateway.control.documents import BadRequest, only
from tablegate.gateway.engine.engine import Engine


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


_MS = 1_000_000


def described(clock: Clock) -> dict[str, Any]:
    """Return the time of the clock, its state, and its difference from the real time."""
    now_ms = clock.now_ns() // _MS
    moment = datetime.fromtimestamp(now_ms // 1000, UTC).replace(microsecond=now_ms % 1000 * 1000)
    return {
        "now": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "now_ms": now_ms,
        "frozen": clock.is_frozen,
        "ahead_ms": clock.ahead_ns // _MS,
    }


def change(engine: Engine, clock: Clock, given: dict[str, Any]) -> dict[str, Any]:
    """Set the clock to `at` (ISO 8601 with a zone, or milliseconds since 1970), and freeze or unfreeze it (`frozen`).

    Raises BadRequest, BadTime, and changes nothing then.
    """
    members = only(given, at=(str, int), frozen=bool)
    if "at" in members:
        clock.set(_moment_ns(members["at"]), is_frozen=members.get("frozen") is True)
    elif members.get("frozen") is True:
        clock.freeze()
    if members.get("frozen") is False:
        clock.run()
    engine.background.catch_up()
    return described(clock)


def advance(engine: Engine, clock: Clock, given: dict[str, Any]) -> dict[str, Any]:
    """Advance the clock by `seconds`. Raises BadRequest, BadTime."""
    seconds = only(given, seconds=(int, float)).get("seconds")
    if seconds is None or not math.isfinite(seconds * 1_000_000_000):
        raise BadRequest("seconds must be a number: how far to advance the clock")
    clock.advance(round(seconds * 1_000_000_000))
    engine.background.catch_up()
    return described(clock)


def _moment_ns(at: str | int) -> int:
    if isinstance(at, int):
        return at * _MS
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise BadRequest("at must be a time in ISO 8601, or milliseconds since 1970") from None
    if moment.tzinfo is None:
        raise BadRequest("at must have a time zone, for example 2030-01-01T00:00:00Z")
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000

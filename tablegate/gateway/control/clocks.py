"""The operations on the clock of the tables: read, freeze, set, advance. Work that became due runs before the reply."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from tablegate.gateway.clock import Clock
from tablegate.gateway.control.answers import BadRequest, only
from tablegate.gateway.engine.engine import Engine

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

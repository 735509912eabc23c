"""Standbys of PostgreSQL that answer reads which may be old: which of them has what a read must see.

The primary's write-ahead log is looked at from time to time (`watch`), so it is known how far it was at which moment. A read
that may be no older than a bound needs the log as far as it was that long ago; before each list of reads the replica itself
is asked how far it has come, on the connection that reads. A replica that does not answer, or is of another timeline, is left
alone until it was seen well again. Knows nothing of commands; the reads go to `Standby` as they go to the primary's store.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.store.sql.databases import Database, RetryableFailure
from tablegate.gateway.store.store import Store

log = logging.getLogger(__name__)

_POLL_S = 0.001
# Looks at the primary while its replicas may fall behind by the bound.
_LOOKS = 5
_SHORTEST_PERIOD_S = 0.01
_FAILURES = (RetryableFailure, GatewayError)


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """How a replica is doing: milliseconds by which it is behind (None: further than anybody has looked, or unknown), and
    whether it is read from."""

    replica: str
    milliseconds: float | None
    is_used: bool


class Standby(Store):
    """One standby. Its catalogue stays empty: table descriptors are the primary's, and one that the standby does not have in
    the same version is no reason to forget it."""

    def __init__(self, database: Database, name: str) -> None:
        super().__init__(database)
        self.name = name
        self.is_well = False
        self.lag_ms: float | None = None


class Standbys:
    """The replicas of a database. `lag_ms`: how old what they answer may be; `wait_ms`: how long a reader is kept waiting for
    one to catch up with what the reader wrote (0: nobody is)."""

    def __init__(self, primary: Database, replicas: Sequence[Standby], lag_ms: int, wait_ms: int) -> None:
        self.all = tuple(replicas)
        self.lag_s = lag_ms / 1000
        self.wait_s = wait_ms / 1000
        self._primary = primary
        # When it was asked (monotonic), and how far the primary's log was then.
        self._looks: deque[tuple[float, int]] = deque(maxlen=64 * _LOOKS)
        self._turn = 0

    @property
    def period_s(self) -> float:
        """Seconds between two looks."""
        return max(_SHORTEST_PERIOD_S, self.lag_s / _LOOKS)

    def choose(self, written: int, reader: int) -> Standby | None:
        """A replica that has all that was acknowledged longer ago than the bound, and all up to `written`, a position of the log
        (0: no matter); waits for that one a little. None: the primary must answer."""
        needed = self._needed()
        if needed is None:
            return None
        for _ in self.all:
            self._turn = (self._turn + 1) % len(self.all)
            replica = self.all[self._turn]
            if replica.is_well and self._has(replica, needed, written, reader):
                return replica
        return None

    def leave_alone(self, replica: Standby, reason: Exception) -> None:
        """Read from a replica no more until it was seen well again."""
        if replica.is_well:
            replica.is_well = False
            log.warning("replica %s is left alone: %s", replica.name, " ".join(str(reason).split()))

    def watch(self) -> None:
        """Look at the primary and at every replica. Raises Retry, GatewayError if the primary does not answer."""
        timeline = self._look_at_primary()
        for replica in self.all:
            try:
                is_ours = replica.database.log_timeline() == timeline
                replayed = replica.database.log_replayed()
            except _FAILURES as error:
                self.leave_alone(replica, error)
                replica.lag_ms = None
                continue
            replica.lag_ms = self._lag_ms(replayed) if is_ours else None
            if is_ours and replayed >= 0:
                if not replica.is_well:
                    log.warning("replica %s is read from", replica.name)
                replica.is_well = True
            else:
                self.leave_alone(replica, ValueError("it does not follow the primary"))

    def lags(self) -> list[StandbyStatus]:
        """How each replica was doing when it was last looked at."""
        bound_ms = self.lag_s * 1000
        return [
            StandbyStatus(it.name, it.lag_ms, it.is_well and it.lag_ms is not None and it.lag_ms <= bound_ms)
            for it in self.all
        ]

    def close(self) -> None:
        """Give back the connections to replicas."""
        for replica in self.all:
            replica.close()

    def _look_at_primary(self) -> int:
        began = time.monotonic()
        position, timeline = self._primary.log_written()
        self._looks.append((began, position))
        return timeline

    def _needed(self) -> int | None:
        """How far the log was at a moment that is no longer ago than the bound; None: nobody looked since then."""
        since = time.monotonic() - self.lag_s
        for asked_at, position in tuple(self._looks):
            if asked_at >= since:
                return position
        return None

    def _lag_ms(self, replayed: int) -> float | None:
        now = time.monotonic()
        for asked_at, position in reversed(tuple(self._looks)):
            if position <= replayed:
                return (now - asked_at) * 1000
        return None

    def _has(self, replica: Standby, needed: int, written: int, reader: int) -> bool:
        until = time.monotonic() + self.wait_s
        try:
            while (replayed := replica.database.log_replayed(reader)) < max(needed, written):
                if replayed < needed or time.monotonic() >= until:
                    return False
                time.sleep(_POLL_S)
        except _FAILURES as error:
            self.leave_alone(replica, error)
            return False
        return True

"""PostgreSQL standbys for reads that may be stale, and the choice of one that is fresh enough.

`watch` records the position of the primary's write-ahead log from time to time. A read with a staleness bound needs the
position of that long ago. Before each list of reads, the standby reports its own position on the connection that reads.
A standby that does not answer, or follows another timeline, is not used until `watch` finds it healthy. `Standby` has
the interface of the primary's store.
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
# Polls of the primary within the staleness bound.
_POLLS = 5
_SHORTEST_PERIOD_S = 0.01
_FAILURES = (RetryableFailure, GatewayError)


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """The state of a standby.

    `milliseconds`: replication lag, or None if it is unknown or older than the recorded positions. `is_used`: it
    answers reads.
    """

    replica: str
    milliseconds: float | None
    is_used: bool


class Standby(Store):
    """One standby.

    Its catalogue stays empty, because table descriptors come from the primary. A descriptor must not be dropped because
    the standby still has another version.
    """

    def __init__(self, database: Database, name: str) -> None:
        super().__init__(database)
        self.name = name
        self.is_healthy = False
        self.lag_ms: float | None = None


class Standbys:
    """The standbys of a database.

    `lag_ms`: maximum staleness of their answers. `wait_ms`: maximum time for which a reader waits until a standby has
    the reader's own writes. 0 disables waiting.
    """

    def __init__(self, primary: Database, replicas: Sequence[Standby], lag_ms: int, wait_ms: int) -> None:
        self.all = tuple(replicas)
        self.lag_s = lag_ms / 1000
        self.wait_s = wait_ms / 1000
        self._primary = primary
        # (monotonic time, position of the primary's log) of each poll.
        self._polls: deque[tuple[float, int]] = deque(maxlen=64 * _POLLS)
        self._turn = 0

    @property
    def period_s(self) -> float:
        """Seconds between two polls."""
        return max(_SHORTEST_PERIOD_S, self.lag_s / _POLLS)

    def choose(self, own_position: int, reader: int) -> Standby | None:
        """Return a standby that is fresh enough, or None if the primary must answer.

        A standby must have all that was committed before the staleness bound, and the log up to position `own_position` (0
        if there is no such bound). Waits a short time for the latter.
        """
        required_position = self._required_position()
        if required_position is None:
            return None
        for _ in self.all:
            self._turn = (self._turn + 1) % len(self.all)
            replica = self.all[self._turn]
            if replica.is_healthy and self._reaches(replica, required_position, own_position, reader):
                return replica
        return None

    def set_aside(self, replica: Standby, reason: Exception) -> None:
        """Stop reading from a standby until it is found healthy."""
        if replica.is_healthy:
            replica.is_healthy = False
            log.warning("replica %s is not used: %s", replica.name, " ".join(str(reason).split()))

    def watch(self) -> None:
        """Poll the primary and every standby. Raises RetryableFailure or GatewayError if the primary does not answer."""
        timeline = self._poll_primary()
        for replica in self.all:
            try:
                is_ours = replica.database.log_timeline() == timeline
                position = replica.database.log_replayed()
            except _FAILURES as error:
                self.set_aside(replica, error)
                replica.lag_ms = None
                continue
            replica.lag_ms = self._lag_ms(position) if is_ours else None
            if is_ours and position >= 0:
                if not replica.is_healthy:
                    log.warning("replica %s is used for reads", replica.name)
                replica.is_healthy = True
            else:
                self.set_aside(replica, ValueError("it does not follow the primary"))

    def lags(self) -> list[StandbyStatus]:
        """Return the state of each standby at the last poll."""
        bound_ms = self.lag_s * 1000
        return [
            StandbyStatus(
                replica.name,
                replica.lag_ms,
                replica.is_healthy and replica.lag_ms is not None and replica.lag_ms <= bound_ms,
            )
            for replica in self.all
        ]

    def close(self) -> None:
        """Close the connections to the standbys."""
        for replica in self.all:
            replica.close()

    def _poll_primary(self) -> int:
        began = time.monotonic()
        position, timeline = self._primary.log_written()
        self._polls.append((began, position))
        return timeline

    def _required_position(self) -> int | None:
        """Return the oldest recorded log position within the bound, or None if there is none."""
        since = time.monotonic() - self.lag_s
        for polled_at, position in tuple(self._polls):
            if polled_at >= since:
                return position
        return None

    def _lag_ms(self, replayed_position: int) -> float | None:
        now = time.monotonic()
        for polled_at, position in reversed(tuple(self._polls)):
            if position <= replayed_position:
                return (now - polled_at) * 1000
        return None

    def _reaches(self, replica: Standby, required_position: int, own_position: int, reader: int) -> bool:
        deadline = time.monotonic() + self.wait_s
        try:
            while (position := replica.database.log_replayed(reader)) < max(required_position, own_position):
                if position < required_position or time.monotonic() >= deadline:
                    return False
                time.sleep(_POLL_S)
        except _FAILURES as error:
            self.set_aside(replica, error)
            return False
        return True

"""Pacing: background work goes batch by batch, each of a bounded time, and rests after each in proportion to what it took.

Knows how large a batch is, which work is next, and how long the rest is. What a batch does is told by those who do it; the rests
are taken by the thread that does it all (gateway/background.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

from tablegate.gateway.store.sql.databases import LockTimeout

log = logging.getLogger(__name__)

# A write in between waits so long at most for SQLite's write lock, and a request for the interpreter's.
BATCH_S = 0.02
# No fewer, or commits would cost more than rows (a batch of large ones is bounded by its bytes); no more, so that a batch that is
# suddenly slower is still short.
FEWEST_ROWS, MOST_ROWS = 128, 4_096
# Counting what is left costs this share of the time that passes, and never comes more often than this.
_COUNTING_SHARE = 0.01
_SECONDS_BETWEEN_COUNTS = 1.0

Batch = Callable[[int], int | None]
"""Does a batch of at most so many rows. How many it went over; None: there is nothing to do now."""


def rest_after(took_s: float, share: float) -> float:
    """Seconds to rest after work that took so long, so that working takes this share of the time and no more."""
    return took_s * (1 - share) / share


class BatchSize:
    """How many rows the next batch of a kind of work has, by what the last one took."""

    def __init__(self) -> None:
        self.rows = FEWEST_ROWS

    def took(self, rows: int, seconds: float) -> None:
        """Note that the last batch went over so many rows in so long."""
        if seconds > BATCH_S:
            self.rows = max(FEWEST_ROWS, int(self.rows * max(BATCH_S / seconds, 0.1)))
        elif seconds < BATCH_S / 2 and rows >= self.rows:
            self.rows = min(MOST_ROWS, self.rows * 2)


class BatchDone(NamedTuple):
    """A batch that was done: of which work, and how many rows it went over. `apart_s`: CPU time of other threads."""

    work: str
    rows: int
    apart_s: float = 0.0


class FairQueue:
    """The order in which pieces of work of several owners are done: one piece of each owner, then another of each."""

    def __init__(self) -> None:
        self._owner = ""
        self._last: dict[str, int] = {}

    def order(self, pieces: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Yield pieces, given as (owner, id): first one of each owner, from the owner after the last one that was taken, and from
        the piece after that owner's last one."""
        owned: dict[str, list[int]] = {}
        for owner, piece in pieces:
            owned.setdefault(owner, []).append(piece)
        self._last = {owner: self._last.get(owner, 0) for owner in owned}
        owners = sorted(owned, key=lambda owner: (owner <= self._owner, owner))
        queues = [
            [
                (owner, piece)
                for piece in sorted(owned[owner], key=lambda piece: (piece <= self._last[owner], piece))
            ]
            for owner in owners
        ]
        for together in zip_longest(*queues):
            yield from filter(None, together)

    def take(self, owner: str, piece: int) -> None:
        """Note that a piece has had its turn."""
        self._owner, self._last[owner] = owner, piece


class RoundRobin:
    """Kinds of work that take turns, a batch each. `count`: how many rows are left, of those that are `countable`."""

    def __init__(
        self, works: Mapping[str, Batch], countable: Collection[str], count: Callable[[], dict[str, int]]
    ) -> None:
        self._works = {work: (do, BatchSize()) for work, do in works.items()}
        self._countable = countable
        self._count = count
        self._count_again_at = 0.0
        self.left: dict[str, int] = {}
        """About how many rows are left; of what is not named, none, or it cannot be counted."""

    def next_batch(self) -> BatchDone | None:
        """Do one batch of the work whose turn it is. None: there is nothing to do now."""
        for work in list(self._works):
            # Whoever was asked is asked last the next time.
            do, size = self._works[work] = self._works.pop(work)
            began = time.monotonic()
            try:
                rows = do(size.rows)
            except LockTimeout as reason:
                log.info("%s waits for a lock: %s", work, reason)
                rows = 0
            if rows is None:
                continue
            size.took(rows, time.monotonic() - began)
            if work in self._countable:
                self._keep_count(work, rows)
            return BatchDone(work, rows)
        self.left = {}
        self._count_again_at = 0.0
        return None

    def _keep_count(self, work: str, rows: int) -> None:
        began = time.monotonic()
        if began < self._count_again_at and work in self.left:
            self.left[work] = max(0, self.left[work] - rows)
            return
        self.left = {work: 0} | self._count()
        now = time.monotonic()
        self._count_again_at = now + max(_SECONDS_BETWEEN_COUNTS, (now - began) / _COUNTING_SHARE)

"""Pacing of background work: batches of a bounded duration, followed by a pause in proportion to it.

This module decides the size of a batch, the next piece of work and the length of the pause. The scheduler runs the
batches (scheduler.py), and the threads of gateway/background.py take the pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from tablegate.gateway.store.sql.progress import COUNTED_ROWS

# Duration of a batch in seconds. It bounds the wait of a request for SQLite's write lock and for the interpreter. Beside
# clients, batches are divided into this number of parts, which costs a tenth of the speed.
BATCH_S, PARTS_BESIDE_CLIENTS = 0.02, 2
# Bounds of a batch. With fewer rows, commits would cost more than rows. With more, a batch that suddenly slows down
# would take too long. Large rows are bounded by their bytes.
MIN_ROWS, MAX_ROWS = 128, 4_096
# A large backlog: so many rows, or so many seconds of work at a whole core. More rows are not counted.
LARGE_BACKLOG_ROWS, LARGE_BACKLOG_S = COUNTED_ROWS, 100.0


def pause_after(took_s: float, share: float) -> float:
    """Return the seconds to pause after work of this duration, so that work takes this share of the time."""
    return took_s * (1 - share) / share


class CpuShare:
    """The share of one core that a thread of background work takes: `share` beside clients, otherwise twice as much.

    A large backlog doubles it beside clients, too. `run_count` returns the number of lists of commands that the engine
    has run for clients.
    """

    def __init__(self, share: float, run_count: Callable[[], int]) -> None:
        self._share = share
        self._run_count = run_count
        self._last_run_count = -1
        self.has_clients = True
        """True if clients sent requests since the batch before the last one."""

    def after_batch(self, has_large_backlog: bool = False) -> float:
        """Return the share for the pause after a batch."""
        run_count = self._run_count()
        self.has_clients = run_count != self._last_run_count
        self._last_run_count = run_count
        if self.has_clients and not has_large_backlog:
            return self._share
        return min(1.0, 2 * self._share)


class BatchSize:
    """The size of the next batch of a kind of work, adapted to the duration of the last one."""

    def __init__(self) -> None:
        self.rows = MIN_ROWS
        self.rows_per_s = 0.0
        """The speed of the last batch that had rows."""

    def took(self, rows: int, seconds: float) -> None:
        """Adapt to the rows and the duration of the last batch."""
        if rows and seconds > 0:
            self.rows_per_s = rows / seconds
        if seconds > BATCH_S:
            self.rows = max(MIN_ROWS, int(self.rows * max(BATCH_S / seconds, 0.1)))
        elif seconds < BATCH_S / 2 and rows >= self.rows:
            self.rows = min(MAX_ROWS, self.rows * 2)


class BatchDone(NamedTuple):
    """A finished batch: the name of the work and the number of rows. `apart_s`: CPU seconds of other threads."""

    work: str
    rows: int
    apart_s: float = 0.0


class FairQueue:
    """A fair order of work of several owners: one piece of each owner, then the next piece of each."""

    def __init__(self) -> None:
        self._owner = ""
        self._last: dict[str, int] = {}

    def order(self, pieces: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Yield pieces, given as (owner, id), one of each owner in turn. The order continues after the piece taken
        last."""
        pieces_by_owner: dict[str, list[int]] = {}
        for owner, piece in pieces:
            pieces_by_owner.setdefault(owner, []).append(piece)
        self._last = {owner: self._last.get(owner, 0) for owner in pieces_by_owner}
        owners = sorted(pieces_by_owner, key=lambda owner: (owner <= self._owner, owner))
        queues = [
            [
                (owner, piece)
                for piece in sorted(
                    pieces_by_owner[owner], key=lambda piece: (piece <= self._last[owner], piece)
                )
            ]
            for owner in owners
        ]
        for together in zip_longest(*queues):
            yield from filter(None, together)

    def take(self, owner: str, piece: int) -> None:
        self._owner, self._last[owner] = owner, piece

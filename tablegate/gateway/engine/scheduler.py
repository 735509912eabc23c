"""The scheduler of background work: capabilities register their works, and it runs paced batches of one after the other.

It decides what runs next, the size of a batch and the length of the pause after it, and counts what is left. The threads
of gateway/server/background.py take the pauses.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple

from tablegate.gateway.model.errors import Contended, DataCorrupted, GatewayError
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import LockTimeout, Session
from tablegate.gateway.store.sql.progress import COUNTED_ROWS
from tablegate.gateway.store.store import Store

# Duration of a batch in seconds. It bounds the wait of a request for SQLite's write lock and for the interpreter. Beside
# clients, batches are divided into this number of parts, which costs a tenth of the speed.
BATCH_S, PARTS_BESIDE_CLIENTS = 0.02, 2
# Bounds of a batch. With fewer rows, commits would cost more than rows. With more, a batch that suddenly slows down
# would take too long. Large rows are bounded by their bytes.
MIN_ROWS, MAX_ROWS = 128, 4_096
# The size of a large backlog, in rows, or in seconds of work at a whole core. More rows are not counted.
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


log = logging.getLogger(__name__)

MAINTENANCE_PERIOD_S = 60.0
"""Seconds between two checks of everything that expires slowly: streams, tokens, histories."""
# Rows in a batch of `catch_up`, which has no bound in time.
_CATCH_UP_ROWS = MAX_ROWS
# Seconds before `catch_up` repeats a batch after a failure of the database.
_AFTER_FAILURE_S = 0.1
# Maximum share of the time for counting the remaining rows, and the minimum interval.
_COUNTING_SHARE = 0.01
_SECONDS_BETWEEN_COUNTS = 1.0

Batch = Callable[[int, int], int | BatchDone | None]
"""Runs a batch at a time in milliseconds, of at most this number of rows. Returns the number of processed rows, or None
if there is no work now. A BatchDone names the work more precisely."""


class TargetFailed(Exception):
    """A service outside of the database failed. The batch is repeated, and the log has no traceback."""


@dataclass(eq=False, slots=True)
class Work:
    """A kind of background work. `name` is its name in /metrics.

    - `count`: number of rows left at a time, at most progress.COUNTED_ROWS. The works of progress.WAITING are counted without it
    - `period_s`: seconds until the next check after a check has found no work
    - `oldest_ms`: time of the oldest change that the work has still to process. None if there is none
    - `own_thread`: its batches wait for disks or networks, so that they run on a thread of their own
    - `each_process`: each server process does the work for itself. Otherwise one process does it for all
    - `renew`: called every two seconds from another thread while a batch may take long
    """

    name: str
    batch: Batch
    _: KW_ONLY
    count: Callable[[Session, int], int] | None = None
    period_s: float = 0.0
    oldest_ms: Callable[[Session], int | None] | None = None
    own_thread: bool = False
    each_process: bool = False
    renew: Callable[[], None] | None = None
    size: BatchSize = field(default_factory=BatchSize, init=False)
    due_at: float = field(default=0.0, init=False)
    lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    """Held for a batch, and by `catch_up` until the work is done."""


class Scheduler:
    """The background works of one store, which take turns, one batch each.

    - `write` and `with_retries`: those of Transactions
    - `now_ms`: the time of tables
    - `idle_s`: seconds between two checks if there is no work
    - `complete`: called before the first batch. It registers the works of capabilities
    """

    def __init__(
        self,
        store: Store,
        write: Callable[..., list[Any]],
        with_retries: Callable[..., Any],
        now_ms: Callable[[], int],
        idle_s: float,
        complete: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.write = write
        self.now_ms = now_ms
        self.idle_s = idle_s
        self._with_retries = with_retries
        self._complete = complete
        self.works: dict[str, Work] = {}
        """All works so far, in the order of their registration."""
        self._turns: deque[Work] = deque()
        self._count_again_at = 0.0
        self.rows_left: dict[str, int] = {}
        """Approximate number of remaining rows, by the name of the work. A missing name has none, or an unknown
        number."""

    def add(self, work: Work) -> None:
        """Register a work."""
        self.works[work.name] = work
        if not work.own_thread:
            self._turns.append(work)

    @property
    def has_large_backlog(self) -> bool:
        """True if much work is left, as far as its length is known."""
        left = self.rows_left
        speeds = {name: work.size.rows_per_s for name, work in self.works.items()}
        seconds = sum(rows / speed for name, rows in left.items() if (speed := speeds.get(name)))
        return sum(left.values()) >= LARGE_BACKLOG_ROWS or seconds > LARGE_BACKLOG_S

    def next_batch(self, beside_clients: bool = False) -> BatchDone | None:
        """Run one batch of the next work without a thread of its own, a short one beside clients. None if there is
        nothing to do. Call again after `idle_s`."""
        self._complete()
        for _ in range(len(self._turns)):
            work = self._turns[0]
            self._turns.rotate(-1)
            batch = self.batch_of(work.name, beside_clients)
            if batch is not None:
                if batch.rows and (work.count is not None or work.name in progress.WAITING):
                    self._keep_count(work.name, batch.rows)
                return batch
        self.rows_left = {}
        self._count_again_at = 0.0
        return None

    def batch_of(self, name: str, beside_clients: bool = False) -> BatchDone | None:
        """Run one batch of a work. None if it is not registered, not due or done, or if another thread runs it."""
        self._complete()
        work = self.works.get(name)
        began = time.monotonic()
        if work is None or began < work.due_at or not work.lock.acquire(blocking=False):
            return None
        parts = PARTS_BESIDE_CLIENTS if beside_clients else 1
        try:
            done = work.batch(self.now_ms(), work.size.rows // parts)
        except LockTimeout as reason:
            log.info("%s waits for a lock: %s", name, reason)
            done = 0
        except DataCorrupted as error:
            self.store.note_damage(error)
            raise
        finally:
            work.lock.release()
        now = time.monotonic()
        if done is None:
            work.due_at = now + work.period_s
            return None
        batch = done if isinstance(done, BatchDone) else BatchDone(name, done)
        work.size.took(batch.rows * parts, (now - began) * parts)
        return batch

    def catch_up(self) -> None:
        """Do all work that is due, in the order of registration. Called after the clock was moved, so that expiry does
        not wait for its period.

        Works that wait for networks are left out, and those of progress.WAITING, which do not depend on the clock. Raises
        GatewayError if the database fails for longer than a request waits for it.
        """
        self._complete()
        for work in self.works.values():
            if not work.own_thread and work.name not in progress.WAITING:
                with work.lock:
                    for _ in range(2):  # the current pass may have begun before the clock was moved
                        self._run_to_end(work)

    def lag_s(self, name: str) -> float:
        """Return the age of the oldest change that a work has still to process, in seconds. 0 if there is none."""
        self._complete()
        oldest_ms = self.works[name].oldest_ms
        try:
            with self.store.read() as session:
                at_ms = None if oldest_ms is None else oldest_ms(session)
        except Exception:
            return 0.0
        return 0.0 if at_ms is None else max(0.0, (self.now_ms() - at_ms) / 1000)

    def _run_to_end(self, work: Work) -> None:
        """Run batches until no work is left. A batch is repeated if the database is busy or cannot be reached."""
        began = time.monotonic()
        while (answer := self._with_retries(self._large_batch, work)) is not None:
            if not isinstance(answer, GatewayError):
                began = time.monotonic()
            elif isinstance(answer, Contended) and time.monotonic() < began + answer.wait_s:
                time.sleep(_AFTER_FAILURE_S)
            else:
                raise answer

    def _large_batch(self, work: Work) -> int | BatchDone | None:
        return work.batch(self.now_ms(), _CATCH_UP_ROWS)

    def _keep_count(self, name: str, rows: int) -> None:
        began = time.monotonic()
        if began < self._count_again_at and name in self.rows_left:
            self.rows_left[name] = max(0, self.rows_left[name] - rows)
            return
        self.rows_left = {name: 0} | self._count_left()
        now = time.monotonic()
        self._count_again_at = now + max(_SECONDS_BETWEEN_COUNTS, (now - began) / _COUNTING_SHARE)

    def _count_left(self) -> dict[str, int]:
        with self.store.read() as session:
            now_ms = self.now_ms()
            rows_by_work = {
                work.name: work.count(session, now_ms) for work in self.works.values() if work.count
            }
            for piece in progress.unfinished_work(session):
                rows_by_work[piece.work] = rows_by_work.get(piece.work, 0) + piece.left
        return rows_by_work

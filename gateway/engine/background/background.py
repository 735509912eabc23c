"""Background work: what is done batch by batch beside requests, and in which turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tablegate.gateway.engine.background import pacing
from tablegate.gateway.engine.background.pacing import BatchDone
from tablegate.gateway.engine.backups import history_retention, restoring
from tablegate.gateway.engine.replication import replication
from tablegate.gateway.engine.rows import local_transactions
from tablegate.gateway.engine.streams import streaming
from tablegate.gateway.engine.tables import expiring, indexing, table_definitions
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.store.rows import purges
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.transactions import tokens

# Between two looks at all streams, and at all tokens.
_TENDING_PERIOD_S = 60.0
# Rows in a batch of `catch_up`.
_BATCH_AT_ONCE = 1_000
# A search waits no longer for a graph.
_GRAPH_BATCH_S = 0.005


class BackgroundOptions(NamedTuple):
    """The options of the engine that background work needs (EngineOptions)."""

    sweep_period_s: float
    stream_roll_ms: int
    replication_lag_ms: int


class Background:
    """The background work of one store. `now` gives nanoseconds since 1970."""

    def __init__(
        self, store: Store, transactions: Transactions, options: BackgroundOptions, now: Callable[[], int]
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._options = options
        self._now = now
        self._next_sweep = self._next_tending = self._next_forgetting = self._next_history = 0.0
        self._tended_up_to = self._brought_up_to = 0
        copies = pacing.FairQueue()
        works: dict[str, pacing.Batch] = {
            progress.INDEX_BACKFILL: lambda limit: indexing.backfill(store, limit),
            progress.EXPIRY_BACKFILL: lambda limit: expiring.backfill(store, limit),
            progress.PURGE: self._purge,
            progress.COPY: lambda limit: restoring.advance(store, copies, limit),
            "replication": self._replicate,
            "history_trim": self._tend_histories,
            "expiry_sweep": self._sweep,
            "stream_trim": self._tend_streams,
            "dropped_names": lambda limit: table_definitions.remove_gone(store, self._now_ms(), limit),
            "tokens": self._forget,
        }
        self._round_robin = pacing.RoundRobin(works, progress.WORKS, self._count_left)

    def next_batch(self) -> BatchDone | None:
        """Do one batch of a bounded time: fill an index, delete what expired or was dropped, trim streams. None: there is nothing
        to do now."""
        return self._round_robin.next_batch()

    @property
    def rows_left(self) -> Mapping[str, int]:
        """Approximate number of rows that are left, by the work. Work that is not named has none or an unknown number."""
        return self._round_robin.left

    def vector_graph_batch(self) -> BatchDone | None:
        """Add some vectors to what approximate searches of this process go by, for some milliseconds. None: it has all that the
        searches have read."""
        rows, until = 0, time.monotonic() + _GRAPH_BATCH_S
        images = self._store.vector_images
        while images is not None and (added := images.grow_a_graph()):
            rows += added
            if time.monotonic() >= until:
                break
        return BatchDone("vector_graphs", rows) if rows else None

    def catch_up(self) -> None:
        """Do all work that is due. Called after the clock was moved, so that expiry and the like do not wait for their period."""
        self._next_sweep = self._next_tending = self._next_forgetting = self._next_history = 0.0
        self._tended_up_to = 0
        for work in (self._sweep, self._tend_streams, self._forget, self._tend_histories, self._replicate):
            while work(_BATCH_AT_ONCE) is not None:
                pass
        while table_definitions.remove_gone(self._store, self._now_ms(), _BATCH_AT_ONCE):
            pass

    def bring(self, brought: replication.ReplicationBatch) -> bool:
        """Bring a replica what another has. False: it could not be taken now."""
        answers = self._transactions.write(brought.groups) if brought.groups else []
        if any(isinstance(answer, GatewayError) for answer in answers):
            return False
        replication.note(self._store, brought)
        return True

    def _count_left(self) -> dict[str, int]:
        left: dict[str, int] = {}
        with self._store.read() as session:
            for piece in progress.listed(session):
                left[piece.work] = left.get(piece.work, 0) + piece.left
        return left

    def _purge(self, limit: int) -> int | None:
        with self._store.read() as session:
            if not purges.waits(session):
                return None
        with self._store.write() as session:
            return purges.purge(session, limit)

    def _sweep(self, limit: int) -> int | None:
        if time.monotonic() < self._next_sweep:
            return None
        groups = expiring.sweep(self._store, self._now_ms(), limit)
        if not groups:
            self._next_sweep = time.monotonic() + self._options.sweep_period_s
            return None
        self._transactions.write(groups)
        return len(groups)

    def _tend_streams(self, limit: int) -> int | None:
        if time.monotonic() < self._next_tending:
            return None
        tending = streaming.StreamMaintenance(self._now_ms(), self._options.stream_roll_ms, limit)
        gone, after = streaming.tend(self._store, tending, self._tended_up_to)
        self._tended_up_to = after or 0
        if after is None:
            self._next_tending = time.monotonic() + _TENDING_PERIOD_S
        return gone

    def _replicate(self, limit: int) -> int | None:
        """Bring the next replica that lacks something some of what others have. How much; None: they lack nothing."""
        until_ms = self._now_ms() - self._options.replication_lag_ms
        rounds = 0 if self._brought_up_to else 1
        while rounds < 2:
            found = replication.next_brought(self._store, until_ms, limit, self._brought_up_to)
            if found is None:  # that was the last of them: once more from the first
                self._brought_up_to = 0
                rounds += 1
            elif isinstance(found, int):
                self._brought_up_to = found
            else:
                self._brought_up_to = found.follower.id
                if self.bring(found):
                    return max(1, found.length)
        return None

    def _tend_histories(self, limit: int) -> int | None:
        if time.monotonic() < self._next_history:
            return None
        gone = history_retention.tend(self._store, self._now_ms(), limit)
        gone += replication.tend(self._store, self._now_ms(), limit)
        if not gone:
            self._next_history = time.monotonic() + _TENDING_PERIOD_S
            return None
        return gone

    def _forget(self, limit: int) -> int | None:
        """Forget some idempotency tokens and local transactions that are past their time. How many; None: not now."""
        if time.monotonic() < self._next_forgetting:
            return None
        ended = local_transactions.sweep(self._store, self._now_ms(), limit)
        with self._store.write() as session:
            gone = tokens.forget_expired(session, self._now_ms(), limit)
        if not ended and not gone:
            self._next_forgetting = time.monotonic() + _TENDING_PERIOD_S
        return gone + (ended or 0)

    def _now_ms(self) -> int:
        return self._now() // 1_000_000

"""Background work, done in batches between requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tablegate.gateway.engine.background import pacing
from tablegate.gateway.engine.background.pacing import BatchDone
from tablegate.gateway.engine.backups import history_retention, restoring
from tablegate.gateway.engine.replication import replication
from tablegate.gateway.engine.rows import local_transactions
from tablegate.gateway.engine.search.search_maintenance import SearchMaintenance
from tablegate.gateway.engine.streams import streaming, tunnels
from tablegate.gateway.engine.tables import expiring, indexing, table_definitions
from tablegate.gateway.engine.transactions import Transactions
from tablegate.gateway.model.errors import Contended, GatewayError
from tablegate.gateway.store.rows import purges, rows
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.transactions import tokens

# Seconds between two checks of all streams, and of all tokens.
_MAINTENANCE_PERIOD_S = 60.0
# Seconds between two searches for interrupted commits, whose rows stay locked.
_COMMITS_PERIOD_S = 5.0
# Rows in a batch of `catch_up`, which has no bound in time.
_CATCH_UP_ROWS = pacing.MAX_ROWS
# Seconds before it repeats a batch after a failure of the database.
_AFTER_FAILURE_S = 0.1
# Maximum time for which a search waits for a graph.
_GRAPH_BATCH_S = 0.005
_EXPIRY_SWEEP, _STREAM_TRIM = "expiry_sweep", "stream_trim"


class BackgroundOptions(NamedTuple):
    """The options of background work (EngineOptions)."""

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
        self._next_sweep = self._next_maintenance = self._next_forgetting = self._next_history = 0.0
        self._next_commits = 0.0
        self._maintained_up_to = self._replicated_up_to = 0
        self._expiry_sweep = self._new_sweep()
        # Held for a batch of expiry, and for the whole sweep of `catch_up`, which runs on another thread.
        self._sweeping = threading.Lock()
        self._purges = purges.Purge()
        self._search = SearchMaintenance(store)
        copies = pacing.FairQueue()
        works: dict[str, pacing.Batch] = {
            progress.INDEX_BACKFILL: lambda limit: indexing.backfill(store, limit),
            progress.EXPIRY_BACKFILL: lambda limit: expiring.backfill(store, limit),
            progress.PURGE: self._purge,
            progress.COPY: lambda limit: restoring.advance(store, copies, limit),
            "replication": self._replicate,
            "search": self._index_documents,
            "history_trim": self._trim_histories,
            _EXPIRY_SWEEP: self._sweep,
            _STREAM_TRIM: self._maintain_streams,
            "dropped_names": lambda limit: table_definitions.remove_deleted(store, self._now_ms(), limit),
            "tokens": self._forget,
            "interrupted_commits": self._finish_commits,
        }
        countable = {*progress.WORKS, _EXPIRY_SWEEP, _STREAM_TRIM}
        self._round_robin = pacing.RoundRobin(works, countable, self._count_left)

    def next_batch(self, beside_clients: bool = False) -> BatchDone | None:
        """Run one batch of a bounded time: fill an index, delete expired or dropped rows, trim streams. None if there
        is no work now. A batch is shorter beside clients."""
        return self._round_robin.next_batch(beside_clients)

    @property
    def rows_left(self) -> Mapping[str, int]:
        """Approximate number of remaining rows, by the name of the work. A missing name has none, or an unknown
        number."""
        return self._round_robin.left

    @property
    def has_large_backlog(self) -> bool:
        """True if much work is left, as far as its length is known."""
        return self._round_robin.has_large_backlog

    def vector_graph_batch(self) -> BatchDone | None:
        """Add vectors to the approximate graphs of this process, for some milliseconds. None if they are complete."""
        number, deadline = 0, time.monotonic() + _GRAPH_BATCH_S
        images = self._store.vector_images
        while images is not None and (count := images.grow_graph()):
            number += count
            if time.monotonic() >= deadline:
                break
        return BatchDone("vector_graphs", number) if number else None

    def catch_up(self) -> None:
        """Do all work that is due. Called after the clock was moved, so that expiry does not wait for its period.

        Raises GatewayError if the database fails for longer than a request waits for it.
        """
        self._next_maintenance = self._next_forgetting = self._next_history = 0.0
        self._maintained_up_to = 0
        sweep = self._new_sweep()
        with self._sweeping:
            self._run_to_end(lambda limit: sweep.next_batch(self._now_ms(), limit))
        for work in (
            self._maintain_streams,
            self._forget,
            self._trim_histories,
            self._replicate,
            self._index_documents,
            lambda limit: table_definitions.remove_deleted(self._store, self._now_ms(), limit) or None,
        ):
            self._run_to_end(work)

    def _run_to_end(self, work: pacing.Batch) -> None:
        """Run batches until no work is left. A batch is repeated if the database is busy or cannot be reached."""
        began = time.monotonic()
        while (answer := self._transactions.with_retries(work, _CATCH_UP_ROWS)) is not None:
            if not isinstance(answer, GatewayError):
                began = time.monotonic()
            elif isinstance(answer, Contended) and time.monotonic() < began + answer.wait_s:
                time.sleep(_AFTER_FAILURE_S)
            else:
                raise answer

    def apply(self, batch: replication.ReplicationBatch) -> bool:
        """Apply a batch to a replica. False if it cannot be applied now."""
        answers = self._transactions.write(batch.groups) if batch.groups else []
        if any(isinstance(answer, GatewayError) for answer in answers):
            return False
        replication.record_progress(self._store, batch)
        return True

    def _count_left(self) -> dict[str, int]:
        rows_by_work: dict[str, int] = {}
        with self._store.read() as session:
            for piece in progress.unfinished_work(session):
                rows_by_work[piece.work] = rows_by_work.get(piece.work, 0) + piece.left
            now_ms = self._now_ms()
            rows_by_work[_EXPIRY_SWEEP] = rows.count_expired(session, now_ms, progress.COUNTED_ROWS)
            rows_by_work[_STREAM_TRIM] = streaming.count_expired(
                session, now_ms, self._maintained_up_to, progress.COUNTED_ROWS
            )
        return rows_by_work

    def _purge(self, limit: int) -> int | None:
        with self._store.read() as session:
            if not purges.is_pending(session):
                return None
        with self._store.write() as session:
            return self._purges.next_batch(session, limit)

    def _sweep(self, limit: int) -> int | None:
        """Delete the next expired rows. Return their number, or None at the end."""
        if time.monotonic() < self._next_sweep:
            return None
        with self._sweeping:
            number = self._expiry_sweep.next_batch(self._now_ms(), limit)
        if number is None:
            self._expiry_sweep = self._new_sweep()
            self._next_sweep = time.monotonic() + self._options.sweep_period_s
        return number

    def _new_sweep(self) -> expiring.Sweep:
        return expiring.Sweep(self._store, self._transactions.write)

    def _maintain_streams(self, limit: int) -> int | None:
        if time.monotonic() < self._next_maintenance:
            return None
        maintenance = streaming.StreamMaintenance(self._now_ms(), self._options.stream_roll_ms, limit)
        count, after = streaming.maintain(self._store, maintenance, self._maintained_up_to)
        self._maintained_up_to = after or 0
        if after is None:
            tunnels.expire(self._store, self._now_ms())
            self._next_maintenance = time.monotonic() + _MAINTENANCE_PERIOD_S
        return count

    def _replicate(self, limit: int) -> int | None:
        """Apply changes to the next replica that lags behind. Return their number, or None if none lags behind."""
        until_ms = self._now_ms() - self._options.replication_lag_ms
        passes = 0 if self._replicated_up_to else 1
        while passes < 2:
            batch_or_id = replication.next_replication_batch(
                self._store, until_ms, limit, self._replicated_up_to
            )
            if batch_or_id is None:  # the end of the list: start again from the first
                self._replicated_up_to = 0
                passes += 1
            elif isinstance(batch_or_id, int):
                self._replicated_up_to = batch_or_id
            else:
                self._replicated_up_to = batch_or_id.follower.id
                if self.apply(batch_or_id):
                    return max(1, batch_or_id.length)
        return None

    def _index_documents(self, limit: int) -> int | None:
        return self._search.next_batch(self._now_ms(), limit)

    def _trim_histories(self, limit: int) -> int | None:
        if time.monotonic() < self._next_history:
            return None
        count = history_retention.delete_expired(self._store, self._now_ms(), limit)
        count += replication.trim_tombstones(self._store, self._now_ms(), limit)
        if not count:
            self._next_history = time.monotonic() + _MAINTENANCE_PERIOD_S
            return None
        return count

    def _finish_commits(self, limit: int) -> None:
        if time.monotonic() >= self._next_commits:
            self._next_commits = time.monotonic() + _COMMITS_PERIOD_S
            self._store.database.finish_interrupted()

    def _forget(self, limit: int) -> int | None:
        """Remove some expired idempotency tokens and local transactions. Return their number, or None if none is
        due."""
        if time.monotonic() < self._next_forgetting:
            return None
        transaction_count = local_transactions.sweep(self._store, self._now_ms(), limit)
        with self._store.write() as session:
            token_count = tokens.forget_expired(session, self._now_ms(), limit)
        if not transaction_count and not token_count:
            self._next_forgetting = time.monotonic() + _MAINTENANCE_PERIOD_S
        return token_count + (transaction_count or 0)

    def _now_ms(self) -> int:
        return self._now() // 1_000_000

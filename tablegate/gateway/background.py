"""Background threads. One runs the engine's batches (backfill, expiry, purging), reloads credentials and quotas, renews claims on
jobs, and samples the metrics.

Other threads run jobs, vector graphs and the checks of replicas, because these wait for disks and networks. Each thread pauses
after a batch (gateway/engine/background/pacing.py). The engine does the work.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from time import monotonic, thread_time

from tablegate.gateway.engine.background.pacing import BatchDone, CpuShare, pause_after
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.search.search_definitions import SEARCH
from tablegate.gateway.engine.streams.following import DeliveryFailed
from tablegate.gateway.model.errors import Busy, CommitUnknown
from tablegate.gateway.observability import logs, metric_history, metrics
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.security.quota_keeper import QuotaSync
from tablegate.gateway.store.opening.replicas import Standbys
from tablegate.gateway.store.sql.databases import CommitInterrupted, RetryableFailure

_AFTER_FAILURE_S = 1.0
_LOOK_FOR_CHANGES_S = 0.1
_LONGEST_REST_S = 5.0
# A claim on a job lasts for 6 s (job_runner.py).
_RENEWAL_PERIOD_S = 2.0
# A thread that waits longer than this for a disk or a network is abandoned at the stop.
_LONGEST_STOP_S = 0.5
_DELIVERED_TOGETHER = 500
# A lost connection, a lock, a full disk: errors that are logged without a traceback.
_DATABASE_AWAY = (Busy, CommitUnknown, RetryableFailure, CommitInterrupted)


class BackgroundWork(threading.Thread):
    """The main background thread, from `start()` to `stop()`. Failures are logged and retried.

    - `share`: share of one core for the engine's work (`CpuShare`). 0 if another process of this server does the work.
    - `look_period_s`: seconds between two checks for changed credentials and grants.
    - `own_share`: share of one core for work that each server process does for itself.
    """

    def __init__(
        self,
        engine: Engine,
        credential_store: CredentialStore,
        credentials: Credentials,
        share: float,
        quotas: QuotaSync | None = None,
        look_period_s: float = 2.0,
        own_share: float = 0.0,
    ) -> None:
        super().__init__(name="background", daemon=True)
        self._engine = engine
        self._credential_store = credential_store
        self._credentials = credentials
        self._share = CpuShare(share, lambda: engine.run_count)
        self._stopping = threading.Event()
        self._next_batch = monotonic() if share else math.inf
        self._look_period_s = look_period_s
        self._next_look = monotonic() + look_period_s
        self._is_waiting = False
        self._quotas = quotas
        # Deliveries to followers outside of the database have their own threads, because a network can be slow.
        self._deliveries = [FollowerDelivery(engine, kind) for kind in engine.deliveries] if share else []
        self._replica_watch = None if engine.replicas is None else StandbyMonitor(engine.replicas)
        self._jobs = (
            PacedWorker("jobs", engine.job_batch, engine.idle_s, CpuShare(share, lambda: engine.run_count))
            if share and engine.has_workers
            else None
        )
        self._next_renewal = math.inf if self._jobs is None else monotonic()
        self._paced = [] if self._jobs is None else [self._jobs]
        if own_share and engine.approximates_vectors:
            self._paced.append(
                PacedWorker(
                    "vector graphs",
                    engine.background.vector_graph_batch,
                    engine.idle_s,
                    CpuShare(own_share, lambda: engine.run_count),
                )
            )

    def run(self) -> None:
        """Run batches of work and reload credentials until `stop`."""
        if self._replica_watch is not None:
            self._replica_watch.start()
        for delivery in self._deliveries:
            delivery.start()
        for work in self._paced:
            work.start()
        while not self._stopping.wait(self._rest_s()):
            try:
                metric_history.history.sample_if_due()
                is_time_to_look = monotonic() >= self._next_look
                if is_time_to_look:
                    self._next_look = monotonic() + self._look_period_s
                    self._engine.check_schema()
                    metrics.record_follower_lag("tunnel", self._engine.lag_s("tunnel"))
                    metrics.record_follower_lag(SEARCH, self._engine.lag_s(SEARCH))
                if monotonic() >= self._next_renewal:
                    self._next_renewal = monotonic() + _RENEWAL_PERIOD_S
                    self._engine.renew_claims()
                if self._quotas is not None:
                    self._quotas.run()
                if monotonic() >= self._next_batch:
                    self._do_a_batch()
                if is_time_to_look:
                    self._look_at_credentials()
                self._engine.retry_writes()  # after the work, which can have freed space
                self._is_waiting = False
            except _DATABASE_AWAY as error:
                # One line for each outage.
                if not self._is_waiting:
                    self._is_waiting = True
                    reason = " ".join(str(error).split())
                    logs.error("background work waits for the database", None, reason=reason)
                self._next_batch = max(self._next_batch, monotonic() + _AFTER_FAILURE_S)
            except Exception as error:
                logs.error("background work failed", error)
                self._next_batch = max(self._next_batch, monotonic() + _AFTER_FAILURE_S)

    def _rest_s(self) -> float:
        """Return seconds until the next work is due."""
        next_work = min(self._next_batch, self._next_look, self._next_renewal)
        rest_s = min(max(0.0, next_work - monotonic()), metric_history.FINE_S)
        return rest_s if self._quotas is None else min(rest_s, self._quotas.period_s)

    def stop(self) -> None:
        """End after the current batch."""
        self._stopping.set()
        for delivery in self._deliveries:
            delivery.request_stop()
        self.join()
        for delivery in self._deliveries:  # unfinished deliveries are repeated at the next start
            delivery.join(_LONGEST_REST_S)
        if self._replica_watch is not None:
            self._replica_watch.stop()
        for work in self._paced:
            work.stop()

    def look_at_credentials_now(self) -> None:
        """Check for changed credentials before the next batch."""
        self._next_look = 0.0

    def _do_a_batch(self) -> None:
        began = monotonic()
        batch = self._engine.background_batch(self._share.has_clients)
        took = monotonic() - began
        pause = pause_after(took, self._share.after_batch(self._engine.background.has_large_backlog))
        if batch is None:
            pause = max(pause, self._engine.idle_s)
        else:
            metrics.record_batch(batch.work, batch.rows, took)
        metrics.record_rows_left(self._engine.background.rows_left)
        self._next_batch = began + took + pause

    def _look_at_credentials(self) -> None:
        credentials = self._credential_store.changes()
        if credentials is not None:
            self._credentials.replace(credentials, self._credential_store.token_policies)
            self._credentials.keep_resource_policies(self._credential_store.resource_policies)
        if self._quotas is not None:
            self._quotas.reload()


class FollowerDelivery(threading.Thread):
    """The thread that delivers changes to followers of one kind, one by one. Failures are retried with backoff."""

    def __init__(self, engine: Engine, kind: str) -> None:
        super().__init__(name=f"delivery to {kind}", daemon=True)
        self._engine = engine
        self._kind = kind
        self._stopping = threading.Event()

    def run(self) -> None:
        """Deliver changes to all followers until `request_stop`, with a pause if there are none."""
        pause = _LOOK_FOR_CHANGES_S
        while True:
            number, has_failed = self._deliver_to_all()
            metrics.record_follower_lag(self._kind, self._engine.lag_s(self._kind))
            pause = min(2 * pause, _LONGEST_REST_S) if has_failed else _LOOK_FOR_CHANGES_S
            rests = has_failed or not number
            if self._stopping.wait(pause if rests else 0):
                return

    def _deliver_to_all(self) -> tuple[int, bool]:
        """Deliver some changes to each follower. Returns their number, and True if a delivery failed."""
        number, last_id, has_failed = 0, 0, False
        while not self._stopping.is_set():
            try:
                delivered_number, last_id = self._engine.deliver(self._kind, _DELIVERED_TOGETHER, last_id)
                number += delivered_number
            except Exception as error:
                has_failed = True
                last_id = error.follower_id if isinstance(error, DeliveryFailed) else 0
                reason = " ".join(str(error).split())
                logs.error(f"cannot deliver changes to {self._kind}, retrying", None, reason=reason)
            if not last_id:
                break
        return number, has_failed

    def request_stop(self) -> None:
        """End after the current delivery."""
        self._stopping.set()


class PacedWorker(threading.Thread):
    """A thread for batches of one kind of work, limited to a share of one core.

    Time spent waiting does not count. `idle_s` is the pause in seconds if there was no work.
    """

    def __init__(self, name: str, do: Callable[[], BatchDone | None], idle_s: float, share: CpuShare) -> None:
        super().__init__(name=name, daemon=True)
        self._do = do
        self._idle_s = idle_s
        self._share = share
        self._stopping = threading.Event()

    def run(self) -> None:
        """Run batches with pauses until `stop`."""
        pause = 0.0
        while not self._stopping.wait(pause):
            began, used = monotonic(), thread_time()
            try:
                batch = self._do()
            except _DATABASE_AWAY:
                pause = _AFTER_FAILURE_S  # the main background thread logs it
                continue
            except Exception as error:
                logs.error(f"a batch of {self.name} failed, retrying", error)
                pause = _AFTER_FAILURE_S
                continue
            apart_s = 0.0 if batch is None else batch.apart_s
            pause = pause_after(thread_time() - used + apart_s, self._share.after_batch())
            if batch is None:
                pause = max(pause, self._idle_s)
            else:
                metrics.record_batch(batch.work, batch.rows, monotonic() - began)

    def stop(self) -> None:
        """End after the current batch. A batch that waits too long is abandoned, and its unsaved part is repeated later."""
        self._stopping.set()
        self.join(_LONGEST_STOP_S)


class StandbyMonitor(threading.Thread):
    """The thread that checks the replicas. If the primary cannot be reached, reads go to the replicas, too."""

    def __init__(self, replicas: Standbys) -> None:
        super().__init__(name="replicas", daemon=True)
        self._replicas = replicas
        self._stopping = threading.Event()

    def run(self) -> None:
        """Check the replicas periodically until `stop`."""
        while True:
            try:
                self._replicas.watch()
            except _DATABASE_AWAY:
                pass  # the main background thread logs it
            except Exception as error:
                logs.error("cannot check the replicas, retrying", error)
            for lag in self._replicas.lags():
                metrics.record_replica_lag(lag.replica, lag.milliseconds, lag.is_used)
            if self._stopping.wait(self._replicas.period_s):
                return

    def stop(self) -> None:
        """End after the current check."""
        self._stopping.set()
        self.join()

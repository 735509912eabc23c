"""Background work on a thread of its own: the engine's batches (backfill, expiry, purging), and news of credentials and
quotas; and on another, looks at replicas.

Knows when to call, and rests after each batch (gateway/engine/pacing.py); what is done is the engine's.
"""

from __future__ import annotations

import math
import threading
from time import monotonic

from gateway import logs, metrics
from gateway.engine.engine import Engine
from gateway.engine.pacing import rest_after
from gateway.model.errors import Busy, Unknowable
from gateway.quotas import QuotaKeeper
from gateway.security.credential_store import CredentialStore
from gateway.security.credentials import Credentials
from gateway.store.databases import CommitLost, Retry
from gateway.store.replicas import Replicas

_AFTER_FAILURE_S = 1.0
# A lost connection, a lock, a full disk: nothing that a traceback would tell more of.
_DATABASE_AWAY = (Busy, Unknowable, Retry, CommitLost)


class BackgroundWork(threading.Thread):
    """Works from `start()` to `stop()`; a failure is logged and tried again.

    `share`: of one core, what the engine's work may have; 0: none, another process of this server does it. `look_period_s`:
    between two looks for news of credentials and grants.
    """

    def __init__(
        self,
        engine: Engine,
        credential_store: CredentialStore,
        credentials: Credentials,
        share: float,
        quotas: QuotaKeeper | None = None,
        look_period_s: float = 2.0,
    ) -> None:
        super().__init__(name="background", daemon=True)
        self._engine = engine
        self._credential_store = credential_store
        self._credentials = credentials
        self._share = share
        self._stopping = threading.Event()
        self._next_batch = monotonic() if share else math.inf
        self._look_period_s = look_period_s
        self._next_look = monotonic() + look_period_s
        self._is_waiting = False
        self._quotas = quotas
        self._replica_watch = None if engine.replicas is None else ReplicaWatch(engine.replicas)

    def run(self) -> None:
        """The thread: batches of work and looks at stored credentials, until told to stop."""
        if self._replica_watch is not None:
            self._replica_watch.start()
        while not self._stopping.wait(self._rest_s()):
            try:
                if self._quotas is not None:
                    self._quotas.turn()
                if monotonic() >= self._next_batch:
                    self._do_a_batch()
                self._look_at_credentials()
                self._engine.retry_writes()  # after the work, which may have made room
                self._is_waiting = False
            except _DATABASE_AWAY as error:
                # One line, however long it takes: what is the matter with the database is known.
                if not self._is_waiting:
                    self._is_waiting = True
                    reason = " ".join(str(error).split())
                    logs.error("background work waits for the database", None, reason=reason)
                self._next_batch = max(self._next_batch, monotonic() + _AFTER_FAILURE_S)
            except Exception as error:
                logs.error("background work failed", error)
                self._next_batch = max(self._next_batch, monotonic() + _AFTER_FAILURE_S)

    def _rest_s(self) -> float:
        """Seconds until there is something to do."""
        rest_s = max(0.0, min(self._next_batch, self._next_look) - monotonic())
        return rest_s if self._quotas is None else min(rest_s, self._quotas.period_s)

    def stop(self) -> None:
        """End after the batch in hand."""
        self._stopping.set()
        self.join()
        if self._replica_watch is not None:
            self._replica_watch.stop()

    def look_at_credentials_now(self) -> None:
        """Look for news of credentials before the next piece of work."""
        self._next_look = 0.0

    def _do_a_batch(self) -> None:
        began = monotonic()
        batch = self._engine.background_batch()
        took = monotonic() - began
        pause = rest_after(took, self._share)
        if batch is None:
            pause = max(pause, self._engine.idle_s)
        else:
            metrics.worked(batch.work, batch.rows, took)
        metrics.left_to_do(self._engine.rows_left)
        self._next_batch = began + took + pause

    def _look_at_credentials(self) -> None:
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + self._look_period_s
            changed = self._credential_store.changes()
            if changed is not None:
                self._credentials.replace(changed, self._credential_store.roles)
            if self._quotas is not None:
                self._quotas.look()


class ReplicaWatch(threading.Thread):
    """Looks at the replicas from `start()` to `stop()`. A primary that cannot be looked at makes reads go there too."""

    def __init__(self, replicas: Replicas) -> None:
        super().__init__(name="replicas", daemon=True)
        self._replicas = replicas
        self._stopping = threading.Event()

    def run(self) -> None:
        """The thread: a look, a rest, until told to stop."""
        while True:
            try:
                self._replicas.watch()
            except _DATABASE_AWAY:
                pass  # the other thread tells
            except Exception as error:
                logs.error("replicas could not be looked at", error)
            for lag in self._replicas.lags():
                metrics.followed(lag.replica, lag.milliseconds, lag.is_used)
            if self._stopping.wait(self._replicas.period_s):
                return

    def stop(self) -> None:
        """End after the look in hand."""
        self._stopping.set()
        self.join()

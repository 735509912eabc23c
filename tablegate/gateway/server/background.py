"""The threads of background work: they run the batches of the scheduler with pauses, and checks that recur.

One thread runs the works that use only the database, reloads credentials and quotas, renews claims on jobs, and samples
the metrics. Each work that waits for disks or networks has a thread of its own. The engine does the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, thread_time

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.scheduler import CpuShare, TargetFailed, Work, pause_after
from tablegate.gateway.model.errors import Busy, CommitUnknown
from tablegate.gateway.observability import logs, metrics
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.security.quotas import QuotaSync
from tablegate.gateway.store.replicas import Standbys
from tablegate.gateway.store.sql.databases import CommitInterrupted, RetryableFailure

_AFTER_FAILURE_S, _LONGEST_PAUSE_S = 1.0, 5.0
# A claim on a job lasts for 6 s (job_runner.py).
_RENEWAL_PERIOD_S = 2.0
_CHECK_PERIOD_S = 0.5
# The first batch imports the capabilities. The first requests of a test then have the interpreter for themselves.
_FIRST_BATCH_S = 1.0
# A thread that waits longer than this for a disk or a network is abandoned at the stop. Its unsaved part is repeated.
_LONGEST_STOP_S = 5.0
# A lost connection, a lock, a full disk: errors that are logged without a traceback.
_DATABASE_AWAY = (Busy, CommitUnknown, RetryableFailure, CommitInterrupted)


@dataclass(eq=False, slots=True)
class Task:
    """A function that a thread calls when it is due.

    It returns the seconds until the next call, unless it has a period.
    """

    do: Callable[[], float | None]
    period_s: float = 0.0
    due_at: float = 0.0
    failures: int = 0


class TaskThread(threading.Thread):
    """A thread that calls tasks from `start` to `stop`. Failures are logged and retried.

    `waiting` has the tasks that wait for the database. Threads that share it log one line for each outage.
    """

    def __init__(self, name: str, tasks: Sequence[Task], waiting: set[Task]) -> None:
        super().__init__(name=name, daemon=True)
        self._tasks = tasks
        self._waiting = waiting
        self._stopping = threading.Event()

    def run(self) -> None:
        """Call the tasks until `request_stop`."""
        while not self._stopping.wait(max(0.0, min(task.due_at for task in self._tasks) - monotonic())):
            for task in self._tasks:
                if monotonic() >= task.due_at:
                    task.due_at = monotonic() + task.period_s
                    pause = self._call(task)
                    if not task.period_s:
                        task.due_at = monotonic() + pause

    def request_stop(self) -> None:
        """End after the current call."""
        self._stopping.set()

    def _call(self, task: Task) -> float:
        """Call a task and return the seconds until its next call. They grow with each failure."""
        try:
            pause = task.do()
        except Exception as error:
            reason = " ".join(str(error).split())
            if isinstance(error, _DATABASE_AWAY):
                if not self._waiting:
                    logs.error("background work waits for the database", None, reason=reason)
                self._waiting.add(task)
            else:
                is_known = isinstance(error, TargetFailed)
                logs.error(
                    "background work failed", None if is_known else error, work=self.name, reason=reason
                )
            task.failures += 1
            return min(_LONGEST_PAUSE_S, _AFTER_FAILURE_S * 2 ** (task.failures - 1))
        self._waiting.discard(task)
        task.failures = 0
        return pause or 0.0


class BackgroundWork:
    """All background threads, from `start` to `stop`.

    - `share`: share of one core for each thread of the engine's work (`CpuShare`). 0 if another process of this server
      does the work.
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
        self._engine = engine
        self._credential_store = credential_store
        self._credentials = credentials
        self._quotas = quotas
        self._look = Task(self._look_for_changes, look_period_s, monotonic() + look_period_s)
        tasks = [
            Task(metrics.history.sample_if_due, _CHECK_PERIOD_S),
            self._look,
            Task(engine.retry_writes, _CHECK_PERIOD_S),
        ]
        if quotas is not None:
            tasks.append(Task(quotas.run, _CHECK_PERIOD_S))
        if share:
            tasks.append(self._batches(None, share))
            tasks[-1].due_at = monotonic() + _FIRST_BATCH_S
        waiting: set[Task] = set()
        self._threads = [TaskThread("background", tasks, waiting)]
        for work in engine.background.works.values():
            work_share = own_share if work.each_process else share
            if work.own_thread and work_share:
                self._threads.append(TaskThread(work.name, [self._batches(work, work_share)], waiting))
            if work.renew is not None and work_share:
                tasks.append(Task(work.renew, _RENEWAL_PERIOD_S))
        if engine.replicas is not None:
            self._threads.append(TaskThread("replicas", [replica_check(engine.replicas)], waiting))

    def start(self) -> None:
        """Start all threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the current batches."""
        for thread in self._threads:
            thread.request_stop()
        main, *others = self._threads
        main.join()
        for thread in others:
            thread.join(_LONGEST_STOP_S)

    def look_at_credentials_now(self) -> None:
        """Check for changed credentials before the next batch."""
        self._look.due_at = 0.0

    def _batches(self, work: Work | None, share: float) -> Task:
        """Return the task that runs batches of a work, or of all works without a thread of their own.

        For a work that waits for disks and networks only CPU time counts. For the others the time of the database counts, too.
        """
        background = self._engine.background
        cpu_share = CpuShare(share, lambda: self._engine.run_count)

        def run() -> float:
            began, used = monotonic(), thread_time()
            if work is None:
                batch = background.next_batch(cpu_share.has_clients)
                metrics.record_rows_left(background.rows_left)
                took = monotonic() - began
                pause = pause_after(took, cpu_share.after_batch(background.has_large_backlog))
            else:
                batch = background.batch_of(work.name)
                took = monotonic() - began
                used = thread_time() - used + (0.0 if batch is None else batch.apart_s)
                pause = pause_after(used, cpu_share.after_batch())
            if batch is None:
                return max(pause, background.idle_s)
            metrics.record_batch(batch.work, batch.rows, took)
            return pause

        return Task(run)

    def _look_for_changes(self) -> None:
        self._engine.check_schema()
        for work in [*self._engine.background.works.values()]:
            if work.oldest_ms is not None:
                metrics.record_follower_lag(work.name, self._engine.background.lag_s(work.name))
        metrics.record_nodes({node.name: (node.answers, node.stuck) for node in self._engine.node_states()})
        credentials = self._credential_store.changes()
        if credentials is not None:
            self._credentials.replace(credentials, self._credential_store.token_policies)
            self._credentials.keep_resource_policies(self._credential_store.resource_policies)
        if self._quotas is not None:
            self._quotas.reload()


def replica_check(replicas: Standbys) -> Task:
    """Return the task that checks the replicas. If the primary cannot be reached, reads go to the replicas, too."""

    def check() -> None:
        try:
            replicas.watch()
        finally:
            for lag in replicas.lags():
                metrics.record_replica_lag(lag.replica, lag.milliseconds, lag.is_used)

    return Task(check, replicas.period_s)

"""Jobs: starting, running and ending them.

A job's writes and its progress are saved in one transaction, under a claim that only one server holds. Workers of the
dialects define what each kind of job does (`add_workers`).
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import chain
from typing import Any, Protocol

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.rows.writing import Answer, WriteBatch
from tablegate.gateway.engine.scheduler import BatchDone, BatchSize, FairQueue, Scheduler, Work
from tablegate.gateway.features.history import restoring
from tablegate.gateway.features.jobs import job_commands, job_store
from tablegate.gateway.features.jobs.job_commands import Job
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.model.errors import LimitExceeded, StaleTable, TokenReused
from tablegate.gateway.model.tables.tables import namespace_of_job
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store.rows import idempotency_tokens
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

log = logging.getLogger("tablegate")

_NO_END_MS = 1 << 62
_REMEMBERED_MS = 90 * 86_400_000
# Milliseconds after the last renewal of a claim until another server can take over the job.
_CLAIM_LIFETIME_MS = 6_000
# Maximum number of active jobs, in total and for each account. An active job may hold a connection, a temporary file
# and 8 MB.
_MAX_ACTIVE_JOBS, _MAX_ACTIVE_JOBS_PER_OWNER = 16, 4
# Batches after which a job that has saved progress may be suspended for another one.
_MIN_BATCHES_BEFORE_SUSPENSION = 64
# A failing job is retried for this long, with pauses.
_RETRY_LIMIT_S = 300.0
_PAUSE_S = 1.0
# Seconds to wait for a batch. A longer one waits for an external service, so other jobs run meanwhile.
_BATCH_WAIT_S = 0.25


def forget_jobs(
    store: Store, session: Session, namespace: str | None, tables: Collection[str] | None
) -> None:
    """Remove the jobs of a namespace, or of some of its tables, with their internal tables. None for all jobs of
    callers.

    A batch that is still running cannot save its progress.
    """
    spaces = [
        namespace_of_job(job_id) for job_id in job_store.delete_of_namespace(session, namespace, tables)
    ]
    if not spaces:
        return
    places = ", ".join("?" * len(spaces))
    tables_of_jobs = store.catalog.all(session, f"namespace IN ({places}) ORDER BY id", spaces)
    for table in store.catalog.lock_all(session, [table.id for table in tables_of_jobs]):
        store.catalog.remove(session, table)


def _start(attempt: Attempt, command: job_commands.StartJob) -> Job:
    store, definer, now, now_ms = attempt.store, attempt.definer, attempt.now, attempt.now_ms
    with store.write() as session:
        earlier_job = _job_of_token(session, command, now_ms)
        if earlier_job is not None:
            return earlier_job
        count = job_store.count_unfinished(session, command.namespace, command.kind)
        if count >= command.max_jobs:
            raise LimitExceeded("jobs", command.max_jobs, count + 1)
        definer.check_bounds(session, command.bounds, now_ms)
        job_store.forget(session, now_ms - _REMEMBERED_MS)
        job_id = store.catalog.next_id(session)
        progress: dict[str, Any] = {}
        source, namespace = command.source, namespace_of_job(job_id)
        if source is not None and command.window is not None:
            restoring.begin_window(store, definer, session, source, namespace, command.window, now)
        elif source is not None:
            progress["at"] = restoring.begin_copy(store, definer, session, source, namespace, command.at, now)
        kind, given = command.kind, command.definition
        job = Job(job_id, kind, command.namespace, command.table_name, given, progress, command.state, now_ms)
        job_store.add(session, job)
        if command.token is not None:
            token = command.token
            key = token.scope, token.name
            idempotency_tokens.remember(session, key, token.digest, str(job_id), now_ms + token.lifetime_ms)
    if source is not None:
        store.catalog.cache.forget(source.id)
    return job


def _job_of_token(session: Session, command: job_commands.StartJob, now_ms: int) -> Job | None:
    """Return the job that an equal command with the same token began. Raises TokenReused if that command differs."""
    token = command.token
    stored_answer = (
        None if token is None else idempotency_tokens.take(session, token.scope, token.name, now_ms)
    )
    if token is None or stored_answer is None:
        return None
    digest, answer = stored_answer
    job = job_store.by_id(session, int(answer))
    if job is not None and digest != token.digest:
        raise TokenReused()
    return job


def _list(attempt: Attempt, command: job_commands.ListJobs) -> list[Job]:
    with attempt.store.read() as session:
        return job_store.page(session, command)


def _list_unfinished(attempt: Attempt, command: job_commands.ListUnfinishedJobs) -> list[Job]:
    with attempt.store.read() as session:
        return job_store.list_unfinished(session, command)


def _cancel(attempt: Attempt, command: job_commands.CancelJob) -> Job | None:
    with attempt.store.write() as session:
        job_store.cancel(session, command.job.id)
        return job_store.by_id(session, command.job.id)


def _advance(attempt: Attempt, command: job_commands.AdvanceJob) -> Job | None:
    step = _JobStep(attempt, command)
    attempt.transactions.run_transaction(step.run)
    return step.outcome


class _JobStep:
    """One attempt to advance a job: its writes and its progress. `outcome` is the job afterwards. None if another
    server has it."""

    def __init__(self, attempt: Attempt, command: job_commands.AdvanceJob) -> None:
        self._store = attempt.store
        self._hooks = attempt.transactions.write_hooks.for_features
        self._definer = attempt.definer
        self._command = command
        self._now = attempt.now
        self.outcome: Job | None = None

    def run(self) -> None:
        """Run the step in one transaction.

        Raises TableExists, TableBusy, StaleTable, RetryableFailure, CommitInterrupted, Busy.
        """
        try:
            if not self._command.groups:
                with self._store.write() as session:
                    self._save(session, [])
            else:
                batch = WriteBatch(
                    self._store, self._hooks, self._command.groups, self._now, before_commit=self._save
                )
                batch.run()
                if any(isinstance(answer, StaleTable) for answer in batch.answers):
                    raise StaleTable()
        except ClaimLost:
            self.outcome = None

    def _save(self, session: Session, answers: list[Answer]) -> None:
        command, store = self._command, self._store
        job = command.job
        now_ms = self._now // TICKS_PER_MS
        if command.makes is not None:
            self._definer.make(session, command.makes, _NO_END_MS, job.created_at_ms, job.id)
        if command.keeps is not None:
            bare = dataclasses.replace(command.keeps, namespace=namespace_of_job(job.id))
            self._definer.make(session, bare, 0, now_ms)
        if command.opens is not None:
            current = store.catalog.by_id(session, command.opens.id)
            if current is not None:
                restoring.open_table(store, session, current)
                store.catalog.cache.forget(current.id)
        if command.ended:
            for table in store.catalog.page(session, namespace_of_job(job.id), "", None):
                store.catalog.remove(session, table)
                store.catalog.cache.forget(table.id)
        progress = command.progress if command.settle is None else command.settle(answers)
        job_after = dataclasses.replace(
            job,
            progress=progress,
            state=command.state or job.state,
            ended_at_ms=now_ms if command.ended else None,
        )
        save(session, job_after)
        self.outcome = job_after


COMMANDS: Runners = {
    job_commands.StartJob: _start,
    job_commands.ListJobs: _list,
    job_commands.ListUnfinishedJobs: _list_unfinished,
    job_commands.CancelJob: _cancel,
    job_commands.AdvanceJob: _advance,
}


class ClaimLost(Exception):
    """Another server has claimed the job, or the job has ended."""


def save(session: Session, job: Job) -> None:
    """Save the progress of a job and renew its claim. Raises ClaimLost."""
    if not job_store.save(session, job, _claim_end_ms()):
        raise ClaimLost


def _claim_end_ms() -> int:
    """Return the end of a new claim. Claims follow the system clock, even if the clock of tables is set."""
    return time.time_ns() // 1_000_000 + _CLAIM_LIFETIME_MS


class JobWorker(Protocol):
    """Advances jobs of a kind, with commands (AdvanceJob). A cancelled job has to end."""

    def carry_on(self, job: Job, limit: int) -> int | None:
        """Advance a job by one batch and return its units of work, about `limit` at most.

        A row is a unit, and so is a KiB read. None means that the job waits. A batch that raises an error is retried
        for some time.
        """
        ...

    def give_up(self, job: Job, error: Exception) -> None:
        """End a job that cannot continue."""
        ...

    def forget(self, job_id: int) -> None:
        """Close the resources of a job that has ended or moved to another server."""
        ...

    def abandon(self, job_id: int) -> None:
        """Drop the resources of a job without closing them: an abandoned batch still uses them on another thread."""
        ...


def add_workers(background: Scheduler, workers: Mapping[str, JobWorker]) -> None:
    """Register the jobs of these kinds as background work."""
    runner = JobRunner(background.store, workers)
    background.add(
        Work("jobs", lambda now_ms, limit: runner.next_batch(), own_thread=True, renew=runner.renew)
    )


class _BatchAttempt(threading.Thread):
    """One batch of a job, on its own thread, because an object store may not answer.

    `is_last`: it only ends the job in the database.
    """

    def __init__(self, job: Job, do: Callable[[], int | None], is_last: bool) -> None:
        super().__init__(name=f"job {job.id}", daemon=True)
        self.job = job
        self.is_last = is_last
        self._do = do
        self.units: int | None = None
        self.error: Exception | None = None
        self.took_s = 0.0

    def run(self) -> None:
        """Run the batch, and keep its result or error."""
        began = time.thread_time()
        try:
            self.units = self._do()
        except Exception as error:
            self.error = error
        self.took_s = time.thread_time() - began


@dataclasses.dataclass(slots=True)
class _ActiveJob:
    """A job that this server runs, in turn with others. It may hold resources."""

    size: BatchSize = dataclasses.field(default_factory=BatchSize)
    batches: int = 0
    first: Mapping[str, Any] | None = None
    """Its progress when it was activated."""
    has_saved: bool = False
    waits: bool = False
    attempt: _BatchAttempt | None = None
    """The batch with a result that is still to be processed."""

    @property
    def can_be_suspended(self) -> bool:
        if self.attempt is not None:
            return False
        return self.waits or (self.has_saved and self.batches >= _MIN_BATCHES_BEFORE_SUSPENSION)


class JobRunner:
    """Runs jobs in turns, one batch each, unless another server runs them.

    Accounts take turns, and so do the jobs of each. Only a few jobs are active at a time. Batches run one after the
    other, except long ones.
    """

    def __init__(self, store: Store, workers: Mapping[str, JobWorker]) -> None:
        self._store = store
        self._workers = workers
        self._active: dict[int, _ActiveJob] = {}
        self._waiting, self._turns = FairQueue(), FairQueue()
        # Claims of all unfinished jobs, including suspended ones.
        self._claims: dict[int, int] = {}
        self._failing_since: dict[int, float] = {}
        self._not_before: dict[int, float] = {}

    def next_batch(self) -> BatchDone | None:
        """Advance one job. None if no job can run now."""
        with self._store.read() as session:
            unfinished_jobs = job_store.unfinished(session, self._workers)
        owners = {job_id: account_of(namespace) for job_id, namespace, _ in unfinished_jobs}
        for job_id in self._active.keys() - owners.keys():
            self._suspend(job_id)
        for by_job in (self._claims, self._failing_since, self._not_before):
            for job_id in by_job.keys() - owners.keys():
                del by_job[job_id]
        self._activate_waiting(owners)
        cancelled_ids = {job_id for job_id, _, is_cancelled in unfinished_jobs if is_cancelled}
        active = [(owners[job_id], job_id) for job_id in self._active if job_id not in cancelled_ids]
        cancelled_jobs = [(owners[job_id], job_id) for job_id in sorted(cancelled_ids)]
        for owner, job_id in chain(cancelled_jobs, self._turns.order(active)):
            self._turns.take(owner, job_id)
            batch = self._next_batch_of(job_id, job_id in cancelled_ids)
            if batch is not None:
                return batch
        return None

    def renew(self) -> None:
        """Renew the claims of this server. Called from another thread, while a batch may take long."""
        claims = [(job_id, claim) for job_id, claim in [*self._claims.items()] if job_id in self._active]
        if claims:
            with self._store.write() as session:
                for job_id, claim in claims:
                    job_store.renew(session, job_id, claim, _claim_end_ms())

    def _activate_waiting(self, owners: Mapping[int, str]) -> None:
        """Activate waiting jobs up to the limits. `owners`: the accounts of all unfinished jobs."""
        share = min(_MAX_ACTIVE_JOBS_PER_OWNER, max(1, _MAX_ACTIVE_JOBS // max(1, len(set(owners.values())))))
        waiting_jobs = [(owner, job_id) for job_id, owner in owners.items() if job_id not in self._active]
        for owner, job_id in self._waiting.order(waiting_jobs):
            jobs_of_owner = [active_id for active_id in self._active if owners[active_id] == owner]
            if self._free_slot(jobs_of_owner, share) and self._free_slot([*self._active], _MAX_ACTIVE_JOBS):
                self._active[job_id] = _ActiveJob()
                self._waiting.take(owner, job_id)

    def _free_slot(self, rivals: list[int], limit: int) -> bool:
        """Suspend one of these active jobs if the limit is reached. False if none of them can be suspended."""
        if len(rivals) < limit:
            return True
        for job_id in rivals:
            if self._active[job_id].can_be_suspended:
                self._suspend(job_id)
                return True
        return False

    def _next_batch_of(self, job_id: int, is_cancelled: bool) -> BatchDone | None:
        """Advance a job. None if it waits, has ended, or another server has it."""
        active_job = self._active.setdefault(job_id, _ActiveJob())
        active_job.waits = True
        attempt = active_job.attempt
        if attempt is None or (is_cancelled and attempt.is_alive() and not attempt.is_last):
            self._begin_attempt(job_id, active_job)
            attempt = active_job.attempt
        if attempt is None or attempt.is_alive():
            return None
        active_job.attempt = None
        units = self._settle(attempt, active_job)
        if units is None:
            return None
        progress = attempt.job.progress
        active_job.waits = False
        active_job.batches += 1
        active_job.first = progress if active_job.first is None else active_job.first
        active_job.has_saved = active_job.has_saved or progress != active_job.first
        return BatchDone(attempt.job.kind, units, attempt.took_s)

    def _begin_attempt(self, job_id: int, active_job: _ActiveJob) -> None:
        """Start a batch of a job, if it can run here now, and wait briefly for its end.

        An attempt that is still running is abandoned. Under the new claim it cannot save anything.
        """
        former = active_job.attempt
        if former is not None:
            self._workers[former.job.kind].abandon(job_id)
        active_job.attempt = None
        job = self._claim_job(job_id, is_new=former is not None)
        if job is None or (time.monotonic() < self._not_before.get(job_id, 0.0) and not job.cancelled):
            return
        worker = self._workers[job.kind]
        is_last = former is not None and former.job.cancelled
        do: Callable[[], int | None] = partial(worker.carry_on, job, active_job.size.rows)
        if is_last:
            do = partial(worker.give_up, job, TimeoutError("a cancelled job did not end"))
        active_job.attempt = _BatchAttempt(job, do, is_last)
        active_job.attempt.start()
        active_job.attempt.join(_BATCH_WAIT_S)

    def _claim_job(self, job_id: int, is_new: bool) -> Job | None:
        """Return the job under a claim of this server. None if it has ended or another server has it.

        `is_new`: take a new claim, so that an abandoned attempt cannot save.
        """
        with self._store.read() as session:
            job_and_claim = job_store.unfinished_by_id(session, job_id)
        if job_and_claim is None:
            return None
        job, until_ms = job_and_claim
        is_own = self._claims.get(job_id) == job.claim
        if is_own and not is_new:
            return job
        now_ms = time.time_ns() // 1_000_000
        # A database that is not shared has one server, so older claims belong to a process that has exited.
        if now_ms < until_ms and self._store.database.shared and not is_own:
            return None
        if not is_own:
            self._forget(job_id)
        with self._store.write() as session:
            if not job_store.claim(session, job, _claim_end_ms()):
                return None
        self._claims[job_id] = job.claim + 1
        return dataclasses.replace(job, claim=job.claim + 1)

    def _settle(self, attempt: _BatchAttempt, active_job: _ActiveJob) -> int | None:
        """Return the units of work of a finished batch, or None if the job waits. A failed batch is retried for some
        time."""
        job, error = attempt.job, attempt.error
        if error is None:
            self._failing_since.pop(job.id, None)
            if attempt.units is not None:
                active_job.size.took(attempt.units, attempt.took_s)
            return attempt.units
        worker = self._workers[job.kind]
        since = self._failing_since.setdefault(job.id, time.monotonic())
        self._not_before[job.id] = time.monotonic() + _PAUSE_S
        log.warning(
            "a job failed and will be retried", extra={"facts": {"job": job.id, "reason": repr(error)}}
        )
        worker.forget(job.id)
        if time.monotonic() - since > _RETRY_LIMIT_S:
            log.error(
                "a job was given up after repeated failures",
                exc_info=error,
                extra={"facts": {"job": job.id, "kind": job.kind}},
            )
            worker.give_up(job, error)
        return 0

    def _suspend(self, job_id: int) -> None:
        attempt = self._active.pop(job_id).attempt
        if attempt is not None and attempt.is_alive():
            self._workers[attempt.job.kind].abandon(job_id)
        self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        for worker in self._workers.values():
            worker.forget(job_id)

"""Jobs: begun with what they need of tables, carried on by the workers of dialects, ended.

Knows who may carry a job on, and that what it does and how far it has come are one transaction. What a job does is its worker's
business (`Engine.register_worker`).
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

from tablegate.gateway.engine.background.pacing import BatchDone, BatchSize, FairQueue
from tablegate.gateway.engine.backups import file_backups, restoring
from tablegate.gateway.engine.rows.writing import Answer, WriteBatch
from tablegate.gateway.engine.tables.table_definitions import TableDefiner
from tablegate.gateway.model.authorization.quotas import account_of
from tablegate.gateway.model.commands import job_commands
from tablegate.gateway.model.errors import InvalidInput, LimitExceeded, StaleTable, TokenReused
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import of_job, served_by_job
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.store import jobs
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.transactions import tokens

log = logging.getLogger("tablegate")

_FOREVER_MS = 1 << 62
_REMEMBERED_MS = 90 * 86_400_000
# Another server takes a job over whose claim has not been renewed for so long.
_CLAIM_MS = 6_000
# Most jobs in hand, of all namespaces and of one. A job in hand may hold a connection, a temporary file and 8 MB.
_JOBS_IN_HAND, _JOBS_OF_OWNER = 16, 4
# A job that has saved something may be put down for another one after so many batches.
_BATCHES_IN_HAND = 64
# A job that fails for passing reasons is tried again for so long, with pauses.
_PATIENCE_S = 300.0
_PAUSE_S = 1.0
# A batch that takes longer waits for something elsewhere. Other jobs are carried on meanwhile.
_PATIENCE_WITH_BATCH_S = 0.25


def run(store: Store, definer: TableDefiner, command: Any, now: int) -> Any:
    """The outcome of a command. `now`: ticks since 1970. Raises what the commands say."""
    match command:
        case job_commands.StartJob():
            return _start(store, definer, command, now)
        case job_commands.ListJobs():
            with store.read() as session:
                return jobs.page(session, command)
        case job_commands.ListUnfinishedJobs():
            with store.read() as session:
                return jobs.listed(session, command)
        case job_commands.CancelJob(job):
            if job.kind in (file_backups.FILE, file_backups.REMOVE):
                raise InvalidInput("cancel", kind=job.kind)
            with store.write() as session:
                jobs.cancel(session, job.id)
                return jobs.by_id(session, job.id)
    raise TypeError(command)


def forget_jobs(
    store: Store, session: Session, namespace: str | None, tables: Collection[str] | None
) -> None:
    """Take away the jobs of a namespace (None: all that callers have begun), or of these the jobs of some tables, with the tables
    that they keep for themselves. A batch that is under way cannot save anything."""
    spaces = [of_job(job_id) for job_id in jobs.forget_of(session, namespace, tables)]
    if not spaces:
        return
    places = ", ".join("?" * len(spaces))
    kept = store.catalog.all(session, f"namespace IN ({places}) ORDER BY id", spaces)
    for table in store.catalog.lock_all(session, [table.id for table in kept]):
        store.catalog.remove(session, table)


def _start(store: Store, definer: TableDefiner, command: job_commands.StartJob, now: int) -> Job:
    now_ms = now // TICKS_PER_MS
    with store.write() as session:
        known = _known(session, command, now_ms)
        if known is not None:
            return known
        waiting = jobs.count_unfinished(session, command.namespace, command.kind)
        if waiting >= command.most:
            raise LimitExceeded("jobs", command.most, waiting + 1)
        definer.check_bounds(session, command.bounds, now_ms)
        jobs.forget(session, now_ms - _REMEMBERED_MS)
        job_id = store.catalog.next_id(session)
        progress: dict[str, Any] = {}
        source, namespace = command.source, of_job(job_id)
        if source is not None and command.window is not None:
            restoring.begin_window(store, definer, session, source, namespace, command.window, now)
        elif source is not None:
            progress["at"] = restoring.begin_copy(store, definer, session, source, namespace, command.at, now)
        job = Job(
            job_id,
            command.kind,
            command.namespace,
            command.table_name,
            command.definition,
            progress,
            command.state,
            now_ms,
        )
        jobs.add(session, job)
        if command.token is not None:
            token = command.token
            key = token.scope, token.name
            tokens.remember(session, key, token.digest, str(job_id), now_ms + token.lifetime_ms)
    if source is not None:
        store.catalog.cache.forget(source.id)
    return job


def _known(session: Session, command: job_commands.StartJob, now_ms: int) -> Job | None:
    """The job that an equal command with the same token began. Raises TokenReused if that command was another."""
    token = command.token
    remembered = None if token is None else tokens.take(session, token.scope, token.name, now_ms)
    if token is None or remembered is None:
        return None
    digest, answer = remembered
    job = jobs.by_id(session, int(answer))
    if job is not None and digest != token.digest:
        raise TokenReused()
    return job


class JobStep:
    """One attempt to carry a job on: what it writes, and how far it has come then. `outcome`: the job afterwards. None: another
    server carries it on."""

    def __init__(
        self, store: Store, definer: TableDefiner, command: job_commands.AdvanceJob, now: int
    ) -> None:
        self._store = store
        self._definer = definer
        self._command = command
        self._now = now
        self.outcome: Job | None = None

    def run(self) -> None:
        """Do it, in one transaction. Raises TableExists, TableBusy, StaleTable, Retry, CommitInterrupted, Busy."""
        try:
            if not self._command.groups:
                with self._store.write() as session:
                    self._save(session, [])
            else:
                batch = WriteBatch(self._store, self._command.groups, self._now, during=self._save)
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
            self._definer.make(session, command.makes, _FOREVER_MS, job.created_at_ms, job.id)
        if command.keeps is not None:
            bare = dataclasses.replace(command.keeps, namespace=of_job(job.id))
            self._definer.make(session, bare, 0, now_ms)
        if command.opens is not None:
            current = store.catalog.by_id(session, command.opens.id)
            if current is not None:
                restoring.open_table(store, session, current)
                store.catalog.cache.forget(current.id)
        if command.ended:
            for table in store.catalog.page(session, of_job(job.id), "", None):
                store.catalog.remove(session, table)
                store.catalog.cache.forget(table.id)
        progress = command.progress if command.settle is None else command.settle(answers)
        saved = dataclasses.replace(
            job,
            progress=progress,
            state=command.state or job.state,
            ended_at_ms=now_ms if command.ended else None,
        )
        save(session, saved)
        self.outcome = saved


class ClaimLost(Exception):
    """Another server has the claim on a job, or the job has ended."""


def save(session: Session, job: Job) -> None:
    """Save how far a job has come, and hold on to it. Raises Lost."""
    if not jobs.save(session, job, _claimed_until_ms()):
        raise ClaimLost


def _claimed_until_ms() -> int:
    """Claims go by the time of day, whatever clock tables live by."""
    return time.time_ns() // 1_000_000 + _CLAIM_MS


class JobWorker(Protocol):
    """Carries jobs of a kind on, with commands (AdvanceJob). A job that is cancelled has to end."""

    def carry_on(self, job: Job, limit: int) -> int | None:
        """Carry a job on by one batch and return the units of work that it took, about `limit` at most.

        A row is a unit, and so is a KiB that is read. None: the job waits for something else. What is raised makes the batch be
        tried again, for a time."""
        ...

    def give_up(self, job: Job, error: Exception) -> None:
        """End a job that cannot be carried on."""
        ...

    def forget(self, job_id: int) -> None:
        """Let go of what is held open for a job: it has ended, or somebody else carries it on."""
        ...

    def abandon(self, job_id: int) -> None:
        """Forget what is held open for a job without closing it: a batch that was given up still uses it on another thread."""
        ...


class _BatchAttempt(threading.Thread):
    """One batch of a job, on a thread of its own: it may wait for a store of objects that does not answer.

    `is_last`: it only ends the job, in the database."""

    def __init__(self, job: Job, do: Callable[[], int | None], is_last: bool) -> None:
        super().__init__(name=f"job {job.id}", daemon=True)
        self.job = job
        self.is_last = is_last
        self._do = do
        self.units: int | None = None
        self.error: Exception | None = None
        self.took_s = 0.0

    def run(self) -> None:
        """The thread."""
        began = time.thread_time()
        try:
            self.units = self._do()
        except Exception as error:
            self.error = error
        self.took_s = time.thread_time() - began


@dataclasses.dataclass(slots=True)
class _ActiveJob:
    """A job that takes turns here. Resources may be open for it."""

    size: BatchSize = dataclasses.field(default_factory=BatchSize)
    batches: int = 0
    first: Mapping[str, Any] | None = None
    """Its progress when it was taken up."""
    has_saved: bool = False
    waits: bool = False
    attempt: _BatchAttempt | None = None
    """The batch that has not been settled."""

    @property
    def may_be_put_down(self) -> bool:
        """True if another job may take its place, and not much work is lost."""
        if self.attempt is not None:
            return False
        return self.waits or (self.has_saved and self.batches >= _BATCHES_IN_HAND)


class JobRunner:
    """Carries jobs on by turns, a batch each, as far as no other server does. Accounts take turns, and so do the jobs of each.
    Only a few jobs are in hand at a time; the others wait. Batches run one at a time, but for those that take long."""

    def __init__(self, store: Store, workers: Mapping[str, JobWorker]) -> None:
        self._store = store
        self._workers = workers
        self._in_hand: dict[int, _ActiveJob] = {}
        self._waiting, self._turns = FairQueue(), FairQueue()
        # Of all jobs that have not ended, also of those that were put down.
        self._claims: dict[int, int] = {}
        self._failing_since: dict[int, float] = {}
        self._not_before: dict[int, float] = {}

    def next_batch(self) -> BatchDone | None:
        """Carry one job on. None: there is nothing to do now."""
        with self._store.read() as session:
            found = jobs.unfinished(session, self._workers)
        owners = {job_id: account_of(served_by_job(namespace)) for job_id, namespace, _ in found}
        for job_id in self._in_hand.keys() - owners.keys():
            self._put_down(job_id)
        for known in (self._claims, self._failing_since, self._not_before):
            for job_id in known.keys() - owners.keys():
                del known[job_id]
        self._take_up(owners)
        cancelled = {job_id for job_id, _, is_cancelled in found if is_cancelled}
        in_hand = [(owners[job_id], job_id) for job_id in self._in_hand if job_id not in cancelled]
        first = [(owners[job_id], job_id) for job_id in sorted(cancelled)]
        for owner, job_id in chain(first, self._turns.order(in_hand)):
            self._turns.take(owner, job_id)
            batch = self._next_batch_of(job_id, job_id in cancelled)
            if batch is not None:
                return batch
        return None

    def renew(self) -> None:
        """Hold on to the claims of this server while a batch takes long, from another thread than the batch's."""
        held = [(job_id, claim) for job_id, claim in [*self._claims.items()] if job_id in self._in_hand]
        if held:
            with self._store.write() as session:
                for job_id, claim in held:
                    jobs.renew(session, job_id, claim, _claimed_until_ms())

    def _take_up(self, owners: Mapping[int, str]) -> None:
        """Take jobs into hand that are not, as far as there is room. `owners`: of all jobs that have not ended."""
        share = min(_JOBS_OF_OWNER, max(1, _JOBS_IN_HAND // max(1, len(set(owners.values())))))
        others = [(owner, job_id) for job_id, owner in owners.items() if job_id not in self._in_hand]
        for owner, job_id in self._waiting.order(others):
            same = [each for each in self._in_hand if owners[each] == owner]
            if self._make_room(same, share) and self._make_room([*self._in_hand], _JOBS_IN_HAND):
                self._in_hand[job_id] = _ActiveJob()
                self._waiting.take(owner, job_id)

    def _make_room(self, rivals: list[int], most: int) -> bool:
        """Put down one of some jobs in hand if there are so many of them. False: none of them may be put down now."""
        if len(rivals) < most:
            return True
        for job_id in rivals:
            if self._in_hand[job_id].may_be_put_down:
                self._put_down(job_id)
                return True
        return False

    def _next_batch_of(self, job_id: int, is_cancelled: bool) -> BatchDone | None:
        """Carry a job on. None: it waits, has ended, or another server carries it on."""
        held = self._in_hand.setdefault(job_id, _ActiveJob())
        held.waits = True
        attempt = held.attempt
        if attempt is None or (is_cancelled and attempt.is_alive() and not attempt.is_last):
            self._begin_attempt(job_id, held)
            attempt = held.attempt
        if attempt is None or attempt.is_alive():
            return None
        held.attempt = None
        units = self._settle(attempt, held)
        if units is None:
            return None
        progress = attempt.job.progress
        held.waits = False
        held.batches += 1
        held.first = progress if held.first is None else held.first
        held.has_saved = held.has_saved or progress != held.first
        return BatchDone(attempt.job.kind, units, attempt.took_s)

    def _begin_attempt(self, job_id: int, held: _ActiveJob) -> None:
        """Begin a batch of a job, if it may be carried on here now, and wait for its end for a moment. An attempt that is still
        under way is abandoned: under a new claim, nothing that it saves counts."""
        former = held.attempt
        if former is not None:
            self._workers[former.job.kind].abandon(job_id)
        held.attempt = None
        job = self._claimed(job_id, is_new=former is not None)
        if job is None or (time.monotonic() < self._not_before.get(job_id, 0.0) and not job.cancelled):
            return
        worker = self._workers[job.kind]
        is_last = former is not None and former.job.cancelled
        do: Callable[[], int | None] = partial(worker.carry_on, job, held.size.rows)
        if is_last:
            do = partial(worker.give_up, job, TimeoutError("a cancelled job did not end"))
        held.attempt = _BatchAttempt(job, do, is_last)
        held.attempt.start()
        held.attempt.join(_PATIENCE_WITH_BATCH_S)

    def _claimed(self, job_id: int, is_new: bool) -> Job | None:
        """The job under a claim of this server; None: it has ended, or another server has it. `is_new`: the claim of an attempt
        that was abandoned does not do."""
        with self._store.read() as session:
            found = jobs.to_do(session, job_id)
        if found is None:
            return None
        job, until_ms = found
        is_own = self._claims.get(job_id) == job.claim
        if is_own and not is_new:
            return job
        now_ms = time.time_ns() // 1_000_000
        # A database that is not shared has no other server: its last claims are those of a server that is gone.
        if now_ms < until_ms and self._store.database.shared and not is_own:
            return None
        if not is_own:
            self._forget(job_id)
        with self._store.write() as session:
            if not jobs.claim(session, job, _claimed_until_ms()):
                return None
        self._claims[job_id] = job.claim + 1
        return dataclasses.replace(job, claim=job.claim + 1)

    def _settle(self, attempt: _BatchAttempt, held: _ActiveJob) -> int | None:
        """The units of work of a batch that has ended; None: the job waits. One that failed is tried again, for a time."""
        job, error = attempt.job, attempt.error
        if error is None:
            self._failing_since.pop(job.id, None)
            if attempt.units is not None:
                held.size.took(attempt.units, attempt.took_s)
            return attempt.units
        worker = self._workers[job.kind]
        since = self._failing_since.setdefault(job.id, time.monotonic())
        self._not_before[job.id] = time.monotonic() + _PAUSE_S
        log.warning(
            "a job failed and is tried again", extra={"facts": {"job": job.id, "reason": repr(error)}}
        )
        worker.forget(job.id)
        if time.monotonic() - since > _PATIENCE_S:
            log.error("a job is given up", exc_info=error, extra={"facts": {"job": job.id, "kind": job.kind}})
            worker.give_up(job, error)
        return 0

    def _put_down(self, job_id: int) -> None:
        attempt = self._in_hand.pop(job_id).attempt
        if attempt is not None and attempt.is_alive():
            self._workers[attempt.job.kind].abandon(job_id)
        self._forget(job_id)

    def _forget(self, job_id: int) -> None:
        for worker in self._workers.values():
            worker.forget(job_id)

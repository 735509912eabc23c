"""Jobs: begun with what they need of tables, carried on by the workers of dialects, ended.

Knows who may carry a job on, and that what it does and how far it has come are one transaction. What a job does is its worker's
business (`Engine.register_worker`).
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping
from typing import Any, Protocol

from gateway.engine import restoring
from gateway.engine.defining import Definer
from gateway.engine.pacing import BatchDone, BatchSize
from gateway.engine.writing import Answer, Batch
from gateway.model.commands import AdvanceJob, CancelJob, ListJobs, StartJob
from gateway.model.errors import LimitExceeded, StaleTable, TokenReused
from gateway.model.jobs import Job
from gateway.model.namespaces import of_job
from gateway.model.rows import TICKS_PER_MS
from gateway.store import jobs, tokens
from gateway.store.databases import Session
from gateway.store.store import Store

log = logging.getLogger("tablegate")

COMMANDS = (CancelJob, ListJobs, StartJob)
_FOREVER_MS = 1 << 62
_REMEMBERED_MS = 90 * 86_400_000
# Another server takes a job over whose claim has not been renewed for so long.
_CLAIM_MS = 6_000
# So many of the oldest jobs are carried on at a time.
_JOBS_AT_ONCE = 4
# A job that fails for passing reasons is tried again for so long, with pauses.
_PATIENCE_S = 300.0
_PAUSE_S = 1.0


def run(store: Store, definer: Definer, command: Any, now: int) -> Any:
    """The outcome of a command. `now`: ticks since 1970. Raises what the commands say."""
    match command:
        case StartJob():
            return _start(store, definer, command, now)
        case ListJobs():
            with store.read() as session:
                return jobs.page(session, command)
        case CancelJob(job, state):
            with store.write() as session:
                jobs.cancel(session, job.id, state)
                return jobs.by_id(session, job.id)
    raise TypeError(command)


def forget_jobs(store: Store, session: Session, namespace: str | None) -> None:
    """Take away the jobs of a namespace (None: all that callers have begun), with the tables that they keep for themselves.
    Whoever carries one on finds out when it saves something."""
    spaces = [of_job(job_id) for job_id in jobs.forget_of(session, namespace)]
    if not spaces:
        return
    places = ", ".join("?" * len(spaces))
    kept = store.catalog.all(session, f"namespace IN ({places}) ORDER BY id", spaces)
    for table in store.catalog.lock_all(session, [table.id for table in kept]):
        store.catalog.remove(session, table)


def _start(store: Store, definer: Definer, command: StartJob, now: int) -> Job:
    now_ms = now // TICKS_PER_MS
    with store.write() as session:
        known = _known(session, command, now_ms)
        if known is not None:
            return known
        waiting = jobs.count_unfinished(session, command.namespace, command.kind)
        if waiting >= command.most:
            raise LimitExceeded("jobs", command.most, waiting + 1)
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


def _known(session: Session, command: StartJob, now_ms: int) -> Job | None:
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


class Step:
    """One attempt to carry a job on: what it writes, and how far it has come then. `outcome`: the job afterwards; None: somebody
    else carries it on."""

    def __init__(self, store: Store, definer: Definer, command: AdvanceJob, now: int) -> None:
        self._store = store
        self._definer = definer
        self._command = command
        self._now = now
        self.outcome: Job | None = None

    def run(self) -> None:
        """Do it, in one transaction. Raises TableExists, TableBusy, StaleTable, Retry, CommitLost, Busy."""
        try:
            if not self._command.groups:
                with self._store.write() as session:
                    self._save(session, [])
            else:
                batch = Batch(self._store, self._command.groups, self._now, during=self._save)
                batch.run()
                if any(isinstance(answer, StaleTable) for answer in batch.answers):
                    raise StaleTable()
        except Lost:
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


class Lost(Exception):
    """Somebody else carries a job on, or it has ended."""


def save(session: Session, job: Job) -> None:
    """Save how far a job has come, and hold on to it. Raises Lost."""
    if not jobs.save(session, job, _claimed_until_ms()):
        raise Lost


def _claimed_until_ms() -> int:
    """Claims go by the time of day, whatever clock tables live by."""
    return time.time_ns() // 1_000_000 + _CLAIM_MS


class Worker(Protocol):
    """Carries jobs of a kind on, with commands (AdvanceJob)."""

    def carry_on(self, job: Job, limit: int) -> int | None:
        """Carry a job on by about so many rows; over how many it went. None: it must wait for something else. Raises anything:
        then it is tried again, for a time."""
        ...

    def give_up(self, job: Job, error: Exception) -> None:
        """End a job that cannot be carried on."""
        ...

    def forget(self, job_id: int) -> None:
        """Let go of what is held open for a job: it has ended, or somebody else carries it on."""
        ...


class Runner:
    """Carries the oldest jobs on by turns, a batch each, as far as no other server does."""

    def __init__(self, store: Store, workers: Mapping[str, Worker]) -> None:
        self._store = store
        self._workers = workers
        self._claims: dict[int, int] = {}
        self._sizes: dict[int, BatchSize] = {}
        self._failing_since: dict[int, float] = {}
        self._not_before: dict[int, float] = {}
        self._last = 0

    def next_batch(self) -> BatchDone | None:
        """Carry one job on. None: there is nothing to do now."""
        with self._store.read() as session:
            found = [(job, until) for job, until in jobs.unfinished(session, self._workers, _JOBS_AT_ONCE)]
        for job_id in self._claims.keys() - {job.id for job, _ in found}:
            self._let_go(job_id)
        # Whoever was carried on last comes last.
        for job, until in sorted(found, key=lambda pair: (pair[0].id <= self._last, pair[0].id)):
            if time.monotonic() < self._not_before.get(job.id, 0.0):
                continue
            mine = self._claimed(job, until)
            if mine is None:
                continue
            rows = self._carry_on(mine)
            if rows is not None:
                self._last = job.id
                return BatchDone(job.kind, rows)
        return None

    def renew(self) -> None:
        """Hold on to the claims of this server while a batch takes long, from another thread than the batch's."""
        held = [*self._claims.items()]
        if held:
            with self._store.write() as session:
                for job_id, claim in held:
                    jobs.renew(session, job_id, claim, _claimed_until_ms())

    def _claimed(self, job: Job, until_ms: int) -> Job | None:
        """The job under a claim of this server; None: somebody else has it."""
        now_ms = time.time_ns() // 1_000_000
        if self._claims.get(job.id) == job.claim:
            return job
        # Nobody else serves a database that is not shared: its last claims are those of a server that is gone.
        if now_ms < until_ms and self._store.shared:
            return None
        self._let_go(job.id)
        with self._store.write() as session:
            if not jobs.claim(session, job, now_ms + _CLAIM_MS):
                return None
        self._claims[job.id] = job.claim + 1
        return dataclasses.replace(job, claim=job.claim + 1)

    def _carry_on(self, job: Job) -> int | None:
        worker = self._workers[job.kind]
        size = self._sizes.setdefault(job.id, BatchSize())
        began = time.thread_time()
        try:
            rows = worker.carry_on(job, size.rows)
        except Exception as error:
            since = self._failing_since.setdefault(job.id, time.monotonic())
            self._not_before[job.id] = time.monotonic() + _PAUSE_S
            log.warning(
                "a job failed and is tried again", extra={"facts": {"job": job.id, "reason": repr(error)}}
            )
            worker.forget(job.id)
            if time.monotonic() - since > _PATIENCE_S:
                log.error(
                    "a job is given up", exc_info=error, extra={"facts": {"job": job.id, "kind": job.kind}}
                )
                worker.give_up(job, error)
            return 0
        self._failing_since.pop(job.id, None)
        if rows is not None:
            size.took(rows, time.thread_time() - began)
        return rows

    def _let_go(self, job_id: int) -> None:
        self._claims.pop(job_id, None)
        self._sizes.pop(job_id, None)
        self._failing_since.pop(job_id, None)
        self._not_before.pop(job_id, None)
        for worker in self._workers.values():
            worker.forget(job_id)

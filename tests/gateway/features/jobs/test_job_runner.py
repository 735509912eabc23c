"""Jobs: their assignment to workers. The data that a job writes and its progress are saved in one transaction."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.history.backup_commands import KeepHistory, ResetTables
from tablegate.gateway.features.jobs import job_runner
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, CancelJob, Job, ListJobs, StartJob
from tablegate.gateway.model.commands.row_commands import IdempotencyToken, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.errors import GatewayError, LimitExceeded, TableMissing, TokenReused
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tablegate.gateway.model.tables.tables import State, Table, namespace_of_job
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, do_background_work, make_table
from tests.gateway.features.history.test_restoring import run
from tests.support.clock import Clock
from tests.support.job_runners import runner_of

KIND = "kind"


class Counting:
    """A worker that counts to a number, one step a batch, and saves the number in the job."""

    def __init__(self, engine: Engine, last: int = 1_000) -> None:
        self.engine = engine
        self.last = last
        self.forgotten: list[int] = []
        self.given_up: list[str] = []
        self.fails = False
        self.used_s = 0.0
        """CPU time of a batch, at least."""
        self.abandoned: list[int] = []
        self.saved: Job | None = None
        self.begun = threading.Semaphore(0)
        self.answers = threading.Event()
        job_runner.add_workers(engine.background, {KIND: self})

    def carry_on(self, job: Job, limit: int) -> int | None:
        if self.fails:
            raise OSError("nobody answers")
        if job.definition.get("hangs") == "always" or (job.definition.get("hangs") and not job.cancelled):
            self.begun.release()
            self.answers.wait()
        if job.definition.get("waits"):
            return None
        began = time.thread_time()
        while time.thread_time() - began < self.used_s:
            pass
        number = job.progress.get("number", 0) + 1
        step = AdvanceJob(job, {"number": number}, ended=job.cancelled or number == self.last)
        self.saved = run(self.engine, step)  # type: ignore[assignment]
        return 1

    def give_up(self, job: Job, error: Exception) -> None:
        self.given_up.append(str(error))
        run(self.engine, AdvanceJob(job, {"failed": True}, ended=True))

    def forget(self, job_id: int) -> None:
        self.forgotten.append(job_id)

    def abandon(self, job_id: int) -> None:
        self.abandoned.append(job_id)


def start(engine: Engine, **more: Any) -> Job:
    given = {"namespace": "", "max_jobs": 3, "definition": {"a": 1}, **more}
    job = run(engine, StartJob(KIND, table_name="t", state="running", **given))
    assert isinstance(job, Job)
    return job


def found(engine: Engine) -> list[Job]:
    jobs = run(engine, ListJobs("", KIND))
    assert isinstance(jobs, list)
    return jobs


@pytest.fixture
def other(database: Database, clock: Clock) -> Engine:
    """Another server on the same database."""
    return new_engine(Store(database), EngineOptions(), clock)


def test_a_job_is_carried_on_until_it_ends(engine: Engine, clock: Clock) -> None:
    worker = Counting(engine, 3)
    job = start(engine)
    while engine.background.batch_of("jobs"):
        pass
    [ended] = found(engine)
    assert (ended.id, ended.progress, ended.definition) == (job.id, {"number": 3}, {"a": 1})
    assert ended.ended_at_ms == clock.ms
    assert worker.forgotten[-1] == job.id
    assert run(engine, AdvanceJob(ended, {"number": 4})) is None


def test_turns_are_taken(engine: Engine) -> None:
    Counting(engine)
    for _ in range(3):
        start(engine)
    for _ in range(6):
        engine.background.batch_of("jobs")
    assert [job.progress["number"] for job in found(engine)] == [2, 2, 2]


def numbers(engine: Engine, namespace: str) -> list[int]:
    jobs = run(engine, ListJobs(namespace, KIND))
    assert isinstance(jobs, list)
    return [job.progress.get("number", 0) for job in reversed(jobs)]


def test_namespaces_take_turns_and_then_their_jobs(engine: Engine) -> None:
    """Nine namespaces with five jobs each, and one with one: each namespace has a tenth of the batches."""
    Counting(engine)
    spaces = [f"n{number}" for number in range(10)]
    for space in spaces[1:]:
        for _ in range(5):
            start(engine, namespace=space, max_jobs=9)
    for _ in range(9):
        assert engine.background.batch_of("jobs") is not None
    start(engine, namespace=spaces[0])
    for _ in range(40):
        assert engine.background.batch_of("jobs") is not None
    done = {space: sum(numbers(engine, space)) for space in spaces}
    assert done[spaces[0]] == 4
    assert {done[space] for space in spaces[1:]} == {5}


@pytest.mark.extended
def test_no_job_waits_for_good(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests more jobs than can run at once, of one namespace and of many.

    A job that has saved progress lets another job run.
    """
    monkeypatch.setattr(job_runner, "_MIN_BATCHES_BEFORE_SUSPENSION", 3)
    worker = Counting(engine)
    spaces = [f"n{number:02}" for number in range(2 * job_runner._MAX_ACTIVE_JOBS)]
    for space in spaces:
        start(engine, namespace=space)
    for _ in range(3 * job_runner._MAX_ACTIVE_JOBS_PER_OWNER):
        start(engine, namespace=spaces[0], max_jobs=99)
    held = set()
    for _ in range(4 * len(spaces) * 13):
        assert engine.background.batch_of("jobs") is not None
        held.add(len(runner_of(engine)._active))
    assert max(held) == job_runner._MAX_ACTIVE_JOBS
    done = {space: numbers(engine, space) for space in spaces}
    assert all(all(each) for each in done.values())
    # Jobs that were released are also forgotten.
    assert {job_id for job_id in worker.forgotten if worker.forgotten.count(job_id) > 1}


def test_jobs_that_wait_hold_up_no_others(engine: Engine) -> None:
    Counting(engine, 3)
    for number in range(job_runner._MAX_ACTIVE_JOBS + 4):
        start(engine, namespace=f"n{number:02}", definition={"waits": True})
        start(engine, namespace="many", definition={"waits": True}, max_jobs=99)
    start(engine, namespace="many", max_jobs=99)
    start(engine, namespace="one")
    for _ in range(60):
        engine.background.batch_of("jobs")
    assert numbers(engine, "one") == [3]
    assert numbers(engine, "many")[-1] == 3


def test_a_failing_job_is_given_up_although_others_take_its_place(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runner, "_PAUSE_S", 0.0)
    monkeypatch.setattr(job_runner, "_MAX_ACTIVE_JOBS_PER_OWNER", 1)
    worker = Counting(engine)
    for _ in range(3):
        start(engine)
    worker.fails = True
    for _ in range(6):
        engine.background.batch_of("jobs")
    assert worker.given_up == []
    monkeypatch.setattr(job_runner, "_RETRY_LIMIT_S", -1.0)
    for _ in range(6):
        engine.background.batch_of("jobs")
    assert len(worker.given_up) == 3


def test_an_owner_has_a_maximum_number_of_jobs(engine: Engine) -> None:
    for _ in range(3):
        start(engine)
    with pytest.raises(LimitExceeded):
        start(engine)
    Counting(engine, 1)
    while engine.background.batch_of("jobs"):
        pass
    start(engine)


def test_tokens(engine: Engine, clock: Clock) -> None:
    token = IdempotencyToken("scope", "one", b"digest", 1_000)
    first = start(engine, token=token)
    assert start(engine, token=token).id == first.id
    with pytest.raises(TokenReused):
        start(engine, token=IdempotencyToken("scope", "one", b"other", 1_000))
    clock.advance(2)
    assert start(engine, token=token).id != first.id


def test_one_server_at_a_time_runs_a_job(
    engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Counting(engine), Counting(other)
    start(engine)
    assert engine.background.batch_of("jobs") is not None
    held = first.saved
    assert held is not None
    if engine._store.database.shared:
        assert other.background.batch_of("jobs") is None
        monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", -1)
        runner_of(engine).renew()  # it has not renewed them in time
    assert other.background.batch_of("jobs") is not None
    assert second.saved is not None
    assert second.saved.progress == {"number": 2}
    # Later work of the first worker has no effect.
    made = CreateTable("", "", "late", PAIR)
    assert run(engine, AdvanceJob(held, {"number": 99}, makes=made)) is None
    with pytest.raises(TableMissing):
        run(engine, FindTable("", "late"))
    assert [job.progress for job in found(engine)] == [{"number": 2}]


def test_a_claim_is_renewed(engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    if not engine._store.database.shared:
        return  # there is nobody else
    Counting(engine), Counting(other)
    start(engine)
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", -1)
    engine.background.batch_of("jobs")
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", 60_000)
    runner_of(engine).renew()
    assert other.background.batch_of("jobs") is None


def test_data_and_progress_of_a_job_are_saved_together(engine: Engine) -> None:
    job = start(engine)
    made = CreateTable("", "", "made", PAIR)
    job = run(engine, AdvanceJob(job, {}, makes=made))  # type: ignore[assignment]
    table = run(engine, FindTable("", "made"))
    assert isinstance(table, Table)
    assert table.id == job.id
    assert table.state_at(1 << 60) is State.CREATING
    client = Client(engine, table)
    writes = [client.put("a"), client.put("a", condition=Not(RowExists())), client.put("b")]

    def settle(answers: list[Any]) -> Mapping[str, Any]:
        return {"failed": sum(isinstance(answer, GatewayError) for answer in answers)}

    groups = tuple(WriteGroup((write,)) for write in writes)
    after = run(engine, AdvanceJob(job, groups=groups, settle=settle))
    assert isinstance(after, Job)
    assert after.progress == {"failed": 1}

    def refuse(answers: list[Any]) -> Mapping[str, Any]:
        raise TableMissing("x")

    with pytest.raises(TableMissing):
        run(engine, AdvanceJob(after, groups=(WriteGroup((client.put("c"),)),), settle=refuse))
    run(engine, AdvanceJob(after, after.progress, opens=table, ended=True))
    opened = run(engine, FindTable("", "made"))
    assert isinstance(opened, Table)
    assert opened.state_at(0) is State.ACTIVE
    assert [row.latest["p"].data for row in Client(engine, opened).rows()] == ["a", "b"]


def test_tables_of_a_job_are_dropped_with_the_job(engine: Engine) -> None:
    job = start(engine)
    job = run(engine, AdvanceJob(job, {}, keeps=CreateTable("", "", "aside", PAIR)))  # type: ignore[assignment]
    assert isinstance(run(engine, FindTable(namespace_of_job(job.id), "aside")), Table)
    run(engine, AdvanceJob(job, {}, ended=True))
    with pytest.raises(TableMissing):
        run(engine, FindTable(namespace_of_job(job.id), "aside"))


def test_a_failing_job_is_retried_and_then_given_up(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_runner, "_PAUSE_S", 0.0)
    worker = Counting(engine, 2)
    start(engine)
    worker.fails = True
    for _ in range(5):
        assert engine.background.batch_of("jobs") is not None
    assert worker.given_up == []
    worker.fails = False
    engine.background.batch_of("jobs")
    assert found(engine)[0].progress == {"number": 1}
    worker.fails = True
    monkeypatch.setattr(job_runner, "_RETRY_LIMIT_S", -1.0)
    engine.background.batch_of("jobs")
    assert worker.given_up == ["nobody answers"]
    assert engine.background.batch_of("jobs") is None


def test_jobs_without_a_worker_here_delay_no_others(engine: Engine) -> None:
    for _ in range(job_runner._MAX_ACTIVE_JOBS):
        run(engine, StartJob("elsewhere", "", "t", {}, "running", 99))
    Counting(engine, 1)
    start(engine)
    assert engine.background.batch_of("jobs") is not None


def test_a_reset_forgets_jobs(engine: Engine, clock: Clock) -> None:
    """Covers jobs of one namespace and of all, ended and running, with their internal tables and tokens."""
    worker = Counting(engine, 2)
    client = Client(engine, make_table(engine))
    token = IdempotencyToken("scope", "one", b"digest", 1_000)
    start(engine, token=token)
    while engine.background.batch_of("jobs"):
        pass
    kept = run(engine, KeepHistory(client.table, 35))
    start(engine, source=kept)
    start(engine, namespace="another")
    assert engine.background.batch_of("jobs") is not None
    assert engine.background.batch_of("jobs") is not None  # one of each namespace
    run(engine, ResetTables("", keeps_definitions=True))
    assert len(found(engine)) == 2
    run(engine, ResetTables(""))
    assert found(engine) == []
    assert len(run(engine, ListJobs("another", KIND))) == 1  # type: ignore[arg-type]
    assert worker.saved is not None
    assert run(engine, AdvanceJob(worker.saved, {"number": 9})) is None  # what was under way finds out
    assert start(engine, token=IdempotencyToken("scope", "one", b"other", 1_000)).id != worker.saved.id
    run(engine, ResetTables())
    assert found(engine) == run(engine, ListJobs("another", KIND)) == []
    do_background_work(engine)
    with engine._store.read() as session:
        assert (
            session.query("SELECT count(*) FROM tables")
            == session.query("SELECT count(*) FROM jobs")
            == [(0,)]
        )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner waits for no batch. The test waits for the effect."""
    monkeypatch.setattr(job_runner, "_BATCH_WAIT_S", 0.0)


def batches_until(engine: Engine, holds: Callable[[], bool]) -> None:
    while not holds():
        engine.background.batch_of("jobs")


def attempts() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, job_runner._BatchAttempt)]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("hangs", ["until cancelled", "always"])
def test_a_batch_that_hangs_holds_up_neither_other_jobs_nor_its_cancellation(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    worker = Counting(engine, 3)
    hung = start(engine, definition={"hangs": hangs})
    other = start(engine)

    def shown(job: Job) -> Job:
        return next(each for each in found(engine) if each.id == job.id)

    batches_until(engine, lambda: shown(other).ended_at_ms is not None)
    assert worker.begun.acquire()
    assert shown(hung).ended_at_ms is None
    run(engine, CancelJob(hung))
    if hangs == "until cancelled":
        monkeypatch.setattr(job_runner, "_BATCH_WAIT_S", 60.0)
    batches_until(engine, lambda: shown(hung).ended_at_ms is not None)
    ended = shown(hung)
    assert ended.progress == ({"number": 1} if hangs == "until cancelled" else {"failed": True})
    assert worker.given_up == ([] if hangs == "until cancelled" else ["a cancelled job did not end"])
    assert hung.id in worker.abandoned
    engine.background.batch_of("jobs")
    assert runner_of(engine)._active == {}
    # Once it answers, what the batch saves does not count.
    worker.answers.set()
    for thread in attempts():
        thread.join()
    assert shown(hung) == ended


def test_a_cancelled_job_has_one_turn(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Counting(engine)
    job = start(engine, definition={"waits": True})
    assert engine.background.batch_of("jobs") is None
    run(engine, CancelJob(job))
    turns = []
    monkeypatch.setattr(worker, "carry_on", lambda job, limit: turns.append(job.cancelled))
    assert engine.background.batch_of("jobs") is None
    assert turns == [True]


@pytest.mark.usefixtures("impatient")
def test_a_batch_that_hangs_goes_on_once_it_is_answered(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Counting(engine, 2)
    job = start(engine, definition={"hangs": "until cancelled"})
    batches_until(engine, lambda: worker.begun.acquire(blocking=False))
    for _ in range(5):
        assert engine.background.batch_of("jobs") is None
    worker.answers.set()
    for thread in attempts():
        thread.join()
    # The last batch has ended the job before its thread ends, and is not to be taken for one that hangs.
    monkeypatch.setattr(job_runner, "_BATCH_WAIT_S", 60.0)
    batches_until(engine, lambda: found(engine)[0].ended_at_ms is not None)
    assert found(engine)[0].progress == {"number": 2}
    assert job.id not in worker.abandoned


@pytest.mark.usefixtures("impatient")
def test_a_reset_does_not_wait_for_a_batch_that_hangs(engine: Engine) -> None:
    worker = Counting(engine)
    job = start(engine, definition={"hangs": "until cancelled"})
    batches_until(engine, lambda: worker.begun.acquire(blocking=False))
    run(engine, ResetTables())
    assert engine.background.batch_of("jobs") is None
    assert worker.abandoned == [job.id]
    worker.answers.set()
    for thread in attempts():
        thread.join()
    assert (found(engine), worker.saved) == ([], None)


def test_a_batch_reports_the_cpu_time_of_its_thread(engine: Engine) -> None:
    worker = Counting(engine)
    worker.used_s = 0.01
    start(engine)
    batch = engine.background.batch_of("jobs")
    assert batch is not None
    assert batch.apart_s >= worker.used_s

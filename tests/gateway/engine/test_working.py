"""Jobs: who carries them on, and that what they write and how far they have come are one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.engine import working
from gateway.engine.engine import Engine, EngineOptions
from gateway.model.commands import (
    AdvanceJob,
    CreateTable,
    FindTable,
    KeepHistory,
    ListJobs,
    ResetTables,
    StartJob,
    Token,
    WriteGroup,
)
from gateway.model.errors import GatewayError, LimitExceeded, TableMissing, TokenReused
from gateway.model.jobs import Job
from gateway.model.namespaces import of_job
from gateway.model.predicates import Not, RowExists
from gateway.model.tables import State, Table
from gateway.store.databases import Database
from gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, Clock, do_background_work, make_table
from tests.gateway.engine.test_restoring import run

KIND = "kind"


class Counting:
    """A worker that counts to a number, one a batch, and says so in the job."""

    def __init__(self, engine: Engine, last: int = 1_000) -> None:
        self.engine = engine
        self.last = last
        self.forgotten: list[int] = []
        self.given_up: list[str] = []
        self.fails = False
        self.saved: Job | None = None
        engine.register_worker(KIND, self)

    def carry_on(self, job: Job, limit: int) -> int | None:
        if self.fails:
            raise OSError("nobody answers")
        number = job.progress.get("number", 0) + 1
        step = AdvanceJob(job, {"number": number}, ended=number == self.last)
        self.saved = run(self.engine, step)  # type: ignore[assignment]
        return 1

    def give_up(self, job: Job, error: Exception) -> None:
        self.given_up.append(str(error))
        run(self.engine, AdvanceJob(job, {"failed": True}, ended=True))

    def forget(self, job_id: int) -> None:
        self.forgotten.append(job_id)


def start(engine: Engine, **more: Any) -> Job:
    given = {"namespace": "", "most": 3, **more}
    job = run(engine, StartJob(KIND, table_name="t", definition={"a": 1}, state="running", **given))
    assert isinstance(job, Job)
    return job


def found(engine: Engine) -> list[Job]:
    jobs = run(engine, ListJobs("", KIND))
    assert isinstance(jobs, list)
    return jobs


@pytest.fixture
def other(database: Database, clock: Clock) -> Engine:
    """Another server on the same database."""
    return Engine(Store(database), EngineOptions(), clock)


def test_a_job_is_carried_on_until_it_ends(engine: Engine, clock: Clock) -> None:
    worker = Counting(engine, 3)
    job = start(engine)
    while engine.job_batch():
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
        engine.job_batch()
    assert [job.progress["number"] for job in found(engine)] == [2, 2, 2]


def test_there_are_only_so_many(engine: Engine) -> None:
    for _ in range(3):
        start(engine)
    with pytest.raises(LimitExceeded):
        start(engine)
    Counting(engine, 1)
    while engine.job_batch():
        pass
    start(engine)


def test_tokens(engine: Engine, clock: Clock) -> None:
    token = Token("scope", "one", b"digest", 1_000)
    first = start(engine, token=token)
    assert start(engine, token=token).id == first.id
    with pytest.raises(TokenReused):
        start(engine, token=Token("scope", "one", b"other", 1_000))
    clock.advance(2)
    assert start(engine, token=token).id != first.id


def test_one_server_at_a_time(engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Counting(engine), Counting(other)
    start(engine)
    assert engine.job_batch() is not None
    held = first.saved
    assert held is not None
    if engine._store.shared:
        assert other.job_batch() is None
        monkeypatch.setattr(working, "_CLAIM_MS", -1)
        engine.renew_claims()  # it has not renewed them in time
    assert other.job_batch() is not None
    assert second.saved is not None
    assert second.saved.progress == {"number": 2}
    # What the first one still does is for nothing.
    made = CreateTable("", "", "late", PAIR)
    assert run(engine, AdvanceJob(held, {"number": 99}, makes=made)) is None
    with pytest.raises(TableMissing):
        run(engine, FindTable("", "late"))
    assert [job.progress for job in found(engine)] == [{"number": 2}]


def test_a_claim_is_renewed(engine: Engine, other: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    if not engine._store.shared:
        return  # there is nobody else
    Counting(engine), Counting(other)
    start(engine)
    monkeypatch.setattr(working, "_CLAIM_MS", -1)
    engine.job_batch()
    monkeypatch.setattr(working, "_CLAIM_MS", 60_000)
    engine.renew_claims()
    assert other.job_batch() is None


def test_what_is_written_and_how_far_it_came_are_one(engine: Engine) -> None:
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


def test_tables_of_a_job_go_with_it(engine: Engine) -> None:
    job = start(engine)
    job = run(engine, AdvanceJob(job, {}, keeps=CreateTable("", "", "aside", PAIR)))  # type: ignore[assignment]
    assert isinstance(run(engine, FindTable(of_job(job.id), "aside")), Table)
    run(engine, AdvanceJob(job, {}, ended=True))
    with pytest.raises(TableMissing):
        run(engine, FindTable(of_job(job.id), "aside"))


def test_what_fails_is_tried_again_and_then_given_up(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "_PAUSE_S", 0.0)
    worker = Counting(engine, 2)
    start(engine)
    worker.fails = True
    for _ in range(5):
        assert engine.job_batch() is not None
    assert worker.given_up == []
    worker.fails = False
    engine.job_batch()
    assert found(engine)[0].progress == {"number": 1}
    worker.fails = True
    monkeypatch.setattr(working, "_PATIENCE_S", -1.0)
    engine.job_batch()
    assert worker.given_up == ["nobody answers"]
    assert engine.job_batch() is None


def test_jobs_that_nobody_carries_on_here_hold_up_no_others(engine: Engine) -> None:
    for _ in range(working._JOBS_AT_ONCE):
        run(engine, StartJob("elsewhere", "", "t", {}, "running", 99))
    Counting(engine, 1)
    start(engine)
    assert engine.job_batch() is not None


def test_a_reset_forgets_jobs(engine: Engine, clock: Clock) -> None:
    """Those of a namespace, or all; ended or under way, with the tables that they keep for themselves and their tokens."""
    worker = Counting(engine, 2)
    client = Client(engine, make_table(engine))
    token = Token("scope", "one", b"digest", 1_000)
    start(engine, token=token)
    while engine.job_batch():
        pass
    kept = run(engine, KeepHistory(client.table, 35))
    start(engine, source=kept)
    start(engine, namespace="another")
    assert engine.job_batch() is not None
    run(engine, ResetTables("", keeps_definitions=True))
    assert len(found(engine)) == 2
    run(engine, ResetTables(""))
    assert found(engine) == []
    assert len(run(engine, ListJobs("another", KIND))) == 1  # type: ignore[arg-type]
    assert worker.saved is not None
    assert run(engine, AdvanceJob(worker.saved, {"number": 9})) is None  # what was under way finds out
    assert start(engine, token=Token("scope", "one", b"other", 1_000)).id != worker.saved.id
    run(engine, ResetTables())
    assert found(engine) == run(engine, ListJobs("another", KIND)) == []
    do_background_work(engine)
    with engine._store.read() as session:
        assert (
            session.query("SELECT count(*) FROM tables")
            == session.query("SELECT count(*) FROM jobs")
            == [(0,)]
        )

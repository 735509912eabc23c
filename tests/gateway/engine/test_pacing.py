"""Background work: batches of a bounded time, one work's after the other's, with progress that outlives the process."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import (
    BATCH_S,
    MAX_ROWS,
    MIN_ROWS,
    BatchDone,
    BatchSize,
    FairQueue,
    Scheduler,
    TargetFailed,
    Work,
    pause_after,
)
from tablegate.gateway.model.commands.table_commands import AlterTable, DropTable, FindTable
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.server import background
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Database, LockTimeout, Session
from tablegate.gateway.store.sql.owned_rows import KINDS
from tablegate.gateway.store.sql.progress import EXPIRY_BACKFILL, INDEX_BACKFILL, PURGE, WorkProgress
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table
from tests.support.clock import Clock

ROWS = 300


# The rule


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 1.0])
def test_work_and_rest_are_in_the_proportion_that_is_set(share: float) -> None:
    for took in (0.0001, 0.01, 3.0):
        assert took / (took + pause_after(took, share)) == pytest.approx(share)


def test_batches_grow_while_they_are_quick_and_shrink_when_they_are_not() -> None:
    size = BatchSize()
    assert size.rows == MIN_ROWS
    for _ in range(20):
        size.took(size.rows, BATCH_S / 2 - 0.001)
    assert size.rows == MAX_ROWS
    size.took(size.rows, BATCH_S)
    assert size.rows == MAX_ROWS
    size.took(size.rows, BATCH_S * 4)
    assert size.rows == MAX_ROWS // 4
    for _ in range(20):
        size.took(size.rows, 1.0)
    assert size.rows == MIN_ROWS


def test_a_partial_batch_does_not_change_the_next_size() -> None:
    size = BatchSize()
    size.took(MIN_ROWS - 1, 0.0)
    assert size.rows == MIN_ROWS


class Empty:
    """A store of an empty database, and its session."""

    @contextlib.contextmanager
    def read(self) -> Iterator[Empty]:
        yield self

    def query(self, *_: Any) -> list[Any]:
        return []


def scheduler_of(*works: Work) -> Scheduler:
    """Return a scheduler of these works, without a database."""
    store: Any = Empty()
    made = Scheduler(store, lambda groups: [], lambda do, work: do(work), lambda: 0, idle_s=0.25)
    for work in works:
        made.add(work)
    return made


def test_works_take_turns() -> None:
    left = {"a": 2, "b": 3, "c": 0}

    def work(name: str, now_ms: int, limit: int) -> int | None:
        if not left[name]:
            return None
        left[name] -= 1
        return 1

    background = scheduler_of(*(Work(name, partial(work, name)) for name in left))
    assert [background.next_batch() for _ in range(6)] == [BatchDone(name, 1) for name in "ababb"] + [None]


def test_owners_take_turns_and_then_their_pieces() -> None:
    turns = FairQueue()
    pieces = [("b", 4), ("a", 1), ("a", 3), ("a", 2)]

    def taken(*more: tuple[str, int]) -> int:
        owner, piece = next(turns.order([*pieces, *more]))
        turns.take(owner, piece)
        return piece

    assert [taken() for _ in range(6)] == [1, 4, 2, 4, 3, 4]
    assert [piece for _, piece in turns.order(pieces)] == [1, 4, 2, 3]
    assert [taken() for _ in range(3)] == [1, 4, 2]
    assert [taken(("c", 9)) for _ in range(3)] == [4, 9, 3]
    assert [*turns.order([])] == []


def test_a_lock_timeout_counts_as_an_empty_batch() -> None:
    def work(now_ms: int, limit: int) -> int | None:
        raise LockTimeout("taken")

    assert scheduler_of(Work("a", work)).next_batch() == BatchDone("a", 0)


def test_a_work_rests_for_its_period_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now, answers = [100.0], [1, None, 1, None]
    monkeypatch.setattr(scheduler.time, "monotonic", lambda: now[0])
    background = scheduler_of(Work("a", lambda now_ms, limit: answers.pop(0), period_s=60.0))
    assert [background.next_batch() for _ in range(3)] == [BatchDone("a", 1), None, None]
    now[0] += 60.0
    assert background.next_batch() == BatchDone("a", 1)


def test_a_work_of_another_thread_is_passed_over() -> None:
    """`catch_up` holds the lock of a work until it is done."""
    background = scheduler_of(Work("a", lambda now_ms, limit: 1), Work("b", lambda now_ms, limit: 1))
    with background.works["a"].lock:
        assert [background.next_batch() for _ in range(2)] == [BatchDone("b", 1)] * 2
    assert background.next_batch() == BatchDone("a", 1)


def test_catch_up_runs_due_works_in_the_order_of_registration_and_leaves_backlogs() -> None:
    ran: list[str] = []

    def work(name: str, now_ms: int, limit: int) -> int | None:
        ran.append(name)
        return None

    names = ("b", INDEX_BACKFILL, "a", "network")
    background = scheduler_of(
        *(Work(name, partial(work, name), period_s=60.0, own_thread=name == "network") for name in names)
    )
    background.next_batch()
    ran.clear()
    background.catch_up()
    assert ran == ["b", "b", "a", "a"]


def threads_of(credential_store: Any, *works: Work) -> list[background.TaskThread]:
    """Return the threads of these works at a quarter of a core, on an engine without clients."""
    engine: Any = SimpleNamespace(
        background=scheduler_of(*works),
        replicas=None,
        run_count=0,
        check_schema=lambda: None,
        retry_writes=lambda: None,
        node_states=lambda: (),
    )
    return background.BackgroundWork(engine, credential_store, None, 0.25)._threads  # type: ignore[arg-type]


def test_failures_of_a_target_are_retried_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each failure is logged without a traceback."""
    rests: list[float] = []
    now = [100.0]

    def work(now_ms: int, limit: int) -> int | None:
        raise TargetFailed("nobody is there")

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            rests.append(timeout)
            now[0] += timeout
            return len(rests) == 6

    monkeypatch.setattr(background, "monotonic", lambda: now[0])
    monkeypatch.setattr(background.threading, "Event", Waiting)
    _, thread = threads_of(None, Work("kinesis", work, own_thread=True))
    thread.run()
    assert rests == [0.0, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert [record.exc_info for record in caplog.records] == [None] * 5
    assert caplog.records[0].facts == {"work": "kinesis", "reason": "nobody is there"}  # type: ignore[attr-defined]


def test_the_thread_pauses_after_each_batch_according_to_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Uses a test clock.

    Each batch takes a second, the thread works a quarter or half of the time, and credentials are still refreshed on time.
    """
    now, batches, looks = [100.0], [], []

    def work(now_ms: int, limit: int) -> int:
        batches.append(now[0])
        now[0] += 1.0
        return 1

    class Watched:
        def changes(self) -> None:
            looks.append(now[0])

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            now[0] += timeout
            return now[0] > 150

    monkeypatch.setattr(background, "monotonic", lambda: now[0])
    monkeypatch.setattr(background.threading, "Event", Waiting)
    threads_of(Watched(), Work(PURGE, work))[0].run()
    # The first batch is a second after the start. Clients may have sent requests before it. The share is doubled after it.
    assert batches == [101.0, *(105 + 2.0 * number for number in range(23))]
    assert max(after - before for before, after in itertools.pairwise(looks)) <= 3.0


def test_cpu_time_of_the_thread_of_a_batch_counts_for_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of jobs run on threads of their own. What they wait for does not count."""
    rests: list[float] = []
    used, now = [0.0], [100.0]

    def work(now_ms: int, limit: int) -> BatchDone:
        used[0] += 1.0
        return BatchDone("jobs", 1, apart_s=2.0)

    class Waiting(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            rests.append(timeout)
            now[0] += timeout
            return len(rests) == 3

    monkeypatch.setattr(background, "monotonic", lambda: now[0])
    monkeypatch.setattr(background, "thread_time", lambda: used[0])
    monkeypatch.setattr(background.threading, "Event", Waiting)
    _, thread = threads_of(None, Work("jobs", work, own_thread=True))
    thread.run()
    assert rests == [0.0, 9.0, 3.0]


# Work done and left


@pytest.fixture
def full(engine: Engine, small_batches: None) -> Client:
    things = Client(engine, make_table(engine))
    things.write(*(things.put(f"p{n}", color=text("red"), ttl=decimal(1)) for n in range(ROWS)))
    return things


def listed(engine: Engine) -> list[WorkProgress]:
    with engine._store.read() as session:
        return progress.unfinished_work(session)


def work_a_little(engine: Engine, work: str) -> int:
    """Run some batches of a job, but not all. Returns the number of rows visited."""
    rows = 0
    while rows < 2 * MIN_ROWS:
        batch = engine.background.next_batch()
        assert batch is not None
        rows += batch.rows if batch.work == work else 0
    assert rows < ROWS
    return rows


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "MAX_ROWS", MIN_ROWS)


def reopened(engine: Engine, clock: Clock) -> Engine:
    """Open the database as a new process would: only stored state remains."""
    made = new_engine(Store(engine._store.database), EngineOptions(sweep_period_s=0), clock)
    made.register_view("test", lambda value, is_partition: value)
    return made


def test_an_index_backfill_reports_progress_and_continues_after_a_crash(
    engine: Engine, clock: Clock, full: Client
) -> None:
    [table] = engine.run([AlterTable("test", full.table, add_indexes=(by_color(),))])
    [index] = table.indexes
    assert listed(engine) == [WorkProgress(INDEX_BACKFILL, index.id, 0, ROWS)]
    done = work_a_little(engine, INDEX_BACKFILL)
    assert listed(engine) == [WorkProgress(INDEX_BACKFILL, index.id, done, ROWS - done)]
    other = reopened(engine, clock)
    rows = sum(
        batch.rows for batch in iter(other.background.next_batch, None) if batch.work == INDEX_BACKFILL
    )
    assert rows == ROWS - done
    assert listed(other) == []
    with other._store.read() as session:
        assert session.query("SELECT count(*) FROM entries") == [(ROWS,)]
        assert session.query("SELECT count(*) FROM progress") == [(0,)]


def test_a_purge_reports_progress_and_continues_after_a_crash(
    engine: Engine, clock: Clock, full: Client
) -> None:
    engine.run([DropTable(full.table)])
    assert listed(engine) == [WorkProgress(PURGE, full.table.id, 0, ROWS)]
    done = work_a_little(engine, PURGE)
    assert listed(engine) == [WorkProgress(PURGE, full.table.id, done, ROWS - done)]
    other = reopened(engine, clock)
    assert (
        sum(batch.rows for batch in iter(other.background.next_batch, None) if batch.work == PURGE)
        == ROWS - done
    )
    with other._store.read() as session:
        for name in ("rows", "purges", "progress"):
            assert session.query(f"SELECT count(*) FROM {name}") == [(0,)]


def test_new_expiry_times_report_progress_and_continue_after_a_crash(
    engine: Engine, clock: Clock, full: Client
) -> None:
    rules = Rules(expiry=ExpiryRule(attribute="ttl"))
    engine.run([AlterTable("test", full.table, rules=rules)])
    assert listed(engine) == [WorkProgress(EXPIRY_BACKFILL, full.table.id, 0, ROWS)]
    done = work_a_little(engine, EXPIRY_BACKFILL)
    assert listed(engine) == [WorkProgress(EXPIRY_BACKFILL, full.table.id, done, ROWS - done)]
    other = reopened(engine, clock)
    assert (
        sum(batch.rows for batch in iter(other.background.next_batch, None) if batch.work == EXPIRY_BACKFILL)
        == ROWS - done
    )
    assert listed(other) == []


def test_pending_work_of_a_dropped_table_is_forgotten(engine: Engine, full: Client) -> None:
    [table] = engine.run([AlterTable("test", full.table, add_indexes=(by_color(),))])
    [table] = engine.run([AlterTable("test", table, rules=Rules(expiry=ExpiryRule(attribute="ttl")))])
    assert {piece.work for piece in listed(engine)} == {INDEX_BACKFILL, EXPIRY_BACKFILL}
    engine.run([DropTable(table)])
    assert {piece.work for piece in listed(engine)} == {PURGE}
    do_background_work(engine)
    assert listed(engine) == []


def test_the_engine_reports_remaining_work_until_it_is_done(engine: Engine, full: Client) -> None:
    engine.run([DropTable(full.table)])
    left = []
    while (batch := engine.background.next_batch()) is not None:
        if batch.work == PURGE:
            left.append(engine.background.rows_left[PURGE])
    assert left[0] == ROWS - MIN_ROWS
    assert left == sorted(left, reverse=True)
    assert engine.background.rows_left == {}


def test_work_that_begins_during_other_work_is_counted_at_once(engine: Engine, full: Client) -> None:
    engine.run([AlterTable("test", full.table, add_indexes=(by_color(),))])
    work_a_little(engine, INDEX_BACKFILL)
    second = make_table(engine, "second")
    Client(engine, second).write(*(Client(engine, second).put(f"p{n}") for n in range(2 * MIN_ROWS)))
    engine.run([DropTable(second)])
    while (batch := engine.background.next_batch()) is not None and batch.work != PURGE:
        pass
    assert engine.background.rows_left[PURGE] == MIN_ROWS
    assert 0 < engine.background.rows_left[INDEX_BACKFILL] < ROWS


def test_counting_what_is_left_is_bounded(engine: Engine, full: Client) -> None:
    """By rows, over all pieces of work together, and by pieces."""
    second = Client(engine, make_table(engine, "second"))
    second.write(*(second.put(f"p{n}") for n in range(5)))
    engine.run([DropTable(full.table), DropTable(second.table)])
    with engine._store.read() as session:
        assert [piece.left for piece in progress.unfinished_work(session, 10)] == [10, 0]
        assert [piece.left for piece in progress.unfinished_work(session, ROWS + 3)] == [ROWS, 3]
        assert [piece.left for piece in progress.unfinished_work(session, pieces=1)] == [ROWS]


def test_counting_does_not_read_rows(database: Database) -> None:
    """The narrow index is enough: rows have bodies of up to 400 KB."""
    if not database.shared:
        with database.read() as session:
            for kind, owned in KINDS.items():
                if kind in ("history", "terms"):
                    # A log has no narrow index, which would cost each write; what is counted of it is bounded. Terms
                    # have no bodies.
                    continue
                [plan] = [
                    row[3]
                    for row in session.query(f"EXPLAIN QUERY PLAN {owned.counting}", (1, 10))
                    if "USING" in row[3]
                ]
                assert "COVERING INDEX" in plan, plan
                assert any(narrow in plan for narrow in ("_by_slot", "_by_version", "_by_number")), plan


# Bounded batches


def test_a_batch_has_few_large_rows(engine: Engine) -> None:
    """4 MB at most, and one row at least, of what is purged or walked over."""
    things = Client(engine, make_table(engine))
    big = text("x" * 1_500_000)
    things.write(*(things.put(f"p{n}", color=text("red"), big=big) for n in range(6)))
    [table] = engine.run([AlterTable("test", things.table, add_indexes=(by_color(),))])
    assert batches_of(engine, INDEX_BACKFILL) == [2, 2, 2, 0]
    engine.run([DropTable(table)])
    assert batches_of(engine, PURGE) == [2, 2, 2, 6]  # the entries are small


def batches_of(engine: Engine, work: str) -> list[int]:
    return [batch.rows for batch in iter(engine.background.next_batch, None) if batch.work == work]


class Counting:
    """Counter of the statements that sessions of this thread execute and the rows that they return.

    Servers of other tests may still run in threads of this process.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[Session]) -> None:
        self.statements = self.rows = 0
        query, thread = kind.query, threading.get_ident()

        def counted(session: Session, statement: str, parameters: Any = ()) -> list[Any]:
            found = query(session, statement, parameters)
            if threading.get_ident() == thread:
                self.statements += 1
                self.rows += len(found)
            return found

        monkeypatch.setattr(kind, "query", counted)

    def of(self, engine: Engine) -> tuple[int, int]:
        """Run all background work. Return its numbers of statements and rows."""
        self.statements = self.rows = 0
        do_background_work(engine)
        return self.statements, self.rows


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, database: Database) -> Counting:
    with database.read() as session:
        kind = type(session)
    return Counting(monkeypatch, kind)


def test_background_work_of_a_start_does_not_depend_on_how_many_tables_there_are(
    engine: Engine, clock: Clock, counting: Counting
) -> None:
    few = counting.of(reopened(engine, clock))
    for number in range(200):
        make_table(engine, f"t{number}", indexes=(by_color(),))
    assert counting.of(reopened(engine, clock)) == few


_SMALL = (
    "purges",
    "expiry_backfills",
    "progress",
    "partition_locks",
    "indexes_to_fill",
    "copies",
    "histories",
)


def test_looking_for_work_is_a_search_of_a_small_index(engine: Engine) -> None:
    """And not a scan of all tables, several times a second."""
    if engine._store.database.shared:
        return  # PostgreSQL chooses by statistics
    seen: list[str] = []
    with engine._store.read() as session:
        connection = session._connection
    connection.set_trace_callback(seen.append)
    while engine.background.next_batch():
        pass
    connection.set_trace_callback(None)
    with engine._store.read() as session:
        plans = [
            row[3]
            for statement in seen
            if statement.lstrip().startswith("SELECT")
            for row in session.query(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert plans
    scans = [plan for plan in plans if plan.startswith("SCAN")]
    assert all(any(small in plan for small in _SMALL) for plan in scans), scans


def test_many_tables_are_listed_with_two_statements(engine: Engine, counting: Counting) -> None:
    made = [make_table(engine, f"t{number:03}", indexes=(by_color(),)) for number in range(120)]
    with engine._store.read() as session:
        counting.statements = 0
        found = engine._store.catalog.page(session, "", "", None)
    assert counting.statements == 2
    assert [(table.name, [index.id for index in table.indexes]) for table in found] == [
        (table.name, [index.id for index in table.indexes]) for table in made
    ]


def test_a_table_with_an_index_is_found_with_one_statement(engine: Engine, counting: Counting) -> None:
    made = make_table(engine, indexes=(by_color(),))
    counting.statements = 0
    assert engine.run([FindTable("", made.name)]) == [made]
    # Counting does not see a statement that PostgreSQL may get together with others.
    assert counting.statements <= 1

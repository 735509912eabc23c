"""Copies between tables in memory: everything arrives, errors are reported, and a job continues where it stopped."""

from __future__ import annotations

import _thread
import contextlib
import errno
import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, text
from tablegate.transfer.copying import job_setup
from tablegate.transfer.copying.copying import CopyOptions, Interrupted, plan, run, write_rejects
from tablegate.transfer.copying.job import CopyJob, Counts
from tablegate.transfer.copying.writing import (
    Concurrency,
    Rate,
    RateLimit,
    RateUnit,
    StopSignal,
    rate_limit_of,
)
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.errors import (
    PositionLost,
    SchemaChanged,
    ServiceUnavailable,
    TableAbsent,
    TransferError,
)
from tablegate.transfer.progress import LineProgress, NoProgress
from tests.support.waiting import PATIENCE_S, wait_until
from tests.transfer.support.memory_endpoint import (
    PAIR,
    MemoryEndpoint,
    MemoryTable,
    PollingMemoryEndpoint,
    definition_of,
    row_of,
    rows_of,
)

Ends = tuple[MemoryEndpoint, MemoryEndpoint]


@pytest.fixture
def ends() -> Ends:
    """A source of 300 rows, and a target without a table."""
    source = MemoryEndpoint(MemoryTable(definition_of(), rows_of(300)), shown="memory:source")
    target = MemoryEndpoint(MemoryTable(None), shown="memory:target")
    target.write_rows = 10  # type: ignore[misc]
    return source, target


def begin(tmp_path: Path) -> CopyJob:
    path = tmp_path / "copy.job"
    if path.exists():
        return CopyJob.open(path)
    addresses = "memory:source", "memory:target"
    return CopyJob.create(path, *addresses, [addresses], {})


def copy(tmp_path: Path, ends: tuple[Endpoint, Endpoint], **options: object) -> Counts:
    """Begin a job, or go on with the one that is there."""
    job = begin(tmp_path)
    source, target = ends
    try:
        return run(job, (lambda _: source, lambda _: target), CopyOptions(**options), NoProgress())  # type: ignore[arg-type]
    finally:
        job.close()


def are_equal(ends: Ends) -> bool:
    return ends[0].table.values == ends[1].table.values


def test_all_rows_are_copied(ends: Ends, tmp_path: Path) -> None:
    counts = copy(tmp_path, ends)
    assert are_equal(ends)
    assert (counts.rows, counts.rejected) == (300, 0)
    assert counts.size_bytes == sum(row.size_bytes for row in ends[0].table.rows.values())
    assert ends[1].calls["finish"] == 1


@pytest.mark.parametrize("parallel", [1, 3, 8])
def test_any_number_of_threads_copies_all_rows(ends: Ends, tmp_path: Path, parallel: int) -> None:
    copy(tmp_path, ends, parallel=parallel)
    assert are_equal(ends)


def test_an_empty_table_is_copied(tmp_path: Path) -> None:
    ends = MemoryEndpoint(MemoryTable(definition_of())), MemoryEndpoint(MemoryTable(None))
    assert copy(tmp_path, ends).rows == 0
    assert ends[1].table.definition is not None
    assert ends[1].table.definition.key_schema == PAIR


def test_a_job_that_is_done_stays_done(ends: Ends, tmp_path: Path) -> None:
    copy(tmp_path, ends)
    pages = len(ends[0].pages)
    assert copy(tmp_path, ends).rows == 300
    assert len(ends[0].pages) == pages
    assert ends[1].calls["finish"] == 1


# Faults

FAULTS = [ServiceUnavailable("the line is cut"), OSError(errno.ENOSPC, "No space left on device")]


CALLS = [("scan", 0), ("scan", 5), ("scan", 17), ("write", 0), ("write", 5), ("write", 17)]
ONCE = [("finish", 0), ("create", 0), ("segments", 0)]
CASES = [*((*call, error) for call in CALLS for error in FAULTS), *((*call, FAULTS[0]) for call in ONCE)]


@pytest.mark.parametrize(("method", "after", "error"), CASES)
def test_a_job_goes_on_after_a_fault(
    ends: Ends, tmp_path: Path, method: str, after: int, error: Exception
) -> None:
    source, target = ends
    target.writes_half = True
    (source if method in ("scan", "segments") else target).fail(method, error, after)
    with pytest.raises(TransferError, match=r"line is cut|No space left"):
        copy(tmp_path, ends)
    assert method != "finish" or are_equal(ends)
    done = finished_segments(tmp_path)
    first_pages = len(source.pages)
    assert copy(tmp_path, ends).rows == 300
    assert are_equal(ends)
    again = [segment for segment, _ in source.pages[first_pages:]]
    assert not [segment for segment in again if segment in done]


def finished_segments(tmp_path: Path) -> list[object]:
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.job")) as connection:
        return [
            json.loads(each) for (each,) in connection.execute("SELECT segment FROM segments WHERE is_done")
        ]


def test_a_segment_goes_on_after_the_page_that_is_written(ends: Ends, tmp_path: Path) -> None:
    source, target = ends

    def is_written() -> bool:
        """True if at most four pages are not written. Two of them can be the short last pages of segments."""
        return len(target.table.rows) >= source.page_rows * (len(source.pages) - 4)

    source.when("scan", lambda: wait_until(is_written), times=14)
    source.fail("scan", ServiceUnavailable("cut"), after=14)
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends, parallel=1)
    first = len(source.pages)
    copy(tmp_path, ends, parallel=1)
    assert are_equal(ends)
    # The page that failed, and perhaps some before it that were read and not yet written.
    assert [page for page in source.pages[first:] if page in source.pages[: first - 6]] == []


def test_a_job_that_was_killed_at_its_beginning_has_all_its_tables_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without some of its tables would end with status 0 when it is resumed."""
    left = [0]

    def step() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt

    class Interrupted(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            step()
            return super().execute(*arguments)

        def commit(self) -> None:
            step()
            super().commit()

    opened = []
    connect = sqlite3.connect

    def connect_interrupted(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options, factory=Interrupted))
        return opened[-1]

    pairs = [(f"tablegate:{name}", f"tablegate:copy of {name}") for name in ("one", "two")]
    monkeypatch.setattr(job_setup, "pairs_of", lambda source, target: pairs)
    monkeypatch.setattr(job_setup, "stored_address", str)
    outcomes = []
    for number in range(12):
        path = tmp_path / f"{number}.job"
        left[0] = number
        with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr(sqlite3, "connect", connect_interrupted)
            job_setup.begin_job(path, "tablegate:#*", "tablegate:#*", job_setup.ChosenOptions())
        opened.pop().close()
        try:
            job = CopyJob.open(path)
        except TransferError:
            outcomes.append(0)
        else:
            outcomes.append(len(job.tables()))
            job.close()
    assert set(outcomes) == {0, 2}


def test_a_source_that_changes_its_key(ends: Ends, tmp_path: Path) -> None:
    source, _ = ends

    def change() -> None:
        source.table.definition = definition_of(key_schema=KeySchema((KeyColumn("other", Kind.TEXT),)))

    source.when("scan", change, after=20)
    with pytest.raises(SchemaChanged):
        copy(tmp_path, ends)
    assert ends[1].calls["finish"] == 0
    with pytest.raises(SchemaChanged):  # nor by another process
        copy(tmp_path, ends)


def test_an_absent_source_ends_the_copy(tmp_path: Path) -> None:
    ends = MemoryEndpoint(MemoryTable(None)), MemoryEndpoint(MemoryTable(None))
    with pytest.raises(TableAbsent):
        copy(tmp_path, ends)
    assert ends[1].table.definition is None


@pytest.mark.usefixtures("in_foreground")
def test_ctrl_c_leaves_a_job_that_goes_on(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    source.when("scan", _thread.interrupt_main, after=12)
    with pytest.raises(Interrupted):
        copy(tmp_path, ends)
    assert target.calls["finish"] == 0
    assert copy(tmp_path, ends).rows == 300
    assert are_equal(ends)


def test_ctrl_c_while_threads_are_started_ends_them(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, start = set(threading.enumerate()), threading.Thread.start

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        if len(set(threading.enumerate()) - before) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)
    with pytest.raises(Interrupted):
        copy(tmp_path, ends)
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.usefixtures("in_foreground")
def test_ctrl_c_waits_for_the_running_calls(
    ends: Ends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that goes on would use a job and endpoints that are closed."""
    stopping, set_stop, has_ended = threading.Event(), StopSignal.set, threading.Event()
    monkeypatch.setattr(StopSignal, "set", lambda *given: [set_stop(*given), stopping.set()])

    def interrupt() -> None:
        _thread.interrupt_main()
        stopping.wait(PATIENCE_S)
        time.sleep(0.1)  # so that a copy that does not wait has returned
        has_ended.set()

    ends[0].when("scan", interrupt)
    with pytest.raises(Interrupted):
        copy(tmp_path, ends, parallel=1)
    assert has_ended.is_set()


def test_a_full_disk_under_the_job_ends_the_copy(ends: Ends, tmp_path: Path) -> None:
    job = begin(tmp_path)
    [[pages]] = job._connection.execute("PRAGMA page_count").fetchall()
    job._connection.execute(f"PRAGMA max_page_count = {pages}")
    ends[1].reject = lambda row: ("Large", "x" * 200)  # which the job has to keep
    source, target = ends
    with pytest.raises(TransferError, match=r"job file .*copy.job cannot be used: .*full"):
        run(job, (lambda _: source, lambda _: target), CopyOptions(), NoProgress())
    job.close()
    ends[1].reject = lambda row: None
    counts = copy(tmp_path, ends)
    assert counts.rejected < 300  # those of the pages that were noted
    assert counts.rows == 300 - counts.rejected == len(ends[1].table.rows)


def test_a_full_disk_under_the_rejects(ends: Ends, tmp_path: Path) -> None:
    ends[1].reject = lambda row: ("Large", "too large")
    copy(tmp_path, ends)
    job = CopyJob.open(tmp_path / "copy.job")
    with pytest.raises(TransferError, match=r"rejected rows .* cannot be written: "):
        write_rejects(job, Path("/dev/full/rejects.jsonl"))
    job.close()


# Rejects


def test_rejects_are_in_a_file(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    source.fail("scan", ServiceUnavailable("cut"), after=10)
    target.reject = lambda row: ("Odd", "it is odd") if int(row.latest["number"].data) % 2 else None
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends)
    counts = copy(tmp_path, ends)
    assert (counts.rows, counts.rejected) == (150, 150)
    job = CopyJob.open(tmp_path / "copy.job")
    assert write_rejects(job, tmp_path / "rejects.jsonl") == 150
    job.close()
    lines = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert {line["row"]["number"]["I64"] for line in lines} == {str(at) for at in range(1, 300, 2)}
    [line] = [line for line in lines if line["row"]["number"]["I64"] == "7"]
    assert line == {
        "table": "memory:source",
        "key": {"pk": {"S": "partition 2"}, "sk": {"S": "row 7"}},
        "code": "Odd",
        "reason": "it is odd",
        "row": json.loads(rows_of(1, start=7)[0].body),
    }


def test_without_rejects_there_is_no_file(ends: Ends, tmp_path: Path) -> None:
    copy(tmp_path, ends)
    job = CopyJob.open(tmp_path / "copy.job")
    assert write_rejects(job, tmp_path / "rejects.jsonl") == 0
    job.close()
    assert not list(tmp_path.glob("rejects*"))


# Pace


def test_a_rate_is_kept_on_average() -> None:
    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    rate = Rate(RateLimit(100, RateUnit.ROWS), wait, lambda: now[0])
    for rows in (50, 150, 1, 99, 300):
        rate.take(rows)
    assert now[0] == pytest.approx(3.0)  # 300 rows before the last batch, which may go at once


def test_a_copy_keeps_its_rate(ends: Ends, tmp_path: Path) -> None:
    began = time.monotonic()
    copy(tmp_path, ends, limits=(RateLimit(400, RateUnit.ROWS),))
    assert time.monotonic() - began > 0.4
    assert are_equal(ends)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ("500", RateLimit(500, RateUnit.ROWS)),
        ("0.5", RateLimit(0.5, RateUnit.ROWS)),
        ("100wcu", RateLimit(100, RateUnit.WRITE_UNITS)),
        ("25RCU", RateLimit(25, RateUnit.READ_UNITS)),
    ],
)
def test_rates_as_they_are_written(given: str, limit: RateLimit) -> None:
    assert rate_limit_of(given) == limit


@pytest.mark.parametrize("given", ["", "0", "-1", "fast", "1e9", "10 wcu"])
def test_rates_that_are_none(given: str) -> None:
    with pytest.raises(TransferError):
        rate_limit_of(given)


def test_fewer_calls_at_once_while_a_service_is_slow() -> None:
    calls = Concurrency(8)
    now = 0.0

    def call(seconds: float) -> None:
        nonlocal now
        calls.enter(lambda: False)
        now += seconds
        calls.leave(seconds, now)

    for _ in range(10):
        call(0.05)
    assert calls.limit == 8
    for _ in range(3):
        call(20.0)
    assert calls.limit == 1
    for _ in range(200):
        call(0.05)
    assert calls.limit == 8


def test_throttling_is_sat_out(ends: Ends, tmp_path: Path) -> None:
    ends[1].throttle("write", 0.1, after=3, times=5)
    copy(tmp_path, ends)
    assert are_equal(ends)


def test_rows_in_memory_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablegate.transfer.copying import scanning

    monkeypatch.setattr(scanning, "_BYTES_IN_MEMORY", 50_000)
    source = MemoryEndpoint(MemoryTable(definition_of(), rows_of(1_000, size=1_000)))
    target = MemoryEndpoint(MemoryTable(None))
    ahead: list[int] = []
    read = [0]

    def look() -> None:
        time.sleep(0.005)
        ahead.append(read[0] - len(target.table.rows))

    source.when("scan", lambda: read.__setitem__(0, read[0] + 10), times=1 << 30)
    target.when("write", look, times=1 << 30)
    copy(tmp_path, (source, target), parallel=4)
    assert source.table.values == target.table.values
    # Each of four threads can have read a page that is not yet queued. The last page of each of 16 segments counts as
    # 10 rows and has fewer.
    assert max(ahead) <= 25 + 4 * 10 + 16 * 10


# Job files


def test_a_job_is_one_process_at_a_time(tmp_path: Path) -> None:
    job = begin(tmp_path)
    with pytest.raises(TransferError, match="another process uses"):
        CopyJob.open(tmp_path / "copy.job")
    job.close()
    CopyJob.open(tmp_path / "copy.job").close()


def test_a_job_is_of_its_ends(tmp_path: Path) -> None:
    job = begin(tmp_path)
    job.require("memory:source", None)
    with pytest.raises(TransferError, match="has another target: memory:target, not memory:other"):
        job.require("memory:source", "memory:other")
    job.close()
    with pytest.raises(TransferError, match="exists already"):
        CopyJob.create(tmp_path / "copy.job", "a", "b", [], {})
    (tmp_path / "other").write_text("no job" * 1000)
    with pytest.raises(TransferError, match="not a job file"):
        CopyJob.open(tmp_path / "other")
    with pytest.raises(TransferError, match="does not exist"):
        CopyJob.open(tmp_path / "nothing")


def test_a_plan_writes_nothing(ends: Ends) -> None:
    told = plan(*ends, CopyOptions(follow=True))
    assert any("is created" in line for line in told)
    assert ends[1].table.definition is None
    assert ends[0].calls["capture"] == ends[0].calls["scan"] == 0


# Following


class Writing(threading.Thread):
    """A thread that writes, changes and deletes rows of the source until it is stopped."""

    def __init__(self, table: MemoryTable, seed: int) -> None:
        super().__init__()
        self._table = table
        self._seed = seed
        self.stop = threading.Event()

    @staticmethod
    def end(writers: Sequence[Writing]) -> None:
        """Have all of them stop."""
        for writer in writers:
            writer.stop.set()

    def run(self) -> None:
        import random

        chance = random.Random(self._seed)
        while not self.stop.wait(0.0005):
            at = chance.randrange(400)
            if chance.random() < 0.3:
                self._table.remove(rows_of(1, start=at)[0].position)
            else:
                self._table.put(rows_of(1, size=chance.randrange(50), start=at)[0])


def test_changes_are_followed(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    writers = [Writing(source.table, seed) for seed in range(2)]
    source.when("scan", writers[0].start, after=2)
    source.when("scan", writers[1].start, after=5)
    target.throttle("write", 0.01, times=1 << 30)
    stopper = threading.Timer(1.0, Writing.end, [writers])
    stopper.start()
    source.fail("get", ServiceUnavailable("cut"), after=5)
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends, follow=True)
    stopper.join()
    for writer in writers:
        writer.join()
    counts = copy(tmp_path, ends, follow=True, until_lag_s=5)
    assert are_equal(ends)
    assert counts.applied > 0
    assert counts.changes_left == 0


def test_following_ends_when_it_is_close_enough(ends: Ends, tmp_path: Path) -> None:
    source, _ = ends
    source.when("scan", lambda: source.table.put(rows_of(1, size=99)[0]), after=31)
    counts = copy(tmp_path, ends, follow=True, until_lag_s=2)
    assert are_equal(ends)
    assert counts.applied == 1


@pytest.mark.parametrize("method", ["capture", "changes", "get", "delete", "write"])
def test_following_goes_on_after_a_fault(ends: Ends, tmp_path: Path, method: str) -> None:
    source, target = ends

    def change() -> None:
        for row in rows_of(40, size=30, start=290):
            source.table.put(row)
        for row in rows_of(20):
            source.table.remove(row.position)
        if method == "write":
            target.fail("write", ServiceUnavailable("cut"), after=0)

    source.when("scan", change, after=31)
    if method != "write":
        (target if method == "delete" else source).fail(method, ServiceUnavailable("cut"))
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends, follow=True, until_lag_s=5)
    copy(tmp_path, ends, follow=True, until_lag_s=5)
    assert are_equal(ends)


def test_a_lost_position_is_no_end(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    source.fail("scan", ServiceUnavailable("cut"), after=20)
    with pytest.raises(ServiceUnavailable):
        copy(tmp_path, ends, follow=True, until_lag_s=5)
    source.table.put(rows_of(1, size=99)[0])
    source.table.forget_changes()
    with pytest.raises(PositionLost):
        copy(tmp_path, ends, follow=True, until_lag_s=5)
    assert target.calls["finish"] == 0


def test_a_row_that_was_rejected_and_changed_is_no_reject(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    target.reject = lambda row: ("Large", "too large") if row.size_bytes > 1_000 else None
    large, small = rows_of(1, size=2_000)[0], rows_of(1)[0]
    source.table.put(large)
    source.when("scan", lambda: source.table.put(small), after=31)
    assert copy(tmp_path, ends, follow=True, until_lag_s=5).rejected == 0
    assert are_equal(ends)


def test_a_row_that_becomes_a_reject(ends: Ends, tmp_path: Path) -> None:
    source, target = ends
    target.reject = lambda row: ("Large", "too large") if row.size_bytes > 1_000 else None
    source.when("scan", lambda: source.table.put(rows_of(1, size=2_000)[0]), after=31)
    assert copy(tmp_path, ends, follow=True, until_lag_s=5).rejected == 1


def test_deletes_without_a_stream_are_swept(tmp_path: Path) -> None:
    source = PollingMemoryEndpoint(MemoryTable(definition_of(), rows_of(300)))
    target = MemoryEndpoint(MemoryTable(None))
    other = row_of(PAIR, pk=text("not"), sk=text("copied"))
    target.table.put(other)

    def change() -> None:
        for row in rows_of(50):
            source.table.remove(row.position)
        for row in rows_of(20, start=300):
            source.table.put(row)

    source.when("scan", change, after=31)
    target.reject = lambda row: ("Odd", "it is odd") if row.position == rejected.position else None
    rejected = rows_of(1, start=299)[0]
    assert copy(tmp_path, (source, target), follow=True, until_lag_s=5).rejected == 1
    source.table.remove(rejected.position)
    left = target.table.values
    assert left.pop(other.position)  # what was never copied is nobody's to delete
    assert left == source.table.values
    assert copy(tmp_path, (source, target), follow=True, until_lag_s=5).rejected == 0


# Reports


def test_lines_for_logs() -> None:
    import io

    now = [0.0]
    stream = io.StringIO()
    lines = LineProgress(stream, lambda: now[0])
    lines.begin("dynamodb://things", 1_000)
    for _ in range(5):
        now[0] += 6
        lines.advance(100, 100_000, 1)
    lines.close()
    assert stream.getvalue().splitlines() == [
        "dynamodb://things: about 1,000 rows",
        "dynamodb://things: 200 rows, 200.0 kB, 17 rows/s, 2 rejected, about 48 s left",
        "dynamodb://things: 400 rows, 400.0 kB, 17 rows/s, 4 rejected, about 36 s left",
        "dynamodb://things: 500 rows, 500.0 kB, 17 rows/s, 5 rejected, about 30 s left",
    ]

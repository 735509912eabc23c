"""`tablegate copy` as a process that is killed at random moments and restarted. The tables are equal at the end, and no
finished part is read again.

The run is short here. `make soak` runs it at full length.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.copying.job import CopyJob
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tests.support.databases import PostgresServer
from tests.support.running import ROOT
from tests.support.waiting import PATIENCE_S, wait_at_random
from tests.transfer.support.memory_endpoint import PAIR, rows_of

pytestmark = pytest.mark.extended

IS_LONG = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5")) >= 30
STOPPED = ["Error: stopped", "Continue with: tablegate copy --job copy.job --resume"]
DIRECTIONS = ["sqlite to postgresql", "postgresql to sqlite"]


class Copying:
    """`tablegate copy` as a process."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tablegate", "copy", *arguments, "--job", "copy.job"],
            cwd=folder, env={**clean, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_until_copying(self) -> None:
        """Wait for the first progress line about the table."""
        assert self._process.stderr is not None
        while "exists already" in self._process.stderr.readline():
            pass

    def kill(self) -> None:
        """As a crash."""
        self._process.kill()
        self._process.communicate()

    def end_by(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal (Ctrl-C is SIGINT) and wait. Returns the status and the output."""
        self._process.send_signal(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Wait for it to end by itself."""
        _, errors = self._process.communicate(timeout=600 if IS_LONG else PATIENCE_S)
        return self._process.returncode, errors

    def end_and_weigh(self) -> tuple[int, float]:
        """Wait for the process to end. Returns the status and the highest observed memory in MB.

        The maximum of wait4 would include the memory of this process, which forked it.
        """
        most = 0
        status = Path(f"/proc/{self._process.pid}/status")
        while self._process.poll() is None:
            with contextlib.suppress(OSError):
                found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(), re.MULTILINE)
                most = int(found[1]) if found else most
            time.sleep(0.02)
        self._process.communicate()
        return self._process.returncode, most / 1024


@pytest.fixture(params=DIRECTIONS)
def ends(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path) -> Iterator[list[str]]:
    """Addresses of a source without a table and of a target."""
    with postgres.new_database() as url:
        made = [f"tablegate:sqlite:///{tmp_path}/things.sqlite#things", f"tablegate:{url}#things"]
        yield made if request.param == DIRECTIONS[0] else made[::-1]


@contextlib.contextmanager
def opened(address: str) -> Iterator[DatabaseEndpoint]:
    endpoint = DatabaseEndpoint(address.removeprefix("tablegate:"))
    yield endpoint
    endpoint.close()


def fill(address: str, number: int, size: int = 100) -> None:
    with opened(address) as endpoint:
        endpoint.create(Definition("things", Service.TABLEGATE, PAIR))
        for start in range(0, number, 5_000):
            endpoint.write(rows_of(min(5_000, number - start), size, start))


def contents(address: str) -> dict[object, bytes]:
    with opened(address) as endpoint:
        return {
            row.position: row.body
            for segment in endpoint.segments(1)
            for page in endpoint.scan(segment)
            for row in page.rows
        }


def progress(folder: Path) -> dict[str, tuple[int, int]]:
    """Return for each segment of the job whether it is finished, and its number of recorded rows."""
    path = folder / "copy.job"
    if not path.exists():
        return {}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            found = connection.execute("SELECT segment, is_done, rows FROM segments").fetchall()
        except sqlite3.OperationalError:  # killed before its first transaction
            return {}
    return {segment: (done, rows) for segment, done, rows in found}


def begin(folder: Path, ends: list[str], *options: str) -> Copying:
    """Begin a job, or go on with the one that is there."""
    if progress(folder):
        return Copying(folder, *ends, "--resume", *options)
    (folder / "copy.job").unlink(missing_ok=True)
    return Copying(folder, *ends, *options)


@pytest.mark.soak
def test_killed_copies_go_on(ends: list[str], tmp_path: Path) -> None:
    if ends[0].startswith("tablegate:sqlite") and not IS_LONG:
        pytest.skip("one direction is enough for a quick look")
    number, kills = (200_000, 12) if IS_LONG else (4_000, 1)
    chance = random.Random(5)
    fill(ends[0], number)
    before = progress(tmp_path)
    for _ in range(kills):
        process = begin(tmp_path, ends, "--rate", str(number // 2))
        process.wait_until_copying()
        wait_at_random(chance, 1.5 / kills)
        process.kill()
        after = progress(tmp_path)
        for segment, (done, rows) in before.items():
            assert after[segment] == (done, rows) or not done
        before = after
    status, errors = begin(tmp_path, ends, "--rate", str(number)).end()
    assert status == 0, errors
    assert contents(ends[0]) == contents(ends[1])
    # A segment that was read again, or a page that was noted twice, would count twice.
    assert sum(rows for _, rows in progress(tmp_path).values()) == number


class Writer(threading.Thread):
    """A thread that writes, changes and deletes rows until it is stopped."""

    def __init__(self, endpoint: DatabaseEndpoint, seed: int) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._chance = random.Random(seed)
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.001 if IS_LONG else 0.01):
            at = self._chance.randrange(3_000)
            rows: list[Row] = rows_of(3, self._chance.randrange(99), at)
            if self._chance.random() < 0.4:
                self._endpoint.delete([PAIR.decode(row.position) for row in rows])
            else:
                self._endpoint.write(rows)


@pytest.mark.soak
@pytest.mark.parametrize("ends", DIRECTIONS[1:], indirect=True)
def test_killed_followers_go_on(ends: list[str], tmp_path: Path) -> None:
    """Writers go on at the source while the copy is killed again and again."""
    writers, kills = (8, 10) if IS_LONG else (2, 2)
    chance = random.Random(6)
    fill(ends[0], 2_000)
    with opened(ends[0]) as endpoint:
        threads = [Writer(endpoint, seed) for seed in range(writers)]
        for thread in threads:
            thread.start()
        try:
            for kill in range(kills):
                # The first is killed in the scan, the others while they follow.
                process = begin(tmp_path, ends, "--follow", *(["--rate", "2000"] if not kill else []))
                process.wait_until_copying()
                wait_at_random(chance, 4.0 if IS_LONG else 0.6)
                process.kill()
            if not IS_LONG:
                assert progress(tmp_path)
        finally:
            for thread in threads:
                thread.stop.set()
            for thread in threads:
                thread.join()
    status, errors = begin(tmp_path, ends, "--follow", "--until-lag", "2s").end()
    assert status == 0, errors
    assert contents(ends[0]) == contents(ends[1])


@pytest.mark.usefixtures("in_background")
@pytest.mark.parametrize("ends", DIRECTIONS[1:], indirect=True)
def test_in_the_background_ctrl_c_is_for_others_and_sigterm_stops(ends: list[str], tmp_path: Path) -> None:
    """POSIX has a program leave SIGINT ignored where it was started so: Ctrl-C is meant for what is in the foreground."""
    fill(ends[0], 1_000)
    process = Copying(tmp_path, *ends, "--rate", "1000")
    process.wait_until_copying()
    status, errors = process.end_by(signal.SIGINT)
    assert status == 0, errors
    assert contents(ends[0]) == contents(ends[1])
    (tmp_path / "copy.job").unlink()
    process = Copying(tmp_path, *ends, "--follow")
    process.wait_until_copying()
    status, errors = process.end_by(signal.SIGTERM)
    assert (status, errors.splitlines()[-2:]) == (2, STOPPED)


@pytest.mark.usefixtures("in_foreground")
@pytest.mark.parametrize("ends", DIRECTIONS[1:], indirect=True)
def test_ctrl_c_prints_how_to_continue(ends: list[str], tmp_path: Path) -> None:
    fill(ends[0], 1_000)
    process = Copying(tmp_path, *ends, "--rate", "10")
    process.wait_until_copying()
    status, errors = process.end_by(signal.SIGINT)
    assert status == 2
    assert errors.splitlines()[-2:] == STOPPED
    job = CopyJob.open(tmp_path / "copy.job")
    assert job.options == {"rates": ["10"]}
    job.close()
    status, errors = Copying(tmp_path, "--resume", "--rate", "100000").end()
    assert status == 0, errors
    assert contents(ends[0]) == contents(ends[1])


@pytest.mark.soak
@pytest.mark.parametrize("ends", DIRECTIONS[:1], indirect=True)
def test_memory_is_bounded(ends: list[str], tmp_path: Path) -> None:
    """Under 200 MB whatever the size of the table."""
    number = 400_000 if IS_LONG else 10_000
    fill(ends[0], number, 900)
    process = Copying(tmp_path, *ends)
    status, most = process.end_and_weigh()
    assert status == 0
    assert most < 200
    rejects = list(tmp_path.glob("*.rejects.jsonl"))
    assert not rejects, json.loads(rejects[0].read_text().splitlines()[0])

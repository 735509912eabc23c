"""Restores of backups taken under load: consistent, with all writes that were acknowledged before the end of the
backup.

The run takes seconds here. `make soak` takes backups for a minute on each database.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import DatabaseUnusable
from tablegate.gateway.store.sqlite import files
from tests.support.loads import number, text
from tests.support.raw_client import RawClient, Refused
from tests.support.running import ROOT, Process
from tests.support.standby import Node, start_cluster
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "3"))
ACCOUNTS = 8
WRITERS = 3


class Teller(threading.Thread):
    """A thread that moves money between accounts and adds a ledger entry each time.

    It records the time of each acknowledgement.
    """

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self._url = url
        self._name = name
        self._chance = random.Random(name)
        self.acknowledged: list[tuple[float, str]] = []
        self.is_stopped = False

    def run(self) -> None:
        with RawClient(self._url) as client:
            at = 0
            while not self.is_stopped:
                at += 1
                entry = f"{self._name}-{at:06}"
                source, target = self._chance.sample(range(ACCOUNTS), 2)
                try:
                    client.call(
                        "TransactWriteItems",
                        TransactItems=[
                            {
                                "Put": {
                                    "TableName": "ledger",
                                    "Item": {"p": text(entry), "x": text("x" * 2000)},
                                }
                            },
                            _add(source, -7),
                            _add(target, 7),
                        ],
                    )
                except Refused as refusal:
                    if not refusal.may_be_tried_again and refusal.code != "TransactionCanceledException":
                        raise
                else:
                    self.acknowledged.append((time.time(), entry))


def _add(account: int, amount: int) -> dict[str, object]:
    return {
        "Update": {
            "TableName": "accounts",
            "Key": {"p": text(f"a{account}")},
            "UpdateExpression": "ADD balance :amount, moves :one",
            "ExpressionAttributeValues": {":amount": number(amount), ":one": number(1)},
        }
    }


@contextlib.contextmanager
def tellers(url: str) -> Iterator[list[Teller]]:
    """Yield tables with a load on them. At least some writes of each thread have been acknowledged at the start."""
    with RawClient(url) as client:
        for table in ("ledger", "accounts", "ballast"):
            client.create_table(table)
        # Large enough that a copy takes a while, and that the log is checkpointed meanwhile.
        for at in range(60):
            client.call("PutItem", TableName="ballast", Item={"p": text(f"b{at}"), "x": text("y" * 300_000)})
    threads = [Teller(url, f"t{at}") for at in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: all(len(thread.acknowledged) >= 5 for thread in threads))
        yield threads
    finally:
        for thread in threads:
            thread.is_stopped = True
        for thread in threads:
            thread.join()


def check(url: str, threads: list[Teller], moment: float) -> int:
    """Check a restored database. Returns the number of entries acknowledged before the moment."""
    with RawClient(url) as client:
        ledger = {item["p"]["S"] for item in client.scan("ledger")}
        accounts = client.scan("accounts")
        assert len(client.scan("ballast")) == 60
        assert sum(int(item["balance"]["N"]) for item in accounts) == 0
        # Two moves for each entry: no transaction is there by half.
        assert sum(int(item["moves"]["N"]) for item in accounts) == 2 * len(ledger)
        expected = {entry for thread in threads for at, entry in thread.acknowledged if at < moment}
        assert expected <= ledger
        # The restored database accepts writes.
        client.call("PutItem", TableName="ledger", Item={"p": text("after")})
    return len(expected)


def _slowly(done: int, total: int) -> None:
    time.sleep(0.02)


@pytest.mark.soak
def test_a_copy_of_sqlite_under_load_has_every_write_acknowledged_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In small pieces with rests between, so that checkpoints, and logs that begin anew, come in between.
    monkeypatch.setattr(files, "_PAGES_AT_ONCE", 16)
    source = tmp_path / "tablegate.sqlite"
    server = Process(tmp_path, "--dialects", "dynamodb")
    server.wait_until_ready()
    made: list[tuple[Path, float, float]] = []
    try:
        with tellers(server.url) as threads:
            until = time.monotonic() + SECONDS
            while len(made) < 2 or time.monotonic() < until:
                target = tmp_path / f"copy{len(made)}.sqlite"
                began = time.time()
                made.append((target, began, files.back_up(source, target, _slowly)))
    finally:
        server.kill()
    for target, began, moment in made[-8:]:
        restored = Process(tmp_path, "--database", str(target), "--dialects", "dynamodb")
        try:
            restored.wait_until_ready()
            assert check(restored.url, threads, moment)
        finally:
            restored.kill()
        assert any(began < at < moment for thread in threads for at, _ in thread.acknowledged)
    assert not list(tmp_path.glob("*.part*"))


def test_the_backup_command_runs_beside_a_server(tmp_path: Path) -> None:
    server = Process(tmp_path, "--dialects", "dynamodb")
    server.wait_until_ready()
    try:
        with tellers(server.url) as threads:
            done = subprocess.run(
                [sys.executable, "-m", "tablegate", "backup", "copy.sqlite"],
                cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            ended = time.time()
    finally:
        server.kill()
    assert done.stdout.startswith("copy.sqlite\t")
    assert done.stderr == ""
    assert (tmp_path / "copy.sqlite").stat().st_mode & 0o777 == 0o600
    moment = (
        time.mktime(time.strptime(done.stdout.split("as of ")[1][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    )
    assert ended - 30 < moment <= ended
    restored = Process(tmp_path, "--database", "copy.sqlite", "--dialects", "dynamodb")
    restored.wait_until_ready()
    try:
        check(restored.url, threads, moment)
    finally:
        restored.kill()


@pytest.fixture
def filled(sqlite_template: Path, tmp_path: Path) -> Path:
    """Return a database that no process has open."""
    path = tmp_path / "source.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    return path


def test_an_existing_file_is_not_overwritten(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    target.write_text("precious")
    database = open_database(f"sqlite:///{filled}")
    with pytest.raises(DatabaseUnusable, match="not overwritten"):
        database.back_up(target, lambda done, total: None)
    database.close()
    assert target.read_text() == "precious"


def test_a_file_that_appears_meanwhile_is_not_overwritten(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.sqlite"
    with pytest.raises(DatabaseUnusable, match="not overwritten"):
        files.back_up(filled, target, lambda done, total: target.write_text("precious") and None)
    assert target.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"source.sqlite", "copy.sqlite"}


def test_a_copy_that_fails_leaves_nothing(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.back_up(filled, tmp_path / "copy.sqlite", lambda done, total: None)
    assert [path.name for path in tmp_path.iterdir()] == ["source.sqlite"]


def test_frames_that_are_only_in_the_log_are_copied(filled: Path, tmp_path: Path) -> None:
    """No checkpoint has run, and another writes while pages are copied: the copy has that too."""
    with contextlib.closing(sqlite3.connect(filled, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO counters VALUES ('before', 0, 1)")

        def write(done: int, total: int) -> None:
            writer.execute("INSERT OR IGNORE INTO counters VALUES ('meanwhile', 0, 1)")
            writer.execute("PRAGMA wal_checkpoint(PASSIVE)")

        files.back_up(filled, tmp_path / "copy.sqlite", write)
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        names = {name for (name,) in copy.execute("SELECT name FROM counters")}
    assert {"before", "meanwhile"} <= names


def test_a_log_that_begins_anew_while_pages_are_copied(filled: Path, tmp_path: Path) -> None:
    """All of the log was in the database file when the snapshot was taken, so that the next writer begins it anew."""
    with contextlib.closing(sqlite3.connect(filled, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.executemany("INSERT INTO counters VALUES (?, 0, 1)", [(f"before {at}",) for at in range(2000)])
        assert writer.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
        wal = Path(f"{filled}-wal")
        header = wal.read_bytes()[:32]
        written = iter(range(1_000_000))

        def write(done: int, total: int) -> None:
            writer.execute("INSERT INTO counters VALUES (?, 0, 1)", (f"meanwhile {next(written)}",))
            assert wal.read_bytes()[:32] != header

        files.back_up(filled, tmp_path / "copy.sqlite", write)
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        names = {name for (name,) in copy.execute("SELECT name FROM counters")}
    assert sum(name.startswith("before") for name in names) == 2000
    assert sum(name.startswith("meanwhile") for name in names) == next(written) > 0


def test_writes_just_before_writers_are_locked_out_are_copied(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_what_is_new = files._copy_new_frames
    with contextlib.closing(sqlite3.connect(filled, isolation_level=None, timeout=0)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        refused = []

        def copy_and_write(*given: Any, **named: Any) -> int:
            copied = copy_what_is_new(*given, **named)
            try:
                writer.execute("INSERT INTO counters VALUES (?, 0, 1)", (f"late {len(refused)}",))
            except sqlite3.OperationalError as error:
                refused.append(error)
            return copied

        monkeypatch.setattr(files, "_copy_new_frames", copy_and_write)
        files.back_up(filled, tmp_path / "copy.sqlite", lambda done, total: None)
    assert len(refused) == 1
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        assert copy.execute("SELECT 1 FROM counters WHERE name = 'late 0'").fetchall() == [(1,)]


def test_a_log_followed_by_frames_of_an_older_log_is_copied_to_its_end(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that begins anew is not cut: new frames come in place of old ones, and the file does not grow."""
    copy_what_is_new = files._copy_new_frames
    with contextlib.closing(sqlite3.connect(filled, isolation_level=None, timeout=0)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        for at in range(50):
            writer.execute("INSERT INTO counters VALUES (?, 0, 1)", (f"long ago {at}",))
        assert writer.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0] == 0
        writer.execute("INSERT INTO counters VALUES ('before', 0, 1)")
        size = Path(f"{filled}-wal").stat().st_size
        late: list[str] = []

        def copy_and_write(*given: Any, **named: Any) -> int:
            copied = copy_what_is_new(*given, **named)
            with contextlib.suppress(sqlite3.OperationalError):  # held up, at last
                writer.execute("INSERT INTO counters VALUES (?, 0, 1)", (f"late {len(late)}",))
                late.append(f"late {len(late)}")
            return copied

        monkeypatch.setattr(files, "_FINAL_COPY_BYTES", -1)
        monkeypatch.setattr(files, "_MAX_PASSES", 5)
        monkeypatch.setattr(files, "_copy_new_frames", copy_and_write)
        files.back_up(filled, tmp_path / "copy.sqlite", lambda done, total: None)
        assert Path(f"{filled}-wal").stat().st_size == size
    assert len(late) >= 5
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.sqlite")) as copy:
        names = {name for (name,) in copy.execute("SELECT name FROM counters")}
    assert {"before", *late} <= names
    assert sum(name.startswith("long ago") for name in names) == 50


@pytest.mark.parametrize(
    ("frames", "of_a_busy_log", "of_a_quiet_one"),
    [
        ("", 0, 0),
        ("C", 0, 1),  # its writer may still be at it
        ("fC", 0, 2),
        ("fCf", 2, 3),  # it has gone on, to frames that it may write over
        ("fCfCC", 4, 5),
        ("fff", 0, 3),
        ("CfCff" + "o", 3, 5),  # the rest is of an older log
        ("Co" + "CCC", 0, 1),
        ("C" * 300, 299, 300),
        ("f" * 100 + "C" + "f" * 100, 101, 201),
    ],
)
def test_only_complete_committed_frames_are_copied(
    tmp_path: Path, frames: str, of_a_busy_log: int, of_a_quiet_one: int
) -> None:
    """Frames: f is a plain frame, C a commit, o a frame of an older log.

    During writes, only complete committed frames are copied. The result does not depend on the number of steps.
    """
    header = b"\x37\x7f\x06\x82" + bytes(4) + (512).to_bytes(4, "big") + bytes(4) + b"saltsalt" + bytes(8)
    made = [
        bytes(4) + (b"\0\0\0\7" if kind == "C" else bytes(4)) + (b"old salt" if kind == "o" else b"saltsalt")
        + bytes(8) + at.to_bytes(4, "big") * 128
        for at, kind in enumerate(frames)
    ]  # fmt: skip
    log = tmp_path / "log"
    with (tmp_path / "copied").open("w+b") as copied:
        for length in (0, len(made) // 2, len(made)):
            log.write_bytes(header + b"".join(made[:length]))
            files._copy_new_frames(log, copied, is_quiet=False)
            copied.seek(0)
            assert copied.read()[32:] in b"".join(made[:length])
        copied.seek(0)
        assert copied.read() == header + b"".join(made[:of_a_busy_log])
        files._copy_new_frames(log, copied, is_quiet=True)
        copied.seek(0)
        assert copied.read() == header + b"".join(made[:of_a_quiet_one])


@pytest.mark.soak
def test_a_base_backup_of_postgresql_under_load_has_every_acknowledged_write(tmp_path: Path) -> None:
    """PostgreSQL's own means: pg_basebackup with the log that was written meanwhile (docs/operate/backup.md)."""
    with start_cluster() as cluster:
        server = Process(tmp_path, "--database", cluster.primary.url, "--dialects", "dynamodb")
        server.wait_until_ready()
        with tellers(server.url) as threads, _positions(cluster.primary) as positions:
            began = time.time()
            copy = cluster.base_backup()
        server.kill()
        cluster.primary.kill()
        # The backup has the log up to this moment.
        [log_range] = json.loads((copy.folder / "backup_manifest").read_text())["WAL-Ranges"]
        moment = max(at for at, position in positions if position <= _position(log_range["End-LSN"]))
        assert any(began < at < moment for thread in threads for at, _ in thread.acknowledged)
        copy.start()
        restored = Process(tmp_path, "--database", copy.url, "--dialects", "dynamodb")
        restored.wait_until_ready()
        assert check(restored.url, threads, moment)
        restored.kill()


@contextlib.contextmanager
def _positions(node: Node) -> Iterator[list[tuple[float, int]]]:
    """(moment, how far the log was then), several times a second."""
    found: list[tuple[float, int]] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            at = time.time()
            found.append((at, _position(node.ask("SELECT pg_current_wal_lsn()::text"))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _position(text_form: str) -> int:
    high, low = text_form.split("/")
    return (int(high, 16) << 32) + int(low, 16)

"""Backups with rows in files: rows move to files and are restored exactly. A broken file changes nothing."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablegate.gateway.engine.background import job_runner
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.model.commands.backup_commands import (
    CreateBackup,
    DeleteBackup,
    ListBackups,
    RestoreTable,
)
from tablegate.gateway.model.commands.job_commands import CancelJob, ListUnfinishedJobs
from tablegate.gateway.model.commands.snapshot_commands import ImportRows, ResetTables
from tablegate.gateway.model.commands.table_commands import DropTable
from tablegate.gateway.model.errors import BackupBusy, BackupUnreadable, TableMissing
from tablegate.gateway.model.tables.backups import Backup, BackupFile, BackupKind
from tablegate.gateway.model.tables.restored_tables import copied_definition
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, State
from tablegate.gateway.model.values import row_lines
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.row_lines import read_row
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.tables import backup_files, namespace_documents
from tablegate.gateway.store.tables.backup_files import BackupDirectory, WriteAttempt
from tests.gateway.engine.backups.test_restoring import found, keeping, recorded, run
from tests.gateway.engine.conftest import Client, by_color, do_background_work, make_table
from tests.support.clock import Clock
from tests.support.stored_tables import StoredRows, stored_entries, stored_rows


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "backups"
    path.mkdir()
    return path


def server(database: Database, clock: Clock, directory: Path | None) -> Engine:
    store = Store(database)
    if directory is not None:
        store.backup_files = BackupDirectory(directory)
    made = Engine(store, EngineOptions(sweep_period_s=0), clock)
    made.register_view("test", lambda value, is_partition: value)
    return made


@pytest.fixture
def engine(database: Database, clock: Clock, directory: Path) -> Iterator[Engine]:
    made = server(database, clock, directory)
    yield made
    made.close()


def do_all_work(engine: Engine) -> None:
    while engine.background_batch() or engine.job_batch():
        pass


def backed_up(engine: Engine, client: Client) -> Backup:
    backup = run(engine, CreateBackup(found(engine, client.table.name), "first"))
    assert isinstance(backup, Backup)
    do_all_work(engine)
    return the_backup(engine)


def the_backup(engine: Engine) -> Backup:
    [backup] = run(engine, ListBackups(""))  # type: ignore[misc]
    assert isinstance(backup, Backup)
    return backup


def filled(engine: Engine, rows: int = 300, noise: int = 0) -> Client:
    rules = Rules(expiry=ExpiryRule(attribute="at"))
    client = Client(engine, make_table(engine, indexes=(by_color(),), rules=rules))
    dice = random.Random(1)
    more = {"color": text("red"), "at": decimal(2_000_000_000)}
    client.write(
        *[client.put("a", number, **more, x=text(dice.randbytes(noise).hex())) for number in range(rows)]
    )
    return client


def restore(engine: Engine, backup: Backup, name: str = "again") -> StoredRows:
    run(engine, RestoreTable(copied_definition(backup.source, "", name), backup))
    do_all_work(engine)
    made = found(engine, name)
    assert made.state_at(0) is State.ACTIVE
    return stored_rows(engine, made.id)


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def unfinished_jobs(engine: Engine) -> int:
    with engine._store.read() as session:
        return int(session.query("SELECT count(*) FROM jobs")[0][0])


def test_rows_leave_the_database_and_come_back(engine: Engine, directory: Path) -> None:
    client = filled(engine)
    state = stored_rows(engine, client.table.id)
    backup = backed_up(engine, client)
    assert (backup.ready, backup.rows) == (True, 300)
    [file] = files(directory)
    assert file.name.startswith(f"{backup.file_stem}.")
    assert file.name.endswith(".things.jsonl.zst")
    assert file.stat().st_mode & 0o777 == 0o600
    assert stored_rows(engine, backup.copy_id) == {}
    assert unfinished_jobs(engine) == 0
    client = Client(engine, found(engine, "things"))
    client.write(*[client.remove("a", number) for number in range(300)])
    assert restore(engine, backup) == state
    again = found(engine, "again")
    assert len(stored_entries(engine, again)[0]) == 300
    with engine._store.read() as session:
        assert session.query("SELECT DISTINCT expires_at_ms FROM rows WHERE table_id = ?", (again.id,)) == [
            (2_000_000_000_000,)
        ]
    assert unfinished_jobs(engine) == 0
    assert files(directory) == [file]
    run(engine, DeleteBackup(backup))
    assert run(engine, ListBackups("")) == []
    do_all_work(engine)
    assert files(directory) == []
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM namespace_properties") == [(0,)]


def test_rows_of_every_form_come_back_as_they_were(engine: Engine) -> None:
    """Kinds of other dialects, stamps of cells and their older versions, times of modification."""
    table = make_table(engine, rules=Rules(max_versions=3, stamped=True))
    lines = [
        b'{"row":{"p":{"S":"a"},"s":{"N":"1"},"g":{"G":"00000000-0000-0000-0000-000000000001"}},"kinds":{},"modified_at":17}',
        b'{"row":{"p":{"S":"a"},"s":{"N":"2"},"c":{"I64":"5"}},"kinds":{"cells":{"c":[7,[6,{"S":"\\u00e9"}]]}},"modified_at":18}',
        b'{"row":{"p":{"S":"a"},"s":{"N":"3"},"m":{"M":{"x":{"BS":["AA=="]},"y":{"NULL":true}}}},"modified_at":19}',
    ]
    run(engine, ImportRows(table, [read_row(line, table.key_schema) for line in lines]))
    state = stored_rows(engine, table.id)
    assert len(state) == 3
    backup = backed_up(engine, Client(engine, table))
    assert restore(engine, backup) == state


def test_an_empty_table(engine: Engine, things: Client, directory: Path) -> None:
    backup = backed_up(engine, things)
    assert len(files(directory)) == 1
    assert restore(engine, backup) == {}


def test_a_dropped_table_goes_into_a_file_too(engine: Engine, directory: Path, clock: Clock) -> None:
    client = filled(engine)
    client = keeping(engine, client.table)
    state = stored_rows(engine, client.table.id)
    run(engine, DropTable(client.table))
    do_all_work(engine)
    backup = the_backup(engine)
    assert backup.kind is BackupKind.SYSTEM
    assert stored_rows(engine, backup.copy_id) == {}
    assert recorded(engine) == 0
    assert restore(engine, backup) == state
    clock.advance(35 * 86_400 + 1)
    engine.background.catch_up()
    do_all_work(engine)
    assert run(engine, ListBackups("")) == []
    assert files(directory) == []


def test_backups_that_were_there_before_go_into_files(
    database: Database, clock: Clock, engine: Engine, directory: Path
) -> None:
    before = server(database, clock, None)
    client = filled(before)
    backed_up(before, client)
    assert files(directory) == []
    do_all_work(engine)
    assert len(files(directory)) == 1


def test_a_server_without_the_directory_reports_it(database: Database, clock: Clock, engine: Engine) -> None:
    backup = backed_up(engine, filled(engine))
    other = server(database, clock, None)
    with pytest.raises(BackupUnreadable) as error:
        run(other, RestoreTable(copied_definition(backup.source, "", "again"), backup))
    assert "no backup directory" in error.value.reason


def test_a_restore_of_rows_that_are_about_to_leave_is_waited_for(engine: Engine, directory: Path) -> None:
    client = filled(engine)
    run(engine, CreateBackup(client.table, "first"))
    do_background_work(engine)  # it is ready, and its rows are in the database
    backup = the_backup(engine)
    state = stored_rows(engine, client.table.id)
    run(engine, RestoreTable(copied_definition(client.table, "", "again"), backup))
    while engine.job_batch():
        pass
    assert stored_rows(engine, backup.copy_id) != {}
    do_all_work(engine)
    assert stored_rows(engine, found(engine, "again").id) == state
    assert stored_rows(engine, backup.copy_id) == {}
    assert len(files(directory)) == 1


def test_a_backup_is_not_deleted_while_it_is_restored(engine: Engine) -> None:
    backup = backed_up(engine, filled(engine))
    run(engine, RestoreTable(copied_definition(backup.source, "", "again"), backup))
    for command in (
        DeleteBackup(backup),
        RestoreTable(copied_definition(backup.source, "", "twice"), backup),
    ):
        with pytest.raises(BackupBusy):
            run(engine, command)
    do_all_work(engine)
    assert restore(engine, backup, "twice")


def test_a_restore_that_is_cancelled_leaves_nothing(engine: Engine) -> None:
    backup = backed_up(engine, filled(engine, 1_000))
    run(engine, RestoreTable(copied_definition(backup.source, "", "again"), backup))
    assert engine.job_batch() is not None
    [job] = run(engine, ListUnfinishedJobs())  # type: ignore[misc]
    run(engine, CancelJob(job))
    assert engine.job_batch() is not None
    assert run(engine, ListUnfinishedJobs()) == []
    with pytest.raises(TableMissing):
        found(engine, "again")
    assert restore(engine, backup, "again")


# Kills, and several servers


def test_the_next_server_goes_on_with_a_restore(
    database: Database, clock: Clock, engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled(engine, 1_000)
    state = stored_rows(engine, client.table.id)
    backup = backed_up(engine, client)
    run(engine, RestoreTable(copied_definition(client.table, "", "again"), backup))
    assert engine.job_batch() is not None
    half = stored_rows(engine, found(engine, "again").id)
    assert 0 < len(half) < len(state)
    [[job]] = engine.run([ListUnfinishedJobs()])
    assert job.done_of_total == (len(half), 1_000)
    assert found(engine, "again").state_at(0) is State.CREATING
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", -1)
    engine.renew_claims()  # it has not renewed them in time
    other = server(database, clock, directory)
    do_all_work(other)
    assert stored_rows(other, found(other, "again").id) == state
    while engine.job_batch():  # what the first one still does is for nothing
        pass
    assert stored_rows(engine, found(engine, "again").id) == state


def test_the_next_server_writes_the_file_anew(
    database: Database, clock: Clock, engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = filled(engine, 1_000)
    state = stored_rows(engine, client.table.id)
    run(engine, CreateBackup(client.table, "first"))
    do_background_work(engine)
    assert engine.job_batch() is not None
    [begun] = files(directory)
    assert begun.name.endswith(".unfinished")
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", -1)
    engine.renew_claims()
    other = server(database, clock, directory)
    do_all_work(other)
    [file] = files(directory)
    assert file.name.endswith(".zst")
    for _ in range(20):  # the first one, which knows of nothing, goes on
        engine.job_batch()
    assert files(directory) == [file]
    assert restore(other, the_backup(other)) == state


def test_an_earlier_attempt_takes_nothing_of_a_later_one_away(directory: Path, engine: Engine) -> None:
    """A server that stood still between its claim and its file may wake up after another one has written it."""
    backup = backed_up(engine, filled(engine))
    kept = files(directory)
    place = BackupDirectory(directory)
    place.begin(backup, WriteAttempt(0, 9), {}).close()
    assert files(directory) == kept
    later = place.begin(backup, WriteAttempt(1 << 40, 1), {})
    assert [path.name.endswith(".unfinished") for path in files(directory)] == [True]
    later.close()
    assert files(directory) == []


def test_a_file_that_was_written_for_a_deleted_backup_goes(
    database: Database, clock: Clock, engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server was killed after the file had its final name and before the transaction that records it.

    The soak test (tests/durability/test_backup_crashes.py) found this case.
    """
    client = filled(engine, 100)
    run(engine, CreateBackup(client.table, "first"))
    do_background_work(engine)
    assert engine._file_worker is not None
    monkeypatch.setattr(engine._file_worker, "_leave_database", lambda job, writing: None)
    assert engine.job_batch() is not None
    [file] = files(directory)
    assert file.name.endswith(".zst")
    run(engine, DeleteBackup(the_backup(engine)))
    monkeypatch.setattr(job_runner, "_CLAIM_LIFETIME_MS", -1)
    engine.renew_claims()
    do_all_work(server(database, clock, directory))
    assert files(directory) == []


# Broken files


def broken_copies(data: bytes, other: bytes) -> dict[str, bytes | None]:
    flipped = bytearray(data)
    flipped[len(data) // 2] ^= 1
    return {
        "missing": None,
        "empty": b"",
        "cut off": data[:-1],
        "longer": data + b"\0",
        "flipped": bytes(flipped),
        "another's": other,
        "no such format": b"x" * len(data),
    }


@pytest.mark.parametrize("is_large", [False, True])
def test_a_broken_file_changes_nothing(
    engine: Engine, directory: Path, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file cannot be checked completely in bounded time. Errors found during the read leave no table."""
    if is_large:
        monkeypatch.setattr(backup_files, "_CHECKED_BYTES", 0)
    client = filled(engine, noise=2_000)
    state = stored_rows(engine, client.table.id)
    backup = backed_up(engine, client)
    [file] = files(directory)
    whole = file.read_bytes()
    run(engine, CreateBackup(make_table(engine, "other"), "second"))
    do_all_work(engine)
    [other] = [path for path in files(directory) if path != file]
    for how, data in broken_copies(whole, other.read_bytes()).items():
        file.unlink(missing_ok=True)
        if data is not None:
            file.write_bytes(data)
        refusal = ""
        try:
            run(engine, RestoreTable(copied_definition(client.table, "", "again"), backup))
        except BackupUnreadable as error:
            refusal = error.reason
        do_all_work(engine)
        assert bool(refusal) is not (is_large and how == "flipped"), how
        assert str(directory) not in refusal
        with pytest.raises(TableMissing):
            found(engine, "again")
        assert unfinished_jobs(engine) == 0
    file.write_bytes(whole)
    assert restore(engine, backup) == state


def test_a_file_that_loses_its_end_while_it_is_read(
    engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a header or a row is wrong then: the end's line is not there."""
    backup = backed_up(engine, filled(engine, 1_000))
    [file] = files(directory)
    with engine._store.write() as session:
        writer = BackupDirectory(directory).begin(backup, WriteAttempt(1 << 40, 1), {})
        monkeypatch.setattr(row_lines, "end_line", lambda rows, crc64: b"")
        known = writer.finish()
        namespace_documents.keep(session, "retained/file", str(backup.id), known._asdict())
    with pytest.raises(TableMissing):
        restore(engine, backup)
    assert not file.exists()


@pytest.mark.parametrize(
    "end", [b'{"end":{"rows":1,"crc64":"%x"}}\n', b'{"end":{"rows":0,"crc64":"12"}}\n', b'{"end":3}\n']
)
def test_a_footer_that_differs(
    directory: Path, engine: Engine, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backed_up(engine, filled(engine, 1))
    monkeypatch.setattr(row_lines, "end_line", lambda rows, crc64: end.replace(b"%x", b"%016x" % crc64))
    place = BackupDirectory(directory)
    file = place.begin(backup, WriteAttempt(1 << 40, 1), {}).finish()
    reader = place.open(file, backup.file_stem)
    with pytest.raises(BackupUnreadable):
        reader.take(10, 1_000)
    reader.close()


def test_a_disk_that_takes_nothing_leaves_the_rows_in_the_database(
    engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runner, "_RETRY_LIMIT_S", 0.0)
    monkeypatch.setattr(job_runner, "_PAUSE_S", 0.0)
    client = filled(engine)
    state = stored_rows(engine, client.table.id)
    directory.rmdir()
    run(engine, CreateBackup(client.table, "first"))
    for _ in range(20):
        engine.background_batch()
        engine.job_batch()
    backup = the_backup(engine)
    assert backup.ready
    assert unfinished_jobs(engine) == 0  # it is tried again after a time
    assert restore(engine, backup) == state
    directory.mkdir()
    assert engine._file_worker is not None
    engine._file_worker._not_before.clear()
    do_all_work(engine)
    assert len(files(directory)) == 1
    assert restore(engine, backup, "twice") == state


def test_a_directory_that_is_away_during_a_restore(
    engine: Engine, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_runner, "_PAUSE_S", 0.0)
    client = filled(engine)
    state = stored_rows(engine, client.table.id)
    backup = backed_up(engine, client)
    away = directory.with_name("away")
    for name, patience_s in (("again", 300.0), ("never", 0.0)):
        monkeypatch.setattr(job_runner, "_RETRY_LIMIT_S", patience_s)
        run(engine, RestoreTable(copied_definition(client.table, "", name), backup))
        directory.rename(away)
        for _ in range(5):
            engine.job_batch()
        away.rename(directory)
        do_all_work(engine)
    assert stored_rows(engine, found(engine, "again").id) == state
    with pytest.raises(TableMissing):
        found(engine, "never")


# Resets


def test_a_reset_removes_the_files(engine: Engine, directory: Path) -> None:
    client = filled(engine)
    backup = backed_up(engine, client)
    run(engine, CreateBackup(client.table, "second"))
    do_background_work(engine)
    assert engine.job_batch() is not None  # its file is begun
    run(engine, RestoreTable(copied_definition(client.table, "", "again"), backup))
    run(engine, ResetTables("elsewhere"))
    assert len(files(directory)) == 2
    run(engine, ResetTables())
    assert run(engine, ListBackups("")) == []
    do_all_work(engine)
    assert files(directory) == []
    assert unfinished_jobs(engine) == 0
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM tables") == [(0,)]


# Memory


def test_memory_is_bounded_both_ways(directory: Path, engine: Engine, things: Client) -> None:
    backup = backed_up(engine, things)
    place = BackupDirectory(directory)
    noise = random.Random(1).randbytes(500_000).hex()

    def row(number: int) -> Row:
        body = b'{"p":{"S":"%08d"},"s":{"N":"1"},"x":{"S":"%b"}}' % (number, noise.encode())
        return Row(Position(b"", b""), Contents(body, None, 1_000_000), 1)

    tracemalloc.start()
    try:
        writer = place.begin(backup, WriteAttempt(1 << 40, 1), {})
        for number in range(60):
            writer.add([row(number)])
        file = writer.finish()
        reader = place.open(file, backup.file_stem)
        sizes = []
        while not reader.is_over:
            sizes.append(len(reader.take(1_000, 4_000_000)))
        reader.close()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 60
    assert max(sizes) == 4
    assert most < 20_000_000
    assert isinstance(file, BackupFile)

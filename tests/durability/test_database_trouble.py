"""Unusable, lost and full databases as an operator sees them: one clear line, and the state in /readyz."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from click.testing import CliRunner
from sqlalchemy import make_url

from tablegate.gateway.__main__ import main
from tablegate.gateway.app import application_of
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.model.errors import Busy, OutOfSpace
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.server import background
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.postgresql.pipeline import translate_error
from tablegate.gateway.store.sqlite.database import SQLite
from tablegate.gateway.wiring import connect, open_store
from tests.support.databases import PostgresServer
from tests.support.raw_client import RawClient, Refused
from tests.support.running import Process, processes, start
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended


def administer(url: str, *statements: str) -> None:
    """As superuser, from the database that is always there."""
    plain = make_url(url).set(drivername="postgresql", database="postgres")
    with psycopg.connect(plain.render_as_string(hide_password=False), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[arg-type]


def complaint(*arguments: str) -> str:
    """The one line with which a command ends."""
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    return done.output


# Encodings


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_other_than_utf8_is_reported_at_the_start(
    postgres: PostgresServer, tmp_path: Path, encoding: str
) -> None:
    url = make_url(postgres.empty_database())
    name = f"{url.database}_{encoding.lower()}"
    administer(
        url.render_as_string(hide_password=False),
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0",
    )
    other = url.set(database=name).render_as_string(hide_password=False)
    try:
        for said in (complaint("migrate", "--database", other), complaint("tables", "--database", other)):
            assert encoding in said
            assert "ENCODING 'UTF8'" in said
        code, errors = Process(
            tmp_path, "--database", other, environment={"TABLEGATE_SECRET_KEY": "k" * 16}
        ).end()
        assert (code, errors.count("\n"), encoding in errors) == (1, 1, True)
    finally:
        administer(other, f"DROP DATABASE {name} WITH (FORCE)")


# Folders


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that every user can access."""
    made = Path(tempfile.mkdtemp(prefix="tablegate-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@contextlib.contextmanager
def as_somebody() -> Iterator[None]:
    """Run without root rights, because root can write anywhere."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def test_a_read_only_folder_is_reported(folder: Path) -> None:
    url = f"sqlite:///{folder / 'a.sqlite'}"
    assert CliRunner().invoke(main, ["migrate", "--database", url]).exit_code == 0
    (folder / "a.sqlite").chmod(0o666)
    folder.chmod(0o555)
    with as_somebody():
        for name in ("a.sqlite", "new.sqlite"):
            said = complaint("migrate", "--database", f"sqlite:///{folder / name}")
            assert f"{folder}, cannot be written" in said


def test_a_read_only_database_is_reported(folder: Path) -> None:
    url = f"sqlite:///{folder / 'a.sqlite'}"
    assert CliRunner().invoke(main, ["migrate", "--database", url]).exit_code == 0
    (folder / "a.sqlite").chmod(0o444)
    folder.chmod(0o777)
    with as_somebody():
        assert "a.sqlite cannot be written" in complaint("migrate", "--database", url)


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    assert "does not exist" in complaint(
        "migrate", "--database", f"sqlite:///{tmp_path / 'none' / 'a.sqlite'}"
    )


# A connection that is lost


def test_a_lost_database_is_one_line_of_background_work(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_AFTER_FAILURE_S", 0.01)
    url = postgres.empty_database()
    settings = load({"database": url}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    rounds: list[bool] = []
    work = opened.engine.background.next_batch

    def counted(beside_clients: bool) -> Any:
        rounds.append(False)
        done = work(beside_clients)
        rounds[-1] = True
        return done

    monkeypatch.setattr(opened.engine.background, "next_batch", counted)
    thread = background.BackgroundWork(opened.engine, opened.credential_store, Credentials(settings), 0.25)
    name = make_url(url).database
    with caplog.at_level(logging.INFO):
        thread.start()
        wait_until(lambda: True in rounds)
        administer(
            url,
            f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )
        wait_until(lambda: rounds[-5:] == [False] * 5)
        administer(url, f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")
        wait_until(lambda: rounds[-1])
        thread.stop()
    opened.close()
    told = [record for record in caplog.records if "background work" in record.getMessage()]
    assert [record.getMessage() for record in told] == ["background work waits for the database"]
    assert "\n" not in told[0].facts["reason"]  # type: ignore[attr-defined]
    assert not any(record.exc_info for record in caplog.records)


# A disk that is full


def test_a_gateway_without_disk_space_is_not_ready(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    database = connect(load({"database": url}, {}))
    migrate(database)
    database.close()
    server = start(url)
    try:
        used = application_of(server.app).gateway.engine._store.database
        assert isinstance(used, SQLite)

        def limit(pages: int) -> None:
            with used.write() as session:
                session.query(f"PRAGMA max_page_count = {pages}")

        def readiness() -> tuple[int, str]:
            reply = requests.get(f"{server.url}/readyz")
            return reply.status_code, reply.text

        with RawClient(server.url) as client:
            client.create_table("things")
            limit(1)  # as many as there are
            item = {"p": {"S": "a"}, "x": {"S": "x" * 300_000}}
            with pytest.raises(Refused) as refused:
                client.call("PutItem", TableName="things", Item=item)
            assert refused.value.status in (500, 503)
            assert readiness() == (503, "writes are refused: database or disk is full\n")
            # Reads continue. The check for free space alone does not end the read-only state.
            assert client.call("GetItem", TableName="things", Key={"p": {"S": "a"}}) == {}
            for _ in range(5):
                with pytest.raises(OutOfSpace):
                    application_of(server.app).gateway.engine.retry_writes()
            assert readiness()[0] == 503
            limit(1 << 30)
            wait_until(lambda: readiness() == (200, "ready\n"))
            assert client.call("PutItem", TableName="things", Item=item) == {}
            assert client.call("ListTables") == {"TableNames": ["things"]}
    finally:
        server.stop()


def test_postgresql_says_it_in_an_error_of_its_own() -> None:
    error = translate_error(psycopg.errors.DiskFull("could not extend file"))
    assert isinstance(error, OutOfSpace)
    assert isinstance(error, Busy)
    assert not isinstance(translate_error(psycopg.errors.OutOfMemory("")), OutOfSpace)


# Files that are removed under a running server


@pytest.mark.parametrize("way", ["removed", "renamed", "replaced"])
def test_a_log_that_is_removed_loses_nothing(way: str, tmp_path: Path) -> None:
    """A kill loses no acknowledged write, and no further write is acknowledged."""
    with processes(tmp_path) as begin:
        path, url = tmp_path / "a.sqlite", f"sqlite:///{tmp_path / 'a.sqlite'}"
        process = begin(url)
        with RawClient(process.url) as client:
            client.create_table("things")
            client.call("PutItem", TableName="things", Item={"p": {"S": "before"}})
            log = Path(f"{path}-wal")
            log.rename(tmp_path / "elsewhere") if way == "renamed" else log.unlink()
            if way == "replaced":
                log.touch()
            acknowledged = ["before"]
            for name in ("after", "later"):
                with contextlib.suppress(Refused):
                    client.call("PutItem", TableName="things", Item={"p": {"S": name}})
                    acknowledged.append(name)
            process.wait_for_error("all acknowledged writes are in the database")
            with pytest.raises(Refused) as refused:
                client.call("PutItem", TableName="things", Item={"p": {"S": "never"}})
            assert refused.value.status == 503
            assert client.call("GetItem", TableName="things", Key={"p": {"S": "before"}})["Item"]
            reply = requests.get(f"{process.url}/readyz")
            told = f"writes are refused: {log} was removed or replaced: restart the server\n"
            assert (reply.status_code, reply.text) == (503, told)
        process.kill()
        if way == "renamed":
            (tmp_path / "elsewhere").unlink()
        again = begin(url)
        with RawClient(again.url) as client:
            found = {item["p"]["S"] for item in client.scan("things")}
            assert set(acknowledged) <= found
            assert "never" not in found
            client.call("PutItem", TableName="things", Item={"p": {"S": "again"}})


def test_a_database_that_is_removed_takes_no_writes(tmp_path: Path) -> None:
    with processes(tmp_path) as begin:
        process = begin(f"sqlite:///{tmp_path / 'a.sqlite'}")
        with RawClient(process.url) as client:
            client.create_table("things")
            (tmp_path / "a.sqlite").unlink()
            for _ in range(2):
                with pytest.raises(Refused) as refused:
                    client.call("PutItem", TableName="things", Item={"p": {"S": "a"}})
                assert refused.value.status in (500, 503)
            assert requests.get(f"{process.url}/readyz").status_code == 503
        process.kill()

"""The database of commands that manage one: it must exist, and it is named."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import make_url

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.database_urls import normalise, without_password
from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tests.conftest import KINDS
from tests.support.later_release import NEWEST, add_revisions, later_migrations, source_with_own_migrations
from tests.support.pgbouncer import PgBouncer, require_pgbouncer
from tests.support.running import Process

COMMANDS = [
    ["tables"],
    ["tables", "list-backups"],
    ["streams", "list"],
    ["jobs", "list"],
    ["credentials", "add", "KEY"],
    ["credentials", "list"],
    ["grants", "list"],
    ["quotas", "list"],
    ["sweep"],
]


def run(folder: Path, *words: str) -> Result:
    with contextlib.chdir(folder):
        return CliRunner().invoke(main, words)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_missing_database_is_named_and_not_created(words: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, *words)
    assert done.exit_code == 1
    assert f"There is no tablegate database in {tmp_path / 'tablegate.sqlite'}." in done.stderr
    assert "`tablegate migrate` or `tablegate serve`" in done.stderr
    assert ("--url" in done.stderr) is (words[0] not in ("streams", "jobs"))
    assert [*tmp_path.iterdir()] == []


def test_the_refusal_of_a_pooler_names_the_setting(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """PgBouncer accepts no settings of a session at its start, unless it is configured to ignore them."""
    require_pgbouncer()
    url = make_url(request.getfixturevalue("postgres").empty_database())
    host, port = url.host or str(url.query["host"]), url.port or int(str(url.query.get("port", 5432)))
    bouncer = PgBouncer(tmp_path, port, host, "extra_float_digits")
    database = f"postgresql://postgres@127.0.0.1:{bouncer.port}/{url.database}"
    advice = "Behind PgBouncer in transaction mode use --no-prepared-statements"
    try:
        for command in (["migrate"], ["tables"], ["doctor"]):
            done = run(tmp_path, *command, "--database", database)
            assert done.exit_code == 1
            assert advice in done.output
    finally:
        bouncer.kill()


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        (tmp_path / "other.sqlite").touch()
        return f"sqlite:///{tmp_path}/other.sqlite"
    return request.getfixturevalue("postgres").empty_database()


def test_a_database_without_our_tables_is_left_alone(empty_url: str, tmp_path: Path) -> None:
    flags = ("--database", empty_url, "--secret-key", "a key that is long enough")
    for words in COMMANDS:
        done = run(tmp_path, *words, *flags)
        assert done.exit_code == 1
        assert "There is no tablegate database in" in done.stderr
    assert run(tmp_path, "migrate", *flags).exit_code == 0
    for words in COMMANDS:
        done = run(tmp_path, *words, *flags)
        assert done.exit_code == 0, done.output
        # On standard error: standard output has the results only.
        assert f"Database: {without_password(normalise(empty_url))}" in done.stderr
        assert "Database:" not in done.stdout


@pytest.fixture
def old_url(tmp_path: Path) -> str:
    """The database that commands and servers in this folder use by default, of this release."""
    url = f"sqlite:///{tmp_path}/tablegate.sqlite"
    database = open_database(url)
    migrate(database)
    database.close()
    return url


def test_migrate_names_each_step_of_an_older_database(
    old_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "FOLDER", later_migrations(tmp_path))
    done = run(tmp_path, "migrate", "--database", old_url)
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines() == [
        f"migrating from schema {NEWEST} to 9002: 2 steps in one transaction",
        "step 1 of 2 is done: Doubled counters.",
        "step 2 of 2 is done: Places.",
    ]
    assert run(tmp_path, "migrate", "--database", old_url).stderr == ""


@pytest.mark.usefixtures("old_url")
def test_a_server_logs_the_migration_of_its_database(tmp_path: Path) -> None:
    source = source_with_own_migrations(tmp_path / "source")
    add_revisions(source / "tablegate" / "migrations")
    server = Process(tmp_path, environment={"PYTHONPATH": str(source)})
    server.wait_until_ready()
    _, errors = server.terminate()
    assert f"migrating from schema {NEWEST}" in errors

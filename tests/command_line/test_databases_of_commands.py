"""The database of commands that manage one: it must exist, and it is named."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.database_urls import normalise, without_password
from tablegate.gateway.store.opening.migrating import steps
from tablegate.gateway.store.opening.opening import open_database
from tests.conftest import KINDS
from tests.gateway.store.test_expanding_migrations import bring_to
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


def test_migrate_names_each_step_of_an_older_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/old.sqlite"
    database = open_database(url)
    bring_to(database, "0011")
    database.close()
    done = run(tmp_path, "migrate", "--database", url)
    assert done.exit_code == 0, done.output
    later = [step for step in steps() if step > "0011"]
    number = len(later)
    lines = done.stderr.splitlines()
    assert lines[0] == f"migrating from schema 0011 to {later[-1]}: {number} steps in one transaction"
    assert [line.partition(" is done: ")[0] for line in lines[1:]] == [
        f"step {place} of {number}" for place in range(1, number + 1)
    ]
    assert run(tmp_path, "migrate", "--database", url).stderr == ""


def test_a_server_logs_the_migration_of_its_database(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/tablegate.sqlite")
    bring_to(database, "0011")
    database.close()
    server = Process(tmp_path)
    server.wait_until_ready()
    _, errors = server.terminate()
    assert "migrating from schema 0011" in errors

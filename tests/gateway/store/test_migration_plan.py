"""The output of `tablegate migrate --check`, on a database of an earlier release."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic.script import ScriptDirectory
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import migrate, plan_migration, revision_of
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Database
from tests.support.later_release import LATER, NEWEST, later_migrations

WAITING = {
    "sqlite": "Writers wait meanwhile, readers do not.",
    "postgresql": "Readers and writers of the tables that a step alters wait meanwhile.",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def old(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Database]]:
    """The URL and the database of this release, opened by a later one."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    else:
        url = request.getfixturevalue("postgres").empty_database()
    database = open_database(url)
    migrate(database)
    with database.write() as session:
        counters.advance(session, "ids", 1)
    monkeypatch.setattr(migrating, "FOLDER", later_migrations(tmp_path))
    yield url, database
    database.close()


def check(url: str) -> list[str]:
    done = CliRunner().invoke(main, ["migrate", "--check", "--database", url])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_the_plan_lists_the_steps_and_their_rows_and_changes_nothing(old: tuple[str, Database]) -> None:
    url, database = old
    heading, *lines, last = check(url)
    assert f"schema {NEWEST}. These steps would run in one transaction:" in heading
    assert lines == ["9001\t1 rows\tDoubled counters.", "9002\t0 rows\tPlaces."]
    assert last == f"Expected duration: less than 1 s. {WAITING[database.name]}"
    assert revision_of(database) == NEWEST
    migrate(database)
    assert [line.rpartition(": ")[2] for line in check(url)] == ["up to date"]


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    assert [line.rpartition(": ")[2] for line in check(f"sqlite:///{path}")] == ["would be created"]
    assert not path.exists()


def test_the_duration_follows_the_rows(old: tuple[str, Database], monkeypatch: pytest.MonkeyPatch) -> None:
    url, database = old
    monkeypatch.setattr("tablegate.gateway.store.migrating._ROWS_PER_SECOND", 1)
    assert plan_migration(database).seconds == 1
    assert check(url)[-1].startswith("Expected duration: about 1 s. ")


def test_the_steps_name_all_tables_that_they_rewrite(old: tuple[str, Database]) -> None:
    _, database = old
    known = {*sqlalchemy.inspect(database.engine).get_table_names()} - {
        "alembic_version",
        "schema_compatibility",
    }
    written: set[str] = set()

    def executed(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        written.update(re.findall(r"^(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)", statement))

    sqlalchemy.event.listen(database.engine, "before_cursor_execute", executed)
    scripts = ScriptDirectory(str(migrating.FOLDER))
    declared = {name for step in LATER for name in getattr(scripts.get_revision(step).module, "REWRITES", ())}
    migrate(database)
    assert written & known == declared

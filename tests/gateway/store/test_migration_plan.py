"""What `tablegate migrate --check` says, on databases of earlier releases."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.store.opening.migrating import migrate, revision_of, steps
from tablegate.gateway.store.opening.migration_plan import plan
from tablegate.gateway.store.opening.opening import open_database
from tests.support import released_databases as released

WAITING = {
    "sqlite": "Writers wait meanwhile, readers do not.",
    "postgresql": "Readers and writers of the tables that a step alters wait meanwhile.",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The kind and URL of a database of release 0.1.0."""
    if request.param == "sqlite":
        place, url = str(tmp_path / "a.sqlite"), f"sqlite:///{tmp_path / 'a.sqlite'}"
    else:
        place = url = request.getfixturevalue("postgres").empty_database()
    released.restore("0.1.0", request.param, place)
    return request.param, url


def check(url: str) -> list[str]:
    done = CliRunner().invoke(main, ["migrate", "--check", "--database", url])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_it_lists_the_steps_and_their_rows_and_changes_nothing(old: tuple[str, str]) -> None:
    kind, url = old
    heading, *lines, last = check(url)
    assert "schema 0003. These steps would run in one transaction:" in heading
    found = [line.split("\t") for line in lines]
    assert [revision for revision, *_ in found] == [step for step in steps() if step > "0003"]
    rows = {revision: number for revision, number, _ in found}
    database = open_database(url)
    with database.read() as session:
        copied = sum(
            session.query(f"SELECT count(*) FROM {name}")[0][0] for name in ("changes", "counters", "tokens")
        )
    assert rows["0005"] == f"{copied} rows" != "0 rows"
    assert rows["0014"] == "0 rows"
    assert last == f"Expected duration: less than 1 s. {WAITING[kind]}"
    assert revision_of(database) == "0003"
    migrate(database)
    database.close()
    assert [line.rpartition(": ")[2] for line in check(url)] == ["up to date"]


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    assert [line.rpartition(": ")[2] for line in check(f"sqlite:///{path}")] == ["would be created"]
    assert not path.exists()


def test_the_duration_follows_the_rows(old: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablegate.gateway.store.opening.migration_plan._ROWS_PER_SECOND", 1)
    database = open_database(old[1])
    planned = plan(database)
    database.close()
    assert planned.seconds == sum(step.rows for step in planned.steps) > 0
    assert check(old[1])[-1].startswith(f"Expected duration: about {planned.seconds} s. ")


def test_the_steps_name_all_tables_that_they_rewrite(old: tuple[str, str]) -> None:
    database = open_database(old[1])
    known = {*sqlalchemy.inspect(database.engine).get_table_names()} - {"alembic_version"}
    written: set[str] = set()
    undeclared: dict[str, set[str]] = {}

    def executed(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        written.update(re.findall(r"^(?:UPDATE|DELETE FROM|INSERT INTO) (\w+)", statement))

    def step_done(line: str) -> None:
        if found := re.match(r"step (\d+) of", line):
            step = [each for each in steps() if each > "0003"][int(found[1]) - 1]
            [path] = released.ROOT.glob(f"tablegate/migrations/versions/{step}_*.py")
            module = importlib.import_module(f"tablegate.migrations.versions.{path.stem}")
            undeclared[step] = (written & known) - {*getattr(module, "REWRITES", ())}
        written.clear()

    sqlalchemy.event.listen(database.engine, "before_cursor_execute", executed)
    migrate(database, step_done)
    database.close()
    assert undeclared == {step: set() for step in steps() if step > "0003"}

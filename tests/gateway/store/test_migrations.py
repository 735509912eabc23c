"""Migrations lead to the schema, one at a time, and never backwards."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import NewerDatabase, migrate, plan_migration, revision_of, steps
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Database, DatabaseUnusable
from tablegate.migrations import scripts
from tablegate.migrations.schema import metadata
from tests.support.databases import PostgresServer
from tests.support.later_release import LATER, NEWEST, later_migrations
from tests.support.running import ROOT

STEPS = steps()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite'}"
    else:
        yield request.getfixturevalue("postgres").empty_database()


def test_migrations_lead_to_the_schema(database: Database) -> None:
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


_DEFINITIONS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE tbl_name <> 'alembic_version'",
    "postgresql": """
        SELECT table_name, column_name, ordinal_position, data_type, collation_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
        UNION ALL
        SELECT tablename, indexname, 0, indexdef, NULL, NULL, NULL
        FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    """,
}


@pytest.mark.parametrize("way", ["steps", "script"])
def test_steps_and_script_make_the_same_schema(empty: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compares the text of the schema, because compare_metadata ignores collations, WITHOUT ROWID and partial indexes.

    An empty database runs the script of the newest revision. All others run the migrations step by step.
    """
    if way == "steps":
        monkeypatch.setattr(migrating, "_make_schema", lambda *_: False)
    else:
        monkeypatch.setattr(migrating, "_upgrade", lambda *_: pytest.fail("the script was not used"))
    database = open_database(empty)
    assert migrate(database) == STEPS
    made = _definitions(database)
    metadata.drop_all(database.engine)
    assert _definitions(database) == []
    metadata.create_all(database.engine)
    assert made == _definitions(database)
    database.close()


@pytest.mark.parametrize("name", scripts.DATABASES)
def test_the_scripts_are_of_this_schema(name: str) -> None:
    """`python -m tablegate.migrations.scripts` writes them anew."""
    path = migrating.FOLDER / "schemas" / f"{NEWEST}-{name}.sql"
    assert path.read_text() == scripts.script(scripts.DATABASES[name])


def test_without_its_script_an_empty_database_takes_all_steps(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrating, "FOLDER", later_migrations(tmp_path))
    database = open_database(empty)
    assert migrate(database) == [*STEPS, *LATER]
    assert revision_of(database) == LATER[-1]
    database.close()


def _definitions(database: Database) -> list[tuple[str, ...]]:
    with database.engine.connect() as connection:
        found = connection.execute(sqlalchemy.text(_DEFINITIONS[connection.dialect.name])).all()
    return sorted(tuple(" ".join(str(each).split()) for each in row) for row in found)


def test_an_empty_database_is_brought_up_once(empty: str) -> None:
    database = open_database(empty)
    assert migrate(database) == STEPS
    assert migrate(database) == []
    database.close()


def test_gateways_that_start_together_migrate_once(empty: str) -> None:
    ran: list[list[str]] = []

    def start() -> None:
        database = open_database(empty)
        ran.append(migrate(database))
        database.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == [[], [], [], STEPS]


@pytest.mark.parametrize(
    ("oldest", "is_taken"), [(None, False), ("9998", False), (NEWEST, True), ("0000", True)]
)
def test_a_newer_database_is_refused_unless_its_schema_has_only_grown(
    database: Database, oldest: str | None, is_taken: bool
) -> None:
    """A later release records the oldest release that can still serve the database (docs/operate/upgrade.md)."""
    with database.engine.connect() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(sqlalchemy.text("DELETE FROM schema_compatibility"))
        if oldest is not None:
            connection.execute(sqlalchemy.text(f"INSERT INTO schema_compatibility VALUES ('{oldest}')"))
        connection.commit()
    if is_taken:
        assert migrate(database) == []
        assert revision_of(database) == NEWEST
        return
    with pytest.raises(NewerDatabase) as caught:
        migrate(database)
    assert caught.value.revision == "9999"


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE customers (id INTEGER)"],
        ["CREATE TABLE rows (id INTEGER)"],
        [
            "CREATE TABLE alembic_version (version_num TEXT)",
            "INSERT INTO alembic_version VALUES ('ae1027a6acf')",
            "CREATE TABLE users (id INTEGER)",
        ],
    ],
    ids=["any table", "a table of the same name", "revisions of its own"],
)
def test_a_database_of_another_program_is_refused(empty: str, statements: list[str]) -> None:
    database = open_database(empty)
    with database.engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.commit()
    before = sqlalchemy.inspect(database.engine).get_table_names()
    for refused in (migrate, revision_of, plan_migration):
        with pytest.raises(
            DatabaseUnusable, match=f"of another program, such as {before[-1]}. Use an empty database"
        ):
            refused(database)
    assert sqlalchemy.inspect(database.engine).get_table_names() == before
    database.close()


def test_tables_of_an_extension_are_not_of_another_program(postgres: PostgresServer) -> None:
    database = open_database(postgres.empty_database())
    with database.engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE spatial_ref_sys (id INTEGER)")
        connection.exec_driver_sql("ALTER EXTENSION plpgsql ADD TABLE spatial_ref_sys")
        connection.commit()
    assert migrate(database) == STEPS
    database.close()


def test_an_older_database_takes_the_missing_steps(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(empty)
    migrate(database)
    with database.write() as session:
        counters.advance(session, "ids", 7)
    monkeypatch.setattr(migrating, "FOLDER", later_migrations(tmp_path))
    told: list[str] = []
    assert migrate(database, told.append) == LATER
    assert told == [
        f"migrating from schema {NEWEST} to 9002: 2 steps in one transaction",
        "step 1 of 2 is done: Doubled counters.",
        "step 2 of 2 is done: Places.",
    ]
    with database.read() as session:
        assert session.query("SELECT value, doubled FROM counters") == [(7, 14)]
        assert session.query("SELECT oldest FROM schema_compatibility") == [(migrating.OLDEST_COMPATIBLE,)]
    database.close()


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_failed_migration_leaves_nothing(
    is_empty: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")
    if not is_empty:
        migrate(database)
    before = sqlalchemy.inspect(database.engine).get_table_names()
    folder = later_migrations(tmp_path)
    (folder / "versions" / "9003_bad.py").write_text(
        "from alembic import op\nrevision, down_revision = '9003', '9002'\n"
        "def upgrade():\n    op.execute('CREATE TABLE half (a INTEGER)')\n    op.execute('nonsense')\n"
    )
    monkeypatch.setattr(migrating, "FOLDER", folder)
    with pytest.raises(sqlalchemy.exc.OperationalError):
        migrate(database)
    assert sqlalchemy.inspect(database.engine).get_table_names() == before
    database.close()


@pytest.mark.extended
def test_a_killed_migration_changes_nothing_and_can_be_run_again(empty: str, tmp_path: Path) -> None:
    """A kill after each statement of each step, and of the record of the releases that can serve the schema."""
    database = open_database(empty)
    migrate(database)
    database.close()
    command = [sys.executable, "-m", "tests.support.killed_migrations", later_migrations(tmp_path), empty]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    killed = done.stdout.split()
    assert sorted({*killed}) == ["1", "2", "3"]
    assert len(killed) > 5


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_step_may_compute_for_a_minute_between_its_statements(database: Database) -> None:
    """A request has five seconds."""
    with database.engine.connect() as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        migrating._begin(connection)
        in_migration = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        connection.exec_driver_sql("ROLLBACK")
    assert (shown, in_migration) == ("5s", "1min")

"""Migrations lead to the schema, one at a time, and never backwards."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from gateway.store.databases import Database
from gateway.store.migrating import NewerDatabase, migrate, steps
from gateway.store.opening import open_database
from gateway.store.schema import metadata


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite'}"
    else:
        yield request.getfixturevalue("postgres").empty_database()


def test_they_lead_to_the_schema(database: Database) -> None:
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


def test_they_make_what_the_schema_would_make(empty: str) -> None:
    """To the letter, which compare_metadata does not look at: collations, WITHOUT ROWID, partial indexes."""
    database = open_database(empty)
    migrate(database)
    made = _definitions(database)
    metadata.drop_all(database.engine)
    assert _definitions(database) == []
    metadata.create_all(database.engine)
    assert made == _definitions(database)
    database.close()


def _definitions(database: Database) -> list[tuple[str, ...]]:
    with database.engine.connect() as connection:
        found = connection.execute(sqlalchemy.text(_DEFINITIONS[connection.dialect.name])).all()
    return sorted(tuple(" ".join(str(each).split()) for each in row) for row in found)


def test_an_empty_database_is_brought_up_once(empty: str) -> None:
    database = open_database(empty)
    assert migrate(database) == steps()
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
    assert sorted(ran) == [[], [], [], steps()]


def test_a_newer_database_is_refused(database: Database) -> None:
    with database.engine.connect() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.commit()
    with pytest.raises(NewerDatabase) as caught:
        migrate(database)
    assert caught.value.revision == "9999"


def test_a_failed_migration_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.store import migrating

    copy = tmp_path / "migrations"
    shutil.copytree(migrating._FOLDER, copy)
    (copy / "versions" / "9998_bad.py").write_text(
        "from alembic import op\nrevision = '9998'\n"
        f"down_revision = {steps()[-1]!r}\n"
        "def upgrade():\n    op.execute('CREATE TABLE half (a INTEGER)')\n    op.execute('nonsense')\n"
    )
    monkeypatch.setattr(migrating, "_FOLDER", copy)
    database = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")
    with pytest.raises(sqlalchemy.exc.OperationalError):
        migrate(database)
    assert sqlalchemy.inspect(database.engine).get_table_names() == []
    database.close()

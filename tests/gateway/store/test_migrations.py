"""Migrations lead to the schema, one at a time, and never backwards."""

from __future__ import annotations

import json
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


# 0002: the dialect becomes part of the namespace.

_AZURE_KEYS = '[[["PartitionKey", "text", false]], [["RowKey", "text", false]]]'
_OTHER_KEYS = '[[["pk", "int64", false]], []]'
# (namespace before, made by Table Store, what Azure and Table Store keep with it, namespace after)
_TABLES_OF_0001 = [
    ("shared", False, "{}", "shared"),
    ("shared", True, '{"tablestore": {}}', "shared"),
    ("123456789012/us-east-1", False, '{"dynamodb": {}}', "aws/123456789012/us-east-1"),
    ("123456789012/eu-west-1", False, '{"dynamodb": {}}', "aws/123456789012/eu-west-1"),
    ("acca", False, "{}", "azure/acca"),
    ("acca", True, '{"tablestore": {}}', "tablestore/acca"),
    # Each may have altered what the other had made.
    ("acca", False, '{"tablestore": {}, "azuretable": {}}', "azure/acca"),
    ("acca", True, '{"tablestore": {}, "azuretable": {}}', "tablestore/acca"),
    ("a%2Fb", True, '{"tablestore": {}}', "tablestore/a%2Fb"),
]


def _at_0001(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database as the release before left it."""
    from gateway.store import migrating

    copy = folder / "migrations"
    shutil.copytree(migrating._FOLDER, copy)
    for path in (copy / "versions").glob("[0-9]*.py"):
        if not path.name.startswith("0001"):
            path.unlink()
    database = open_database(url)
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "_FOLDER", copy)
        assert migrate(database) == ["0001"]
    return database


def test_0002_gives_each_table_to_the_dialect_that_made_it(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _at_0001(empty, tmp_path, monkeypatch)
    gone = len(_TABLES_OF_0001)
    orphans = [
        ("acca", _OTHER_KEYS, "tablestore/acca"),
        ("acca", _AZURE_KEYS, "azure/acca"),
        ("123456789012/us-east-1", _OTHER_KEYS, "aws/123456789012/us-east-1"),
        ("shared", _OTHER_KEYS, "shared"),
    ]
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for number, (before, stamped, properties, _) in enumerate(_TABLES_OF_0001):
            rules = json.dumps({"stamped": stamped, "stream": None, "expiry": None})
            values = {"id": number, "ns": before, "name": f"t{number}", "rules": rules, "props": properties}
            connection.execute(
                sqlalchemy.text(
                    "INSERT INTO tables (id, namespace, name, azure_name, azure_name_lower, key_schema, rules, properties,"
                    " state, busy_until_ms, version, created_at_ms)"
                    " VALUES (:id, :ns, :name, :name, :name, '[]', :rules, :props, 'active', 0, 1, 0)"
                ),
                values,
            )
        listed = [(at, before, "[]") for at, (before, *_) in enumerate(_TABLES_OF_0001)]
        listed += [(gone + at, before, keys) for at, (before, keys, _) in enumerate(orphans)]
        for number, before, keys in listed:
            connection.execute(
                sqlalchemy.text(
                    "INSERT INTO streams (id, table_id, namespace, table_name, label, key_schema, rule, opened_at_ms)"
                    " VALUES (:id, :id, :ns, 't', :label, :keys, '{}', 0)"
                ),
                {"id": number, "ns": before, "label": str(number), "keys": keys},
            )
        for before in ("shared", "acca", "accb"):
            connection.execute(
                sqlalchemy.text("INSERT INTO namespace_properties VALUES (:ns, :name, '{}')"),
                {"ns": before, "name": f"azuretable/{before}"},
            )
        connection.commit()

    assert "0002" in migrate(database)

    with database.engine.connect() as connection:
        made = connection.execute(sqlalchemy.text("SELECT namespace FROM tables ORDER BY id")).scalars().all()
        of_streams = (
            connection.execute(sqlalchemy.text("SELECT namespace FROM streams ORDER BY id")).scalars().all()
        )
        kept = connection.execute(
            sqlalchemy.text("SELECT namespace, name FROM namespace_properties ORDER BY name")
        ).all()
    expected = [after for *_, after in _TABLES_OF_0001]
    assert made == expected
    assert of_streams == expected + [after for *_, after in orphans]
    assert [tuple(row) for row in kept] == [
        ("azure/acca", "azuretable/acca"),
        ("azure/accb", "azuretable/accb"),
        ("shared", "azuretable/shared"),
    ]
    database.close()

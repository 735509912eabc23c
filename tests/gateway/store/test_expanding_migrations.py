"""The rule of docs/operate/upgrade.md: migrations only add, so that the previous release can use the database too.

A migration removes nothing, changes no type, adds no mandatory column and no constraint on old tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from tablegate.gateway.store import migrating
from tablegate.gateway.store.migrating import steps
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tests.support.later_release import later_migrations

pytestmark = pytest.mark.extended


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    url = (
        f"sqlite:///{tmp_path / 'empty.sqlite'}"
        if request.param == "sqlite"
        else request.getfixturevalue("postgres").empty_database()
    )
    database = open_database(url)
    yield database
    database.close()


def bring_to(database: Database, revision: str) -> None:
    """Take the steps up to a revision."""
    config = Config()
    config.set_main_option("script_location", str(migrating.FOLDER))
    config.set_main_option("path_separator", "os")
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.commit()


Tables = dict[str, dict[str, Any]]


def tables_of(database: Database) -> Tables:
    with database.engine.connect() as connection:
        return tables_in(connection)


def tables_in(connection: sqlalchemy.Connection) -> Tables:
    """Return the parts of the schema that affect statements: columns, types, mandatory columns, unique constraints."""
    found = sqlalchemy.inspect(connection)
    return {
        name: {
            "columns": {
                column["name"]: (str(column["type"]), not column["nullable"] and column["default"] is None)
                for column in found.get_columns(name)
            },
            "key": found.get_pk_constraint(name)["constrained_columns"],
            "unique": _unique(found, name),
            "checks": sorted(rule["sqltext"] for rule in found.get_check_constraints(name)),
        }
        for name in found.get_table_names()
    }


def _unique(found: sqlalchemy.Inspector, table: str) -> list[list[str]]:
    rules: list[Any] = [*found.get_unique_constraints(table), *found.get_indexes(table)]
    return sorted(sorted(rule["column_names"]) for rule in rules if rule.get("unique", True))


def what_breaks(before: Tables, after: Tables) -> list[str]:
    """Why statements on the tables of before may not work on those of after."""
    found = [f"{name} is gone" for name in before if name not in after]
    for name, old in before.items():
        new = after.get(name, old)
        for column, (kind, _) in old["columns"].items():
            if column not in new["columns"]:
                found.append(f"{name}.{column} is gone")
            elif new["columns"][column][0] != kind:
                found.append(f"{name}.{column} is another type")
            elif new["columns"][column][1] and not old["columns"][column][1]:
                found.append(f"{name}.{column} must be given now")
        found += [
            f"{name}.{column} is new and must be given"
            for column, (_, must_be_given) in new["columns"].items()
            if column not in old["columns"] and must_be_given
        ]
        found += [
            f"{name} has another {rule}" for rule in ("key", "unique", "checks") if new[rule] != old[rule]
        ]
    return found


def test_a_migration_only_adds(empty: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The revisions of a made-up release follow the real ones, so that there is always one to check."""
    monkeypatch.setattr(migrating, "FOLDER", later_migrations(tmp_path))
    first, *later = steps()
    bring_to(empty, first)
    for step in later:
        before = tables_of(empty)
        bring_to(empty, step)
        assert tables_of(empty) != before
        assert what_breaks(before, tables_of(empty)) == [], step


@pytest.mark.parametrize(
    ("statement", "breaks"),
    [
        ("ALTER TABLE tokens DROP COLUMN answer", "tokens.answer is gone"),
        ("ALTER TABLE tokens RENAME COLUMN answer TO reply", "tokens.answer is gone"),
        ("ALTER TABLE tokens RENAME TO idempotency", "tokens is gone"),
        ("CREATE UNIQUE INDEX one ON tokens (digest)", "tokens has another unique"),
    ],
)
def test_migrations_that_do_more_than_add_are_found(database: Database, statement: str, breaks: str) -> None:
    before = tables_of(database)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql(statement)
        after = tables_in(connection)
        connection.rollback()
    assert breaks in what_breaks(before, after)


def test_a_column_that_must_be_given_is_found() -> None:
    table = {"columns": {"a": ("TEXT", True)}, "key": ["a"], "unique": [], "checks": []}
    more = {**table, "columns": {"a": ("TEXT", True), "b": ("TEXT", True)}}
    assert what_breaks({"t": table}, {"t": more}) == ["t.b is new and must be given"]
    more["columns"] = {"a": ("INTEGER", True), "b": ("TEXT", False)}
    assert what_breaks({"t": table}, {"t": more}) == ["t.a is another type"]

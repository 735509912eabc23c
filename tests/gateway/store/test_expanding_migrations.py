"""The rule of docs/operate/upgrade.md: migrations only add, so that the previous release can use the database too.

Two checks on each database:

- Of the schema: a migration removes nothing, changes no type, adds no mandatory column and no constraint on old tables.
- Of the statements that earlier releases recorded (tests/support/released_statements.py): the database accepts each of
  them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config

from tablegate import migrations
from tablegate.gateway.store.opening.migrating import OLDEST_COMPATIBLE, steps
from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.postgresql.pipeline import PipelineStatement
from tablegate.gateway.store.sql.databases import Database
from tests.support.released_statements import revisions, statements_of

pytestmark = pytest.mark.extended

# Since this one the rule holds. The first five came before the first release.
FIRST = "0006"
AFTER_FIRST = [step for step in steps() if step > FIRST]


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
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
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


@pytest.mark.parametrize("step", AFTER_FIRST)
def test_a_migration_only_adds(empty: Database, step: str) -> None:
    bring_to(empty, steps()[steps().index(step) - 1])
    before = tables_of(empty)
    bring_to(empty, step)
    assert what_breaks(before, tables_of(empty)) == []


@pytest.mark.parametrize(
    ("statement", "breaks"),
    [
        ("ALTER TABLE tokens DROP COLUMN answer", "tokens.answer is gone"),
        ("ALTER TABLE tokens RENAME COLUMN answer TO reply", "tokens.answer is gone"),
        ("ALTER TABLE tokens RENAME TO idempotency", "tokens is gone"),
        ("CREATE UNIQUE INDEX one ON tokens (digest)", "tokens has another unique"),
    ],
)
def test_what_does_more_is_found(database: Database, statement: str, breaks: str) -> None:
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


# Statements of earlier releases


def test_statements_were_written_down() -> None:
    """Of every release that may serve a database of this one's schema, the oldest first."""
    assert revisions()
    assert min(revisions()) <= OLDEST_COMPATIBLE
    for revision in revisions():
        for database in ("sqlite", "postgresql"):
            known = statements_of(revision, database)
            assert len(known) > 80
            assert sum(" rows " in text or " rows(" in text for text in known) > 5


@pytest.mark.parametrize("revision", [revision for revision in revisions() if revision >= OLDEST_COMPATIBLE])
def test_the_statements_of_earlier_releases_are_understood(database: Database, revision: str) -> None:
    failed = []
    for statement in statements_of(revision, database.name):
        try:
            _understood(database, statement)
        except Exception as error:
            failed.append(f"{error}: {statement}")
    assert failed == []


def test_a_statement_that_is_not_understood_is_found(empty: Database) -> None:
    bring_to(empty, steps()[-1])
    with empty.engine.connect() as connection:
        connection.exec_driver_sql("ALTER TABLE tokens RENAME COLUMN answer TO reply")
        connection.commit()
    broken = [text for text in statements_of(FIRST, empty.name) if "answer" in text]
    assert broken
    for statement in broken:
        with pytest.raises(Exception, match="answer"):
            _understood(empty, statement)


def _understood(database: Database, statement: str) -> None:
    """Raise the database's error for a statement that it cannot plan."""
    with database.engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        if isinstance(driver, psycopg.Connection):
            libpq = driver.pgconn
            result = libpq.prepare(b"", PipelineStatement(statement).command)
            assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, result.error_message.decode()
        else:
            parameters = [None] * len(re.findall(r"\?", statement))
            driver.execute(f"EXPLAIN {statement}", parameters).fetchall()

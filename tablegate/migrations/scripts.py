"""Generator of the scripts that create the newest schema: `python -m tablegate.migrations.scripts`.

There is one script for each database, compiled by SQLAlchemy from gateway/store/sql/schema.py.
`tests/gateway/store/test_migrations.py` fails when they are out of date.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from tablegate.gateway.store.opening.migrating import steps
from tablegate.gateway.store.sql.schema import metadata

FOLDER = Path(__file__).parent / "schemas"
DATABASES: dict[str, Dialect] = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]
# The table as Alembic creates it.
_VERSION_TABLE = """CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def script(dialect: Dialect) -> str:
    """Return the newest revision as a comment and the statements, separated by empty lines."""
    return "\n\n".join([f"-- {steps()[-1]}", *_statements(dialect)]) + "\n"


def _statements(dialect: Dialect) -> Iterator[str]:
    yield _VERSION_TABLE
    yield f"INSERT INTO alembic_version (version_num) VALUES ('{steps()[-1]}')"
    for table in metadata.sorted_tables:
        yield _tidy(str(CreateTable(table).compile(dialect=dialect)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield _tidy(str(CreateIndex(index).compile(dialect=dialect)))


def _tidy(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines() if line.strip())


if __name__ == "__main__":
    for name, dialect in DATABASES.items():
        (FOLDER / f"{name}.sql").write_text(script(dialect))

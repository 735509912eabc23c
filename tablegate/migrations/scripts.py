"""Generator of the scripts that create the newest schema: `python -m tablegate.migrations.scripts`.

There is one script for each database, `schemas/REVISION-DATABASE.sql`, compiled by SQLAlchemy from schema.py.
`tests/gateway/store/test_migrations.py` fails when they are out of date. The scripts of a
released revision never change: add a revision before the schema changes again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from tablegate.gateway.store.migrating import FOLDER, steps
from tablegate.migrations.schema import metadata

DATABASES: dict[str, Dialect] = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]


def script(dialect: Dialect) -> str:
    """Return the statements that create the schema, separated by empty lines."""
    return "\n\n".join(_statements(dialect)) + "\n"


def _statements(dialect: Dialect) -> Iterator[str]:
    for table in metadata.sorted_tables:
        yield _tidy(str(CreateTable(table).compile(dialect=dialect)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield _tidy(str(CreateIndex(index).compile(dialect=dialect)))


def _tidy(statement: str) -> str:
    return "\n".join(line.rstrip() for line in statement.strip().splitlines() if line.strip())


if __name__ == "__main__":
    for name, dialect in DATABASES.items():
        (FOLDER / "schemas" / f"{steps()[-1]}-{name}.sql").write_text(script(dialect))

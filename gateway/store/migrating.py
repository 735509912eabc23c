"""Bringing a database to the schema of this release, under a lock, or refusing one that is newer.

Alembic does the steps (migrations/); it is imported only if there is a step to do, so that an ordinary start is quick.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy

import migrations
from gateway.store.databases import Database

_FOLDER = Path(migrations.__file__).parent
# The only advisory lock: it keeps two starting gateways apart, not writers of data (which may be on several nodes).
_LOCK = "SELECT pg_advisory_xact_lock(7421954300)"
_LOCK_TIMEOUT = "60s"


class NewerDatabase(Exception):
    """The database was migrated by a later release, which may keep in it what this one would break."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.revision = revision


def steps() -> list[str]:
    """All revisions, oldest first."""
    return sorted(path.name.partition("_")[0] for path in (_FOLDER / "versions").glob("[0-9]*.py"))


def migrate(database: Database) -> list[str]:
    """Bring the database up to date; the revisions that were run. Raises NewerDatabase."""
    known = steps()
    with database.engine.connect() as connection:
        if _revision(connection, known) == known[-1]:
            return []
    with database.engine.connect() as connection:
        _begin(connection)
        before = _revision(connection, known)  # once more: another gateway may have been quicker
        if before != known[-1]:
            _upgrade(connection)
        connection.commit()
    return known[known.index(before) + 1 :] if before else known


def _revision(connection: sqlalchemy.Connection, known: list[str]) -> str:
    """The revision a database is at, "" if it is empty."""
    if not sqlalchemy.inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is not None and found not in known:
        raise NewerDatabase(found)
    return found or ""


def _begin(connection: sqlalchemy.Connection) -> None:
    """Connections of the data path leave transactions to us; this one is whole, and waits for another of its kind."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.exec_driver_sql("BEGIN")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    connection.exec_driver_sql(_LOCK)


def _upgrade(connection: sqlalchemy.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

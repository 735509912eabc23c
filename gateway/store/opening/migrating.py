"""Bringing a database to the schema of this release, under a lock, or refusing one that is newer.

An empty database is given the whole schema at once, by the script that `python -m tablegate.migrations.scripts` wrote.
Another takes the steps that it lacks: Alembic does them (migrations/), and is imported only then, so that an ordinary start is
quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tablegate import migrations
from tablegate.gateway.store.sql.databases import DEFINITION_LOCK, Database, Session

if TYPE_CHECKING:
    import sqlalchemy

_FOLDER = Path(migrations.__file__).parent
OLDEST_COMPATIBLE = "0006"
"""The oldest schema whose release's statements work on the newest one too. What a release does not need any more is taken away
one release later, and then this is that release's (docs/operate/upgrade.md; test_expanding_migrations.py)."""


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
    before = revision_of(database)
    if not before:
        with database.define() as session:
            before = _revision(session, known)  # once more: another gateway may have been quicker
            if not before and _make_schema(session, database.name, known[-1]):
                return known
    if before != known[-1]:
        database.begin_migrating()
        before = _upgrade(database, known)
    database.end_migrating()
    return known[known.index(before) + 1 :] if before else known


def revision_of(database: Database, known: list[str] | None = None) -> str:
    """The revision a database is at, "" if it is empty. Raises NewerDatabase. `known`: the revisions of this release, if they are
    not to be looked up: a later release may have been installed over it since it was started."""
    with database.read() as session:
        return _revision(session, known or steps())


def script_of(name: str) -> str:
    """The script that makes the newest schema in an empty database of that name: statements with an empty line between."""
    path = _FOLDER / "schemas" / f"{name}.sql"
    return path.read_text() if path.is_file() else ""


def _make_schema(session: Session, name: str, newest: str) -> bool:
    """Whether the schema could be made at once: there is a script of the newest revision for this database."""
    heading, _, script = script_of(name).partition("\n\n")
    if heading != f"-- {newest}":
        return False
    for statement in script.split("\n\n"):
        session.send(statement)
    session.send("INSERT INTO schema_compatibility (oldest) VALUES (?)", (OLDEST_COMPATIBLE,))
    return True


def _revision(session: Session, known: list[str]) -> str:
    """The revision a database is at, "" if it is empty; the newest known one where it is at a later one that will do. Raises
    NewerDatabase."""
    if not session.statements.has_table(session, "alembic_version"):
        return ""
    [*found] = session.query("SELECT version_num FROM alembic_version")
    revision = str(found[0][0]) if found else ""
    if not revision or revision in known:
        return revision
    # A later release's, which has said for which earlier ones its schema has only grown.
    oldest = _oldest(session)
    if not oldest or oldest > known[-1]:
        raise NewerDatabase(revision)
    return known[-1]


def _oldest(session: Session) -> str:
    """The schema of the oldest release that may serve this database; "" if nobody has said."""
    if not session.statements.has_table(session, "schema_compatibility"):
        return ""
    found = session.query("SELECT oldest FROM schema_compatibility")
    return str(found[0][0]) if found else ""


def _upgrade(database: Database, known: list[str]) -> str:
    """Take the steps that a database lacks. The revision that it was at, "" if it was empty."""
    from alembic import command
    from alembic.config import Config
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        _begin(connection)
        before = MigrationContext.configure(connection).get_current_revision() or ""
        if before != known[-1]:
            config = Config()
            config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
            config.set_main_option("path_separator", "os")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            _tell_oldest(connection)
        connection.commit()
    return before


def _tell_oldest(connection: sqlalchemy.Connection) -> None:
    """Say in the database which is the oldest release that may serve it."""
    import sqlalchemy

    if sqlalchemy.inspect(connection).has_table("schema_compatibility"):
        connection.exec_driver_sql("DELETE FROM schema_compatibility")
        connection.exec_driver_sql(
            f"INSERT INTO schema_compatibility (oldest) VALUES ('{OLDEST_COMPATIBLE}')"
        )


def _begin(connection: sqlalchemy.Connection) -> None:
    """Connections of the data path leave transactions to us; this one is whole, and waits for another of its kind."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.exec_driver_sql("BEGIN")
    connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({DEFINITION_LOCK})")

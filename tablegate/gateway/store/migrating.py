"""Migration of a database to the schema of this release, under a lock, and the plan of its steps.

An empty database gets the whole schema from the script of the newest revision. Others are upgraded by Alembic
(migrations/), which is imported only then to keep an ordinary start fast.

A step of migrations/versions names the tables that it rewrites (`REWRITES`). All others only add, and take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tablegate import migrations
from tablegate.gateway.store.sql.databases import DEFINITION_LOCK, Database, DatabaseUnusable, Session

if TYPE_CHECKING:
    import sqlalchemy


FOLDER = Path(migrations.__file__).parent
"""The folder of the revisions and scripts."""
OLDEST_COMPATIBLE = "0001"
"""The schema of the oldest release that can serve the newest schema.

A release stops using a part of the schema one release before the part is dropped. See docs/operate/upgrade.md and
test_expanding_migrations.py.
"""

# The table as Alembic creates it.
_VERSION_TABLE = (
    "CREATE TABLE alembic_version"
    " (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)


class NewerDatabase(Exception):
    """The database has the schema of a later release. This release could damage its data."""

    def __init__(self, revision: str) -> None:
        super().__init__(revision)
        self.revision = revision


def steps() -> list[str]:
    """Return all revisions, oldest first."""
    return sorted(path.name.partition("_")[0] for path in (FOLDER / "versions").glob("[0-9]*.py"))


def migrate(database: Database, report: Callable[[str], None] = lambda line: None) -> list[str]:
    """Migrate the database to the newest revision. Return the revisions that were applied.

    Raises NewerDatabase, and DatabaseUnusable for a database of another program.

    `report` gets a line before the first step and after each step, since steps rewrite large databases.
    """
    revisions = steps()
    previous = revision_of(database)
    if not previous:
        with database.define() as session:
            # Checked again under the lock: another server may have been faster.
            previous = _revision(session, revisions)
            if not previous and _make_schema(session, database.name, revisions[-1]):
                return revisions
    if previous != revisions[-1]:
        database.begin_migrating()
        previous = _upgrade(database, revisions, report)
    database.end_migrating()
    return revisions[revisions.index(previous) + 1 :] if previous else revisions


def revision_of(database: Database, revisions: list[str] | None = None) -> str:
    """Return the revision of a database, or "" if it is empty.

    Raises NewerDatabase, and DatabaseUnusable for a database of another program.

    `revisions`: the revisions of this release. By default they are read from the installed package. A long-running process
    passes its own list, because a later release may have been installed since it started.
    """
    with database.read() as session:
        return _revision(session, revisions or steps())


def _make_schema(session: Session, name: str, newest: str) -> bool:
    """Create the whole schema. Return False if there is no script of the newest revision."""
    path = FOLDER / "schemas" / f"{newest}-{name}.sql"
    if not path.is_file():
        return False
    for statement in (_VERSION_TABLE, *path.read_text().split("\n\n")):
        session.send(statement)
    session.send("INSERT INTO alembic_version (version_num) VALUES (?)", (newest,))
    session.send("INSERT INTO schema_compatibility (oldest) VALUES (?)", (OLDEST_COMPATIBLE,))
    return True


def _revision(session: Session, revisions: list[str]) -> str:
    """Return the revision of a database as `revision_of` does.

    A later revision that this release can serve counts as the newest known one.
    """
    rows = []
    if session.statements.has_table(session, "alembic_version"):
        rows = session.query("SELECT version_num FROM alembic_version")
    revision = str(rows[0][0]) if rows else ""
    if revision in revisions:
        return revision
    table_names = set(session.statements.table_names(session)) - {"alembic_version"}
    if "schema_compatibility" not in table_names:  # a later release would have it
        if table_names:
            raise DatabaseUnusable(
                f"the database has tables of another program, such as {min(table_names)}. Use an empty database"
            )
        return ""
    # The revision is of a later release, which records the oldest release that its schema still supports.
    rows = session.query("SELECT oldest FROM schema_compatibility")
    if not rows or str(rows[0][0]) > revisions[-1]:
        raise NewerDatabase(revision)
    return revisions[-1]


def _upgrade(database: Database, revisions: list[str], report: Callable[[str], None]) -> str:
    """Apply the missing revisions. Return the previous revision, or "" if the database was empty."""
    from alembic import command
    from alembic.config import Config
    from alembic.migration import MigrationContext

    with database.engine.connect() as connection:
        _begin(connection)
        previous = MigrationContext.configure(connection).get_current_revision() or ""
        if previous != revisions[-1]:
            missing = revisions[revisions.index(previous) + 1 :] if previous else revisions
            report(
                f"migrating from schema {previous or 'none'} to {revisions[-1]}: {len(missing)} steps in one transaction"
            )

            def step_done(step: Any, **_: Any) -> None:
                number = missing.index(step.up_revision_id) + 1
                purpose = " ".join(step.up_revision.doc.split())
                report(f"step {number} of {len(missing)} is done: {purpose}")

            config = Config()
            config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
            config.set_main_option("path_separator", "os")
            config.attributes.update(connection=connection, step_done=step_done)
            command.upgrade(config, "head")
            connection.exec_driver_sql(f"UPDATE schema_compatibility SET oldest = '{OLDEST_COMPATIBLE}'")
        connection.commit()
    return previous


def _begin(connection: sqlalchemy.Connection) -> None:
    """Begin one transaction for the whole migration and wait for other migrations.

    Connections of the data path are in autocommit mode, so the transaction begins here.
    """
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return
    connection.exec_driver_sql("BEGIN")
    connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
    connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
    # A step computes between its statements, on a busy machine for longer than a request may.
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = '60s'")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({DEFINITION_LOCK})")


# Measured: 100,000 rows a second on SQLite and PostgreSQL, on two busy cores.
_ROWS_PER_SECOND = 50_000


class PlannedStep(NamedTuple):
    """A step, and the number of rows that it rewrites."""

    revision: str
    purpose: str
    rows: int


class MigrationPlan(NamedTuple):
    """The steps that are missing. `revision`: the present one, "" if the database is empty."""

    revision: str
    steps: list[PlannedStep]

    @property
    def seconds(self) -> int:
        """The expected duration, rounded down."""
        return sum(step.rows for step in self.steps) // _ROWS_PER_SECOND


def plan_migration(database: Database) -> MigrationPlan:
    """Return what `migrate` would do. Raises NewerDatabase, and DatabaseUnusable for a database of another program."""
    from alembic.script import ScriptDirectory

    revision = revision_of(database)
    scripts = ScriptDirectory(str(FOLDER))
    planned = []
    with database.read() as session:
        for step in steps():
            if step > revision:
                script = scripts.get_revision(step)
                rows = 0
                for name in getattr(script.module, "REWRITES", ()):
                    if session.statements.has_table(session, name):
                        rows += session.query(f"SELECT count(*) FROM {name}")[0][0]
                planned.append(PlannedStep(step, " ".join(script.doc.split()), rows))
    return MigrationPlan(revision, planned)

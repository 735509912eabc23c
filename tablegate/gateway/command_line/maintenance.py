"""Maintenance of a database without a server: migrate, sweep, vacuum, backup, distribute, undistribute and
restore points.

They run schema migrations and background work, return free pages, copy a SQLite database online, and spread the tables over
the nodes of Citus.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from tablegate.gateway.command_line.database import (
    ADMINISTRATION_SETTINGS,
    URL_OPTION,
    administration,
    opened_database,
    record_command,
)
from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.options import (
    AUDIT_SETTINGS,
    DATABASE_SETTINGS,
    SectionedCommand,
    with_settings,
)
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings


@click.command(cls=SectionedCommand)
@click.option("--check", is_flag=True, help="Print what would be done, and change nothing.")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def migrate(settings: Settings, check: bool) -> None:
    """Migrate the database to the schema of this release.

    A server does so when it starts. Run the command first if the server's database role cannot create tables. With
    --check it lists the missing steps, the number of rows that each one rewrites, and how long requests may wait.
    """
    from tablegate.gateway.store.migrating import migrate as run
    from tablegate.gateway.wiring import connect

    if check:
        _print_plan(settings)
        return
    with one_line_errors():
        database = connect(settings)
        done = run(database, lambda line: click.echo(line, err=True))
        database.close()
    record_command(settings)
    shown = without_password(settings.database)
    click.echo(f"{shown}: {'ran ' + ', '.join(done) if done else 'up to date'}")


def _print_plan(settings: Settings) -> None:
    from tablegate.gateway.store.migrating import plan_migration
    from tablegate.gateway.wiring import connect

    shown, path = without_password(settings.database), settings.database_path
    if path is not None and not path.is_file():
        click.echo(f"{shown}: would be created")
        return
    with one_line_errors():
        database = connect(settings)
        planned = plan_migration(database)
        database.close()
    if not planned.steps:
        click.echo(f"{shown}: up to date")
        return
    if not planned.revision:
        click.echo(f"{shown}: is empty, the schema would be created")
        return
    click.echo(f"{shown}: schema {planned.revision}. These steps would run in one transaction:")
    for step in planned.steps:
        click.echo(f"{step.revision}\t{step.rows:,} rows\t{step.purpose}")
    duration = f"about {planned.seconds:,} s" if planned.seconds else "less than 1 s"
    click.echo(f"Expected duration: {duration}. {_WAITING[database.name]}")


_WAITING = {
    "sqlite": "Writers wait meanwhile, readers do not.",
    "postgresql": "Readers and writers of the tables that a step alters wait meanwhile.",
}


@click.command(cls=SectionedCommand)
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def sweep(settings: Settings, url: str | None) -> None:
    """Run all due background work: delete expired rows, fill new indexes, purge dropped tables.

    A running server does this by itself. Use the command if no server runs. With --url a running server does at once
    what it would do within --sweep-period.
    """
    if url is not None:
        with administration(settings, url) as operate:
            operate("POST", "/sweep")
        click.echo("all expired rows are deleted")
        return
    from tablegate.gateway.dialects.adapter import register_views

    with opened_database(settings) as opened:
        register_views(opened.engine)
        batches = 0
        while opened.engine.background.next_batch():
            batches += 1
        click.echo(f"background work finished after {batches} batches")


@click.command(cls=SectionedCommand)
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def vacuum(settings: Settings) -> None:
    """Give the free space of a SQLite file back to the disk.

    Deleted rows leave free pages, which new rows use. The command rewrites the file without them. It needs free disk for
    two more copies of the data. If a server runs on the file, its writes are refused (503) meanwhile, and reads go on.
    For PostgreSQL use its own tools.
    """
    with opened_database(settings) as opened:
        before, after = opened.store.database.compact()
        click.echo(f"{settings.database_path}: {before:,} bytes before, {after:,} bytes now")


@click.command(cls=SectionedCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
@with_settings("database", "synchronous")
def backup(settings: Settings, file: Path, quiet: bool) -> None:
    """Copy a SQLite database into a new FILE while its server runs.

    FILE contains all writes that were acknowledged before the printed time. A server can open it as its database
    (serve --database sqlite:///FILE). The secret key of stored credentials is not in FILE. Keep it elsewhere. For PostgreSQL
    use its own tools, such as pg_dump.
    """
    from tablegate.gateway.store.opening import open_database

    path = settings.database_path
    if settings.memory or (path is not None and not path.is_file()):
        reason = "a database in memory cannot be opened" if path is None else f"there is no database {path}"
        raise click.ClickException(f"Cannot back up: {reason}. Name a database with --database.")
    try:
        with one_line_errors(), _backup_progress(not quiet and sys.stderr.isatty()) as report:
            database = open_database(settings.database, settings.synchronous)
            with contextlib.closing(database):
                moment = database.back_up(file.absolute(), report)
    except OSError as error:
        raise click.ClickException(f"Cannot write {error.filename or file}: {error.strerror}.") from None
    at = datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")
    click.echo(f"{file}\t{file.stat().st_size} bytes\tas of {at}")
    if path is not None and (key := path.with_name(path.name + ".key")).exists():
        click.echo(
            f"The credentials in the backup are encrypted with the key in {key}. A server on the backup needs a copy of it"
            f" as {file}.key. Keep another copy elsewhere.",
            err=True,
        )


@contextlib.contextmanager
def _backup_progress(is_shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Return a callback for the numbers of copied and of all pages. It draws a progress bar on a terminal."""
    if not is_shown:
        yield lambda done, total: None
        return
    with click.progressbar(length=1, label="copying", file=sys.stderr) as bar:

        def report(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield report


# A server sends a statement to each shard, so more shards cost more. 256 shards have four slots each.
_SHARDS = 8
_MOST_SHARDS = 256


@click.command(cls=SectionedCommand)
@click.option(
    "--shards",
    type=click.IntRange(1, _MOST_SHARDS),
    default=_SHARDS,
    show_default=True,
    help="Number of shards, at best a power of two. Choose one or two for each node that you expect, since nodes added later "
    "take over shards.",
)
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def distribute(settings: Settings, shards: int) -> None:
    """Spread the tables over the nodes of Citus.

    Run it on the database of the coordinator while no server runs. If it is interrupted, run it again.
    """
    from tablegate.gateway.store.migrating import migrate as run_migrations
    from tablegate.gateway.store.opening import distribute as run
    from tablegate.gateway.wiring import connect

    _check_can_distribute(settings)
    with one_line_errors():
        database = connect(settings)
        run_migrations(database)
        database.close()
        _print_steps(run(settings.database, shards), "everything was distributed already")
    record_command(settings)
    list_placement(settings.database)


@click.command(cls=SectionedCommand)
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def undistribute(settings: Settings) -> None:
    """Move all tables back to the coordinator. Run it while no server runs."""
    from tablegate.gateway.store.opening import undistribute as run

    _check_can_distribute(settings)
    with one_line_errors():
        _print_steps(run(settings.database), "nothing was distributed")
    record_command(settings)


@click.command("restore-point", cls=SectionedCommand)
@click.argument("name")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def restore_point(settings: Settings, name: str) -> None:
    """Create a restore point NAME on every node of Citus, to which backups of all nodes can be restored.

    Writes to several nodes wait meanwhile. Run it on the database of the coordinator, as superuser.
    """
    from tablegate.gateway.store.opening import create_restore_point

    _check_can_distribute(settings)
    with one_line_errors():
        for node in create_restore_point(settings.database, name):
            click.echo(node)
    record_command(settings)


def list_placement(url: str) -> None:
    """Print the nodes of the tables of a database, if it is distributed."""
    from tablegate.gateway.store.opening import placement_of

    found = placement_of(url)
    if found is None:
        return
    for node in found.nodes:
        click.echo(f"node {node.name}\t{node.shards} shards of rows")
    click.echo(f"by slot\t{', '.join(found.distributed)}")
    click.echo(f"on every node\t{', '.join(found.everywhere)}")
    if found.alone:
        click.echo(f"on one node only\t{', '.join(found.alone)}: run tablegate distribute")


def _check_can_distribute(settings: Settings) -> None:
    if not settings.database.startswith("postgresql"):
        raise click.ClickException(
            "only a PostgreSQL database can be distributed. Name one with --database postgresql://..."
        )


def _print_steps(steps: Iterator[str], nothing: str) -> None:
    done = 0
    for step in steps:
        click.echo(step)
        done += 1
    if not done:
        click.echo(nothing)

"""migrate, sweep and vacuum: schema migrations, background work and free pages, without a server."""

from __future__ import annotations

import click

from tablegate.gateway.command_line.administering import (
    ADMINISTRATION_SETTINGS,
    URL_OPTION,
    administration,
)
from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.command_line.opening import opened_database, record_command
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
    from tablegate.gateway.store.opening.migrating import migrate as run
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
    from tablegate.gateway.store.opening.migrating import plan_migration
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
    from tablegate.gateway.adapter import register_views

    with opened_database(settings) as opened:
        register_views(opened.engine, settings)
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

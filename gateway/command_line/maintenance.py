"""migrate and sweep: run schema migrations and background work without a server."""

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
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def migrate(settings: Settings) -> None:
    """Migrate the database to the schema of this release.

    A server does so when it starts. Run the command first if the server's database role cannot create tables.
    """
    from tablegate.gateway.store.opening.migrating import migrate as run
    from tablegate.gateway.wiring import connect

    with one_line_errors():
        database = connect(settings)
        done = run(database, lambda line: click.echo(line, err=True))
        database.close()
    record_command(settings)
    shown = without_password(settings.database)
    click.echo(f"{shown}: {'ran ' + ', '.join(done) if done else 'up to date'}")


@click.command(cls=SectionedCommand)
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, "backup_directory")
def sweep(settings: Settings, url: str | None) -> None:
    """Run all due background work: delete expired rows, fill new indexes, purge dropped tables, run jobs.

    A running server does this by itself. Use the command if no server runs. With --url a running server does at once
    what it would do within --sweep-period.
    """
    if url is not None:
        with administration(settings, url) as operate:
            operate("POST", "/sweep")
        click.echo("all expired rows are deleted")
        return
    with opened_database(settings) as opened:
        batches = 0
        while opened.engine.background_batch() or opened.engine.job_batch():
            batches += 1
        click.echo(f"background work finished after {batches} batches")

"""migrate and sweep: what a server does by itself, done now."""

from __future__ import annotations

import click

from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.command_line.opening import opened_database, record_command
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings


@click.command()
@with_settings(every=False)
def migrate(settings: Settings) -> None:
    """Bring the database to this release's schema."""
    from tablegate.gateway.store.opening.migrating import migrate as run
    from tablegate.gateway.wiring import connect

    with told_in_one_line():
        database = connect(settings)
        done = run(database)
        database.close()
    record_command(settings)
    shown = without_password(settings.database)
    click.echo(f"{shown}: {'ran ' + ', '.join(done) if done else 'up to date'}")


@click.command()
@with_settings(every=False)
def sweep(settings: Settings) -> None:
    """Do all background work that is due now: expired rows, new indexes, dropped tables."""
    with opened_database(settings) as opened:
        batches = 0
        while opened.engine.background_batch() or opened.engine.job_batch():
            batches += 1
        click.echo(f"nothing more to do after {batches} batches")

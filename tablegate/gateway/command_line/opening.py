"""The database of a command other than `serve`: it is opened, migrated to this release's schema, and closed.

These commands never create a database. A wrong folder or variable would otherwise give an empty one.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from tablegate.gateway.command_line.audited import record_current_command
from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.configuration.settings import Settings


@contextlib.contextmanager
def opened_database(settings: Settings) -> Iterator[Any]:
    """Open the database of these settings (wiring.OpenDatabase), with this release's schema. Raises ClickException.

    The name of the database is printed on standard error, because standard output has the results.
    """
    from tablegate.gateway.store.opening.migrating import migrate as run
    from tablegate.gateway.store.opening.migrating import revision_of
    from tablegate.gateway.wiring import connect, open_store

    path = settings.database_path
    if settings.memory:
        raise click.ClickException(
            "A database in memory cannot be opened by a command. Name a database with --database."
        )
    if path is not None and not path.is_file():
        raise _missing(settings)
    with one_line_errors():
        database = connect(settings)
        if not revision_of(database):
            database.close()
            raise _missing(settings)
        click.echo(f"Database: {without_password(settings.database)}", err=True)
        run(database)
        opened = open_store(settings, database)
        try:
            with _audited(settings, opened):
                yield opened
        finally:
            opened.close()


def _missing(settings: Settings) -> click.ClickException:
    shown = settings.database_path or without_password(settings.database)
    context = click.get_current_context(silent=True)
    takes_url = context is not None and "url" in context.params
    return click.ClickException(
        f"There is no tablegate database in {shown}. Create it with `tablegate migrate` or `tablegate serve`, or name"
        f" another database with --database{' or a running server with --url' if takes_url else ''}."
    )


def record_command(settings: Settings) -> None:
    """Record a command in the audit log that did not run in `opened_database`."""
    if settings.audit:
        with opened_database(settings):
            pass


@contextlib.contextmanager
def _audited(settings: Settings, opened: Any) -> Iterator[None]:
    """Record changes in the audit log, if one is set. `-` is standard error here: standard output has the results."""
    if not settings.audit:
        yield
        return
    from tablegate.gateway.observability.audit_sinks import recording

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(recording(settings, opened.store, sys.stderr))
        except OSError as error:
            raise click.ClickException(
                f"Cannot write the audit log {settings.audit}: {error.strerror}."
            ) from None
        yield
        record_current_command()

"""The database of a command other than `serve`: it is opened, migrated to this release's schema, and closed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from tablegate.gateway.command_line.audited import record_current_command
from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.configuration.settings import Settings


@contextlib.contextmanager
def opened_database(settings: Settings) -> Iterator[Any]:
    """Open the database of these settings (wiring.OpenDatabase), with this release's schema. Raises ClickException."""
    from tablegate.gateway.store.opening.migrating import migrate as run
    from tablegate.gateway.wiring import connect, open_store

    if settings.memory:
        raise click.ClickException(
            "A database in memory cannot be opened by a command. Name a database with --database."
        )
    with one_line_errors():
        database = connect(settings)
        run(database)
        opened = open_store(settings, database)
        try:
            with _audited(settings, opened):
                yield opened
        finally:
            opened.close()


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

"""The database of a command that is no server's: opened, brought to this release's schema, and closed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from tablegate.gateway.command_line.audited import put_on_record
from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.configuration.settings import Settings


@contextlib.contextmanager
def opened_database(settings: Settings) -> Iterator[Any]:
    """Open the database of these settings (wiring.OpenDatabase), with this release's schema. Raises ClickException."""
    from tablegate.gateway.store.opening.migrating import migrate as run
    from tablegate.gateway.wiring import connect, open_store

    if settings.memory:
        raise click.ClickException("a database in memory is its server's alone; name one with --database")
    with told_in_one_line():
        database = connect(settings)
        run(database)
        opened = open_store(settings, database)
        try:
            with _on_record(settings, opened):
                yield opened
        finally:
            opened.close()


def record_command(settings: Settings) -> None:
    """Put the command that has run on record, where it did not run in `opened_database`."""
    if settings.audit:
        with opened_database(settings):
            pass


@contextlib.contextmanager
def _on_record(settings: Settings, opened: Any) -> Iterator[None]:
    """Within it what is changed goes to the audit, if the settings ask for one. Standard output is the command's own."""
    if not settings.audit:
        yield
        return
    from tablegate.gateway.observability.audit_sinks import recording

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(recording(settings, opened.store, sys.stderr))
        except OSError as error:
            raise click.ClickException(f"cannot write the audit {settings.audit}: {error.strerror}") from None
        yield
        put_on_record()

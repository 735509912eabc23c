"""The database of a command that is no server's: opened, brought to this release's schema, and closed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import click

from gateway.command_line.errors import told_in_one_line
from gateway.settings import Settings


@contextlib.contextmanager
def opened_database(settings: Settings) -> Iterator[Any]:
    """Within it the database of these settings is open (app.Opened) and of this release's schema. Raises ClickException."""
    from gateway.store.migrating import migrate as run
    from gateway.wiring import connect, open_store

    if settings.memory:
        raise click.ClickException("a database in memory is its server's alone; name one with --database")
    with told_in_one_line():
        database = connect(settings)
        run(database)
        opened = open_store(settings, database)
        try:
            yield opened
        finally:
            opened.close()

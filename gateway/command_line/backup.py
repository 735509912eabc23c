"""backup: a copy of a SQLite database, while its server goes on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.configuration.settings import Settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="No progress.")
@with_settings(every=False)
def backup(settings: Settings, file: Path, quiet: bool) -> None:
    """Copy a SQLite database into a new FILE while its server goes on. What was acknowledged before the moment that is
    printed is in it.

    FILE is a database that a server can open (docs/operate/backup.md). Stored credentials need the secret key, which is
    not in the file. For PostgreSQL use its own tools.
    """
    from tablegate.gateway.store.opening.opening import open_database

    path = settings.database_path
    if settings.memory or (path is not None and not path.is_file()):
        raise click.ClickException(f"there is no database {path or 'in memory that others could see'}")
    try:
        with told_in_one_line(), _progress(not quiet and sys.stderr.isatty()) as told:
            database = open_database(settings.database, settings.synchronous)
            with contextlib.closing(database):
                moment = database.back_up(file.absolute(), told)
    except OSError as error:
        raise click.ClickException(f"{error.filename or file}: {error.strerror}") from None
    at = datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")
    click.echo(f"{file}\t{file.stat().st_size} bytes\tas of {at}")
    if path is not None and (key := path.with_name(path.name + ".key")).exists():
        click.echo(f"the credentials in it open with the key in {key}: keep that too, elsewhere", err=True)


@contextlib.contextmanager
def _progress(is_shown: bool) -> Iterator[Callable[[int, int], None]]:
    """What is told how many pages are copied: a bar on a terminal, or nothing."""
    if not is_shown:
        yield lambda done, total: None
        return
    from rich import progress
    from rich.console import Console

    with progress.Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("copying")
        yield lambda done, total: shown.update(task, completed=done, total=total)

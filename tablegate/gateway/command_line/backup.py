"""backup: an online copy of a SQLite database."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.configuration.settings import Settings


@click.command(cls=SectionedCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--quiet", is_flag=True, help="Show no progress bar.")
@with_settings("database", "synchronous")
def backup(settings: Settings, file: Path, quiet: bool) -> None:
    """Copy a SQLite database into a new FILE while its server runs.

    FILE contains all writes that were acknowledged before the printed time. A server can open it as its database
    (docs/operate/backup.md). The secret key of stored credentials is not in FILE. Keep it elsewhere.
    For PostgreSQL use its own tools.
    """
    from tablegate.gateway.store.opening.opening import open_database

    path = settings.database_path
    if settings.memory or (path is not None and not path.is_file()):
        reason = "a database in memory cannot be opened" if path is None else f"there is no database {path}"
        raise click.ClickException(f"Cannot back up: {reason}. Name a database with --database.")
    try:
        with one_line_errors(), _progress(not quiet and sys.stderr.isatty()) as report:
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
def _progress(is_shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Return a callback for the numbers of copied and of all pages. It draws a progress bar on a terminal."""
    if not is_shown:
        yield lambda done, total: None
        return
    with click.progressbar(length=1, label="copying", file=sys.stderr) as bar:

        def report(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield report

"""distribute and undistribute: spread the tables over the nodes of Citus, and move them back."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tablegate.gateway.command_line.errors import one_line_errors
from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.command_line.opening import record_command
from tablegate.gateway.configuration.settings import Settings

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
    from tablegate.gateway.store.opening.migrating import migrate as run_migrations
    from tablegate.gateway.store.opening.opening import distribute as run
    from tablegate.gateway.wiring import connect

    _check(settings)
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
    from tablegate.gateway.store.opening.opening import undistribute as run

    _check(settings)
    with one_line_errors():
        _print_steps(run(settings.database), "nothing was distributed")
    record_command(settings)


def list_placement(url: str) -> None:
    """Print the nodes of the tables of a database, if it is distributed."""
    from tablegate.gateway.store.opening.opening import placement_of

    found = placement_of(url)
    if found is None:
        return
    for node in found.nodes:
        click.echo(f"node {node.name}\t{node.shards} shards of rows")
    click.echo(f"by slot\t{', '.join(found.distributed)}")
    click.echo(f"on every node\t{', '.join(found.everywhere)}")
    if found.alone:
        click.echo(f"on one node only\t{', '.join(found.alone)}: run tablegate distribute")


def _check(settings: Settings) -> None:
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

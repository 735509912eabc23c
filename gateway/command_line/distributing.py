"""distribute and undistribute: the tables spread over the nodes of Citus, and brought back."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tablegate.gateway.command_line.errors import told_in_one_line
from tablegate.gateway.command_line.flags import with_settings
from tablegate.gateway.command_line.opening import record_command
from tablegate.gateway.configuration.settings import Settings

# Some for each of many nodes, and more than 256 slots could not fill.
_SHARDS = 32
_MOST_SHARDS = 256


@click.command()
@click.option(
    "--shards",
    type=click.IntRange(1, _MOST_SHARDS),
    default=_SHARDS,
    show_default=True,
    help="Into how many parts; nodes that are added later take some of them over.",
)
@with_settings(every=False)
def distribute(settings: Settings, shards: int) -> None:
    """Spread the tables over the nodes of Citus: at the coordinator, while no gateway runs. May be interrupted, and run again."""
    from tablegate.gateway.store.opening.migrating import migrate as bring_up_to_date
    from tablegate.gateway.store.opening.opening import distribute as run
    from tablegate.gateway.wiring import connect

    _check(settings)
    with told_in_one_line():
        database = connect(settings)
        bring_up_to_date(database)
        database.close()
        _tell(run(settings.database, shards), "everything was distributed already")
    record_command(settings)
    list_placement(settings.database)


@click.command()
@with_settings(every=False)
def undistribute(settings: Settings) -> None:
    """Bring all tables back to the coordinator, while no gateway runs."""
    from tablegate.gateway.store.opening.opening import undistribute as run

    _check(settings)
    with told_in_one_line():
        _tell(run(settings.database), "nothing was distributed")
    record_command(settings)


def list_placement(url: str) -> None:
    """Tell where the tables of a database are, if they are at several nodes."""
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
        raise click.ClickException("only a PostgreSQL database can be distributed")


def _tell(steps: Iterator[str], nothing: str) -> None:
    done = 0
    for step in steps:
        click.echo(step)
        done += 1
    if not done:
        click.echo(nothing)

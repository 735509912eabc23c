"""tables: which there are, as each dialect names them, and what background work is left on them; tables as they were."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import click

from gateway.command_line.flags import with_settings
from gateway.command_line.opening import opened_database
from gateway.model.namespaces import is_reserved
from gateway.security.credentials import SHARED_NAMESPACE
from gateway.settings import Settings

_NAMESPACE = click.option(
    "--namespace", default=SHARED_NAMESPACE, show_default=True, help="Where the table lives."
)


@click.group(invoke_without_command=True)
@with_settings(every=False)
@click.pass_context
def tables(context: click.Context, settings: Settings) -> None:
    """List each table: its name, and in each dialect its name, key and address ("*": any account or instance)."""
    if context.invoked_subcommand is None:
        _list(settings)


@tables.command("keep-history")
@click.argument("table")
@click.option("--days", type=click.IntRange(1, 35), help="For how long.")
@click.option("--off", is_flag=True, help="No longer; what has been kept is forgotten.")
@_NAMESPACE
@with_settings(every=False)
def keep_history(settings: Settings, table: str, days: int | None, off: bool, namespace: str) -> None:
    """Keep what the rows of a table were, so that it can be restored: point-in-time recovery, whatever dialect writes."""
    from gateway.model.commands import KeepHistory

    if off is (days is not None):
        raise click.UsageError("say either --days or --off")
    with opened_database(settings) as opened:
        found = _found(opened, namespace, table)
        kept = _outcome(opened, KeepHistory(found, days))
        rule = kept.rules.history
        click.echo(f"{table}: " + ("no history is kept" if off or rule is None else f"{rule.days} days"))


@tables.command("restore")
@click.argument("table")
@click.argument("target")
@click.option("--at", help="A time in ISO 8601, of UTC unless it says otherwise; without it, now.")
@_NAMESPACE
@with_settings(every=False)
def restore(settings: Settings, table: str, target: str, at: str | None, namespace: str) -> None:
    """Make a table TARGET with the rows that TABLE had at a moment, and its keys, indexes and rules; not its stream. A running
    server brings the rows, or `tablegate sweep`."""
    from gateway.model.commands import RestoreTable
    from gateway.model.restored_tables import like

    ticks = None if at is None else _ticks(at)
    with opened_database(settings) as opened:
        found = _found(opened, namespace, table)
        _outcome(opened, RestoreTable(like(found, namespace, target), found, ticks))
        click.echo(f"{target} is being restored")


def _ticks(at: str) -> int:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError as error:
        raise click.UsageError(f"--at is no time in ISO 8601: {at}") from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) * 10_000


def _found(opened: Any, namespace: str, table: str) -> Any:
    from gateway.model.commands import FindTable

    return _outcome(opened, FindTable(namespace, table))


def _outcome(opened: Any, command: Any) -> Any:
    from gateway.model.errors import GatewayError, MomentNotKept, TableExists, TableMissing

    [outcome] = opened.engine.run([command])
    match outcome:
        case TableMissing(name=name):
            raise click.ClickException(f"there is no table {name}")
        case TableExists(name=name):
            raise click.ClickException(f"there is a table {name} already")
        case MomentNotKept(name=name, earliest_ms=None):
            raise click.ClickException(f"no history of {name} is kept: see tablegate tables keep-history")
        case MomentNotKept(earliest_ms=int(earliest), latest_ms=int(latest)):
            first, last = (datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (earliest, latest))
            raise click.ClickException(f"it can be restored as it was between {first} and {last}")
        case GatewayError():
            raise click.ClickException(repr(outcome))
    return outcome


def _list(settings: Settings) -> None:
    from gateway.store import progress
    from gateway.wiring import listings

    with opened_database(settings) as opened:
        with opened.store.read() as session:
            found = [each for each in opened.store.catalog.all(session) if not is_reserved(each.namespace)]
            pieces = progress.listed(session)
        now_ms = time.time_ns() // 1_000_000
        for table in sorted(found, key=lambda item: (item.namespace, item.name)):
            click.echo(f"{table.name}\n  namespace {table.namespace}, {table.state_at(now_ms).value}")
            for dialect, listed in listings(settings).items():
                name, keys, address = listed(table)
                click.echo(f"  {dialect}\t{name}\t{keys}\t{address}")
            click.echo()
        indexes = {index.id: f"{table.name}/{index.name}" for table in found for index in table.all_indexes}
        names = {table.id: table.name for table in found} | indexes
        for piece in pieces:
            name = names.get(piece.id, f"dropped, id {piece.id}")
            click.echo(f"{piece.work}\t{name}\t{piece.done:,} rows done\tabout {piece.left:,} left")

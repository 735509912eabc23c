"""streams: list change streams and change their number of shards."""

from __future__ import annotations

from typing import Any

import click

from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedGroup
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.security.credentials import SHARED_NAMESPACE


@click.group(cls=SectionedGroup)
def streams() -> None:
    """List and reshard change streams of tables. A running server applies changes at its next write."""


@streams.command("list")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def streams_list(settings: Settings) -> None:
    """List each stream: its table and label, and its shards with their ranges of hashes and parents."""
    from tablegate.gateway.store.streams import changes

    with opened_database(settings) as opened, opened.store.read() as session:
        for stream in changes.all_streams(session):
            state = "enabled" if stream.ended_at_ms is None else "ended"
            click.echo(f"{stream.namespace}\t{stream.table_name}\t{stream.label}\t{state}")
            for shard in changes.shards_of(session, stream.id):
                first, last = shard.hashes
                parents = ", ".join(map(str, shard.parents)) or "none"
                state = "open" if shard.closed_at_ms is None else "closed"
                click.echo(f"\tshard {shard.number}\thashes {first}-{last}\tparents {parents}\t{state}")


@streams.command("reshard")
@click.argument("table")
@click.option("--shards", type=click.IntRange(1, 256), required=True, help="New number of open shards.")
@click.option("--namespace", default=SHARED_NAMESPACE, show_default=True, help="Namespace of the table.")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def streams_reshard(settings: Settings, table: str, shards: int, namespace: str) -> None:
    """Split or merge the shards of a table's stream. More shards allow more parallel readers.

    Records of the old shards stay readable, and readers get them first.
    """
    from tablegate.gateway.model.commands.stream_commands import Reshard
    from tablegate.gateway.model.commands.table_commands import FindTable
    from tablegate.gateway.model.errors import GatewayError, StaleTable
    from tablegate.gateway.security import gate

    with opened_database(settings) as opened:
        outcome: Any = StaleTable()
        while isinstance(outcome, StaleTable):  # the table was changed in between
            [found] = gate.run(opened.engine, [FindTable(namespace, table)], None)
            if isinstance(found, GatewayError):
                raise click.ClickException(
                    f"There is no table {table} in the namespace {namespace}. `tablegate tables` lists all."
                )
            [outcome] = gate.run(opened.engine, [Reshard(found, shards)], None)
        if isinstance(outcome, GatewayError):
            raise click.ClickException(f"Cannot reshard {table}: it has no enabled stream.")
        numbers = ", ".join(str(number) for number, _ in outcome.rules.stream.shards)
        click.echo(f"{table} has {len(outcome.rules.stream.shards)} open shards: {numbers}")

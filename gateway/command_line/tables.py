"""tables: which there are, as each dialect names them, and what background work is left on them."""

from __future__ import annotations

import time

import click

from gateway.command_line.flags import with_settings
from gateway.command_line.opening import opened_database
from gateway.settings import Settings


@click.command()
@with_settings(every=False)
def tables(settings: Settings) -> None:
    """List each table: its name, and in each dialect its name, key and address ("*": any account or instance)."""
    from gateway.store import progress
    from gateway.wiring import listings

    with opened_database(settings) as opened:
        with opened.store.read() as session:
            found = opened.store.catalog.all(session)
            pieces = progress.listed(session)
        now_ms = time.time_ns() // 1_000_000
        for table in sorted(found, key=lambda item: (item.namespace, item.name)):
            click.echo(f"{table.name}\n  namespace {table.namespace}, {table.state_at(now_ms).value}")
            for dialect, listed in listings(settings).items():
                name, keys, address = listed(table)
                click.echo(f"  {dialect}\t{name}\t{keys}\t{address}")
            click.echo()
        indexes = {index.id: f"{table.name}/{index.name}" for table in found for index in table.indexes}
        names = {table.id: table.name for table in found} | indexes
        for piece in pieces:
            name = names.get(piece.id, f"dropped, id {piece.id}")
            click.echo(f"{piece.work}\t{name}\t{piece.done:,} rows done\tabout {piece.left:,} left")

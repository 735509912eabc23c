"""tables: list tables and their background work, keep their history, restore them, and manage their backups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from tablegate.gateway.command_line.administering import (
    ADMINISTRATION_SETTINGS,
    URL_OPTION,
    administration,
)
from tablegate.gateway.command_line.distributing import list_placement
from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedGroup
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.model.tables.backups import RECOVERY_DAYS
from tablegate.gateway.security.credentials import SHARED_NAMESPACE

_NAMESPACE = click.option(
    "--namespace", default=SHARED_NAMESPACE, show_default=True, help="Namespace of the table."
)


@click.group(cls=SectionedGroup, invoke_without_command=True)
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS, "backup_directory")
@click.pass_context
def tables(context: click.Context, settings: Settings, url: str | None) -> None:
    """List each table with its name, key and address in each dialect. * is any account or instance."""
    if context.invoked_subcommand is None:
        _list(settings, url)
    elif url is not None:
        raise click.UsageError(f"{context.invoked_subcommand} opens the database itself: remove --url")


@tables.command("keep-history")
@click.argument("table")
@click.option("--days", type=click.IntRange(1, RECOVERY_DAYS), help="Retention of the history, in days.")
@click.option("--off", is_flag=True, help="Stop keeping history and delete it.")
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def keep_history(settings: Settings, table: str, days: int | None, off: bool, namespace: str) -> None:
    """Keep the history of a table's rows for point-in-time recovery, for writes of all dialects."""
    from tablegate.gateway.model.commands.backup_commands import KeepHistory

    if off is (days is not None):
        raise click.UsageError("Give either --days or --off.")
    with opened_database(settings) as opened:
        found = _found(opened, namespace, table)
        kept = _outcome(opened, KeepHistory(found, days))
        rule = kept.rules.history
        click.echo(f"{table}: " + ("no history is kept" if off or rule is None else f"{rule.days} days"))


@tables.command("restore")
@click.argument("table")
@click.argument("target")
@click.option("--at", metavar="TIME", help="Time to restore, in ISO 8601, UTC by default. Default: now.")
@click.option("--backup", metavar="ID", help="Backup to restore instead of a time: an id of list-backups.")
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def restore(
    settings: Settings, table: str, target: str, at: str | None, backup: str | None, namespace: str
) -> None:
    """Create a table TARGET with the rows of TABLE at a time or in a backup.

    TARGET gets the keys, indexes and settings of TABLE, but no stream. A running server or `tablegate sweep` copies
    the rows.
    """
    from tablegate.gateway.model.commands.backup_commands import RestoreTable
    from tablegate.gateway.model.tables.restored_tables import copied_definition

    if at is not None and backup is not None:
        raise click.UsageError("Give either --at or --backup.")
    ticks = None if at is None else _ticks(at)
    with opened_database(settings) as opened:
        if backup is None:
            source = definition = _found(opened, namespace, table)
        else:
            source = _found_backup(opened, namespace, backup, table)
            definition = source.source
        _outcome(opened, RestoreTable(copied_definition(definition, namespace, target), source, ticks))
        click.echo(f"{target} is being restored")


@tables.command("create-backup")
@click.argument("table")
@click.option("--name", help="Name of the backup. Default: the name of the table.")
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def create_backup(settings: Settings, table: str, name: str | None, namespace: str) -> None:
    """Create a backup of the present rows of TABLE and print its id. A running server or `tablegate sweep` copies the rows."""
    from tablegate.gateway.model.commands.backup_commands import CreateBackup

    with opened_database(settings) as opened:
        backup = _outcome(opened, CreateBackup(_found(opened, namespace, table), name or table))
        click.echo(f"{backup.file_stem} is being created")


@tables.command("list-backups")
@click.argument("table", required=False)
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def list_backups(settings: Settings, table: str | None, namespace: str) -> None:
    """List the backups of a namespace, or of TABLE: id, table, time (UTC), state, number of rows and name.

    The automatic backup of a dropped table with history has its kind instead of a name.
    """
    with opened_database(settings) as opened:
        for each in _backups(opened, namespace, table):
            state = "available" if each.ready else "creating"
            created_at = datetime.fromtimestamp(each.created_at_ms / 1000, UTC).isoformat(
                timespec="milliseconds"
            )
            name = each.name or each.kind.value
            click.echo(
                f"{each.file_stem}\t{each.table_name}\t{created_at}\t{state}\t{each.rows:,} rows\t{name}"
            )


@tables.command("delete-backup")
@click.argument("backup", metavar="ID")
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def delete_backup(settings: Settings, backup: str, namespace: str) -> None:
    """Delete a backup by its id, the first column of list-backups."""
    from tablegate.gateway.model.commands.backup_commands import DeleteBackup

    with opened_database(settings) as opened:
        _outcome(opened, DeleteBackup(_found_backup(opened, namespace, backup)))
        click.echo(f"{backup} is deleted")


@tables.command("recount")
@click.argument("table")
@_NAMESPACE
@with_settings(*DATABASE_SETTINGS, "backup_directory", *AUDIT_SETTINGS)
def recount(settings: Settings, table: str, namespace: str) -> None:
    """Count the rows of a table again, and replace the counts that DescribeTable and quotas read.

    Needed if `doctor --deep` reports wrong row counts, which writes of an earlier release leave behind.
    """
    from tablegate.gateway.model.commands.table_commands import CountRows

    with opened_database(settings) as opened:
        counted = _outcome(opened, CountRows(_found(opened, namespace, table), again=True))
        click.echo(f"{table}: {counted.rows:,} rows, {counted.size_bytes:,} bytes")
        for name, (rows, size_bytes) in counted.indexes.items():
            click.echo(f"{table}/{name}: {rows:,} entries, {size_bytes:,} bytes")


def _backups(opened: Any, namespace: str, table: str | None) -> Iterator[Any]:
    from tablegate.gateway.model.commands.backup_commands import ListBackups

    after = ("", 0, 0)
    while page := _outcome(opened, ListBackups(namespace, after, table_name=table)):
        yield from page
        after = page[-1].place


def _found_backup(opened: Any, namespace: str, backup_id: str, table: str | None = None) -> Any:
    for each in _backups(opened, namespace, table):
        if each.file_stem == backup_id:
            return each
    of_table = f" of {table}" if table else ""
    raise click.ClickException(
        f"There is no backup {backup_id}{of_table}. `tablegate tables list-backups` lists all."
    )


def _ticks(at: str) -> int:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError as error:
        raise click.UsageError(
            f"--at {at} is not a time in ISO 8601, for example 2026-11-22T10:42:00."
        ) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) * 10_000


def _found(opened: Any, namespace: str, table: str) -> Any:
    from tablegate.gateway.model.commands.table_commands import FindTable

    return _outcome(opened, FindTable(namespace, table))


def _outcome(opened: Any, command: Any) -> Any:
    from tablegate.gateway.model.errors import (
        BackupBusy,
        BackupMissing,
        BackupUnreadable,
        GatewayError,
        TableExists,
        TableMissing,
        TimeNotRetained,
    )
    from tablegate.gateway.security import gate

    [outcome] = gate.run(opened.engine, [command], None)
    match outcome:
        case TableMissing(name=name):
            raise click.ClickException(f"There is no table {name}. `tablegate tables` lists all.")
        case TableExists(name=name):
            raise click.ClickException(f"The table {name} exists already. Choose another name.")
        case TimeNotRetained(name=name, earliest_ms=None):
            raise click.ClickException(
                f"No history of {name} is kept. Enable it with `tablegate tables keep-history`."
            )
        case TimeNotRetained(earliest_ms=int(earliest), latest_ms=int(latest)):
            first, last = (datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (earliest, latest))
            raise click.ClickException(f"The history has times between {first} and {last} only. Change --at.")
        case BackupMissing():
            raise click.ClickException("The backup was deleted.")
        case BackupBusy():
            raise click.ClickException(
                "The backup is in use: it is being created or restored. Try again when that has ended."
            )
        case BackupUnreadable(reason=reason):
            raise click.ClickException(reason)
        case GatewayError():
            raise click.ClickException(repr(outcome))
    return outcome


def _list(settings: Settings, url: str | None) -> None:
    with administration(settings, url) as operate:
        listed = operate("GET", "/tables")
    for table in listed["tables"]:
        click.echo(f"{table['name']}\n  namespace {table['namespace']}, {table['state']}")
        for dialect, (name, keys, address) in table["dialects"].items():
            click.echo(f"  {dialect}\t{name}\t{keys}\t{address}")
        click.echo()
    for piece in listed["work"]:
        done, left = f"{piece['rows_done']:,} rows done", f"about {piece['rows_left']:,} left"
        click.echo(f"{piece['work']}\t{piece['name']}\t{done}\t{left}")
    if url is None:
        list_placement(settings.database)

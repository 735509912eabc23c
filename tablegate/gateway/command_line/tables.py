"""tables, streams and jobs: list and administer tables, their backups, their change streams and their unfinished jobs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from tablegate.gateway.command_line.database import (
    ADMINISTRATION_SETTINGS,
    URL_OPTION,
    administration,
    opened_database,
)
from tablegate.gateway.command_line.maintenance import list_placement
from tablegate.gateway.command_line.options import (
    AUDIT_SETTINGS,
    DATABASE_SETTINGS,
    SectionedGroup,
    with_settings,
)
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.features.history.backup_commands import RECOVERY_DAYS
from tablegate.gateway.features.jobs.job_commands import Job
from tablegate.gateway.security.credentials import SHARED_NAMESPACE

_NAMESPACE = click.option(
    "--namespace", default=SHARED_NAMESPACE, show_default=True, help="Namespace of the table."
)


@click.group(cls=SectionedGroup, invoke_without_command=True)
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
@click.pass_context
def tables(context: click.Context, settings: Settings, url: str | None) -> None:
    """List each table with its name, key and address in each dialect. * is any account or instance."""
    if context.invoked_subcommand is None:
        _list_tables(settings, url)
    elif url is not None:
        raise click.UsageError(
            f"Give --url after the subcommand: tables {context.invoked_subcommand} --url {url}"
        )


@tables.command("keep-history")
@click.argument("table")
@click.option("--days", type=click.IntRange(1, RECOVERY_DAYS), help="Retention of the history, in days.")
@click.option("--off", is_flag=True, help="Stop keeping history and delete it.")
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def keep_history(
    settings: Settings, url: str | None, table: str, days: int | None, off: bool, namespace: str
) -> None:
    """Keep the history of a table's rows for point-in-time recovery, for writes of all dialects."""
    if off is (days is not None):
        raise click.UsageError("Give either --days or --off.")
    with administration(settings, url) as operate:
        kept = operate("PUT", "/tables/history", table=table, namespace=namespace, days=days)
        click.echo(f"{table}: " + ("no history is kept" if kept["days"] is None else f"{kept['days']} days"))


@tables.command("restore")
@click.argument("table")
@click.argument("target")
@click.option("--at", metavar="TIME", help="Time to restore, in ISO 8601, UTC by default. Default: now.")
@click.option("--backup", metavar="ID", help="Backup to restore instead of a time: an id of list-backups.")
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def restore(
    settings: Settings,
    url: str | None,
    table: str,
    target: str,
    at: str | None,
    backup: str | None,
    namespace: str,
) -> None:
    """Create a table TARGET with the rows of TABLE at a time or in a backup.

    TARGET gets the keys, indexes and settings of TABLE, but no stream. A running server or `tablegate sweep` copies
    the rows.
    """
    if at is not None and backup is not None:
        raise click.UsageError("Give either --at or --backup.")
    if at is not None:
        _check_time(at)
    with administration(settings, url) as operate:
        operate(
            "POST", "/tables/restore", table=table, target=target, namespace=namespace, at=at, backup=backup
        )
        click.echo(f"{target} is being restored")


@tables.command("create-backup")
@click.argument("table")
@click.option("--name", help="Name of the backup. Default: the name of the table.")
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def create_backup(settings: Settings, url: str | None, table: str, name: str | None, namespace: str) -> None:
    """Create a backup of the present rows of TABLE and print its id. A running server or `tablegate sweep` copies the rows."""
    with administration(settings, url) as operate:
        created = operate("POST", "/backups", table=table, namespace=namespace, name=name)
        click.echo(f"{created['id']} is being created")


@tables.command("list-backups")
@click.argument("table", required=False)
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def list_backups(settings: Settings, url: str | None, table: str | None, namespace: str) -> None:
    """List the backups of a namespace, or of TABLE: id, table, time (UTC), state, number of rows and name.

    The automatic backup of a dropped table with history has its kind instead of a name.
    """
    with administration(settings, url) as operate:
        for each in operate("GET", "/backups", table=table, namespace=namespace)["backups"]:
            created_at = datetime.fromtimestamp(each["created_at_ms"] / 1000, UTC)
            state = "available" if each["is_available"] else "creating"
            click.echo(
                f"{each['id']}\t{each['table']}\t{created_at.isoformat(timespec='milliseconds')}\t{state}"
                f"\t{each['rows']:,} rows\t{each['name']}"
            )


@tables.command("delete-backup")
@click.argument("backup", metavar="ID")
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def delete_backup(settings: Settings, url: str | None, backup: str, namespace: str) -> None:
    """Delete a backup by its id, the first column of list-backups."""
    with administration(settings, url) as operate:
        operate("DELETE", "/backups", id=backup, namespace=namespace)
        click.echo(f"{backup} is deleted")


@tables.command("recount")
@click.argument("table")
@_NAMESPACE
@URL_OPTION
@with_settings(*ADMINISTRATION_SETTINGS)
def recount(settings: Settings, url: str | None, table: str, namespace: str) -> None:
    """Count the rows of a table again, and replace the counts that DescribeTable and quotas read.

    Needed if `doctor --deep` reports wrong row counts.
    """
    with administration(settings, url) as operate:
        counted = operate("POST", "/tables/recount", table=table, namespace=namespace)
        click.echo(f"{table}: {counted['rows']:,} rows, {counted['bytes']:,} bytes")
        for name, entries in counted["indexes"].items():
            click.echo(f"{table}/{name}: {entries['rows']:,} entries, {entries['bytes']:,} bytes")


def _check_time(at: str) -> None:
    try:
        datetime.fromisoformat(at)
    except ValueError as error:
        raise click.UsageError(
            f"--at {at} is not a time in ISO 8601, for example 2026-11-22T10:42:00."
        ) from error


def _list_tables(settings: Settings, url: str | None) -> None:
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


@click.group(cls=SectionedGroup)
def jobs() -> None:
    """List and cancel exports, imports and bulk puts that run in the background."""


@jobs.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each job.")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def jobs_list(settings: Settings, as_json: bool) -> None:
    """List the jobs that have not ended, oldest first: id, kind, namespace, table, start time (UTC) and state."""
    with opened_database(settings) as opened:
        for job in _unfinished_jobs(opened):
            shown = {
                "id": job.id,
                "kind": job.kind,
                "namespace": job.namespace,
                "table": job.table_name,
                "started_at": datetime.fromtimestamp(job.created_at_ms / 1000, UTC).isoformat(
                    timespec="seconds"
                ),
                "state": "cancelling" if job.cancelled else "running",
            }
            click.echo(json.dumps(shown) if as_json else "\t".join(map(str, shown.values())))


@jobs.command("cancel")
@click.argument("job_id", metavar="ID", type=click.IntRange(1, 2**63 - 1))
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def jobs_cancel(settings: Settings, job_id: int) -> None:
    """Cancel a job. ID is the first column of `jobs list`.

    A running server ends the job before it works on other jobs. An import gets the state CANCELLED, and its table has
    the items imported so far. An export gets the state FAILED with the code Cancelled."""
    from tablegate.gateway.features.jobs.job_commands import CancelJob
    from tablegate.gateway.model.errors import GatewayError
    from tablegate.gateway.security import gate

    with opened_database(settings) as opened:
        found = _unfinished_jobs(opened, job_id)
        if not found:
            raise click.ClickException(f"There is no running job {job_id}. `tablegate jobs list` lists them.")
        try:
            gate.run_one(opened.engine, CancelJob(found[0]), None)
        except GatewayError as error:
            raise click.ClickException(f"The database does not answer: {error!r}") from None
        click.echo(f"Job {job_id} is being cancelled.")


def _unfinished_jobs(opened: Any, job_id: int | None = None) -> list[Job]:
    from tablegate.gateway.features.jobs.job_commands import ListUnfinishedJobs
    from tablegate.gateway.security import gate

    return gate.run_one(opened.engine, ListUnfinishedJobs(job_id), None)

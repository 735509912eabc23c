"""jobs: list and cancel unfinished exports, imports and bulk puts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from tablegate.gateway.command_line.flags import AUDIT_SETTINGS, DATABASE_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedGroup
from tablegate.gateway.command_line.opening import opened_database
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.features.jobs.job_commands import Job


@click.group(cls=SectionedGroup)
def jobs() -> None:
    """List and cancel exports, imports and bulk puts that run in the background."""


@jobs.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each job.")
@with_settings(*DATABASE_SETTINGS, *AUDIT_SETTINGS)
def jobs_list(settings: Settings, as_json: bool) -> None:
    """List the jobs that have not ended, oldest first: id, kind, namespace, table, start time (UTC) and state."""
    with opened_database(settings) as opened:
        for job in _unfinished(opened):
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
        found = _unfinished(opened, job_id)
        if not found:
            raise click.ClickException(f"There is no running job {job_id}. `tablegate jobs list` lists them.")
        try:
            gate.run_one(opened.engine, CancelJob(found[0]), None)
        except GatewayError as error:
            raise click.ClickException(f"The database does not answer: {error!r}") from None
        click.echo(f"Job {job_id} is being cancelled.")


def _unfinished(opened: Any, job_id: int | None = None) -> list[Job]:
    from tablegate.gateway.features.jobs.job_commands import ListUnfinishedJobs
    from tablegate.gateway.security import gate

    return gate.run_one(opened.engine, ListUnfinishedJobs(job_id), None)

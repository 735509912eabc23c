"""Common parts of jobs of all kinds: the stored request, the start, and members of descriptions."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.jobs.job_names import JobKind, new_token
from tablegate.adapters.dynamodb.tables.properties import seconds
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.resources import table_arn
from tablegate.gateway.features.jobs.job_commands import Job, StartJob
from tablegate.gateway.model.errors import LimitExceeded, TokenReused

# Requests and descriptions


IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
CANCELLING, CANCELLED = "CANCELLING", "CANCELLED"


def definition_of(call: CallContext, table_name: str, **further: Any) -> dict[str, Any]:
    """Return the stored form of a request."""
    caller, authorization = call.caller, call.authorization
    source = None if authorization is None or authorization.is_unrestricted else list(authorization.source)
    return {
        "request": call.input,
        "token": call.input.get("ClientToken") or new_token(),
        "caller": {
            "access_id": caller.access_id,
            "account": caller.account,
            "region": caller.region,
            "namespace": caller.namespace,
        },
        # The identity of a token with its groups and roles. Empty for a stored key.
        "principals": [] if authorization is None else list(authorization.identity.principals),
        # The source of the request of a restricted caller. None if the caller is unrestricted.
        "source": source,
        "table_arn": table_arn(caller, table_name),
        **further,
    }


async def start_job(kind: JobKind, command: StartJob) -> Job:
    """Start a job and return it.

    Raises ServiceError, TableMissing, TimeNotRetained. Raises TokenReused if the kind has no conflict error of its own.
    """
    try:
        return await command
    except TokenReused:
        if not kind.conflict:
            raise
        text = f"{kind.title} conflict: Duplicate request detected with conflicting parameters"
        raise ServiceError(kind.conflict, text) from None
    except LimitExceeded as error:
        text = f"Subscriber limit exceeded: There is a limit of {error.limit} concurrent {kind.several}"
        raise ServiceError("LimitExceededException", text) from None


def status_of(job: Job) -> str:
    """Return the ImportStatus or BulkOperationStatus of a job. Exports cannot be cancelled."""
    return CANCELLING if job.cancelled and job.ended_at_ms is None else job.state


def times_of(job: Job) -> dict[str, Any]:
    """Return StartTime, and EndTime if the job has ended."""
    times = {"StartTime": seconds(job.created_at_ms)}
    if job.ended_at_ms is not None:
        times["EndTime"] = seconds(job.ended_at_ms)
    return times


def failure_of(job: Job) -> dict[str, str]:
    """Return FailureCode and FailureMessage of a job that has failed, else nothing."""
    failure = job.progress.get("failure")
    return {} if failure is None else {"FailureCode": failure["code"], "FailureMessage": failure["text"]}

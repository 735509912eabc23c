"""Names and documents of jobs of all kinds: ARNs, list tokens, client tokens, the stored request, and descriptions.

An ARN ends in the start time in milliseconds and eight hexadecimal digits (ack-api-quirks, October 2026).
"""

from __future__ import annotations

import hashlib
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.tables.properties import seconds
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import table_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.features.jobs.job_commands import Job, ListJobs, StartJob
from tablegate.gateway.model.commands.row_commands import IdempotencyToken
from tablegate.gateway.model.errors import LimitExceeded, TokenReused
from tablegate.gateway.security.credentials import Scheme

# Names


_TOKEN_CHARACTERS = 255  # longest client token kept as it is, since it is part of a primary key


class JobKind(NamedTuple):
    """A kind of job: its name in the gateway and its part of an ARN after the table's.

    `title` and `several` are its singular and plural in texts. `conflict` is the error for a token that was used for
    another job. If it is empty, the common error applies.
    """

    name: str
    part: str
    title: str
    several: str
    conflict: str = ""

    def arn(self, job: Job) -> str:
        return f"{job.definition['table_arn']}/{self.part}/{job.created_at_ms:014}-{_digits(job)}"

    def id(self, job: Job) -> str:
        return self.arn(job).rpartition("/")[2]


EXPORT = JobKind("dynamodb-export", "export", "Export", "exports", "ExportConflictException")
IMPORT = JobKind("dynamodb-import", "import", "Import", "imports", "ImportConflictException")
BULK = JobKind("dynamodb-bulk-put", "bulk-operation", "Bulk Operation", "bulk operations")


def _digits(job: Job) -> str:
    return f"{job.id & 0xFFFF_FFFF:08x}"


_TABLE = r"arn:aws[a-z-]*:dynamodb:(?P<region>[a-z0-9-]*):(?P<account>[0-9]*):table/(?P<table>[A-Za-z0-9_.-]{3,255})"


class JobLocation(NamedTuple):
    """The region, account and table of an ARN. `is_own` is True if they are the caller's."""

    region: str
    account: str
    table: str
    is_own: bool
    rest: Mapping[str, str]


def location_of(call: CallContext, arn: str, tail: str = "") -> JobLocation | None:
    """Parse an ARN that ends in the pattern `tail`. Return None if it does not match."""
    match = re.fullmatch(_TABLE + tail, arn)
    if match is None:
        return None
    caller = call.caller
    space = call.gateway.credentials.namespace(Scheme.AWS, match["account"], match["region"])
    is_own = space == caller.namespace or (match["account"], match["region"]) == (
        caller.account,
        caller.region,
    )
    return JobLocation(match["region"], match["account"], match["table"], is_own, match.groupdict())


def denied() -> ServiceError:
    """Return the error for a resource of another account."""
    return ServiceError("AccessDeniedException", "Access is denied")


async def find(call: CallContext, kind: JobKind, arn: str, missing: Callable[[bool], ServiceError]) -> Job:
    """Find the job of an ARN.

    `missing` makes the error for an unknown job. Its argument is True if the ARN is of another region. Raises
    ServiceError.
    """
    location = location_of(call, arn, rf"/{kind.part}/(?P<at>[0-9]{{14}})-(?P<digits>[0-9a-f]{{8}})")
    if location is None:
        raise validation(f"Invalid {kind.title} ARN")
    if not location.is_own:
        raise missing(True) if location.account == call.caller.account else denied()
    at_ms = int(location.rest["at"])
    command = ListJobs(
        call.caller.namespace,
        kind.name,
        table_name=location.table,
        from_ms=at_ms,
        before_ms=at_ms + 1,
        path=path_of(arn),
    )
    for job in await command:
        if _digits(job) == location.rest["digits"]:
            return job
    raise missing(False)


def path_of(arn: str) -> str:
    """Return the resource name of an ARN in grants."""
    return arn.partition(":table/")[2]


# Lists

_POSITION = struct.Struct(">8sQQ")
_CHECK_BYTES = 32


def next_token(kind: JobKind, job: Job) -> str:
    """Return the token of the page after a job: 112 hexadecimal digits, which botocore's model demands for imports."""
    packed = _POSITION.pack(kind.part.encode()[:8], job.created_at_ms, job.id)
    return (packed + hashlib.sha256(packed).digest()).hex()


def position_of_token(kind: JobKind, token: str | None) -> tuple[int, int] | None:
    """Return the (time, job id) after which a page begins. Raises ServiceError."""
    if token is None:
        return None
    try:
        data = bytes.fromhex(token)
    except ValueError:
        data = b""
    packed = data[: _POSITION.size]
    if (
        len(data) == _POSITION.size + _CHECK_BYTES
        and hashlib.sha256(packed).digest() == data[_POSITION.size :]
    ):
        part, at_ms, job_id = _POSITION.unpack(packed)
        if part.rstrip(b"\0") == kind.part.encode()[:8]:
            return at_ms, job_id
    raise validation(
        f"{error_texts.INVALID_REQUEST}Provided nextToken is invalid: {token[: limits.ECHO_CHARACTERS]}"
    )


async def page(
    call: CallContext,
    kind: JobKind,
    size: int | None,
    token: str | None,
    table: str | None = None,
    since_ms: int = 0,
) -> tuple[list[Job], dict[str, str]]:
    """Return a page of jobs, newest first, and the NextToken if more follow.

    Jobs that the caller may not list are omitted, so a page may be empty. Raises ServiceError.
    """
    limit = size or limits.JOBS_PAGE
    oldest = call.gateway.now_ms() - limits.JOBS_LISTED_MS
    command = ListJobs(
        call.caller.namespace,
        kind.name,
        position_of_token(kind, token),
        limit + 1,
        table,
        max(since_ms, oldest),
    )
    jobs = await command
    next_page = {"NextToken": next_token(kind, jobs[limit - 1])} if len(jobs) > limit else {}
    return [job for job in jobs[:limit] if call.can_list(path_of(kind.arn(job)))], next_page


# Beginning


def token_of(call: CallContext, kind: JobKind, digested: Any) -> IdempotencyToken | None:
    """Return the client's token, if any, with the digest of the request."""
    name = call.input.get("ClientToken")
    if name is None:
        return None
    if len(name) > _TOKEN_CHARACTERS:
        name = hashlib.sha256(name.encode()).hexdigest()
    digest = hashlib.sha256(orjson.dumps(digested, option=orjson.OPT_SORT_KEYS)).digest()
    return IdempotencyToken(f"{kind.name}/{call.caller.namespace}", name, digest, limits.JOB_TOKEN_MS)


def new_token() -> str:
    """Return a token for a request without one."""
    return str(uuid.uuid4())


def require_object_store(call: CallContext) -> None:
    """Reject the operation if the settings name no object store. Raises ServiceError."""
    if not call.gateway.settings.has_object_store:
        text = f"{call.operation} is not switched on in this server: start it with --s3-endpoint-url or --s3-folder"
        raise validation(error_texts.INVALID_REQUEST + text)


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

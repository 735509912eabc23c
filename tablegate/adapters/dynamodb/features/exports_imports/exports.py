"""ExportTableToPointInTime, DescribeExport, ListExports.

Order of checks, texts and absent members: ack-api-quirks (live service, October 2026). Shapes: botocore 1.44.5.
export_worker.py does the work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses
from tablegate.adapters.dynamodb.features.exports_imports import job_documents
from tablegate.adapters.dynamodb.tables.properties import seconds
from tablegate.adapters.dynamodb.tables.table_definitions import table_id
from tablegate.adapters.dynamodb.values.keys import shown_schema
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.jobs.job_commands import Job, StartJob
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import TableMissing, TimeNotRetained
from tablegate.gateway.model.expressions.predicates import ALWAYS, And, Predicate
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange
from tablegate.gateway.model.tables.tables import HistoryRule, State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS

INCREMENTAL = "INCREMENTAL_EXPORT"
NEW_AND_OLD = "NEW_AND_OLD_IMAGES"
# Ids, aliases and ARNs of keys (AWS KMS API reference, "KeyId"). The service's own expression is not public.
_KEY = re.compile(r"[a-zA-Z0-9:/_.-]+")


async def export_table(call: CallContext) -> Answer:
    """ExportTableToPointInTime: start an export. Raises ServiceError, TimeNotRetained."""
    _check_members(call)
    arguments, arn = call.input, call.input["TableArn"]
    location = _place(call, arn)
    job_documents.require_object_store(call)
    try:
        table = await FindTable(call.caller.namespace, location.table)
        if table.state_at(call.gateway.now_ms()) is State.CREATING:
            raise TableMissing(table.name)
        window = _window(call, table)
        at_ms = None if window is not None else _moment(call, table)
        definition = _definition(call, table, window, at_ms)
        job = await job_documents.start_job(
            job_documents.EXPORT,
            StartJob(
                job_documents.EXPORT.name,
                call.caller.namespace,
                table.name,
                definition,
                job_documents.IN_PROGRESS,
                limits.EXPORTS_AT_ONCE,
                job_documents.token_of(call, job_documents.EXPORT, arguments),
                table,
                None if at_ms is None else at_ms * TICKS_PER_MS,
                window,
            ),
        )
    except TableMissing:
        raise _table_missing(arn) from None
    except TimeNotRetained as refused:
        if refused.earliest_ms is None:
            raise
        raise _invalid_time("Export Time is invalid") from None
    return {"ExportDescription": describe(job)}


async def describe_export(call: CallContext) -> Answer:
    """DescribeExport: the progress of an export. Raises ServiceError."""
    arn = call.input["ExportArn"]

    def missing(elsewhere: bool) -> ServiceError:
        tail = "Invalid export arn" if elsewhere else f"Export not found: {arn}"
        return ServiceError("ExportNotFoundException", f"Export not found: {tail}")

    job = await job_documents.find(call, job_documents.EXPORT, arn, missing)
    return {"ExportDescription": describe(job)}


async def list_exports(call: CallContext) -> Answer:
    """ListExports: a page of exports, newest first.

    With TableArn, those of the existing table of that name. Raises ServiceError.
    """
    arguments = call.input
    name, since_ms = None, 0
    if "TableArn" in arguments:
        name = _place(call, arguments["TableArn"]).table
        [table] = await all_of([FindTable(call.caller.namespace, name)])
        if not isinstance(table, Table):
            return {"ExportSummaries": []}
        since_ms = table.created_at_ms
    jobs, next_token = await job_documents.page(
        call, job_documents.EXPORT, arguments.get("MaxResults"), arguments.get("NextToken"), name, since_ms
    )
    summaries = [
        {
            "ExportArn": job_documents.EXPORT.arn(job),
            "ExportStatus": job.state,
            "ExportType": job.definition["request"].get("ExportType", "FULL_EXPORT"),
        }
        for job in jobs
    ]
    return {"ExportSummaries": summaries, **next_token}


# Checks


def _check_members(call: CallContext) -> None:
    arguments = call.input
    spec, kind = arguments.get("IncrementalExportSpecification"), arguments.get("ExportType")
    text = ""
    if spec is not None and kind is None:
        text = (
            "Export Type expected to be Incremental Export when incremental export specification is provided"
        )
    elif spec is not None and kind != INCREMENTAL:
        text = "When Export Type is Full Export , Incremental Export Specification should not be provided"
    elif spec is None and kind == INCREMENTAL:
        text = "Incremental Export Specification expected when export type is set as Incremental Export"
    elif spec is not None and "ExportFromTime" not in spec:
        text = "ExportFromTime must be provided in IncrementalExportSpecification"
    elif "S3SseKmsKeyId" in arguments and arguments.get("S3SseAlgorithm") != "KMS":
        text = "KMS Key Id is not supported for this encryption type"
    elif not _KEY.fullmatch(arguments.get("S3SseKmsKeyId", "key")):
        constraint = f"Member must satisfy regular expression pattern: {_KEY.pattern}"
        key_id = arguments["S3SseKmsKeyId"]
        text = f"1 validation error detected: Value '{key_id}' at 's3SseKmsKeyId' failed to satisfy constraint: {constraint}"
    elif arguments.get("FilterSpecification") == {}:
        text = "Invalid FilterSpecification: The specification can not be empty"
    if text:
        raise validation(error_texts.INVALID_REQUEST + text)


def _place(call: CallContext, arn: str) -> job_documents.JobLocation:
    location = job_documents.location_of(call, arn)
    if location is None:
        if not arn:
            raise validation("Invalid TableArn: Invalid Table ARN")
        if job_documents.location_of(call, arn, "/.+") is not None:
            raise validation(f"{error_texts.INVALID_REQUEST}Table ARN is invalid.")
        raise validation(f"{error_texts.INVALID}tableArn is not a valid ARN")
    if not location.is_own:
        raise _table_missing(arn) if location.account == call.caller.account else job_documents.denied()
    return location


def _table_missing(arn: str) -> ServiceError:
    return ServiceError("TableNotFoundException", f"Table not found: {arn}")


def _invalid_time(text: str) -> ServiceError:
    return ServiceError("InvalidExportTimeException", text)


def _history(call: CallContext, table: Table) -> HistoryRule:
    """Return the history retention of a table to export. Raises ServiceError, TimeNotRetained."""
    rule = table.rules.history
    if rule is None or rule.days is None:
        raise TimeNotRetained(table.name)
    selection_of(call, call.input, table)
    return rule


def _moment(call: CallContext, table: Table) -> int | None:
    """Return the time of a full export, or None for now. Raises ServiceError, TimeNotRetained."""
    rule = _history(call, table)
    requested = call.input.get("ExportTime")
    if requested is None:
        return None
    now_ms = call.gateway.now_ms()
    at_ms = _milliseconds(requested)
    if not rule.earliest_ms(now_ms) <= at_ms <= now_ms:
        raise _invalid_time("Export Time is invalid")
    return at_ms


class ExportSelection(NamedTuple):
    """The items that a FilterSpecification selects.

    It has a range of keys, a filter, and the projected attributes (None for all).
    """

    bounds: KeyRange = EVERYTHING
    predicate: Predicate = ALWAYS
    clauses: ReadClauses | None = None


def selection_of(call: CallContext, arguments: Mapping[str, Any], table: Table) -> ExportSelection:
    """Return the selection of an export request. Raises ServiceError."""
    spec = arguments.get("FilterSpecification")
    if spec is None:
        return ExportSelection()
    clauses = ReadClauses(call, spec)
    clauses.check_projection(table)
    if "KeyConditionExpression" not in spec:
        return ExportSelection(EVERYTHING, clauses.filter(table), clauses)
    schema = shown_schema(table.key_schema)
    bounds = clauses.key_range(schema)
    predicate = clauses.filter(table, schema.names)
    if schema is not table.key_schema:
        bounds, composite_filter = clauses.composite_range(table.key_schema)
        predicate = And((composite_filter, predicate))
    return ExportSelection(bounds, predicate, clauses)


def _window(call: CallContext, table: Table) -> tuple[int, int] | None:
    """Return the window of an incremental export in ticks, or None for a full export.

    Raises ServiceError, TimeNotRetained.
    """
    spec = call.input.get("IncrementalExportSpecification")
    if spec is None:
        return None
    now_ms = call.gateway.now_ms()
    from_ms = _milliseconds(spec["ExportFromTime"])
    to_ms = _milliseconds(spec["ExportToTime"]) if "ExportToTime" in spec else now_ms
    period = "Difference between export period from time and export period to time is"
    text = "Incremental export period from time cannot be less than the table creation time"
    too_early = _invalid_time(f"{text} : {_iso(from_ms)}")
    if from_ms < table.created_at_ms:
        raise too_early
    if from_ms < _history(call, table).earliest_ms(now_ms) or from_ms > to_ms:
        raise too_early
    if to_ms > now_ms:
        text = "Incremental export period to time cannot be greater than the current time"
        raise _invalid_time(f"{text} : {_iso(to_ms)}")
    if to_ms - from_ms < limits.EXPORT_WINDOW_LEAST_MS:
        raise _invalid_time(f"{period} less than 15 minutes")
    if to_ms - from_ms > limits.EXPORT_WINDOW_MOST_MS:
        raise _invalid_time(f"{period} greater than 24 hours")
    return from_ms * TICKS_PER_MS, to_ms * TICKS_PER_MS


def _milliseconds(at: float) -> int:
    return round(max(0.0, min(at, limits.LATEST_SECONDS)) * 1000)


def _iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _definition(
    call: CallContext, table: Table, window: tuple[int, int] | None, at_ms: int | None
) -> dict[str, Any]:
    window_ms = None if window is None else [tick // TICKS_PER_MS for tick in window]
    return job_documents.definition_of(
        call, table.name, table_id=table_id(table), at_ms=at_ms, window=window_ms
    )


# Descriptions


def describe(job: Job) -> dict[str, Any]:
    """Return the ExportDescription of an export."""
    definition, request, progress = job.definition, job.definition["request"], job.progress
    description: dict[str, Any] = {
        "ExportArn": job_documents.EXPORT.arn(job),
        "ExportStatus": job.state,
        **job_documents.times_of(job),
        "TableArn": definition["table_arn"],
        "TableId": definition["table_id"],
        "ClientToken": definition["token"],
        "S3SseAlgorithm": "AES256",
        "ExportFormat": "DYNAMODB_JSON",
        "DestinationType": "S3",
    }
    description |= {name: request[name] for name in _ECHOED if name in request}
    if definition["window"] is None:
        at_ms = job.created_at_ms if definition["at_ms"] is None else definition["at_ms"]
        description["ExportTime"] = seconds(at_ms)
    else:
        from_ms, to_ms = definition["window"]
        description["IncrementalExportSpecification"] = {
            "ExportFromTime": seconds(from_ms),
            "ExportToTime": seconds(to_ms),
            "ExportViewType": view_of(job),
        }
    if job.state == job_documents.COMPLETED:
        description["ExportManifest"] = progress["manifest"]
        description["ItemCount"] = progress["items"]
        description["BilledSizeBytes"] = progress["billed"]
    return description | job_documents.failure_of(job)


_ECHOED = (
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseAlgorithm",
    "S3SseKmsKeyId",
    "ExportFormat",
    "ExportType",
    "FilterSpecification",
)


def view_of(job: Job) -> str:
    """Return the ExportViewType of an incremental export."""
    spec = job.definition["request"]["IncrementalExportSpecification"]
    return str(spec.get("ExportViewType", NEW_AND_OLD))

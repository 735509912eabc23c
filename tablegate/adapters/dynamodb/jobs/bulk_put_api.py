"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations, CancelBulkOperation.

Shapes and states: botocore 1.44.5 and its documentation. The service's error texts are not public. bulk_put_worker.py
does the work.
"""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.export_files import ion
from tablegate.adapters.dynamodb.jobs import job_documents, job_names
from tablegate.adapters.dynamodb.tables.descriptions import table_id
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.features.jobs.job_commands import CancelJob, Job, StartJob
from tablegate.gateway.model.errors import TableBusy
from tablegate.gateway.model.tables.tables import State

# Operations


WITH_ERRORS = "COMPLETED_WITH_ERRORS"


async def start_bulk_put_items(call: CallContext) -> Answer:
    """StartBulkPutItems: start to put the items of objects into a table.

    Raises ServiceError, TableMissing, TableBusy, TokenReused, NotInstalled.
    """
    job_names.require_object_store(call)
    arguments = call.input
    report = arguments["OutputS3Configuration"]
    if "S3Bucket" not in report:
        raise validation(f"{messages.INVALID_REQUEST}S3Bucket must be provided in OutputS3Configuration")
    if "S3SseKmsKeyId" in report and report.get("S3SseAlgorithm") != "KMS":
        raise validation(f"{messages.INVALID_REQUEST}KMS Key Id is not supported for this encryption type")
    if arguments["InputS3Configuration"]["InputFormat"] == "ION":
        ion.reader()
    table = await find_table(call)
    state = table.state_at(call.gateway.now_ms())
    if state not in (State.ACTIVE, State.UPDATING):
        raise TableBusy(table.name, state.value)
    if not all(index.filled for index in table.indexes):
        raise TableBusy(table.name, State.UPDATING.value)
    if table.rules.replication is not None:
        # Developer guide, "Bulk put items considerations". The text is our own.
        raise validation(f"{messages.INVALID_REQUEST}Bulk put items is not supported for global tables")
    definition = job_documents.definition_of(call, table.name, table_id=table_id(table), number=table.id)
    start = StartJob(
        job_names.BULK.name,
        call.caller.namespace,
        table.name,
        definition,
        job_documents.IN_PROGRESS,
        limits.BULK_PUTS_AT_ONCE,
        job_names.token_of(call, job_names.BULK, arguments),
        stores_rows=True,
    )
    return {"BulkOperationDescription": describe(await job_documents.start_job(job_names.BULK, start))}


async def describe_bulk_operation(call: CallContext) -> Answer:
    """DescribeBulkOperation: the progress of a bulk put. Raises ServiceError."""
    job = await _find(call)
    return {"BulkOperationDescription": describe(job)}


async def list_bulk_operations(call: CallContext) -> Answer:
    """ListBulkOperations: a page of bulk puts, newest first. Raises ServiceError."""
    arguments = call.input
    jobs, next_token = await job_names.page(
        call, job_names.BULK, arguments.get("MaxResults"), arguments.get("NextToken")
    )
    return {"BulkOperationsSummaryList": [_summary(job) for job in jobs], **next_token}


async def cancel_bulk_operation(call: CallContext) -> Answer:
    """CancelBulkOperation: stop a bulk put.

    Items put already stay. If it has ended, its state is returned. Raises ServiceError.
    """
    job = await _find(call)
    cancelled = await CancelJob(job, job_names.path_of(call.input["BulkOperationArn"]))
    state = job_documents.status_of(job if cancelled is None else cancelled)
    return {"BulkOperationArn": call.input["BulkOperationArn"], "BulkOperationStatus": state}


async def _find(call: CallContext) -> Job:
    arn = call.input["BulkOperationArn"]

    def missing(elsewhere: bool) -> ServiceError:
        text = f"Requested resource not found: Bulk operation: {arn} not found"
        return ServiceError("ResourceNotFoundException", text)

    return await job_names.find(call, job_names.BULK, arn, missing)


def _summary(job: Job) -> dict[str, Any]:
    return {
        "BulkOperationArn": job_names.BULK.arn(job),
        "BulkOperationStatus": job_documents.status_of(job),
        **job_documents.times_of(job),
    }


def describe(job: Job) -> dict[str, Any]:
    """Return the BulkOperationDescription of a bulk put."""
    definition, request, progress = job.definition, job.definition["request"], job.progress
    description = {
        **_summary(job),
        "TableDetails": [{"TableName": job.table_name, "TableId": definition["table_id"]}],
        "ClientToken": definition["token"],
        "InputS3Configuration": request["InputS3Configuration"],
        "OutputS3Configuration": request["OutputS3Configuration"],
        "ProcessedItemCount": progress.get("processed", 0),
        "ProcessedInputBytes": progress.get("bytes", 0),
        "FailedItemCount": progress.get("failed", 0),
        "PerformanceTier": request.get("PerformanceTier", "STANDARD"),
    }
    if "MaxWriteRequestUnits" in request:
        description["MaxWriteRequestUnits"] = request["MaxWriteRequestUnits"]
    if "total" in progress:
        description["TotalInputBytes"] = progress["total"]
        description["BulkOperationUsage"] = [_usage(job.table_name, progress["usage"])]
    return description | job_documents.failure_of(job)


def _usage(name: str, usage: dict[str, Any]) -> dict[str, Any]:
    local, others = usage["local"], usage["global"]
    total_bytes = usage["table"] + sum(local.values()) + sum(others.values())
    members: dict[str, Any] = {
        "TableName": name,
        "BulkPutBytes": total_bytes,
        "Table": {"BulkPutBytes": usage["table"]},
    }
    for member, sizes in (("LocalSecondaryIndexes", local), ("GlobalSecondaryIndexes", others)):
        if sizes:
            members[member] = {index: {"BulkPutBytes": size} for index, size in sizes.items()}
    return members

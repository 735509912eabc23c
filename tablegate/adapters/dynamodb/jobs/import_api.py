"""ImportTable, DescribeImport, ListImports.

Order of checks, texts and default members: ack-api-quirks (live service, October 2026). Shapes: botocore 1.44.5.
import_worker.py does the work.
"""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.export_files import ion
from tablegate.adapters.dynamodb.jobs import job_documents, job_names
from tablegate.adapters.dynamodb.tables.descriptions import table_id_of
from tablegate.adapters.dynamodb.tables.tables import new_table
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.coroutines import all_of
from tablegate.gateway.features.jobs.job_commands import Job, ListJobs, StartJob
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import Table

# Operations


async def import_table(call: CallContext) -> Answer:
    """ImportTable: start an import into a new table. Raises ServiceError, NotInstalled."""
    job_names.require_object_store(call)
    arguments = call.input
    parameters = arguments["TableCreationParameters"]
    name = parameters["TableName"]
    new_table(call._replace(input=dict(parameters)))
    if arguments["InputFormat"] == "ION":
        ion.reader()
    # A token covers the name of the table only. Other changes to a request with the same token are not detected.
    token = job_names.token_of(call, job_names.IMPORT, name)
    [existing] = await all_of([FindTable(call.caller.namespace, name)])
    if isinstance(existing, Table):
        running = None
        if token is not None:
            running = await _running_import(call, existing)
        if running is None or running.definition["token"] != arguments["ClientToken"]:
            raise ServiceError("ResourceInUseException", f"Table already exists: {name}")
        return {"ImportTableDescription": describe(running)}
    start = StartJob(
        job_names.IMPORT.name,
        call.caller.namespace,
        name,
        job_documents.definition_of(call, name),
        job_documents.IN_PROGRESS,
        limits.IMPORTS_AT_ONCE,
        token,
        makes_table=True,
        stores_rows=True,
    )
    return {"ImportTableDescription": describe(await job_documents.start_job(job_names.IMPORT, start))}


async def _running_import(call: CallContext, table: Table) -> Job | None:
    jobs = await ListJobs(call.caller.namespace, job_names.IMPORT.name, table_name=table.name, limit=50)
    return next((job for job in jobs if job.id == table.id and job.ended_at_ms is None), None)


async def describe_import(call: CallContext) -> Answer:
    """DescribeImport: the progress of an import. Raises ServiceError."""
    arn = call.input["ImportArn"]

    def missing(elsewhere: bool) -> ServiceError:
        return ServiceError("ImportNotFoundException", f"Import not found: {arn}")

    job = await job_names.find(call, job_names.IMPORT, arn, missing)
    return {"ImportTableDescription": describe(job)}


async def list_imports(call: CallContext) -> Answer:
    """ListImports: a page of imports, newest first. Raises ServiceError."""
    arguments = call.input
    name = None
    if "TableArn" in arguments:
        location = job_names.location_of(call, arguments["TableArn"])
        if location is None:
            raise validation(f"{messages.INVALID}tableArn is not a valid ARN")
        if not location.is_own:
            if location.account != call.caller.account:
                raise job_names.denied()
            return {"ImportSummaryList": []}
        name = location.table
    jobs, next_token = await job_names.page(
        call, job_names.IMPORT, arguments.get("PageSize"), arguments.get("NextToken"), name
    )
    return {"ImportSummaryList": [_summary(job) for job in jobs], **next_token}


# Descriptions


def describe(job: Job) -> dict[str, Any]:
    """Return the ImportTableDescription of an import."""
    request, progress = job.definition["request"], job.progress
    parameters = request["TableCreationParameters"]
    description = {
        **_summary(job),
        "TableId": table_id_of(job.id, job.created_at_ms, parameters["TableName"]),
        "ClientToken": job.definition["token"],
        "ErrorCount": progress.get("errors", 0),
        "InputCompressionType": request.get("InputCompressionType", "NONE"),
        "TableCreationParameters": parameters,
        "ProcessedSizeBytes": progress.get("bytes", 0),
        "ProcessedItemCount": progress.get("processed", 0),
        "ImportedItemCount": progress.get("imported", 0),
    }
    if "InputFormatOptions" in request:
        description["InputFormatOptions"] = request["InputFormatOptions"]
    return (
        description if job.state == job_documents.COMPLETED else description | job_documents.failure_of(job)
    )


def _summary(job: Job) -> dict[str, Any]:
    request, caller = job.definition["request"], job.definition["caller"]
    partition = job.definition["table_arn"].split(":")[1]
    group = f"arn:{partition}:logs:{caller['region']}:{caller['account']}:log-group:/aws-dynamodb/imports:*"
    return {
        "ImportArn": job_names.IMPORT.arn(job),
        "ImportStatus": job_documents.status_of(job),
        "TableArn": job.definition["table_arn"],
        "S3BucketSource": {"S3BucketOwner": caller["account"], **request["S3BucketSource"]},
        "CloudWatchLogGroupArn": group,
        "InputFormat": request["InputFormat"],
        **job_documents.times_of(job),
    }

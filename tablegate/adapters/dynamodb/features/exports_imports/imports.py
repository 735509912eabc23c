"""ImportTable, DescribeImport, ListImports, and the background work of an import.

Order of checks, texts and default members: ack-api-quirks (live service, October 2026). Shapes: botocore 1.44.5.

The worker creates the table, records become items, then the table is opened. One transaction holds the stored items and
the position in the records. So a server that is killed neither loses a record nor counts it twice. A record that cannot
be stored is counted and logged. The import then ends as FAILED, with all other items in the table (ack-api-quirks, October
2026).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.export_files import line_formats
from tablegate.adapters.dynamodb.export_files.compression import Compression
from tablegate.adapters.dynamodb.export_files.records import ImportFormat
from tablegate.adapters.dynamodb.features.exports_imports import job_documents, object_worker
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import (
    CANCELLED,
    COMPLETED,
    FAILED,
    IMPORT,
)
from tablegate.adapters.dynamodb.features.exports_imports.object_worker import (
    ObjectWorker,
    bucket_of,
    call_of,
    failure,
    run_command,
)
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.tables.table_definitions import table_id_of
from tablegate.adapters.dynamodb.tables.tables import new_table
from tablegate.adapters.dynamodb.values.values import ParsedItem, is_too_large, item_of
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.error_texts import bare
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job, ListJobs, StartJob
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import GatewayError, TableBusy, TableExists, TableMissing
from tablegate.gateway.model.tables.tables import Table

# Operations


async def import_table(call: CallContext) -> Answer:
    """ImportTable: start an import into a new table. Raises ServiceError, NotInstalled."""
    job_documents.require_object_store(call)
    arguments = call.input
    parameters = arguments["TableCreationParameters"]
    name = parameters["TableName"]
    new_table(call._replace(input=dict(parameters)))
    if arguments["InputFormat"] == "ION":
        line_formats.ion_reader()
    # A token covers the name of the table only. Other changes to a request with the same token are not detected.
    token = job_documents.token_of(call, job_documents.IMPORT, name)
    [existing] = await all_of([FindTable(call.caller.namespace, name)])
    if isinstance(existing, Table):
        running = None
        if token is not None:
            running = await _running_import(call, existing)
        if running is None or running.definition["token"] != arguments["ClientToken"]:
            raise ServiceError("ResourceInUseException", f"Table already exists: {name}")
        return {"ImportTableDescription": describe(running)}
    start = StartJob(
        job_documents.IMPORT.name,
        call.caller.namespace,
        name,
        job_documents.definition_of(call, name),
        job_documents.IN_PROGRESS,
        limits.IMPORTS_AT_ONCE,
        token,
        makes_table=True,
        stores_rows=True,
    )
    return {"ImportTableDescription": describe(await job_documents.start_job(job_documents.IMPORT, start))}


async def _running_import(call: CallContext, table: Table) -> Job | None:
    jobs = await ListJobs(call.caller.namespace, job_documents.IMPORT.name, table_name=table.name, limit=50)
    return next((job for job in jobs if job.id == table.id and job.ended_at_ms is None), None)


async def describe_import(call: CallContext) -> Answer:
    """DescribeImport: the progress of an import. Raises ServiceError."""
    arn = call.input["ImportArn"]

    def missing(elsewhere: bool) -> ServiceError:
        return ServiceError("ImportNotFoundException", f"Import not found: {arn}")

    job = await job_documents.find(call, job_documents.IMPORT, arn, missing)
    return {"ImportTableDescription": describe(job)}


async def list_imports(call: CallContext) -> Answer:
    """ListImports: a page of imports, newest first. Raises ServiceError."""
    arguments = call.input
    name = None
    if "TableArn" in arguments:
        location = job_documents.location_of(call, arguments["TableArn"])
        if location is None:
            raise validation(f"{error_texts.INVALID}tableArn is not a valid ARN")
        if not location.is_own:
            if location.account != call.caller.account:
                raise job_documents.denied()
            return {"ImportSummaryList": []}
        name = location.table
    jobs, next_token = await job_documents.page(
        call, job_documents.IMPORT, arguments.get("PageSize"), arguments.get("NextToken"), name
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
        "ImportArn": job_documents.IMPORT.arn(job),
        "ImportStatus": job_documents.status_of(job),
        "TableArn": job.definition["table_arn"],
        "S3BucketSource": {"S3BucketOwner": caller["account"], **request["S3BucketSource"]},
        "CloudWatchLogGroupArn": group,
        "InputFormat": request["InputFormat"],
        **job_documents.times_of(job),
    }


# Background work


log = logging.getLogger("tablegate")

_COUNTED_OBJECTS = 10_000
"""Maximum number of objects whose sizes are added up for the expected end."""

_ITEM_ERRORS = (
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details."
)


class ImportWorker(ObjectWorker[object_worker.SourceObjects]):
    """The worker that runs imports (gateway/features/jobs/job_runner.py)."""

    name = "import"

    def _carry_on(self, job: Job, limit: int) -> int:
        return self._load(job, limit) if job.progress.get("is_made") else self._begin(job)

    def _fail(self, job: Job, code: str, text: str) -> None:
        self._end(job, self._table(job), failure(code, text))

    def _end_cancelled(self, job: Job) -> None:
        """End the import. The items stored so far stay in its table."""
        self._end(job, self._table(job), failure(*self._cancellation), CANCELLED)

    def _begin(self, job: Job) -> int:
        """Check that the bucket exists, and create the table."""
        source = _source(job)
        objects = list(islice(self._store.listed(source.bucket, source.prefix), _COUNTED_OBJECTS + 1))
        is_counted = len(objects) <= _COUNTED_OBJECTS
        total = {"total": sum(each.size_bytes for each in objects)} if is_counted else {}
        create_table = new_table(
            call_of(self._gateway, job, "ImportTable", job.definition["request"]["TableCreationParameters"])
        )
        try:
            run_command(
                self._gateway, AdvanceJob(job, {**_NOTHING, **total, "is_made": True}, makes=create_table)
            )
        except (TableExists, TableBusy):
            text = f"Table already exists: {create_table.name}"
            self._end(job, None, failure("TableAlreadyExists", text))
        return 0

    def _table(self, job: Job) -> Table | None:
        """Return the table being filled, or None if it is gone."""
        try:
            table = run_command(self._gateway, FindTable(job.namespace, job.table_name))
        except TableMissing:
            return None
        return table if table.id == job.id else None

    def _load(self, job: Job, limit: int) -> int:
        table = self._table(job)
        if table is None:
            self._end(job, None, failure("TableNotFound", f"Table not found: {job.table_name}"))
            return 0
        source = self._open.get(job.id)
        if source is None:
            begin = object_worker.SourceCursor(*job.progress["cursor"])
            source = self._open[job.id] = object_worker.SourceObjects(
                self._store, _source(job), begin, self._check_readable(job)
            )
        located_records, cursor, is_over, units = source.take(limit)
        groups, sources, errors = self._writes(job, table, located_records)
        new_progress = {
            **job.progress,
            "processed": job.progress["processed"] + len(located_records),
            "cursor": list(cursor),
            "bytes": cursor.done_bytes,
        }

        def settled(answers: list[Any]) -> Mapping[str, Any]:
            rejections = [
                (located, answer)
                for located, answer in zip(sources, answers, strict=True)
                if isinstance(answer, GatewayError)
            ]
            for located, answer in rejections:
                self._log(job, located, _text_of(answer), job.progress["errors"] + errors)
            return {
                **new_progress,
                "imported": job.progress["imported"] + len(answers) - len(rejections),
                "errors": job.progress["errors"] + errors + len(rejections),
            }

        saved_job = run_command(self._gateway, AdvanceJob(job, groups=tuple(groups), settle=settled))
        if saved_job is None:
            self.forget(job.id)
        elif is_over:
            self.forget(job.id)
            failed = failure("ItemValidationError", _ITEM_ERRORS) if saved_job.progress["errors"] else None
            self._end(saved_job, table, failed)
        return units

    def _writes(
        self, job: Job, table: Table, located_records: list[object_worker.LocatedRecord]
    ) -> tuple[list[WriteGroup], list[object_worker.LocatedRecord], int]:
        """Return a group for each valid record, the records of these groups, and the number of invalid records."""
        groups: list[WriteGroup] = []
        sources: list[object_worker.LocatedRecord] = []
        errors = 0
        for located in located_records:
            try:
                groups.append(WriteGroup((put_write(table, checked_item(located), None),)))
                sources.append(located)
            except (ServiceError, GatewayError) as error:
                self._log(job, located, _text_of(error), job.progress["errors"] + errors)
                errors += 1
        return groups, sources, errors

    def _log(self, job: Job, located: object_worker.LocatedRecord, text: str, number: int) -> None:
        """Log an event in the form of the service's log group ("Validation errors" in the developer guide on imports)."""
        if number < limits.LOGGED_ERRORS:
            bucket = job.definition["request"]["S3BucketSource"]["S3Bucket"]
            facts = {
                "itemS3Pointer": {"bucket": bucket, "key": located.key, "itemIndex": located.number - 1},
                "importArn": IMPORT.arn(job),
                "errorMessages": [text],
            }
            log.info("an item was not imported", extra={"facts": facts})

    def _end(
        self, job: Job, table: Table | None, failed: Mapping[str, str] | None, state: str = FAILED
    ) -> None:
        """End the import. `failed`: the reason for `state`. None if it is COMPLETED."""
        progress = {**_NOTHING, **job.progress}
        if failed is not None:
            progress["failure"] = failed
        state = COMPLETED if failed is None else state
        run_command(self._gateway, AdvanceJob(job, progress, opens=table, state=state, ended=True))


_NOTHING: Mapping[str, Any] = {
    "cursor": list(object_worker.SourceCursor()),
    "processed": 0,
    "imported": 0,
    "errors": 0,
    "bytes": 0,
}


def checked_item(located: object_worker.LocatedRecord) -> ParsedItem:
    """Return the item of a record. Raises ServiceError."""
    if located.record.error:
        raise validation(located.record.error)
    item = item_of(located.record.members["Item"])
    if is_too_large(item.size_bytes):
        raise validation(bare("item-size"))
    return item


def _text_of(error: Exception) -> str:
    return service_error_of(error, "PutItem").message or "The item cannot be stored"


def _source(job: Job) -> object_worker.ObjectSource:
    request = job.definition["request"]
    place, parameters = request["S3BucketSource"], request["TableCreationParameters"]
    options = request.get("InputFormatOptions", {}).get("Csv", {})
    layout = ImportFormat(
        request["InputFormat"],
        options.get("Delimiter", ","),
        tuple(options.get("HeaderList", ())),
        {
            attribute["AttributeName"]: attribute["AttributeType"]
            for attribute in parameters["AttributeDefinitions"]
        },
    )
    return object_worker.ObjectSource(
        bucket_of(job, place),
        place.get("S3KeyPrefix", ""),
        Compression(request.get("InputCompressionType", "NONE")),
        layout,
    )

"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations, CancelBulkOperation, and the background work of a bulk put.

Shapes and states: botocore 1.44.5 and its documentation. The service's error texts are not public.

Records become puts into an existing table, then the report is written. One transaction holds the puts, their counts and
the position in the records. So a server that is killed puts nothing twice: each condition is evaluated once, and a
stream has each put once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.capacity import write_units
from tablegate.adapters.dynamodb.export_files import line_formats
from tablegate.adapters.dynamodb.export_files.compression import Compression
from tablegate.adapters.dynamodb.export_files.records import ImportFormat
from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.features.exports_imports import bulk_put_report, job_documents, object_worker
from tablegate.adapters.dynamodb.features.exports_imports.imports import checked_item
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import CANCELLED, COMPLETED, FAILED
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import ObjectStoreRejection
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.tables.table_definitions import table_id
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.values.keys import render_shown
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, CancelJob, Job, StartJob
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import TableBusy
from tablegate.gateway.model.tables.tables import State, Table

# Operations


WITH_ERRORS = "COMPLETED_WITH_ERRORS"


async def start_bulk_put_items(call: CallContext) -> Answer:
    """StartBulkPutItems: start to put the items of objects into a table.

    Raises ServiceError, TableMissing, TableBusy, TokenReused, NotInstalled.
    """
    job_documents.require_object_store(call)
    arguments = call.input
    report = arguments["OutputS3Configuration"]
    if "S3Bucket" not in report:
        raise validation(f"{error_texts.INVALID_REQUEST}S3Bucket must be provided in OutputS3Configuration")
    if "S3SseKmsKeyId" in report and report.get("S3SseAlgorithm") != "KMS":
        raise validation(f"{error_texts.INVALID_REQUEST}KMS Key Id is not supported for this encryption type")
    if arguments["InputS3Configuration"]["InputFormat"] == "ION":
        line_formats.ion_reader()
    table = await find_table(call)
    state = table.state_at(call.gateway.now_ms())
    if state not in (State.ACTIVE, State.UPDATING):
        raise TableBusy(table.name, state.value)
    if not all(index.filled for index in table.indexes):
        raise TableBusy(table.name, State.UPDATING.value)
    if table.rules.replication is not None:
        # Developer guide, "Bulk put items considerations". The text is our own.
        raise validation(f"{error_texts.INVALID_REQUEST}Bulk put items is not supported for global tables")
    definition = job_documents.definition_of(call, table.name, table_id=table_id(table), number=table.id)
    start = StartJob(
        job_documents.BULK.name,
        call.caller.namespace,
        table.name,
        definition,
        job_documents.IN_PROGRESS,
        limits.BULK_PUTS_AT_ONCE,
        job_documents.token_of(call, job_documents.BULK, arguments),
        stores_rows=True,
    )
    return {"BulkOperationDescription": describe(await job_documents.start_job(job_documents.BULK, start))}


async def describe_bulk_operation(call: CallContext) -> Answer:
    """DescribeBulkOperation: the progress of a bulk put. Raises ServiceError."""
    job = await _find(call)
    return {"BulkOperationDescription": describe(job)}


async def list_bulk_operations(call: CallContext) -> Answer:
    """ListBulkOperations: a page of bulk puts, newest first. Raises ServiceError."""
    arguments = call.input
    jobs, next_token = await job_documents.page(
        call, job_documents.BULK, arguments.get("MaxResults"), arguments.get("NextToken")
    )
    return {"BulkOperationsSummaryList": [_summary(job) for job in jobs], **next_token}


async def cancel_bulk_operation(call: CallContext) -> Answer:
    """CancelBulkOperation: stop a bulk put.

    Items put already stay. If it has ended, its state is returned. Raises ServiceError.
    """
    job = await _find(call)
    cancelled = await CancelJob(job, job_documents.path_of(call.input["BulkOperationArn"]))
    state = job_documents.status_of(job if cancelled is None else cancelled)
    return {"BulkOperationArn": call.input["BulkOperationArn"], "BulkOperationStatus": state}


async def _find(call: CallContext) -> Job:
    arn = call.input["BulkOperationArn"]

    def missing(elsewhere: bool) -> ServiceError:
        text = f"Requested resource not found: Bulk operation: {arn} not found"
        return ServiceError("ResourceNotFoundException", text)

    return await job_documents.find(call, job_documents.BULK, arn, missing)


def _summary(job: Job) -> dict[str, Any]:
    return {
        "BulkOperationArn": job_documents.BULK.arn(job),
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


# Background work


# Members of a record besides its Item. The service's names are not public: these are the names of PutItem.
_CLAUSES = ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")


@dataclass(slots=True)
class _OpenSource:
    """An open source of records, and the time before which no units may be used."""

    source: object_worker.SourceObjects
    not_before: float = 0.0

    def close(self) -> None:
        self.source.close()


class BulkPutWorker(object_worker.ObjectWorker[_OpenSource]):
    """The worker that runs bulk puts (gateway/features/jobs/job_runner.py)."""

    name = "bulk operation"

    def _cancel(self, job: Job, limit: int) -> int | None:
        return self._carry_on(job, limit)  # the report of items put so far comes first

    def _end_cancelled(self, job: Job) -> None:
        self._fail(job, *self._cancellation, state=CANCELLED)

    def _carry_on(self, job: Job, limit: int) -> int | None:
        if "total" not in job.progress:
            return self._begin(job)
        if job.progress["is_read"]:
            return self._report(job)
        return self._put(job, limit)

    def _fail(self, job: Job, code: str, text: str, state: str = FAILED) -> None:
        progress = {**job.progress, "failure": object_worker.failure(code, text), "pending": []}
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=state, ended=True))

    def _begin(self, job: Job) -> int:
        """Count the objects to read, and create the table of the report."""
        source = _source(job)
        objects = total = 0
        for stored_object in self._store.listed(source.bucket, source.prefix):
            objects += 1
            total += stored_object.size_bytes
            if objects > limits.BULK_PUT_OBJECTS:
                raise ObjectStoreRejection(
                    "TooManyObjects", f"More than {limits.BULK_PUT_OBJECTS} objects have this prefix"
                )
        object_worker.run_command(
            self._gateway,
            AdvanceJob(
                job, {**_initial_progress(), "total": total}, keeps=bulk_put_report.create_report_table()
            ),
        )
        return objects

    # Items

    def _put(self, job: Job, limit: int) -> int | None:
        open_source = self._open.get(job.id)
        if open_source is None:
            source = object_worker.SourceObjects(
                self._store,
                _source(job),
                object_worker.SourceCursor(*job.progress["cursor"]),
                self._check_readable(job),
            )
            open_source = self._open[job.id] = _OpenSource(source)
        if monotonic() < open_source.not_before and not job.cancelled:
            return None
        table = self._table(job)
        batch = object_worker.RecordBatch([], object_worker.SourceCursor(*job.progress["cursor"]), True, 0)
        if not job.cancelled:
            batch = open_source.source.take(limit)
        located_records = batch.found
        groups, sources, lines = self._writes(job, table, located_records)
        step = _PutBatch(job, table, sources, lines, batch)
        report_writes = bulk_put_report.BulkPutReport(self._gateway, self._store, job).pending_writes()
        saved_job = object_worker.run_command(
            self._gateway,
            AdvanceJob(job, groups=(*groups, *report_writes), settle=step.settle),
        )
        if saved_job is None or saved_job.progress["is_read"]:
            self.forget(job.id)
        elif "MaxWriteRequestUnits" in job.definition["request"]:
            open_source.not_before = (
                monotonic() + step.units / job.definition["request"]["MaxWriteRequestUnits"]
            )
        return batch.units

    def _table(self, job: Job) -> Table:
        try:
            table = object_worker.run_command(self._gateway, FindTable(job.namespace, job.table_name))
        except errors.TableMissing:
            table = None
        if (
            table is None
            or table.id != job.definition["number"]
            or table.state_at(self._gateway.now_ms()) is State.DELETING
        ):
            raise ObjectStoreRejection("TableNotFound", f"Table not found: {job.table_name}")
        return table

    def _writes(
        self, job: Job, table: Table, located_records: list[object_worker.LocatedRecord]
    ) -> tuple[list[WriteGroup], list[object_worker.LocatedRecord], list[list[str]]]:
        """Return a group for each record that can be put, the records of these groups, and report lines for the others."""
        groups: list[WriteGroup] = []
        sources: list[object_worker.LocatedRecord] = []
        lines: list[list[str]] = []
        call = object_worker.call_of(self._gateway, job, "PutItem")
        for located in located_records:
            try:
                item = checked_item(located)
                members = {
                    name: located.record.members[name] for name in _CLAUSES if name in located.record.members
                }
                clauses = WriteClauses(call, members) if members else None
                groups.append(WriteGroup((put_write(table, item, clauses),)))
                sources.append(located)
            except (ServiceError, errors.GatewayError) as error:
                lines.append([bulk_put_report.ERROR, bulk_put_report.line_of(job, located, error)])
        return groups, sources, lines

    def _report(self, job: Job) -> int:
        """Write the next object of the report, or after the last one its manifests."""
        report = bulk_put_report.BulkPutReport(self._gateway, self._store, job)
        lines = report.write_next()
        if lines is None:
            self._finish(job, report)
            return 0
        return lines

    def _finish(self, job: Job, report: bulk_put_report.BulkPutReport) -> None:
        progress = dict(job.progress)
        state = CANCELLED if job.cancelled else WITH_ERRORS if progress["failed"] else COMPLETED
        if job.cancelled:
            progress["failure"] = object_worker.failure(*self._cancellation)
        report.write_manifests(state)
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=state, ended=True))


class _PutBatch:
    """A batch of puts, which computes the progress from their outcomes."""

    def __init__(
        self,
        job: Job,
        table: Table,
        sources: list[object_worker.LocatedRecord],
        lines: list[list[str]],
        batch: object_worker.RecordBatch,
    ) -> None:
        self._job = job
        self._table = table
        self._sources = sources
        self._lines = lines
        self._batch = batch
        self.units = 0.0

    def settle(self, answers: list[Any]) -> Mapping[str, Any]:
        """Return the progress after the outcomes of the puts. Outcomes of report lines follow them and are ignored.

        Raises GatewayError if the batch has to be retried.
        """
        progress = self._job.progress
        output_types = set(self._job.definition["request"]["OutputS3Configuration"]["OutputType"])
        usage = {
            name: dict(sizes) if isinstance(sizes, dict) else sizes
            for name, sizes in progress["usage"].items()
        }
        lines, failed = list(self._lines), len(self._lines)
        self.units = 0.0
        for located, answer in zip(self._sources, answers, strict=False):
            if isinstance(answer, (errors.Busy, errors.PartitionLocked)):
                raise errors.Busy("rows are locked")
            if isinstance(answer, errors.ConditionFailed):
                existing = None if answer.row is None else render_shown(self._table.key_schema, answer.row)
                lines.append(
                    [bulk_put_report.CONDITION, bulk_put_report.line_of(self._job, located, answer, existing)]
                )
            elif isinstance(answer, errors.GatewayError):
                failed += 1
                lines.append([bulk_put_report.ERROR, bulk_put_report.line_of(self._job, located, answer)])
            else:
                self._count(usage, answer[0])
        return {
            **progress,
            "cursor": list(self._batch.cursor),
            "bytes": self._batch.cursor.done_bytes,
            "processed": progress["processed"] + len(self._batch.found),
            "failed": progress["failed"] + failed,
            "usage": usage,
            "reported": progress["reported"] + len(progress["pending"]),
            "pending": [line for line in lines if line[0] in output_types],
            "is_read": self._batch.is_over and not any(line[0] in output_types for line in lines),
        }

    def _count(self, usage: dict[str, Any], outcome: WriteOutcome) -> None:
        new = outcome.new
        if new is None:
            return
        usage["table"] += new.size_bytes
        self.units += write_units(None if outcome.old is None else outcome.old.size_bytes, new.size_bytes)
        for index in self._table.indexes:
            entry = index.entry(new)
            if entry is not None:
                sizes = usage["local" if index.local else "global"]
                sizes[index.name] = sizes.get(index.name, 0) + entry.size_bytes


def _initial_progress() -> dict[str, Any]:
    return {
        "cursor": list(object_worker.SourceCursor()),
        "processed": 0,
        "failed": 0,
        "bytes": 0,
        "usage": {"table": 0, "local": {}, "global": {}},
        "reported": 0,
        "pending": [],
        "is_read": False,
        "report_at": [0, 0],
        "reports": [],
    }


def _source(job: Job) -> object_worker.ObjectSource:
    place = job.definition["request"]["InputS3Configuration"]
    return object_worker.ObjectSource(
        object_worker.bucket_of(job, place),
        place.get("S3KeyPrefix", ""),
        Compression(place.get("InputCompressionType", "NONE")),
        ImportFormat(place["InputFormat"]),
    )

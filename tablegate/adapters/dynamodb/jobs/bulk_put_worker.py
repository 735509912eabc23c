"""Background work of a bulk put: records become puts into an existing table, then the report is written.

One transaction holds the puts, their counts and the position in the records. So a server that is killed puts nothing
twice: each condition is evaluated once, and a stream has each put once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from tablegate.adapters.dynamodb.capacity.capacity import write_units
from tablegate.adapters.dynamodb.export_files.compression import Compression
from tablegate.adapters.dynamodb.export_files.records import ImportFormat
from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.jobs import bulk_put_report, object_worker, source_objects
from tablegate.adapters.dynamodb.jobs.bulk_put_api import WITH_ERRORS
from tablegate.adapters.dynamodb.jobs.import_worker import checked_item
from tablegate.adapters.dynamodb.jobs.job_documents import CANCELLED, COMPLETED, FAILED
from tablegate.adapters.dynamodb.object_stores.object_store import ObjectStoreRejection
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.values.composites import render
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import State, Table

# Background work


# Members of a record besides its Item. The service's names are not public: these are the names of PutItem.
_CLAUSES = ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")


@dataclass(slots=True)
class _OpenSource:
    """An open source of records, and the time before which no units may be used."""

    source: source_objects.SourceObjects
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
            source = source_objects.SourceObjects(
                self._store,
                _source(job),
                source_objects.SourceCursor(*job.progress["cursor"]),
                self._check_readable(job),
            )
            open_source = self._open[job.id] = _OpenSource(source)
        if monotonic() < open_source.not_before and not job.cancelled:
            return None
        table = self._table(job)
        batch = source_objects.RecordBatch([], source_objects.SourceCursor(*job.progress["cursor"]), True, 0)
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
        self, job: Job, table: Table, located_records: list[source_objects.LocatedRecord]
    ) -> tuple[list[WriteGroup], list[source_objects.LocatedRecord], list[list[str]]]:
        """Return a group for each record that can be put, the records of these groups, and report lines for the others."""
        groups: list[WriteGroup] = []
        sources: list[source_objects.LocatedRecord] = []
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
        sources: list[source_objects.LocatedRecord],
        lines: list[list[str]],
        batch: source_objects.RecordBatch,
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
                existing = None if answer.row is None else render(self._table.key_schema, answer.row)
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
        "cursor": list(source_objects.SourceCursor()),
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


def _source(job: Job) -> source_objects.ObjectSource:
    place = job.definition["request"]["InputS3Configuration"]
    return source_objects.ObjectSource(
        object_worker.bucket_of(job, place),
        place.get("S3KeyPrefix", ""),
        Compression(place.get("InputCompressionType", "NONE")),
        ImportFormat(place["InputFormat"]),
    )

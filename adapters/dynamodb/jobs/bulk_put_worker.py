"""A bulk put while it is carried on: records become puts into a table that is there, then a report is written.

What is put, what of it is counted and how far the records have been read are one transaction, so that a server that is killed
puts nothing twice: a condition is judged once, and a stream tells each put once. Lines of the report are kept in an internal
table of the job until they are written. The layout of the report is our own, near that of exports: the service's is not public.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import orjson

from tablegate.adapters.dynamodb.capacity.capacity import write_units
from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.compression import Compression
from tablegate.adapters.dynamodb.export_files.data_files import DataFile
from tablegate.adapters.dynamodb.export_files.records import Layout
from tablegate.adapters.dynamodb.expressions.request_clauses import WriteClauses
from tablegate.adapters.dynamodb.jobs.bulk_put_api import WITH_ERRORS
from tablegate.adapters.dynamodb.jobs.import_worker import checked_item
from tablegate.adapters.dynamodb.jobs.job_documents import CANCELLED, COMPLETED, FAILED
from tablegate.adapters.dynamodb.jobs.job_names import BULK
from tablegate.adapters.dynamodb.jobs.object_worker import (
    ObjectWorker,
    ask,
    bucket_of,
    call_of,
    failure,
    new_object_of,
)
from tablegate.adapters.dynamodb.jobs.source_objects import Cursor, Found, Source, SourceObjects, Taken
from tablegate.adapters.dynamodb.object_stores.object_store import Refused
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.values.composites import render
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.model.commands.job_commands import AdvanceJob
from tablegate.gateway.model.commands.row_commands import Outcome, Read, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import (
    Busy,
    ConditionFailed,
    GatewayError,
    PartitionLocked,
    TableMissing,
)
from tablegate.gateway.model.expressions.ranges import within
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import of_job
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, text

ERROR, CONDITION = "ERROR", "CONDITION_CHECK_FAILURE"
# What a record may have beside its Item; the service's names are not public, these are PutItem's.
_CLAUSES = ("ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
_REPORT = "report"
_REPORT_KEY = KeySchema((KeyColumn("kind", Kind.TEXT),), (KeyColumn("number", Kind.INT64),))
_REPORT_LINES = 1_000
_REPORT_BYTES = 4 << 20


@dataclass(slots=True)
class _Open:
    """What is held open: the source, and when the next units may be used."""

    source: SourceObjects
    not_before: float = 0.0

    def close(self) -> None:
        self.source.close()


class BulkPutWorker(ObjectWorker[_Open]):
    """Carries bulk puts on (gateway/engine/background/working.py)."""

    name = "bulk operation"

    def _cancel(self, job: Job, limit: int) -> int | None:
        return self._carry_on(job, limit)  # what has been put is reported first

    def _end_cancelled(self, job: Job) -> None:
        """End it without its report."""
        self._fail(job, *self._cancellation, state=CANCELLED)

    def _carry_on(self, job: Job, limit: int) -> int | None:
        if "total" not in job.progress:
            return self._begin(job)
        if job.progress["is_read"]:
            return self._report(job)
        return self._put(job, limit)

    def _fail(self, job: Job, code: str, text: str, state: str = FAILED) -> None:
        progress = {**job.progress, "failure": failure(code, text), "pending": []}
        ask(self._gateway, AdvanceJob(job, progress, state=state, ended=True))

    def _begin(self, job: Job) -> int:
        """See what there is to read, and make a place for the report."""
        source = _source(job)
        objects = total = 0
        for found in self._store.listed(source.bucket, source.prefix):
            objects += 1
            total += found.size_bytes
            if objects > limits.BULK_PUT_OBJECTS:
                raise Refused("TooManyObjects", f"There are more than {limits.BULK_PUT_OBJECTS} objects")
        table = CreateTable("", "", _REPORT, _REPORT_KEY)
        ask(self._gateway, AdvanceJob(job, {**_nothing(), "total": total}, keeps=table))
        return objects

    # Items

    def _put(self, job: Job, limit: int) -> int | None:
        opened = self._open.get(job.id)
        if opened is None:
            source = SourceObjects(
                self._store, _source(job), Cursor(*job.progress["cursor"]), self._check_readable(job)
            )
            opened = self._open[job.id] = _Open(source)
        if monotonic() < opened.not_before and not job.cancelled:
            return None
        table = self._table(job)
        taken = Taken([], Cursor(*job.progress["cursor"]), True, 0)
        if not job.cancelled:
            taken = opened.source.take(limit)
        found = taken.found
        groups, sources, lines = self._writes(job, table, found)
        step = _Step(job, table, sources, lines, taken)
        reported = self._report_writes(job)
        saved = ask(
            self._gateway,
            AdvanceJob(job, groups=(*groups, *reported), settle=step.settle),
        )
        if saved is None or saved.progress["is_read"]:
            self.forget(job.id)
        elif "MaxWriteRequestUnits" in job.definition["request"]:
            opened.not_before = monotonic() + step.units / job.definition["request"]["MaxWriteRequestUnits"]
        return taken.units

    def _table(self, job: Job) -> Table:
        try:
            table = ask(self._gateway, FindTable(job.namespace, job.table_name))
        except TableMissing:
            table = None
        if (
            table is None
            or table.id != job.definition["number"]
            or table.state_at(self._gateway.now_ms()) is State.DELETING
        ):
            raise Refused("TableNotFound", f"Table not found: {job.table_name}")
        return table

    def _writes(
        self, job: Job, table: Table, found: list[Found]
    ) -> tuple[list[WriteGroup], list[Found], list[list[str]]]:
        """A group for each record that can be put, of which records they are, and lines about the others."""
        groups: list[WriteGroup] = []
        sources: list[Found] = []
        lines: list[list[str]] = []
        call = call_of(self._gateway, job, "PutItem")
        for each in found:
            try:
                item = checked_item(each)
                given = {name: each.record.members[name] for name in _CLAUSES if name in each.record.members}
                clauses = WriteClauses(call, given) if given else None
                groups.append(WriteGroup((put_write(table, item, clauses),)))
                sources.append(each)
            except (ServiceError, GatewayError) as error:
                lines.append([ERROR, _line(job, each, error)])
        return groups, sources, lines

    def _report_writes(self, job: Job) -> list[WriteGroup]:
        """What puts the lines about the last batch into the table of the report."""
        pending = job.progress["pending"]
        if not pending:
            return []
        report = ask(self._gateway, FindTable(of_job(job.id), _REPORT))
        first = job.progress["reported"]
        writes = []
        for number, (kind, line) in enumerate(pending, first):
            values = {"kind": text(kind), "number": Value(Kind.INT64, number), "line": text(line)}
            key = _REPORT_KEY.decode(_REPORT_KEY.position((values["kind"], values["number"])))
            contents = Contents.of_values(values)
            writes.append(WriteGroup((Write(report, key, Replace(contents)),)))
        return writes

    # The report

    def _report(self, job: Job) -> int:
        """Write the next object of the report, or, behind the last, its manifests."""
        progress = job.progress
        kinds = sorted(set(job.definition["request"]["OutputS3Configuration"]["OutputType"]))
        at, number = progress["report_at"]
        if at == len(kinds):
            self._finish(job)
            return 0
        table = ask(self._gateway, FindTable(of_job(job.id), _REPORT))
        bounds = within(_REPORT_KEY.position((text(kinds[at]), Value(Kind.INT64, number))).partition)
        first = _REPORT_KEY.position((text(kinds[at]), Value(Kind.INT64, number)))
        page = ask(
            self._gateway,
            Read(
                table,
                bounds._replace(lower=first),
                PageLimits(scanned=_REPORT_LINES, filled_bytes=_REPORT_BYTES, peek=True),
            ),
        )
        now = dict(progress)
        if page.rows:
            lines = [row.latest["line"].data.encode() + b"\n" for row in page.rows]
            now["reports"] = [*progress["reports"], self._write_report(job, kinds[at], lines)]
        following = page.next
        now["report_at"] = [at + 1, 0] if following is None else [at, following.latest["number"].data]
        ask(self._gateway, AdvanceJob(job, now))
        return len(page.rows)

    def _write_report(self, job: Job, kind: str, lines: list[bytes]) -> list[Any]:
        buffer = io.BytesIO()
        file = DataFile(buffer)
        for line in lines:
            file.add(line)
        md5 = file.finish()
        number = len(job.progress["reports"])
        random = hashlib.sha256(f"{BULK.arn(job)}/{number}".encode()).digest()[:16]
        name = manifests.data_file_name(random, "DYNAMODB_JSON")
        key = f"{_folder(job)}{kind}/{name}"
        etag = self._write(job, key, buffer.getvalue())
        return [key, file.items, base64.b64encode(md5).decode(), etag]

    def _write(self, job: Job, key: str, data: bytes) -> str:
        place = job.definition["request"]["OutputS3Configuration"]
        return self._store.write(
            bucket_of(job, place),
            key,
            io.BytesIO(data),
            new_object_of(job, place),
        )

    def _finish(self, job: Job) -> None:
        progress = dict(job.progress)
        state = CANCELLED if job.cancelled else WITH_ERRORS if progress["failed"] else COMPLETED
        if job.cancelled:
            progress["failure"] = failure(*self._cancellation)
        listed = [
            manifests.file_line(key, items, base64.b64decode(md5), etag)
            for key, items, md5, etag in progress["reports"]
        ]
        summary = {
            "bulkOperationArn": BULK.arn(job),
            "bulkOperationStatus": state,
            "startTime": manifests.time_text(job.created_at_ms),
            "endTime": manifests.time_text(self._gateway.now_ms()),
            "tableArn": job.definition["table_arn"],
            "tableId": job.definition["table_id"],
            "processedItemCount": progress["processed"],
            "failedItemCount": progress["failed"],
            "manifestFilesS3Key": _folder(job) + manifests.FILES,
        }
        for name, data in (
            (manifests.FILES, b"".join(listed)),
            (manifests.SUMMARY, orjson.dumps(summary)),
        ):
            self._write(job, _folder(job) + name, data)
            self._write(job, _folder(job) + name.replace(".json", ".md5"), manifests.md5_text(data))
        ask(self._gateway, AdvanceJob(job, progress, state=state, ended=True))


class _Step:
    """One batch: what the progress is when it is known what came of each put."""

    def __init__(
        self,
        job: Job,
        table: Table,
        sources: list[Found],
        lines: list[list[str]],
        taken: Taken,
    ) -> None:
        self._job = job
        self._table = table
        self._sources = sources
        self._lines = lines
        self._taken = taken
        self.units = 0.0

    def settle(self, answers: list[Any]) -> Mapping[str, Any]:
        """The progress, from what came of the puts and of lines of the report behind them. Raises GatewayError if the batch is
        to be tried again."""
        progress = self._job.progress
        wanted = set(self._job.definition["request"]["OutputS3Configuration"]["OutputType"])
        usage = {
            name: dict(sizes) if isinstance(sizes, dict) else sizes
            for name, sizes in progress["usage"].items()
        }
        lines, failed = list(self._lines), len(self._lines)
        self.units = 0.0
        for each, answer in zip(self._sources, answers, strict=False):
            if isinstance(answer, (Busy, PartitionLocked)):
                raise Busy("rows are locked")
            if isinstance(answer, ConditionFailed):
                existing = None if answer.row is None else render(self._table.key_schema, answer.row)
                lines.append([CONDITION, _line(self._job, each, answer, existing)])
            elif isinstance(answer, GatewayError):
                failed += 1
                lines.append([ERROR, _line(self._job, each, answer)])
            else:
                self._count(usage, answer[0])
        return {
            **progress,
            "cursor": list(self._taken.cursor),
            "bytes": self._taken.cursor.done_bytes,
            "processed": progress["processed"] + len(self._taken.found),
            "failed": progress["failed"] + failed,
            "usage": usage,
            "reported": progress["reported"] + len(progress["pending"]),
            "pending": [line for line in lines if line[0] in wanted],
            "is_read": self._taken.is_over and not any(line[0] in wanted for line in lines),
        }

    def _count(self, usage: dict[str, Any], outcome: Outcome) -> None:
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


def _nothing() -> dict[str, Any]:
    return {
        "cursor": list(Cursor()),
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


def _line(job: Job, each: Found, error: Exception, existing: bytes | None = None) -> str:
    """A line of the report."""
    told = service_error_of(error, "PutItem")
    bucket = job.definition["request"]["InputS3Configuration"]["S3Bucket"]
    line: dict[str, Any] = {
        "itemS3Pointer": {"bucket": bucket, "key": each.key, "itemIndex": each.number - 1},
        "errorCode": told.code,
        "errorMessage": told.message,
    }
    if "Item" in each.record.members:
        line["Item"] = each.record.members["Item"]
    if existing is not None:
        line["ExistingItem"] = orjson.Fragment(existing)
    return orjson.dumps(line).decode()


def _folder(job: Job) -> str:
    prefix = job.definition["request"]["OutputS3Configuration"].get("S3KeyPrefix", "")
    return manifests.folder_of(prefix.rstrip("/"), BULK.id(job))


def _source(job: Job) -> Source:
    place = job.definition["request"]["InputS3Configuration"]
    return Source(
        bucket_of(job, place),
        place.get("S3KeyPrefix", ""),
        Compression(place.get("InputCompressionType", "NONE")),
        Layout(place["InputFormat"]),
    )

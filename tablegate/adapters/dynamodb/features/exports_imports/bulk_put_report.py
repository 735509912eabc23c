"""The report of a bulk put: a line for each record that was not put.

Lines are kept in an internal table of the job until all records are read. Then they are written as objects, one after
another, followed by the manifests. The service's layout is not public. Ours is similar to that of exports.
"""

from __future__ import annotations

import base64
import hashlib
import io
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.manifests import DataFileWriter
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import BULK
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import ObjectStore
from tablegate.adapters.dynamodb.features.exports_imports.object_worker import (
    LocatedRecord,
    bucket_of,
    new_object_of,
    run_command,
)
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model.commands.row_commands import Read, WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.expressions.ranges import within
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import namespace_of_job
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value, text

ERROR, CONDITION = "ERROR", "CONDITION_CHECK_FAILURE"
_REPORT = "report"
_REPORT_KEY = KeySchema((KeyColumn("kind", Kind.TEXT),), (KeyColumn("number", Kind.INT64),))
_REPORT_LINES = 1_000
_REPORT_BYTES = 4 << 20


def create_report_table() -> CreateTable:
    """Return the command that creates the table of the lines."""
    return CreateTable("", "", _REPORT, _REPORT_KEY)


class BulkPutReport:
    """The report of one job, in the object store."""

    def __init__(self, gateway: Gateway, store: ObjectStore, job: Job) -> None:
        self._gateway = gateway
        self._store = store
        self._job = job

    def pending_writes(self) -> list[WriteGroup]:
        """Return the writes that add the lines of the last batch to the table of the report."""
        pending = self._job.progress["pending"]
        if not pending:
            return []
        report = run_command(self._gateway, FindTable(namespace_of_job(self._job.id), _REPORT))
        first = self._job.progress["reported"]
        writes = []
        for number, (kind, line) in enumerate(pending, first):
            values = {"kind": text(kind), "number": Value(Kind.INT64, number), "line": text(line)}
            key = _REPORT_KEY.decode(_REPORT_KEY.position((values["kind"], values["number"])))
            contents = Contents.of_values(values)
            writes.append(WriteGroup((Write(report, key, Replace(contents)),)))
        return writes

    def write_next(self) -> int | None:
        """Write the next object of the report and save the position.

        Return its number of lines, or None if all are written.
        """
        progress = self._job.progress
        kinds = sorted(set(self._job.definition["request"]["OutputS3Configuration"]["OutputType"]))
        at, number = progress["report_at"]
        if at == len(kinds):
            return None
        table = run_command(self._gateway, FindTable(namespace_of_job(self._job.id), _REPORT))
        first = _REPORT_KEY.position((text(kinds[at]), Value(Kind.INT64, number)))
        limits = PageLimits(scanned=_REPORT_LINES, filled_bytes=_REPORT_BYTES, peek=True)
        page = run_command(self._gateway, Read(table, within(first.partition)._replace(lower=first), limits))
        now = dict(progress)
        if page.rows:
            lines = [row.latest["line"].data.encode() + b"\n" for row in page.rows]
            now["reports"] = [*progress["reports"], self._write_lines(kinds[at], lines)]
        following = page.next
        now["report_at"] = [at + 1, 0] if following is None else [at, following.latest["number"].data]
        run_command(self._gateway, AdvanceJob(self._job, now))
        return len(page.rows)

    def write_manifests(self, state: str) -> None:
        """Write the manifests, which come last. `state`: the final state of the job."""
        job, progress = self._job, self._job.progress
        file_lines = [
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
            "manifestFilesS3Key": self._folder + manifests.FILES,
        }
        for name, data in (
            (manifests.FILES, b"".join(file_lines)),
            (manifests.SUMMARY, orjson.dumps(summary)),
        ):
            self._write(name, data)
            self._write(name.replace(".json", ".md5"), manifests.md5_text(data))

    def _write_lines(self, kind: str, lines: list[bytes]) -> list[Any]:
        buffer = io.BytesIO()
        file = DataFileWriter(buffer)
        for line in lines:
            file.add(line)
        md5 = file.finish()
        number = len(self._job.progress["reports"])
        random = hashlib.sha256(f"{BULK.arn(self._job)}/{number}".encode()).digest()[:16]
        name = f"{kind}/{manifests.data_file_name(random, 'DYNAMODB_JSON')}"
        etag = self._write(name, buffer.getvalue())
        return [self._folder + name, file.items, base64.b64encode(md5).decode(), etag]

    def _write(self, name: str, data: bytes) -> str:
        place = self._job.definition["request"]["OutputS3Configuration"]
        return self._store.write(
            bucket_of(self._job, place),
            self._folder + name,
            io.BytesIO(data),
            new_object_of(self._job, place),
        )

    @property
    def _folder(self) -> str:
        prefix = self._job.definition["request"]["OutputS3Configuration"].get("S3KeyPrefix", "")
        return manifests.folder_of(prefix.rstrip("/"), BULK.id(self._job))


def line_of(job: Job, located: LocatedRecord, error: Exception, existing: bytes | None = None) -> str:
    """Return a line of the report."""
    service_error = service_error_of(error, "PutItem")
    bucket = job.definition["request"]["InputS3Configuration"]["S3Bucket"]
    line: dict[str, Any] = {
        "itemS3Pointer": {"bucket": bucket, "key": located.key, "itemIndex": located.number - 1},
        "errorCode": service_error.code,
        "errorMessage": service_error.message,
    }
    if "Item" in located.record.members:
        line["Item"] = located.record.members["Item"]
    if existing is not None:
        line["ExistingItem"] = orjson.Fragment(existing)
    return orjson.dumps(line).decode()

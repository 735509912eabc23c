"""Background work of an export: rows of the copy made for it become data files, then manifests.

A data file is written whole, and the position in the rows is saved after it. So a server that is killed and restarted
writes the current file again, with the same name and bytes. The manifest that marks an export as complete is its last
object.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.data_files import DataFileWriter
from tablegate.adapters.dynamodb.jobs import object_worker
from tablegate.adapters.dynamodb.jobs.export_api import ExportSelection, selection_of, view_of
from tablegate.adapters.dynamodb.jobs.export_lines import ExportLine, line_of_change, lines_of_rows
from tablegate.adapters.dynamodb.jobs.job_documents import COMPLETED, FAILED
from tablegate.adapters.dynamodb.jobs.job_names import EXPORT
from tablegate.adapters.dynamodb.object_stores.object_store import (
    BucketReference,
    NewObject,
    ObjectStoreRejection,
)
from tablegate.adapters.dynamodb.values.values import view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.model.commands.job_commands import AdvanceJob
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.jobs import Job
from tablegate.gateway.model.tables.namespaces import of_job
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Row

_MEMORY_BYTES = 8 << 20
_CHANGES_AT_ONCE = 8  # a few, as their images may be large


@dataclass(slots=True)
class _OpenDataFile:
    """The data file being written. `next`: the position of the first row that is not in it yet, None if no row is left."""

    buffer: BinaryIO
    file: DataFileWriter
    billed: int
    next: Position | None
    is_over: bool = False

    def close(self) -> None:
        self.buffer.close()


class ExportWorker(object_worker.ObjectWorker[_OpenDataFile]):
    """The worker that runs exports (gateway/engine/background/job_runner.py)."""

    name = "export"

    def _fail(self, job: Job, code: str, text: str) -> None:
        progress = {**job.progress, "failure": object_worker.failure(code, text)}
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=FAILED, ended=True))

    def _carry_on(self, job: Job, limit: int) -> int | None:
        progress = job.progress
        if not progress.get("started"):
            self._put(job, self._folder(job) + manifests.STARTED, b"")
            object_worker.run_command(self._gateway, AdvanceJob(job, {**_EMPTY, **progress, "started": True}))
            return 0
        if progress.get("read"):
            self._finish(job)
            return 0
        name = "rows" if job.definition["window"] is None else "changed"
        try:
            table = object_worker.run_command(self._gateway, FindTable(of_job(job.id), name))
        except TableMissing:
            raise ObjectStoreRejection("TableNotFound", "The table and its history are gone") from None
        if table.state_at(self._gateway.now_ms()) is State.CREATING:
            return None
        return self._export(job, table, limit)

    # Data files

    def _export(self, job: Job, table: Table, limit: int) -> int:
        opened = self._open.get(job.id)
        if opened is None:
            mark = job.progress.get("mark")
            buffer = cast(BinaryIO, tempfile.SpooledTemporaryFile(_MEMORY_BYTES))  # noqa: SIM115
            next_row = None if mark is None else Position(*map(bytes.fromhex, mark))
            opened = self._open[job.id] = _OpenDataFile(buffer, DataFileWriter(buffer), 0, next_row)
        rows = self._lines(job, table, opened, limit)
        if opened.file.is_full or opened.is_over:
            self._store_file(job, opened)
        return rows

    def _lines(self, job: Job, table: Table, opened: _OpenDataFile, limit: int) -> int:
        """Write some rows to the open data file, at most until it is full.

        Return the units of work: one for each scanned row, and one for each KiB of items.
        """
        request = job.definition["request"]
        selection = selection_of(object_worker.call_of(self._gateway, job), request, table)
        page = object_worker.run_command(self._gateway, self._read(job, table, selection, opened.next, limit))
        as_ion = request.get("ExportFormat") == "ION"
        made = (
            self._changes(job, page.rows, selection, as_ion)
            if job.definition["window"] is not None
            else lines_of_rows(table, page.rows, selection, as_ion)
        )
        read_bytes = 0
        for each in made:
            if opened.file.is_full or read_bytes > limit << 10:
                opened.next = each.row.position
                break
            read_bytes += each.read_bytes
            if each.line:
                opened.file.add(each.line)
                opened.billed += each.billed
        else:
            opened.next = None if page.next is None else page.next.position
            opened.is_over = page.next is None
        return int(page.scanned) + (read_bytes >> 10)

    def _read(
        self, job: Job, table: Table, selection: ExportSelection, first: Position | None, limit: int
    ) -> Read:
        bounds, predicate = selection.bounds, selection.predicate
        if job.definition["window"] is not None:
            predicate = ALWAYS  # applied to the images instead (_changes)
        page = PageLimits(scanned=limit, filled_bytes=limit << 10, peek=True)
        if first is not None:
            bounds = KeyRange(max(first, bounds.lower), bounds.upper)
        return Read(table, bounds, page, filter=predicate, view=view)

    def _changes(
        self, job: Job, changed: list[Row], selection: ExportSelection, as_ion: bool
    ) -> Iterator[ExportLine]:
        """Yield the lines of changed keys. A line is empty if the change left nothing or is not selected.

        The filter applies to the new image, or for a deleted item to the old one (developer guide, "Filtering a table
        export").
        """
        space = of_job(job.id)
        before, after = (
            object_worker.run_command(self._gateway, FindTable(space, name)) for name in ("before", "after")
        )
        for first in range(0, len(changed), _CHANGES_AT_ONCE):
            rows = changed[first : first + _CHANGES_AT_ONCE]
            gets = [Get(table, row.position) for row in rows for table in (before, after)]
            found = object_worker.run_command(self._gateway, ReadAll(tuple(gets)))
            for row, old, new in zip(rows, found[::2], found[1::2], strict=True):
                line, billed = line_of_change(job, row, (after, old, new), selection, as_ion)
                yield ExportLine(row, line, billed, sum(each.size_bytes for each in (old, new) if each))

    def _store_file(self, job: Job, opened: _OpenDataFile) -> None:
        """Store the open data file and save the position in the rows."""
        progress = job.progress
        files = progress["files"]
        md5 = opened.file.finish()
        opened.buffer.seek(0)
        etag = self._store.write(
            _bucket(job), self._data_key(job, len(files)), opened.buffer, _new_object(job)
        )
        mark = opened.next
        now = {
            **progress,
            "files": [*files, [opened.file.items, base64.b64encode(md5).decode(), etag]],
            "items": progress["items"] + opened.file.items,
            "billed": progress["billed"] + opened.billed,
            "mark": None if mark is None else [part.hex() for part in mark],
            "read": opened.is_over,
        }
        self.forget(job.id)
        object_worker.run_command(self._gateway, AdvanceJob(job, now))

    def _data_key(self, job: Job, number: int) -> str:
        """Return the key of a data file.

        Its random-looking part is a digest of the export's ARN, so it is the same on a retry.
        """
        random = hashlib.sha256(f"{EXPORT.arn(job)}/{number}".encode()).digest()[:16]
        request = job.definition["request"]
        folder = manifests.data_folder_of(_prefix(job), EXPORT.id(job), job.definition["window"] is not None)
        return folder + manifests.data_file_name(random, request.get("ExportFormat", "DYNAMODB_JSON"))

    # Manifests

    def _folder(self, job: Job) -> str:
        return manifests.folder_of(_prefix(job), EXPORT.id(job))

    def _finish(self, job: Job) -> None:
        """Write the manifests and complete the export."""
        progress = dict(job.progress)
        if job.definition["window"] is not None:
            progress["billed"] = max(progress["billed"], limits.INCREMENTAL_BILLED_BYTES)
        listed = [
            manifests.file_line(self._data_key(job, number), items, base64.b64decode(md5), etag)
            for number, (items, md5, etag) in enumerate(progress["files"])
        ]
        self._put_with_md5(job, manifests.FILES, b"".join(listed))
        self._put_with_md5(job, manifests.SUMMARY, self._summary(job, progress))
        progress["manifest"] = self._folder(job) + manifests.SUMMARY
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=COMPLETED, ended=True))

    def _summary(self, job: Job, progress: dict[str, Any]) -> bytes:
        known, request = job.definition, job.definition["request"]
        window = known["window"]
        return manifests.ExportSummary(
            export_arn=EXPORT.arn(job),
            table_arn=known["table_arn"],
            table_id=known["table_id"],
            started_at_ms=job.created_at_ms,
            ended_at_ms=self._gateway.now_ms(),
            exported_at_ms=job.created_at_ms if known["at_ms"] is None else known["at_ms"],
            bucket=request["S3Bucket"],
            prefix=_prefix(job),
            output_format=request.get("ExportFormat", "DYNAMODB_JSON"),
            items=progress["items"],
            billed_bytes=progress["billed"],
            encryption=request.get("S3SseAlgorithm", "AES256"),
            encryption_key=request.get("S3SseKmsKeyId"),
            window=None if window is None else manifests.ExportWindow(window[0], window[1], view_of(job)),
        ).summary()

    def _put_with_md5(self, job: Job, name: str, data: bytes) -> None:
        folder = self._folder(job)
        self._put(job, folder + name, data)
        self._put(job, folder + name.replace(".json", ".md5"), manifests.md5_text(data))

    def _put(self, job: Job, key: str, data: bytes) -> None:
        with contextlib.closing(io.BytesIO(data)) as held:
            self._store.write(_bucket(job), key, held, _new_object(job))


_EMPTY: dict[str, Any] = {"files": [], "items": 0, "billed": 0}


def _bucket(job: Job) -> BucketReference:
    return object_worker.bucket_of(job, job.definition["request"])


def _prefix(job: Job) -> str:
    return str(job.definition["request"].get("S3Prefix", "")).rstrip("/")


def _new_object(job: Job) -> NewObject:
    return object_worker.new_object_of(job, job.definition["request"])

"""Background work of an export: rows of the copy made for it become data files, then manifests.

A line holds what is selected of a row, or of a key that changed, and the bytes that are billed for it. A data file is
written whole, and the position in the rows is saved after it. So a server that is killed and restarted writes the
current file again, with the same name and bytes. The manifest that marks an export as complete is its last object.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.line_formats import change_line, item_line
from tablegate.adapters.dynamodb.export_files.manifests import DataFileWriter
from tablegate.adapters.dynamodb.features.exports_imports import object_worker
from tablegate.adapters.dynamodb.features.exports_imports.exports import (
    NEW_AND_OLD,
    ExportSelection,
    selection_of,
    view_of,
)
from tablegate.adapters.dynamodb.features.exports_imports.job_documents import COMPLETED, EXPORT, FAILED
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    BucketReference,
    NewObject,
    ObjectStoreRejection,
)
from tablegate.adapters.dynamodb.values.keys import render_shown, shown_key
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.adapters.dynamodb.wire import limits
from tablegate.gateway.features.jobs.job_commands import AdvanceJob, Job
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll
from tablegate.gateway.model.commands.table_commands import CountRows, FindTable
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table, namespace_of_job
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import TICKS_PER_MS, Row

# Lines


_TICKS_PER_US = TICKS_PER_MS // 1_000


class ExportLine(NamedTuple):
    """The line of a row (empty if none), its billed bytes, and the bytes read to make it."""

    row: Row
    line: bytes
    billed: int
    read_bytes: int


def lines_of_rows(
    table: Table, rows: list[Row], selection: ExportSelection, as_ion: bool
) -> Iterator[ExportLine]:
    """Yield the lines of rows of a table."""
    for row in rows:
        size = row.size_bytes
        yield ExportLine(row, item_line(_image(table, row, selection), as_ion), size, size)


def _image(table: Table, row: Row, selection: ExportSelection) -> bytes:
    clauses = selection.clauses
    return render_shown(table.key_schema, row) if clauses is None else clauses.cut(table, row)


def line_of_change(
    job: Job, row: Row, images: tuple[Table, Row | None, Row | None], selection: ExportSelection, as_ion: bool
) -> tuple[bytes, int]:
    """Return the line of a changed key and its billed bytes.

    `images`: the table of the new image, the old image, the new image.
    """
    table, old, new = images
    image = new or old
    # Without an image, the item was created and deleted within the window.
    if image is None or not matches(selection.predicate, image, view):
        return b"", 0
    image_members = {"Keys": orjson.dumps(render_values(shown_key(table.key_schema, image.latest)))}
    if old is not None and view_of(job) == NEW_AND_OLD:
        image_members["OldImage"] = _image(table, old, selection)
    if new is not None:
        image_members["NewImage"] = _image(table, new, selection)
    written_at = (row if new is None else new).modified_at // _TICKS_PER_US
    return change_line(written_at, image_members, as_ion), sum(map(len, image_members.values()))


# The worker


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
        # Else the finalizer of the gzip file would write to the closed buffer, and Python 3.14 prints its error.
        with contextlib.suppress(OSError):
            self.file.finish()
        self.buffer.close()


class ExportWorker(object_worker.ObjectWorker[_OpenDataFile]):
    """The worker that runs exports (gateway/features/jobs/job_runner.py)."""

    name = "export"

    def _fail(self, job: Job, code: str, text: str) -> None:
        progress = {**job.progress, "failure": object_worker.failure(code, text)}
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=FAILED, ended=True))

    def _carry_on(self, job: Job, limit: int) -> int | None:
        progress = job.progress
        if not progress.get("started"):
            self._put(job, self._folder(job) + manifests.STARTED, b"")
            begun = {**_EMPTY, **progress, **self._total(job), "started": True}
            object_worker.run_command(self._gateway, AdvanceJob(job, begun))
            return 0
        if progress.get("read"):
            self._finish(job)
            return 0
        name = "rows" if job.definition["window"] is None else "changed"
        try:
            table = object_worker.run_command(self._gateway, FindTable(namespace_of_job(job.id), name))
        except TableMissing:
            raise ObjectStoreRejection("TableNotFound", "The table and its history are gone") from None
        if table.state_at(self._gateway.now_ms()) is State.CREATING:
            return None
        return self._export(job, table, limit)

    def _total(self, job: Job) -> dict[str, int]:
        """Return the approximate number of items of a full export without a filter, nothing for another one."""
        if job.definition["window"] is not None or "FilterSpecification" in job.definition["request"]:
            return {}
        try:
            table = object_worker.run_command(self._gateway, FindTable(job.namespace, job.table_name))
            return {"total": object_worker.run_command(self._gateway, CountRows(table)).rows}
        except TableMissing:
            return {}

    # Data files

    def _export(self, job: Job, table: Table, limit: int) -> int:
        data_file = self._open.get(job.id)
        if data_file is None:
            mark = job.progress.get("mark")
            buffer = cast(BinaryIO, tempfile.SpooledTemporaryFile(_MEMORY_BYTES))  # noqa: SIM115
            next_row = None if mark is None else Position(*map(bytes.fromhex, mark))
            data_file = self._open[job.id] = _OpenDataFile(buffer, DataFileWriter(buffer), 0, next_row)
        rows = self._lines(job, table, data_file, limit)
        if data_file.file.is_full or data_file.is_over:
            self._store_file(job, data_file)
        return rows

    def _lines(self, job: Job, table: Table, data_file: _OpenDataFile, limit: int) -> int:
        """Write some rows to the open data file, at most until it is full.

        Return the units of work: one for each scanned row, and one for each KiB of items.
        """
        request = job.definition["request"]
        selection = selection_of(object_worker.call_of(self._gateway, job), request, table)
        page = object_worker.run_command(
            self._gateway, self._read(job, table, selection, data_file.next, limit)
        )
        as_ion = request.get("ExportFormat") == "ION"
        export_lines = (
            self._changes(job, page.rows, selection, as_ion)
            if job.definition["window"] is not None
            else lines_of_rows(table, page.rows, selection, as_ion)
        )
        read_bytes = 0
        for export_line in export_lines:
            if data_file.file.is_full or read_bytes > limit << 10:
                data_file.next = export_line.row.position
                break
            read_bytes += export_line.read_bytes
            if export_line.line:
                data_file.file.add(export_line.line)
                data_file.billed += export_line.billed
        else:
            data_file.next = None if page.next is None else page.next.position
            data_file.is_over = page.next is None
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
        self, job: Job, changed_rows: list[Row], selection: ExportSelection, as_ion: bool
    ) -> Iterator[ExportLine]:
        """Yield the lines of changed keys. A line is empty if the change left nothing or is not selected.

        The filter applies to the new image, or for a deleted item to the old one (developer guide, "Filtering a table
        export").
        """
        space = namespace_of_job(job.id)
        before, after = (
            object_worker.run_command(self._gateway, FindTable(space, name)) for name in ("before", "after")
        )
        for first in range(0, len(changed_rows), _CHANGES_AT_ONCE):
            rows = changed_rows[first : first + _CHANGES_AT_ONCE]
            gets = [Get(table, row.position) for row in rows for table in (before, after)]
            images = object_worker.run_command(self._gateway, ReadAll(tuple(gets)))
            for row, old, new in zip(rows, images[::2], images[1::2], strict=True):
                line, billed = line_of_change(job, row, (after, old, new), selection, as_ion)
                yield ExportLine(row, line, billed, sum(image.size_bytes for image in (old, new) if image))

    def _store_file(self, job: Job, data_file: _OpenDataFile) -> None:
        """Store the open data file and save the position in the rows."""
        progress = job.progress
        files = progress["files"]
        md5 = data_file.file.finish()
        data_file.buffer.seek(0)
        etag = self._store.write(
            _bucket(job), self._data_key(job, len(files)), data_file.buffer, _new_object(job)
        )
        mark = data_file.next
        new_progress = {
            **progress,
            "files": [*files, [data_file.file.items, base64.b64encode(md5).decode(), etag]],
            "items": progress["items"] + data_file.file.items,
            "billed": progress["billed"] + data_file.billed,
            "mark": None if mark is None else [part.hex() for part in mark],
            "read": data_file.is_over,
        }
        self.forget(job.id)
        object_worker.run_command(self._gateway, AdvanceJob(job, new_progress))

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
        file_lines = [
            manifests.file_line(self._data_key(job, number), items, base64.b64decode(md5), etag)
            for number, (items, md5, etag) in enumerate(progress["files"])
        ]
        self._put_with_md5(job, manifests.FILES, b"".join(file_lines))
        self._put_with_md5(job, manifests.SUMMARY, self._summary(job, progress))
        progress["manifest"] = self._folder(job) + manifests.SUMMARY
        object_worker.run_command(self._gateway, AdvanceJob(job, progress, state=COMPLETED, ended=True))

    def _summary(self, job: Job, progress: dict[str, Any]) -> bytes:
        definition, request = job.definition, job.definition["request"]
        window = definition["window"]
        return manifests.ExportSummary(
            export_arn=EXPORT.arn(job),
            table_arn=definition["table_arn"],
            table_id=definition["table_id"],
            started_at_ms=job.created_at_ms,
            ended_at_ms=self._gateway.now_ms(),
            exported_at_ms=job.created_at_ms if definition["at_ms"] is None else definition["at_ms"],
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
        with contextlib.closing(io.BytesIO(data)) as buffer:
            self._store.write(_bucket(job), key, buffer, _new_object(job))


_EMPTY: dict[str, Any] = {"files": [], "items": 0, "billed": 0}


def _bucket(job: Job) -> BucketReference:
    return object_worker.bucket_of(job, job.definition["request"])


def _prefix(job: Job) -> str:
    return str(job.definition["request"].get("S3Prefix", "")).rstrip("/")


def _new_object(job: Job) -> NewObject:
    return object_worker.new_object_of(job, job.definition["request"])

"""The folder of a DynamoDB export to S3 as an endpoint: a full export with the incremental ones after it, or one to
write.

The path is a copy of the bucket, the export's own folder, or its manifest-summary.json. The facts in the manifests
are verified: their own checksums, the number of items of each data file and of all, and the MD5 of each data file.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import line_of, read_change, read_item
from tablegate.adapters.dynamodb.export_files.manifests import DataFileWriter
from tablegate.adapters.dynamodb.values.values import render_row
from tablegate.gateway.model.values.keys import LOWEST, KeySchema, Position
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage, Service
from tablegate.transfer.endpoints.files import file_endpoint
from tablegate.transfer.endpoints.files.dynamodb_lines import require_ion_reader
from tablegate.transfer.endpoints.files.export_folder import ExportFolder
from tablegate.transfer.endpoints.files.file_endpoint import keys_missing, keys_of
from tablegate.transfer.endpoints.files.staging import Staging, sync_folder
from tablegate.transfer.endpoints.files.stream_records import ExportedChanges
from tablegate.transfer.errors import BadAddress, BadFile, CannotResume

_OUTPUT_FORMATS = {"json": "DYNAMODB_JSON", "ion": "ION"}
_CHANGES = "changes"


class DynamoDBExport(file_endpoint.FileEndpoint):
    """An export.

    Options: `keys`, `incremental=PATH,PATH` (the following windows), `lines=ion` (format to write) and
    `md5=ignore`.
    """

    service = Service.DYNAMODB

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path.parent if path.name == manifests.SUMMARY else path)
        self._schema = keys_of(options, self.shown)
        windows = options.get("incremental", "")
        self._windows = [Path(window) for window in windows.split(",") if window]
        self._output_format = _OUTPUT_FORMATS.get(options.get("lines", "json"))
        if self._output_format is None:
            raise BadAddress(f"{self.shown}: unknown lines={options['lines']}. Use json or ion")
        self._checks_md5 = options.get("md5") != "ignore"
        self._read_lock = threading.Lock()
        self._folder: ExportFolder | None = None
        self._changes: ExportedChanges | None = None

    # Reading

    def read_definition(self) -> Definition:
        folder = self._full()
        described = (self._schema, (), ()) if self._schema is not None else folder.description()
        if described is None:
            raise keys_missing(self.shown)
        schema, indexes, others = described
        name = folder.summary.table_name or self.path.name
        items = folder.summary.items
        return Definition(name, Service.DYNAMODB, schema, indexes, rows=items, other_indexes=others)

    def _full(self) -> ExportFolder:
        with self._read_lock:
            if self._folder is None:
                folder = ExportFolder(self.path)
                if folder.summary.is_incremental:
                    raise BadFile(
                        f"{folder.path} is an incremental export, which has changes only. Name the full export before it"
                        " and add this one as ?incremental=PATH"
                    )
                self._folder = folder
            return self._folder

    def segments(self, count: int) -> list[JSON]:
        """Return parts of the data files, and one part for the rows of incremental exports."""
        self._full().count_items()
        keys = [file.key for file in self._full().files]
        parts = max(1, min(count, len(keys)))
        segments: list[JSON] = [keys[first::parts] for first in range(parts)]
        if self._windows:
            segments.append(_CHANGES)
        exports = self._digests()
        return [{"exports": exports, "part": part} for part in segments]

    def _digests(self) -> list[str]:
        """Return the digests of the manifests of all exports in use."""
        return [self._full().digest, *(ExportFolder(path).digest for path in self._windows)]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        if segment["exports"] != self._digests():
            raise CannotResume(
                f"{self.path} or an incremental export after it has changed since reading began. Start a new job"
            )
        part = segment["part"]
        schema = self.read_definition().key_schema
        changes = self._decided(schema) if self._windows else None
        if part == _CHANGES:
            assert changes is not None
            yield from file_endpoint.paged(_left_by(changes, resume))
        else:
            yield from file_endpoint.paged(self._rows(part, resume or [0, 0], schema, changes))

    def _rows(
        self, keys: list[str], resume: list[int], schema: KeySchema, changes: ExportedChanges | None
    ) -> Iterator[tuple[Row, JSON]]:
        first, skipped = resume
        for at, key in enumerate(keys[first:], first):
            for count, (lines, line, form) in enumerate(self._full().lines(key, self._checks_md5), 1):
                if at > first or count > skipped:
                    try:
                        item = read_item(line, form)
                        position = position_of_members(item, schema)
                    except UnreadableFile as error:
                        raise lines.bad(error) from None
                    if changes is None or not changes.overrides(position):
                        yield Row(position, item.contents, 0), [at, count]

    def _decided(self, schema: KeySchema) -> ExportedChanges:
        with self._read_lock:
            if self._changes is None:
                changes = ExportedChanges()
                for window in self._in_order():
                    changes.apply(self._changes_of(window, schema))
                self._changes = changes
            return self._changes

    def _in_order(self) -> list[ExportFolder]:
        """Return the windows sorted by their ends.

        Raises BadFile if one is of another table, or ends before the full export, and if there is a gap between them.
        """
        windows = [ExportFolder(path) for path in self._windows]
        assert self._folder is not None
        until, before = self._folder.moment("exportTime"), self._folder
        for window in windows:
            if not window.summary.is_incremental:
                raise BadFile(f"{window.path} is a full export, not an incremental one")
            difference = self._folder.summary.other_table(window.summary)
            if difference is not None:
                raise BadFile(f"{window.path} is an export of another table than {before.path}: {difference}")
            if until is not None and window.end < until:
                raise BadFile(
                    f"{window.path} ends at {window.end.isoformat()}, before {before.path} at {until.isoformat()}. The full"
                    " export has its changes already, so that it would restore older items. Omit it"
                )
        windows.sort(key=lambda window: window.end)
        for window in windows:
            start = window.moment("exportFromTime")
            if start is not None and until is not None and start > until:
                raise BadFile(
                    f"{window.path} begins at {start.isoformat()}, but {before.path} ends at {until.isoformat()}: the changes"
                    " between them are missing"
                )
            until, before = window.end, window
        return windows

    def _changes_of(
        self, window: ExportFolder, schema: KeySchema
    ) -> Iterator[tuple[Position, Contents | None]]:
        window.count_items()
        for file in window.files:
            for lines, line, form in window.lines(file.key, self._checks_md5):
                try:
                    change = read_change(line, form)
                    position = position_of_members(change.keys, schema)
                    if change.new is not None and position_of_members(change.new, schema) != position:
                        raise UnreadableFile("the key of NewImage differs from Keys")
                except UnreadableFile as error:
                    raise lines.bad(error) from None
                yield position, None if change.new is None else change.new.contents

    def close(self) -> None:
        with self._read_lock:
            if self._changes is not None:
                self._changes.close()
                self._changes = None
        super().close()

    # Writing

    def create(self, definition: Definition) -> list[str]:
        if self._output_format == "ION":
            require_ion_reader()
        return super().create(definition)

    def render(self, staging: Staging, target: Path) -> Path:
        file_endpoint.replace_folder(target)
        assert self._output_format is not None
        _Writing(target, staging.definition, self._output_format).write(staging.read())
        return target

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> DynamoDBExport:
        return DynamoDBExport(rendered, {})

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        return render_row(row)


def _left_by(changes: ExportedChanges, resume: JSON | None) -> Iterator[tuple[Row, JSON]]:
    after = Position(LOWEST, LOWEST) if resume is None else Position(*map(bytes.fromhex, resume))
    for row in changes.rows(after):
        yield row, [part.hex() for part in row.position]


class _Writing:
    """An export that is being written. The folder is the root of the bucket."""

    def __init__(self, root: Path, definition: Definition, output_format: str) -> None:
        self._root = root
        self._definition = definition
        self._format = output_format
        self._started_at_ms = time.time_ns() // 1_000_000
        self._id = manifests.export_id(self._started_at_ms, os.urandom(4))
        self._folder = manifests.folder_of("", self._id)
        self._file_lines: list[bytes] = []
        self._items = 0
        self._billed_bytes = 0

    def write(self, rows: Iterator[Row]) -> None:
        """Write all files durably."""
        from tablegate.transfer.endpoints.files.table_description import description_of  # a large import

        (self._root / self._folder / "data").mkdir(parents=True)
        self._put(self._folder + manifests.STARTED, b"")
        row = next(rows, None)
        while row is not None or not self._file_lines:
            row = self._data_file(row, rows)
        self._put_with_md5(manifests.FILES, b"".join(self._file_lines))
        self._put_with_md5(manifests.SUMMARY, self._summary())
        self._put("table.json", description_of(self._definition))
        for folder, _, _ in os.walk(self._root):
            sync_folder(Path(folder))

    def _data_file(self, row: Row | None, rows: Iterator[Row]) -> Row | None:
        """Write a data file that begins with `row`. Return the first row of the next file."""
        key = self._folder + "data/" + manifests.data_file_name(os.urandom(16), self._format)
        with file_endpoint.written_anew(self._root / key) as file:
            writer = DataFileWriter(file)
            while row is not None and not writer.is_full:
                writer.add(line_of(row, self._format == "ION"))
                self._billed_bytes += row.size_bytes
                row = next(rows, None)
            md5 = writer.finish()
        self._file_lines.append(manifests.file_line(key, writer.items, md5))
        self._items += writer.items
        return row

    def _summary(self) -> bytes:
        table_arn = f"arn:aws:dynamodb:us-east-1:000000000000:table/{self._definition.name}"
        return manifests.ExportSummary(
            export_arn=f"{table_arn}/export/{self._id}",
            table_arn=table_arn,
            table_id=str(uuid.uuid4()),
            started_at_ms=self._started_at_ms,
            ended_at_ms=time.time_ns() // 1_000_000,
            exported_at_ms=self._started_at_ms,
            bucket=self._root.name.removesuffix(file_endpoint.FINISHING),
            prefix="",
            output_format=self._format,
            items=self._items,
            billed_bytes=self._billed_bytes,
        ).summary()

    def _put_with_md5(self, name: str, data: bytes) -> None:
        self._put(self._folder + name, data)
        self._put(self._folder + name.replace(".json", ".md5"), manifests.md5_text(data))

    def _put(self, key: str, data: bytes) -> None:
        with file_endpoint.written_anew(self._root / key) as file:
            file.write(data)

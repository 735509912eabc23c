"""DynamoDB items as files of JSON documents or Ion lines. item_documents.py has the forms that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tablegate.adapters.dynamodb.export_files import ion
from tablegate.adapters.dynamodb.export_files.compression import Compression, UnreadableFile, compressed
from tablegate.adapters.dynamodb.export_files.lines import line_of
from tablegate.adapters.dynamodb.values.values import render_row
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage, Service
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, paged, written_anew
from tablegate.transfer.endpoints.files.item_documents import items_of
from tablegate.transfer.endpoints.files.keys_option import keys_missing, keys_of
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import MissingSoftware

_WRITTEN_ROWS = 1000


class DynamoDBLines(FileEndpoint):
    """A file of DynamoDB items. The option `keys` names the key attributes, which are not in the file."""

    service = Service.DYNAMODB

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path)
        self._schema = keys_of(options, self.shown)

    def read_definition(self) -> Definition:
        if self._schema is None:
            raise keys_missing(self.shown)
        name = self.path.name.partition(".")[0]
        return Definition(name, Service.DYNAMODB, self._schema, size_bytes=self.path.stat().st_size)

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        schema = self.describe().key_schema
        self.require_unchanged(segment)
        lines = LineReader(self.path)
        try:
            yield from paged(_rows(lines, schema, 0 if resume is None else int(resume)))
        finally:
            lines.close()

    def create(self, definition: Definition) -> list[str]:
        if self._is_ion:
            require_ion_reader()
        return super().create(definition)

    @property
    def _is_ion(self) -> bool:
        """True if the name selects Ion for writing."""
        return ".ion" in self.path.suffixes

    def render(self, staging: Staging, target: Path) -> Path:
        compression = {".gz": Compression.GZIP, ".zst": Compression.ZSTD}.get(
            self.path.suffix, Compression.NONE
        )
        with written_anew(target) as file:
            for batch in batches(staging.read()):
                file.write(compressed(b"".join([line_of(row, self._is_ion) for row in batch]), compression))
        return target

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> DynamoDBLines:
        reader = DynamoDBLines(rendered, {})
        reader._schema = key_schema
        return reader

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        return render_row(row)


def require_ion_reader() -> None:
    """Raise MissingSoftware if Ion could be written, but not read back."""
    try:
        ion.reader()
    except NotInstalled:
        raise MissingSoftware("Ion needs amazon-ion. Install it with: pip install 'tablegate[ion]'") from None


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows, all but the last of the same length. The last one may be empty: it compresses to some bytes."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _WRITTEN_ROWS:
            yield batch
            batch = []
    yield batch


def _rows(lines: LineReader, schema: KeySchema, skipped: int) -> Iterator[tuple[Row, JSON]]:
    """Yield (row, number of rows so far) after the first rows. The time of writing is unknown."""
    for count, (item, line) in enumerate(items_of(lines), 1):
        if count > skipped:
            try:
                row = Row(position_of_members(item, schema), item.contents, 0)
            except UnreadableFile as error:
                raise lines.bad(error, line) from None
            yield row, count

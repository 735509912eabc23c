"""DynamoDB items as files of JSON documents or Ion lines. item_documents.py has the forms that are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tablegate.adapters.dynamodb.export_files import ion
from tablegate.adapters.dynamodb.export_files.compression import Compression, UnreadableFile, compressed
from tablegate.adapters.dynamodb.export_files.lines import line_of
from tablegate.adapters.dynamodb.values.values import render_row
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import DESCRIPTIONS, DocumentFiles
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, written_anew
from tablegate.transfer.endpoints.files.item_documents import items_of
from tablegate.transfer.endpoints.files.keys_option import keys_missing, keys_of
from tablegate.transfer.endpoints.files.recognition import ITEMS
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import MissingSoftware

if TYPE_CHECKING:
    from tablegate.transfer.endpoints.files.table_description import TableDescription

_WRITTEN_ROWS = 1000


class DynamoDBLines(DocumentFiles):
    """Files of DynamoDB items. Options: `keys` names the key attributes, which most files lack, and `table` the table of
    batches."""

    service = Service.DYNAMODB
    format_name = ITEMS

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._schema = keys_of(options, self.shown)
        self._table = options.get("table", "")

    def read_definition(self) -> Definition:
        name, size = self.table_name, self.size_bytes()
        if self._schema is not None:
            return Definition(name, Service.DYNAMODB, self._schema, size_bytes=size)
        description = self._description()
        if description is None:
            raise keys_missing(self.shown)
        schema, indexes, others = description
        return Definition(name, Service.DYNAMODB, schema, indexes, size_bytes=size, other_indexes=others)

    def _description(self) -> TableDescription | None:
        for name in DESCRIPTIONS if self.path.is_dir() else ():
            if (self.path / name).is_file():
                # Imported here, because it loads the adapter's control plane, the largest part of it.
                from tablegate.transfer.endpoints.files.table_description import read_description

                return read_description(self.path / name)
        return None

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        """Yield the rows. The time of writing is unknown."""
        schema = self.describe().key_schema
        for item, lines, line in items_of(files, self._table):
            try:
                position = position_of_members(item, schema)
            except UnreadableFile as error:
                raise lines.bad(error, line) from None
            yield Row(position, item.contents, 0)

    def create(self, definition: Definition) -> list[str]:
        if self._is_ion:
            require_ion_reader()
        return FileEndpoint.create(self, definition)

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

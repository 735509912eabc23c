"""DynamoDB items as JSON files.

A file has one item on each line (bare, wrapped in `Item`, or Ion text), or the output of `aws dynamodb scan` as one
or several documents. The first line determines the format of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tablegate.adapters.dynamodb.export_files.compression import Compression, UnreadableFile, compressed
from tablegate.adapters.dynamodb.export_files.lines import LineFormat, form_of, line_of, read_item
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage, Service
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint, LineReader, paged, written_anew
from tablegate.transfer.endpoints.files.keys_option import keys_missing, keys_of
from tablegate.transfer.endpoints.files.scan_output import begins_document, items_of
from tablegate.transfer.endpoints.files.staging import Staging

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

    def render(self, staging: Staging, target: Path) -> Path:
        suffixes = self.path.suffixes
        as_ion = ".ion" in suffixes
        compression = {".gz": Compression.GZIP, ".zst": Compression.ZSTD}.get(
            self.path.suffix, Compression.NONE
        )
        with written_anew(target) as file:
            for batch in batches(staging.read()):
                file.write(compressed(b"".join([line_of(row, as_ion) for row in batch]), compression))
        return target


def batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows, all but the last of the same length."""
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _WRITTEN_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _rows(lines: LineReader, schema: KeySchema, skipped: int) -> Iterator[tuple[Row, JSON]]:
    first = next(lines, None)
    if first is None:
        return
    items = items_of(first, lines) if begins_document(first) else _items(first, lines, skipped)
    for count, item in enumerate(items, 1):
        if count > skipped and item is not None:
            yield _row(item, schema, lines), count


def _items(first: bytes, lines: LineReader, skipped: int) -> Iterator[ParsedItem | None]:
    """Yield the items of lines. The first `skipped` items are replaced by None."""
    form: LineFormat | None = None
    line: bytes | None = first
    count = 0
    while line is not None:
        if line.strip():
            try:
                form = form_of(line) if form is None else form
                count += 1
                yield None if count <= skipped else read_item(line, form)
            except UnreadableFile as error:
                raise lines.bad(error) from None
        line = next(lines, None)


def _row(item: ParsedItem, schema: KeySchema, lines: LineReader) -> Row:
    """Return an item as a row with unknown time of writing."""
    try:
        return Row(position_of_members(item, schema), item.contents, 0)
    except UnreadableFile as error:
        raise lines.bad(error) from None

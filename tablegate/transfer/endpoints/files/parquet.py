"""Parquet files as endpoints. Files of tablegate are restored exactly, other files by their types
(parquet_columns.py)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.values.values import as_kind, view
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import json_object, position_of, row_of_values
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.definitions import definition_of, document_of
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage, Service
from tablegate.transfer.endpoints.files.file_endpoint import (
    FileEndpoint,
    keys_missing,
    keys_of,
    paged,
    written_anew,
)
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadFile, MissingSoftware

try:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tablegate.transfer.endpoints.files import parquet_columns as columns
except ImportError:
    raise MissingSoftware(
        "Parquet files need pyarrow. Install it with: pip install 'tablegate[parquet]'"
    ) from None

_METADATA = b"tablegate"
_FORMAT = "parquet"
_VERSION = 1
_GROUP_ROWS = 20_000
_GROUP_BYTES = 8 << 20
_GROUP_CELLS = 1_000_000
_BATCH_ROWS = 500


class ParquetFile(FileEndpoint):
    """A Parquet file. The option `keys` names the key columns of a file that tablegate did not write."""

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path)
        self._schema = keys_of(options, self.shown)
        self._read_lock = threading.Lock()
        self._known: tuple[Definition, list[columns.Column] | None] | None = None

    # Reading

    def read_definition(self) -> Definition:
        return self._describe()[0]

    def _describe(self) -> tuple[Definition, list[columns.Column] | None]:
        """Return (definition, columns). The columns are None if tablegate did not write the file."""
        with self._read_lock:
            if self._known is None:
                with self._open() as file:
                    header = (file.schema_arrow.metadata or {}).get(_METADATA)
                    rows = file.metadata.num_rows
                if header is not None:
                    self._known = self._own(header)
                elif self._schema is None:
                    raise keys_missing(self.shown)
                else:
                    name = self.path.name.partition(".")[0]
                    definition = Definition(name, Service.TABLEGATE, self._schema, rows=rows, is_stored=True)
                    self._known = definition, None
            return self._known

    def _own(self, metadata: bytes) -> tuple[Definition, list[columns.Column]]:
        try:
            header = json_object(metadata)
            if (header.get("format"), header.get("version")) != (_FORMAT, _VERSION):
                raise BadFile(
                    f"{self.path} has version {header.get('version')}. This release reads version {_VERSION}"
                )
            own_columns = [
                columns.Column(name, attribute, Kind(kind)) for name, attribute, kind in header["columns"]
            ]
            return definition_of(header["definition"]), own_columns
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadFile(f"{self.path}: the table definition in it is damaged ({error!r})") from None

    def _open(self) -> Any:
        with self.converted_errors():
            try:
                return pq.ParquetFile(self.path, page_checksum_verification=True)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise BadFile(f"{self.path} is not a complete Parquet file: {error}") from None

    def footer_sizes(self) -> tuple[int, int]:
        """Return the number of rows and the uncompressed bytes that the footer states. They can be wrong."""
        with self._open() as file:
            metadata = file.metadata
            groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
            return metadata.num_rows, sum(group.total_byte_size for group in groups)

    def segments(self, count: int) -> list[JSON]:
        """Return parts of the row groups."""
        self.find()
        with self._open() as file:
            groups = list(range(file.num_row_groups))
        parts = max(1, min(count, len(groups)))
        return [groups[first::parts] for first in range(parts)]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        self.find()
        definition, own = self._describe()
        with self._open() as file:
            yield from paged(self._rows(file, segment, resume or [0, 0], definition.key_schema, own))

    def _rows(
        self,
        file: Any,
        groups: list[int],
        resume: list[int],
        schema: KeySchema,
        own: list[columns.Column] | None,
    ) -> Iterator[tuple[Row, JSON]]:
        first, skipped = resume
        for at, group in enumerate(groups[first:], first):
            count = 0
            for batch in self._batches(file, group):
                skip = min(max(skipped - count, 0), len(batch)) if at == first else 0
                count += skip
                rest = batch.slice(skip)
                try:
                    for row in _foreign_rows(rest, schema) if own is None else _own_rows(rest, schema, own):
                        count += 1
                        yield row, [at, count]
                except UnreadableFile as error:
                    raise BadFile(f"{self.path}, row group {group}, row {count + 1}: {error}") from None
            expected = file.metadata.row_group(group).num_rows
            if count != expected:
                raise BadFile(f"{self.path}, row group {group}: {count} rows, but the footer has {expected}")

    def _batches(self, file: Any, group: int) -> Iterator[Any]:
        try:
            yield from file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group])
        except (pa.ArrowException, OSError) as error:
            raise BadFile(f"{self.path}, row group {group}: damaged: {error}") from None

    # Writing

    def render(self, staging: Staging, target: Path) -> Path:
        write_file(target, staging.definition, staging.read)
        return target

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> ParquetFile:
        return ParquetFile(rendered, {})

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        times = (row.modified_at, row.expires_at_ms, None if row.kinds is None else orjson.loads(row.kinds))
        return orjson.dumps(times, option=orjson.OPT_SORT_KEYS) + super().content_of(row, key_schema)


def write_file(target: Path, definition: Definition, read: Callable[[], Iterable[Row]]) -> None:
    """Write a Parquet file durably. `read` returns the rows, and is called twice."""
    kinds: dict[str, dict[Kind, None]] = {}
    for row in read():
        for name, value in row.latest.items():
            kinds.setdefault(name, {})[value.kind] = None
    file_columns = columns.columns_of(kinds)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "definition": document_of(definition),
        "columns": [[column.name, column.attribute, column.kind.value] for column in file_columns],
    }
    schema = columns.arrow_schema(file_columns).with_metadata({_METADATA: orjson.dumps(header)})
    with (
        written_anew(target) as file,
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for group in _groups(read(), file_columns, schema):
            writer.write_table(group)


def _groups(rows: Iterable[Row], file_columns: list[columns.Column], schema: Any) -> Iterator[Any]:
    """Yield a table for each row group, limited in rows, bytes and empty cells."""
    rows_max = max(1, min(_GROUP_ROWS, _GROUP_CELLS // len(schema)))
    group = _RowGroup(file_columns, schema)
    for row in rows:
        group.add(row)
        if group.rows >= rows_max or group.size_bytes >= _GROUP_BYTES:
            yield group.table()
            group = _RowGroup(file_columns, schema)
    if group.rows:
        yield group.table()


class _RowGroup:
    """The cells of some rows by column."""

    def __init__(self, file_columns: list[columns.Column], schema: Any) -> None:
        self._schema = schema
        self._names = {(column.attribute, column.kind): column.name for column in file_columns}
        self._cells: dict[str, list[Any]] = {name: [] for name in schema.names}
        self.rows = 0
        self.size_bytes = 0

    def add(self, row: Row) -> None:
        """Add a row's cells."""
        others = {}
        for name, value in row.latest.items():
            column = self._names.get((name, value.kind))
            if column is None:
                others[name] = value
            else:
                self._put(column, columns.cell_of(value))
        self._put(columns.MODIFIED_AT, row.modified_at)
        if row.expires_at_ms is not None:
            self._put(columns.EXPIRES_AT, row.expires_at_ms)
        if row.kinds is not None:
            self._put(columns.KINDS, row.kinds.decode())
        if others:
            self._put(columns.OTHERS, bodies.encode(others).decode())
        self.rows += 1
        self.size_bytes += row.size_bytes

    def _put(self, column: str, cell: Any) -> None:
        cells = self._cells[column]
        cells += [None] * (self.rows - len(cells))
        cells.append(cell)

    def table(self) -> Any:
        """Return the cells as an Arrow table."""
        arrays = []
        for field in self._schema:
            cells = self._cells[field.name]
            arrays.append(pa.array(cells + [None] * (self.rows - len(cells)), field.type))
        return pa.table(arrays, schema=self._schema)


def _own_rows(batch: Any, schema: KeySchema, file_columns: list[columns.Column]) -> Iterator[Row]:
    try:
        cells = [(column, batch.column(column.name).to_pylist()) for column in file_columns]
        modified, expires, kinds, others = (
            batch.column(name).to_pylist()
            for name in (columns.MODIFIED_AT, columns.EXPIRES_AT, columns.KINDS, columns.OTHERS)
        )
    except KeyError as error:
        raise UnreadableFile(f"the column {error} is missing") from None
    for at in range(len(batch)):
        try:
            values = {
                column.attribute: columns.value_of(column.kind, column_cells[at])
                for column, column_cells in cells
                if column_cells[at] is not None
            }
            if others[at] is not None:
                values.update(bodies.decode(others[at].encode()))
            stored_kinds = None if kinds[at] is None else orjson.loads(kinds[at])
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise UnreadableFile(f"a value is damaged ({error!r})") from None
        yield row_of_values(values, stored_kinds, modified[at], expires[at], schema)


def _foreign_rows(batch: Any, schema: KeySchema) -> Iterator[Row]:
    cells = {name: columns.foreign_cells(batch.column(name), name) for name in batch.schema.names}
    for at in range(len(batch)):
        values = {name: column[at] for name, column in cells.items()}
        present = {name: value for name, value in values.items() if value is not None}
        for column in schema.columns:
            if column.name in present:
                present[column.name] = _as_key(present[column.name], column.kind)
        contents = Contents.of_values(present)
        yield Row(position_of(present, schema), contents, 0)


def _as_key(value: Value, kind: Kind) -> Value:
    """Return a value in the kind of its key column, unchanged if it cannot be converted."""
    if value.kind is kind:
        return value
    converted = as_kind(view(value), kind)
    return value if converted is None else converted

"""The typed CSV of Azure Storage Explorer: a column for each property and a column `NAME@type` for its type.

An absent property has an empty value and an empty type, or the type Null. An empty text has an empty value and the type
String. Types are written bare (`Int32`), like the current tool does, and read in any case with or without `Edm.`. Property names
are Azure's.

A value without a type is rejected unless the address has an option. `?types=first-row` uses the last type of the
column, because version 1.40.0 wrote types in the first row only. `?types=text` reads such values as text.

Texts that spreadsheets take for formulas have an apostrophe in front (csv_cells.py), which reading removes.
`?formulas=keep` neither adds nor removes it: files to and from Storage Explorer, which does not know the mark.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from tablegate.adapters.azuretable.values.keys import OWN_SCHEMA, own_key, texts_of
from tablegate.adapters.azuretable.values.names import SYSTEM_NAMES
from tablegate.adapters.azuretable.values.values import (
    SPELLINGS,
    UNIX_EPOCH_TICKS,
    parse_datetime,
    read,
    timestamp_text,
    view,
)
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.csv_cells import cell_of, text_of_cell
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.csv_lines import CsvFile
from tablegate.transfer.endpoints.files.file_endpoint import written_anew
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadAddress, TransferError

_TYPE = "@type"
_PARTITION_KEY, _ROW_KEY, _TIMESTAMP = "PartitionKey", "RowKey", "Timestamp"
_SYSTEM = (_PARTITION_KEY, _ROW_KEY, _TIMESTAMP)
_TYPES = {
    Kind.TEXT: "String", Kind.BOOL: "Boolean", Kind.INT32: "Int32", Kind.INT64: "Int64", Kind.DOUBLE: "Double",
    Kind.DATETIME: "DateTime", Kind.GUID: "Guid", Kind.BYTES: "Binary",
}  # fmt: skip
_EDM = {name.lower(): f"Edm.{name}" for name in _TYPES.values()}
_UNTYPED = ("refuse", "first-row", "text")
_EMPTY = ("keep", "drop")
_FORMULAS = ("mark", "keep")
MAX_COLUMNS = 20_000
"""Maximum number of distinct properties in all rows. An entity has at most 252."""


class TypedCsv(CsvFile):
    """A file of typed CSV. Options: `types`, `formulas` (see above), `delimiter`, `empty=drop` (omit empty texts)."""

    service = Service.AZURE_TABLE

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._untyped = options.get("types", "refuse")
        self._empty = options.get("empty", "keep")
        self._formulas = options.get("formulas", "mark")
        self._marks = self._formulas == "mark"
        for name, value, choices in (
            ("types", self._untyped, _UNTYPED),
            ("empty", self._empty, _EMPTY),
            ("formulas", self._formulas, _FORMULAS),
        ):
            if value not in choices:
                raise BadAddress(f"{self.shown}: unknown {name}={value}. Use one of {', '.join(choices)}")

    def read_definition(self) -> Definition:
        name = self.path.name.partition(".")[0]
        size = self.path.stat().st_size
        return Definition(name, Service.AZURE_TABLE, OWN_SCHEMA, size_bytes=size)

    def row_reader(self, header: list[str]) -> Callable[[list[str]], Row]:
        is_empty_absent = self._empty == "drop"
        if not self._marks:
            return _Columns.of(header, self._untyped, is_empty_absent).row
        columns = _Columns.of([*map(text_of_cell, header)], self._untyped, is_empty_absent)
        return lambda cells: columns.row([*map(text_of_cell, cells)])

    def render(self, staging: Staging, target: Path) -> Path:
        names = self._names(staging)
        header = [*_SYSTEM, *(column for name in names for column in (name, name + _TYPE))]
        with written_anew(target) as file:
            text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
            writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\r\n")
            writer.writerow(self._written(header))
            schema = staging.definition.key_schema
            for row in staging.read():
                keys = texts_of(schema, schema.key(row.latest).values)
                cells = dict(_cells(row, schema.names))
                record = [*self._written(keys), timestamp_text(row.modified_at + UNIX_EPOCH_TICKS)]
                for name in names:
                    kind, cell = cells.get(name, (None, ""))
                    record += (cell, "") if kind is None else (*self._written([cell], kind), _TYPES[kind])
                writer.writerow(record)
            text.flush()
            text.detach()
        return target

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> TypedCsv:
        return TypedCsv(rendered, {"delimiter": self._delimiter, "formulas": self._formulas})

    def content_of(self, row: Row, key_schema: KeySchema) -> bytes:
        latest = row.latest
        shown = {name: view(latest[name]) for name in sorted(latest.keys() - set(key_schema.names))}
        values = {name: value for name, value in shown.items() if value.kind is not Kind.NULL}
        return orjson.dumps(texts_of(key_schema, key_schema.key(latest).values)) + bodies.encode(values)

    def _written(self, texts: Iterable[str], kind: Kind = Kind.TEXT) -> list[str]:
        return [cell_of(text, kind) if self._marks else text for text in texts]

    def _names(self, staging: Staging) -> list[str]:
        """Return all properties of all rows in the order of their first occurrence."""
        names: dict[str, None] = {}
        key_names = staging.definition.key_schema.names
        for row in staging.read():
            for name, _ in _cells(row, key_names):
                if name in SYSTEM_NAMES or name.endswith(_TYPE):
                    raise TransferError(f"{self.shown}: a typed CSV cannot have a property {name!r}")
                names[name] = None
            if len(names) > MAX_COLUMNS:
                raise TransferError(
                    f"{self.shown}: the rows have more than {MAX_COLUMNS} different properties, and each would be a"
                    " column. Use JSON Lines (.jsonl)"
                )
        return list(names)


def _cells(row: Row, key_names: tuple[str, ...]) -> Iterator[tuple[str, tuple[Kind, str]]]:
    """Yield (property, (kind, text)) of a row without its key, in Azure's form."""
    for name, value in row.latest.items():
        if name not in key_names:
            kind, data = view(value)
            if kind is not Kind.NULL:
                yield name, (kind, _cell(kind, data))


def _cell(kind: Kind, data: object) -> str:
    wire = SPELLINGS[kind][1](data)
    if isinstance(wire, str):
        return wire
    return str(wire).lower() if isinstance(wire, bool) else repr(wire)


@dataclass
class _Columns:
    """The columns of the header, and the last type of each."""

    width: int
    places: dict[str, int]
    properties: list[tuple[str, int, int | None]]
    untyped: str
    drops_empty: bool
    last_types: dict[str, str]

    @classmethod
    def of(cls, header: list[str], untyped: str, drops_empty: bool) -> _Columns:
        places = {name: at for at, name in enumerate(header)}
        if len(places) < len(header):
            duplicate = next(name for name in header if header.count(name) > 1)
            raise UnreadableFile(f"the column {duplicate!r} occurs twice")
        for name in (_PARTITION_KEY, _ROW_KEY):
            if name not in places:
                raise UnreadableFile(
                    f"the column {name!r} is missing: not a typed CSV of Storage Explorer."
                    " If it is CSV of DynamoDB, of the console or for its import from S3, add ?keys=NAME:S"
                )
        properties = []
        for name, at in places.items():
            if name.endswith(_TYPE):
                if name.removesuffix(_TYPE) not in places:
                    raise UnreadableFile(f"the type column {name!r} has no value column")
            elif name not in _SYSTEM:
                properties.append((name, at, places.get(name + _TYPE)))
        return cls(len(header), places, properties, untyped, drops_empty, {})

    def row(self, cells: list[str]) -> Row:
        """Return the row of a record. Raises UnreadableFile."""
        if len(cells) != self.width:
            raise UnreadableFile(f"the record has {len(cells)} cells, but the header has {self.width}")
        key = own_key(cells[self.places[_PARTITION_KEY]], cells[self.places[_ROW_KEY]])
        values = dict(zip((_PARTITION_KEY, _ROW_KEY), key.values, strict=True))
        for name, at, type_at in self.properties:
            value = self._value(name, cells[at], "" if type_at is None else cells[type_at])
            if value is not None:
                values[name] = value
        return Row(key.position, Contents.of_values(values), self._modified_at(cells))

    def _value(self, name: str, cell: str, type_name: str) -> Value | None:
        if not type_name:
            if not cell:
                return None
            type_name = self._assumed_type(name, cell)
        type_word = type_name.lower().removeprefix("edm.")
        if type_word == "null":
            if cell:
                raise UnreadableFile(f"{name!r}: the value {cell[:60]!r} has the type Null")
            return None
        edm = _EDM.get(type_word)
        if edm is None:
            raise UnreadableFile(
                f"{name!r}: unknown type {type_name!r}. Use one of {', '.join(_TYPES.values())}"
            )
        self.last_types[name] = type_name
        if self.drops_empty and not cell and edm == "Edm.String":
            return None
        try:
            return read(cell, edm)
        except ServiceError:
            raise UnreadableFile(f"{name!r}: the value {cell[:60]!r} is not a valid {edm}") from None

    def _assumed_type(self, name: str, cell: str) -> str:
        if self.untyped == "text":
            return "String"
        last_type = self.last_types.get(name) if self.untyped == "first-row" else None
        if last_type is None:
            raise UnreadableFile(
                f"{name!r}: the value {cell[:60]!r} has no type. Add ?types=first-row (use the last type of its column)"
                " or ?types=text"
            )
        return last_type

    def _modified_at(self, cells: list[str]) -> int:
        at = self.places.get(_TIMESTAMP)
        if at is None or not cells[at]:
            return 0
        ticks = parse_datetime(cells[at])
        if ticks is None:
            raise UnreadableFile(f"{_TIMESTAMP!r}: {cells[at][:60]!r} is not a time")
        return ticks - UNIX_EPOCH_TICKS

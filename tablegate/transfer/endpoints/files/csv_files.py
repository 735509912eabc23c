"""CSV files: of DynamoDB (the console's "Download results to CSV", and files for its import from S3), and typed CSV.

The first line of a CSV of DynamoDB has the names of the attributes. The file has no types, so the address says them: `keys`
for the key, and `types` for the other columns, `types=text` or such as `types=age:N,tags:SS`. A column without a type is a
text, as the import reads it. Cells of BOOL, NULL, L, M and sets are JSON as in DynamoDB JSON, such as `{"a":{"S":"x"}}` for
a map. An empty cell is the empty text, with `empty=drop` it is absent. In columns of other types it is absent. Source:
"Import formats" in the developer guide (all attributes but keys are strings).

The typed CSV of Azure Storage Explorer has a column for each property and a column `NAME@type` for its type. An absent
property has an empty value and an empty type, or the type Null. An empty text has an empty value and the type String. Types
are written bare (`Int32`), like the current tool does, and read in any case with or without `Edm.`. Property names are
Azure's. A value without a type is rejected unless the address has an option. `?types=first-row` uses the last type of the
column, because version 1.40.0 wrote types in the first row only. `?types=text` reads such values as text. Texts that
spreadsheets take for formulas have an apostrophe in front (csv_cells.py), which reading removes. `?formulas=keep` neither
adds nor removes it: files to and from Storage Explorer, which does not know the mark.
"""

from __future__ import annotations

import csv
import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from tablegate.adapters.azuretable.keys import OWN_SCHEMA, SYSTEM_NAMES, own_key, texts_of
from tablegate.adapters.azuretable.values import (
    SPELLINGS,
    UNIX_EPOCH_TICKS,
    parse_datetime,
    read,
    timestamp_text,
    view,
)
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.line_formats import LineFormat, read_item, shown_names
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.csv_cells import cell_of, text_of_cell
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import LINE_BYTES, position_of_members
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import JSON, Definition, ScanPage, Service
from tablegate.transfer.endpoints.files.file_endpoint import (
    FileEndpoint,
    inflated,
    keys_of,
    paged,
    written_anew,
)
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadAddress, BadFile, TransferError

csv.field_size_limit(LINE_BYTES)


class CsvFile(FileEndpoint):
    """A file of CSV with the option `delimiter`. The first record is the header."""

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path)
        delimiter = options.get("delimiter", ",")
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise BadAddress(f"{self.shown}: delimiter={delimiter}: the delimiter must be one character")
        self._delimiter = delimiter

    @abstractmethod
    def row_reader(self, header: list[str]) -> Callable[[list[str]], Row]:
        """Return the function that makes a row of the cells of a record. Both raise UnreadableFile."""

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        self.find()
        self.require_unchanged(segment)
        stream = inflated(self.path)
        try:
            with io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
                yield from paged(self._rows(text, 0 if resume is None else int(resume)))
        finally:
            stream.close()

    def _rows(self, text: io.TextIOWrapper, skipped: int) -> Iterator[tuple[Row, JSON]]:
        read: Callable[[list[str]], Row] | None = None
        for count, (line, cells) in enumerate(_numbered_records(text, self._delimiter, self.path)):
            try:
                if read is None:
                    read = self.row_reader(cells)
                    continue
                row = read(cells)
            except UnreadableFile as error:
                raise BadFile(f"{self.path}, line {line}: {error}") from None
            if count > skipped:
                yield row, count


def _numbered_records(text: io.TextIOWrapper, delimiter: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells) of each record that is not empty, the header first. Raises BadFile."""
    reader = csv.reader(_whole_lines(text), delimiter=delimiter, strict=True)
    line = 1
    has_header = False
    try:
        for cells in reader:
            if cells or not has_header:
                yield line, cells
            has_header = True
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise BadFile(
            f"{path}, line {line}: not UTF-8 ({error}). Convert it: iconv -t UTF-8 -f ENCODING FILE > NEW"
        ) from None
    except (UnreadableFile, csv.Error) as error:
        raise BadFile(f"{path}, line {line}: {error}") from None
    if not has_header:
        raise BadFile(f"{path}, line 1: the file is empty")


def _whole_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield lines. Raises UnreadableFile if the last one has no end: a shorter key or value would be valid, too."""
    for line in text:
        if not line.endswith(("\n", "\r")):
            raise UnreadableFile(
                "the last line has no line break, so that the file may be truncated. Add one if it is complete"
            )
        yield line


_LETTERS = {Kind.TEXT: "S", Kind.DECIMAL: "N", Kind.BYTES: "B"}
_PLAIN = frozenset({"S", "N", "B"})
_TAGS = _PLAIN | {"BOOL", "NULL", "L", "M", "SS", "NS", "BS"}


class DynamoDBCsv(CsvFile):
    """A file of CSV. Can only be read. Options: `keys`, `types`, `empty` (see above), `delimiter`."""

    service = Service.DYNAMODB

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._schema = keys_of(options, self.shown)
        self._types = _types_of(options.get("types"), self.shown)
        empty = options.get("empty", "keep")
        if empty not in ("keep", "drop"):
            raise BadAddress(f"{self.shown}: unknown empty={empty}. Use keep or drop")
        self._drops_empty = empty == "drop"

    def read_definition(self) -> Definition:
        name, size = self.path.name.partition(".")[0], self.path.stat().st_size
        return Definition(name, Service.DYNAMODB, self._key_schema(), size_bytes=size)

    def _key_schema(self) -> KeySchema:
        if self._schema is None or any(column.kind not in _LETTERS for column in self._schema.columns):
            raise BadAddress(
                f"{self.shown}: CSV of DynamoDB, as its console and its import from S3 have it, has no key. Add"
                " ?keys=NAME:S or ?keys=NAME:S,NAME:N, with types S, N and B"
            )
        return self._schema

    def row_reader(self, header: list[str]) -> Callable[[list[str]], Row]:
        schema = self._key_schema()
        return partial(self._row, header, self._column_types(header, schema), schema)

    def _column_types(self, header: Sequence[str], schema: KeySchema) -> list[str]:
        if len(set(header)) < len(header) or "" in header:
            raise UnreadableFile("the header has an empty or repeated name")
        if any(name.endswith("@type") for name in header):
            raise UnreadableFile("this is typed CSV of Storage Explorer. Omit ?keys=")
        keys = {column.name: _LETTERS[column.kind] for column in schema.columns}
        if unknown := (keys.keys() | (self._types or {}).keys()) - set(header):
            raise UnreadableFile(f"the header has no column {shown_names(sorted(unknown))}")
        others = [name for name in header if name not in keys]
        if self._types is None and others:
            raise UnreadableFile(
                f"CSV of DynamoDB has no types, but the columns {shown_names(others)}. Add &types=text (all are texts, as"
                " the import from S3 reads them), or the types of those that are no texts, such as &types=NAME:N,NAME:BOOL"
            )
        named = {**(self._types or {}), **keys}
        return [named.get(name, "S") for name in header]

    def _row(self, header: list[str], types: list[str], schema: KeySchema, cells: list[str]) -> Row:
        if len(cells) != len(header):
            raise UnreadableFile(f"the record has {len(cells)} cells, but the header has {len(header)}")
        wire = {
            name: {letter: _data(name, letter, cell)}
            for name, letter, cell in zip(header, types, cells, strict=True)
            if cell or (letter == "S" and not self._drops_empty)
        }
        item = read_item(orjson.dumps(wire), LineFormat.BARE)
        return Row(position_of_members(item, schema), item.contents, 0)

    # Writing

    def create(self, definition: Definition) -> list[str]:
        raise BadAddress(f"{self.shown}: CSV of DynamoDB can only be read. Write .jsonl or .json")

    def render(self, staging: Staging, target: Path) -> Path:
        raise AssertionError("never created")

    def reader_of(self, rendered: Path, key_schema: KeySchema) -> FileEndpoint:
        raise AssertionError("never created")


def _types_of(option: str | None, shown: str) -> dict[str, str] | None:
    """Parse the option `types`, None if it is not given. Raises BadAddress."""
    if option is None:
        return None
    types: dict[str, str] = {}
    for part in option.split(",") if option != "text" else ():
        name, colon, letter = part.rpartition(":")
        if not colon or not name or letter not in _TAGS or unquote(name) in types:
            raise BadAddress(
                f"{shown}: types={option}: use text, or NAME:TYPE for each other column with a TYPE of"
                f" {', '.join(sorted(_TAGS))}"
            )
        types[unquote(name)] = letter
    return types


def _data(name: str, letter: str, cell: str) -> Any:
    if letter in _PLAIN:
        return cell
    try:
        return orjson.loads(cell.lower() if letter in ("BOOL", "NULL") else cell)
    except orjson.JSONDecodeError:
        raise UnreadableFile(f"{name!r}: {cell[:60]!r} is not JSON, which the type {letter} needs") from None


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

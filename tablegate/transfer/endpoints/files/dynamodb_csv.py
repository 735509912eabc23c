"""CSV of DynamoDB: the console's "Download results to CSV", and files for its import from S3.

The first line has the names of the attributes. The file has no types, so the address says them: `keys` for the key, and
`types` for the other columns, `types=text` or such as `types=age:N,tags:SS`. A column without a type is a text, as the
import reads it. Cells of BOOL, NULL, L, M and sets are JSON as in DynamoDB JSON, such as `{"a":{"S":"x"}}` for a map. An
empty cell is the empty text, with `empty=drop` it is absent. In columns of other types it is absent.

Source: "Import formats" in the developer guide (all attributes but keys are strings).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.export_files.lines import LineFormat, read_item, shown_names
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.row_lines import position_of_members
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.csv_lines import CsvFile
from tablegate.transfer.endpoints.files.file_endpoint import FileEndpoint
from tablegate.transfer.endpoints.files.keys_option import keys_of
from tablegate.transfer.endpoints.files.staging import Staging
from tablegate.transfer.errors import BadAddress

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

"""Rows of the command line of Table Store (`export`, `scan -o`), one JSON object for each.

    {"PK":{"Values":["a",1]},"Attr":{"Values":[{"C":"age","V":32,"TS":1626860801604,"IsInt":true}]}}

The names of the key columns are not in the file. A number is a double unless IsInt or the type T says otherwise, as the
tool itself reads it. Source: "Operations on data" and "Tablestore CLI" in the documentation of Table Store.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.row_lines import check, position_of
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.endpoints.files.document_files import (
    CLI_ROWS,
    DocumentFiles,
    elements_of,
    require_members,
)
from tablegate.transfer.endpoints.files.file_endpoint import LineReader, keys_of
from tablegate.transfer.errors import BadAddress

_KINDS = {
    "string": Kind.TEXT, "integer": Kind.INT64, "double": Kind.DOUBLE, "boolean": Kind.BOOL, "binary": Kind.BYTES,
}  # fmt: skip
_KEY_KINDS = (Kind.TEXT, Kind.INT64, Kind.BYTES)


class CommandLineRows(DocumentFiles):
    """Files of rows of the command line. The option `keys` names the key columns: `keys=uid:S,pid:I`."""

    service = Service.TABLE_STORE
    format_name = CLI_ROWS

    def __init__(self, path: Path, options: Mapping[str, str]) -> None:
        super().__init__(path, options)
        self._schema = keys_of(options, self.shown)
        if self._schema is not None and any(column.kind not in _KEY_KINDS for column in self._schema.columns):
            raise BadAddress(f"{self.shown}: keys={options['keys']}: types of Table Store are S, I and B")

    def read_definition(self) -> Definition:
        if self._schema is None:
            raise BadAddress(
                f"{self.shown}: rows of Table Store's command line have no names of key columns. Add them in their"
                " order, such as ?keys=NAME:S,NAME:I"
            )
        rules = Rules(stamped=self._is_stamped())
        size = self.size_bytes()
        return Definition(self.table_name, Service.TABLE_STORE, self._schema, rules=rules, size_bytes=size)

    def _is_stamped(self) -> bool:
        """True if the first column of an attribute has a version. All must be alike."""
        for lines in self.readers():
            for columns in elements_of(lines, _columns_of, _refuse_list):
                for _, _, stamp_ms in columns:
                    return stamp_ms is not None
        return False

    def rows(self, files: Iterator[LineReader]) -> Iterator[Row]:
        definition = self.describe()
        read = partial(_row_of, schema=definition.key_schema, is_stamped=definition.rules.stamped)
        for lines in files:
            yield from elements_of(lines, read, _refuse_list)


def _refuse_list(answer: dict[str, Any]) -> NoReturn:
    raise UnreadableFile(f"no row of Table Store's command line: {', '.join(answer)[:60]}")


def _columns_of(document: dict[str, Any]) -> list[tuple[str, Value, int | None]]:
    return list(map(_attribute, _list(document, "Attr") if "Attr" in document else ()))


def _row_of(document: dict[str, Any], schema: KeySchema, is_stamped: bool) -> Row:
    require_members(document, frozenset({"PK", "Attr"}), "PK")
    if "PK" not in document:
        raise UnreadableFile("the row has no PK")
    keys = _list(document, "PK")
    if len(keys) != len(schema.columns):
        raise UnreadableFile(f"the row has {len(keys)} key columns, but ?keys= names {len(schema.columns)}")
    key_values = {
        column.name: _key_value(column, datum) for column, datum in zip(schema.columns, keys, strict=True)
    }
    cells: dict[str, tuple[Cell, ...]] = {}
    values = dict(key_values)
    for name, value, stamp_ms in _columns_of(document):
        if name in values:
            raise UnreadableFile(f"the column {name!r} occurs twice")
        if (stamp_ms is not None) != is_stamped:
            raise UnreadableFile(f"{name!r}: some columns have TS, others have none")
        values[name] = value
        if stamp_ms is not None:
            cells[name] = (Cell(value, stamp_ms),)
    contents = Contents.of_cells(key_values, cells) if cells else Contents.of_values(values)
    return Row(position_of(key_values, schema), contents, 0)


def _list(document: Mapping[str, Any], name: str) -> list[Any]:
    member = document[name]
    if name == "Attr" and member in (None, {}, {"Values": None}):  # a row of a key only
        return []
    if not isinstance(member, dict) or member.keys() != {"Values"} or not isinstance(member["Values"], list):
        raise UnreadableFile(f"{name} has no list Values")
    return member["Values"]


def _key_value(column: KeyColumn, datum: Any) -> Value:
    return _value(column.name, datum, column.kind)


def _attribute(attribute: Any) -> tuple[str, Value, int | None]:
    """Return (name, value, time in milliseconds). The tool writes members in upper case and also reads lower case."""
    if not isinstance(attribute, dict):
        raise UnreadableFile(f"expected a column with C and V, found {str(attribute)[:60]}")
    members = {member.upper(): datum for member, datum in attribute.items()}
    require_members(members, frozenset({"C", "V", "T", "TS", "ISINT"}), "C")
    name, datum, stamp_ms = members.get("C"), members.get("V"), members.get("TS")
    if len(members) < len(attribute) or not isinstance(name, str) or not name:
        raise UnreadableFile(f"expected a column with C and V, found {str(attribute)[:60]}")
    if type(stamp_ms) not in (int, type(None)):
        raise UnreadableFile(f"{name!r}: the TS {str(stamp_ms)[:40]} is not a whole number")
    return name, _value(name, datum, _kind_of(name, datum, members)), stamp_ms or None


def _kind_of(name: str, datum: Any, members: Mapping[str, Any]) -> Kind:
    type_name = members.get("T")
    if type_name not in (None, ""):
        kind = _KINDS.get(str(type_name).lower())
        if kind is None:
            raise UnreadableFile(
                f"{name!r}: unknown type {str(type_name)[:40]!r}. Use one of {', '.join(_KINDS)}"
            )
        return kind
    if isinstance(datum, str):
        return Kind.TEXT
    if isinstance(datum, bool):
        return Kind.BOOL
    return Kind.INT64 if members.get("ISINT") is True else Kind.DOUBLE


def _value(name: str, datum: Any, kind: Kind) -> Value:
    try:
        if kind is Kind.BYTES:
            datum = base64.b64decode(datum, validate=True)
        elif kind is Kind.DOUBLE and type(datum) is int:
            datum = float(datum)
        value = Value(kind, datum)
        if kind is Kind.DOUBLE and type(datum) is not float:
            raise TypeError("not a number")
        check(value)
    except (TypeError, ValueError, OverflowError, binascii.Error):
        raise UnreadableFile(f"{name!r}: {str(datum)[:60]!r} is not of the kind {kind.value}") from None
    return value

"""Rows and searches in the form of this dialect, for the console (gateway/console)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any

from tablegate.adapters.tablestore.request_code import TYPE_NAMES, request_code
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.tables import options
from tablegate.adapters.tablestore.values import keys
from tablegate.adapters.tablestore.values.values import (
    DEFINED_KINDS,
    check_attribute,
    key_value_shown,
    restored,
)
from tablegate.adapters.tablestore.values.views import view
from tablegate.adapters.tablestore.wire.call_context import TableOrIndex
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.names import check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell
from tablegate.gateway.adapter import RowDisplay
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value

_KINDS = {name: kind for kind, name in TYPE_NAMES.items()}
_DATA_TYPES = {Kind.TEXT: str, Kind.INT64: int, Kind.DOUBLE: float, Kind.BOOL: bool, Kind.BYTES: bytes}


def is_own(table: Table) -> bool:
    """Return True if this dialect created the table."""
    return table.rules.stamped


def shown_row(table: Table, row: Row) -> Any:
    """Return a row as a JSON document: its primary key, and each version of each cell with its timestamp."""
    target = TableOrIndex.of(table)
    everything = RowSelection(frozenset(), VersionWindow(), "", "", ALWAYS, None)
    wire = everything.wire_row(target, everything.cutter(target)(row))
    return {
        "primary_key": [_shown(cell.name, cell.value) for cell in wire.key],
        "attribute_columns": [
            {**_shown(cell.name, cell.value), "timestamp": cell.stamp_ms} for cell in wire.cells
        ],
    }


def document_of(table: Table, values: Mapping[str, Value]) -> Any:
    """Return attributes as a JSON document without timestamps."""
    names = table.key_schema.names
    seen = {name: view(value) for name, value in values.items() if name not in names}
    return {
        "primary_key": [_shown(name, key_value_shown(values[name])) for name in names if name in values],
        "attribute_columns": [
            _shown(name, value) for name, value in seen.items() if value.kind is not Kind.NULL
        ],
    }


def _shown(name: str, value: Any) -> dict[str, Any]:
    kind, data = value
    data = base64.b64encode(data).decode() if isinstance(data, bytes) else data
    return {"name": name, "type": TYPE_NAMES[kind], "value": data}


def values_of(table: Table, document: Any) -> dict[str, Value]:
    """Return the attributes of a JSON document. Timestamps are ignored. Raises ValueError."""
    if not isinstance(document, dict) or not document.keys() <= {"primary_key", "attribute_columns"}:
        raise ValueError("the row is no JSON object with the members primary_key and attribute_columns")
    values: dict[str, Value] = {}
    for part in ("primary_key", "attribute_columns"):
        cells = document.get(part, [])
        if not isinstance(cells, list):
            raise ValueError(f"{part} is not a list")
        for cell in cells:
            name, value = _cell(cell)
            if name in values:
                raise ValueError(f"the column {name} is there twice")
            values[name] = value
    return values


def _cell(cell: Any) -> tuple[str, Value]:
    if not isinstance(cell, dict) or not isinstance(cell.get("name"), str):
        raise ValueError("a column is no JSON object with a name")
    kind = _KINDS.get(str(cell.get("type")))
    if kind is None:
        raise ValueError(f"the type of {cell['name']} is none of {', '.join(_KINDS)}")
    data = cell.get("value")
    if kind is Kind.BYTES and isinstance(data, str):
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            raise ValueError(f"the value of {cell['name']} is not base64") from None
    if kind is Kind.DOUBLE and type(data) is int:
        if float(data) != data:
            raise ValueError(f"the value of {cell['name']} has more digits than a {TYPE_NAMES[kind]}: {data}")
        data = float(data)
    if type(data) is not _DATA_TYPES[kind]:
        raise ValueError(f"the value of {cell['name']} is not of the type {TYPE_NAMES[kind]}")
    return cell["name"], Value(kind, data)


def write_of(table: Table, values: Mapping[str, Value], old: Row | None, now_ms: int) -> Write:
    """Return the write that puts a row. Raises ValueError.

    Versions of columns that do not change are kept, and so is NULL, which Table Store does not show.
    """
    names = table.key_schema.names
    try:
        key_cells = [WireCell(name, key_value_shown(values[name])) for name in names if name in values]
        keys.check_values(key_cells, allows_auto_increment=False)
        key = keys.key_of(table, key_cells)
        seen = {name: view(value) for name, value in values.items() if name not in names}
        nulls = {name: value for name, value in seen.items() if value.kind is Kind.NULL}
        seen = {name: value for name, value in seen.items() if name not in nulls}
        for name, value in seen.items():
            check_column_name(name)
            check_attribute(name, value)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    defined = {name: DEFINED_KINDS[kind] for name, kind in options.defined_types(table).items()}
    for name, value in seen.items():
        if value.kind is not defined.get(name, value.kind):
            raise ValueError(f"the column {name} is defined with the type {TYPE_NAMES[defined[name]]}")
        if value.kind is Kind.INT64 and not INT64_MIN <= value.data <= INT64_MAX:
            raise ValueError(f"the value of {name} is no 64-bit integer")
    return Write(
        table,
        key,
        Replace(_contents(table, key, {**seen, **nulls}, old, now_ms)),
        view=view,
        rule=partial(restored, names),
    )


def _contents(table: Table, key: Key, seen: Mapping[str, Value], old: Row | None, now_ms: int) -> Contents:
    key_values = dict(zip(table.key_schema.names, key.values, strict=True))
    if not table.rules.stamped:
        return Contents.of_values({**key_values, **seen})
    cells = {}
    for name, value in seen.items():
        versions = () if old is None else old.cells.get(name, ())
        if not versions or view(versions[0].value) != value:
            stamp_ms = max(now_ms, versions[0].stamp_ms + 1) if versions else now_ms
            versions = (Cell(value, stamp_ms), *versions)[: max(table.rules.max_versions, 1)]
        cells[name] = versions
    return Contents.of_cells(key_values, cells)


DISPLAY = RowDisplay(
    "Table Store cells", TYPE_NAMES, view, is_own, shown_row, document_of, values_of, write_of, request_code,
)  # fmt: skip

"""Rows and searches in the form of this dialect, and searches as code for its Python SDK, for the console."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import partial
from typing import Any

from tablegate.adapters.tablestore import table_properties
from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.detection import client_code
from tablegate.adapters.tablestore.rows.selections import RowSelection
from tablegate.adapters.tablestore.values import (
    DEFINED_KINDS,
    check_attribute,
    check_key_values,
    key_of,
    key_value_shown,
    restored,
)
from tablegate.adapters.tablestore.views import view
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.names import check_column_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_search import (
    Condition,
    Endpoint,
    NotExpressible,
    Operator,
    RowSearch,
)
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS, Comparison
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key, KeyColumn
from tablegate.gateway.model.values.rows import Cell, Contents, Row, VersionWindow
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value

TYPE_NAMES = {
    Kind.TEXT: "STRING", Kind.INT64: "INTEGER", Kind.DOUBLE: "DOUBLE", Kind.BOOL: "BOOLEAN",
    Kind.BYTES: "BINARY",
}  # fmt: skip
_SDK = "tablestore"
_LOWEST, _HIGHEST = "tablestore.INF_MIN", "tablestore.INF_MAX"
_COMPARATORS = {
    Comparison.EQ: "EQUAL", Comparison.NE: "NOT_EQUAL", Comparison.LT: "LESS_THAN",
    Comparison.LE: "LESS_EQUAL", Comparison.GT: "GREATER_THAN", Comparison.GE: "GREATER_EQUAL",
}  # fmt: skip

_TOGETHER = """

def together(operator, *parts):
    condition = tablestore.CompositeColumnCondition(operator)
    for part in parts:
        condition.add_sub_condition(part)
    return condition


"""


def request_code(search: RowSearch, endpoint: Endpoint) -> dict[str, str]:
    """Return the search as code: name of the SDK -> code. Raises NotExpressible."""
    index = search.search_index
    target = TableOrIndex.of(search.table, index)
    first, last = _bounds(search, target.key)
    reverse = search.reverse and len(search.equal) < len(target.key)
    if reverse:
        if search.last is not None:
            raise NotExpressible("GetRange reads backwards without a condition on the last key column only.")
        first, last = last, first
    name = search.table.name if index is None else index.name
    filters = [_condition(each) for each in search.filters]
    row_filter = filters[0] if len(filters) == 1 else _together("AND", filters) if filters else "None"
    return {
        _SDK: f"""import tablestore
{_TOGETHER if "together(" in row_filter else ""}
client = {client_code(search.table, endpoint)}
first = {_key(target.key, first)}
last = {_key(target.key, last)}
column_filter = {row_filter}
while first:
    _, first, rows, _ = client.get_range(
        {name!r}, {"BACKWARD" if reverse else "FORWARD"!r}, first, last,
        max_version=1, column_filter=column_filter,
    )
    for row in rows:
        print(row.primary_key, row.attribute_columns)
"""
    }


def _bounds(search: RowSearch, columns: tuple[KeyColumn, ...]) -> tuple[list[str], list[str]]:
    """Return the first key and the key after the last one, as source text of the columns' values."""
    for column, condition in search.key_conditions:
        if column.kind is Kind.DECIMAL and condition.operator is not Operator.EQ:
            raise NotExpressible(f"Table Store shows {column.name} as text, which has another order.")
    head = [_source(value) for value in search.equal]
    if search.last is None:
        if len(head) == len(columns):
            return head, [*head[:-1], _source(_after(search.equal[-1]))]
        return [*head, _LOWEST], [*head, _HIGHEST]
    least, most = _column_bounds(search.last)
    return (
        [*head, _LOWEST if least is None else _python(least.data)],
        [*head, _HIGHEST if most is None else _python(most.data)],
    )


def _column_bounds(condition: Condition) -> tuple[Value | None, Value | None]:
    """Return the lowest value of a key column, and the lowest value above the range. None means unbounded."""
    value = condition.values[0]
    match condition.operator:
        case Operator.LT:
            return None, value
        case Operator.LE:
            return None, _after(value)
        case Operator.GT:
            return _after(value), None
        case Operator.GE:
            return value, None
        case Operator.BETWEEN:
            return value, _after(condition.values[1])
    return value, _after_prefix(value)


def _after(value: Value) -> Value:
    """Return the lowest value above another one."""
    kind, data = view(value)
    if kind is Kind.INT64:
        if data == INT64_MAX:
            raise NotExpressible(f"There is no INTEGER above {INT64_MAX}.")
        return Value(kind, data + 1)
    return Value(kind, data + (b"\0" if kind is Kind.BYTES else "\0"))


def _after_prefix(value: Value) -> Value:
    if value.kind is Kind.TEXT and value.data and ord(value.data[-1]) < 0xD7FF:
        return Value(Kind.TEXT, value.data[:-1] + chr(ord(value.data[-1]) + 1))
    if value.kind is Kind.BYTES and value.data and value.data[-1] < 0xFF:
        return Value(Kind.BYTES, value.data[:-1] + bytes([value.data[-1] + 1]))
    raise NotExpressible("This prefix has no upper bound that GetRange accepts.")


def _source(value: Value) -> str:
    return _python(key_value_shown(value).data)


def _python(data: Any) -> str:
    return repr(bytearray(data)) if isinstance(data, bytes) else repr(data)


def _key(columns: tuple[KeyColumn, ...], sources: list[str]) -> str:
    """Return a key of the SDK. The columns after the given ones repeat a virtual bound."""
    filler = sources[-1] if sources[-1] in (_LOWEST, _HIGHEST) else _LOWEST
    padded = [*sources, *[filler] * (len(columns) - len(sources))]
    pairs = [f"({column.name!r}, {source})" for column, source in zip(columns, padded, strict=True)]
    return f"[{', '.join(pairs)}]"


def _condition(condition: Condition) -> str:
    name, *nested = condition.path
    if nested:
        raise NotExpressible("A filter of Table Store has no paths into documents.")
    operator = condition.operator
    if operator.comparison is not None and not operator.is_of_size:
        return _single(str(name), operator.comparison, condition.values[0])
    match operator:
        case Operator.BETWEEN:
            least, most = condition.values
            parts = [_single(str(name), Comparison.GE, least), _single(str(name), Comparison.LE, most)]
            return _together("AND", parts)
        case Operator.IN:
            parts = [_single(str(name), Comparison.EQ, each) for each in condition.values]
            return parts[0] if len(parts) == 1 else _together("OR", parts)
    raise NotExpressible(f"A filter of Table Store has no operator '{operator.value}'.")


def _single(name: str, comparison: Comparison, value: Value) -> str:
    seen = view(value)
    if seen.kind not in TYPE_NAMES:
        raise NotExpressible("A filter of Table Store has no null.")
    return (
        f"tablestore.SingleColumnCondition({name!r}, {_python(seen.data)}, "
        f"tablestore.ComparatorType.{_COMPARATORS[comparison]}, pass_if_missing={comparison is Comparison.NE})"
    )


def _together(operator: str, parts: list[str]) -> str:
    """Return a combination of conditions (see _TOGETHER)."""
    return f"together(tablestore.LogicalOperator.{operator}, {', '.join(parts)})"


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
        check_key_values(key_cells, allows_auto_increment=False)
        key = key_of(table, key_cells)
        seen = {name: view(value) for name, value in values.items() if name not in names}
        nulls = {name: value for name, value in seen.items() if value.kind is Kind.NULL}
        seen = {name: value for name, value in seen.items() if name not in nulls}
        for name, value in seen.items():
            check_column_name(name)
            check_attribute(name, value)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    defined = {name: DEFINED_KINDS[kind] for name, kind in table_properties.defined_types(table).items()}
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

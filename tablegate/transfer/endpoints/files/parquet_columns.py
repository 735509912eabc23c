"""Conversion of rows to Parquet columns and back, and of values in other Parquet files.

Files of tablegate have a column for each attribute and kind, so that each cell has one type and is restored
exactly:

- DynamoDB numbers are text, because 38 digits with exponents from -130 to 125 fit no Parquet decimal.
- DateTime is an integer of 100 ns since year 1, because no Parquet timestamp has both this range and this unit.
- Documents and sets are typed JSON.

The file's metadata map columns to attributes and kinds. Column names are for readers only. In other files each type
becomes the nearest kind. Values that would lose information are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.values.values import view
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import FALSE, NULL, TRUE, Kind, Value, decimal_fits, decimal_text

MAX_COLUMNS = 1000
"""Maximum number of attribute columns. Further attributes share one column."""
MODIFIED_AT, EXPIRES_AT, KINDS, OTHERS = "_modified_at", "_expires_at_ms", "_kinds", "_other_attributes"
_SYSTEM = (MODIFIED_AT, EXPIRES_AT, KINDS, OTHERS)


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its attribute and kind."""

    name: str
    attribute: str
    kind: Kind


def _document(value: Value) -> str:
    [data] = bodies.tagged(value).values()
    return orjson.dumps(data).decode()


_TAGS = {
    Kind.LIST: "L", Kind.MAP: "M", Kind.TEXT_SET: "SS", Kind.DECIMAL_SET: "NS", Kind.BYTES_SET: "BS",
}  # fmt: skip
_ARROW_TYPES: dict[Kind, Any] = {
    Kind.TEXT: pa.string(), Kind.BYTES: pa.binary(), Kind.BOOL: pa.bool_(), Kind.NULL: pa.bool_(), Kind.DECIMAL: pa.string(),
    Kind.INT32: pa.int32(), Kind.INT64: pa.int64(), Kind.DOUBLE: pa.float64(), Kind.DATETIME: pa.int64(),
    Kind.GUID: pa.binary(16), **dict.fromkeys(_TAGS, pa.string()),
}  # fmt: skip
_TO_CELL: dict[Kind, Callable[[Value], Any]] = {
    Kind.DECIMAL: lambda value: decimal_text(value.data),
    Kind.GUID: lambda value: value.data.bytes,
    Kind.NULL: lambda value: True,
    **dict.fromkeys(_TAGS, _document),
}
_OF_CELL: dict[Kind, Callable[[Any], Value]] = {
    Kind.DECIMAL: lambda cell: Value(Kind.DECIMAL, Decimal(cell)),
    Kind.GUID: lambda cell: Value(Kind.GUID, UUID(bytes=cell)),
    Kind.NULL: lambda cell: NULL,
    Kind.BOOL: lambda cell: TRUE if cell else FALSE,
}


def columns_of(kinds: Mapping[str, Iterable[Kind]]) -> list[Column]:
    """Return columns with distinct names for attributes and their kinds."""
    columns: list[Column] = []
    used_names = set(_SYSTEM)
    for attribute, occurring in kinds.items():
        for kind in occurring:
            if len(columns) == MAX_COLUMNS:
                return columns
            name = attribute or "_empty_name"
            if name in used_names:
                name = f"{attribute}:{kind.value}"
            while name in used_names:
                name += "_"
            used_names.add(name)
            columns.append(Column(name, attribute, kind))
    return columns


def arrow_schema(columns: Iterable[Column]) -> Any:
    """Return the Arrow schema of the columns and of the columns that each row has."""
    fields = [pa.field(column.name, _ARROW_TYPES[column.kind]) for column in columns]
    return pa.schema(
        [
            *fields,
            pa.field(MODIFIED_AT, pa.int64()),
            pa.field(EXPIRES_AT, pa.int64()),
            pa.field(KINDS, pa.string()),
            pa.field(OTHERS, pa.string()),
        ]
    )


def cell_of(value: Value) -> Any:
    to_cell = _TO_CELL.get(value.kind)
    return value.data if to_cell is None else to_cell(value)


def value_of(kind: Kind, cell: Any) -> Value:
    """Return the value of a cell. Invalid data raise various errors, which the caller handles."""
    tag = _TAGS.get(kind)
    if tag is not None:
        return bodies.untagged({tag: orjson.loads(cell)})
    of_cell = _OF_CELL.get(kind)
    return Value(kind, cell) if of_cell is None else of_cell(cell)


# Files that tablegate did not write

_YEAR_1 = datetime(1, 1, 1)
_EPOCH_TICKS = (datetime(1970, 1, 1) - _YEAR_1) // timedelta(microseconds=1) * 10
_TICKS = {"s": 10_000_000, "ms": 10_000, "us": 10}


def foreign_cells(column: Any, name: str) -> list[Value | None]:
    """Return the values of a column, None for absent ones. Raises UnreadableFile for a type without a kind."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return foreign_cells(column.dictionary_decode(), name)
    if pa.types.is_null(kind):
        return [None] * len(column)
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms"))
        kind = column.type
    if pa.types.is_timestamp(kind):
        return [
            None if cell is None else _datetime_value(cell, kind.unit, name)
            for cell in column.cast(pa.int64()).to_pylist()
        ]
    read = _reader(kind, name)
    try:
        return [None if cell is None else read(cell) for cell in column.to_pylist()]
    except (TypeError, ValueError, OverflowError) as error:
        raise UnreadableFile(f"column {name!r}: {error}") from None


def _reader(kind: Any, name: str) -> Callable[[Any], Value]:
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return lambda cell: Value(Kind.TEXT, cell)
    if types.is_boolean(kind):
        return lambda cell: TRUE if cell else FALSE
    if types.is_integer(kind):
        if kind.bit_width < 32 or types.is_int32(kind):
            return lambda cell: Value(Kind.INT32, cell)
        if types.is_uint64(kind):
            return lambda cell: Value(Kind.DECIMAL, Decimal(cell))
        return lambda cell: Value(Kind.INT64, cell)
    if types.is_floating(kind):
        return lambda cell: Value(Kind.DOUBLE, float(cell))
    if types.is_decimal(kind):
        return _decimal
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    ):
        return lambda cell: Value(Kind.BYTES, cell)
    if str(kind) == "extension<arrow.uuid>":
        return lambda cell: Value(Kind.GUID, cell)
    if types.is_nested(kind):
        return lambda cell: _nested(cell, kind)
    raise UnreadableFile(f"column {name!r} has the unsupported type {kind}")


def _decimal(cell: Decimal) -> Value:
    if not decimal_fits(cell):
        raise ValueError(f"{cell} has more than 38 digits")
    return Value(Kind.DECIMAL, cell)


def _datetime_value(cell: int, unit: str, name: str) -> Value:
    if unit == "ns":
        if cell % 100:
            raise UnreadableFile(f"column {name!r}: a time in nanoseconds would be truncated to 100 ns")
        return Value(Kind.DATETIME, _EPOCH_TICKS + cell // 100)
    return Value(Kind.DATETIME, _EPOCH_TICKS + cell * _TICKS[unit])


def _nested(cell: Any, kind: Any) -> Value:
    """Return a value of a nested type. Its members have DynamoDB's kinds."""
    if cell is None:
        return NULL
    if pa.types.is_struct(kind):
        return Value(
            Kind.MAP, {name: _nested(member, kind.field(name).type) for name, member in cell.items()}
        )
    if pa.types.is_map(kind):
        if not all(isinstance(name, str) for name, _ in cell):
            raise TypeError("a map key is not text")
        return Value(Kind.MAP, {name: _nested(member, kind.item_type) for name, member in cell})
    if pa.types.is_nested(kind):
        return Value(Kind.LIST, tuple(_nested(member, kind.value_type) for member in cell))
    if isinstance(cell, datetime | date | time):
        return Value(Kind.TEXT, cell.isoformat())
    return view(_reader(kind, "a member")(cell))

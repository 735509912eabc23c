"""Conversion of PlainBuffer cells to the gateway's keys and bounds of ranges.

Cells are validated by position, like in the service: first the number of columns, then name and type of each. Source:
docs/protocols/table-store.md section 4.10.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.values.values import (
    VT_NAMES,
    check_length,
    key_kind_shown,
    key_number,
    key_value_shown,
)
from tablegate.adapters.tablestore.wire import limits, plainbuffer
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import keys
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

KEY_TYPES = frozenset({Kind.INT64, Kind.TEXT, Kind.BYTES})


def decode(data: bytes) -> plainbuffer.WireRow:
    """Decode the row of a request. Raises ServiceError."""
    try:
        return plainbuffer.decode_row(data)
    except plainbuffer.TooManyCells as error:
        raise _key_count() if error.is_key else invalid(f"Invalid PlainBuffer: {error}.") from None
    except plainbuffer.PlainBufferError as error:
        raise invalid(f"Invalid PlainBuffer: {error}.") from None


def key_of(table: Table, cells: Sequence[plainbuffer.WireCell]) -> keys.Key:
    """Return the key of a row from cells that `check_values` has accepted. Raises ServiceError."""
    schema = table.key_schema
    values = _stored_values(schema.columns, cells)
    first_values = values
    if keys.AUTO_INCREMENT in values:
        first_values = values[: values.index(keys.AUTO_INCREMENT)]
    return keys.Key(tuple(values), schema.position(first_values))  # type: ignore[arg-type]


def check_values(cells: Sequence[plainbuffer.WireCell], allows_auto_increment: bool) -> None:
    """Validate a key as far as it does not depend on the table. Raises ServiceError."""
    _check_count(cells)
    for cell in cells:
        check_value(cell, allows_auto_increment)


def _check_count(cells: Sequence[plainbuffer.WireCell]) -> None:
    if not 1 <= len(cells) <= limits.KEY_COLUMNS_MAX:
        raise _key_count()


def _key_count() -> ServiceError:
    return invalid(f"The number of primary key columns must be in range: [1, {limits.KEY_COLUMNS_MAX}].")


def check_value(cell: plainbuffer.WireCell, allows_auto_increment: bool) -> None:
    """Validate a key value as far as it does not depend on the table. Raises ServiceError."""
    value = cell.value
    if isinstance(value, plainbuffer.Bound):
        raise invalid(f"VT_{value.name} is an invalid type for the primary key.")
    if isinstance(value, keys.AutoIncrement):
        if not allows_auto_increment:
            raise invalid("VT_AUTO_INCREMENT is an invalid type for the primary key.")
        return
    if value is None or cell.operation is not None or cell.stamp_ms is not None:
        raise invalid(f"Invalid primary key column: '{cell.name}'.")
    if value.kind not in KEY_TYPES:
        raise invalid(f"{VT_NAMES[value.kind]} is an invalid type for the primary key.")
    if value.kind is not Kind.INT64:
        check_length("primary key", cell.name, value, limits.KEY_VALUE_MAX_BYTES)


def _stored_values(
    columns: Sequence[keys.KeyColumn], cells: Sequence[plainbuffer.WireCell]
) -> list[plainbuffer.Datum | None]:
    """Return validated values as their columns store them. Raises ServiceError if number, names or types differ."""
    if len(cells) != len(columns):
        raise ServiceError(
            "OTSInvalidPK", f"Validate PK size fail. Input: {len(cells)}, Meta: {len(columns)}."
        )
    values = []
    for column, (name, value, _, _) in zip(columns, cells, strict=True):
        if name != column.name:
            raise ServiceError("OTSInvalidPK", f"Validate PK name fail. Input: {name}, Meta: {column.name}.")
        if isinstance(value, Value):
            if value.kind is not column.kind:
                value = _converted(column, value)
        elif isinstance(value, keys.AutoIncrement) and not column.auto_increment:
            raise ServiceError(
                "OTSInvalidPK", f"Validate PK type fail. Column: {column.name} is no auto increment."
            )
        values.append(value)
    return values


def _converted(column: keys.KeyColumn, value: Value) -> Value:
    """Return a value of another kind than the column's as it is stored: only a DECIMAL is shown as a TEXT."""
    expected = key_kind_shown(column)
    if value.kind is not expected:
        raise ServiceError(
            "OTSInvalidPK",
            f"Validate PK type fail. Input: VT_{VT_NAMES[value.kind]}, Meta: VT_{VT_NAMES[expected]}.",
        )
    stored = key_number(value.data)
    if stored is None:
        raise ServiceError("OTSInvalidPK", f"Validate PK value fail. Column: {column.name} matches numbers.")
    return stored


def partition_of(table: Table, cells: Sequence[plainbuffer.WireCell]) -> bytes:
    """Return the partition of a key with one column, for a local transaction. Raises ServiceError."""
    if len(cells) != 1:
        raise invalid("StartLocalTransaction support only one primary key.")
    check_value(cells[0], allows_auto_increment=False)
    [value] = _stored_values(table.key_schema.columns[:1], cells)
    assert isinstance(value, Value)
    return keys.encode_column(value)


def bound_of(target: TableOrIndex, data: bytes) -> keys.Position:
    """Return the position of a bound of a range, whose columns may be INF_MIN or INF_MAX.

    Positions in an index end in the whole key of the table, including columns of the index. Columns after a virtual
    bound are ignored.
    """
    cells = decode(data).key
    if target.index is None:
        _check_count(cells)
    for cell in cells:
        if not isinstance(cell.value, plainbuffer.Bound):
            check_value(cell, allows_auto_increment=False)
    return _position(target, cells)


def index_get(target: TableOrIndex, cells: Sequence[plainbuffer.WireCell]) -> Read:
    """Return the command that reads the row of an index by its key. Raises ServiceError."""
    for cell in cells:
        check_value(cell, allows_auto_increment=False)
    position = _position(target, cells)
    only = KeyRange(position, position.after)
    return Read(target.table, only, PageLimits(scanned=1), index=target.index, whole_rows=True)


def _position(target: TableOrIndex, cells: Sequence[plainbuffer.WireCell]) -> keys.Position:
    """Return the position of a key in a table or an index. Raises ServiceError."""
    values = dict(zip(target.key_names, _stored_values(target.key, cells), strict=True))
    table_schema = target.table.key_schema
    schema = table_schema if target.index is None else target.index.key_schema
    names = schema.names if target.index is None else schema.names + table_schema.names
    split = len(schema.partition)
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    for number, name in enumerate(names):
        part = parts[number >= split]
        value = values[name]
        if not isinstance(value, Value):
            part.append(keys.LOWEST if value is plainbuffer.Bound.INF_MIN else keys.HIGHEST)
            break
        part.append(keys.encode_column(value))
    return keys.Position(b"".join(parts[0]), b"".join(parts[1]))


def key_cells(target: TableOrIndex, row: Row) -> list[plainbuffer.WireCell]:
    """Return the key of a row as cells for the wire."""
    latest = row.latest
    return [plainbuffer.WireCell(name, key_value_shown(latest[name])) for name in target.key_names]

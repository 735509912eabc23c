"""Conversion of values and keys between the gateway and Table Store.

Table Store has five kinds of attributes (INTEGER, DOUBLE, BOOLEAN, STRING, BINARY) and three of keys. Values of other
dialects are shown exactly or as text, never rounded. NULL is shown as a missing column. Every value converts in both
directions.

The cells of a key are validated by position, like in the service: first the number of columns, then name and type of each.
Source: docs/protocols/table-store.md section 4.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.views import WIRE_KINDS, view
from tablegate.adapters.tablestore.wire import limits, plainbuffer
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import keys
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal_fits, decimal_text, size_bytes

_LONGEST_CHARACTER_BYTES = 4
WIRE_TAGS = frozenset({"I64", "D", "BOOL", "S", "B"})
"""Tags of the kinds on the wire in bodies (gateway/model/values/bodies.py)."""

SHOWN_KINDS = frozenset(Kind) - {Kind.NULL}
"""Kinds that Table Store can show."""

VT_NAMES = {
    Kind.INT64: "INTEGER",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOL: "BOOLEAN",
    Kind.TEXT: "STRING",
    Kind.BYTES: "BLOB",
}
"""Names of types in error texts, after `VT_`."""


def check_length(column_kind: str, name: str, value: Value, bytes_max: int) -> None:
    """Raise ServiceError if a text or blob has more than `bytes_max` bytes. `column_kind`: the kind of column in the text."""
    if len(value.data) * _LONGEST_CHARACTER_BYTES > bytes_max and (size := size_bytes(value)) > bytes_max:
        raise invalid(
            f"The length of {column_kind} column: '{name}' exceeds the MaxLength:{bytes_max} with CurrentLength:{size}."
        )


def check_attribute(name: str, value: Value) -> None:
    """Raise ServiceError if the value of an attribute is too long."""
    if value.kind is Kind.TEXT or value.kind is Kind.BYTES:
        check_length("attribute", name, value, limits.VALUE_MAX_BYTES)


def restored(key_names: tuple[str, ...], old: Row | None, contents: Contents) -> Contents:
    """Restore the stored kind of values that were read and written back unchanged."""
    if old is None or all(WIRE_TAGS.issuperset(member) for member in old.contents.members.values()):
        return contents
    before = old.latest
    stored_values = {
        name: before[name]
        for name, value in contents.latest.items()
        if name in before and before[name].kind not in WIRE_KINDS and view(before[name]) == value
    }
    return contents.replacing(stored_values, key_names) if stored_values else contents


DEFINED_KINDS: dict[int, Kind] = {
    messages.DCT_INTEGER: Kind.INT64,
    messages.DCT_DOUBLE: Kind.DOUBLE,
    messages.DCT_BOOLEAN: Kind.BOOL,
    messages.DCT_STRING: Kind.TEXT,
    messages.DCT_BLOB: Kind.BYTES,
}


# Keys

_KEY_TYPES = {
    Kind.INT64: messages.INTEGER,
    Kind.TEXT: messages.STRING,
    Kind.BYTES: messages.BINARY,
    Kind.DECIMAL: messages.STRING,
}
KEY_KINDS = {messages.INTEGER: Kind.INT64, messages.STRING: Kind.TEXT, messages.BINARY: Kind.BYTES}


def key_type(column: KeyColumn) -> messages.PrimaryKeyType:
    """Return the type of a key column in Table Store. A DECIMAL (DynamoDB's N) is shown as a string."""
    return _KEY_TYPES[column.kind]


def key_kind_shown(column: KeyColumn) -> Kind:
    """Return the kind of a key column's values on the wire."""
    return Kind.TEXT if column.kind is Kind.DECIMAL else column.kind


def key_value_shown(value: Value) -> Value:
    """Return a key value as it is shown on the wire."""
    return Value(Kind.TEXT, decimal_text(value.data)) if value.kind is Kind.DECIMAL else value


def key_number(text: str) -> Value | None:
    """Return the DECIMAL key value that is shown as a text. None if it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite() or not decimal_fits(number):
        return None
    return Value(Kind.DECIMAL, number)


KEY_TYPES = frozenset({Kind.INT64, Kind.TEXT, Kind.BYTES})


def decode_key(data: bytes) -> plainbuffer.WireRow:
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


def check_key_values(cells: Sequence[plainbuffer.WireCell], allows_auto_increment: bool) -> None:
    """Validate a key as far as it does not depend on the table. Raises ServiceError."""
    _check_count(cells)
    for cell in cells:
        check_key_value(cell, allows_auto_increment)


def _check_count(cells: Sequence[plainbuffer.WireCell]) -> None:
    if not 1 <= len(cells) <= limits.KEY_COLUMNS_MAX:
        raise _key_count()


def _key_count() -> ServiceError:
    return invalid(f"The number of primary key columns must be in range: [1, {limits.KEY_COLUMNS_MAX}].")


def check_key_value(cell: plainbuffer.WireCell, allows_auto_increment: bool) -> None:
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
    check_key_value(cells[0], allows_auto_increment=False)
    [value] = _stored_values(table.key_schema.columns[:1], cells)
    assert isinstance(value, Value)
    return keys.encode_column(value)


def bound_of(target: TableOrIndex, data: bytes) -> keys.Position:
    """Return the position of a bound of a range, whose columns may be INF_MIN or INF_MAX.

    Positions in an index end in the whole key of the table, including columns of the index. Columns after a virtual
    bound are ignored.
    """
    cells = decode_key(data).key
    if target.index is None:
        _check_count(cells)
    for cell in cells:
        if not isinstance(cell.value, plainbuffer.Bound):
            check_key_value(cell, allows_auto_increment=False)
    return _position(target, cells)


def index_get(target: TableOrIndex, cells: Sequence[plainbuffer.WireCell]) -> Read:
    """Return the command that reads the row of an index by its key. Raises ServiceError."""
    for cell in cells:
        check_key_value(cell, allows_auto_increment=False)
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


def key_values_shown(target: TableOrIndex, row: Row) -> dict[str, Value]:
    """Return the key of a row as it is shown. An attribute in the key of an index has the value that the index holds."""
    latest, names = row.latest, target.table.key_schema.names
    return {
        name: key_value_shown(latest[name]) if name in names else view(latest[name])
        for name in target.key_names
    }


def key_cells(target: TableOrIndex, row: Row) -> list[plainbuffer.WireCell]:
    """Return the key of a row as cells for the wire."""
    return [plainbuffer.WireCell(name, value) for name, value in key_values_shown(target, row).items()]
